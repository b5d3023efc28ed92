//! The tablespaces there are, and how large their files are, for information_schema.

use std::path::Path;

pub use disk::{FileIo, FileOperations, FileSize, Operations};

use crate::database::Database;
use crate::private;

/// One tablespace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tablespace {
    /// Its number.
    pub space: u32,
    /// `database/table` as its file is called, or `innodb_undo_001`.
    pub name: String,
    /// The table whose it is: database and name.
    pub table: Option<(String, String)>,
    /// Flags of page 0; 0 as long as the file was not needed.
    pub flags: u32,
    /// Size of its file. `None`: it was discarded, or the file cannot be looked at.
    pub size: Option<FileSize>,
}

impl Database {
    /// The undo tablespace, and those of the tables that clients may name. Files are looked at one by one, as
    /// the iterator comes to them.
    #[doc(hidden)]
    pub fn tablespaces(&self) -> impl Iterator<Item = Tablespace> + use<> {
        let undo = self.0.store.space(txn::UNDO_SPACE).map(|info| {
            let file = info.path.file_name().unwrap_or_default();
            (info.id, format!("innodb_{}", file.display()), None)
        });
        let mut tables = self.all_tables();
        tables.retain(|table| !private::is_private(&table.database));
        let of_tables = tables.into_iter().map(|table| {
            let name = table.file().with_extension("").display().to_string();
            (table.def.space, name, Some((table.database.clone(), table.name.clone())))
        });
        let made_here = pagestore::fsp::Layout::new(self.0.store.page_size()).flags();
        let database = self.clone();
        undo.into_iter().chain(of_tables).map(move |(space, name, table)| {
            let info = database.0.store.space(space);
            let storage = database.0.environment.storage();
            let size = info.as_ref().and_then(|info| storage.file_size(&info.path).ok());
            let flags = info.map_or(0, |info| match info.flags {
                // Made since the start: as files are made here.
                0 if info.pages > 0 => made_here,
                flags => flags,
            });
            Tablespace { space, name, table, flags, size }
        })
    }

    /// What was done with each file since it was opened, and with those that are closed again.
    #[doc(hidden)]
    pub fn file_io(&self) -> Vec<FileIo> {
        self.0.environment.storage().file_io()
    }
}

/// What a file is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum FileUse {
    /// A tablespace, that of the undo logs too.
    Data,
    /// The redo log.
    Log,
    /// Copies of pages that are being written.
    Doublewrite,
    /// The buffer pool extension and its map.
    Extension,
    /// What a sort or a group has put aside.
    Sort,
    /// All others: the catalog, dumps, those of a backup.
    Other,
}

impl FileUse {
    /// By the file's name; a buffer pool extension has any that it was given.
    pub fn of(path: &Path, extension: Option<&Path>) -> FileUse {
        if let Some(extension) = extension
            && path.as_os_str().as_encoded_bytes().starts_with(extension.as_os_str().as_encoded_bytes())
        {
            return FileUse::Extension;
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        match &*name {
            name if name.ends_with(".ibd") || name.starts_with("undo_") => FileUse::Data,
            name if name.ends_with(".dblwr") || name.ends_with(".bdblwr") => FileUse::Doublewrite,
            name if name.starts_with("#untorn_redo") => FileUse::Log,
            name if name.starts_with(crate::sort::TEMPORARY_PREFIX) => FileUse::Sort,
            _ => FileUse::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_known_by_their_names() {
        for (name, wanted) in [
            ("/d/shop/cart.ibd", FileUse::Data),
            ("/d/undo_001", FileUse::Data),
            ("/d/#untorn_redo", FileUse::Log),
            ("/d/#ib_16384_0.dblwr", FileUse::Doublewrite),
            ("/d/#ib_16384_0.bdblwr", FileUse::Doublewrite),
            ("/nvme/cache", FileUse::Extension),
            ("/nvme/cache.map1", FileUse::Extension),
            ("/d/#untorn-sort-17-4", FileUse::Sort),
            ("/d/untorn.catalog", FileUse::Other),
        ] {
            assert_eq!(FileUse::of(Path::new(name), Some(Path::new("/nvme/cache"))), wanted, "{name}");
        }
    }
}
