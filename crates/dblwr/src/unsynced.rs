//! The files that batches wrote to and left unsynced.

use disk::File;
use std::collections::HashSet;
use std::sync::Arc;

/// The files, each once.
#[derive(Default)]
pub(crate) struct UnsyncedFiles {
    files: Vec<Arc<dyn File>>,
    /// Their addresses: a database may have thousands of them.
    known: HashSet<usize>,
}

/// Tells open files apart as long as they are held.
fn address(file: &Arc<dyn File>) -> usize {
    Arc::as_ptr(file).cast::<()>() as usize
}

impl UnsyncedFiles {
    /// A batch that is over left these unsynced.
    pub(crate) fn add(&mut self, files: Vec<Arc<dyn File>>) {
        for file in files {
            if self.known.insert(address(&file)) {
                self.files.push(file);
            }
        }
    }

    /// All of them, which the caller syncs.
    pub(crate) fn take(&mut self) -> Vec<Arc<dyn File>> {
        self.known.clear();
        std::mem::take(&mut self.files)
    }

    /// This one needs no sync any more.
    pub(crate) fn forget(&mut self, file: &Arc<dyn File>) {
        if self.known.remove(&address(file)) {
            self.files.retain(|known| !Arc::ptr_eq(known, file));
        }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.files.len()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn each_file_is_kept_once_until_it_is_taken_or_forgotten() {
        let env = disk::SimulatedEnvironment::new(1);
        let open = |name: &str| {
            use disk::Storage;
            env.disk().open(Path::new(name), disk::OpenHow::CREATE).unwrap()
        };
        let (one, other) = (open("/one"), open("/other"));
        let mut unsynced = UnsyncedFiles::default();
        unsynced.add(vec![one.clone(), other.clone()]);
        unsynced.add(vec![one.clone()]);
        assert_eq!(unsynced.len(), 2);
        unsynced.forget(&one);
        unsynced.forget(&one);
        assert_eq!(unsynced.len(), 1);
        unsynced.add(vec![one.clone()]);
        assert_eq!(unsynced.take().len(), 2);
        assert_eq!(unsynced.len(), 0);
        unsynced.add(vec![one]);
        assert_eq!(unsynced.take().len(), 1, "written again after it was taken");
    }
}
