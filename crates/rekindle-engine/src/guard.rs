//! Recovery for an interactive lead: what is kept of its sessions, and how the hooks that tell of them get into its settings.

pub mod install;
