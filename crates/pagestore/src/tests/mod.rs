//! Tests of the pool that need to look inside the crate.

mod pool;
mod support;
