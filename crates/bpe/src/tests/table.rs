//! The table against a map, and what it costs in memory.

use std::collections::HashMap;

use disk::Random;
use page::PageId;

use crate::table::{Entry, Inserted, Table};

fn entry(page: u32, slot: u32) -> Entry {
    Entry { page: PageId::new(page % 3, page), slot, lsn: u64::from(page) << 20 | 7, check: !page }
}

/// Everything that can be done to a table, compared with a map after each step.
#[test]
fn is_a_map_from_pages_to_slots() {
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let slots = [1, 5, 64, 3000][seed as usize % 4];
        let table = Table::new(slots, 64);
        let mut model: HashMap<u32, u32> = HashMap::new();
        let mut free: Vec<u32> = (0..slots).collect();
        for _ in 0..20_000 {
            let page = random.below(slots as usize * 2) as u32;
            match random.below(5) {
                0 | 1 if !free.is_empty() => {
                    let slot = free[random.below(free.len())];
                    let inserted = table.insert(&entry(page, slot), true);
                    if model.contains_key(&page) {
                        assert_eq!(inserted, Inserted::Present);
                    } else {
                        assert_eq!(inserted, Inserted::Done, "seed {seed}: {} of {slots}", model.len());
                        model.insert(page, slot);
                        free.retain(|other| *other != slot);
                    }
                }
                2 => {
                    let removed =
                        table.remove(entry(page, 0).page, |slot| assert_eq!(Some(&slot), model.get(&page)));
                    assert_eq!(removed, model.contains_key(&page));
                    free.extend(model.remove(&page));
                }
                3 => {
                    let slot = random.below(slots as usize) as u32;
                    let removed = table.remove_slot(slot, || {});
                    let known = model.iter().find(|(_, of)| **of == slot).map(|(page, _)| *page);
                    assert_eq!(removed, known.map(|page| entry(page, slot).page));
                    if let Some(page) = known {
                        model.remove(&page);
                        free.push(slot);
                    }
                }
                _ => {
                    if let (Some(from), Some(to)) = (model.get(&page).copied(), free.pop()) {
                        assert!(table.relocate(&entry(page, from), to, || {}));
                        assert_eq!(table.find(entry(page, to).page), None, "pending");
                        table.publish(to, |published| assert_eq!(*published, entry(page, to)));
                        model.insert(page, to);
                        free.push(from);
                    }
                }
            }
            let found = table.find(entry(page, 0).page);
            assert_eq!(found, model.get(&page).map(|slot| entry(page, *slot)), "seed {seed}");
        }
        assert_eq!(table.len(), model.len());
        let mut listed = 0;
        (0..table.shards()).for_each(|shard| table.each_of_shard(shard, |_| listed += 1));
        assert_eq!(listed, model.len());
    }
}

#[test]
fn a_full_table_takes_every_slot() {
    for slots in [64, 2048, 100_000] {
        let table = Table::new(slots, 64);
        for slot in 0..slots {
            assert_eq!(table.insert(&entry(slot, slot), true), Inserted::Done);
        }
        for slot in 0..slots {
            assert_eq!(table.find(entry(slot, slot).page), Some(entry(slot, slot)));
            assert_eq!(table.peek(slot).map(|(_, hit)| hit), Some(true));
        }
        assert_eq!(table.find(entry(slots, 0).page), None);
    }
}
