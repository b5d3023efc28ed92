//! A backup's objects become files.
//!
//! The manifest comes from outside: what it names is written below the directory that was named, and beside
//! it where its base belongs, into directories that were not there; no link is followed, and no object may be
//! longer than the manifest says.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::Arc;

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg, OFlag};
use object_store::path::Path as Key;
use untorn::{BackupContents, BackupFile};

use super::location::Location;
use super::{MANIFEST_MAX, Moved, Progress, blocking, each};
use crate::program::say;

/// Bytes asked for at once.
const STRETCH: u64 = 8 << 20;
/// Backups that add to each other at most.
const CHAIN_MAX: usize = 1000;

/// Takes the backup and, beside it, the bases that lie beside it there.
pub async fn download(location: &Location, directory: &Path) -> Result<Moved, String> {
    let at = |error: io::Error| format!("{}: {error}", directory.display());
    let first = contents(location).await?;
    blocking(|| make(directory)).map_err(at)?;
    // From here on by the name that stays: `.` has nothing beside it.
    let directory = directory.canonicalize().map_err(at)?;
    let moved = Moved { files: first.files.len(), bytes: first.bytes(), end: first.end };
    let mut taken = vec![directory.clone()];
    let mut next = first.base.clone();
    one(location, first, &directory).await?;
    while let Some(base) = next.take() {
        let Some(name) = &base.beside else {
            let was = base.directory.display();
            say(&format!(
                "it adds to {was}, which did not lie beside it: put that one there before you restore it"
            ));
            break;
        };
        let to = directory.parent().map(|parent| parent.join(name));
        let is_hidden = name.as_os_str().as_encoded_bytes().starts_with(b".");
        let (Some(to), false) = (to, is_hidden) else {
            return Err(format!("{location} adds to {}, which is no name for a backup", name.display()));
        };
        if taken.contains(&to) || taken.len() >= CHAIN_MAX {
            let (to, most) = (to.display(), CHAIN_MAX);
            return Err(format!(
                "what it adds to belongs into {to}, which is taken, or it adds to more than {most} others: download it by \
                 its own name"
            ));
        }
        if blocking(|| BackupContents::of(&to)).is_ok_and(|there| there.checksum == base.checksum) {
            say(&format!("it adds to {}, which is there", to.display()));
        } else {
            let from = location.beside(name)?;
            say(&format!("it adds to {from}, which comes along into {}", to.display()));
            let contents = contents(&from).await?;
            if contents.checksum != base.checksum {
                return Err(format!(
                    "{from} is another backup than the one that is added to: put that one back"
                ));
            }
            next.clone_from(&contents.base);
            blocking(|| make(&to)).map_err(|error| format!("{}: {error}", to.display()))?;
            one(&from, contents, &to).await?;
        }
        taken.push(to);
    }
    Ok(moved)
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

/// One backup, into a directory that is there.
async fn one(location: &Location, contents: BackupContents, directory: &Path) -> Result<(), String> {
    let at = |error: io::Error| format!("{}: {error}", directory.display());
    if is_finished(directory, &contents)? {
        return Ok(());
    }
    let mark = blocking(|| begin(directory, &contents))?;
    let mut directories = contents.directories.clone();
    directories.extend(contents.files.iter().filter_map(|file| file.path.parent().map(Path::to_owned)));
    directories.sort();
    directories.dedup();
    for below in &directories {
        make(&directory.join(below)).map_err(at)?;
    }
    let mut files = Vec::with_capacity(contents.files.len());
    for file in &contents.files {
        files.push((location.key(&file.path)?, file.clone()));
    }
    let progress = Progress::new("received and verified", contents.bytes());
    let shared = Arc::new((location.clone(), directory.to_owned(), progress.clone()));
    let receive = |(key, file): (Key, BackupFile)| {
        let shared = Arc::clone(&shared);
        async move {
            let (location, directory, progress) = &*shared;
            receive(location, &key, &directory.join(&file.path), &file, progress).await
        }
    };
    each(files, &progress, receive).await?;
    blocking(|| {
        for below in directories.iter().rev() {
            sync_directory(&directory.join(below))?;
        }
        finish(directory, &contents.manifest)
    })
    .map_err(at)?;
    drop(mark);
    Ok(())
}

/// Whether an earlier call brought all of it here. What is damaged since is not mended silently.
fn is_finished(directory: &Path, contents: &BackupContents) -> Result<bool, String> {
    let there = std::fs::read(directory.join(BackupContents::MANIFEST));
    if !there.is_ok_and(|text| text == contents.manifest)
        || directory.join(BackupContents::INCOMPLETE).exists()
    {
        return Ok(false);
    }
    say(&format!("{} has it already; every file is compared once more", directory.display()));
    for file in &contents.files {
        let path = directory.join(&file.path);
        let is_right =
            blocking(|| has(&path, file)).map_err(|error| format!("{}: {error}", path.display()))?;
        if !is_right {
            return Err(format!(
                "{}: it is not what the manifest says: remove the directory and download it again",
                path.display()
            ));
        }
    }
    Ok(true)
}

/// Makes a directory and those above it, durably. Only its owner may look at what is in a database.
fn make(directory: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && directory.is_dir() => return Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let Some(above) = directory.parent().filter(|above| !above.as_os_str().is_empty()) else {
                return Err(error);
            };
            make(above)?;
            DirBuilder::new().mode(0o700).create(directory)?;
        }
        made => made?,
    }
    let above = directory.parent().filter(|above| !above.as_os_str().is_empty());
    sync_directory(above.unwrap_or(Path::new(".")))
}

/// An empty directory is marked; one that an earlier call of the same began is gone on with. The mark is
/// locked, so that two do not work on the same.
fn begin(directory: &Path, contents: &BackupContents) -> Result<Flock<File>, String> {
    let at = |error: io::Error| format!("{}: {error}", directory.display());
    let path = directory.join(BackupContents::INCOMPLETE);
    let ours = format!("a download of {:08x}\n", contents.checksum);
    let not_ours = || {
        let at = directory.display();
        format!("{at}: the directory is not empty, and no download of this backup: choose a new one")
    };
    // What a file system makes for itself does not count.
    let mut others = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(at)? {
        let name = entry.map_err(at)?.file_name();
        if name != "lost+found" {
            others.push(name);
        }
    }
    let is_new = others.iter().all(|name| name == BackupContents::INCOMPLETE);
    let mut how = OpenOptions::new();
    how.read(true).write(true).create(is_new).mode(0o600).custom_flags(OFlag::O_NOFOLLOW.bits());
    let mark = match how.open(&path) {
        Ok(mark) => mark,
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(not_ours()),
        Err(error) => return Err(at(error)),
    };
    let mut mark = Flock::lock(mark, FlockArg::LockExclusiveNonblock).map_err(|(_, error)| match error {
        Errno::EWOULDBLOCK => format!("{}: another process works on it", directory.display()),
        error => format!("{}: {error}", path.display()),
    })?;
    // Who had the lock may have finished, and removed it.
    let identity = |of: std::fs::Metadata| (of.dev(), of.ino());
    let locked = mark.metadata().map(identity).map_err(at)?;
    if !std::fs::metadata(&path).map(identity).is_ok_and(|named| named == locked) {
        return Err(format!("{}: another process worked on it; call again", directory.display()));
    }
    let mut text = String::new();
    let read = (&*mark).take(ours.len() as u64 + 1).read_to_string(&mut text);
    if read.is_err() || !(text == ours || is_new && ours.starts_with(&text)) {
        return Err(not_ours());
    }
    // A call that was killed may have written only a part of it.
    let rest = &ours.as_bytes()[text.len()..];
    mark.write_all(rest).and_then(|()| mark.sync_all()).map_err(at)?;
    sync_directory(directory).map_err(at)?;
    Ok(mark)
}

/// A file that was not there, whatever an earlier call, or somebody else, left in its place.
fn create(path: &Path, mode: u32) -> io::Result<File> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    Ok(file)
}

/// The manifest in one step, then the mark is taken away.
fn finish(directory: &Path, manifest: &[u8]) -> io::Result<()> {
    let fresh = directory.join(BackupContents::MANIFEST_NEW);
    let mut file = create(&fresh, 0o600)?;
    file.write_all(manifest)?;
    file.sync_all()?;
    std::fs::rename(&fresh, directory.join(BackupContents::MANIFEST))?;
    sync_directory(directory)?;
    std::fs::remove_file(directory.join(BackupContents::INCOMPLETE))?;
    sync_directory(directory)
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
    if blocking(|| has(path, entry)).map_err(at)? {
        return progress.add(entry.bytes);
    }
    let mut file = blocking(|| create(path, 0o600)).map_err(at)?;
    let mut body = Body::of(location, key, entry.bytes);
    let mut sum = 0;
    while let Some(stretch) = body.next().await? {
        sum = crc32c::crc32c_append(sum, &stretch);
        blocking(|| file.write_all(&stretch)).map_err(at)?;
        progress.add(stretch.len() as u64)?;
    }
    if sum != entry.crc32c {
        return Err(format!(
            "{location}/{}: its checksum is {sum:08x}, the manifest says {:08x}: the backup is damaged there; use another \
             one",
            entry.path.display(),
            entry.crc32c
        ));
    }
    blocking(|| file.sync_all()).map_err(at)
}

/// Whether an earlier call wrote it whole. It was not made durable then, perhaps.
fn has(path: &Path, entry: &BackupFile) -> io::Result<bool> {
    let mut file = match OpenOptions::new().read(true).custom_flags(OFlag::O_NOFOLLOW.bits()).open(path) {
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
/// by the store, and a large object is not held in memory. It has as many as it must have, or that is an
/// error.
pub struct Body<'l> {
    location: &'l Location,
    key: &'l Key,
    at: u64,
    bytes: u64,
}

impl<'l> Body<'l> {
    pub fn of(location: &'l Location, key: &'l Key, bytes: u64) -> Body<'l> {
        Body { location, key, at: 0, bytes }
    }

    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, String> {
        if self.at >= self.bytes {
            return Ok(None);
        }
        let range = self.at..(self.at + STRETCH).min(self.bytes);
        let wanted = range.end - range.start;
        let stretch = self.location.range(self.key, range).await?;
        if stretch.len() as u64 != wanted {
            let (location, key, bytes) = (self.location, self.key, self.bytes);
            return Err(format!(
                "{location}: {key} is shorter than the {bytes} bytes of the manifest: the backup is damaged there"
            ));
        }
        self.at += wanted;
        Ok(Some(stretch))
    }
}
