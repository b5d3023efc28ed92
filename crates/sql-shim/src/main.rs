//! The `untorn` program.
fn main() {}
