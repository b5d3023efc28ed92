//! Directories that must not be opened: of a newer version, or in use. Nothing in them is changed.

use super::refuses_to_start;
use crate::server_process::{Program, ServerProcess};
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Every file below a directory and what is in it.
fn contents(data: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>> {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(data)? {
        let path = entry?.path();
        if path.is_dir() {
            files.append(&mut contents(&path)?);
        } else if path.is_file() {
            let bytes = std::fs::read(&path)?;
            files.insert(path, bytes);
        }
    }
    Ok(files)
}

pub fn newer_version(program: &Program, place: &Path, _seed: u64) -> Result<()> {
    let server = ServerProcess::start(program, place, &[])?;
    server.feed("", "CREATE DATABASE shop; CREATE TABLE shop.item (id INT PRIMARY KEY);")?;
    let data = server.data.clone();
    server.stop()?;
    let catalog = data.join("untorn.catalog");
    let bytes = std::fs::read(&catalog)?;
    let mut newer = bytes.clone();
    let format = b"{\"format\":2,";
    ensure!(newer.starts_with(format), "the catalog does not begin with its format");
    newer[format.len() - 2] = b'9';
    std::fs::write(&catalog, newer)?;
    let before = contents(&data)?;
    let told = refuses_to_start(program, place, &data)?;
    ensure!(told.contains("format 9") && told.contains("newer version"), "it says:\n{told}");
    ensure!(contents(&data)? == before, "the refused start changed files");
    std::fs::write(&catalog, bytes)?;
    ServerProcess::start(program, place, &[]).context("with its own format again")?.stop()?;
    println!("newer version: {}", told.lines().last().unwrap_or_default());
    Ok(())
}

pub fn second_process(program: &Program, place: &Path, _seed: u64) -> Result<()> {
    let server = ServerProcess::start(program, place, &[])?;
    server.feed("", "CREATE DATABASE shop; CREATE TABLE shop.item (id INT PRIMARY KEY);")?;
    let other = place.join("other");
    std::fs::create_dir(&other)?;
    let told = refuses_to_start(program, &other, &server.data)?;
    ensure!(told.contains("in use by another process"), "it says:\n{told}");
    server.feed("shop", "INSERT INTO item VALUES (1);")?;
    server.stop()?;
    // The lock goes with the process, however that ended.
    let mut server = ServerProcess::start(program, place, &[])?;
    server.kill();
    let server = ServerProcess::start(program, place, &[]).context("after a kill")?;
    ensure!(server.ask("shop", "SELECT COUNT(*) FROM item")? == "1", "the row is lost");
    server.stop()?;
    println!("second process: {}", told.lines().last().unwrap_or_default());
    Ok(())
}
