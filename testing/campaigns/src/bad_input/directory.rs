//! Directories that must not be opened: of a newer version, or in use. Nothing in them is changed.

use super::refuses_to_start;
use anyhow::{Context, Result, ensure};
use lab::server_process::{Program, ServerProcess};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Every file below a directory and what is in it, but for the note of who has it locked.
fn contents(data: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>> {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(data)? {
        let path = entry?.path();
        if path.is_dir() {
            files.append(&mut contents(&path)?);
        } else if path.is_file() && !path.ends_with("untorn.lock") {
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
    // Written in front of the digits of the format of today: a newer one, whatever it is.
    let format = b"{\"format\":";
    ensure!(bytes.starts_with(format), "the catalog does not begin with its format");
    let mut newer = bytes.clone();
    newer.splice(format.len()..format.len(), *b"90");
    std::fs::write(&catalog, newer)?;
    let before = contents(&data)?;
    let told = refuses_to_start(program, place, &data)?;
    ensure!(told.contains("format 90") && told.contains("newer version"), "it says:\n{told}");
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
    ensure!(told.contains("is in use by process "), "it says:\n{told}");
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

/// The file of accounts restored without, or removed: nobody becomes root by it.
pub fn lost_accounts(program: &Program, place: &Path, _seed: u64) -> Result<()> {
    let server = ServerProcess::start(program, place, &[])?;
    server.feed("", "CREATE DATABASE shop; CREATE TABLE shop.item (id INT PRIMARY KEY); INSERT INTO shop.item VALUES (1);")?;
    let data = server.data.clone();
    server.stop()?;
    let accounts = data.join("untorn-accounts.json");
    std::fs::remove_file(&accounts)?;
    let told = refuses_to_start(program, place, &data)?;
    ensure!(
        told.contains("untorn-accounts.json") && told.contains("--untorn-init-accounts"),
        "it says:\n{told}"
    );
    ensure!(!accounts.exists(), "the refused start made an account");
    let server =
        ServerProcess::start(program, place, &["--untorn-init-accounts"]).context("beginning again")?;
    ensure!(server.ask("shop", "SELECT COUNT(*) FROM item")? == "1", "the row is lost");
    server.stop()?;
    ServerProcess::start(program, place, &[]).context("with the new file")?.stop()?;
    println!("lost accounts: {}", told.lines().last().unwrap_or_default());
    Ok(())
}

/// What SQL may name lies where the start said, and what is there and not ours is not touched.
pub fn files_of_others(program: &Program, place: &Path, _seed: u64) -> Result<()> {
    let fast = place.join("fast");
    std::fs::create_dir(&fast)?;
    let named = fast.join("named-by-mistake");
    std::fs::write(&named, vec![b'x'; 100_000])?;
    let extension = format!("--untorn-bpe-file={}", named.display());
    let server = ServerProcess::start(program, place, &[&extension])?;
    server.feed("", "CREATE DATABASE shop; CREATE TABLE shop.item (id INT PRIMARY KEY); INSERT INTO shop.item VALUES (1);")?;
    let accounts = server.data.join("untorn-accounts.json");
    let before = std::fs::read(&accounts)?;
    for file in ["shop/item.ibd", "untorn-accounts.json", "untorn.catalog", "/etc/passwd", "../outside"] {
        let told = server.feed("", &format!("SET GLOBAL untorn_bpe_file = '{file}';"));
        let told = told.err().with_context(|| format!("{file} may be named"))?;
        ensure!(format!("{told:#}").contains("1231"), "{file}: {told:#}");
    }
    ensure!(std::fs::read(&accounts)? == before, "the accounts have changed");
    server.feed("", "SET GLOBAL untorn_bpe = OFF; SET GLOBAL untorn_bpe = ON;")?;
    server.stop()?;
    let server = ServerProcess::start(program, place, &[])?;
    ensure!(server.ask("shop", "SELECT COUNT(*) FROM item")? == "1", "the row is lost");
    server.stop()?;
    ensure!(std::fs::read(&named)? == vec![b'x'; 100_000], "the file named at start was written into");
    println!("files of others: left as they are");
    Ok(())
}
