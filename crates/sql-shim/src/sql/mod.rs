//! SQL: from the bytes of a statement to calls on the engine.

pub mod ast;
pub mod lexer;
pub mod parser;
pub mod value;
