//! A name in object storage, and the objects below it.

use std::fmt;
use std::path::{Component, Path};
use std::sync::Arc;

use object_store::path::{Path as Key, PathPart};
use object_store::{
    Attribute, Attributes, Error, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, PutPayload,
    parse_url_opts,
};
use url::Url;

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
        // Others' settings may be no UTF-8, and do not concern the store.
        let settings = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        let (store, prefix) = parse_url_opts(&url, settings).map_err(|error| format!("{url}: {error}"))?;
        if prefix.as_ref().is_empty() {
            return Err(format!("{url}: it needs a name for the backup behind the bucket's"));
        }
        Ok(Location { store: store.into(), prefix, url })
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
        if found.meta.size > most {
            return Err(format!(
                "{self}/{file}: it has {} bytes, which is too much for one",
                found.meta.size
            ));
        }
        let bytes = found.bytes().await.map_err(|error| self.told(&key, &error))?;
        Ok(Some(bytes.into()))
    }

    /// Makes a small object; `false` when there is one of this name already.
    pub async fn create(&self, file: &str, bytes: Vec<u8>) -> Result<bool, String> {
        let key = self.key(Path::new(file))?;
        let how = PutOptions::from(PutMode::Create);
        match self.store.put_opts(&key, PutPayload::from(bytes), how).await {
            Ok(_) => Ok(true),
            Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => Ok(false),
            Err(error) => Err(self.told(&key, &error)),
        }
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

/// The checksum that an object was stored with.
pub fn stored_checksum(attributes: &Attributes) -> Option<u32> {
    u32::from_str_radix(attributes.get(&CHECKSUM)?, 16).ok()
}
