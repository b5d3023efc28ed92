//! The simulated environment: one thread that picks, by seed, what happens next.
//!
//! A step is one of: poll a ready task, complete a request under way, poll the test's own future. The virtual
//! clock moves a little with every step, and jumps to the next timer when nothing else is left to do. When
//! nothing is left at all but the test still waits, that is a lost wake-up or a deadlock, and the simulation
//! says so with its seed.

use crate::environment::TaskFuture;
use crate::executor::Scheduler;
use crate::simulated::storage::SimulatedStorage;
use crate::timer::Sleep;
use crate::{Environment, Event, Random, Storage};
use parking_lot::Mutex;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

/// 2026-01-01 00:00:00 UTC, when every simulation starts.
const START_OF_TIME: Duration = Duration::from_secs(1_767_225_600);

/// One thread, a seed, a virtual clock.
pub struct SimulatedEnvironment {
    seed: u64,
    disk: Arc<SimulatedStorage>,
    storage: Arc<dyn Storage>,
    scheduler: Arc<Scheduler>,
    state: Mutex<State>,
}

struct State {
    random: Random,
    now: Duration,
    /// Steps until the simulation counts as endless.
    steps_left: u64,
}

/// What a step may be.
enum Choice {
    Main,
    Task(usize),
    Completion(usize),
}

struct MainWaker(AtomicBool);

impl Wake for MainWaker {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

impl SimulatedEnvironment {
    /// An environment with an empty disk.
    pub fn new(seed: u64) -> Arc<SimulatedEnvironment> {
        SimulatedEnvironment::with_storage(seed, SimulatedStorage::new(seed))
    }

    /// An environment on an existing disk (after a crash).
    pub fn with_storage(seed: u64, disk: Arc<SimulatedStorage>) -> Arc<SimulatedEnvironment> {
        // The disk draws from its own numbers; ours must not repeat them.
        let random = Random::new(seed ^ 0x5EED_7A5C);
        Arc::new(SimulatedEnvironment {
            seed,
            storage: disk.clone(),
            disk,
            scheduler: Arc::default(),
            state: Mutex::new(State { random, now: Duration::ZERO, steps_left: u64::MAX }),
        })
    }

    /// The disk.
    pub fn disk(&self) -> &Arc<SimulatedStorage> {
        &self.disk
    }

    /// Lets the simulation panic after this number of further steps: what is waited for then will not come,
    /// though something always goes on.
    pub fn limit_steps(&self, steps: u64) {
        self.state.lock().steps_left = steps;
    }

    /// Runs tasks, completions and timers until `future` is complete.
    ///
    /// # Panics
    /// When nothing is left that could complete it.
    pub fn run_until_complete<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        let main = Arc::new(MainWaker(AtomicBool::new(true)));
        let waker = Waker::from(main.clone());
        let mut context = Context::from_waker(&waker);
        loop {
            match self.choose(main.0.load(Ordering::Acquire)) {
                Some(Choice::Main) => {
                    main.0.store(false, Ordering::Release);
                    if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
                        return output;
                    }
                }
                Some(choice) => self.take(choice),
                None if self.jump(None) => {}
                None => self.stalled("the simulated future"),
            }
            self.tick(Duration::from_micros(1));
        }
    }

    /// Runs tasks and completions until only timers are left.
    pub fn run_until_idle(&self) {
        while self.step() {}
    }

    /// Runs one ready task or completes one request; false when there is neither.
    pub fn step(&self) -> bool {
        match self.choose(false) {
            Some(choice) => {
                self.take(choice);
                self.tick(Duration::from_micros(1));
                true
            }
            None => false,
        }
    }

    /// Moves the clock on by `duration`, running everything that becomes due.
    pub fn advance(&self, duration: Duration) {
        let target = self.now() + duration;
        self.run_until_idle();
        while self.jump(Some(target)) {
            self.run_until_idle();
        }
        let mut state = self.state.lock();
        state.now = state.now.max(target);
    }

    /// Drops every task, as the end of the process does. Tasks that hold the environment keep it alive until
    /// then.
    pub fn shutdown(&self) {
        self.scheduler.stop();
    }

    fn choose(&self, main: bool) -> Option<Choice> {
        let tasks = self.scheduler.ready_count();
        let requests = self.disk.in_flight();
        let all = usize::from(main) + tasks + requests;
        if all == 0 {
            return None;
        }
        let pick = self.state.lock().random.below(all);
        Some(if pick < tasks {
            Choice::Task(pick)
        } else if pick < tasks + requests {
            Choice::Completion(pick - tasks)
        } else {
            Choice::Main
        })
    }

    fn take(&self, choice: Choice) {
        match choice {
            Choice::Main => unreachable!("the caller polls its own future"),
            Choice::Task(index) => {
                if let Some(task) = self.scheduler.take_ready(index) {
                    task.run();
                }
            }
            Choice::Completion(index) => {
                let micros = 10 + self.state.lock().random.below(190) as u64;
                self.tick(Duration::from_micros(micros));
                self.disk.complete(index);
            }
        }
    }

    fn tick(&self, duration: Duration) {
        let now = {
            let mut state = self.state.lock();
            state.now += duration;
            state.steps_left = state.steps_left.saturating_sub(1);
            if state.steps_left == 0 {
                // Not again while the panic unwinds.
                state.steps_left = u64::MAX;
                drop(state);
                panic!("simulation with seed {}: no end in sight after the steps allowed", self.seed);
            }
            state.now
        };
        self.scheduler.fire(now);
    }

    /// Jumps to the next timer, if there is one (not after `limit`).
    fn jump(&self, limit: Option<Duration>) -> bool {
        let Some(deadline) = self.scheduler.next_deadline() else { return false };
        if limit.is_some_and(|limit| deadline > limit) {
            return false;
        }
        let now = {
            let mut state = self.state.lock();
            state.now = state.now.max(deadline);
            state.now
        };
        self.scheduler.fire(now)
    }

    fn stalled(&self, what: &str) -> ! {
        panic!(
            "simulation with seed {}: {what} waits for something that nothing will bring (living tasks: {:?})",
            self.seed,
            self.scheduler.names()
        )
    }
}

impl Drop for SimulatedEnvironment {
    fn drop(&mut self) {
        self.shutdown();
    }
}

impl Environment for SimulatedEnvironment {
    fn now(&self) -> Duration {
        self.state.lock().now
    }

    fn unix_time(&self) -> Duration {
        START_OF_TIME + self.now()
    }

    fn storage(&self) -> &Arc<dyn Storage> {
        &self.storage
    }

    fn spawn(&self, name: &'static str, task: TaskFuture) {
        self.scheduler.spawn(name, false, task);
    }

    fn spawn_worker(&self, name: &'static str, task: TaskFuture) {
        self.scheduler.spawn(name, true, task);
    }

    fn sleep(&self, duration: Duration) -> TaskFuture {
        Box::pin(Sleep::until(&self.scheduler, self.now().saturating_add(duration)))
    }

    /// Completes requests until the event is set; when none is left, lets tasks that are neither workers nor
    /// polled further up the stack go on, then timers. (Requests first: a blocking wait inside a structure
    /// change holds latches that other tasks would run into, and it waits for a request.)
    fn block_until(&self, event: &Event) {
        while !event.is_set() {
            let requests = self.disk.in_flight();
            if requests > 0 {
                let index = self.state.lock().random.below(requests);
                self.take(Choice::Completion(index));
            } else if let Some(task) =
                (0..self.scheduler.ready_count()).find_map(|index| self.scheduler.take_ready_helper(index))
            {
                task.run();
            } else if !self.jump(None) {
                self.stalled("a blocking wait");
            }
            self.tick(Duration::from_micros(1));
        }
    }

    fn threads_max(&self) -> usize {
        1
    }

    fn random_u64(&self) -> u64 {
        self.state.lock().random.next_u64()
    }
}
