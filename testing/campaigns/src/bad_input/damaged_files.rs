//! Bytes changed while the server was stopped: in a page of a table, and anywhere in the data directory.

use super::{number, refused};
use anyhow::{Context, Result, ensure};
use disk::Random;
use lab::command::captured;
use lab::server_process::{Program, ServerProcess, status_number};
use mysql::Error;
use mysql::prelude::Queryable;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The page size of the servers here.
pub const INNODB_PAGE: usize = 16384;
/// Where an index page has its level.
const PAGE_LEVEL: usize = page::HEADER_LEN + 26;

/// The numbers of the leaf pages of all indexes in the bytes of a tablespace.
pub fn index_leaves(tablespace: &[u8]) -> Vec<usize> {
    let pages = tablespace.chunks_exact(INNODB_PAGE).enumerate();
    let leaves = pages.filter(|(_, page)| {
        page::page_type(page) == page::kind::INDEX && page[PAGE_LEVEL..PAGE_LEVEL + 2] == [0, 0]
    });
    leaves.map(|(number, _)| number).collect()
}

fn fill(server: &ServerProcess) -> Result<()> {
    let mut sql = String::from(
        "CREATE DATABASE shop; USE shop;
         CREATE TABLE good (id INT PRIMARY KEY, n INT); INSERT INTO good VALUES (1, 1);
         CREATE TABLE item (id INT PRIMARY KEY, k INT, body VARCHAR(4000), KEY by_k (k));
         CREATE TABLE header (id INT PRIMARY KEY); INSERT INTO header VALUES (1);\n",
    );
    for id in 0..300 {
        sql += &format!("INSERT INTO item VALUES ({id}, {}, '{}');\n", id % 50, "text ".repeat(400));
    }
    server.feed("", &sql)
}

fn damage(file: &Path, offset: usize, bytes: &[u8]) -> Result<()> {
    let file = File::options().read(true).write(true).open(file)?;
    let mut old = vec![0; bytes.len()];
    file.read_exact_at(&mut old, offset as u64)?;
    let new: Vec<u8> = old.iter().zip(bytes).map(|(old, change)| old ^ change).collect();
    file.write_all_at(&new, offset as u64)?;
    Ok(())
}

pub fn damaged_page(program: &Program, place: &Path, _seed: u64) -> Result<()> {
    let server = ServerProcess::start(program, place, &[])?;
    fill(&server)?;
    let data = server.data.clone();
    server.stop()?;
    let file = data.join("shop/item.ibd");
    let leaves = index_leaves(&std::fs::read(&file)?);
    let page = *leaves.get(leaves.len() / 2).context("no leaf page")?;
    damage(&file, page * INNODB_PAGE + 9000, &[0xff, 0x55])?;
    damage(&data.join("shop/header.ibd"), 50, &[0x01])?;

    let server = ServerProcess::start(program, place, &[])?;
    let mut connection = server.connect(Some("shop"))?;
    let error = refused(&mut connection, "SELECT SUM(LENGTH(body)) FROM item FORCE INDEX (PRIMARY)")?;
    let names = |what: &str| error.message.contains(what);
    ensure!(names("item") && names(&page.to_string()), "neither file nor page {page}: {error}");
    println!("damaged page: {error}");
    // The page is not of use for a change either, and nothing else is touched.
    let verdict: Vec<(String, String, String, String)> = connection.query("CHECK TABLE item")?;
    ensure!(verdict.last().is_some_and(|last| last.3 != "OK"), "CHECK TABLE finds nothing: {verdict:?}");
    ensure!(number(&mut connection, "SELECT COUNT(*) FROM item WHERE id < 2")? == 2, "rows of sound pages");
    connection.query_drop("UPDATE good SET n = n + 1").context("changes of another table")?;
    ensure!(status_number(&mut connection, "Untorn_corrupt_pages")? > 0, "the damaged page is not counted");
    // Page 0, which has the tablespace's own bookkeeping: rows may be read without it.
    let verdict = match connection.query::<(String, String, String, String), _>("CHECK TABLE header") {
        Ok(lines) => lines.into_iter().map(|line| line.3).collect::<Vec<_>>().join("; "),
        Err(Error::MySqlError(error)) => error.message,
        Err(error) => return Err(error).context("CHECK TABLE of a table with a damaged page 0"),
    };
    ensure!(verdict.contains("header.ibd"), "CHECK TABLE does not find the damage in page 0: {verdict}");
    println!("damaged page 0: {verdict}");
    connection.query_drop("DROP TABLE item").context("dropping the damaged table")?;
    server.stop()?;
    let server = ServerProcess::start(program, place, &[])?;
    ensure!(server.ask("shop", "SELECT n FROM good")? == "2", "the other table's change is lost");
    server.stop()?;
    Ok(())
}

/// Random damage anywhere: the server starts or says why not, answers or says why not, and never panics.
pub fn anywhere(program: &Program, place: &Path, seed: u64) -> Result<()> {
    let mut random = Random::new(seed);
    let settings = ["--innodb-redo-log-capacity=16M", "--innodb-buffer-pool-size=32M"];
    let mut server = ServerProcess::start(program, place, &settings)?;
    fill(&server)?;
    let data = server.data.clone();
    // Killed, so that there is something to recover.
    server.kill();
    drop(server);
    let original = place.join("original");
    std::fs::rename(&data, &original)?;
    let files = regular_files(&original)?;
    let (mut started, mut refused_starts) = (0, 0);
    for round in 0..30 {
        captured(Command::new("cp").args(["--recursive", "--sparse=always"]).arg(&original).arg(&data))?;
        let file = &files[random.below(files.len())];
        let damaged = data.join(file.strip_prefix(&original)?);
        let what = damage_somehow(&damaged, &mut random)?;
        let context = || format!("round {round}: {}: {what}", damaged.display());
        let mut server = ServerProcess::spawn(program, place, &settings)?;
        if server.answers_or_ends().with_context(context)? {
            started += 1;
            let mut connection = server.connect(None)?;
            for table in ["good", "item", "header"] {
                // Either outcome is fine; a broken connection or a panic is not.
                let sql = format!("SELECT * FROM shop.{table} ORDER BY id");
                match connection.query::<mysql::Row, _>(&sql) {
                    Ok(_) | Err(mysql::Error::MySqlError(_)) => {}
                    Err(error) => return Err(error).with_context(context),
                }
            }
            server.kill();
        } else {
            refused_starts += 1;
        }
        let log = server.log();
        ensure!(!log.contains("panicked at"), "{}: the server panicked", context());
        drop(server);
        std::fs::remove_dir_all(&data)?;
        std::fs::remove_file(place.join("server.log"))?;
    }
    println!("damaged files: {started} starts, {refused_starts} refused, no panic");
    Ok(())
}

/// Flips bits, writes garbage, zeros or a wrong length. Says what it did.
fn damage_somehow(file: &Path, random: &mut Random) -> Result<String> {
    let length = std::fs::metadata(file)?.len() as usize;
    if length == 0 {
        std::fs::write(file, b"garbage")?;
        return Ok("garbage in an empty file".to_owned());
    }
    // Half of the damage near the start, where headers are.
    let reach = if random.one_in(2) { length.min(4096) } else { length };
    let offset = random.below(reach);
    let handle = File::options().write(true).open(file)?;
    let room = length - offset;
    Ok(match random.below(4) {
        0 => {
            damage(file, offset, &[1 << random.below(8)])?;
            format!("one bit at {offset}")
        }
        1 => {
            let count = room.min(1 + random.below(600));
            let garbage: Vec<u8> = (0..count).map(|_| random.below(256) as u8).collect();
            handle.write_all_at(&garbage, offset as u64)?;
            format!("{count} random bytes at {offset}")
        }
        2 => {
            let count = room.min(1 + random.below(40_000));
            handle.write_all_at(&vec![0; count], offset as u64)?;
            format!("{count} zeros at {offset}")
        }
        _ => {
            handle.set_len(offset as u64)?;
            format!("cut off at {offset}")
        }
    })
}

fn regular_files(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            files.append(&mut regular_files(&path)?);
        } else if path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
