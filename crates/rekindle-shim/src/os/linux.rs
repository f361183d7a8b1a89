//! Linux: pidfds, `/proc`, the child subreaper.

use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::path::PathBuf;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::{Pid, PidfdFlags, Signal};

use super::{ProcStat, Usage};

/// The clock that counts suspension too.
pub const BOOTTIME: rustix::time::ClockId = rustix::time::ClockId::Boottime;

/// `f_type` of the pseudo filesystem that gives every process an inode never used again in this boot (6.9 on).
const PIDFS_MAGIC: i64 = 0x5049_4446;

/// Limit on reading `environ`: more than a program may be started with.
const ENVIRON_MAX_BYTES: u64 = 8 << 20;

/// Names this boot of this machine.
pub fn boot_id() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

/// Names the namespace in which our pids have meaning.
pub fn pid_namespace() -> io::Result<u64> {
    Ok(rustix::fs::stat("/proc/self/ns/pid")?.st_ino)
}

/// Makes this process, instead of init, the parent of orphaned descendants.
pub fn become_subreaper() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

/// The running program, even when its file was replaced or deleted.
pub fn self_exe() -> PathBuf {
    PathBuf::from("/proc/self/exe")
}

/// Offers the agent to the out-of-memory killer before its shim. Raising is always allowed.
pub fn prefer_as_oom_victim() -> io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).open("/proc/self/oom_score_adj")?;
    file.write_all(OOM_SCORE.as_bytes())
}

/// Well above the default of 0 and below the 1000 that means "always first": the user's own choice stays visible.
const OOM_SCORE: &str = "300";

/// The address of `sock` in an open directory. An address holds 107 bytes and paths are longer, so it goes
/// through the directory's descriptor.
pub fn socket_address(dir: BorrowedFd<'_>, name: &str) -> io::Result<SocketAddrUnix> {
    use std::os::fd::AsRawFd;
    Ok(SocketAddrUnix::new(format!("/proc/self/fd/{}/{name}", dir.as_raw_fd()))?)
}

/// Flags for sending: a peer that has gone is an error, never a signal.
pub const SEND_FLAGS: SendFlags = SendFlags::NOSIGNAL;

/// A non-blocking stream socket that no child inherits.
pub fn stream_socket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?)
}

/// Takes the next waiting connection, non-blocking and not inherited.
pub fn accept(listener: &OwnedFd) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(rustix::net::accept_with(listener, flags)?)
}

/// A pipe whose ends no child inherits: reading end first.
pub fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?)
}

/// The user at the other end of a socket.
pub fn peer_uid<Fd: AsFd>(socket: Fd) -> io::Result<u32> {
    Ok(rustix::net::sockopt::socket_peercred(socket)?.uid.as_raw())
}

/// Closes every descriptor above 2 that this process was started with. Descriptors that the process opened itself carry
/// close-on-exec, inherited ones cannot.
#[expect(unsafe_code, reason = "descriptors named by number have no owner to borrow from")]
pub fn close_inherited() -> io::Result<()> {
    for entry in fs::read_dir("/proc/self/fd")? {
        let Ok(fd) = entry?.file_name().to_string_lossy().parse::<RawFd>() else {
            continue;
        };
        if fd <= 2 {
            continue;
        }
        // SAFETY: listed a moment ago by this single-threaded process, so it is open.
        let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
        let flags = rustix::io::fcntl_getfd(borrowed)?;
        if !flags.contains(rustix::io::FdFlags::CLOEXEC) {
            // SAFETY: not close-on-exec, hence inherited, hence owned by no value of this process.
            unsafe { rustix::io::close(fd) };
        }
    }
    Ok(())
}

/// What the reaped children of this process used.
#[expect(unsafe_code, reason = "rustix has no getrusage")]
pub fn children_usage() -> Usage {
    // SAFETY: all-zero is a valid rusage, and the kernel fills a struct of exactly this type.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        if libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) != 0 {
            return Usage::default();
        }
        usage
    };
    let millis = |time: libc::timeval| {
        u64::try_from(time.tv_sec).unwrap_or(0) * 1000 + u64::try_from(time.tv_usec).unwrap_or(0) / 1000
    };
    Usage {
        user_ms: millis(usage.ru_utime),
        sys_ms: millis(usage.ru_stime),
        max_rss_kb: u64::try_from(usage.ru_maxrss).unwrap_or(0),
    }
}

/// A pinned process: whatever happens to its process id, this refers to it and to no other.
#[derive(Debug)]
pub struct Handle(OwnedFd);

impl Handle {
    /// Pins the process that has this id now.
    pub fn open(pid: u32) -> io::Result<Self> {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
        Ok(Self(rustix::process::pidfd_open(pid, PidfdFlags::empty())?))
    }

    /// The inode that names this process for the whole boot, if the kernel gives one.
    pub fn inode(&self) -> Option<u64> {
        let filesystem = rustix::fs::fstatfs(&self.0).ok()?;
        #[expect(clippy::useless_conversion, reason = "the type of f_type differs between architectures")]
        if i64::from(filesystem.f_type) != PIDFS_MAGIC {
            return None;
        }
        Some(rustix::fs::fstat(&self.0).ok()?.st_ino)
    }

    /// Sends a signal to exactly this process.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        Ok(rustix::process::pidfd_send_signal(&self.0, signal)?)
    }

    /// Whether it has ended, reaped or not.
    pub fn exited(&self) -> bool {
        let mut fds = [PollFd::new(&self.0, PollFlags::IN)];
        matches!(poll(&mut fds, Some(&crate::clock::timeout(0))), Ok(n) if n > 0)
    }
}

impl AsFd for Handle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

pub fn pids() -> io::Result<Vec<u32>> {
    let mut pids = Vec::new();
    for entry in fs::read_dir("/proc")? {
        // An entry that vanished while listing is not an error of the listing.
        let Ok(entry) = entry else { continue };
        if let Ok(pid) = entry.file_name().to_string_lossy().parse() {
            pids.push(pid);
        }
    }
    Ok(pids)
}

/// Reads one row of the process table.
pub fn stat(pid: u32) -> io::Result<ProcStat> {
    let bytes = fs::read(format!("/proc/{pid}/stat"))?;
    parse_stat(pid, &String::from_utf8_lossy(&bytes))
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("/proc/{pid}/stat is not understood")))
}

fn parse_stat(pid: u32, text: &str) -> Option<ProcStat> {
    // The name may hold spaces and parentheses; the last closing one ends it.
    let (head, tail) = text.rsplit_once(')')?;
    let name = head.split_once('(')?.1.to_owned();
    let fields: Vec<&str> = tail.split_ascii_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    let mut cpu_ticks = 0;
    for index in 11..15 {
        cpu_ticks += number(index)?;
    }
    Some(ProcStat {
        pid,
        ppid: u32::try_from(number(1)?).ok()?,
        group: u32::try_from(number(2)?).unwrap_or(0),
        session: u32::try_from(number(3)?).unwrap_or(0),
        zombie: matches!(*fields.first()?, "Z" | "X"),
        start_ticks: number(19)?,
        cpu_ticks,
        name,
    })
}

/// Whether the process belongs to us and was started with `entry` in its environment.
pub fn environ_has(pid: u32, entry: &[u8]) -> bool {
    let mut bytes = Vec::new();
    let Ok(file) = fs::File::open(format!("/proc/{pid}/environ")) else {
        return false;
    };
    if file.take(ENVIRON_MAX_BYTES).read_to_end(&mut bytes).is_err() {
        return false;
    }
    bytes.split(|byte| *byte == 0).any(|variable| variable == entry)
}

/// Processes and threads of our user, counted like the system's limit on them.
pub fn tasks_of_user() -> u64 {
    let uid = rustix::process::getuid().as_raw();
    let ours = pids().unwrap_or_default().into_iter().filter(|pid| owner(*pid).is_ok_and(|owner| owner == uid));
    let threads = |pid| fs::read_to_string(format!("/proc/{pid}/stat")).ok().and_then(|row| threads_in(&row));
    ours.map(|pid| threads(pid).unwrap_or(1)).sum()
}

fn threads_in(row: &str) -> Option<u64> {
    row.rsplit_once(')')?.1.split_ascii_whitespace().nth(17)?.parse().ok()
}

/// The user a process runs as.
pub fn owner(pid: u32) -> io::Result<u32> {
    Ok(rustix::fs::stat(format!("/proc/{pid}"))?.st_uid)
}

/// Bytes read and written through system calls so far; zero if reading the count is not permitted.
pub fn io_bytes(pid: u32) -> u64 {
    let Ok(text) = fs::read_to_string(format!("/proc/{pid}/io")) else {
        return 0;
    };
    text.lines()
        .filter_map(|line| line.strip_prefix("rchar: ").or_else(|| line.strip_prefix("wchar: ")))
        .filter_map(|number| number.parse::<u64>().ok())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let row = "7 (a) b (c) S 3 7 5 0 -1 0 0 0 0 0 10 20 30 40 20 0 1 0 999 0 0";
        let stat = parse_stat(7, row).expect("parses");
        assert_eq!((stat.ppid, stat.session, stat.start_ticks, stat.cpu_ticks), (3, 5, 999, 100));
        assert_eq!(stat.name, "a) b (c");
        assert!(!stat.zombie);
    }

    #[test]
    fn garbage_is_none() {
        assert!(parse_stat(1, "").is_none());
        assert!(parse_stat(1, "1 (x) S 1 2").is_none());
    }
}
