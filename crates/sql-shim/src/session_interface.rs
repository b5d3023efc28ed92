//! What the wire needs of a SQL session.
//!
//! The connection loop is generic over [`SessionFactory`]: the real one holds the open database (the plan
//! cache is each session's), tests bring their own. A session belongs to one connection and one thread, so
//! nothing here has to be `Send`.

use std::future::Future;
use std::io;
use std::sync::Arc;

use sql::result::{Date, DateTime, ResultColumns, ResultSink, SqlError, Time};

use crate::server::registry::Connection;

/// A parameter of a prepared statement as the client sent it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Param<'a> {
    /// SQL NULL.
    Null,
    /// Any signed integer type.
    Int(i64),
    /// Any unsigned integer type.
    UInt(u64),
    /// FLOAT.
    Float(f32),
    /// DOUBLE.
    Double(f64),
    /// DECIMAL as its text.
    Decimal(&'a [u8]),
    /// Text, BLOB, ENUM, JSON and long data; `binary` when the client bound a BLOB type.
    Bytes {
        /// The value.
        value: &'a [u8],
        /// Bound as a BLOB: collation binary.
        binary: bool,
    },
    /// DATE.
    Date(Date),
    /// DATETIME or TIMESTAMP.
    DateTime(DateTime),
    /// TIME.
    Time(Time),
}

/// A prepared statement: what the wire must know of it, and the session's own plan.
#[derive(Debug)]
pub struct Prepared<P> {
    /// The text as prepared (for SHOW PROCESSLIST).
    pub sql: Arc<[u8]>,
    /// One definition for each `?`.
    pub params: Arc<ResultColumns>,
    /// The result's columns, empty for a statement without rows.
    pub columns: Arc<ResultColumns>,
    /// The session's.
    pub plan: P,
}

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
    /// Bits of [`sql::result::status_flag`] as of now.
    fn status_flags(&self) -> u16;
    /// Seconds a silent client keeps its connection (`wait_timeout`, or `interactive_timeout` of an
    /// interactive one).
    fn idle_timeout_seconds(&self) -> u64 {
        28_800
    }
    /// COM_CHANGE_USER succeeded, after [`reset`](Self::reset): the connection names another account now.
    fn user_changed(&mut self) {}
    /// What has changed of the session since the last answer, as an OK carries it to a client that wants it.
    fn take_changes(&mut self) -> Option<Box<[u8]>> {
        None
    }
    /// Warnings of the last statement.
    fn warnings(&self) -> u16 {
        0
    }
}
