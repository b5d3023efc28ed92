//! What the wire needs of a SQL session.
//!
//! The connection loop is generic over [`SessionFactory`]: the real one holds the open database and the plan
//! cache, the measuring one answers with canned rows, tests bring their own. A session belongs to one
//! connection and one thread, so nothing here has to be `Send`.

use std::future::Future;
use std::io;
use std::sync::Arc;

use crate::result::{Param, Prepared, ResultColumns, ResultSink, SqlError};
use crate::server::registry::Connection;

/// Makes the session of a connection after it has authenticated.
pub trait SessionFactory: Send + Sync + 'static {
    /// The session made.
    type Session: SessionService + 'static;
    /// A fresh session. `connection` knows the account, the client flags and the kill switch.
    fn open(&self, connection: &Arc<Connection>) -> Self::Session;
}

/// One session. Every answer goes to the sink; the `io::Error` that comes back is the sink's (the client is
/// gone).
pub trait SessionService {
    /// The session's side of a prepared statement.
    type Plan: 'static;

    /// COM_QUERY; `sql` may be several statements when the client may send such.
    fn query(&mut self, sql: &[u8], out: &mut impl ResultSink) -> impl Future<Output = io::Result<()>>;
    /// COM_STMT_PREPARE.
    fn prepare(&mut self, sql: &[u8]) -> impl Future<Output = Result<Prepared<Self::Plan>, SqlError>>;
    /// COM_STMT_EXECUTE; `params` has as many entries as the statement has `?`.
    fn execute(
        &mut self,
        statement: &mut Prepared<Self::Plan>,
        params: &[Param<'_>],
        out: &mut impl ResultSink,
    ) -> impl Future<Output = io::Result<()>>;
    /// COM_INIT_DB, and the database named in the handshake. The session also tells the connection
    /// ([`Connection::set_database`]).
    fn change_database(&mut self, name: &[u8]) -> impl Future<Output = Result<(), SqlError>>;
    /// COM_FIELD_LIST.
    fn field_list(
        &mut self,
        table: &[u8],
        pattern: &[u8],
    ) -> impl Future<Output = Result<Arc<ResultColumns>, SqlError>>;
    /// COM_RESET_CONNECTION and the first half of COM_CHANGE_USER: rolls back, unlocks, drops temporary
    /// tables, user variables and session settings.
    fn reset(&mut self) -> impl Future<Output = ()>;
    /// The connection ends: rolls back. Called exactly once, also after errors.
    fn close(&mut self) -> impl Future<Output = ()>;
    /// Bits of [`crate::result::status_flag`] as of now.
    fn status_flags(&self) -> u16;
    /// Seconds a silent client keeps its connection (`wait_timeout`, or `interactive_timeout` of an
    /// interactive one).
    fn idle_timeout_seconds(&self) -> u64 {
        28_800
    }
    /// COM_CHANGE_USER succeeded, after [`reset`](Self::reset): the connection names another account now.
    fn user_changed(&mut self) {}
    /// Warnings of the last statement.
    fn warnings(&self) -> u16 {
        0
    }
}
