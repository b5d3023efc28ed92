//! Definitions and backups keep out of each other's way.
//!
//! A change of definitions passes before it takes its first metadata lock, and is inside until it has let go
//! of the last one; a backup waits until nobody is inside, and then keeps everybody out. A statement that is
//! inside may pass again, because no backup can have begun. Nobody waits here with a lock that others need: a
//! definition has none yet, and a backup takes none. So there is nothing to search for deadlocks.

use std::sync::Arc;

use disk::{Event, Wait};
use parking_lot::Mutex;

#[derive(Default)]
pub(crate) struct Gate(Mutex<Inside>);

#[derive(Default)]
struct Inside {
    definitions: usize,
    backup: bool,
    /// Set when somebody leaves, if anybody waits.
    left: Option<Event>,
}

/// A change of definitions is inside until this is dropped.
pub(crate) struct DefinitionPass(Arc<Gate>);

/// A backup is inside until this is dropped.
pub(crate) struct BackupPass(Arc<Gate>);

impl Inside {
    fn wait(&mut self) -> Wait {
        Wait::new(self.left.get_or_insert_with(Event::new).clone())
    }

    fn wake(&mut self) {
        if let Some(event) = self.left.take() {
            event.set();
        }
    }
}

impl Gate {
    pub fn pass_definition(self: &Arc<Gate>) -> Result<DefinitionPass, Wait> {
        let mut inside = self.0.lock();
        if inside.backup {
            return Err(inside.wait());
        }
        inside.definitions += 1;
        Ok(DefinitionPass(self.clone()))
    }

    pub fn pass_backup(self: &Arc<Gate>) -> Result<BackupPass, Wait> {
        let mut inside = self.0.lock();
        if inside.backup || inside.definitions > 0 {
            return Err(inside.wait());
        }
        inside.backup = true;
        Ok(BackupPass(self.clone()))
    }
}

impl Drop for DefinitionPass {
    fn drop(&mut self) {
        let mut inside = self.0.0.lock();
        inside.definitions -= 1;
        if inside.definitions == 0 {
            inside.wake();
        }
    }
}

impl Drop for BackupPass {
    fn drop(&mut self) {
        let mut inside = self.0.0.lock();
        inside.backup = false;
        inside.wake();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_backup_waits_for_definitions_and_keeps_new_ones_out() {
        let gate = Arc::new(Gate::default());
        let outer = gate.pass_definition().ok().unwrap();
        let waits = gate.pass_backup().err().unwrap();
        let nested = gate.pass_definition().ok().unwrap();
        drop(outer);
        assert!(!waits.event().is_set(), "the statement is still inside");
        drop(nested);
        assert!(waits.event().is_set());
        let backup = gate.pass_backup().ok().unwrap();
        assert!(gate.pass_backup().is_err());
        let waits = gate.pass_definition().err().unwrap();
        drop(backup);
        assert!(waits.event().is_set());
        assert!(gate.pass_definition().is_ok());
    }
}
