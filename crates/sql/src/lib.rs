//! SQL over the storage engine Untorn: from the bytes of a statement to calls on the engine.
//!
//! [`lexer`] and [`parser`] make a syntax tree of it, [`plan`] resolves names and chooses access paths,
//! [`exec`] runs the plan against the engine and hands rows to a sink ([`result`]). [`expr`] and [`value`]
//! are what conditions and outputs are computed with, [`catalog_views`] is `information_schema`.
//!
//! All of it happens in a [`context`]: clock, zone, mode, warnings, memory, time. There is no session here,
//! no socket and no runtime. What a server knows beyond that (accounts, connections, the table of system
//! variables) is asked for through [`facts`].

// Callbacks and pairs that are used once are spelled out where they are used.
#![allow(clippy::type_complexity)]

pub mod ast;
pub mod background_drop;
pub mod catalog_views;
pub mod column_types;
pub mod context;
pub mod digest;
pub mod errors;
mod evaluation;
pub mod exec;
pub mod expr;
pub mod facts;
pub mod failure;
pub mod handler_counts;
mod json_column;
pub mod kill_switch;
pub mod latency_buckets;
pub mod lexer;
pub mod memory;
pub mod named_locks;
pub mod parameters;
pub mod parser;
pub mod plan;
pub mod privilege;
mod privilege_checks;
pub mod random_sequences;
pub mod result;
pub mod sql_mode;
pub mod stored_values;
pub mod table_checksum;
pub mod temporary;
pub mod time_names;
pub mod value;
