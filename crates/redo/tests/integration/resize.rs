//! Another capacity while the log works: larger at once, smaller as soon as what is needed fits.

#![allow(clippy::unwrap_used)]

use crate::common::*;
use disk::{Environment, Event, File, OpenHow, Random, SimulatedEnvironment};
use parking_lot::Mutex;
use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use untorn_redo::{Error, Flush, Interrupt, Options, RedoLog};

const FRONT: u64 = 8192;
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const STEP: Duration = Duration::from_millis(100);

struct Machine {
    simulated: Arc<SimulatedEnvironment>,
    env: Arc<dyn Environment>,
    log: Arc<RedoLog>,
    file: Arc<dyn File>,
    truth: Arc<Mutex<Truth>>,
    random: Mutex<Random>,
}

fn options() -> Options {
    let (capacity, background_sync) = (2 * MIB, Duration::ZERO);
    Options { capacity, first_size: capacity, buffer_size: 1 << 20, background_sync, ..small() }
}

impl Machine {
    fn new(seed: u64, options: Options) -> Machine {
        let simulated = SimulatedEnvironment::new(seed);
        let env: Arc<dyn Environment> = simulated.clone();
        env.storage().create_dir_all(&dir()).unwrap();
        env.storage().sync_dir(std::path::Path::new("/")).unwrap();
        let log = RedoLog::create(&env, &dir(), options).unwrap();
        let file = env.storage().open(&RedoLog::path(&dir()), OpenHow::READ_ONLY).unwrap();
        simulated.run_until_idle();
        let truth = Arc::new(Mutex::new(Truth::default()));
        Machine { simulated, env, log, file, truth, random: Mutex::new(Random::new(seed)) }
    }

    fn length(&self) -> u64 {
        self.file.len().unwrap()
    }

    /// Appends this many bytes, in durable pieces; the age is kept below `age`.
    fn load(&self, bytes: u64, age: u64) {
        let (begin, mut random) = (self.log.current(), self.random.lock());
        while self.log.current().since(begin) < bytes {
            // As a cleaner does.
            if self.log.age() > self.log.age_goal().map_or(age, |goal| age.min(goal)) {
                self.checkpoint();
            }
            self.simulated.run_until_complete(async {
                let end = append(&self.log, &self.truth, 3000, &mut random).await.unwrap();
                flush(&self.log, end, Flush::Sync).await.unwrap();
                self.truth.lock().acknowledged = end;
            });
            self.simulated.run_until_idle();
        }
    }

    fn checkpoint(&self) {
        let target = self.log.current();
        self.simulated.run_until_complete(self.log.move_checkpoint(target)).unwrap();
        self.truth.lock().checkpoint = target;
        self.simulated.run_until_idle();
    }

    fn steps(&self, steps: u32) {
        self.simulated.advance(STEP * steps);
    }

    /// The power goes; what is found then is complete.
    fn crash(&self, options: Options) -> Arc<RedoLog> {
        let env: Arc<dyn Environment> =
            SimulatedEnvironment::with_storage(9, self.simulated.disk().crash(self.random.lock().next_u64()));
        recover(&env, &dir(), options, &mut self.truth.lock().clone()).unwrap()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.simulated.shutdown();
    }
}

#[test]
fn a_larger_capacity_is_there_at_once_and_the_circle_grows_as_it_is_needed() {
    for age in [100 * KIB, 400 * KIB] {
        // In the first lap, and gone round.
        for before in [50 * KIB, 700 * KIB] {
            let small = Options { capacity: 512 * KIB, first_size: 512 * KIB, ..options() };
            let machine = Machine::new(age + before, small.clone());
            machine.load(before, age);
            let capacity = machine.log.capacity();
            machine.log.set_capacity(4 * MIB).unwrap();
            assert!(machine.log.capacity() > 7 * capacity && !machine.log.resize().is_under_way());
            assert_eq!(machine.log.resize().reached, 4 * MIB);
            machine.load(512 * KIB, age);
            machine.load(3 * MIB, 2 * MIB);
            assert!(machine.length() > 1500 * KIB, "{}", machine.length());
            machine.crash(small);
        }
    }
}

#[test]
fn a_start_searches_the_circle_there_is_and_not_the_capacity() {
    let small = Options { capacity: 512 * KIB, first_size: 512 * KIB, ..options() };
    let machine = Machine::new(1, small);
    assert_eq!(machine.log.search_bytes(), 512 * KIB - FRONT, "where it is small, all of it");
    machine.log.set_capacity(512 << 30).unwrap();
    for _ in 0..8 {
        machine.load(200 * KIB, 300 * KIB);
        machine.checkpoint();
        let (searched, length) = (machine.log.search_bytes(), machine.length());
        assert!(searched <= length - FRONT, "{searched} of {length} bytes");
    }
    let large = Options { capacity: 32 * MIB, first_size: 32 * MIB, ..options() };
    assert_eq!(Machine::new(2, large).log.search_bytes(), 4 * MIB, "the reach");
}

/// The log is where the smaller circle has no place, and comes round to it.
#[test]
fn the_circle_becomes_smaller_when_what_is_needed_has_come_round() {
    let machine = Machine::new(1, options());
    machine.load(1750 * KIB, 1000 * KIB);
    machine.log.set_capacity(512 * KIB).unwrap();
    let resize = machine.log.resize();
    assert!(resize.is_under_way() && resize.wanted == 512 * KIB && resize.reached == 2 * MIB);
    assert!(machine.log.age() > 512 * KIB && machine.log.capacity() > machine.log.age(), "it walks down");
    while machine.log.age() > 300 * KIB || machine.log.capacity() > 512 * KIB {
        assert!(machine.log.capacity() > machine.log.age(), "nothing has to be hurried");
        machine.load(10 * KIB, machine.log.age().saturating_sub(20 * KIB));
        machine.steps(60);
    }
    assert_eq!(machine.length(), 2 * MIB, "not in this lap");
    while machine.log.resize().is_under_way() {
        assert!(machine.log.current().0 < FRONT + 2 * MIB + 512 * KIB);
        machine.load(10 * KIB, 300 * KIB);
        machine.steps(1);
    }
    assert_eq!((machine.length(), machine.log.resize().reached), (512 * KIB, 512 * KIB));
    machine.load(200 * KIB, 300 * KIB);
    machine.crash(options());
    machine.load(2000 * KIB, 300 * KIB);
    machine.crash(Options { capacity: 512 * KIB, ..options() });
}

#[test]
fn a_log_in_which_nothing_is_needed_becomes_smaller_wherever_it_is() {
    let machine = Machine::new(2, options());
    machine.load(1500 * KIB, 1000 * KIB);
    // To the end of the last mini-transaction, as the cleaner does.
    let last = machine.truth.lock().appended.last().unwrap().end;
    machine.simulated.run_until_complete(machine.log.move_checkpoint(last)).unwrap();
    machine.log.set_capacity(512 * KIB).unwrap();
    machine.steps(3);
    assert_eq!((machine.length(), machine.log.resize().is_under_way()), (512 * KIB, false));
    machine.load(100 * KIB, MIB);
    machine.crash(options());
    machine.load(1000 * KIB, 300 * KIB);
    machine.crash(options());
}

#[test]
fn who_thinks_better_of_it_has_the_larger_log_again() {
    for pause in [0, 1, 5, 50, 400] {
        let machine = Machine::new(u64::from(pause), options());
        machine.load(1500 * KIB, 300 * KIB);
        machine.log.set_capacity(512 * KIB).unwrap();
        machine.steps(pause);
        machine.load(300 * KIB, 300 * KIB);
        machine.log.set_capacity(3 * MIB).unwrap();
        assert!(machine.log.capacity() > 2900 * KIB && !machine.log.resize().is_under_way());
        machine.load(2 * MIB, 200 * KIB);
        machine.load(2600 * KIB, 2600 * KIB);
        assert!(machine.length() > 2 * MIB);
        machine.crash(options());
    }
}

#[test]
fn while_a_backup_copies_the_log_it_stays_as_large_as_it_is() {
    let machine = Machine::new(3, options());
    machine.load(1500 * KIB, 300 * KIB);
    machine.log.set_capacity(512 * KIB).unwrap();
    machine.steps(400);
    let mut archive = machine.log.archive().unwrap();
    for _ in 0..30 {
        machine.load(50 * KIB, 200 * KIB);
        machine.steps(1);
        while machine.simulated.run_until_complete(archive.next_piece()).unwrap().is_some() {}
    }
    machine.checkpoint();
    machine.steps(5);
    assert_eq!(machine.length(), 2 * MIB);
    drop(archive);
    machine.steps(5);
    assert_eq!(machine.length(), 512 * KIB);
}

/// A start with a smaller capacity after a crash: what was found is larger.
#[test]
fn a_log_that_was_larger_before_a_crash_is_cut_while_it_works() {
    let machine = Machine::new(4, options());
    machine.load(1500 * KIB, 300 * KIB);
    let simulated = SimulatedEnvironment::with_storage(1, machine.simulated.disk().crash(1));
    let env: Arc<dyn Environment> = simulated.clone();
    let options = Options { capacity: 512 * KIB, ..options() };
    let log = recover(&env, &dir(), options.clone(), &mut machine.truth.lock().clone()).unwrap();
    assert!(log.resize().is_under_way());
    simulated.run_until_complete(log.move_checkpoint(log.current())).unwrap();
    simulated.advance(STEP * 400);
    assert!(!log.resize().is_under_way());
    let file = env.storage().open(&RedoLog::path(&dir()), OpenHow::READ_ONLY).unwrap();
    assert_eq!(file.len().unwrap(), 512 * KIB);
    simulated.shutdown();
}

/// Nobody waits for what the log will never have again.
#[test]
fn who_asks_for_more_than_the_smaller_log_takes_is_refused() {
    let machine = Machine::new(5, options());
    machine.load(1800 * KIB, 2 * MIB);
    let Err(Interrupt::Wait(wait)) = machine.log.admit(400_000) else { panic!("it is full") };
    machine.log.set_capacity(512 * KIB).unwrap();
    machine.simulated.run_until_complete(wait);
    assert!(matches!(machine.log.admit(400_000), Err(Interrupt::Error(Error::TooLarge { .. }))));
    assert!(matches!(machine.log.set_capacity(10_000), Err(Error::Setting(_))));
}

/// A load that waits for nothing but the log, and capacities that change all the time: everything gets
/// through, the file has what the capacity says at the end, and a crash finds everything.
#[test]
fn changes_both_ways_under_load_stop_nobody() {
    for seed in 0..40 {
        let options = Options { resize_step: Duration::from_micros(50), first_size: 0, ..options() };
        let machine = Machine::new(seed, options.clone());
        let stop = Event::new();
        let random = Random::new(seed);
        let changes = change_capacity(machine.env.clone(), machine.log.clone(), stop.clone(), random);
        machine.env.spawn("changes the capacity", Box::pin(changes));
        let load = Load { workers: 5, mini_transactions: 200, size: 8000, acknowledge_at: Flush::Sync };
        let (env, log, truth) = (machine.env.clone(), machine.log.clone(), machine.truth.clone());
        machine.simulated.run_until_complete(run(env, log, truth, load, seed));
        assert_eq!(machine.truth.lock().serial, 1000);
        assert!(machine.log.poisoned().is_none());
        stop.set();
        machine.simulated.advance(Duration::from_secs(1));
        machine.log.set_capacity(CAPACITIES[0]).unwrap();
        machine.simulated.advance(Duration::from_secs(1));
        machine.load(3 * MIB, 150 * KIB);
        machine.simulated.advance(Duration::from_secs(1));
        assert_eq!(machine.length(), CAPACITIES[0], "seed {seed}: {:?}", machine.log.resize());
        machine.crash(options);
    }
}

/// The longest promise that a former block made is no longer than the one that follows it.
#[test]
fn the_promise_of_a_reach_becomes_less_without_being_broken() {
    let large = Options { capacity: 256 * MIB, first_size: 64 * MIB, buffer_size: 4 << 20, ..options() };
    let machine = Machine::new(6, large.clone());
    machine.load(MIB, 64 * MIB);
    // The promises of a reach of 16 MiB; 4 MiB would be that of the smaller log.
    let promised: Vec<_> = std::iter::from_fn(|| machine.log.admit(500_000).ok()).collect();
    assert!(promised.len() > 5, "{}", promised.len());
    machine.log.set_capacity(32 * MIB).unwrap();
    for _ in promised {
        machine.load(400_000, 64 * MIB);
        machine.checkpoint();
        assert!(machine.log.poisoned().is_none());
    }
    machine.steps(400);
    machine.load(10 * MIB, MIB);
    machine.steps(10);
    assert!(machine.log.poisoned().is_none() && machine.length() <= 32 * MIB);
    machine.crash(large);
}

/// While a growth is under way, at any of its steps, the capacity becomes smaller, so that a writer comes
/// past the end of the lap, and then larger again. The circle must not grow over what was written at its
/// front.
#[test]
fn a_growth_is_given_up_when_the_log_has_gone_round_meanwhile() {
    let small = Options { capacity: 512 * KIB, first_size: 512 * KIB, ..options() };
    let mut past = 0;
    for moment in 0..80 {
        let machine = Machine::new(moment, small.clone());
        machine.load(470 * KIB, 250 * KIB);
        machine.log.set_capacity(4 * MIB).unwrap();
        (0..moment).all(|_| machine.simulated.step());
        let grows = machine.length() > 512 * KIB;
        machine.log.set_capacity(512 * KIB).unwrap();
        let mut random = Random::new(moment);
        while machine.log.current().0 < 600 * KIB && machine.log.admit(5000).is_ok() {
            // There is room: nothing waits.
            let append = append(&machine.log, &machine.truth, 4000, &mut random);
            assert!(append.now_or_never().is_some());
        }
        past += u32::from(grows && machine.log.current().0 > 520 * KIB);
        machine.log.set_capacity(4 * MIB).unwrap();
        machine.steps(30);
        assert!(machine.log.poisoned().is_none(), "{moment}: {:?}", machine.log.poisoned());
        machine.load(10 * KIB, MIB);
        machine.crash(small.clone());
        machine.load(2 * MIB, 1500 * KIB);
        assert!(machine.log.poisoned().is_none(), "{moment}");
        machine.crash(small.clone());
    }
    assert!(past > 0, "it was never past the lap while the circle grew");
}

/// The output of a future that waits for nothing.
trait NowOrNever: Future + Sized {
    fn now_or_never(self) -> Option<Self::Output> {
        match std::pin::pin!(self).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        }
    }
}

impl<F: Future> NowOrNever for F {}
