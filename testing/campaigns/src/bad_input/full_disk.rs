//! A file system that runs full under inserts: the statement fails with a MySQL error, everything before it
//! is there, and the server works again when there is room. Once on ext4, once on XFS, which writes pages
//! atomically by copying them and so needs room for each.

use super::{number, refused};
use anyhow::{Context, Result, ensure};
use lab::file_system::{FileSystem, FileSystemKind};
use lab::server_process::{Program, ServerProcess};
use mysql::prelude::Queryable;
use mysql::{Conn, Error, MySqlError};
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::time::{Duration, Instant};

const SETTINGS: [&str; 2] = ["--innodb-redo-log-capacity=16M", "--innodb-buffer-pool-size=16M"];

/// Rows of one INSERT.
const BATCH: u64 = 16;

/// The text of ER_DISK_FULL and ER_RECORD_FILE_FULL ("The table is full"), or what the engine says with any
/// other number.
fn says_full(error: &MySqlError) -> bool {
    error.message.contains("full")
}

/// Room for the server, in MiB.
const ROOM: u64 = 72;
/// Rows of the table whose updates need no room of its file, and how many of them one statement updates.
const FIXED: u64 = 4000;
const STEP: u64 = 200;

pub fn check(program: &Program, place: &Path, _seed: u64) -> Result<()> {
    scene(program, place, FileSystem::create(place, "disk", FileSystemKind::Ext4, ROOM)?, |_| Ok(()))
}

pub fn check_with_copy_on_write(program: &Program, place: &Path, _seed: u64) -> Result<()> {
    // XFS cannot be made so small: what it has too much of is taken away.
    let disk = FileSystem::create(place, "disk", FileSystemKind::Xfs, 320)?;
    let mut ballast = std::fs::File::create(disk.path().join("ballast"))?;
    let (block, mut blocks) = (vec![1; 1 << 20], 0);
    while ballast.write_all(&block).is_ok() {
        blocks += 1;
    }
    ballast.set_len((blocks - ROOM) << 20)?;
    ballast.sync_all()?;
    // A file cannot be created any more when the disk is full.
    std::fs::File::create(disk.path().join("filler"))?;
    scene(program, place, disk, take_the_rest)
}

/// Takes what a full disk has left. An INSERT fails when its table's file cannot grow, by up to 4 MiB at a
/// time; in less than that XFS still finds room to copy a page, and no atomic write would be without it.
fn take_the_rest(disk: &FileSystem) -> Result<()> {
    let full = |result: std::io::Result<()>| match result {
        Err(error) if error.kind() != ErrorKind::StorageFull => Err(error).context("the filler"),
        result => Ok(result.is_err()),
    };
    let mut filler = std::fs::File::options().append(true).open(disk.path().join("filler"))?;
    loop {
        let before = filler.metadata()?.len();
        while !full(filler.write_all(&[1; 4096]))? {}
        // What was reserved for these blocks and not needed is free again. The server may have taken a block
        // that was reserved to allocate them: then this, too, says that the disk is full.
        full(filler.sync_all())?;
        if filler.metadata()?.len() == before {
            return Ok(());
        }
    }
}

/// `take_the_rest` of the room when an INSERT has found no more.
fn scene(
    program: &Program,
    place: &Path,
    disk: FileSystem,
    take_the_rest: fn(&FileSystem) -> Result<()>,
) -> Result<()> {
    let data = disk.path().join("data");
    let reserve = disk.path().join("reserve");
    std::fs::write(&reserve, vec![1; 10 << 20])?;
    let server = ServerProcess::start_on(program, place, &data, &SETTINGS)?;
    let mut connection = server.connect(None)?;
    connection.query_drop("CREATE DATABASE shop")?;
    connection.query_drop("USE shop")?;
    connection.query_drop("CREATE TABLE item (id INT PRIMARY KEY, k INT, body TEXT, KEY by_k (k))")?;
    connection.query_drop("CREATE TABLE small (id INT PRIMARY KEY, n INT)")?;
    connection.query_drop("INSERT INTO small VALUES (1, 1)")?;
    connection.query_drop("CREATE TABLE fixed (id INT PRIMARY KEY, n INT, filler CHAR(200))")?;
    for first in (0..FIXED).step_by(STEP as usize) {
        let rows: Vec<String> = (first..first + STEP).map(|id| format!("({id}, 0, 'x')")).collect();
        connection.query_drop(format!("INSERT INTO fixed VALUES {}", rows.join(", ")))?;
    }

    let (mut rows, error) = fill(&mut connection, 0)?;
    ensure!(says_full(&error), "a full disk gives {error}");
    println!("full disk: after {rows} rows: {error}");
    take_the_rest(&disk)?;
    verify(&mut connection, rows).context("with the disk full")?;
    // What needs no room works; what needs some fails the same way.
    connection.query_drop("UPDATE small SET n = n + 1").context("an update in place, with the disk full")?;
    change_pages(&mut connection).context("with the disk full")?;
    refused(&mut connection, "CREATE TABLE other (id INT PRIMARY KEY, body TEXT)").or_else(|_| {
        connection.query_drop("DROP TABLE other").map(|()| error.clone()).map_err(anyhow::Error::from)
    })?;

    std::fs::remove_file(&reserve)?;
    connection.query_drop(insert(rows)).context("an INSERT after room was made")?;
    rows += BATCH;
    verify(&mut connection, rows).context("after room was made")?;

    // Full again, and the server killed: it has to come back as it is, or say that it needs room.
    let (more, error) = fill(&mut connection, rows)?;
    ensure!(says_full(&error), "a full disk gives {error} the second time");
    rows = more;
    take_the_rest(&disk)?;
    drop(server);
    let server =
        ServerProcess::start_on(program, place, &data, &SETTINGS).context("a restart with the disk full")?;
    let mut connection = server.connect(Some("shop"))?;
    verify(&mut connection, rows).context("after a restart with the disk full")?;
    ensure!(number(&mut connection, "SELECT n FROM small")? == 2, "the update is lost");
    change_pages(&mut connection).context("after a restart with the disk full")?;
    // The catalog is rewritten next to the old one; XFS, unlike ext4, has no block left for that.
    let ballast = disk.path().join("ballast");
    if ballast.exists() {
        std::fs::File::create(ballast)?;
    }
    connection.query_drop("TRUNCATE TABLE item").or_else(|_| connection.query_drop("DROP TABLE item"))?;
    server.stop()?;
    println!("full disk: {rows} rows there after a kill and a restart with the disk full");
    Ok(())
}

/// Changes pages that exist until some had to be written, where that is done atomically by copying also
/// without the room for it. Nothing may stop the engine.
fn change_pages(connection: &mut Conn) -> Result<()> {
    let by_copying =
        "SELECT COUNT(*) FROM information_schema.UNTORN_PAGE_PROTECTION WHERE verdict = 'atomic-fs'";
    let by_copying = number(connection, by_copying)? > 0;
    let counter = |connection: &mut Conn, name: &str| -> Result<u64> {
        let row: Option<(String, u64)> =
            connection.query_first(format!("SHOW GLOBAL STATUS LIKE '{name}'"))?;
        Ok(row.with_context(|| format!("there is no {name}"))?.1)
    };
    let written = counter(connection, "Innodb_buffer_pool_pages_flushed")?;
    let deadline = Instant::now() + Duration::from_secs(120);
    for first in (0..FIXED).step_by(STEP as usize).cycle() {
        let end = first + STEP - 1;
        match connection.query_drop(format!("UPDATE fixed SET n = n + 1 WHERE id BETWEEN {first} AND {end}"))
        {
            Ok(()) => {}
            // The undo log grows until purge has caught up.
            Err(Error::MySqlError(error)) if says_full(&error) => {}
            Err(error) => return Err(error).context("an update in place"),
        }
        let without_room = counter(connection, "Untorn_atomic_writes_without_room")?;
        let pages = counter(connection, "Innodb_buffer_pool_pages_flushed")?.saturating_sub(written);
        if pages > FIXED / 10 && (without_room > 0 || !by_copying) {
            println!("full disk: {without_room} atomic writes had no room");
            return Ok(());
        }
        ensure!(
            Instant::now() < deadline,
            "{pages} pages are written, {without_room} atomic writes had no room for a copy"
        );
    }
    Ok(())
}

/// Inserts until it fails. Returns how many rows there must be, and the error.
fn fill(connection: &mut Conn, from: u64) -> Result<(u64, MySqlError)> {
    for id in (from..100_000).step_by(BATCH as usize) {
        match connection.query_drop(insert(id)) {
            Ok(()) => {}
            Err(Error::MySqlError(error)) => {
                connection.ping().context("the connection after the error")?;
                return Ok((id, error));
            }
            Err(error) => return Err(error).context("the disk is full and the connection broken"),
        }
    }
    anyhow::bail!("the disk does not get full")
}

/// One statement for the rows from `first` on, which are there all or not at all.
fn insert(first: u64) -> String {
    let rows = (first..first + BATCH).map(|id| format!("({id}, {}, '{}')", id * 7 % 1000, body(id)));
    format!("INSERT INTO item VALUES {}", rows.collect::<Vec<_>>().join(", "))
}

/// Half of the rows go off-page.
fn body(id: u64) -> String {
    format!("{id} ").repeat(if id.is_multiple_of(2) { 300 } else { 6000 })
}

/// Exactly the rows `0..rows`, whole.
fn verify(connection: &mut Conn, rows: u64) -> Result<()> {
    let mut expected = 0;
    for row in connection.query_iter("SELECT id, k, body FROM item ORDER BY id")? {
        let (id, k, text): (u64, u64, String) = mysql::from_row_opt(row?)?;
        ensure!(id == expected, "row {id} where {expected} should be");
        ensure!(k == id * 7 % 1000 && text == body(id), "row {id} is not as inserted");
        expected += 1;
    }
    ensure!(expected == rows, "{expected} rows, {rows} were acknowledged");
    let by_k = number(connection, "SELECT COUNT(k) FROM item FORCE INDEX (by_k)")?;
    ensure!(by_k == rows, "{by_k} rows by the secondary index, {rows} were acknowledged");
    let verdict: Vec<(String, String, String, String)> = connection.query("CHECK TABLE item")?;
    ensure!(verdict.last().is_some_and(|last| last.3 == "OK"), "CHECK TABLE: {verdict:?}");
    Ok(())
}
