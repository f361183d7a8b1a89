//! Filesystem queries for each operating system. This file only chooses the implementation.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;

#[cfg(target_os = "linux")]
pub use linux::network_filesystem;
#[cfg(target_os = "macos")]
pub use macos::network_filesystem;
