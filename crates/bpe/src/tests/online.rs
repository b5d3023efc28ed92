//! Switching, resizing and moving while pages are read and changed; and the ends of a tier whose disk fails.

use std::path::{Path, PathBuf};

use disk::{Environment, Fault, FaultKind, Storage};
use page::PageId;
use page::extension::{BufferPoolExtension, Offered, Source};
use std::time::Duration;

use super::world::{REGION_BYTES, SLOTS_PER_REGION, WANTED, World, options};
use crate::status::State;

fn size(regions: usize) -> u64 {
    ((regions + 1) * REGION_BYTES) as u64
}

#[test]
fn histories_with_changes_of_settings_serve_current_pages_only() {
    let mut served = 0;
    for seed in 100..125 {
        let mut world = World::new(seed, 500, options(8));
        for _ in 0..25 {
            for _ in 0..world.random.below(250) {
                world.step().unwrap_or_else(|error| panic!("{error}"));
            }
            match world.random.below(10) {
                0..5 => {
                    let regions = 6 + world.random.below(10);
                    drop(world.tier.resize(size(regions)));
                }
                5 => drop(world.tier.switch(false)),
                6 | 7 => drop(world.tier.switch(true)),
                8 => {
                    let name = ["fast/tier", "fast/other"][world.random.below(2)];
                    drop(world.tier.set_file(Some(PathBuf::from(name))));
                }
                _ => {
                    let path = ["fast/tier", "fast/other"][world.random.below(2)];
                    if world.random.one_in(2) {
                        // Whether it is there or not.
                        let _ = world.env.disk().remove(Path::new(path));
                    } else {
                        let garbage: Vec<u8> = (0..200_000).map(|at| (at % 251) as u8).collect();
                        world.env.disk().corrupt(Path::new(path), 0, &garbage);
                    }
                }
            }
        }
        world.settle();
        world.look_at_all().unwrap_or_else(|error| panic!("{error}"));
        served += world.served;
    }
    assert!(served > 1000, "{served}");
}

#[test]
fn a_resize_keeps_what_fits_and_every_change_in_between_counts() {
    for (from, to) in [(8, 14), (14, 8), (12, 6)] {
        let mut world = World::new(200 + from as u64, 800, options(from));
        let pages: Vec<PageId> = world.all();
        world.fill(&pages);
        let before = world.status();
        assert_eq!(before.pages_max, (from * SLOTS_PER_REGION) as u64);
        let change = world.tier.resize(size(to));
        // Half of the pages change while the entries are copied.
        for id in pages.iter().step_by(2) {
            world.change(*id).unwrap();
            world.env.step();
        }
        world.env.run_until_complete(change.over().wait());
        assert_eq!(change.outcome(), Ok(()));
        let after = world.status();
        assert_eq!(after.pages_max, (to * SLOTS_PER_REGION) as u64);
        assert_eq!(after.size_bytes, size(to));
        let used = world.look_at_all().unwrap_or_else(|error| panic!("{error}"));
        let fits = before.pages.min(after.pages_max) as usize;
        assert!(used > fits / 4 && used <= fits, "{from} to {to}: {used} of {fits}");
        let length = world.env.disk().content(Path::new("fast/tier")).unwrap().len() as u64;
        assert!(length <= size(to));
        // It goes on: the new regions are filled, and a restart knows them.
        for id in &pages {
            world.flush(*id);
            world.evict(*id, WANTED);
            world.env.run_until_idle();
        }
        world.settle();
        world.options.size = size(to);
        world.start_checkpoint();
        world.settle();
        let pages_then = world.status().pages;
        assert!(pages_then > fits as u64 / 2);
        world.kill(true);
        assert_eq!(world.status().restored, pages_then, "{from} to {to}");
        world.look_at_all().unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn off_removes_the_files_and_on_starts_empty() {
    let mut world = World::new(300, 100, options(8));
    let pages = world.all();
    world.fill(&pages);
    assert!(world.tier.is_on());
    let off = world.tier.switch(false);
    world.env.run_until_complete(off.over().wait());
    assert!(!world.tier.is_on());
    assert_eq!(world.status().state, State::Off);
    assert!(world.env.disk().list(Path::new("fast")).unwrap().is_empty());
    assert_eq!(world.look_at_all(), Ok(0));
    let on = world.tier.switch(true);
    world.env.run_until_complete(on.over().wait());
    assert_eq!(on.outcome(), Ok(()));
    assert_eq!((world.status().state, world.status().pages), (State::On, 0));
    world.fill(&pages);
    assert!(world.look_at_all().unwrap() > 50);
    let moved = world.tier.set_file(Some(PathBuf::from("nowhere/tier")));
    world.env.run_until_complete(moved.over().wait());
    assert!(moved.outcome().unwrap_err().contains("nowhere/tier"));
    assert!(matches!(world.status().state, State::Failed(_)));
    let moved = world.tier.set_file(Some(PathBuf::from("fast/other")));
    world.env.run_until_complete(moved.over().wait());
    assert_eq!((moved.outcome(), world.status().state), (Ok(()), State::On));
}

/// A fault at any of the tier's calls: it is off, pages come from the data files, checkpoints go on; and it
/// comes back when asked to.
#[test]
fn any_error_switches_it_off_and_nothing_else() {
    let mut failed = 0;
    for seed in 400..440 {
        let mut world = World::new(seed, 300, options(8));
        let call = world.env.disk().calls() + world.random.below(60) as u64;
        let kind = if seed % 2 == 0 { FaultKind::Eio } else { FaultKind::Enospc };
        world.env.disk().plan(Fault { call, kind });
        for _ in 0..1500 {
            world.step().unwrap_or_else(|error| panic!("{error}"));
        }
        world.start_checkpoint();
        world.settle();
        let status = world.status();
        if let State::Failed(why) = &status.state {
            failed += 1;
            assert!(why.contains("fast/tier"), "{why}");
            assert_eq!(status.failures, 1);
            assert_eq!(world.look_at_all(), Ok(0));
            let on = world.tier.switch(true);
            world.env.run_until_complete(on.over().wait());
            assert_eq!(on.outcome(), Ok(()));
            let pages = world.all();
            world.fill(&pages);
            assert!(world.look_at_all().unwrap() > 0);
        }
    }
    assert!(failed > 20, "only {failed} of the faults hit");
}

#[test]
fn a_file_that_vanished_switches_it_off() {
    let mut world = World::new(500, 100, options(8));
    let pages = world.all();
    world.fill(&pages);
    world.env.disk().remove(Path::new("fast/tier")).unwrap();
    world.settle();
    let State::Failed(why) = world.status().state else { panic!("{:?}", world.status().state) };
    assert!(why.contains("vanished"), "{why}");
    assert_eq!(world.look_at_all(), Ok(0));
}

/// A dropped tablespace is gone at once, whatever number of its pages there is, and stays so after a crash.
#[test]
fn a_dropped_tablespace_is_gone_at_once() {
    let mut world = World::new(600, 400, options(10));
    let pages = world.all();
    world.fill(&pages);
    let space = pages[0].space;
    world.tier.invalidate_space(space);
    assert!(pages.iter().filter(|id| id.space == space).all(|id| world.tier.find(*id).is_none()));
    let others = pages.iter().filter(|id| id.space != space && world.tier.find(**id).is_some()).count();
    assert!(others > 100);
    world.change(pages[399]).unwrap();
    world.flush(pages[399]);
    world.start_checkpoint();
    world.settle();
    assert_eq!(world.status().pages as usize, others - usize::from(pages[399].space != space));
    world.kill(true);
    assert!(pages.iter().filter(|id| id.space == space).all(|id| world.tier.find(*id).is_none()));
    assert_eq!(world.status().restored, world.status().pages);
    // The number may be used again, by other pages.
    world.fill(&pages);
    assert!(pages.iter().any(|id| id.space == space && world.tier.find(*id).is_some()));
    world.look_at_all().unwrap();
}

#[test]
fn is_suspended_while_it_is_not_faster() {
    let mut world = World::new(700, 100, options(8));
    let pages = world.all();
    world.fill(&pages);
    let measure = |world: &World, tier_ms: u64, data_ms: u64| {
        for _ in 0..60 {
            for _ in 0..20 {
                world.tier.read_took(Source::Tier, Duration::from_millis(tier_ms));
                world.tier.read_took(Source::DataFile, Duration::from_millis(data_ms));
            }
            world.env.advance(Duration::from_millis(200));
        }
    };
    let memory_before = world.tier.memory_bytes();
    measure(&world, 2, 2);
    assert_eq!(world.status().state, State::Suspended);
    assert!(!world.tier.wants(pages[0], WANTED) && !world.tier.takes_pages() && world.tier.is_on());
    // Its buffers are the pool's again.
    let buffers = memory_before - world.tier.memory_bytes();
    assert_eq!(buffers, world.tier.store().unwrap().geometry.buffer_bytes());
    assert_eq!(world.status().memory_bytes, world.tier.memory_bytes() as u64);
    let samples = world.status().estimate.samples;
    let found = pages.iter().filter(|id| world.tier.find(**id).is_some()).count();
    assert!(found <= 8, "probes only: {found}");
    assert_eq!(world.status().estimate.samples, samples, "nothing is admitted, so nothing is estimated");
    // A change counts while it is suspended.
    let changed = pages[1];
    world.change(changed).unwrap();
    world.flush(changed);
    measure(&world, 1, 5);
    assert_eq!(
        (world.status().state, world.status().suspensions, world.status().resumptions),
        (State::On, 1, 1)
    );
    assert!(world.look_at_all().unwrap() > 50);
    assert_eq!(world.tier.memory_bytes(), memory_before);
    let now = world.env.now();
    assert!(now > Duration::ZERO);
}

/// Suspended for long it keeps as many pages as a small share of the memory allowed can describe, current
/// ones; it has its size again when it is used again.
#[test]
fn a_long_suspension_gives_the_memory_of_the_tables_back() {
    let mut world = World::new(710, 900, options(16));
    let pages = world.all();
    world.fill(&pages);
    let (size_before, pages_before) = (world.status().size_bytes, world.status().pages);
    let memory_of = |world: &World| world.tier.memory_bytes();
    let (whole, buffers) = (memory_of(&world), world.tier.store().unwrap().geometry.buffer_bytes());
    // Room for the tables of 7 regions of 16.
    world.tier.set_memory_max(64 * (whole - buffers) * 7 / 16);
    let reads = |world: &World, seconds: u32, tier_ms: u64, data_ms: u64| {
        for _ in 0..seconds * 5 {
            for _ in 0..20 {
                world.tier.read_took(Source::Tier, Duration::from_millis(tier_ms));
                world.tier.read_took(Source::DataFile, Duration::from_millis(data_ms));
            }
            world.env.advance(Duration::from_millis(200));
        }
    };
    reads(&world, 10, 2, 2);
    assert_eq!(world.status().state, State::Suspended);
    assert_eq!((world.status().size_bytes, memory_of(&world)), (size_before, whole - buffers), "not at once");
    reads(&world, 20, 2, 2);
    let status = world.status();
    assert_eq!(status.state, State::Suspended);
    assert!(memory_of(&world) <= (whole - buffers) * 7 / 16, "{} of {whole}", memory_of(&world));
    assert!(status.size_bytes < size_before / 2 && status.pages > pages_before / 4, "{status:?}");
    let file_bytes = world.tier.store().unwrap().file.len().unwrap();
    assert!(file_bytes <= status.size_bytes, "{file_bytes}");
    // What was asked for meanwhile counts when it is used again.
    world.tier.resize(size(20));
    reads(&world, 2, 2, 2);
    assert!(world.status().size_bytes < size_before);
    // A change counts, and so it does over the next resize.
    for id in pages.iter().take(300) {
        world.change(*id).unwrap();
        world.flush(*id);
    }
    reads(&world, 10, 1, 5);
    let status = world.status();
    assert_eq!((status.state.clone(), status.size_bytes), (State::On, size(20)), "{status:?}");
    assert!(status.pages > 0);
    world.look_at_all().unwrap();
    world.fill(&pages);
    assert!(world.status().pages > pages_before / 2);
    world.look_at_all().unwrap();
}

/// A warm tier beside idle data files is put on trial, not suspended: for a moment nothing is found, pages
/// are taken and dropped as always, and it goes on when the data files turn out to be slow without it.
#[test]
fn during_a_trial_nothing_is_found_and_pages_are_taken() {
    let mut world = World::new(701, 100, options(8));
    let pages = world.all();
    world.fill(&pages[..50]);
    let measure = |world: &World, tier_ms: u64, data_ms: u64| {
        for _ in 0..20 {
            world.tier.read_took(Source::Tier, Duration::from_millis(tier_ms));
            world.tier.read_took(Source::DataFile, Duration::from_millis(data_ms));
        }
        world.env.advance(Duration::from_millis(50));
    };
    for _ in 0..200 {
        measure(&world, 2, 2);
        if world.status().trials > 0 {
            break;
        }
    }
    assert_eq!((world.status().trials, world.status().state), (1, State::On));
    assert!(pages.iter().all(|id| world.tier.find(*id).is_none()));
    assert!(world.tier.wants(pages[60], WANTED));
    world.access(pages[60]).unwrap();
    assert_eq!(world.evict(pages[60], WANTED), Some(Offered::Taken));
    world.change(pages[1]).unwrap();
    for _ in 0..10 {
        measure(&world, 2, 10);
    }
    world.settle();
    assert_eq!((world.status().suspensions, world.status().state), (0, State::On));
    assert!(world.tier.find(pages[60]).is_some() && world.tier.find(pages[2]).is_some());
    assert!(world.tier.find(pages[1]).is_none());
}
