//! Restarts: histories with crashes at any point, where a page served afterwards must be the current one; and
//! single cases of when a map is taken and when it is not.

use std::path::Path;

use disk::{Environment, Fault, FaultKind, Storage};
use page::{BufferPoolExtension, Lsn, PageId};

use super::world::{WANTED, World, options};
use crate::options::{Options, Restart};
use crate::status::State;
use crate::store::map_path;
use crate::tier::Tier;

/// What a history has shown.
#[derive(Default)]
struct Tally {
    restored: u64,
    served: u64,
    cold: u64,
}

fn history(seed: u64, tally: &mut Tally) -> Result<(), String> {
    let regions = 6 + seed as usize % 7;
    let mut world = World::new(seed, 300 + 50 * (seed % 8) as u32, options(regions));
    for _ in 0..6 {
        for _ in 0..world.random.below(1500) {
            world.step()?;
        }
        if world.random.one_in(6) {
            // Sometimes the tier's disk fails first; the checkpoint goes on without it.
            let call = world.env.disk().calls() + world.random.below(30) as u64;
            let kind = if world.random.one_in(2) { FaultKind::Eio } else { FaultKind::Enospc };
            world.env.disk().plan(Fault { call, kind });
            for _ in 0..200 {
                world.step()?;
            }
        }
        match world.random.below(6) {
            0 => world.restart(),
            1..4 => world.crash(true),
            4 => world.kill(true),
            _ => {
                // A run without the tier in between.
                world.crash(false);
                for _ in 0..world.random.below(300) {
                    world.step()?;
                }
                world.kill(true);
            }
        }
        let status = world.status();
        tally.restored += status.restored;
        tally.cold += u64::from(status.restored == 0);
        let before = world.served;
        world.look_at_all()?;
        tally.served += world.served - before;
    }
    Ok(())
}

#[test]
fn whatever_is_served_after_a_crash_is_the_current_page() {
    let mut tally = Tally::default();
    let (first, count) = seeds();
    for seed in first..first + count {
        history(seed, &mut tally).unwrap_or_else(|error| panic!("{error}"));
    }
    println!("{} pages restored, {} served, {} cold starts", tally.restored, tally.served, tally.cold);
    assert!(tally.served > 50 * count, "a test that serves nothing shows nothing: {}", tally.served);
}

/// `UNTORN_BPE_SEEDS=first..end` runs other seeds.
fn seeds() -> (u64, u64) {
    let given = std::env::var("UNTORN_BPE_SEEDS").ok();
    let parsed = given.as_deref().and_then(|text| {
        let (first, end) = text.split_once("..")?;
        let first: u64 = first.parse().ok()?;
        Some((first, end.parse::<u64>().ok()?.saturating_sub(first)))
    });
    parsed.unwrap_or((0, 60))
}

/// A world whose tier holds pages and whose checkpoint has moved.
fn warm_world(seed: u64) -> World {
    let mut world = World::new(seed, 400, options(10));
    let pages = world.all();
    for id in &pages[..100] {
        world.change(*id).unwrap();
        world.flush(*id);
    }
    world.fill(&pages);
    world.start_checkpoint();
    world.settle();
    world
}

#[test]
fn a_clean_stop_and_a_kill_are_followed_by_a_warm_start() {
    for clean in [true, false] {
        let mut world = warm_world(3);
        let before = world.status().pages;
        assert!(before > 300, "{before}");
        // Changed after the checkpoint: found in the log, dropped.
        let changed = world.all()[7];
        world.change(changed).unwrap();
        world.flush(changed);
        world.start_checkpoint();
        world.settle();
        if clean {
            world.restart()
        } else {
            world.kill(true)
        }
        let status = world.status();
        assert_eq!(status.state, State::On);
        assert_eq!(status.restored, before - 1, "clean: {clean}");
        assert_eq!(world.look_at_all(), Ok(before as usize - 1));
        // And again, from what the second run has written.
        world.settle();
        let again = world.all()[9];
        world.change(again).unwrap();
        world.flush(again);
        world.start_checkpoint();
        world.settle();
        world.kill(true);
        assert_eq!(world.status().restored, before - 2, "clean: {clean}");
        world.look_at_all().unwrap();
    }
}

#[test]
fn a_start_with_a_smaller_size_cuts_the_file() {
    for restart in [Restart::Keep, Restart::Discard] {
        let mut world = warm_world(3);
        let path = world.options.file.clone().unwrap();
        let len = |world: &World| {
            let file = world.env.disk().open(&path, disk::OpenHow::EXISTING).unwrap();
            file.len().unwrap()
        };
        let before = len(&world);
        world.options.size = options(6).size;
        world.options.restart = restart;
        world.restart();
        assert_eq!(world.status().restored > 0, restart == Restart::Keep);
        assert!(len(&world) <= world.status().size_bytes, "{restart:?}");
        assert!(world.status().size_bytes < before, "{restart:?}");
        world.look_at_all().unwrap();
    }
}

#[test]
fn a_size_of_nothing_is_no_tier() {
    let mut world = warm_world(3);
    world.options.size = 0;
    world.restart();
    assert!(matches!(world.status().state, State::Failed(why) if why.contains("too little room")));
}

#[test]
fn a_run_without_the_tier_makes_the_next_start_cold() {
    let mut world = warm_world(4);
    world.kill(false);
    assert_eq!(world.status().state, State::Off);
    world.kill(true);
    assert_eq!((world.status().restored, world.status().pages), (0, 0));
    assert_eq!(world.status().state, State::On);
}

#[test]
fn a_tier_that_fell_behind_the_checkpoint_is_cold() {
    let mut world = warm_world(5);
    let victim = world.all()[3];
    assert!(world.tier.find(victim).is_some());
    let call = world.env.disk().calls();
    (0..5).for_each(|next| world.env.disk().plan(Fault { call: call + next, kind: FaultKind::Eio }));
    world.change(victim).unwrap();
    world.flush(victim);
    world.start_checkpoint();
    world.settle();
    assert!(matches!(world.status().state, State::Failed(_)), "{:?}", world.status().state);
    world.kill(true);
    assert_eq!(world.status().restored, 0);
    assert_eq!(world.look(victim), Ok(false));
}

/// Opens the tier of a stopped world by hand.
fn reopen(world: &World, options: Options, checkpoint: u64, end: u64, run: u32) -> u64 {
    let tier = Tier::open(world.env.clone(), options);
    tier.recovered(Lsn(checkpoint), Lsn(end), run);
    let restored = tier.status().restored;
    assert!(tier.is_on());
    // An empty start must work, too.
    world.env.run_until_complete(tier.close_clean(Lsn(end)));
    restored
}

/// What a map must agree with; each on its own makes the start cold.
#[test]
fn a_foreign_or_damaged_map_is_not_taken() {
    type Spoil = fn(&World, &mut Options, &mut [u64; 3]);
    let cases: [(&str, bool, Spoil); 7] = [
        ("nothing", true, |_, _, _| {}),
        ("another page size", false, |_, options, _| {
            options.page_size = page::PageSize::new(16384).unwrap();
        }),
        ("a later checkpoint", false, |_, _, lsns| {
            lsns[0] += 1000;
            lsns[1] += 1000;
        }),
        ("a log that lost its end", false, |_, _, lsns| {
            lsns[0] -= 1;
            lsns[1] -= 1;
        }),
        ("another run", false, |_, _, lsns| lsns[2] += 1),
        ("a map of garbage", false, |world, _, _| {
            for side in 0..2 {
                world.env.disk().corrupt(&map_path(Path::new("fast/tier"), side), 40, &[0xAB; 8]);
            }
        }),
        ("no map", false, |world, _, _| {
            for side in 0..2 {
                // One of them may not exist.
                let _ = world.env.disk().remove(&map_path(Path::new("fast/tier"), side));
            }
        }),
    ];
    for (what, warm, spoil) in cases {
        let mut world = warm_world(6);
        world.restart();
        let (tier, end) = (world.tier.clone(), world.end());
        world.env.run_until_complete(tier.close_clean(Lsn(end)));
        let mut options = world.options.clone();
        let mut lsns = [end, end, u64::from(world.run()) + 1];
        spoil(&world, &mut options, &mut lsns);
        let restored = reopen(&world, options, lsns[0], lsns[1], lsns[2] as u32);
        assert_eq!(restored > 300, warm, "{what}: {restored}");
        assert_eq!(restored > 0, warm, "{what}: {restored}");
    }
}

/// Whatever the name leads to: without our mark, or with another directory's, not a byte of it changes, at a
/// start, when the tier moves there and when it is switched off.
#[test]
fn a_file_of_somebody_else_is_left_as_it_is() {
    type Spoil = fn(&World, &mut Options);
    let tier = Path::new("fast/tier");
    let cases: [(&str, Spoil); 3] = [
        ("another database's", |_, options| options.database = [9; 16]),
        ("a header of garbage", |world, _| {
            assert!(world.env.disk().corrupt(Path::new("fast/tier"), 30, &[0xAB; 8]));
        }),
        ("a table", |world, _| {
            assert!(world.env.disk().corrupt(Path::new("fast/tier"), 0, &[0xCD; 8192]));
        }),
    ];
    for (what, spoil) in cases {
        let mut world = warm_world(6);
        world.restart();
        let (old, end) = (world.tier.clone(), world.end());
        world.env.run_until_complete(old.close_clean(Lsn(end)));
        let mut options = world.options.clone();
        spoil(&world, &mut options);
        let before = world.env.disk().content(tier);
        let opened = Tier::open(world.env.clone(), options);
        let State::Failed(why) = opened.status().state else { panic!("{what}: {:?}", opened.status().state) };
        assert!(why.contains("fast/tier"), "{what}: {why}");
        drop(opened.switch(false));
        assert_eq!(world.env.disk().content(tier), before, "{what}");
    }
    // Its name taken over by another file while it is in use.
    let world = warm_world(7);
    world.env.disk().remove(tier).unwrap();
    let foreign = world.env.storage().open(tier, disk::OpenHow::CREATE).unwrap();
    foreign.write_at(&disk::AlignedBuf::zeroed(8192), 0).unwrap();
    let off = world.tier.switch(false);
    world.env.run_until_complete(off.over().wait());
    assert!(world.env.disk().exists(tier).unwrap(), "removed a file that was not its own");
}

#[test]
fn discard_keeps_nothing_and_writes_no_map() {
    let mut world = World::new(8, 100, World::discarding(options(8)));
    let pages = world.all();
    world.fill(&pages);
    world.start_checkpoint();
    world.settle();
    assert_eq!(world.status().map_syncs, 0);
    assert!(!world.env.disk().exists(&map_path(Path::new("fast/tier"), 0)).unwrap());
    world.kill(true);
    assert_eq!((world.status().restored, world.status().pages), (0, 0));
}

/// A long life with few pages: the map is rewritten, into one file and then the other, and stays short.
#[test]
fn the_map_stays_short_and_survives_its_rewriting() {
    let mut world = World::new(9, 200, options(8));
    let mut rewritten = 0;
    let mut last = None;
    for round in 0..900 {
        let ids: Vec<PageId> = (0..64).map(|_| world.any()).collect();
        for id in ids {
            world.change(id).unwrap();
            world.evict(id, WANTED);
        }
        if round % 8 == 0 {
            world.start_checkpoint();
            world.settle();
        } else {
            world.env.run_until_idle();
        }
        let lengths = [0, 1].map(|side| {
            world
                .env
                .disk()
                .content(&map_path(Path::new("fast/tier"), side))
                .map_or(0, |content| content.len())
        });
        assert!(lengths.iter().all(|length| *length < 3 << 20), "{lengths:?}");
        let shorter = usize::from(lengths[1] > 0 && lengths[1] < lengths[0]);
        rewritten += usize::from(last.is_some_and(|last| last != shorter));
        last = Some(shorter);
    }
    assert!(rewritten >= 1, "the map was never rewritten");
    // What is in a buffer is added to the map when it is written.
    world.settle();
    world.start_checkpoint();
    world.settle();
    let pages = world.status().pages;
    world.kill(true);
    assert_eq!(world.status().restored, pages);
    world.look_at_all().unwrap();
}

/// One write and one sync for a checkpoint, none when it does not move.
#[test]
fn a_checkpoint_costs_one_small_write() {
    let mut world = warm_world(10);
    for round in 0..20 {
        let id = world.all()[round];
        world.change(id).unwrap();
        world.flush(id);
        let before = world.status();
        world.start_checkpoint();
        world.env.run_until_idle();
        let after = world.status();
        assert_eq!(after.map_syncs, before.map_syncs + 1);
        assert_eq!(after.bytes_written_map, before.bytes_written_map + 4096);
        world.start_checkpoint();
        world.env.run_until_idle();
        assert_eq!(world.status().map_syncs, after.map_syncs);
    }
}
