//! The release programs, the server and the crash campaign, built by one call of cargo: what both stand on is
//! compiled once, with one set of features, and both are linked at the same time.

use crate::command::{Attention, cargo_with, target_directory};
use anyhow::{Result, ensure};
use std::path::PathBuf;

/// A profile of `Cargo.toml`.
#[derive(Clone, Copy)]
pub enum Profile {
    /// What is shipped and measured. Linking is most of the build (`lto = "fat"`).
    Release,
    /// The same for the test command: not linked whole, and optimized as far as the engine goes.
    Quick,
}

impl Profile {
    /// Its name, and that of its directory.
    fn name(self) -> &'static str {
        match self {
            Profile::Release => "release",
            Profile::Quick => "quick",
        }
    }

    /// Builds the programs, with cargo's messages.
    pub fn build(self) -> Result<()> {
        self.build_with(Attention::Full)
    }

    /// Builds them beside something else: without messages, and with what processor time that leaves.
    pub fn build_beside(self) -> Result<()> {
        self.build_with(Attention::Beside)
    }

    fn build_with(self, attention: Attention) -> Result<()> {
        let packages = ["--package", "untorn-server", "--package", "untorn-torture"];
        let arguments = [&["build", "--profile", self.name(), "--bins"], &packages[..]].concat();
        cargo_with(attention, &arguments, &[])
    }

    /// The path of a program that was built.
    pub fn program(self, name: &str) -> Result<PathBuf> {
        let path = target_directory().join(self.name()).join(name);
        ensure!(path.exists(), "the build left no {}", path.display());
        Ok(path)
    }
}
