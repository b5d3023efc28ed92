//! A backup's objects become files.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use nix::fcntl::{Flock, FlockArg};
use object_store::ObjectStoreExt as _;
use object_store::path::Path as Key;
use untorn::{BackupContents, BackupFile};

use super::location::Location;
use super::{MANIFEST_MAX, Moved, Progress, each};
use crate::program::say;

/// Files taken at the same time.
const FILES: usize = 4;
/// Bytes asked for at once.
const STRETCH: u64 = 8 << 20;
/// Backups that add to each other at most.
const CHAIN_MAX: usize = 1000;

/// Takes the backup and, beside it, the bases that lie beside it there.
pub async fn download(location: &Location, directory: &Path) -> Result<Moved, String> {
    let (first, mut base) = one(location, directory).await?;
    let mut seen = vec![location.to_string()];
    while let Some((name, checksum)) = base {
        let (from, to) = (location.beside(&name)?, beside(directory, &name));
        if seen.contains(&from.to_string()) || seen.len() >= CHAIN_MAX {
            return Err(format!("{location} adds to more than {CHAIN_MAX} others, or to itself"));
        }
        say(&format!("it adds to {from}, which comes along into {}", to.display()));
        let contents = contents(&from).await?;
        if contents.checksum != checksum {
            return Err(format!("{from} is another backup than the one that is added to: put that one back"));
        }
        seen.push(from.to_string());
        base = one(&from, &to).await?.1;
    }
    Ok(first)
}

fn beside(directory: &Path, name: &Path) -> PathBuf {
    // `parent` of a single word is an empty path.
    directory.parent().unwrap_or(directory).join(name)
}

async fn contents(location: &Location) -> Result<BackupContents, String> {
    let Some(text) = location.get(BackupContents::MANIFEST, MANIFEST_MAX).await? else {
        return Err(match location.get(BackupContents::INCOMPLETE, MANIFEST_MAX).await? {
            Some(_) => format!("{location} is a backup whose upload was not finished: upload it again"),
            None => format!("{location}: there is no backup"),
        });
    };
    BackupContents::parse(text).map_err(|why| format!("{location}/{}: {why}", BackupContents::MANIFEST))
}

/// One backup; name and checksum of the base beside it.
async fn one(location: &Location, directory: &Path) -> Result<(Moved, Option<(PathBuf, u32)>), String> {
    let contents = contents(location).await?;
    let moved = Moved { files: contents.files.len(), bytes: contents.bytes(), end: contents.end };
    let base = contents.base.as_ref().and_then(|base| Some((base.beside.clone()?, base.checksum)));
    let at = |error: io::Error| format!("{}: {error}", directory.display());
    if std::fs::read(directory.join(BackupContents::MANIFEST)).is_ok_and(|text| text == contents.manifest)
        && !directory.join(BackupContents::INCOMPLETE).exists()
    {
        say(&format!("{} has it already", directory.display()));
        return Ok((moved, base));
    }
    let mark = begin(directory, &contents)?;
    let mut directories = contents.directories.clone();
    directories.extend(contents.files.iter().filter_map(|file| file.path.parent().map(Path::to_owned)));
    directories.sort();
    directories.dedup();
    for below in &directories {
        make(&directory.join(below)).map_err(at)?;
    }
    let progress = Arc::new(Progress::new("received and verified", contents.bytes()));
    let mut files = Vec::with_capacity(contents.files.len());
    for file in &contents.files {
        files.push((location.key(&file.path)?, file.clone()));
    }
    let shared = Arc::new((location.clone(), directory.to_owned(), progress));
    each(files, FILES, |(key, file)| {
        let shared = Arc::clone(&shared);
        async move {
            let (location, directory, progress) = &*shared;
            receive(location, &key, &directory.join(&file.path), &file, progress).await
        }
    })
    .await?;
    for below in directories.iter().rev() {
        sync_directory(&directory.join(below)).map_err(at)?;
    }
    finish(directory, &contents.manifest).map_err(at)?;
    drop(mark);
    Ok((moved, base))
}

/// Only its owner may look at what is in a database.
fn make(directory: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

/// A new or empty directory is marked; one that an earlier call of the same began is gone on with. The mark is
/// locked, so that two do not work on the same.
fn begin(directory: &Path, contents: &BackupContents) -> Result<Flock<File>, String> {
    let at = |error: io::Error| format!("{}: {error}", directory.display());
    make(directory).map_err(at)?;
    let path = directory.join(BackupContents::INCOMPLETE);
    let ours = format!("a download of {:08x}\n", contents.checksum);
    let is_empty = || -> io::Result<bool> {
        for entry in std::fs::read_dir(directory)? {
            let name = entry?.file_name();
            // What a file system makes for itself.
            if name != "lost+found" {
                return Ok(false);
            }
        }
        Ok(true)
    };
    if is_empty().map_err(at)? {
        let mut mark = OpenOptions::new().write(true).create_new(true).open(&path).map_err(at)?;
        mark.write_all(ours.as_bytes()).and_then(|()| mark.sync_all()).map_err(at)?;
        sync_directory(directory).map_err(at)?;
    }
    let not_ours = || {
        format!(
            "{}: the directory is not empty, and no download of this backup: choose a new one",
            directory.display()
        )
    };
    let mark = match OpenOptions::new().read(true).write(true).open(&path) {
        Ok(mark) => mark,
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(not_ours()),
        Err(error) => return Err(at(error)),
    };
    let mark = Flock::lock(mark, FlockArg::LockExclusiveNonblock)
        .map_err(|_| format!("{}: another process works on it", directory.display()))?;
    let mut text = String::new();
    let read = (&*mark).take(ours.len() as u64 + 1).read_to_string(&mut text);
    if read.is_err() || text != ours {
        return Err(not_ours());
    }
    Ok(mark)
}

/// The manifest in one step, then the mark is taken away.
fn finish(directory: &Path, manifest: &[u8]) -> io::Result<()> {
    let fresh = directory.join("#untorn.backup.new");
    let mut file = File::create(&fresh)?;
    file.write_all(manifest)?;
    file.sync_all()?;
    std::fs::rename(&fresh, directory.join(BackupContents::MANIFEST))?;
    sync_directory(directory)?;
    std::fs::remove_file(directory.join(BackupContents::INCOMPLETE))?;
    sync_directory(directory)?;
    // Its own name, too.
    sync_directory(
        directory.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new(".")),
    )
}

fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// Writes a file, unless it is there and the same.
async fn receive(
    location: &Location,
    key: &Key,
    path: &Path,
    entry: &BackupFile,
    progress: &Progress,
) -> Result<(), String> {
    let at = |error: io::Error| format!("{}: {error}", path.display());
    if has(path, entry).map_err(at)? {
        progress.add(entry.bytes);
        return Ok(());
    }
    let mode = if entry.is_private { 0o600 } else { 0o640 };
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(path).map_err(at)?;
    // One of an earlier call may have had another mode.
    file.set_permissions(Permissions::from_mode(mode)).map_err(at)?;
    let mut body = Body::of(location, key).await?;
    let (mut sum, mut bytes) = (0, 0);
    while let Some(stretch) = body.next().await? {
        sum = crc32c::crc32c_append(sum, &stretch);
        bytes += stretch.len() as u64;
        file.write_all(&stretch).map_err(at)?;
        progress.add(stretch.len() as u64);
    }
    if (bytes, sum) != (entry.bytes, entry.crc32c) {
        return Err(format!(
            "{location}/{}: it has {bytes} bytes with the checksum {sum:08x}, the manifest says {} and {:08x}: the \
             backup is damaged there; use another one",
            entry.path.display(),
            entry.bytes,
            entry.crc32c
        ));
    }
    file.sync_all().map_err(at)
}

/// Whether an earlier call wrote it whole. It was not made durable then, perhaps.
fn has(path: &Path, entry: &BackupFile) -> io::Result<bool> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    if file.metadata()?.len() != entry.bytes {
        return Ok(false);
    }
    let (mut buffer, mut sum) = (vec![0; 1 << 20], 0);
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            read => sum = crc32c::crc32c_append(sum, &buffer[..read]),
        }
    }
    file.sync_all()?;
    Ok(sum == entry.crc32c)
}

/// An object's bytes, in stretches that are asked for one after the other: one that fails is asked for again
/// by the store, and a large object is not held in memory.
pub struct Body<'l> {
    location: &'l Location,
    key: &'l Key,
    at: u64,
    size: u64,
}

impl Body<'_> {
    pub async fn of<'l>(location: &'l Location, key: &'l Key) -> Result<Body<'l>, String> {
        let head = location.store.head(key).await.map_err(|error| location.told(key, &error))?;
        Ok(Body { location, key, at: 0, size: head.size })
    }

    pub async fn next(&mut self) -> Result<Option<Bytes>, String> {
        let told = |error| self.location.told(self.key, &error);
        if self.at >= self.size {
            return Ok(None);
        }
        let range = self.at..(self.at + STRETCH).min(self.size);
        let stretch = self.location.store.get_range(self.key, range).await.map_err(told)?;
        if stretch.is_empty() {
            return Err(format!("{}: {} ended early", self.location, self.key));
        }
        self.at += stretch.len() as u64;
        Ok(Some(stretch))
    }
}
