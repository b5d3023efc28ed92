//! The system packages the end-to-end tests need: sysbench, a stock MariaDB and its clients; and the tools of
//! the file systems that the tests of the probe mount; a browser for the dashboard; Prometheus
//! and its exporter.
//!
//! Missing ones are installed when that is possible (Debian, root). Otherwise the step fails and says what to
//! install: a test that is skipped where its tools are missing tests nothing.

use crate::command::checked;
use anyhow::{Result, bail};
use std::path::Path;
use std::process::Command;

/// Program, and the Debian package it comes from.
const NEEDED: [(&str, &str); 17] = [
    ("sysbench", "sysbench"),
    ("mariadb", "mariadb-client"),
    ("mariadb-dump", "mariadb-client"),
    ("mariadbd", "mariadb-server"),
    ("mariadb-install-db", "mariadb-server"),
    ("innochecksum", "mariadb-server"),
    ("setsid", "util-linux"),
    ("losetup", "mount"),
    ("chattr", "e2fsprogs"),
    ("mkfs.ext4", "e2fsprogs"),
    ("mkfs.xfs", "xfsprogs"),
    ("xfs_io", "xfsprogs"),
    ("mkfs.btrfs", "btrfs-progs"),
    ("chromium", "chromium"),
    ("prometheus-mysqld-exporter", "prometheus-mysqld-exporter"),
    ("prometheus", "prometheus"),
    ("promtool", "prometheus"),
];

const ADMINISTRATION: [&str; 2] = ["/usr/sbin", "/sbin"];

/// Installs what is missing.
pub fn install_missing() -> Result<()> {
    let missing = NEEDED.iter().filter(|(program, _)| !installed(program));
    let mut packages: Vec<&str> = missing.map(|(_, package)| *package).collect();
    packages.dedup();
    install(&packages)
}

/// Installs packages that were found missing.
pub fn install(packages: &[&str]) -> Result<()> {
    if packages.is_empty() {
        return Ok(());
    }
    if !nix::unistd::geteuid().is_root() || !installed("apt-get") {
        bail!("these packages are needed (by Debian's names): {}", packages.join(", "));
    }
    println!("installing {}", packages.join(", "));
    let apt = || {
        let mut command = Command::new("apt-get");
        // Another apt on a machine that has just started ends in a minute or two.
        command.env("DEBIAN_FRONTEND", "noninteractive").args(["-o", "DPkg::Lock::Timeout=300"]);
        command
    };
    checked(apt().args(["update", "-qq"]))?;
    checked(apt().args(["install", "-y", "-qq", "--no-install-recommends"]).args(packages))
}

/// A program that may lie in a directory only administrators have in their path.
pub fn administration(program: &str) -> Command {
    let known = ADMINISTRATION.iter().map(|directory| Path::new(directory).join(program));
    Command::new(known.into_iter().find(|path| path.exists()).unwrap_or_else(|| program.into()))
}

fn installed(program: &str) -> bool {
    let path = std::env::var("PATH").unwrap_or_default();
    path.split(':').chain(ADMINISTRATION).any(|directory| Path::new(directory).join(program).exists())
}
