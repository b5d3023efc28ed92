//! GET_LOCK and its like: locks on names, which outlive transactions and belong to connections.
//!
//! A connection may have several, and one several times. A connection that waits looks at an event that is
//! set when the lock is free; a circle of waiting connections is an error for the one that closes it, as in
//! MySQL.

use std::collections::HashMap;

use parking_lot::Mutex;
use untorn::engine::Event;

use crate::errors;
use crate::result::SqlError;

/// Longest name, in characters.
const NAME_CHARS_MAX: usize = 64;

/// All named locks of a server.
#[derive(Default)]
pub struct NamedLocks(Mutex<Table>);

#[derive(Default)]
struct Table {
    locks: HashMap<String, Held>,
    /// Who waits for which name.
    waiting: HashMap<u32, String>,
}

struct Held {
    owner: u32,
    times: u32,
    freed: Event,
}

/// What became of an attempt to take a lock.
pub enum Taken {
    /// It is the caller's.
    Yes,
    /// Somebody has it; the event is set when it is free.
    Held(Event),
    /// Everyone in a circle would wait for the next.
    Deadlock,
}

/// What became of giving a lock back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GivenBack {
    /// It was the caller's.
    Yes,
    /// It is somebody else's.
    Foreign,
    /// Nobody has it.
    Unknown,
}

/// The name as it is compared.
///
/// # Errors
/// 3057 for NULL and an empty name, 4163 for one of more than 64 characters.
pub fn folded(name: Option<&str>) -> Result<String, SqlError> {
    match name {
        None | Some("") => Err(errors::error(errors::USER_LOCK_WRONG_NAME, &[&name.unwrap_or("NULL")])),
        Some(name) if name.chars().count() > NAME_CHARS_MAX => {
            Err(errors::error(errors::USER_LOCK_OVERLONG_NAME, &[&name]))
        }
        Some(name) => Ok(name.to_lowercase()),
    }
}

impl NamedLocks {
    /// Takes a lock. With `waits`, a connection that does not get it counts as waiting until it has the lock
    /// or calls [`NamedLocks::stop_waiting`].
    pub fn take(&self, name: &str, connection: u32, waits: bool) -> Taken {
        let mut table = self.0.lock();
        let Some(held) = table.locks.get_mut(name) else {
            let held = Held { owner: connection, times: 1, freed: Event::new() };
            table.locks.insert(name.to_owned(), held);
            table.waiting.remove(&connection);
            return Taken::Yes;
        };
        if held.owner == connection {
            held.times += 1;
            table.waiting.remove(&connection);
            return Taken::Yes;
        }
        let freed = held.freed.clone();
        if waits {
            if table.waits_for(name, connection) {
                table.waiting.remove(&connection);
                return Taken::Deadlock;
            }
            table.waiting.insert(connection, name.to_owned());
        }
        Taken::Held(freed)
    }

    /// The connection waits no longer.
    pub fn stop_waiting(&self, connection: u32) {
        self.0.lock().waiting.remove(&connection);
    }

    /// Gives a lock back, once.
    pub fn give_back(&self, name: &str, connection: u32) -> GivenBack {
        let mut table = self.0.lock();
        match table.locks.get_mut(name) {
            None => GivenBack::Unknown,
            Some(held) if held.owner != connection => GivenBack::Foreign,
            Some(held) => {
                held.times -= 1;
                if held.times == 0
                    && let Some(held) = table.locks.remove(name)
                {
                    held.freed.set();
                }
                GivenBack::Yes
            }
        }
    }

    /// Gives all locks of a connection back. How many it had, each as often as it was taken.
    pub fn give_back_all(&self, connection: u32) -> u64 {
        let mut table = self.0.lock();
        table.waiting.remove(&connection);
        let mine = table.locks.extract_if(|_, held| held.owner == connection);
        mine.map(|(_, held)| {
            held.freed.set();
            u64::from(held.times)
        })
        .sum()
    }

    /// The connection that has a lock.
    pub fn owner(&self, name: &str) -> Option<u32> {
        self.0.lock().locks.get(name).map(|held| held.owner)
    }
}

impl Table {
    /// Whether those who have the lock wait for this connection in the end.
    fn waits_for(&self, name: &str, connection: u32) -> bool {
        let mut name = name;
        // Each waits for one lock, and nobody waits in a circle: the walk ends.
        for _ in 0..=self.waiting.len() {
            match self.locks.get(name) {
                Some(held) if held.owner == connection => return true,
                Some(held) => match self.waiting.get(&held.owner) {
                    Some(next) => name = next,
                    None => return false,
                },
                None => return false,
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_one_connections_until_given_back_as_often_as_taken() {
        let locks = NamedLocks::default();
        assert!(matches!(locks.take("a", 1, true), Taken::Yes));
        assert!(matches!(locks.take("a", 1, true), Taken::Yes));
        let Taken::Held(freed) = locks.take("a", 2, true) else { panic!("taken twice") };
        assert_eq!(locks.give_back("a", 2), GivenBack::Foreign);
        assert_eq!(locks.give_back("a", 1), GivenBack::Yes);
        assert!(!freed.is_set());
        assert_eq!(locks.give_back("a", 1), GivenBack::Yes);
        assert!(freed.is_set());
        assert_eq!(locks.give_back("a", 1), GivenBack::Unknown);
        assert!(matches!(locks.take("a", 2, false), Taken::Yes));
        assert_eq!(locks.owner("a"), Some(2));
    }

    #[test]
    fn the_end_of_a_connection_frees_its_locks() {
        let locks = NamedLocks::default();
        for name in ["a", "b", "b"] {
            assert!(matches!(locks.take(name, 1, false), Taken::Yes));
        }
        let Taken::Held(freed) = locks.take("b", 2, false) else { panic!("taken twice") };
        assert_eq!(locks.give_back_all(1), 3);
        assert!(freed.is_set() && locks.owner("a").is_none());
    }

    #[test]
    fn a_circle_is_found_by_the_one_that_closes_it() {
        let locks = NamedLocks::default();
        for (name, connection) in [("a", 1), ("b", 2), ("c", 3)] {
            assert!(matches!(locks.take(name, connection, false), Taken::Yes));
        }
        assert!(matches!(locks.take("b", 1, true), Taken::Held(_)));
        assert!(matches!(locks.take("c", 2, true), Taken::Held(_)));
        assert!(matches!(locks.take("a", 3, true), Taken::Deadlock));
        // Who does not wait closes no circle, and who gave up is in none.
        assert!(matches!(locks.take("a", 3, false), Taken::Held(_)));
        locks.stop_waiting(2);
        assert!(matches!(locks.take("a", 3, true), Taken::Held(_)));
    }
}
