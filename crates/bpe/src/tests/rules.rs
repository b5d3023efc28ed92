//! The rules by which an entry of the kept map stays current, one by one. Each case is made so that without
//! its rule the tier serves an old version of a page, and the model says so.

use std::path::Path;

use disk::Misbehaviour;
use page::{BufferPoolExtension, Lsn, PageId};

use super::world::{REGION_BYTES, SLOTS_PER_REGION, WANTED, World, options};
use crate::options::Options;
use crate::store::map_path;

const FILE: &str = "fast/tier";

/// Changes pages, writes them, and moves the checkpoint past that: recovery will not see the changes.
fn change_for_good(world: &mut World, pages: &[PageId]) {
    for id in pages {
        world.change(*id).unwrap();
    }
    pages.iter().for_each(|id| world.flush(*id));
    world.start_checkpoint();
    world.settle();
}

/// A world with these pages in its tier.
fn filled(seed: u64, pages: u32, options: Options) -> (World, Vec<PageId>) {
    let mut world = World::new(seed, pages, options);
    let all = world.all();
    world.fill(&all);
    change_for_good(&mut world, &all[..1]);
    (world, all)
}

fn looks_through(world: &mut World, case: &str) {
    world.look_at_all().unwrap_or_else(|error| panic!("{case}: {error}"));
}

/// The table and what it is said to cover come from the same reading.
#[test]
fn a_map_that_reads_differently_the_second_time_serves_no_old_page() {
    let mut warm = 0;
    for seed in 0..60 {
        let (mut world, pages) = filled(seed, 200, options(8));
        for id in &pages[100..120] {
            change_for_good(&mut world, &[*id]);
        }
        let lie = [Misbehaviour::MisdirectedRead, Misbehaviour::FlippedRead][seed as usize % 2];
        world.env.disk().misbehave("fast/tier.map", lie, 30);
        world.kill(true);
        world.env.disk().behave();
        warm += u64::from(world.status().restored > 0);
        looks_through(&mut world, &format!("{lie:?}, seed {seed}"));
    }
    assert!((1..60).contains(&warm), "{warm} of 60 starts were warm: both have to come up");
}

/// The number of the run. Twice over the log has lost what the map had seen, and then LSNs are used for other
/// changes.
#[test]
fn a_map_of_the_run_before_the_last_serves_no_old_page() {
    for seed in 10..20 {
        let (mut world, pages) = filled(seed, 200, options(8));
        let ahead = Lsn(world.end() + 5_000);
        let (tier, env) = (world.tier.clone(), world.env.clone());
        env.run_until_complete(tier.before_checkpoint(ahead));
        drop(tier);
        world.kill(false);
        change_for_good(&mut world, &pages[50..60]);
        assert!(world.end() < ahead.0);
        while world.end() <= ahead.0 {
            world.change(pages[60]).unwrap();
            world.write_log();
        }
        world.kill(true);
        assert_eq!(world.status().restored, 0);
        looks_through(&mut world, &format!("seed {seed}"));
    }
}

/// A tier that was opened, and a crash before it had written a map of its own: the old map is of the run
/// before the last, though no run was without the tier.
#[test]
fn starts_that_crash_at_once_make_the_tier_cold_and_not_stale() {
    for seed in 20..50 {
        let (mut world, pages) = filled(seed, 300, options(8));
        world.crash(true);
        for start in 0..4_usize {
            for _ in 0..world.random.below(8) {
                world.env.step();
            }
            for id in &pages[start * 40..start * 40 + 20] {
                world.change(*id).unwrap();
                world.flush(*id);
            }
            world.start_checkpoint();
            for _ in 0..world.random.below(12) {
                world.env.step();
            }
            world.crash(true);
            looks_through(&mut world, &format!("seed {seed}, start {start}"));
        }
    }
}

/// A page that is copied to another slot is nowhere until that is written, and may be changed by then.
#[test]
fn a_page_changed_on_its_way_to_another_slot_is_not_found_in_its_old_one() {
    let mut saved = 0;
    for seed in 50..60 {
        let (mut world, pages) = filled(seed, 1_200, options(8));
        // A few hits in every region: too few to keep it as it is.
        for id in pages.iter().step_by(5) {
            world.look(*id).unwrap();
        }
        let mut copied = Vec::new();
        for id in &pages {
            world.access(*id).unwrap();
            world.evict(*id, WANTED);
            world.env.run_until_idle();
            if world.status().pages_saved > 0 {
                copied = pages.iter().step_by(5).copied().collect();
                break;
            }
        }
        saved += world.status().pages_saved;
        // All at once, before the buffer with the copies is written.
        for id in &copied {
            world.change_unread(*id);
        }
        copied.iter().for_each(|id| world.flush(*id));
        world.start_checkpoint();
        world.env.run_until_idle();
        world.kill(true);
        looks_through(&mut world, &format!("seed {seed}"));
    }
    assert!(saved > 0, "no page was copied");
}

/// A slot that read wrong once may read right after the restart; by then its page has changed.
#[test]
fn a_page_dropped_for_a_wrong_read_does_not_come_back() {
    let (mut world, pages) = filled(60, 200, options(8));
    let victims: Vec<PageId> = pages[20..60].to_vec();
    world.env.disk().misbehave(FILE, Misbehaviour::FlippedRead, 1);
    let found = victims.iter().filter(|id| world.tier.find(**id).is_some()).count();
    for id in &victims {
        assert_eq!(world.look(*id), Ok(false));
    }
    world.env.disk().behave();
    let status = world.status();
    assert_eq!(status.mismatches_corrupt + status.mismatches_misdirected, found as u64);
    assert!(found > 20, "{found}");
    change_for_good(&mut world, &victims);
    world.kill(true);
    assert!(world.status().restored > 100);
    looks_through(&mut world, "after the restart");
}

/// What a smaller tier has no room for: the cut may be lost in the crash, and with it the old bytes are there
/// again.
#[test]
fn what_was_cut_off_does_not_come_back_with_a_larger_tier() {
    for seed in 70..90 {
        let (mut world, pages) = filled(seed, 700, options(12));
        let change = world.tier.resize((7 * REGION_BYTES) as u64);
        world.env.run_until_complete(change.over().wait());
        change_for_good(&mut world, &pages[100..]);
        world.crash(true);
        assert_eq!(world.status().pages_max, (12 * SLOTS_PER_REGION) as u64);
        looks_through(&mut world, &format!("seed {seed}"));
    }
}

/// Maps say to which tier they belong: one that lies beside another tier's file is nothing.
#[test]
fn the_map_of_a_tier_that_was_switched_off_is_not_that_of_the_next() {
    let (mut world, pages) = filled(90, 300, options(8));
    let maps = [0, 1].map(|side| world.env.disk().content(&map_path(Path::new(FILE), side)));
    for on in [false, true] {
        let change = world.tier.switch(on);
        world.env.run_until_complete(change.over().wait());
    }
    world.fill(&pages[..200]);
    world.settle();
    world.env.run_until_idle();
    for (side, map) in maps.into_iter().enumerate() {
        let map = map.unwrap_or_default();
        world.env.disk().corrupt(&map_path(Path::new(FILE), side), 0, &map);
    }
    world.kill(true);
    assert_eq!(world.status().restored, 0);
    looks_through(&mut world, "after the restart");
}

/// A change while the entries go over to a table of another size counts in both tables.
#[test]
fn a_page_changed_during_a_resize_is_in_neither_table() {
    // So many slots that the copying lets others run before the tables are exchanged.
    const REGIONS: usize = 320;
    for steps in 0..12 {
        let (mut world, pages) = filled(100 + steps, 200, options(REGIONS));
        let change = world.tier.resize(((REGIONS + 11) * REGION_BYTES) as u64);
        for _ in 0..steps {
            world.env.step();
        }
        for id in &pages {
            world.change_unread(*id);
        }
        world.env.run_until_complete(change.over().wait());
        for id in &pages {
            world.flush(*id);
            world.evict(*id, WANTED);
        }
        world.settle();
        looks_through(&mut world, &format!("after {steps} steps"));
        assert_eq!(world.status().pages_max, ((REGIONS + 10) * SLOTS_PER_REGION) as u64);
    }
}
