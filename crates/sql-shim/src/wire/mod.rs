//! The MySQL client/server protocol as pure functions: bytes in → command, reply → bytes out.
//!
//! Nothing here does I/O, waits or knows a socket, so golden tests and fuzzers drive it directly.
//!
//! ```text
//!   socket bytes -> input::PacketInput -> command::decode -> session
//!   session -> reply::Reply (a ResultSink) -> output::PacketOutput -> socket bytes
//! ```
//!
//! Compressed packets (`compression.rs`) are opened and made inside the two.
//!
//! Everything read from a client goes through [`payload_reader::PayloadReader`], whose every step is checked:
//! a malformed packet is an error value, never a panic and never a read past the packet. Packet layouts are
//! those of the MySQL client/server protocol documentation (protocol 41).

pub mod capability;
pub mod command;
pub mod compression;
pub mod handshake;
pub mod input;
pub mod number_text;
pub mod output;
mod packed_input;
mod packed_output;
pub mod params;
pub mod payload_reader;
mod query_attributes;
pub mod reply;
pub mod response_packets;
pub mod temporal;
