//! Finds the process at the other end of a connection on this machine, by the kernel's own tables: the socket's inode, and
//! which process has it open. Only ports are compared, so that it does not matter whether the client uses IPv4 or IPv6.

use std::net::TcpStream;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// A process that sent a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peer {
    pub pid: u32,
    pub program: PathBuf,
}

impl Peer {
    /// The process at the other end, which must still have the connection open.
    pub(super) fn of(stream: &TcpStream) -> Option<Self> {
        let theirs = stream.peer_addr().ok()?.port();
        let ours = stream.local_addr().ok()?.port();
        let inode = ["/proc/net/tcp", "/proc/net/tcp6"].into_iter().find_map(|table| inode(table, theirs, ours))?;
        let wanted = PathBuf::from(format!("socket:[{inode}]"));
        let entries = std::fs::read_dir("/proc").ok()?;
        let mut pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let pid = pids.find(|pid| holds(*pid, &wanted))?;
        let program = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        Some(Self { pid, program })
    }
}

/// The inode of the socket with these two ports.
fn inode(table: &str, local: u16, remote: u16) -> Option<String> {
    let text = std::fs::read_to_string(table).ok()?;
    let port = |address: &str| u16::from_str_radix(address.rsplit_once(':')?.1, 16).ok();
    text.lines().skip(1).find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let fits = port(fields.get(1)?)? == local && port(fields.get(2)?)? == remote;
        // A socket that no process has open any more shows inode 0.
        fits.then(|| fields.get(9).map(ToString::to_string))?.filter(|inode| inode != "0")
    })
}

fn holds(pid: u32, wanted: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    entries.flatten().any(|entry| std::fs::read_link(entry.path()).is_ok_and(|target| target == wanted))
}
