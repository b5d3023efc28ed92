//! A backup's files become objects.

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use object_store::path::Path as Key;
use object_store::{Error, GetOptions, ObjectStore as _, PutMultipartOptions, PutOptions, WriteMultipart};
use tokio::sync::Mutex;
use untorn::{BackupContents, BackupFile};

use super::location::{Location, stored_checksum};
use super::{MANIFEST_MAX, Moved, Progress, blocking, each};
use crate::program::say;

/// Bytes of an object that are sent at once, and of which a larger one has several parts.
const PART: usize = 8 << 20;
/// An object may have ten thousand parts.
const PARTS_MAX: u64 = 9_000;
/// Parts of a file on their way at the same time.
const PARTS_AT_ONCE: usize = 2;

/// What all tasks need.
struct Upload {
    location: Location,
    backup: PathBuf,
    progress: Arc<Progress>,
    /// Files of so many bytes that their parts are larger go one after the other, for the memory.
    huge: Mutex<()>,
}

/// Sends what is not there yet, and the manifest last.
pub async fn upload(backup: &Path, location: &Location) -> Result<Moved, String> {
    let contents = blocking(|| BackupContents::of(backup)).map_err(|error| error.to_string())?;
    let was = standing(location, &contents).await?;
    match was {
        Standing::Nobodys => claim(location, &contents).await?,
        Standing::Ours => {
            say(&format!("{location} has it already; what it consists of is looked at once more"));
        }
        Standing::Another => return Err(another(location)),
    }
    tell_of_base(location, &contents).await?;
    let mut files = Vec::with_capacity(contents.files.len());
    for file in &contents.files {
        files.push((location.key(&file.path)?, file.clone()));
    }
    let progress = Progress::new("sent and verified", contents.bytes());
    let (huge, backup) = (Mutex::new(()), backup.to_owned());
    let upload = Arc::new(Upload { location: location.clone(), backup, progress: progress.clone(), huge });
    let send = |(key, file)| {
        let upload = Arc::clone(&upload);
        async move { upload.send(&key, &file).await }
    };
    each(files, &progress, send).await?;
    if was == Standing::Nobodys {
        finish(location, &contents).await?;
    }
    Ok(Moved { files: contents.files.len(), bytes: contents.bytes(), end: contents.end })
}

fn mark(contents: &BackupContents) -> Vec<u8> {
    format!("{:08x}\n", contents.checksum).into_bytes()
}

/// Makes the name ours, or goes on with what an earlier call of the same backup began.
async fn claim(location: &Location, contents: &BackupContents) -> Result<(), String> {
    let ours = mark(contents);
    match location.create_or_get(BackupContents::INCOMPLETE, &ours).await? {
        Some(theirs) if theirs != ours => return Err(unfinished(location)),
        _ => {}
    }
    // The one before may have finished in between.
    if standing(location, contents).await? == Standing::Another {
        location.remove(BackupContents::INCOMPLETE).await?;
        return Err(another(location));
    }
    Ok(())
}

/// The manifest last, if the name is still ours.
async fn finish(location: &Location, contents: &BackupContents) -> Result<(), String> {
    match location.get(BackupContents::INCOMPLETE, MANIFEST_MAX).await? {
        Some(theirs) if theirs != mark(contents) => return Err(unfinished(location)),
        // Another call of the same may have finished.
        None if standing(location, contents).await? != Standing::Ours => {
            return Err(format!("{location}: somebody removed {} meanwhile", BackupContents::INCOMPLETE));
        }
        _ => {}
    }
    let there = location.create_or_get(BackupContents::MANIFEST, &contents.manifest).await?;
    if there.is_some_and(|theirs| theirs != contents.manifest) {
        return Err(another(location));
    }
    if let Err(why) = location.remove(BackupContents::INCOMPLETE).await {
        say(&format!("the backup is there, but the mark of its upload could not be removed: {why}"));
    }
    Ok(())
}

fn unfinished(location: &Location) -> String {
    format!(
        "{location} is the name of another backup whose upload is not finished: choose another name, or remove \
         {location}/{} if nobody works on it",
        BackupContents::INCOMPLETE
    )
}

fn another(location: &Location) -> String {
    format!("{location} is another backup already: choose another name")
}

/// Whose manifest is under the name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    Nobodys,
    Ours,
    Another,
}

async fn standing(location: &Location, contents: &BackupContents) -> Result<Standing, String> {
    let there = location.get(BackupContents::MANIFEST, MANIFEST_MAX).await?;
    Ok(match there {
        None => Standing::Nobodys,
        Some(theirs) if theirs == contents.manifest => Standing::Ours,
        Some(_) => Standing::Another,
    })
}

async fn tell_of_base(location: &Location, contents: &BackupContents) -> Result<(), String> {
    let Some(base) = &contents.base else { return Ok(()) };
    let Some(name) = &base.beside else {
        let was = base.directory.display();
        say(&format!("it adds to {was}, which does not lie beside it: upload that, too"));
        return Ok(());
    };
    let beside = location.beside(name)?;
    let there = beside.get(BackupContents::MANIFEST, MANIFEST_MAX).await?;
    let is_it = |text| BackupContents::parse(text).is_ok_and(|contents| contents.checksum == base.checksum);
    match there.map(is_it) {
        Some(true) => {}
        Some(false) => say(&format!("it adds to {}, and {beside} is another backup", name.display())),
        None => say(&format!("it adds to {}, which is not at {beside}: upload that, too", name.display())),
    }
    Ok(())
}

impl Upload {
    /// Sends a file, unless the object is there and the same.
    async fn send(&self, key: &Key, file: &BackupFile) -> Result<(), String> {
        if self.is_there(key, file).await? {
            return self.progress.add(file.bytes);
        }
        let location = &self.location;
        let mut source = blocking(|| Source::open(&self.backup.join(&file.path), file))?;
        let attributes = location.attributes(file.crc32c);
        let told = |error: Error| location.told(key, &error);
        if file.bytes <= PART as u64 {
            let all = blocking(|| source.next(PART))?;
            source.refuse_another(file)?;
            let how = PutOptions { attributes, ..PutOptions::default() };
            location.store.put_opts(key, all.into(), how).await.map_err(told)?;
            return self.progress.add(file.bytes);
        }
        let part = PART.max(usize::try_from(file.bytes / PARTS_MAX).unwrap_or(PART) + 1);
        let _one = if part > PART { Some(self.huge.lock().await) } else { None };
        let how = PutMultipartOptions { attributes, ..PutMultipartOptions::default() };
        let upload = location.store.put_multipart_opts(key, how).await.map_err(told)?;
        let mut parts = WriteMultipart::new_with_chunk_size(upload, part);
        match self.send_parts(&mut parts, part, &mut source, file, &told).await {
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
        &self,
        parts: &mut WriteMultipart,
        part: usize,
        source: &mut Source,
        file: &BackupFile,
        told: &(dyn Fn(Error) -> String + Sync),
    ) -> Result<(), String> {
        loop {
            parts.wait_for_capacity(PARTS_AT_ONCE).await.map_err(told)?;
            let stretch = blocking(|| source.next(part))?;
            if stretch.is_empty() {
                return source.refuse_another(file);
            }
            self.progress.add(stretch.len() as u64)?;
            parts.put(stretch);
        }
    }

    /// Whether the object is what it must be: by the checksum that it was stored with, or by reading it.
    async fn is_there(&self, key: &Key, file: &BackupFile) -> Result<bool, String> {
        let location = &self.location;
        let head = GetOptions { head: true, ..GetOptions::default() };
        let found = match location.store.get_opts(key, head).await {
            Ok(found) => found,
            Err(Error::NotFound { .. }) => return Ok(false),
            Err(error) => return Err(location.told(key, &error)),
        };
        if found.meta.size != file.bytes {
            return Ok(false);
        }
        if let Some(stored) = stored_checksum(&found.attributes) {
            return Ok(stored == file.crc32c);
        }
        let (mut sum, mut body) = (0, super::download::Body::of(location, key, file.bytes));
        while let Some(stretch) = body.next().await? {
            sum = crc32c::crc32c_append(sum, &stretch);
        }
        Ok(sum == file.crc32c)
    }
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
        let at = path.display();
        let file = File::open(path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => {
                format!("{at}: the backup's manifest names it, and it is not there: use another one")
            }
            _ => format!("{at}: {error}"),
        })?;
        let found = file.metadata().map_err(|error| format!("{at}: {error}"))?.len();
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
