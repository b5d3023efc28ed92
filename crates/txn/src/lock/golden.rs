//! Golden scripts of the lock table: transactions ask for locks on the entries of one index, and the script
//! says who gets them, who waits for whom and who is the victim.
//!
//! Entries are numbers, and `end` is the supremum. Commands:
//!
//! ```text
//! T1 locks 10 X record              modes S and X; extents record, gap, next-key
//! T1 inserts 15 before 20           the wish to insert; then 15 inherits the gap locks of 20
//! purge removes 10 before 20        the locks of 10 become gap locks of 20
//! T1 has changed 5 rows             its weight when a victim is chosen
//! T1 at read committed              its record locks are not inherited as gap locks
//! T1 ends                           commit or rollback: all its locks go
//! show                              every queue, holders first
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use disk::sync::atomic::Ordering;

use super::description::LockDescription;
use super::mode::{Extent, LockMode, WaitPolicy};
use super::outside_waits::{RowOwner, RowWaits};
use super::owner::Owner;
use super::shard::Entry;
use super::table::{Acquired, LockTable};
use super::target::LockTarget;
use super::wait::{LockWait, WaitState};

const INDEX: u64 = 1;
const END: &str = "end";

struct Session {
    name: String,
    owner: Arc<Owner>,
    /// What it waits for: the request, the entry that it inserts, and its successor.
    wait: Option<(LockWait, Option<(String, String)>)>,
}

struct Machine {
    table: Arc<LockTable>,
    sessions: BTreeMap<String, Session>,
    /// The numbers that were named; the end comes last.
    entries: BTreeSet<u64>,
}

fn target(entry: &str) -> LockTarget {
    match entry {
        END => LockTarget::supremum(INDEX),
        number => LockTarget { index: INDEX, place: number.parse::<u64>().expect("an entry") << 2 | 1 },
    }
}

fn mode(strength: &str, extent: &str) -> LockMode {
    let extent = match extent {
        "record" => Extent::Record,
        "gap" => Extent::Gap,
        "next-key" => Extent::NextKey,
        other => panic!("no extent: {other}"),
    };
    LockMode::new(strength == "X", extent)
}

impl Machine {
    fn new() -> Machine {
        Machine { table: LockTable::new(1), sessions: BTreeMap::new(), entries: BTreeSet::new() }
    }

    fn run(&mut self, command: &str) -> String {
        let words: Vec<&str> = command.split(' ').collect();
        self.entries.extend(words.iter().filter_map(|word| word.parse::<u64>().ok()));
        let mut said = match words[..] {
            ["show"] => return self.show(),
            ["purge", "removes", removed, "before", successor] => {
                self.table.bequeath(target(removed), target(successor));
                String::new()
            }
            [name, "locks", entry, strength, extent] => {
                let owner = self.owner(name);
                let mode = mode(strength, extent);
                let asked = self.table.request(
                    &owner,
                    target(entry),
                    mode,
                    WaitPolicy::Wait,
                    &LockDescription::default,
                );
                self.answer(name, asked, None)
            }
            [name, "inserts", entry, "before", successor] => {
                let owner = self.owner(name);
                let asked = self.table.request_insert(&owner, target(successor), &LockDescription::default);
                self.answer(name, asked, Some((entry.to_owned(), successor.to_owned())))
            }
            [name, "has", "changed", rows, "rows"] => {
                let rows = rows.parse().expect("a number");
                self.owner(name).undo_records.store(rows, Ordering::Relaxed);
                String::new()
            }
            [name, "at", "read", "committed"] => {
                self.owner(name).record_locks_only.store(true, Ordering::Relaxed);
                String::new()
            }
            [name, "ends"] => {
                let owner = self.owner(name);
                self.table.release_all(&owner);
                String::new()
            }
            _ => panic!("no command: {command}"),
        };
        self.settle(&mut said);
        said
    }

    fn owner(&mut self, name: &str) -> Arc<Owner> {
        let fresh = || Session { name: name.to_owned(), owner: Arc::new(Owner::default()), wait: None };
        self.sessions.entry(name.to_owned()).or_insert_with(fresh).owner.clone()
    }

    fn name_of(&self, owner: &Arc<Owner>) -> &str {
        let found = self.sessions.values().find(|session| Arc::ptr_eq(&session.owner, owner));
        found.map_or("?", |session| &session.name)
    }

    fn answer(&mut self, name: &str, asked: Acquired, inserts: Option<(String, String)>) -> String {
        match asked {
            Acquired::Granted { new } => {
                match &inserts {
                    Some((entry, successor)) => self.table.inherit_gap(target(successor), target(entry)),
                    None if !new => return format!("{name} has it\n"),
                    None => {}
                }
                format!("{name} granted\n")
            }
            Acquired::Wait(wait) => {
                let owner = RowOwner(self.owner(name));
                let rows = RowWaits(Arc::downgrade(&self.table));
                let wants = rows.wait_of(&owner).expect("it waits");
                let mut blockers: Vec<&str> =
                    Vec::from_iter(rows.blockers(&owner, &wants).iter().map(|other| self.name_of(&other.0)));
                blockers.sort_unstable();
                let said = format!("{name} waits for {}\n", blockers.join(", "));
                // As a future that awaits it does first.
                wait.search();
                if let Some(session) = self.sessions.get_mut(name) {
                    session.wait = Some((wait, inserts));
                }
                said
            }
            Acquired::Refused => panic!("nobody has asked for that"),
        }
    }

    /// Says whose wait has ended, until no other ends by that.
    fn settle(&mut self, said: &mut String) {
        loop {
            let over = |session: &&mut Session| {
                session.wait.as_ref().is_some_and(|(wait, _)| wait.cell.state() != WaitState::Waiting)
            };
            let Some(session) = self.sessions.values_mut().find(over) else { return };
            let Some((mut wait, inserts)) = session.wait.take() else { return };
            let name = &session.name;
            match wait.finish() {
                WaitState::Granted => {
                    if let Some((entry, successor)) = inserts {
                        self.table.inherit_gap(target(&successor), target(&entry));
                    }
                    *said += &format!("{name} granted\n");
                }
                WaitState::Retry => *said += &format!("{name} must look again\n"),
                WaitState::Deadlock => {
                    *said += &format!("{name} is the victim of a deadlock\n");
                    self.table.release_all(&session.owner);
                }
                other => panic!("{name}: {other:?}"),
            }
        }
    }

    fn show(&self) -> String {
        let named = self.entries.iter().map(u64::to_string).chain([END.to_owned()]);
        let lines = named.filter_map(|entry| {
            let requests = self.requests(target(&entry));
            let line = |(name, mode, granted): &(String, LockMode, bool)| {
                format!("{name} {}{}", mode.describe(), if *granted { "" } else { ", waiting" })
            };
            let requests: Vec<String> = requests.iter().map(line).collect();
            (!requests.is_empty()).then(|| format!("{entry}: {}", requests.join("; ")))
        });
        let lines: Vec<String> = lines.collect();
        if lines.is_empty() { "no locks".to_owned() } else { lines.join("\n") }
    }

    fn requests(&self, target: LockTarget) -> Vec<(String, LockMode, bool)> {
        if let Entry::Single(single) = self.table.shard(target.place).entry(target.place) {
            let owner = self.sessions.values().find(|session| session.owner.number() == single.owner);
            return vec![(owner.map_or("?".to_owned(), |owner| owner.name.clone()), single.mode, true)];
        }
        let entries = self.table.requests(target).into_iter();
        entries.map(|entry| (self.name_of(&entry.owner).to_owned(), entry.mode, entry.granted)).collect()
    }
}

#[test]
fn golden_scripts() {
    golden::play(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/locks"), || {
        let mut machine = Machine::new();
        move |command: &str| machine.run(command)
    });
}
