//! The release programs, the server and the crash campaign, built by one call of cargo: what both stand on is
//! compiled once, with one set of features, and both are linked at the same time. Linking a program is most
//! of it (`lto = "fat"`) and keeps one processor busy.

use crate::command::{Attention, cargo, cargo_with, target_directory};
use anyhow::{Result, ensure};
use std::path::PathBuf;

const BUILD: [&str; 7] =
    ["build", "--release", "--bins", "--package", "untorn-server", "--package", "untorn-torture"];

/// Builds them, with cargo's messages.
pub fn build() -> Result<()> {
    cargo(&BUILD, &[])
}

/// Builds them beside something else: without messages, and with what processor time that leaves.
pub fn build_beside() -> Result<()> {
    cargo_with(Attention::Beside, &BUILD, &[])
}

/// The path of a program that was built.
pub fn program(name: &str) -> Result<PathBuf> {
    let path = target_directory().join("release").join(name);
    ensure!(path.exists(), "the build left no {}", path.display());
    Ok(path)
}
