//! What the buffer pool holds, by index: for the dashboard.
//!
//! An estimate from a sample. Each look takes other frames; the error of a part of a tenth of the pool is
//! two hundredths of the pool at most, nineteen times of twenty.

use std::collections::HashMap;

use serde::Serialize;

use crate::database::Database;
use crate::private::is_private;

/// Frames that are looked at.
const SAMPLE: usize = 1024;
/// Parts that are told; the others are one.
const PARTS_MAX: usize = 15;

/// A part of the pool.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PoolPart {
    /// Table and index, or what else the pages are.
    pub name: String,
    /// Of the pages in the pool.
    pub share: f64,
    /// Of its pages, how many are changed and not in their file.
    pub dirty: f64,
}

/// Pages that were found of something.
#[derive(Default, Clone, Copy)]
struct Found {
    pages: usize,
    dirty: usize,
}

impl Database {
    /// What the pool holds, the largest part first; another `turn` looks at other frames.
    #[doc(hidden)]
    pub fn pool_contents(&self, turn: usize) -> Vec<PoolPart> {
        let sample = self.0.store.sample_pool(SAMPLE, turn);
        let mut found: HashMap<(u32, Option<u64>), Found> = HashMap::new();
        for page in &sample {
            let part = found.entry((page.id.space, page.index)).or_default();
            part.pages += 1;
            part.dirty += usize::from(page.dirty);
        }
        let mut named: HashMap<String, Found> = HashMap::new();
        let names = self.names_of(&found);
        for (place, part) in found {
            let name = names.get(&place).cloned().unwrap_or_else(|| match place.0 {
                txn::UNDO_SPACE => "undo logs".to_owned(),
                space => format!("tablespace {space}"),
            });
            let sum = named.entry(name).or_default();
            sum.pages += part.pages;
            sum.dirty += part.dirty;
        }
        parts(named, sample.len())
    }

    /// Names of those of the places that are in tables.
    fn names_of<V>(&self, places: &HashMap<(u32, Option<u64>), V>) -> HashMap<(u32, Option<u64>), String> {
        let mut spaces: HashMap<u32, Vec<Option<u64>>> = HashMap::new();
        for (space, index) in places.keys() {
            spaces.entry(*space).or_default().push(*index);
        }
        let mut names = HashMap::new();
        for table in self.all_tables() {
            let Some(indexes) = spaces.get(&table.def.space) else { continue };
            let table_name = match is_private(&table.database) {
                true => "temporary tables".to_owned(),
                false => format!("{}.{}", table.database, table.name),
            };
            let rows = &table.rows;
            let trees =
                std::iter::once(&rows.clustered).chain(rows.secondaries.iter().map(|index| &index.tree));
            let trees: Vec<_> = trees.collect();
            for index in indexes {
                let tree = trees.iter().find(|tree| Some(tree.def().id) == *index);
                let of_table = match tree {
                    Some(tree) => format!("{table_name} {}", tree.def().name),
                    None => format!("{table_name} (long values, free space)"),
                };
                names.insert((table.def.space, *index), of_table);
            }
        }
        names
    }
}

fn parts(named: HashMap<String, Found>, pages: usize) -> Vec<PoolPart> {
    let mut sorted: Vec<_> = named.into_iter().collect();
    sorted.sort_by(|(a, of_a), (b, of_b)| of_b.pages.cmp(&of_a.pages).then_with(|| a.cmp(b)));
    let rest = sorted.split_off(sorted.len().min(PARTS_MAX));
    if !rest.is_empty() {
        let sum = |sum: Found, (_, part): &(String, Found)| Found {
            pages: sum.pages + part.pages,
            dirty: sum.dirty + part.dirty,
        };
        sorted.push((format!("{} more", rest.len()), rest.iter().fold(Found::default(), sum)));
    }
    let part = |(name, part): (String, Found)| PoolPart {
        name,
        share: part.pages as f64 / pages.max(1) as f64,
        dirty: part.dirty as f64 / part.pages.max(1) as f64,
    };
    sorted.into_iter().map(part).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_those_of_the_indexes_that_have_them() {
        let database = crate::Database::in_memory().unwrap();
        let counts = database.key_value::<u32, String>("counts").unwrap();
        for key in 0..200 {
            database.transact(|t| counts.put(t, key, &"x".repeat(4000))).unwrap();
        }
        let parts = database.asynchronous().pool_contents(0);
        let shares: f64 = parts.iter().map(|part| part.share).sum();
        assert!((shares - 1.0).abs() < 1e-9, "{parts:?}");
        let largest = &parts[0];
        assert!(largest.name.contains("counts PRIMARY") && largest.share > 0.3, "{parts:?}");
        assert!(parts.iter().all(|part| (0.0..=1.0).contains(&part.dirty)));
        assert!(parts.iter().any(|part| part.name == "undo logs"), "{parts:?}");
    }

    #[test]
    fn small_parts_are_one() {
        let found = |pages| Found { pages, dirty: pages / 2 };
        let named: HashMap<_, _> = (0..40).map(|part| (format!("t{part:02}"), found(part + 2))).collect();
        let all: usize = (0..40).map(|part| part + 2).sum();
        let parts = parts(named, all);
        assert_eq!(
            (parts.len(), &*parts[0].name, &*parts[PARTS_MAX].name),
            (PARTS_MAX + 1, "t39", "25 more")
        );
        assert!((parts.iter().map(|part| part.share).sum::<f64>() - 1.0).abs() < 1e-9);
    }
}
