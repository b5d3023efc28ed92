//! The server around the sessions: shared state, connections, runtimes.

pub mod registry;
