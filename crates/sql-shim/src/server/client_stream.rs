//! How a statement writes to its client, and takes a file from it.
//!
//! Both wait as long as the client lets them: while they do, the connection has a deadline.

use std::io;
use std::pin::pin;

use super::registry::Connection;
use super::shared::Server;
use super::transport::Socket;
use crate::status::Counter;
use crate::wire::input::PacketInput;
use crate::wire::output::PacketOutput;
use crate::wire::reply::Flush;

/// The way to the socket while a command is answered; between commands it is `Link`, in `connection.rs`.
/// Given up when the client does not take the bytes within `net_write_timeout`, or the connection is killed.
/// A session that waits for its client holds locks and a read view.
pub(super) struct ClientStream<'a> {
    pub(super) socket: &'a mut Socket,
    pub(super) connection: &'a Connection,
    pub(super) server: &'a Server,
    /// Where the client may be asked for a file; nobody looks at a packet of it then.
    pub(super) files: Option<&'a mut PacketInput>,
}

impl Flush for ClientStream<'_> {
    async fn flush(&mut self, output: &mut PacketOutput) -> io::Result<()> {
        if output.is_empty() {
            return Ok(());
        }
        let before = self.connection.deadline();
        self.connection.shorten_deadline(self.server);
        // A long reply is compressed, and written, in parts: each has its time.
        let taken = || {
            self.connection.set_deadline(before);
            self.connection.shorten_deadline(self.server);
        };
        let outcome = self.connection.unless_killed(pin!(self.socket.flush(output, taken))).await;
        self.connection.counters.add(Counter::BytesSent, output.take_sent());
        self.connection.set_deadline(before);
        outcome.unwrap_or_else(|| Err(io::ErrorKind::ConnectionAborted.into()))
    }

    fn has_files(&self) -> bool {
        self.files.is_some()
    }

    async fn receive(&mut self, output: &mut PacketOutput, into: &mut Vec<u8>) -> io::Result<usize> {
        let Some(input) = &mut self.files else { return Ok(0) };
        let variables = &self.server.variables;
        let (limit, timeout) = (variables.packet_bytes_max(), variables.net_read_timeout_ms());
        let broken = |_| io::Error::from(io::ErrorKind::InvalidData);
        input.expect_sequence(output.sequence());
        while !input.advance(limit).map_err(broken)? {
            if input.is_unpacking() {
                tokio::task::yield_now().await;
                continue;
            }
            self.connection.set_deadline(self.server.clock.now_ms() + timeout);
            let buffer = input.lend();
            // A kill of the statement waits for what the client sends next: what a read that is given up has
            // taken would be missing from the stream.
            let done = self.connection.unless_killed(pin!(self.socket.read(buffer))).await;
            self.connection.set_deadline(0);
            let Some((count, buffer)) = done else { return Err(io::ErrorKind::ConnectionAborted.into()) };
            let count = count?;
            input.restore(buffer, count);
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let payload = input.payload();
        let length = payload.len();
        into.extend_from_slice(payload);
        input.release();
        output.set_sequence(input.reply_sequence());
        Ok(length)
    }
}
