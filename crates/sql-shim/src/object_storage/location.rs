//! A name in object storage, and the objects below it.

use std::fmt;
use std::ops::Range;
use std::path::{Component, Path};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use object_store::local::LocalFileSystem;
use object_store::path::{Path as Key, PathPart};
use object_store::{
    Attribute, Attributes, Error, GetOptions, GetResult, ObjectStore, ObjectStoreExt as _, ObjectStoreScheme,
    PutMode, PutOptions, PutPayload, parse_url_opts,
};
use url::Url;

/// A request may take this long, with all bytes of both ways. The library's 30 seconds are too short for
/// large parts on a slow line; and what it has against silence counts the time in which a part is sent, too.
const REQUEST: &str = "15 minutes";
/// Attempts to learn who has a name, while others try to take it.
const ATTEMPTS: u32 = 20;
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(200);

/// What the store is told: the environment's words for S3, and no others. The library also takes words as
/// common as `endpoint` and `proxy_url`, which may be there for something else.
fn settings() -> impl Iterator<Item = (String, String)> {
    let ours = [
        ("timeout", REQUEST),
        // Some stores know only single deletes, and one object is all that is deleted.
        ("aws_disable_bulk_delete", "true"),
    ];
    let ours = ours.map(|(name, value)| (name.to_owned(), value.to_owned())).into_iter();
    // Others' settings may be no UTF-8, and do not concern the store.
    let named = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    ours.chain(std::env::vars_os().filter_map(named).filter(|(name, _)| name.starts_with("AWS_")))
}

/// What the checksum of an object's bytes is stored under, with the object.
const CHECKSUM: Attribute = Attribute::Metadata(std::borrow::Cow::Borrowed("untorn-crc32c"));

/// Where a backup is, or is to be.
#[derive(Clone)]
pub struct Location {
    pub store: Arc<dyn ObjectStore>,
    prefix: Key,
    url: Url,
}

impl fmt::Display for Location {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.url.as_str())
    }
}

impl Location {
    /// A URL with the settings that the environment has.
    pub fn of(url: &str) -> Result<Location, String> {
        let url = Url::parse(url).map_err(|error| {
            format!(
                "{url}: {error}; a place in object storage is called s3://BUCKET/NAME or file:///DIRECTORY"
            )
        })?;
        Location::of_url(url)
    }

    fn of_url(url: Url) -> Result<Location, String> {
        if !matches!(url.scheme(), "s3" | "s3a" | "file" | "https") {
            return Err(format!("{url}: this program knows s3:// and file:// only"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(format!("{url}: a name has no ? and no #"));
        }
        let failed = |error: Error| format!("{url}: {error}");
        let (store, prefix): (Arc<dyn ObjectStore>, Key) = match url.scheme() {
            "file" => {
                let (_, prefix) = ObjectStoreScheme::parse(&url).map_err(|error| failed(error.into()))?;
                // What is said to be there must be there after the power fails.
                (Arc::new(LocalFileSystem::new().with_fsync(true)), prefix)
            }
            _ => {
                let (store, prefix) = parse_url_opts(&url, settings()).map_err(failed)?;
                (store.into(), prefix)
            }
        };
        if prefix.as_ref().is_empty() {
            return Err(format!("{url}: it needs a name for the backup behind the bucket's"));
        }
        Ok(Location { store, prefix, url })
    }

    /// The name beside this one.
    pub fn beside(&self, name: &Path) -> Result<Location, String> {
        let name = name.to_str().ok_or_else(|| format!("{} is no UTF-8", name.display()))?;
        let mut url = self.url.clone();
        match url.path_segments_mut() {
            Ok(mut segments) => drop(segments.pop_if_empty().pop().push(name)),
            Err(()) => return Err(format!("{self} has nothing beside it")),
        }
        Location::of_url(url)
    }

    /// The object of a file of the backup.
    pub fn key(&self, file: &Path) -> Result<Key, String> {
        let mut key = self.prefix.clone();
        for part in file.components() {
            let name = match part {
                Component::Normal(name) => name.to_str(),
                _ => None,
            };
            let refused = || format!("{} cannot be an object's name", file.display());
            // As it is: what objects are copied to files by another tool must have the files' names.
            key = key.join(PathPart::parse(name.ok_or_else(refused)?).map_err(|_| refused())?);
        }
        Ok(key)
    }

    /// What is said about an object.
    pub fn told(&self, key: &Key, error: &Error) -> String {
        let relative = key.as_ref().strip_prefix(self.prefix.as_ref()).unwrap_or(key.as_ref());
        format!("{}{relative}: {error}", self.url.as_str().trim_end_matches('/'))
    }

    /// A small object, if there is one.
    pub async fn get(&self, file: &str, most: u64) -> Result<Option<Vec<u8>>, String> {
        let key = self.key(Path::new(file))?;
        let found = match self.store.get(&key).await {
            Ok(found) => found,
            Err(Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(self.told(&key, &error)),
        };
        self.bounded(&key, found, most).await.map(Some)
    }

    /// All bytes of an answer, however many the store said that there are.
    async fn bounded(&self, key: &Key, found: GetResult, most: u64) -> Result<Vec<u8>, String> {
        let (mut bytes, mut stream) = (Vec::new(), found.into_stream());
        while let Some(more) = next(&mut stream).await {
            let more = more.map_err(|error| self.told(key, &error))?;
            if (bytes.len() + more.len()) as u64 > most {
                return Err(format!("{self}: {key} has more bytes than the {most} that it may have"));
            }
            bytes.extend_from_slice(&more);
        }
        Ok(bytes)
    }

    /// A stretch of an object.
    pub async fn range(&self, key: &Key, range: Range<u64>) -> Result<Vec<u8>, String> {
        let most = range.end - range.start;
        let how = GetOptions { range: Some(range.into()), ..GetOptions::default() };
        let found = self.store.get_opts(key, how).await.map_err(|error| self.told(key, &error))?;
        self.bounded(key, found, most).await
    }

    /// Makes a small object; `false` when there is one of this name already, with these bytes or others.
    async fn create(&self, file: &str, bytes: &[u8]) -> Result<bool, String> {
        let key = self.key(Path::new(file))?;
        let how = PutOptions::from(PutMode::Create);
        match self.store.put_opts(&key, PutPayload::from(bytes.to_vec()), how).await {
            Ok(_) => Ok(true),
            Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => Ok(false),
            Err(error) => Err(self.told(&key, &error)),
        }
    }

    /// Makes a small object, or reads the one that is there: `None` when it is the new one. Where two try at
    /// once, S3 refuses one of them before the other's object is there; then it is tried again.
    pub async fn create_or_get(&self, file: &str, bytes: &[u8]) -> Result<Option<Vec<u8>>, String> {
        for _ in 0..ATTEMPTS {
            if self.create(file, bytes).await? {
                // A store that does not know the condition would let two have one name.
                if self.create(file, bytes).await? {
                    return Err(format!(
                        "{self}: the store replaces an object that it was asked to make only if there is none (If-None-Match), \
                         so two uploads might mix: use another store"
                    ));
                }
                return Ok(None);
            }
            if let Some(theirs) = self.get(file, super::MANIFEST_MAX).await? {
                return Ok(Some(theirs));
            }
            tokio::time::sleep(BETWEEN_ATTEMPTS).await;
        }
        Err(format!("{self}/{file}: the store says that it is there, and that it is not"))
    }

    /// Removes a small object, if it is there.
    pub async fn remove(&self, file: &str) -> Result<(), String> {
        let key = self.key(Path::new(file))?;
        match self.store.delete(&key).await {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.told(&key, &error)),
        }
    }

    /// What an object is stored with: its checksum, where the store keeps such things. A directory does not.
    pub fn attributes(&self, crc32c: u32) -> Attributes {
        match self.url.scheme() {
            "file" => Attributes::new(),
            _ => Attributes::from_iter([(CHECKSUM, format!("{crc32c:08x}"))]),
        }
    }
}

async fn next<S: futures_core::Stream + Unpin>(stream: &mut S) -> Option<S::Item> {
    std::future::poll_fn(|context| Pin::new(&mut *stream).poll_next(context)).await
}

/// The checksum that an object was stored with.
pub fn stored_checksum(attributes: &Attributes) -> Option<u32> {
    u32::from_str_radix(attributes.get(&CHECKSUM)?, 16).ok()
}

#[cfg(test)]
mod tests;
