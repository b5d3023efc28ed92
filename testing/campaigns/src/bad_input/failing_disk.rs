//! EIO from a real device: one block that cannot be read, and a device that takes no more writes.
//!
//! The unreadable block is one of a Btrfs file system, which knows that a block changed under it and fails
//! the read. Writes fail because the image of the device, in a file system of its own, is made immutable: the
//! loop device gets an error for each.

use super::damaged_files::{INNODB_PAGE, index_leaves};
use super::{number, refused};
use crate::acknowledged::{Acknowledged, create_tables};
use anyhow::{Context, Result, ensure};
use disk::Random;
use lab::background_load;
use lab::command::captured;
use lab::file_system::{FileSystem, FileSystemKind};
use lab::server_process::{Program, ServerProcess};
use mysql::prelude::Queryable;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

pub fn unreadable_block(program: &Program, place: &Path, _seed: u64) -> Result<()> {
    if !std::fs::read_to_string("/proc/filesystems")?.contains("btrfs") {
        println!(
            "unreadable block: not tried, this kernel has no Btrfs; tests/ has it on the simulated disk"
        );
        return Ok(());
    }
    let mut disk = FileSystem::create(place, "disk", FileSystemKind::Btrfs, 512)?;
    let data = disk.path().join("data");
    let settings = ["--innodb-redo-log-capacity=16M", "--innodb-buffer-pool-size=16M"];
    let server = ServerProcess::start_on(program, place, &data, &settings)?;
    server.feed("", "CREATE DATABASE shop; CREATE TABLE shop.good (id INT PRIMARY KEY); INSERT INTO shop.good VALUES (1);")?;
    let mut connection = server.connect(Some("shop"))?;
    connection.query_drop("CREATE TABLE item (id INT PRIMARY KEY, body VARCHAR(4000))")?;
    connection.query_drop("BEGIN")?;
    for id in 0..200 {
        connection.query_drop(format!("INSERT INTO item VALUES ({id}, '{}')", "unreadable ".repeat(300)))?;
    }
    connection.query_drop("COMMIT")?;
    server.stop()?;
    let file = data.join("shop/item.ibd");
    let leaves = index_leaves(&std::fs::read(&file)?);
    let page = *leaves.get(leaves.len() / 2).context("no leaf page")?;
    let mut wanted = vec![0; INNODB_PAGE];
    File::open(&file)?.read_exact_at(&mut wanted, (page * INNODB_PAGE) as u64)?;
    // The doublewrite file has a copy of the page, which is to stay readable; after an orderly stop it is of
    // no use.
    for entry in std::fs::read_dir(&data)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "dblwr") {
            std::fs::write(&path, vec![0; std::fs::metadata(&path)?.len() as usize])?;
        }
    }
    disk.unmount()?;
    damage_image(disk.image(), &wanted)?;
    disk.mount()?;

    let server = ServerProcess::start_on(program, place, &data, &settings)?;
    let mut connection = server.connect(Some("shop"))?;
    let error = refused(&mut connection, "SELECT SUM(LENGTH(body)) FROM item")?;
    ensure!(error.message.contains("item.ibd"), "no file name: {error}");
    println!("unreadable block of page {page}: {error}");
    ensure!(number(&mut connection, "SELECT COUNT(*) FROM good")? == 1, "another table");
    ensure!(number(&mut connection, "SELECT COUNT(*) FROM item WHERE id < 3")? == 3, "the readable rows");
    connection.query_drop("INSERT INTO good VALUES (2)").context("changes of another table")?;
    server.stop()?;
    disk.unmount()
}

/// Changes one byte of the block that holds `wanted`, wherever the file system keeps it.
fn damage_image(image: &Path, wanted: &[u8]) -> Result<()> {
    let file = File::options().read(true).write(true).open(image)?;
    let (mut block, mut found) = (vec![0; wanted.len()], 0);
    // File systems lay blocks out in units of 4 KiB.
    for offset in (0..file.metadata()?.len().saturating_sub(wanted.len() as u64)).step_by(4096) {
        file.read_exact_at(&mut block[..64], offset)?;
        if block[..64] != wanted[..64] {
            continue;
        }
        file.read_exact_at(&mut block, offset)?;
        if block == wanted {
            file.write_all_at(&[!wanted[5000]], offset + 5000)?;
            found += 1;
        }
    }
    file.sync_all()?;
    ensure!(found > 0, "the page is not in the image as one piece");
    Ok(())
}

pub fn failing_writes(program: &Program, place: &Path, seed: u64) -> Result<()> {
    let mut random = Random::new(seed);
    // ext4 below: it looks at the flag with every write, other file systems only when the file is opened.
    let mut below = FileSystem::create(place, "below", FileSystemKind::Ext4, 700)?;
    let mut disk = FileSystem::create(below.path(), "disk", FileSystemKind::Ext4, 512)?;
    let data = disk.path().join("data");
    let mut acknowledged = Acknowledged::new();
    let mut server = ServerProcess::start_on(program, place, &data, &background_load::SETTINGS)?;
    create_tables(&server)?;
    background_load::BackgroundLoad::prepare(&server)?;
    for cycle in 1..=3 {
        let background = background_load::BackgroundLoad::start(&server, random.next_u64())?;
        let mut observer = server.connect(Some(crate::acknowledged::DATABASE))?;
        let mut seen = String::new();
        let image = disk.image().to_path_buf();
        acknowledged.load(&mut server, Duration::from_millis(400), &mut random, |_| {
            captured(Command::new("chattr").arg("+i").arg(&image))?;
            // The redo log cannot be written: a change must fail, with an error that names the file.
            let error = refused(&mut observer, "INSERT INTO item VALUES (1000000, 0, 0, '')");
            seen = error.context("a change when nothing can be written")?.to_string();
            number(&mut observer, "SELECT 1").context("the server lives on").map(drop)
        })?;
        println!("writes that fail, cycle {cycle}: {seen}");
        ensure!(!server.log().contains("panicked at"), "the server panicked");
        drop((server, background, observer));
        disk.unmount()?;
        captured(Command::new("chattr").arg("-i").arg(&image))?;
        disk.mount()?;
        server = ServerProcess::start_on(program, place, &data, &background_load::SETTINGS)
            .with_context(|| format!("cycle {cycle}, restart"))?;
        acknowledged
            .verify(&server)
            .and_then(|()| background_load::BackgroundLoad::check(&server))
            .with_context(|| format!("cycle {cycle}, after recovery"))?;
    }
    server.stop()?;
    disk.unmount()?;
    below.unmount()
}
