//! Sorting, in memory and spilled, against plain sorting.
#![allow(clippy::unwrap_used)]

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;

use disk::{Environment, Random, SimulatedEnvironment};

use super::*;

/// By the first two bytes, so that many entries are equal.
#[derive(Clone)]
struct ByHead;

impl Order for ByHead {
    fn compare(&self, left: &[u8], right: &[u8]) -> Ordering {
        left.get(..2).cmp(&right.get(..2))
    }
}

fn place(environment: &Arc<SimulatedEnvironment>) -> Place {
    let directory = Path::new("/sorting");
    environment.storage().create_dir_all(directory).unwrap();
    Place::new(environment.storage().clone(), directory)
}

fn entries(random: &mut Random, count: usize) -> Vec<Vec<u8>> {
    (0..count)
        .map(|number| {
            let mut entry = vec![random.below(40) as u8, random.below(40) as u8];
            entry.extend_from_slice(&(number as u64).to_be_bytes());
            entry.resize(10 + random.below(200), 7);
            entry
        })
        .collect()
}

fn push<O: Order>(sorter: &mut Sorter<O>, entry: &[u8]) {
    let _: std::result::Result<(), ()> = sorter.add(|out| {
        out.extend_from_slice(entry);
        Ok(())
    });
}

async fn sorted(environment: &Arc<SimulatedEnvironment>, given: &[Vec<u8>], budget: usize) -> Vec<Vec<u8>> {
    let slice = txn::TimeSlice::new(environment.clone());
    let mut sorter = Sorter::new(ByHead, place(environment), budget);
    for entry in given {
        push(&mut sorter, entry);
        if sorter.is_full() {
            sorter.spill(&slice).await.unwrap();
        }
    }
    let mut sorted = sorter.finish().await.unwrap();
    let mut found = Vec::new();
    while let Some(entry) = sorted.next().await.unwrap() {
        found.push(entry.to_vec());
    }
    found
}

#[test]
fn spilled_or_not_the_entries_come_in_order_and_equal_ones_as_they_came() {
    let seed = 71;
    let environment = SimulatedEnvironment::new(seed);
    let mut random = Random::new(seed);
    for count in [0, 1, STRETCH - 1, STRETCH, STRETCH + 1, 20_000] {
        let given = entries(&mut random, count);
        let mut wanted = given.clone();
        wanted.sort_by(|left, right| left[..2].cmp(&right[..2]));
        // In memory; a few runs; so many that runs are merged into runs.
        for budget in [usize::MAX, 256 << 10, 16 << 10] {
            let found = environment.run_until_complete(sorted(&environment, &given, budget));
            assert!(found == wanted, "seed {seed}, {count} entries, {budget} bytes");
        }
    }
    assert!(environment.storage().list(Path::new("/sorting")).unwrap().is_empty(), "a file was left");
}

#[test]
fn an_entry_may_be_longer_than_what_is_read_at_a_time() {
    let environment = SimulatedEnvironment::new(3);
    let given: Vec<Vec<u8>> = (0..8u8).rev().map(|head| vec![head; 3 * run::READ_BYTES_MAX + 1]).collect();
    let mut wanted = given.clone();
    wanted.sort();
    assert!(environment.run_until_complete(sorted(&environment, &given, 1)) == wanted);
}

#[test]
fn keeping_the_first_few_is_sorting_and_cutting() {
    let seed = 5;
    let environment = SimulatedEnvironment::new(seed);
    let given = entries(&mut Random::new(seed), 5000);
    let mut wanted = given.clone();
    wanted.sort_by(|left, right| left[..2].cmp(&right[..2]));
    let mut sorter = Sorter::new(ByHead, place(&environment), usize::MAX);
    for entry in &given {
        push(&mut sorter, entry);
        if sorter.in_memory() == 300 {
            sorter.keep_first(100);
            assert_eq!(sorter.in_memory(), 100);
        }
    }
    sorter.keep_first(100);
    assert_eq!(sorter.last(), Some(&wanted[99][..]));
    let found = environment.run_until_complete(async {
        let mut sorted = sorter.finish().await.unwrap();
        let mut found = Vec::new();
        while let Some(entry) = sorted.next().await.unwrap() {
            found.push(entry.to_vec());
        }
        found
    });
    assert!(found == wanted[..100]);
}

#[test]
fn a_spill_gives_way_by_the_slice_and_ends_when_killed() {
    let environment = SimulatedEnvironment::new(9);
    let slice = txn::TimeSlice::new(environment.clone());
    slice.measure_in_units(64);
    let mut sorter = Sorter::new(ByHead, place(&environment), usize::MAX);
    let given = entries(&mut Random::new(9), 4096);
    given.iter().for_each(|entry| push(&mut sorter, entry));
    let polls = Cell::new(0);
    let result = environment.run_until_complete(async {
        let mut work = pin!(sorter.spill(&slice));
        poll_fn(|context| {
            slice.begin();
            polls.set(polls.get() + 1);
            if polls.get() == 20 {
                slice.stop();
            }
            work.as_mut().poll(context)
        })
        .await
    });
    assert!(result.is_err(), "a kill was not seen");
    // 19 slices of 64 entries at most; a few more polls for the file.
    assert!(polls.get() < 30, "{} polls", polls.get());
}
