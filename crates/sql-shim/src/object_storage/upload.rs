//! A backup's files become objects.

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use object_store::path::Path as Key;
use object_store::{Error, GetOptions, ObjectStore as _, PutMultipartOptions, PutOptions, WriteMultipart};
use untorn::{BackupContents, BackupFile};

use super::location::{Location, stored_checksum};
use super::{Moved, Progress, each};
use crate::program::say;

/// Files sent at the same time.
const FILES: usize = 4;
/// Bytes of an object that are sent at once, and of which a larger one has several parts.
const PART: usize = 8 << 20;
/// An object may have ten thousand parts.
const PARTS_MAX: u64 = 9_000;
/// Parts of a file on their way at the same time.
const PARTS_AT_ONCE: usize = 2;
/// Bytes of a mark at most.
const MARK_MAX: u64 = 1 << 10;

/// Sends what is not there yet, and the manifest last.
pub async fn upload(backup: &Path, location: &Location) -> Result<Moved, String> {
    let contents = BackupContents::of(backup).map_err(|error| error.to_string())?;
    let moved = Moved { files: contents.files.len(), bytes: contents.bytes(), end: contents.end };
    claim(location, &contents).await?;
    if is_finished(location, &contents).await? {
        location.remove(BackupContents::INCOMPLETE).await?;
        say(&format!("{location} has it already"));
        return Ok(moved);
    }
    warn_of_missing_base(location, &contents).await?;
    let progress = Arc::new(Progress::new("sent and verified", contents.bytes()));
    let mut files = Vec::with_capacity(contents.files.len());
    for file in &contents.files {
        files.push((location.key(&file.path)?, file.clone()));
    }
    let shared = Arc::new((location.clone(), backup.to_owned(), progress));
    each(files, FILES, |(key, file)| {
        let shared = Arc::clone(&shared);
        async move {
            let (location, backup, progress) = &*shared;
            send(location, &key, &backup.join(&file.path), &file, progress).await
        }
    })
    .await?;
    if !location.create(BackupContents::MANIFEST, contents.manifest.clone()).await?
        && !is_finished(location, &contents).await?
    {
        return Err(another(location));
    }
    location.remove(BackupContents::INCOMPLETE).await?;
    Ok(moved)
}

/// Makes the name ours, or goes on with what an earlier call of the same backup began.
async fn claim(location: &Location, contents: &BackupContents) -> Result<(), String> {
    let ours = format!("{:08x}\n", contents.checksum).into_bytes();
    if location.create(BackupContents::INCOMPLETE, ours.clone()).await? {
        return Ok(());
    }
    match location.get(BackupContents::INCOMPLETE, MARK_MAX).await? {
        Some(theirs) if theirs == ours => Ok(()),
        // It was finished in between: the manifest says by whom.
        None => Ok(()),
        Some(_) => Err(format!(
            "{location} is the name of another backup whose upload is not finished: choose another name, or remove \
             {location}/{} if nobody works on it",
            BackupContents::INCOMPLETE
        )),
    }
}

/// Whether it is there whole. Another backup of this name is an error, and keeps its place.
async fn is_finished(location: &Location, contents: &BackupContents) -> Result<bool, String> {
    match location.get(BackupContents::MANIFEST, super::MANIFEST_MAX).await? {
        None => Ok(false),
        Some(theirs) if theirs == contents.manifest => Ok(true),
        Some(_) => {
            // The mark was put for nothing.
            location.remove(BackupContents::INCOMPLETE).await?;
            Err(another(location))
        }
    }
}

fn another(location: &Location) -> String {
    format!("{location} is another backup already: choose another name")
}

async fn warn_of_missing_base(location: &Location, contents: &BackupContents) -> Result<(), String> {
    let Some(base) = &contents.base else { return Ok(()) };
    let Some(name) = &base.beside else {
        say(&format!(
            "it adds to {}, which does not lie beside it: upload that, too",
            base.directory.display()
        ));
        return Ok(());
    };
    let beside = location.beside(name)?;
    if beside.get(BackupContents::MANIFEST, super::MANIFEST_MAX).await?.is_none() {
        say(&format!("it adds to {}, which is not at {beside}: upload that, too", name.display()));
    }
    Ok(())
}

/// Sends a file, unless the object is there and the same.
async fn send(
    location: &Location,
    key: &Key,
    path: &Path,
    file: &BackupFile,
    progress: &Progress,
) -> Result<(), String> {
    if is_there(location, key, file).await? {
        progress.add(file.bytes);
        return Ok(());
    }
    let mut source = Source::open(path, file)?;
    let attributes = location.attributes(file.crc32c);
    let told = |error: Error| location.told(key, &error);
    if file.bytes <= PART as u64 {
        let all = source.next(PART)?;
        source.refuse_another(file)?;
        let how = PutOptions { attributes, ..PutOptions::default() };
        location.store.put_opts(key, all.into(), how).await.map_err(told)?;
        progress.add(file.bytes);
        return Ok(());
    }
    let part = PART.max(usize::try_from(file.bytes / PARTS_MAX).unwrap_or(PART) + 1);
    let how = PutMultipartOptions { attributes, ..PutMultipartOptions::default() };
    let upload = location.store.put_multipart_opts(key, how).await.map_err(told)?;
    let mut parts = WriteMultipart::new_with_chunk_size(upload, part);
    let sent = send_parts(&mut parts, part, &mut source, file, progress, &told).await;
    match sent {
        Ok(()) => parts.finish().await.map(drop).map_err(told),
        Err(why) => {
            // What was sent takes room there, and money, until it is given up.
            if let Err(error) = parts.abort().await {
                say(&told(error));
            }
            Err(why)
        }
    }
}

async fn send_parts(
    parts: &mut WriteMultipart,
    part: usize,
    source: &mut Source,
    file: &BackupFile,
    progress: &Progress,
    told: &(dyn Fn(Error) -> String + Sync),
) -> Result<(), String> {
    loop {
        let stretch = source.next(part)?;
        if stretch.is_empty() {
            return source.refuse_another(file);
        }
        parts.wait_for_capacity(PARTS_AT_ONCE).await.map_err(told)?;
        progress.add(stretch.len() as u64);
        parts.put(stretch);
    }
}

/// Whether the object is what it must be: by the checksum that it was stored with, or by reading it.
async fn is_there(location: &Location, key: &Key, file: &BackupFile) -> Result<bool, String> {
    let told = |error: Error| location.told(key, &error);
    let head = GetOptions { head: true, ..GetOptions::default() };
    let found = match location.store.get_opts(key, head).await {
        Ok(found) => found,
        Err(Error::NotFound { .. }) => return Ok(false),
        Err(error) => return Err(told(error)),
    };
    if found.meta.size != file.bytes {
        return Ok(false);
    }
    if let Some(stored) = stored_checksum(&found.attributes) {
        return Ok(stored == file.crc32c);
    }
    let mut sum = 0;
    let mut body = super::download::Body::of(location, key).await?;
    while let Some(stretch) = body.next().await? {
        sum = crc32c::crc32c_append(sum, &stretch);
    }
    Ok(sum == file.crc32c)
}

/// A file that is read from its beginning to its end.
struct Source {
    path: PathBuf,
    file: File,
    bytes: u64,
    sum: u32,
}

impl Source {
    fn open(path: &Path, entry: &BackupFile) -> Result<Source, String> {
        let file = File::open(path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => {
                format!(
                    "{}: the backup's manifest names it, and it is not there: use another one",
                    path.display()
                )
            }
            _ => format!("{}: {error}", path.display()),
        })?;
        let found = file.metadata().map_err(|error| format!("{}: {error}", path.display()))?.len();
        let source = Source { path: path.to_owned(), file, bytes: 0, sum: 0 };
        match found == entry.bytes {
            true => Ok(source),
            false => Err(source.damaged(&format!("it has {found} bytes, the manifest says {}", entry.bytes))),
        }
    }

    fn damaged(&self, why: &str) -> String {
        format!("{}: {why}: the backup is damaged; use another one", self.path.display())
    }

    /// The next bytes, nothing at the end.
    fn next(&mut self, most: usize) -> Result<Bytes, String> {
        let mut stretch = Vec::with_capacity(most);
        let read = (&mut self.file).take(most as u64).read_to_end(&mut stretch);
        read.map_err(|error| format!("{}: {error}", self.path.display()))?;
        self.sum = crc32c::crc32c_append(self.sum, &stretch);
        self.bytes += stretch.len() as u64;
        Ok(stretch.into())
    }

    /// It is read whole by now.
    fn refuse_another(&self, entry: &BackupFile) -> Result<(), String> {
        if (self.bytes, self.sum) == (entry.bytes, entry.crc32c) {
            return Ok(());
        }
        let (found, said) = (self.sum, entry.crc32c);
        Err(self.damaged(&format!("its checksum is {found:08x}, the manifest says {said:08x}")))
    }
}
