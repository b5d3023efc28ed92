//! Clients that are gone while their statement runs. Clients that are merely silent (`wait_timeout`) are
//! ended by `registry.rs`.
//!
//! A connection whose statement is at work reads nothing, so nobody would hear of a client that hung up: its
//! locks and its read view would stay for as long as the statement lasts. The listener looks at the sockets
//! of statements that it has found at work twice; a client that has closed its side is a kill of its
//! connection, which the statement sees like any other.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use parking_lot::Mutex;
use sql::kill_switch::Kill;

use super::registry::{Connection, Registry};

/// How often the listener looks.
pub const LOOK: Duration = Duration::from_millis(20);

/// What the listener knows of a connection's client.
#[derive(Debug, Default)]
pub struct Attention {
    /// A handle of its own: whatever the connection does with its socket, this number is never another's.
    socket: Mutex<Option<OwnedFd>>,
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

    /// Whether the client has closed its side. It does not matter what it has sent before, a goodbye or the
    /// next command: that stays readable, and is left where it is.
    fn client_is_gone(&self) -> bool {
        let socket = self.socket.lock();
        let Some(socket) = &*socket else { return false };
        // Nothing else is asked for, so whatever is answered says that it is gone.
        let gone =
            PollFlags::from_bits_retain(nix::libc::POLLRDHUP) | PollFlags::POLLHUP | PollFlags::POLLERR;
        // What cannot be asked now (no memory for it, say) is asked again at the next look.
        poll(&mut [PollFd::new(socket.as_fd(), gone)], PollTimeout::ZERO).is_ok_and(|answers| answers > 0)
    }
}

/// While it lives the connection's socket is looked at, and open.
pub struct Attended(Arc<Connection>);

impl Attended {
    /// A handle of this connection's socket.
    pub fn new(connection: &Arc<Connection>, socket: OwnedFd) -> Attended {
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
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_client_that_hangs_up_during_a_statement_is_a_kill() {
        let registry = Registry::default();
        let Some(connection) = registry.enter(1, "localhost", 0, Status::default().thread()) else { return };
        let Ok((ours, theirs)) = UnixStream::pair() else { return };
        let attended = Attended::new(&connection, ours.into());
        connection.attention.set_working(true);
        look(&registry);
        look(&registry);
        assert_eq!(connection.kill_level(), Kill::No, "the client is there");
        // It says goodbye and does not wait for the end.
        let said = (&theirs).write_all(&[1, 0, 0, 0, 1]);
        assert!(said.is_ok());
        look(&registry);
        assert_eq!(connection.kill_level(), Kill::No, "what was sent ahead is no end");
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
