//! The server around the sessions: shared state (`shared.rs`), connections, runtimes.
//!
//! ```text
//!   listener (one thread) --- accepted socket ---> worker thread with the fewest connections
//!   worker thread: one single-threaded runtime (io_uring, or epoll where that is refused)
//!       connection task = login, then { read command, session, write reply } until it ends
//! ```
//!
//! A connection stays on its worker for life, so sessions need no locks and no `Send`. Engine futures are
//! awaited on these threads and may be woken from any other.

mod client_stream;
pub mod clock;
pub mod connection;
pub mod files;
pub(crate) mod listener;
pub mod login;
mod long_waits;
pub mod lost_clients;
pub mod panics;
pub mod prepared_statements;
pub mod read_lock;
pub mod registry;
pub mod runtime;
pub mod shared;
pub mod transport;
pub mod waits;
