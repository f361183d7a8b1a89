//! The port: connections are accepted, counted, served and dropped when their peer stalls. `routes` decides what is sent
//! over them.

use std::future::Future;
use std::io::{Error, ErrorKind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Sleep;

use super::answer::sealed_text;
use super::room::Room;

/// Time limit for the head of a request, and for an idle connection.
const HEAD_WITHIN: Duration = Duration::from_secs(10);

/// Largest head of a request.
const HEAD_MAX: usize = 32 * 1024;

/// How long a peer may accept none of the data that is sent to it.
const STALL: Duration = Duration::from_secs(30);

/// Pause after a failed accept: most often there are no file descriptors left.
const TROUBLE: Duration = Duration::from_millis(200);

/// Accepts connections until it is dropped.
pub(super) async fn serve(listener: TcpListener, router: Router) {
    let room = Room::default();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(TROUBLE).await;
            continue;
        };
        let Some(place) = room.enter() else {
            turn_away(&stream);
            continue;
        };
        let (number, router) = (place.number(), router.clone().layer(Extension(place.known.clone())));
        let served = tokio::task::spawn(async move {
            let _place = place;
            // Sends small responses at once; if this fails, they are only slower.
            let _ = stream.set_nodelay(true);
            let io = TokioIo::new(Patient { stream, patience: STALL, stalled: None });
            let mut builder = http1::Builder::new();
            builder.timer(TokioTimer::new()).header_read_timeout(HEAD_WITHIN).max_buf_size(HEAD_MAX);
            // A peer that breaks off in the middle harms only itself.
            let _ = builder.serve_connection(io, TowerToHyperService::new(router)).await;
        });
        room.served(number, served.abort_handle());
    }
}

/// Responds that there is no room, if the peer accepts that at once.
fn turn_away(stream: &TcpStream) {
    let body = "{\"error\":\"too many connections\",\"hint\":\"close a page and try again\"}\n";
    let head = "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nconnection: close\r\n";
    let text = format!("{head}{}content-length: {}\r\n\r\n{body}", sealed_text(), body.len());
    let _ = stream.try_write(text.as_bytes());
}

/// A connection that fails when its peer accepts nothing for too long.
struct Patient {
    stream: TcpStream,
    patience: Duration,
    stalled: Option<Pin<Box<Sleep>>>,
}

impl Patient {
    fn judge<T>(&mut self, cx: &mut Context<'_>, written: Poll<Result<T, Error>>) -> Poll<Result<T, Error>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let patience = self.patience;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        ready!(stalled.as_mut().poll(cx));
        Poll::Ready(Err(ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Patient {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<Result<(), Error>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Patient {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<Result<usize, Error>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.judge(cx, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::io::Read;

    use super::*;

    /// More than any socket buffers.
    const MUCH: usize = 64 * 1024 * 1024;

    /// What the other end does with its connection; what it returns is held until the end.
    type Peer = fn(std::net::TcpStream) -> Option<std::net::TcpStream>;

    /// Writes a lot to a peer and returns how that ended.
    async fn write_to(peer: Peer) -> Result<usize, ErrorKind> {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let peer = std::thread::spawn(move || peer(std::net::TcpStream::connect(address).expect("a connection")));
        let (stream, _) = listener.accept().await.expect("a peer");
        let mut patient = Patient { stream, patience: Duration::from_millis(200), stalled: None };
        let (piece, mut sent) = (vec![7; 64 * 1024], 0);
        let ended = loop {
            if sent >= MUCH {
                break Ok(sent);
            }
            match poll_fn(|cx| Pin::new(&mut patient).poll_write(cx, &piece)).await {
                Ok(taken) => sent += taken,
                Err(error) => break Err(error.kind()),
            }
        };
        drop(patient);
        peer.join().expect("a peer");
        ended
    }

    fn block_on<T>(work: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(work)
    }

    #[test]
    fn a_peer_that_takes_nothing_is_given_up_and_one_that_does_is_not() {
        // Held open, and never read.
        assert_eq!(block_on(write_to(Some)), Err(ErrorKind::TimedOut));
        let reading = block_on(write_to(|mut stream| {
            let mut piece = vec![0; 1 << 20];
            while stream.read(&mut piece).is_ok_and(|read| read > 0) {}
            None
        }));
        assert!(reading.is_ok_and(|sent| sent >= MUCH));
    }
}
