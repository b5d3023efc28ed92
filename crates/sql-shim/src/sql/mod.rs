//! SQL: from the bytes of a statement to calls on the engine.
//!
//! [`lexer`] and [`parser`] make a syntax tree of it, [`plan`] resolves names and chooses access paths,
//! [`exec`] runs the plan against the engine and hands rows to the sink. [`expr`] and [`value`] are what
//! conditions and outputs are computed with.

// Callbacks and pairs that are used once are spelled out where they are used.
#![allow(clippy::type_complexity)]

pub mod ast;
pub mod catalog_views;
pub mod exec;
pub mod expr;
pub mod lexer;
pub mod parser;
pub mod plan;
pub mod store;
pub mod value;
