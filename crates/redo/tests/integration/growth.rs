//! The circle grows where the disk lets it; where not, the log goes on in the circle it has, takes nothing
//! from others, and nobody waits longer than for a checkpoint.

#![allow(clippy::unwrap_used)]

use crate::common::*;
use disk::{Environment, Event, FaultKind, File, OpenHow, SimulatedEnvironment, Storage, Wait};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use untorn_redo::{Error, Flush, Interrupt, Lsn, Options, RedoLog};

const FRONT: u64 = 8192;
/// The smallest circle.
const AREA: u64 = 128 << 10;
/// The file that has it.
const FIRST: u64 = FRONT + AREA;

struct Machine {
    simulated: Arc<SimulatedEnvironment>,
    env: Arc<dyn Environment>,
    log: Arc<RedoLog>,
    file: Arc<dyn File>,
}

/// Its largest mini-transactions do not fit the first circle.
fn options() -> Options {
    Options { buffer_size: 1 << 20, background_sync: Duration::ZERO, ..growing() }
}

async fn put(log: &RedoLog, bytes: usize) -> Lsn {
    loop {
        match log.admit(bytes) {
            Ok(_admission) => return log.append(&vec![7; bytes], |_, _| {}),
            Err(Interrupt::Wait(wait)) => wait.await,
            Err(Interrupt::Error(error)) => panic!("{error}"),
        }
    }
}

impl Machine {
    fn new(seed: u64, options: Options) -> Machine {
        let simulated = SimulatedEnvironment::new(seed);
        let env: Arc<dyn Environment> = simulated.clone();
        env.storage().create_dir_all(&dir()).unwrap();
        let log = RedoLog::create(&env, &dir(), options).unwrap();
        let file = env.storage().open(&RedoLog::path(&dir()), OpenHow::READ_ONLY).unwrap();
        simulated.run_until_idle();
        Machine { simulated, env, log, file }
    }

    fn length(&self) -> u64 {
        self.file.len().unwrap()
    }

    fn put(&self, bytes: usize) -> Lsn {
        self.simulated.run_until_complete(put(&self.log, bytes))
    }

    fn flush(&self) {
        self.simulated.run_until_complete(flush(&self.log, self.log.current(), Flush::Sync)).unwrap();
    }

    fn checkpoint(&self) {
        self.simulated.run_until_complete(self.log.move_checkpoint(self.log.current())).unwrap();
        self.simulated.run_until_idle();
    }

    /// Goes on up to about `upto`, in groups of their own.
    fn load(&self, upto: u64, keeps_up: bool) {
        while self.log.current().0 + 1536 <= upto {
            self.put(1000);
            self.flush();
            if keeps_up {
                self.checkpoint();
            }
        }
        self.simulated.run_until_idle();
    }

    /// Somebody asks for this much, and has to wait.
    fn refused(&self, bytes: usize) -> Wait {
        let Err(Interrupt::Wait(wait)) = self.log.admit(bytes) else { panic!("there is room for {bytes}") };
        self.simulated.run_until_idle();
        wait
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.simulated.shutdown();
    }
}

#[test]
fn an_open_group_across_the_end_of_a_lap_in_which_the_log_was_let_round_goes_on() {
    for seed in 0..20 {
        let machine = Machine::new(seed, options());
        machine.load(FIRST - 3000, true);
        for _ in 0..3 {
            machine.put(2000);
        }
        assert!(machine.log.current() > Lsn(FIRST) && machine.length() == FIRST, "let round");
        let Err(Interrupt::Wait(wait)) = machine.log.admit(200_000) else { panic!("it does not fit") };
        machine.flush();
        machine.simulated.run_until_idle();
        machine.refused(200_000);
        assert!(machine.log.poisoned().is_none());
        let room = machine.log.capacity() - machine.log.room_wanted();
        assert!(room < 10_000, "the cleaner is asked to follow into the new lap: {room}");
        machine.checkpoint();
        machine.simulated.run_until_complete(wait);
        machine.put(200_000);
        assert!(machine.length() > FIRST);
    }
}

#[test]
fn a_file_that_cannot_grow_gives_back_what_it_took() {
    let machine = Machine::new(2, options());
    machine.simulated.disk().leave_room(50_000, FaultKind::Enospc);
    machine.load(FRONT + AREA / 4 * 3, false);
    assert_eq!(machine.length(), FIRST);
    // Somebody else has room for all of that.
    let other = machine.env.storage().open(&dir().join("other"), OpenHow::CREATE_NEW.buffered()).unwrap();
    other.write_at(&[1; 50_000], 0).unwrap();
}

/// Nobody has to wait until growing is tried again.
#[test]
fn on_a_full_disk_a_lap_takes_as_long_as_its_writes() {
    let machine = Machine::new(3, options());
    machine.simulated.disk().fill_up(true);
    let load = Load { workers: 3, mini_transactions: 300, size: 3000, acknowledge_at: Flush::Sync };
    let truth = Arc::new(Mutex::new(Truth::default()));
    let begun = machine.env.now();
    machine.simulated.run_until_complete(run(machine.env.clone(), machine.log.clone(), truth, load, 1));
    let (laps, took) = (machine.log.current().0 / AREA, machine.env.now() - begun);
    assert!(laps > 6 && took < Duration::from_secs(1), "{laps} laps in {took:?}");
    assert_eq!(machine.length(), FIRST);
}

/// Only a larger circle helps. It is tried now and then, not all the time, and also when nothing else
/// happens.
#[test]
fn who_does_not_fit_the_circle_goes_on_when_there_is_room_on_the_disk() {
    let machine = Machine::new(4, options());
    machine.simulated.disk().fill_up(true);
    let (log, done) = (machine.log.clone(), Event::new());
    let over = done.clone();
    let waits = async move {
        put(&log, 200_000).await;
        over.set();
    };
    machine.env.spawn("waits for a larger circle", Box::pin(waits));
    let before = machine.simulated.disk().counters().writes;
    machine.simulated.advance(Duration::from_secs(10));
    let tries = machine.simulated.disk().counters().writes - before;
    assert!((5..15).contains(&tries), "{tries} in ten seconds");
    assert!(!done.is_set());
    machine.simulated.disk().fill_up(false);
    machine.simulated.run_until_complete(done.wait());
}

#[test]
fn zeros_that_cannot_be_written_do_not_stop_the_log() {
    let machine = Machine::new(5, options());
    machine.simulated.disk().leave_room(0, FaultKind::Eio);
    machine.load(FRONT + AREA / 4 * 3, false);
    assert!(machine.log.poisoned().is_none() && machine.length() == FIRST);
    machine.simulated.disk().fill_up(false);
    machine.simulated.advance(Duration::from_secs(2));
    machine.load(FIRST + AREA / 2, false);
    assert!(machine.log.poisoned().is_none() && machine.length() > FIRST);
}

#[test]
fn closing_ends_a_growth_and_the_file_stays_as_it_was_cut() {
    let first = 32 << 20;
    let large = Options { capacity: 128 << 20, first_size: first, ..options() };
    let machine = Machine::new(6, large.clone());
    while machine.length() == first {
        machine.put(400_000);
        machine.flush();
        machine.simulated.advance(Duration::from_millis(30));
    }
    machine.simulated.run_until_complete(async {
        machine.log.move_checkpoint(machine.log.current()).await.unwrap();
        machine.log.close().await.unwrap();
    });
    machine.simulated.run_until_idle();
    assert_eq!(machine.length(), first);
    recover(&machine.env, &dir(), large, &mut Truth::default()).unwrap();
}

/// What is added is written for nothing if the log ends soon.
#[test]
fn a_large_circle_grows_by_half_and_not_before_a_quarter_of_it_is_left() {
    let first = FRONT + (32 << 20);
    let machine = Machine::new(11, Options { capacity: 256 << 20, first_size: first, ..options() });
    while machine.length() == first {
        machine.put(400_000);
        machine.flush();
        machine.simulated.advance(Duration::from_secs(1));
    }
    // At leisure.
    machine.simulated.advance(Duration::from_secs(20));
    let end = machine.log.current().0;
    assert!((FRONT + (24 << 20)..FRONT + (26 << 20)).contains(&end), "{end}");
    assert_eq!(machine.length(), FRONT + (48 << 20));
}

/// What is promised may fill the circle while its log is short: letting it round gives no room.
#[test]
fn a_burst_of_promises_lets_the_circle_grow() {
    let machine = Machine::new(7, options());
    let promised: Vec<_> = std::iter::from_fn(|| machine.log.admit(16 << 10).ok()).collect();
    assert_eq!(promised.len(), 7);
    let wait = machine.refused(16 << 10);
    machine.simulated.run_until_complete(wait);
    assert!(machine.length() > FIRST);
    assert!(machine.log.admit(16 << 10).is_ok());
}

/// As long as the checkpoint is in the lap before the circle cannot grow. The cleaner steers for less than
/// half of it, and is asked to hurry for no more than is missing.
#[test]
fn a_log_that_has_gone_round_asks_for_what_is_missing_of_half_its_circle() {
    let machine = Machine::new(8, options());
    machine.load(FRONT + AREA / 2, true);
    assert_eq!(machine.log.age_goal(), None);
    machine.load(FIRST - 3000, true);
    assert_eq!(machine.log.age_goal(), Some(AREA / 32 * 15));
    machine.load(FIRST + AREA / 2 - 5000, false);
    assert!(!machine.log.space_wanted().is_set(), "there is no hurry");
    machine.load(FIRST + AREA / 2 + 5000, false);
    assert!(machine.log.space_wanted().is_set());
    assert_eq!(machine.log.capacity() - machine.log.room_wanted(), AREA / 2);
    // It has followed a part of the way.
    machine.simulated.run_until_complete(machine.log.move_checkpoint(Lsn(FIRST))).unwrap();
    assert!(machine.log.room_wanted() == 0 || machine.log.age() > AREA / 2);
    machine.checkpoint();
    assert_eq!((machine.log.age_goal(), machine.log.room_wanted()), (None, 0));
}

/// A circle of 64 MiB that has begun to grow, with `zeros` bytes of zeros written, and a log that needs
/// `age`.
fn growth_under_way(age: u64, zeros: u64) -> Machine {
    let first = FRONT + (64 << 20);
    let (capacity, buffer_size) = (256 << 20, 64 << 20);
    let machine = Machine::new(12, Options { capacity, buffer_size, first_size: first, ..options() });
    let put = |upto: u64| {
        while machine.log.current().0 < upto {
            machine.put(400_000);
            machine.flush();
            machine.simulated.advance(Duration::from_millis(100));
        }
    };
    put(FRONT + (47 << 20) - age);
    machine.checkpoint();
    put(FRONT + (47 << 20));
    assert_eq!(machine.length(), first);
    while machine.length() < first + zeros {
        machine.put(400);
        machine.flush();
        machine.simulated.advance(Duration::from_millis(1));
    }
    machine
}

/// Promises all there is, and waits for more.
fn promise_all(machine: &Machine) {
    let promised: Vec<_> = std::iter::from_fn(|| machine.log.admit(500_000).ok()).collect();
    assert!((20..40).contains(&promised.len()), "{}", promised.len());
    let begun = machine.env.now();
    machine.simulated.run_until_complete(machine.refused(500_000));
    assert!(machine.log.admit(500_000).is_ok());
    let took = machine.env.now() - begun;
    assert!(took < Duration::from_millis(20), "{took:?}");
}

#[test]
fn a_sudden_load_takes_what_there_is_of_zeros_and_the_circle_goes_on_growing() {
    let machine = growth_under_way(40 << 20, 5 << 20);
    let first = FRONT + (64 << 20);
    promise_all(&machine);
    let grown = machine.length();
    assert!((first + (5 << 20)..first + (8 << 20)).contains(&grown), "{grown}");
    assert_eq!(machine.log.age_goal(), None);
    while machine.log.current().0 < FRONT + (90 << 20) {
        machine.put(400_000);
        machine.flush();
    }
    machine.simulated.run_until_idle();
    assert!(machine.length() > FRONT + (96 << 20), "{}", machine.length());
}

/// Where next to nothing has been written and half of the circle is free.
#[test]
fn a_sudden_load_goes_round_where_there_is_room_and_finds_the_zeros_in_a_later_lap() {
    let machine = growth_under_way(18 << 20, 1);
    promise_all(&machine);
    let (first, zeros) = (FRONT + (64 << 20), machine.length());
    assert!(machine.log.age_goal().is_some() && zeros < first + (2 << 20), "{zeros}");
    let load = |upto: u64| {
        while machine.log.current().0 < FRONT + upto {
            machine.put(400_000);
            machine.flush();
        }
    };
    load(55 << 20);
    machine.checkpoint();
    load(70 << 20);
    machine.checkpoint();
    assert_eq!(machine.length(), zeros, "they are kept");
    machine.log.set_capacity(first).unwrap();
    machine.simulated.run_until_idle();
    assert_eq!(machine.length(), first, "as long as the capacity has room for them");
    machine.log.set_capacity(256 << 20).unwrap();
    load(115 << 20);
    machine.simulated.advance(Duration::from_secs(5));
    assert!(machine.length() > zeros + (4 << 20), "{}", machine.length());
    // What is in both laps is found.
    machine.flush();
    let disk = machine.simulated.disk().crash(1);
    let env: Arc<dyn Environment> = SimulatedEnvironment::with_storage(2, disk);
    let log = RedoLog::open(&env, &dir(), Options { capacity: 256 << 20, ..options() }).unwrap();
    let mut end = Lsn(0);
    log.scan::<Error>(
        |_, last, _| {
            end = last;
            Ok(())
        },
        |_, _| {},
    )
    .unwrap();
    assert!(end.0 > FRONT + (115 << 20), "{end}");
}

#[test]
fn no_page_is_written_for_what_an_archive_holds_back() {
    let machine = Machine::new(9, options());
    machine.load(FRONT + AREA / 8 * 5, true);
    let archive = machine.log.archive().unwrap();
    machine.simulated.disk().fill_up(true);
    machine.load(FRONT + AREA / 4 * 5, true);
    assert!(machine.length() == FIRST && machine.log.current() > Lsn(FIRST));
    machine.simulated.advance(Duration::from_secs(2));
    machine.checkpoint();
    machine.load(machine.log.current().0 + 5000, false);
    assert!(!machine.log.space_wanted().is_set(), "{}", machine.log.space_short());
    drop(archive);
    machine.load(machine.log.current().0 + AREA / 2, true);
}

#[test]
fn a_closed_log_says_what_its_file_has() {
    let machine = Machine::new(10, options());
    machine.load(FRONT + AREA / 4 * 3, false);
    machine.simulated.run_until_idle();
    machine.load(FRONT + 5 * AREA, false);
    assert!(machine.length() > FIRST + AREA);
    let used = machine.log.age();
    machine.checkpoint();
    machine.simulated.run_until_complete(machine.log.close()).unwrap();
    let content = machine.simulated.disk().content(&RedoLog::path(&dir())).unwrap();
    let field = |block: usize, at: usize| {
        u64::from_le_bytes(content[block * 4096 + at..block * 4096 + at + 8].try_into().unwrap())
    };
    let newest = usize::from(field(1, 16) > field(0, 16));
    let [area, origin, checkpoint, start, flushed] = [32, 40, 48, 56, 64].map(|at| field(newest, at));
    // So much that the same log has room without growing.
    assert_eq!(content.len() as u64, FRONT + area);
    assert!(area >= used / 2 * 3 && area < used / 2 * 3 + 8192 && used > 4 * AREA, "{area} for {used}");
    assert_eq!([checkpoint, start, flushed], [origin; 3]);
    assert!(origin >= machine.log.current().0 && origin.is_multiple_of(4096));
    assert_eq!(machine.log.checkpoint_lsn(), machine.log.current());
    let log = recover(&machine.env, &dir(), options(), &mut Truth::default()).unwrap();
    assert_eq!(log.current(), Lsn(origin));
    assert!(!matches!(log.poisoned(), Some(Error::Poisoned { .. })));
}

/// Large groups are at the end of their zeros soon, and need not have them written; small ones are synced
/// often, and need them.
#[test]
fn zeros_are_only_reserved_for_a_log_that_is_written_in_large_groups() {
    let allocations = |bytes: usize| {
        let machine = Machine::new(50, Options { capacity: 64 << 20, ..options() });
        machine.simulated.disk().offer_allocation();
        for _ in 0..(20 << 20) / bytes {
            machine.put(bytes);
            machine.flush();
        }
        machine.simulated.run_until_idle();
        assert!(machine.length() >= 20 << 20, "it has grown");
        let allocations = machine.simulated.disk().allocations();
        machine.simulated.shutdown();
        allocations
    };
    assert!(allocations(500_000) > 2);
    assert_eq!(allocations(20_000), 0);
}
