//! What is let in, what stays, and what is written for it.

use std::time::Duration;

use disk::Environment;
use page::extension::{BufferPoolExtension, History, Offered, Refusal};
use page::{Lsn, PageId};

use super::world::{REGION_BYTES, SLOTS_PER_REGION, WANTED, World, image, options};
use crate::options::Options;
use crate::tier::Tier;

const ONCE: History = History { touched_again: false, read_ahead_unused: false, from_scan: false };

/// Pages beyond the model, which nobody changes.
fn offer(world: &World, number: u32, history: History) -> Offered {
    let id = PageId::new(99, number);
    world.tier.offer(id, Lsn(500), &image(id, 500), history)
}

fn is_in(world: &World, number: u32) -> bool {
    world.tier.find(PageId::new(99, number)).is_some()
}

/// Fills the tier until it has to clean regions.
fn fill_up(world: &World, from: u32, pages: u32) {
    for number in from..from + pages {
        offer(world, number, WANTED);
        world.env.run_until_idle();
    }
}

#[test]
fn a_second_touch_is_asked_for_once_it_is_full() {
    let world = World::new(1, 1, options(8));
    let slots = (8 * SLOTS_PER_REGION) as u32;
    assert_eq!(offer(&world, 1_000_000, ONCE), Offered::Taken, "there is room that nobody uses");
    fill_up(&world, 0, slots);
    assert_eq!(offer(&world, 2_000_000, ONCE), Offered::Refused(Refusal::TouchedOnce));
    assert!(!is_in(&world, 2_000_000));
    assert!(!is_in(&world, 2_000_000));
    assert_eq!(offer(&world, 2_000_000, ONCE), Offered::Taken, "missed twice");
    let scan = History { from_scan: true, ..ONCE };
    let ahead = History { read_ahead_unused: true, ..ONCE };
    assert_eq!(offer(&world, 3_000_000, scan), Offered::Refused(Refusal::Scan));
    assert_eq!(offer(&world, 4_000_000, ahead), Offered::Refused(Refusal::ReadAheadUnused));
    assert_eq!(offer(&world, 2_000_000, WANTED), Offered::Refused(Refusal::Present));
    let status = world.status();
    let refused =
        [status.refused_touched_once, status.refused_scan, status.refused_read_ahead, status.refused_present];
    assert_eq!(refused, [1, 1, 1, 1]);
}

/// FIFO with a second chance: what is hit in every round survives any number of rounds, what is not goes in
/// its turn, and the copying is bounded.
#[test]
fn pages_that_are_hit_stay_and_others_go() {
    let world = World::new(2, 1, options(8));
    let slots = (8 * SLOTS_PER_REGION) as u32;
    fill_up(&world, 0, slots);
    // A few hot pages in most regions.
    let hot: Vec<u32> = (64..slots).step_by(9).filter(|number| is_in(&world, *number)).collect();
    assert!(hot.len() > 30);
    let before = world.status();
    let mut next = 1_000_000;
    for _ in 0..40 {
        for number in &hot {
            is_in(&world, *number);
        }
        fill_up(&world, next, 100);
        next += 100;
    }
    let status = world.status();
    // What was saved last is still on its way.
    world.settle();
    let left = hot.iter().filter(|number| is_in(&world, **number)).count();
    assert!(left * 10 >= hot.len() * 9, "{left} of {} hot pages left", hot.len());
    let cold = (64..slots).filter(|number| !hot.contains(number) && is_in(&world, *number)).count();
    assert!(cold * 10 < slots as usize, "{cold} cold pages left");
    assert!(status.pages_saved > 0 && status.regions_cleaned > before.regions_cleaned);
    // At most half a region is copied for a region that is cleaned.
    let saved = status.pages_saved - before.pages_saved;
    assert!(saved <= (status.regions_cleaned - before.regions_cleaned) * SLOTS_PER_REGION as u64 / 2);
}

#[test]
fn a_region_that_is_hit_all_over_is_kept_without_copying() {
    let world = World::new(3, 1, options(8));
    fill_up(&world, 0, (6 * SLOTS_PER_REGION) as u32);
    let first_region: Vec<u32> = (0..SLOTS_PER_REGION as u32).collect();
    let mut next = 1_000_000;
    for _ in 0..10 {
        for number in &first_region {
            is_in(&world, *number);
        }
        fill_up(&world, next, 2 * SLOTS_PER_REGION as u32);
        next += 2 * SLOTS_PER_REGION as u32;
    }
    let status = world.status();
    assert!(status.regions_kept > 0);
    assert_eq!(status.pages_saved, 0);
    assert!(first_region.iter().all(|number| is_in(&world, *number)));
}

#[test]
fn writes_stay_within_the_budget() {
    let mut options = options(16);
    options.write_budget = 2 << 20;
    let world = World::new(4, 1, options);
    let seconds = 30;
    let mut next = 0;
    for _ in 0..seconds * 10 {
        fill_up(&world, next, 200);
        next += 200;
        world.env.advance(Duration::from_millis(100));
    }
    let status = world.status();
    assert!(status.refused_budget > 0);
    let data = status.bytes_written - status.bytes_written_map;
    // One second's worth was there at the beginning; time passes a little with every step.
    let elapsed = world.env.now().as_secs_f64();
    let allowed = (elapsed + 1.0) * (2 << 20) as f64 + 2.0 * REGION_BYTES as f64;
    assert!((data as f64) < allowed, "{data} bytes in {elapsed} s");
    assert!(data > seconds * (1 << 20), "and the budget is used");
    let per_day = status.drive_writes_per_day;
    assert!(per_day > 10_000.0, "{per_day} times 4 MiB a day");
    world.tier.set_write_budget(0);
    assert_eq!(offer(&world, 9_000_000, WANTED), Offered::Taken);
}

#[test]
fn a_page_that_does_not_know_itself_is_refused() {
    let world = World::new(5, 1, options(8));
    let id = PageId::new(99, 1);
    let mut bytes = image(id, 500);
    bytes[page::SPACE_ID + 3] ^= 1;
    assert!(matches!(world.tier.offer(id, Lsn(500), &bytes, WANTED), Offered::Refused(_)));
    assert!(matches!(world.tier.offer(id, Lsn(500), &image(id, 500)[..512], WANTED), Offered::Refused(_)));
}

/// Nothing is found or taken before recovery has said what is current.
#[test]
fn nothing_is_served_before_recovery_has_ended() {
    let world = World::new(6, 1, options(8));
    let mut other = world.options.clone();
    other.file = Some("fast/second".into());
    let tier = Tier::open(world.env.clone(), other);
    let id = PageId::new(99, 1);
    assert!(!tier.wants(id, WANTED) && !tier.is_on());
    assert_eq!(tier.offer(id, Lsn(500), &image(id, 500), WANTED), Offered::Refused(Refusal::Off));
    tier.recovered(Lsn(1), Lsn(1), 1);
    assert_eq!(tier.offer(id, Lsn(500), &image(id, 500), WANTED), Offered::Taken);
    world.env.advance(Duration::from_secs(3));
    assert!(tier.find(id).is_some());
}

/// A tier of `regions` that holds `pages` pages of the model, a third of which are read again and again, and
/// all of which are changed now and then. Returns the world and how many of the last looks found the page.
fn change_and_come_back(seed: u64, regions: usize, pages: u32, options: Options) -> (World, f64) {
    let mut world = World::new(seed, pages, options);
    let all = world.all();
    world.fill(&all);
    let (mut looks, mut found) = (0, 0);
    let rounds = 12 * regions * SLOTS_PER_REGION;
    for round in 0..rounds {
        let id = match world.random.one_in(3) {
            // (The cold ones are hardly ever hit before they are changed.)
            true => all[world.random.below(all.len())],
            false => all[world.random.below(all.len() / 3)],
        };
        if round > rounds / 2 {
            looks += 1;
            found += usize::from(world.tier.find(id).is_some());
        }
        world.access(id).unwrap();
        if world.random.one_in(2) {
            world.change(id).unwrap();
        }
        world.evict(id, WANTED);
        world.env.run_until_idle();
        if world.options.write_budget > 0 {
            // So that some of it is earned.
            world.env.advance(Duration::from_millis(1));
        }
    }
    let ratio = found as f64 / looks as f64;
    (world, ratio)
}

/// Where pages are changed the tier compacts: as long as they fit into half of it, none is lost but for the
/// moment that it is on its way.
#[test]
fn pages_that_fill_half_of_it_stay_whatever_is_changed() {
    let (regions, slots) = (32, 32 * SLOTS_PER_REGION as u32);
    let (world, found) = change_and_come_back(7, regions, slots / 2, options(regions));
    let status = world.status();
    assert_eq!(status.evicted, 0, "{} saved", status.pages_saved);
    assert_eq!(status.refused_busy, 0);
    assert!(found > 0.95, "{found} found");
    assert!(status.pages_saved > 0 && status.regions_cleaned > 5 * regions as u64, "{status:?}");
    assert!(status.pages_saved <= status.regions_cleaned * SLOTS_PER_REGION as u64 / 2);
    // Each page was written once when it was taken, and a region that is cleaned costs half a region at most.
    let writes = (status.admitted + status.pages_saved) * 4096;
    assert!(status.bytes_written - status.bytes_written_map <= writes);
}

/// The same with a budget that is too small for it: the copies count in it.
#[test]
fn what_is_saved_counts_in_the_budget() {
    let mut options = options(16);
    options.write_budget = 1 << 20;
    let (world, _) = change_and_come_back(8, 16, 8 * SLOTS_PER_REGION as u32, options);
    let status = world.status();
    let data = (status.bytes_written - status.bytes_written_map) as f64;
    let allowed = (world.env.now().as_secs_f64() + 1.0) * (1 << 20) as f64 + 3.0 * REGION_BYTES as f64;
    assert!(status.refused_budget > 0 && data < allowed, "{data} bytes, {allowed} allowed");
    let saved = status.pages_saved as f64 * 4096.0;
    assert!(saved > 4.0 * REGION_BYTES as f64, "{saved} bytes saved of {data}");
}

/// One region after the other is cleaned until enough are free, without an offer or a look of the keeper
/// between.
#[test]
fn cleaning_goes_on_by_itself() {
    let mut world = World::new(9, 16 * SLOTS_PER_REGION as u32, options(12));
    let all = world.all();
    world.fill(&all[..9 * SLOTS_PER_REGION]);
    for id in all[..9 * SLOTS_PER_REGION].iter().step_by(2) {
        world.change(*id).unwrap();
    }
    let before = world.status();
    assert_eq!(before.regions_cleaned, 0);
    // Offers that come faster than anything is written, to the end of the region before the last free one.
    let mut number = 2_000_000;
    while offer(&world, number, WANTED) == Offered::Taken {
        number += 1;
    }
    let free = |world: &World| world.tier.store().unwrap().filler.lock().free_regions();
    assert_eq!(free(&world), 1);
    // What is saved of the first region begins the last free one: after it there are not more than before.
    world.env.run_until_idle();
    let status = world.status();
    assert_eq!((free(&world), status.evicted), (2, 0));
    assert_eq!((status.regions_cleaned, status.pages_saved), (2, SLOTS_PER_REGION as u64));
}

/// A batch of page writes ends, and all of its pages come at once: a large tier that is full of holes takes
/// them.
#[test]
fn a_burst_finds_room_in_a_tier_that_is_being_changed() {
    const REGIONS: usize = 256;
    let world = World::new(10, 1, options(REGIONS));
    // Two rounds of pages that nobody changes, each dropped at once like a page that is: nothing but holes.
    for number in 0..(2 * REGIONS * SLOTS_PER_REGION) as u32 {
        offer(&world, number, WANTED);
        world.env.run_until_idle();
        if number % 16 != 0 {
            world.tier.invalidate(PageId::new(99, number));
        }
    }
    world.settle();
    let before = world.status().refused_busy;
    // As many as there are buffers for.
    let burst = 2 * SLOTS_PER_REGION as u32;
    let taken = (0..burst).filter(|page| offer(&world, 3_000_000 + page, WANTED) == Offered::Taken).count();
    assert_eq!((taken, world.status().refused_busy - before), (burst as usize, 0));
}
