//! Tests of the pool that need to look inside the crate.

mod crash;
mod pool;
mod support;
