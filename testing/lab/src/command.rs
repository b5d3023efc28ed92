//! Running programs, cargo among them, from the root of the repository.

use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

/// A program that works beside something else. It ends with its value, also after an error.
pub struct Background(pub Child);

impl Drop for Background {
    fn drop(&mut self) {
        // Both only fail when it is gone already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The root of the repository.
pub fn root() -> PathBuf {
    let place = Path::new(env!("CARGO_MANIFEST_DIR"));
    place.ancestors().nth(2).unwrap_or(place).to_path_buf()
}

/// Where cargo builds.
pub fn target_directory() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// How much a call of cargo may take and say.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Attention {
    /// All that there is.
    Full,
    /// What the work beside it leaves of the processors, and nothing but warnings and errors.
    Beside,
}

/// Runs cargo in the repository.
pub fn cargo(arguments: &[&str], environment: &[(&str, &str)]) -> Result<()> {
    cargo_with(Attention::Full, arguments, environment)
}

/// Runs cargo in the repository, beside something else or not.
pub fn cargo_with(attention: Attention, arguments: &[&str], environment: &[(&str, &str)]) -> Result<()> {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = match attention {
        Attention::Full => Command::new(program),
        Attention::Beside => {
            let mut nice = Command::new("nice");
            nice.args(["-n", "10"]).arg(program).arg("--quiet");
            nice
        }
    };
    // The cargo that runs this program tells it about its package. Build scripts look at the same variables,
    // and all that stands on them would be built again each time somebody comes by another way.
    for (name, _) in std::env::vars_os() {
        let told = name.to_str().is_some_and(|name| {
            ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_"]
                .iter()
                .any(|start| name.starts_with(start))
        });
        if told {
            command.env_remove(name);
        }
    }
    command.args(arguments).envs(environment.iter().copied()).current_dir(root());
    checked(&mut command)
}

/// Runs a command that must succeed; its output goes through.
pub fn checked(command: &mut Command) -> Result<()> {
    let name = format!("{command:?}");
    let status = command.status().with_context(|| format!("cannot run {name}"))?;
    if !status.success() {
        bail!("{name}: {status}");
    }
    Ok(())
}

/// Runs a command that must succeed and returns what it printed. What it printed is in the error otherwise.
pub fn captured(command: &mut Command) -> Result<String> {
    let name = format!("{command:?}");
    let output = command.output().with_context(|| format!("cannot run {name}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        bail!("{name}: {}\n{text}{errors}", output.status);
    }
    Ok(text)
}
