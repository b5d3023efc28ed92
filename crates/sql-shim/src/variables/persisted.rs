//! Values that SET PERSIST keeps across restarts: `mysqld-auto.cnf` in the data directory, in MySQL's form.
//!
//! The file is JSON: `mysql_dynamic_variables` maps names to objects whose `Value` is the text. It is
//! replaced whole (new file, sync, rename, sync of the directory), so a crash leaves the old or the new one.
//! As in MySQL it is read after the option file and the command line and wins over them.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The file's name in the data directory.
pub const FILE_NAME: &str = "mysqld-auto.cnf";
const VERSION: u32 = 2;

#[derive(Debug, Default, Serialize, Deserialize)]
struct Contents {
    #[serde(rename = "Version")]
    version: u32,
    #[serde(default)]
    mysql_dynamic_variables: BTreeMap<String, Entry>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    #[serde(rename = "Value")]
    value: String,
}

/// The file of a data directory.
pub fn path(datadir: &Path) -> PathBuf {
    datadir.join(FILE_NAME)
}

/// The values kept, by name. No file: none.
///
/// # Errors
/// A file that cannot be read or understood.
pub fn read(datadir: &Path) -> io::Result<BTreeMap<String, String>> {
    let text = match fs::read(path(datadir)) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) => return Err(error),
    };
    let contents: Contents = serde_json::from_slice(&text)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?;
    Ok(contents.mysql_dynamic_variables.into_iter().map(|(name, entry)| (name, entry.value)).collect())
}

/// Keeps one more value, durably.
///
/// # Errors
/// When the file cannot be written; it is as before then.
pub fn keep(datadir: &Path, name: &str, value: &str) -> io::Result<()> {
    let mut values = read(datadir)?;
    values.insert(name.to_owned(), value.to_owned());
    write(datadir, values)
}

/// Keeps the value of a variable no longer, durably.
///
/// # Errors
/// As [`keep`].
pub fn forget(datadir: &Path, name: &str) -> io::Result<()> {
    let mut values = read(datadir)?;
    match values.remove(name) {
        Some(_) => write(datadir, values),
        None => Ok(()),
    }
}

fn write(datadir: &Path, values: BTreeMap<String, String>) -> io::Result<()> {
    let entries = values.into_iter().map(|(name, value)| (name, Entry { value }));
    let contents = Contents { version: VERSION, mysql_dynamic_variables: entries.collect() };
    let text = serde_json::to_vec_pretty(&contents).map_err(io::Error::other)?;
    let fresh = datadir.join(format!("{FILE_NAME}.new"));
    let mut file = File::create(&fresh)?;
    file.write_all(&text)?;
    file.sync_all()?;
    fs::rename(&fresh, path(datadir))?;
    File::open(datadir)?.sync_all()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_is_kept_is_read_again() {
        let directory = std::env::temp_dir().join(format!("untorn-persisted-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        assert!(read(&directory).unwrap().is_empty());
        keep(&directory, "innodb_doublewrite", "ON").unwrap();
        keep(&directory, "max_connections", "7").unwrap();
        keep(&directory, "innodb_doublewrite", "AUTO").unwrap();
        let values = read(&directory).unwrap();
        assert_eq!(values.len(), 2);
        assert_eq!(
            (values["innodb_doublewrite"].as_str(), values["max_connections"].as_str()),
            ("AUTO", "7")
        );
        forget(&directory, "max_connections").unwrap();
        forget(&directory, "max_connections").unwrap();
        assert_eq!(read(&directory).unwrap().into_keys().collect::<Vec<_>>(), ["innodb_doublewrite"]);
        fs::write(path(&directory), b"{").unwrap();
        assert!(read(&directory).is_err());
        fs::remove_dir_all(&directory).unwrap();
    }
}
