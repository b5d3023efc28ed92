//! Errors of the storage as MySQL's: the number a client branches on, MySQL's words first, then what this
//! engine knows more (file, page, cause) and what to do.
//!
//! | what happened | error | InnoDB's way to it |
//! |---|---|---|
//! | a table's file cannot grow: file system or quota full | 1114 | `DB_OUT_OF_FILE_SPACE`, `HA_ERR_RECORD_FILE_FULL` |
//! | any other write finds the file system full | 1021 | `DB_OUT_OF_DISK_SPACE`, `HA_ERR_DISK_FULL` |
//! | the device or the file system fails | 1030 with the operating system's number | `DB_IO_ERROR` |
//! | a page is not what it should be | 1034 | `DB_CORRUPTION`, `HA_ERR_CRASHED` |
//! | changes refused after an earlier failure of a write | 1030 with [`GENERIC`] | InnoDB ends the process |
//!
//! Each of them is also a line of the server's log: somebody has to look at the machine.

use std::fmt::Display;
use std::path::Path;

use untorn::engine::{DiskError, RedoError, StoreError};

use crate::errors::{self, error};
use crate::result::SqlError;

/// `HA_ERR_CRASHED`: the file is damaged.
pub(super) const CRASHED: u16 = 126;
/// `HA_ERR_GENERIC`: nothing nearer.
pub(super) const GENERIC: u16 = 168;

/// Error 1030 with a number of the storage engine or of the operating system.
pub(super) fn got_error(number: impl Into<i32>, why: &dyn Display) -> SqlError {
    tracing::error!("{why}");
    error(errors::GET_ERRNO, &[&number.into(), why])
}

/// MySQL's text of `code`, followed by what is known more.
pub(super) fn explained(code: u16, arguments: &[&dyn Display], why: &dyn Display) -> SqlError {
    tracing::error!("{why}");
    let plain = error(code, arguments);
    SqlError { message: format!("{}: {why}", plain.message).into(), ..plain }
}

/// The table whose file this is.
fn table_of(file: &Path) -> String {
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    untorn::name_of_file(&name)
}

/// A call to the storage that failed.
pub(super) fn disk(cause: &DiskError) -> SqlError {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    let number = cause.io().raw_os_error();
    if matches!(cause.kind(), StorageFull | QuotaExceeded) {
        tracing::error!("{cause}");
        // MySQL would wait there; the statement ends here, undone.
        let plain = error(
            errors::DISK_FULL,
            &[&cause.path().display(), &number.unwrap_or_default(), &"No space left on device"],
        );
        let said = plain
            .message
            .replace("waiting for someone to free some space...", "free some space and try again");
        return SqlError { message: said.into(), ..plain };
    }
    got_error(number.unwrap_or(i32::from(GENERIC)), cause)
}

/// An error of pages and tablespaces.
pub(super) fn store(cause: &StoreError) -> SqlError {
    match cause {
        StoreError::NoSpace { file, why } => explained(errors::RECORD_FILE_FULL, &[&table_of(file)], why),
        StoreError::Corrupt { file, .. } => explained(errors::NOT_KEYFILE, &[&table_of(file)], cause),
        StoreError::Io(inner) => disk(inner),
        StoreError::Redo(inner) => redo(inner),
        StoreError::Tablespace { file, .. } => {
            explained(errors::TABLESPACE_MISSING, &[&table_of(file)], cause)
        }
        other => got_error(GENERIC, other),
    }
}

/// An error of the redo log.
pub(super) fn redo(cause: &RedoError) -> SqlError {
    match cause {
        RedoError::Io(inner) => disk(inner),
        RedoError::Damaged { .. } => got_error(CRASHED, cause),
        other => got_error(GENERIC, other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_name_their_tables() {
        let of = |path: &str| table_of(Path::new(path));
        assert_eq!(of("/data/shop/cart.ibd"), "cart");
        assert_eq!(of("/data/shop/a@002db.ibd"), "a-b");
        assert_eq!(of("/data/undo_001"), "undo_001");
    }

    #[test]
    fn what_the_operating_system_said_decides() {
        let error = |number| {
            let source = std::io::Error::from_raw_os_error(number);
            disk(&DiskError::at("write", "/data/shop/cart.ibd", 0, 512, source))
        };
        assert_eq!(error(libc::ENOSPC).code, 1021);
        assert_eq!(error(libc::EDQUOT).code, 1021);
        let failed = error(libc::EIO);
        assert_eq!(failed.code, 1030);
        assert!(failed.message.starts_with("Got error 5 - 'cannot write /data/shop/cart.ibd"), "{failed}");
    }
}
