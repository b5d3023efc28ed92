//! What is known of the tables over a restart, in the small file `untorn-statistics`.
//!
//! It is replaced whole, so a crash leaves the one of before: the numbers are old then, and no plan is wrong
//! by that. They stand by the ids of tables and indexes, which are never given twice: what was said of a
//! table that was dropped, truncated or rebuilt since is said of nothing. A file that is missing, damaged or
//! of another version is none, and the numbers are estimated again when they are asked for.
//!
//! An orderly stop also notes how many rows tables have exactly, and which opening of the log it ended. Only
//! the next opening believes that: nothing can have been changed in between, and each has a number of its
//! own, which is durable before its first change is.

use std::collections::HashMap;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use disk::Storage;

use super::{CHANGES_MIN, IndexStatistics, TableStatistics};
use crate::error::Error;
use crate::small_file::{read_whole, write_atomically};

const FILE: &str = "untorn-statistics";
const FIRST_LINE: &str = "untorn statistics 1";
const LAST_LINE: &str = "end";

/// What is known of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Known {
    pub rows: u64,
    /// How many rows there were at the stop.
    pub exactly: Option<u64>,
    pub statistics: Option<Arc<TableStatistics>>,
    /// Nobody knows what has changed since: there was a crash. Not in the file.
    pub may_be_old: bool,
}

/// By the ids of the tables.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Kept {
    tables: HashMap<u64, Known>,
    /// The opening of the log that an orderly stop has ended.
    pub closed: Option<u32>,
}

impl FromIterator<(u64, Known)> for Kept {
    fn from_iter<I: IntoIterator<Item = (u64, Known)>>(known: I) -> Kept {
        Kept { tables: known.into_iter().collect(), closed: None }
    }
}

impl Kept {
    /// What the file says.
    pub fn read(storage: &dyn Storage, directory: &Path) -> Kept {
        let path = directory.join(FILE);
        if !storage.exists(&path).unwrap_or(false) {
            return Kept::default();
        }
        let text = read_whole(storage, &path).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        text.and_then(|text| Kept::parse(&text)).unwrap_or_default()
    }

    /// What is known of a table.
    pub fn take(&mut self, table: u64) -> Option<Known> {
        self.tables.remove(&table)
    }

    /// Exact numbers hold if nothing was open between the stop and this opening of the log.
    pub fn believe_counts_at(&mut self, opening: Option<u32>) {
        let next = self.closed.and_then(|closed| closed.checked_add(1));
        if next.is_none() || next != opening {
            for known in self.tables.values_mut() {
                known.exactly = None;
                known.may_be_old = true;
                // A table that was as good as empty may have been filled, and plans for an empty one are bad
                // for any other: numbers are made when a plan needs them.
                known.statistics.take_if(|statistics| statistics.rows <= CHANGES_MIN);
            }
        }
    }

    /// Replaces the file.
    pub fn write(&self, storage: &dyn Storage, directory: &Path) -> Result<(), Error> {
        write_atomically(storage, &directory.join(FILE), self.to_text().as_bytes())
    }

    fn to_text(&self) -> String {
        let mut text = format!("{FIRST_LINE}\n");
        if let Some(opening) = self.closed {
            let _ = writeln!(text, "closed {opening}");
        }
        let mut ids: Vec<&u64> = self.tables.keys().collect();
        ids.sort_unstable();
        for id in ids {
            let known = &self.tables[id];
            let _ = writeln!(text, "table {id} {}", known.rows);
            if let Some(exactly) = known.exactly {
                let _ = writeln!(text, "exactly {exactly}");
            }
            let Some(statistics) = &known.statistics else { continue };
            let _ = writeln!(text, "taken {} {}", statistics.taken, statistics.rows);
            let mut indexes: Vec<_> = statistics.indexes.iter().collect();
            indexes.sort_unstable_by_key(|(id, _)| **id);
            for (id, index) in indexes {
                let _ = write!(text, "index {id} {} {} {}", index.pages, index.leaf_pages, index.sampled);
                for count in &index.distinct {
                    let _ = write!(text, " {count}");
                }
                text.push('\n');
            }
        }
        text.push_str(LAST_LINE);
        text.push('\n');
        text
    }

    fn parse(text: &str) -> Option<Kept> {
        let mut lines = text.lines();
        if lines.next()? != FIRST_LINE || lines.next_back()? != LAST_LINE {
            return None;
        }
        let mut kept = Kept::default();
        let mut table = None;
        for line in lines {
            let (kind, numbers) = line.split_once(' ')?;
            let numbers: Vec<u64> =
                numbers.split(' ').map(|word| word.parse().ok()).collect::<Option<_>>()?;
            match (kind, &numbers[..]) {
                ("closed", [opening]) => kept.closed = Some(u32::try_from(*opening).ok()?),
                ("table", [id, rows]) => {
                    table = Some(*id);
                    kept.tables.insert(*id, Known { rows: *rows, ..Known::default() });
                }
                ("exactly", [rows]) => kept.tables.get_mut(&table?)?.exactly = Some(*rows),
                ("taken", [taken, rows]) => {
                    let statistics = TableStatistics { rows: *rows, taken: *taken, indexes: HashMap::new() };
                    kept.tables.get_mut(&table?)?.statistics = Some(Arc::new(statistics));
                }
                ("index", [id, pages, leaf_pages, sampled, distinct @ ..]) => {
                    let index = IndexStatistics {
                        distinct: distinct.to_vec(),
                        leaf_pages: *leaf_pages,
                        pages: *pages,
                        sampled: *sampled,
                    };
                    let statistics = kept.tables.get_mut(&table?)?.statistics.as_mut()?;
                    Arc::get_mut(statistics)?.indexes.insert(*id, index);
                }
                _ => return None,
            }
        }
        Some(kept)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn some() -> Kept {
        let index = IndexStatistics { distinct: vec![7, 700], leaf_pages: 9, pages: 10, sampled: 9 };
        let statistics = TableStatistics { rows: 700, taken: 1_800_000_000, indexes: [(41, index)].into() };
        let statistics = Some(Arc::new(statistics));
        let known = Known { rows: 712, statistics, ..Known::default() };
        let other = Known { rows: 3, exactly: Some(4), ..Known::default() };
        Kept { closed: Some(77), ..[(20, known), (21, other)].into_iter().collect() }
    }

    #[test]
    fn what_is_written_is_read() {
        let (storage, directory) = (disk::SimulatedStorage::new(1), Path::new("/data"));
        let storage =
            disk::Environment::storage(&*disk::SimulatedEnvironment::with_storage(1, storage)).clone();
        storage.create_dir_all(directory).unwrap();
        assert_eq!(Kept::read(&*storage, directory), Kept::default());
        some().write(&*storage, directory).unwrap();
        assert_eq!(Kept::read(&*storage, directory), some());
    }

    #[test]
    fn exact_numbers_are_for_the_next_opening_of_the_log() {
        let exactly = |opening| {
            let mut kept = some();
            kept.believe_counts_at(opening);
            kept.take(21).unwrap().exactly
        };
        assert_eq!([77, 78, 79].map(|opening| exactly(Some(opening))), [None, Some(4), None]);
        assert_eq!(exactly(None), None);
    }

    #[test]
    fn after_a_crash_numbers_of_an_empty_table_are_none() {
        let empty = TableStatistics { rows: 0, taken: 1_800_000_000, indexes: HashMap::new() };
        let with_empty = |opening| {
            let mut kept = some();
            let known = Known { statistics: Some(Arc::new(empty.clone())), ..Known::default() };
            kept.tables.insert(22, known);
            kept.believe_counts_at(opening);
            [20, 22].map(|id| kept.take(id).map(|known| (known.statistics.is_some(), known.may_be_old)))
        };
        assert_eq!(with_empty(Some(78)), [Some((true, false)), Some((true, false))]);
        assert_eq!(with_empty(Some(79)), [Some((true, true)), Some((false, true))]);
    }

    #[test]
    fn half_a_file_is_none() {
        let text = some().to_text();
        assert_eq!(Kept::parse(&text), Some(some()));
        for end in 0..text.len() - 1 {
            assert_eq!(Kept::parse(&text[..end]), None, "{}", &text[..end]);
        }
        assert_eq!(Kept::parse(&text.replace("index 41", "index x")), None);
        assert_eq!(Kept::parse(&text.replace("statistics 1", "statistics 2")), None);
    }
}
