//! Numbers for owners, so that a lock need not carry a pointer.
//!
//! An owner gets a number with its first lock and gives it back when it is dropped. An owner with locks is
//! kept alive by itself (`Held::alive`), so a number in the lock table always has its owner.

use std::sync::{Arc, Weak};

use disk::sync::Mutex;

use super::owner::Owner;

/// All owners that have, or have had, locks.
#[derive(Default)]
pub(super) struct Owners(Mutex<Numbers>);

#[derive(Default)]
struct Numbers {
    /// Number `n` is at `n - 1`: zero stands for an owner without one.
    owners: Vec<Weak<Owner>>,
    free: Vec<u32>,
}

/// An owner's number; given back when dropped.
pub(super) struct Registered {
    number: u32,
    owners: Arc<Owners>,
}

impl Registered {
    pub fn number(&self) -> u32 {
        self.number
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        let mut numbers = self.owners.0.lock();
        numbers.owners[self.number as usize - 1] = Weak::new();
        numbers.free.push(self.number);
    }
}

impl Owners {
    pub fn register(self: &Arc<Self>, owner: &Arc<Owner>) -> Registered {
        let mut numbers = self.0.lock();
        let number = match numbers.free.pop() {
            Some(number) => {
                numbers.owners[number as usize - 1] = Arc::downgrade(owner);
                number
            }
            None => {
                numbers.owners.push(Arc::downgrade(owner));
                numbers.owners.len() as u32
            }
        };
        Registered { number, owners: self.clone() }
    }

    /// The owner of a lock that is in the table.
    pub fn get(&self, number: u32) -> Option<Arc<Owner>> {
        let owner = self.find(number);
        debug_assert!(owner.is_some(), "an owner with locks has gone");
        owner
    }

    /// The owner with this number, if it is still there.
    pub fn find(&self, number: u32) -> Option<Arc<Owner>> {
        self.0.lock().owners.get((number as usize).wrapping_sub(1)).and_then(Weak::upgrade)
    }

    /// All of them.
    pub fn all(&self) -> Vec<Arc<Owner>> {
        self.0.lock().owners.iter().filter_map(Weak::upgrade).collect()
    }
}
