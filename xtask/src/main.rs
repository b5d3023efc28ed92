//! The project's own commands: `cargo xtask <command>`.
fn main() {}
