//! macOS: the same names with what that system has. Not tested on a real machine so far.
//!
//! There is no pidfd, no subreaper and no process filesystem: a process is pinned by a kernel queue that reports its end,
//! described by `ps`, and identified by process id and start time, which always requires a second factor.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rustix::event::kqueue::{Event, EventFilter, EventFlags, ProcessEvents, kevent, kqueue};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::FdFlags;
use rustix::net::{AddressFamily, SendFlags, SocketAddrUnix, SocketType};
use rustix::process::{Pid, Signal};

use super::{ProcStat, Usage};

/// The nearest to a clock that counts suspension.
pub const BOOTTIME: rustix::time::ClockId = rustix::time::ClockId::Monotonic;

/// The system has no flag for it; Rust programs ignore the signal.
pub const SEND_FLAGS: SendFlags = SendFlags::empty();

/// Names this boot of this machine.
pub fn boot_id() -> io::Result<String> {
    ask("/usr/sbin/sysctl", &["-n", "kern.bootsessionuuid"]).map(|text| text.trim().to_owned())
}

/// There are no pid namespaces.
pub fn pid_namespace() -> io::Result<u64> {
    Ok(0)
}

/// There are no subreapers: orphans go to launchd, and only marker and session still find them.
pub fn become_subreaper() -> io::Result<()> {
    Ok(())
}

pub fn self_exe() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| PathBuf::from("rekindle"))
}

/// The system has no such score.
pub fn prefer_as_oom_victim() -> io::Result<()> {
    Ok(())
}

/// The address of `name` in an open directory; a path longer than an address is an error here.
pub fn socket_address(dir: BorrowedFd<'_>, name: &str) -> io::Result<SocketAddrUnix> {
    let path = rustix::fs::getpath(dir)?;
    Ok(SocketAddrUnix::new(PathBuf::from(OsStr::from_bytes(path.to_bytes())).join(name))?)
}

/// A non-blocking stream socket that no child inherits.
pub fn stream_socket() -> io::Result<OwnedFd> {
    own(rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None)?)
}

/// Takes the next waiting connection, non-blocking and not inherited.
pub fn accept(listener: &OwnedFd) -> io::Result<OwnedFd> {
    own(rustix::net::accept(listener)?)
}

fn own(socket: OwnedFd) -> io::Result<OwnedFd> {
    rustix::io::fcntl_setfd(&socket, FdFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&socket, true)?;
    Ok(socket)
}

/// A pipe whose ends no child inherits: reading end first.
pub fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = rustix::pipe::pipe()?;
    rustix::io::fcntl_setfd(&read, FdFlags::CLOEXEC)?;
    rustix::io::fcntl_setfd(&write, FdFlags::CLOEXEC)?;
    Ok((read, write))
}

/// The user at the other end of a socket.
#[expect(unsafe_code, reason = "rustix has no getpeereid")]
pub fn peer_uid<Fd: AsFd>(socket: Fd) -> io::Result<u32> {
    use std::os::fd::AsRawFd;
    let (mut uid, mut gid) = (0, 0);
    // SAFETY: the descriptor is borrowed for the call, and both results are owned here.
    if unsafe { libc::getpeereid(socket.as_fd().as_raw_fd(), &raw mut uid, &raw mut gid) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(uid)
}

/// Closes every descriptor above 2 that this process was started with.
#[expect(unsafe_code, reason = "descriptors named by number have no owner to borrow from")]
pub fn close_inherited() -> io::Result<()> {
    for entry in std::fs::read_dir("/dev/fd")? {
        let Ok(fd) = entry?.file_name().to_string_lossy().parse::<RawFd>() else {
            continue;
        };
        if fd <= 2 {
            continue;
        }
        // SAFETY: listed a moment ago by this single-threaded process, so it is open.
        let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
        if rustix::io::fcntl_getfd(borrowed).is_ok_and(|flags| !flags.contains(FdFlags::CLOEXEC)) {
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
        // This system counts bytes.
        max_rss_kb: u64::try_from(usage.ru_maxrss).unwrap_or(0) / 1024,
    }
}

/// A watched process: a kernel queue that becomes readable when it ends.
#[derive(Debug)]
pub struct Handle {
    queue: OwnedFd,
    pid: Pid,
}

impl Handle {
    /// Watches the process that has this id now.
    #[expect(unsafe_code, reason = "registering an event is unsafe where it names a descriptor; this names a process")]
    pub fn open(pid: u32) -> io::Result<Self> {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
        let queue = kqueue()?;
        rustix::io::fcntl_setfd(&queue, FdFlags::CLOEXEC)?;
        let filter = EventFilter::Proc { pid, flags: ProcessEvents::EXIT };
        let event = Event::new(filter, EventFlags::ADD, std::ptr::null_mut());
        let mut none: [Event; 0] = [];
        // SAFETY: no file descriptor is registered.
        unsafe { kevent(&queue, &[event], &mut none[..], None)? };
        Ok(Self { queue, pid })
    }

    /// There is no inode that names a process.
    pub fn inode(&self) -> Option<u64> {
        None
    }

    /// Sends a signal, unless the process has ended.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        if self.exited() {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        Ok(rustix::process::kill_process(self.pid, signal)?)
    }

    pub fn exited(&self) -> bool {
        let mut fds = [PollFd::new(&self.queue, PollFlags::IN)];
        matches!(poll(&mut fds, Some(&super::clock::timeout(0))), Ok(n) if n > 0)
    }
}

impl AsFd for Handle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
    }
}

pub fn pids() -> io::Result<Vec<u32>> {
    let text = ask("/bin/ps", &["-axo", "pid="])?;
    Ok(text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect())
}

/// Reads one row of the process table.
pub fn stat(pid: u32) -> io::Result<ProcStat> {
    let text = ask("/bin/ps", &["-o", "ppid=,pgid=,sess=,stat=,time=,lstart=,ucomm=", "-p", &pid.to_string()])?;
    let fields: Vec<&str> = text.split_whitespace().collect();
    let [ppid, group, session, state, time, _day, month, date, clock, year, name, ..] = fields[..] else {
        return Err(io::ErrorKind::NotFound.into());
    };
    Ok(ProcStat {
        pid,
        ppid: ppid.parse().map_err(|_| io::ErrorKind::InvalidData)?,
        group: group.parse().unwrap_or(0),
        session: session.parse().unwrap_or(0),
        zombie: state.starts_with('Z'),
        start_ticks: fingerprint(&[month, date, clock, year]),
        cpu_ticks: fingerprint(&[time]),
        name: name.to_owned(),
    })
}

/// A number that is equal when the texts are; times are compared here, never subtracted.
fn fingerprint(texts: &[&str]) -> u64 {
    let mut hasher = blake3::Hasher::new();
    for text in texts {
        hasher.update(text.as_bytes()).update(b"\0");
    }
    let mut first = [0; 8];
    first.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    // Sums of a few of them must not overflow.
    u64::from_le_bytes(first) >> 16
}

/// Whether the process was started with `entry` in its environment.
pub fn environ_has(pid: u32, entry: &[u8]) -> bool {
    let entry = String::from_utf8_lossy(entry);
    ask("/bin/ps", &["-E", "-ww", "-o", "command=", "-p", &pid.to_string()])
        .is_ok_and(|text| text.split_whitespace().any(|word| word == entry))
}

/// The user a process runs as.
pub fn owner(pid: u32) -> io::Result<u32> {
    let text = ask("/bin/ps", &["-o", "uid=", "-p", &pid.to_string()])?;
    text.trim().parse().map_err(|_| io::ErrorKind::NotFound.into())
}

/// Not available to ordinary users.
pub fn io_bytes(_pid: u32) -> u64 {
    0
}

/// How long connections have been quiet: not available here.
pub fn quiet_ms(_pids: impl Iterator<Item = u32>) -> Option<u64> {
    None
}

fn ask(program: &str, arguments: &[&str]) -> io::Result<String> {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Processes of our user, counted like the system's limit on them; this counts all listed processes, which is no fewer.
pub fn tasks_of_user() -> u64 {
    pids().map_or(0, |pids| pids.len() as u64)
}
