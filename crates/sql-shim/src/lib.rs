//! The MySQL-protocol server of Untorn: wire protocol, accounts, variables, and SQL sessions over the engine.
// A connection's future is that many futures deep: connection, session, watch, executor, engine.
#![recursion_limit = "256"]

pub mod auth;
pub mod backup;
pub mod dashboard;
pub mod extension;
pub mod inspect;
pub mod log;
pub mod metrics;
#[cfg(feature = "object-storage")]
pub mod object_storage;
#[cfg(feature = "opensrv")]
pub mod opensrv;
pub mod options;
mod preflight;
mod private_file;
pub mod probe;
pub mod program;
pub mod restore;
pub mod server;
pub mod session;
pub mod session_interface;
mod signals;
pub mod statement_stats;
pub mod status;
pub mod tls;
pub mod variables;
pub mod wire;
