//! How far the log runs ahead of its checkpoint is bounded, beside the capacity, by a limit that may move.

#![allow(clippy::unwrap_used)]

use crate::common::*;
use disk::{Environment, Event, OpenHow, Random, SimulatedEnvironment, Wait};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use untorn_redo::{Flush, Interrupt, Options, RedoLog};

const LIMIT: u64 = 40 << 10;

struct Machine {
    simulated: Arc<SimulatedEnvironment>,
    env: Arc<dyn Environment>,
    log: Arc<RedoLog>,
}

impl Machine {
    fn new(seed: u64, options: Options) -> Machine {
        let simulated = SimulatedEnvironment::new(seed);
        let env: Arc<dyn Environment> = simulated.clone();
        env.storage().create_dir_all(&dir()).unwrap();
        let log = RedoLog::create(&env, &dir(), options).unwrap();
        simulated.run_until_idle();
        Machine { simulated, env, log }
    }

    /// False when it would have to wait.
    fn put(&self, bytes: usize) -> bool {
        let admitted = self.log.admit(bytes).map(|_admission| {
            self.log.append(&vec![7; bytes], |_, _| {});
        });
        drop(self.log.flush(self.log.current(), Flush::Sync));
        self.simulated.run_until_idle();
        admitted.is_ok()
    }

    fn refused(&self, bytes: usize) -> Wait {
        let Err(Interrupt::Wait(wait)) = self.log.admit(bytes) else { panic!("there is room for {bytes}") };
        self.simulated.run_until_idle();
        wait
    }

    fn checkpoint(&self) {
        self.simulated.run_until_complete(self.log.move_checkpoint(self.log.current())).unwrap();
        self.simulated.run_until_idle();
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.simulated.shutdown();
    }
}

fn options() -> Options {
    let (capacity, background_sync) = (4 << 20, Duration::ZERO);
    Options { capacity, first_size: capacity, buffer_size: 1 << 20, background_sync, ..growing() }
}

#[test]
fn at_the_limit_newcomers_wait_and_the_cleaner_is_asked_for_as_much_as_is_missing() {
    let machine = Machine::new(1, Options { first_size: 0, ..options() });
    let length = || machine.env.storage().open(&RedoLog::path(&dir()), OpenHow::READ_ONLY).unwrap().len();
    let first = length().unwrap();
    machine.log.set_age_limit(LIMIT);
    while machine.put(1000) {}
    let (age, capacity) = (machine.log.age(), machine.log.capacity());
    assert!((LIMIT..LIMIT + 3000).contains(&age), "{age}");
    assert!(machine.log.space_wanted().is_set());
    let room = machine.log.room_wanted();
    assert!(capacity - age < room, "a page is in the way: {room}");
    assert!(capacity - LIMIT / 2 > room, "but not every page: {room}");
    // Nothing that a larger circle would help.
    assert_eq!((machine.log.capacity(), length().unwrap()), (capacity, first));
    machine.checkpoint();
    assert!(machine.put(1000) && machine.log.room_wanted() == 0);
}

#[test]
fn raised_it_lets_those_in_who_wait_and_lowered_it_keeps_what_was_promised() {
    let machine = Machine::new(2, options());
    machine.log.set_age_limit(LIMIT);
    while machine.put(1000) {}
    let wait = machine.refused(1000);
    machine.log.set_age_limit(2 * LIMIT);
    machine.simulated.run_until_complete(wait);
    let admission = machine.log.admit(100_000).unwrap();
    machine.log.set_age_limit(0);
    let wait = machine.refused(1);
    machine.log.append(&[7; 100_000], |_, _| {});
    drop(admission);
    machine.simulated.run_until_complete(wait);
    let wait = machine.refused(1);
    machine.checkpoint();
    machine.simulated.run_until_complete(wait);
    assert!(machine.put(1), "however low the limit, an empty log takes one");
    machine.log.set_age_limit(u64::MAX);
    assert!(machine.put(1) && machine.log.poisoned().is_none());
}

/// One that is larger than the limit is let in when nothing is before it, also where the last checkpoint is
/// at its predecessor's end and not at the end of the group.
#[test]
fn the_largest_mini_transaction_gets_through_under_the_lowest_limit() {
    let machine = Machine::new(3, options());
    machine.log.set_age_limit(1);
    let largest = machine.log.mini_transaction_bytes_max();
    assert!(largest > 400_000, "{largest}");
    let (log, env) = (machine.log.clone(), machine.env.clone());
    machine.simulated.run_until_complete(async move {
        for round in 0..6 {
            let mut waits = 0;
            let end = loop {
                match log.admit(largest) {
                    Ok(_admission) => break log.append(&vec![7; largest], |_, _| {}),
                    Err(Interrupt::Wait(wait)) => wait.await,
                    Err(Interrupt::Error(error)) => panic!("{error}"),
                }
                waits += 1;
                assert!(waits < 100, "round {round} waits for what never comes");
            };
            log.flush_async(end, Flush::Sync).await.unwrap();
            let mover = log.clone();
            env.spawn("cleaner", Box::pin(async move { mover.move_checkpoint(end).await.unwrap() }));
        }
    });
}

/// Room in the log and room in its buffer are waited for by different people.
#[test]
fn waits_for_the_buffer_are_counted_by_themselves() {
    let counts = |machine: &Machine| {
        let status = machine.log.status();
        (status.buffer_waits, status.room_waits)
    };
    let machine = Machine::new(1, options());
    machine.log.set_age_limit(LIMIT);
    while machine.put(1000) {}
    assert_eq!(counts(&machine), (0, 1));
    let machine = Machine::new(1, Options { buffer_size: 64 << 10, ..options() });
    let mut appended = 0;
    let refused = loop {
        match machine.log.admit(20_000) {
            Ok(_admission) => drop(machine.log.append(&[7; 20_000], |_, _| {})),
            Err(Interrupt::Wait(wait)) => break wait,
            Err(Interrupt::Error(error)) => panic!("{error}"),
        }
        appended += 1;
        assert!(appended < 10, "a buffer of 64 KiB took {appended} times 20 KB");
    };
    assert_eq!(counts(&machine), (1, 0));
    drop(refused);
}

/// Many of them, while it moves up and down: everything gets through, and nowhere is the log further ahead
/// than the highest limit and what single mini-transactions go past it.
#[test]
fn a_limit_that_moves_stops_nobody_for_good() {
    for seed in 0..30 {
        let machine = Machine::new(seed, options());
        let (truth, over) = (Arc::new(Mutex::new(Truth::default())), Event::new());
        let oldest = Arc::new(Mutex::new(0));
        let mover = {
            let (log, env, over, oldest) =
                (machine.log.clone(), machine.env.clone(), over.clone(), oldest.clone());
            async move {
                let mut random = Random::new(seed);
                while !over.is_set() {
                    log.set_age_limit(random.below(2 * LIMIT as usize) as u64);
                    env.sleep(Duration::from_micros(random.below(3000) as u64)).await;
                    let mut oldest = oldest.lock();
                    *oldest = log.age().max(*oldest);
                }
            }
        };
        machine.env.spawn("moves the limit", Box::pin(mover));
        let load = Load { workers: 4, mini_transactions: 150, size: 6000, acknowledge_at: Flush::Sync };
        let run = run(machine.env.clone(), machine.log.clone(), truth.clone(), load, seed);
        machine.simulated.run_until_complete(run);
        over.set();
        assert_eq!(truth.lock().serial, 600);
        assert!(machine.log.status().room_waits > 10);
        let oldest = *oldest.lock();
        assert!(oldest > LIMIT && oldest < 2 * LIMIT + 10_000, "seed {seed}: {oldest}");
    }
}
