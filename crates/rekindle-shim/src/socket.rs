//! Unix sockets in a directory whose path may be longer than a socket's address: the directory is named by its descriptor.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use rustix::net::{AddressFamily, SocketFlags, SocketType};

use crate::{atomic, os};

/// Callers that may wait to be accepted: a whole fleet at once.
const BACKLOG: i32 = 1_024;

/// Listens on a new socket in a directory. A socket of that name must not be there.
///
/// # Errors
/// When the system refuses.
pub fn listen(dir: &Path, name: &str) -> io::Result<UnixListener> {
    let dir = atomic::open_dir(dir)?;
    let socket = new_socket()?;
    rustix::net::bind(&socket, &os::socket_address(dir.as_fd(), name)?)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket.into())
}

/// Connects to a socket in a directory.
///
/// # Errors
/// When nobody listens there, or the system refuses.
pub fn connect(dir: &Path, name: &str) -> io::Result<UnixStream> {
    let dir = atomic::open_dir(dir)?;
    let socket = new_socket()?;
    rustix::net::connect(&socket, &os::socket_address(dir.as_fd(), name)?)?;
    Ok(socket.into())
}

fn new_socket() -> io::Result<std::os::fd::OwnedFd> {
    Ok(rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?)
}
