//! How fast recoveries of this directory were, in the small file `untorn-recovery-rates`.
//!
//! From them the page cleaner knows how much it may leave to a restart ([`pagestore::RecoveryRates`] has the
//! form). The file is a hint, and may be missing, damaged or another machine's: then the cleaner reckons with
//! guesses, until the next recovery. It is written after a recovery that was long enough to tell.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use disk::Storage;
use pagestore::{PageStore, RecoveryRates};

use crate::small_file::{read_hint, write_atomically};

const FILE: &str = "untorn-recovery-rates";

/// What recoveries before this one have shown.
pub(crate) fn read(storage: &dyn Storage, directory: &Path) -> RecoveryRates {
    RecoveryRates::parse(&read_hint(storage, &directory.join(FILE)).unwrap_or_default())
}

/// Keeps what this start's recovery has added; before it, this many pages were compared with their copies in
/// this time. A directory that is full does without.
pub(crate) fn keep(directory: &Path, store: &Arc<PageStore>, (compared, took): (usize, Duration)) {
    store.note_copies_compared(compared as u64, took);
    write_learned(directory, store);
    keep_when_applied(directory, store);
}

/// The same of pages that recovery has left for later, when the last one of them has its changes.
fn keep_when_applied(directory: &Path, store: &Arc<PageStore>) {
    let applied = store.all_applied();
    if applied.is_set() {
        return;
    }
    let (directory, of) = (directory.to_owned(), Arc::downgrade(store));
    let keep = async move {
        applied.wait().await;
        if let Some(store) = of.upgrade() {
            write_learned(&directory, &store);
        }
    };
    store.environment().spawn_blocking("recovery rates", Box::pin(keep));
}

fn write_learned(directory: &Path, store: &PageStore) {
    let Some(rates) = store.take_recovery_rates() else { return };
    let path = directory.join(FILE);
    if let Err(error) =
        write_atomically(&**store.environment().storage(), &path, rates.to_string().as_bytes())
    {
        tracing::warn!("{} cannot be written: {error}", path.display());
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use disk::SimulatedStorage;

    #[test]
    fn the_file_is_a_hint() {
        let (storage, directory) = (SimulatedStorage::new(1), Path::new("/data"));
        let storage =
            disk::Environment::storage(&*disk::SimulatedEnvironment::with_storage(1, storage)).clone();
        storage.create_dir_all(directory).unwrap();
        let write = |bytes: &[u8]| write_atomically(&*storage, &directory.join(FILE), bytes).unwrap();
        assert_eq!(read(&*storage, directory), RecoveryRates::default());
        let rates = RecoveryRates::parse("log 50000000\npages 120 130\n");
        write(rates.to_string().as_bytes());
        assert_eq!(read(&*storage, directory), rates);
        for nonsense in [&[0xff; 40][..], b"", b"pages many", &[b'1'; 5000]] {
            write(nonsense);
            assert_eq!(read(&*storage, directory), RecoveryRates::default());
        }
    }
}
