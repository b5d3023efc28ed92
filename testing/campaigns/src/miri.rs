//! `cargo xtask miri`: the unit tests of what is `unsafe`, interpreted by Miri, which sees reads of memory
//! that is not there any more, aliased references, data races and leaks.
//!
//! Only what needs no system call that Miri does not know: no io_uring, no O_DIRECT. The latches' and the
//! pins' interleavings are loom's, in the test command. Miri comes with a nightly compiler: `rustup toolchain
//! install nightly --component miri,rust-src`.

use anyhow::{Context, Result};
use lab::command::{checked, root, target_directory};
use std::process::Command;

/// Crates with `unsafe` in them, and the modules whose tests can be interpreted.
const TESTS: [(&str, &[&str]); 2] = [
    ("untorn-disk", &["buffer::"]),
    ("untorn-pagestore", &["pool::frame::", "pool::page_table::", "pool::latch::"]),
];

/// Runs them.
pub fn run() -> Result<()> {
    for (package, modules) in TESTS {
        println!("{package}: {}", modules.join(" "));
        let mut command = Command::new("cargo");
        // The compiler that runs this program is said in the environment of its children, and would be taken.
        for variable in ["RUSTUP_TOOLCHAIN", "CARGO", "RUSTC"] {
            command.env_remove(variable);
        }
        command
            .args(["+nightly", "miri", "test", "--package", package, "--lib", "--"])
            .args(modules)
            .env("CARGO_TARGET_DIR", target_directory().join("miri"))
            // Time and random numbers are the machine's.
            .env("MIRIFLAGS", "-Zmiri-disable-isolation")
            .current_dir(root());
        checked(&mut command).context(
            "is Miri installed? `rustup toolchain install nightly --component miri --component rust-src`",
        )?;
    }
    Ok(())
}
