//! Table tests of the layers.
