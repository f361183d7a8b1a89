//! Unix sockets in a directory whose path may be longer than a socket address allows: the directory is named by its
//! descriptor.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use rustix::net::sockopt::Timeout;
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use crate::{atomic, os};

/// Callers that may wait to be accepted: a whole fleet at once.
const BACKLOG: i32 = 1_024;

/// Listens on a new socket in a directory. A socket of that name must not exist.
pub fn listen(dir: &Path, name: &str) -> io::Result<UnixListener> {
    let dir = atomic::open_dir(dir)?;
    let socket = new_socket()?;
    rustix::net::bind(&socket, &os::socket_address(dir.as_fd(), name)?)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket.into())
}

/// Time for a connection to be accepted: a stopped listener lets its backlog fill up, and then no caller is accepted any
/// more.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// Connects to a socket in a directory. Fails when nothing is listening there, the connection is not accepted, or the system
/// refuses.
pub fn connect(dir: &Path, name: &str) -> io::Result<UnixStream> {
    let dir = atomic::open_dir(dir)?;
    let socket = new_socket()?;
    rustix::net::sockopt::set_socket_timeout(&socket, Timeout::Send, Some(CONNECT_WITHIN))?;
    rustix::net::connect(&socket, &os::socket_address(dir.as_fd(), name)?)?;
    Ok(socket.into())
}

fn new_socket() -> io::Result<std::os::fd::OwnedFd> {
    Ok(rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?)
}
