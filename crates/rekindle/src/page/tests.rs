//! What holds for pages without a browser: contrast of the colours, weight of a large run, no control characters.
