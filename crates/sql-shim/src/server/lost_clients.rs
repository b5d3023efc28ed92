//! Clients that are gone while their statement runs.
//!
//! A connection whose statement is at work reads nothing, so nobody would hear of a client that hung up: its locks and its read
//! view would stay for as long as the statement lasts. The listener looks at the sockets of statements that it has found at
//! work twice; a client that has closed its side is a kill of its connection, which the statement sees like any other.

use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv};
use parking_lot::Mutex;

use super::registry::{Connection, Kill, Registry};

/// How often the listener looks.
pub const LOOK: Duration = Duration::from_millis(20);

/// What the listener knows of a connection's client.
#[derive(Debug, Default)]
pub struct Attention {
    socket: Mutex<Option<RawFd>>,
    /// A statement is at work: 0 no, 1 yes, 2 it was already when the listener looked last.
    working: AtomicU8,
}

impl Attention {
    /// A statement begins or ends.
    #[inline]
    pub fn set_working(&self, working: bool) {
        self.working.store(u8::from(working), Ordering::Relaxed);
    }

    fn has_worked_for_a_while(&self) -> bool {
        let noted = self.working.compare_exchange(1, 2, Ordering::Relaxed, Ordering::Relaxed);
        noted == Err(2)
    }

    /// Whether there is nothing to read any more. What a client has sent ahead is left where it is.
    fn client_is_gone(&self) -> bool {
        // The socket stays open while its place is locked.
        let socket = self.socket.lock();
        let Some(socket) = *socket else { return false };
        match recv(socket, &mut [0], MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT) {
            Ok(bytes) => bytes == 0,
            Err(error) => !matches!(error, Errno::EAGAIN | Errno::EINTR),
        }
    }
}

/// While it lives the connection's socket is looked at. It must be dropped before the socket is closed: a number that is used
/// again would be another's socket.
pub struct Attended(Arc<Connection>);

impl Attended {
    /// The socket of this connection.
    pub fn new(connection: &Arc<Connection>, socket: RawFd) -> Attended {
        *connection.attention.socket.lock() = Some(socket);
        Attended(connection.clone())
    }
}

impl Drop for Attended {
    fn drop(&mut self) {
        *self.0.attention.socket.lock() = None;
    }
}

/// Kills the connections whose client is gone.
pub fn look(connections: &Registry) {
    connections.for_each(|connection| {
        if connection.attention.has_worked_for_a_while() && connection.attention.client_is_gone() {
            connection.kill(Kill::Connection);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::Status;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_client_that_hangs_up_during_a_statement_is_a_kill() {
        let registry = Registry::default();
        let Some(connection) = registry.enter(1, "localhost", 0, Status::default().thread()) else { return };
        let Ok((ours, theirs)) = UnixStream::pair() else { return };
        let attended = Attended::new(&connection, ours.as_raw_fd());
        connection.attention.set_working(true);
        look(&registry);
        look(&registry);
        assert_eq!(connection.kill_level(), Kill::No, "the client is there");
        drop(theirs);
        connection.attention.set_working(false);
        look(&registry);
        assert_eq!(connection.kill_level(), Kill::No, "no statement is at work: the connection will read");
        connection.attention.set_working(true);
        look(&registry);
        assert_eq!(connection.kill_level(), Kill::No, "a short statement is not looked at");
        look(&registry);
        assert_eq!(connection.kill_level(), Kill::Connection);
        drop(attended);
        assert!(connection.attention.socket.lock().is_none());
    }
}
