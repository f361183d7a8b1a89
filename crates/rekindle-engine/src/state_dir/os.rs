//! What each operating system knows about a filesystem. It owns nothing but the choice of the file that answers.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;

#[cfg(target_os = "linux")]
pub use linux::network_filesystem;
#[cfg(target_os = "macos")]
pub use macos::network_filesystem;
