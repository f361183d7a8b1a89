//! A body that is sent as it is made: one piece at a time, and the next is made only when the last was taken.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Bytes, HttpBody};
use hyper::body::Frame;
use tokio::sync::mpsc;

/// The receiving end.
pub(super) struct Flow(pub mpsc::Receiver<Bytes>);

impl HttpBody for Flow {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(cx).map(|piece| piece.map(|bytes| Ok(Frame::data(bytes))))
    }
}
