//! A TCP proxy in front of the database that cuts a connection after a number of bytes in one direction: above all inside the
//! answer to a commit.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What happens to the bytes that come next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    None,
    /// The connection is cut after that many more bytes in one direction.
    Cut {
        to_server: bool,
        after: usize,
    },
    /// After that many more bytes in one direction nothing comes through any more, and nobody is told.
    Stall {
        to_server: bool,
        after: usize,
    },
}

struct Shared {
    fault: Mutex<Fault>,
    refuse: AtomicBool,
    cuts: AtomicUsize,
}

pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
}

impl Proxy {
    /// Starts a proxy for a port of loopback. Its threads end with the test's process.
    pub fn start(server: u16) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port of loopback");
        let port = listener.local_addr().expect("its address").port();
        let shared = Arc::new(Shared {
            fault: Mutex::new(Fault::None),
            refuse: AtomicBool::new(false),
            cuts: AtomicUsize::new(0),
        });
        let for_thread = Arc::clone(&shared);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if for_thread.refuse.load(Ordering::SeqCst) {
                    continue;
                }
                let Ok(upstream) = TcpStream::connect(("127.0.0.1", server)) else { continue };
                for (from, to, to_server) in [(&client, &upstream, true), (&upstream, &client, false)] {
                    let (from, to) = (from.try_clone().expect("a socket"), to.try_clone().expect("a socket"));
                    let shared = Arc::clone(&for_thread);
                    std::thread::spawn(move || pump(from, to, to_server, &shared));
                }
            }
        });
        Proxy { port, shared }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Sets what happens to the bytes that come next, on whichever connection they come.
    pub fn next(&self, fault: Fault) {
        *self.shared.fault.lock().unwrap_or_else(PoisonError::into_inner) = fault;
    }

    /// Refuses every new connection from now on, or no longer.
    pub fn refuse(&self, refuse: bool) {
        self.shared.refuse.store(refuse, Ordering::SeqCst);
    }

    /// How many connections were cut.
    pub fn cuts(&self) -> usize {
        self.shared.cuts.load(Ordering::SeqCst)
    }
}

fn pump(mut from: TcpStream, mut to: TcpStream, to_server: bool, shared: &Shared) {
    let mut bytes = [0; 16 * 1024];
    loop {
        let read = from.read(&mut bytes).unwrap_or(0);
        let (passed, end) = passing(shared, to_server, read);
        let failed = read == 0 || to.write_all(&bytes[..passed]).is_err();
        if end != End::None {
            shared.cuts.fetch_add(1, Ordering::SeqCst);
        }
        if end == End::Stalled {
            // Whatever else comes is swallowed, until one side gives the connection up.
            while from.read(&mut bytes).is_ok_and(|read| read > 0) {}
        }
        if failed || end != End::None {
            // Either side may be gone already.
            let _ = from.shutdown(Shutdown::Both);
            let _ = to.shutdown(Shutdown::Both);
            return;
        }
    }
}

/// How a connection ends behind the bytes that pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    None,
    Cut,
    Stalled,
}

/// How many of the bytes that were read pass, and how the connection ends behind them. A fault happens once.
fn passing(shared: &Shared, to_server: bool, read: usize) -> (usize, End) {
    let mut fault = shared.fault.lock().unwrap_or_else(PoisonError::into_inner);
    let (after, end) = match *fault {
        Fault::Cut { to_server: direction, after } if direction == to_server => (after, End::Cut),
        Fault::Stall { to_server: direction, after } if direction == to_server => (after, End::Stalled),
        _ => return (read, End::None),
    };
    if after <= read && read > 0 {
        *fault = Fault::None;
        return (after, end);
    }
    let after = after - read;
    *fault = if end == End::Cut { Fault::Cut { to_server, after } } else { Fault::Stall { to_server, after } };
    (read, End::None)
}
