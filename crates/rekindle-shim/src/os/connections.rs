//! When bytes last went over the TCP connections of processes, as reported by the kernel (`sock_diag`). A program's own
//! system calls do not show it: `recv` is in no count of `/proc/PID/io`. Nothing is changed here; if the kernel cannot be
//! asked, the answer is `None`.

use std::collections::BTreeSet;
use std::fs;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, sockopt};

/// The kernel answers from memory; this is the timeout for a kernel that does not.
const ANSWER_MAX: Duration = Duration::from_secs(1);

/// Limit on the pieces of an answer that are read: each holds dozens of connections, a machine has some thousands.
const PIECES_MAX: usize = 4096;

/// More than the kernel puts into one piece.
const PIECE_BYTES: usize = 64 * 1024;

/// Bytes that must have been sent over a connection before it counts as one that carried a request: a model request with its
/// tools and its instructions is larger, the keep-alive of some other server is not.
const REQUEST_BYTES: u64 = 4096;

/// `SOCK_DIAG_BY_FAMILY`, asked for all that match.
const BY_FAMILY: u16 = 20;
const REQUEST_DUMP: u16 = 0x301;
const ERROR: u16 = 2;
const DONE: u16 = 3;

/// `INET_DIAG_INFO`, as an attribute and as the bit that asks for it.
const INFO: u16 = 2;
const WANTS_INFO: u8 = 1 << (INFO - 1);

/// `IPPROTO_TCP`.
const TCP: u8 = 6;

/// Only established connections, by the bit of their state.
const ESTABLISHED: u32 = 1 << 1;

/// Sizes and offsets of the kernel's records, which never change: `nlmsghdr`, `inet_diag_req_v2`, `inet_diag_msg`,
/// `tcp_info`.
const HEADER_BYTES: usize = 16;
const REQUEST_ID_BYTES: usize = 48;
const MESSAGE_BYTES: usize = 72;
const INODE_AT: usize = 68;
const LAST_SENT_AT: usize = 44;
const LAST_RECEIVED_AT: usize = 52;
const BYTES_SENT_AT: usize = 120;

/// How long ago a byte last went over a connection of these processes that carried a request, in milliseconds. `None` if
/// they have no such connection or it cannot be determined.
pub fn quiet_ms(pids: impl Iterator<Item = u32>) -> Option<u64> {
    let sockets: BTreeSet<u32> = pids.flat_map(sockets_of).collect();
    if sockets.is_empty() {
        return None;
    }
    let families = [AddressFamily::INET, AddressFamily::INET6];
    let found = families.into_iter().filter_map(|family| ask(family, &sockets)).min();
    found.map(u64::from)
}

/// The sockets that a process holds, by inode.
fn sockets_of(pid: u32) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else { return Vec::new() };
    let links = entries.flatten().filter_map(|entry| fs::read_link(entry.path()).ok());
    links.filter_map(|link| link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()).collect()
}

fn ask(family: AddressFamily, sockets: &BTreeSet<u32>) -> Option<u32> {
    let flags = SocketFlags::CLOEXEC;
    let socket =
        rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, Some(netlink::SOCK_DIAG)).ok()?;
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(ANSWER_MAX)).ok()?;
    rustix::net::send(&socket, &request(family), SendFlags::empty()).ok()?;
    read(&socket, sockets)
}

fn request(family: AddressFamily) -> Vec<u8> {
    let family = u8::try_from(family.as_raw()).unwrap_or_default();
    let mut body = vec![family, TCP, WANTS_INFO, 0];
    body.extend(ESTABLISHED.to_ne_bytes());
    body.extend([0; REQUEST_ID_BYTES]);
    let length = u32::try_from(HEADER_BYTES + body.len()).unwrap_or_default();
    let mut message = Vec::new();
    message.extend(length.to_ne_bytes());
    message.extend(BY_FAMILY.to_ne_bytes());
    message.extend(REQUEST_DUMP.to_ne_bytes());
    // A number of the request and the kernel's own address, both of no use here.
    message.extend([0; 8]);
    message.extend(body);
    message
}

fn read(socket: &OwnedFd, sockets: &BTreeSet<u32>) -> Option<u32> {
    let mut least: Option<u32> = None;
    let mut piece = vec![0_u8; PIECE_BYTES];
    for _ in 0..PIECES_MAX {
        let (length, _) = rustix::net::recv(socket, &mut *piece, RecvFlags::empty()).ok()?;
        let mut rest = piece.get(..length)?;
        while let Some(size) = u32_at(rest, 0).map(|size| size as usize).filter(|size| *size >= HEADER_BYTES) {
            let kind = u16_at(rest, 4)?;
            if kind == DONE || kind == ERROR {
                return least.filter(|_| kind == DONE);
            }
            let quiet = rest.get(HEADER_BYTES..size).and_then(|message| quiet_of(message, sockets));
            least = [least, quiet].into_iter().flatten().min();
            let Some(next) = rest.get(size.next_multiple_of(4)..) else { break };
            rest = next;
        }
    }
    None
}

/// How long one connection has been quiet, if it is one of these and carried a request.
fn quiet_of(message: &[u8], sockets: &BTreeSet<u32>) -> Option<u32> {
    if !sockets.contains(&u32_at(message, INODE_AT)?) {
        return None;
    }
    let mut rest = message.get(MESSAGE_BYTES..)?;
    loop {
        let size = usize::from(u16_at(rest, 0)?);
        if u16_at(rest, 2)? == INFO {
            let info = rest.get(4..size)?;
            let sent = info.get(BYTES_SENT_AT..BYTES_SENT_AT + 8)?.try_into().ok().map(u64::from_ne_bytes)?;
            let quiet = u32_at(info, LAST_SENT_AT)?.min(u32_at(info, LAST_RECEIVED_AT)?);
            return (sent >= REQUEST_BYTES).then_some(quiet);
        }
        rest = rest.get(size.max(4).next_multiple_of(4)..)?;
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2)?.try_into().ok().map(u16::from_ne_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::time::Instant;

    use super::*;

    fn own_quiet_ms() -> Option<u64> {
        quiet_ms([std::process::id()].into_iter())
    }

    /// Waits until the observed value fits.
    fn await_quiet(fits: impl Fn(Option<u64>) -> bool) -> Option<u64> {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let seen = own_quiet_ms();
            if fits(seen) || Instant::now() > deadline {
                return seen;
            }
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_byte_in_either_direction_ends_the_quiet_of_a_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut client = TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
        let (mut server, _) = listener.accept().expect("a connection");
        assert_eq!(own_quiet_ms(), None, "no request was sent yet");
        client.write_all(&[0; 5_000]).expect("sent");
        server.read_exact(&mut [0; 5_000]).expect("received");
        let waited = await_quiet(|seen| seen.is_some_and(|ms| ms >= 300));
        assert!(waited.is_some_and(|ms| ms >= 300), "{waited:?}");
        server.write_all(b"x").expect("sent");
        let heard = await_quiet(|seen| seen.is_some_and(|ms| ms < 300));
        assert!(heard.is_some_and(|ms| ms < 300), "one byte is a sign of life: {heard:?}");
        drop(client);
        drop(server);
        assert_eq!(await_quiet(|seen| seen.is_none()), None, "no connection, nothing to tell");
    }

    #[test]
    fn what_is_cut_off_or_no_record_tells_nothing() {
        let sockets = BTreeSet::from([0]);
        let whole = vec![0_u8; 400];
        for length in 0..whole.len() {
            assert_eq!(quiet_of(&whole[..length], &sockets), None);
        }
    }
}
