//! Standard input and output as a transport. It skips whatever a confused client sends before its first request, where the
//! library would exit.

use rmcp::model::JsonRpcMessage;
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::io::{Stdin, Stdout};

use rekindle_engine::control::wire::LINE_LIMIT;

/// The transport.
pub(super) struct Patient {
    lines: AsyncRwTransport<RoleServer, Stdin, Stdout>,
    begun: bool,
}

impl Patient {
    /// On this process's streams. A line longer than a report may be is skipped.
    pub(super) fn on_stdio() -> Self {
        let (read, write) = rmcp::transport::stdio();
        Self { lines: AsyncRwTransport::new(read, write).with_max_line_length(LINE_LIMIT), begun: false }
    }
}

impl Transport<RoleServer> for Patient {
    type Error = std::io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.lines.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let message = self.lines.receive().await?;
            self.begun |= matches!(message, JsonRpcMessage::Request(_));
            if self.begun {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.lines.close().await
    }
}
