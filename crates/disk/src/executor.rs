//! A small executor: tasks that share a thread or a few.
//!
//! A task is its own waker: waking puts it into the ready queue once, however often it is woken. While a task
//! runs its future is taken out of it, so that a nested run (the simulator's blocking waits) can see that it
//! is busy. Sleeps and deadlines are [`crate::timer`]'s.
//!
//! Both environments are built of these parts; they differ in who picks the next ready task and what moves
//! the clock.

use crate::Event;
use crate::environment::TaskFuture;
use crate::timer::take_due;
use parking_lot::{Condvar, Mutex};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

/// One background task.
pub(crate) struct Task {
    pub(crate) name: &'static str,
    /// See [`crate::Environment::spawn_worker`].
    pub(crate) is_worker: bool,
    number: u64,
    queued: AtomicBool,
    future: Mutex<Option<TaskFuture>>,
    /// It was woken and taken from the queue by another thread while one polled it: it goes into the queue
    /// again after that.
    woken_meanwhile: AtomicBool,
    scheduler: Arc<Scheduler>,
}

impl Task {
    /// Polls the future once. A finished task is forgotten by its scheduler.
    pub(crate) fn run(self: &Arc<Task>) {
        self.queued.store(false, Ordering::Release);
        let mut future = {
            let mut slot = self.future.lock();
            let Some(future) = slot.take() else {
                // Under the lock: the thread that polls it puts it back under the same lock and looks
                // afterwards.
                self.woken_meanwhile.store(true, Ordering::Release);
                return;
            };
            self.woken_meanwhile.store(false, Ordering::Release);
            future
        };
        let waker = Waker::from(self.clone());
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Pending => {
                // A shutdown in the meantime wants the future gone, not put back.
                if self.scheduler.knows(self.number) {
                    let mut slot = self.future.lock();
                    *slot = Some(future);
                    let again = self.woken_meanwhile.load(Ordering::Acquire);
                    drop(slot);
                    if again {
                        self.wake_by_ref();
                    }
                }
            }
            Poll::Ready(()) => self.scheduler.forget(self.number),
        }
    }

    /// After a panic in its poll: there is nothing left of it to poll.
    pub(crate) fn give_up(&self) {
        self.scheduler.forget(self.number);
    }

    /// Whether a poll of this task is under way further up the stack, or the task is over.
    pub(crate) fn is_running(&self) -> bool {
        self.future.lock().is_none()
    }
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }
    fn wake_by_ref(self: &Arc<Self>) {
        if !self.queued.swap(true, Ordering::AcqRel) {
            self.scheduler.make_ready(self.clone());
        }
    }
}

/// Ready queue, timers, and all living tasks.
#[derive(Default)]
pub(crate) struct Scheduler {
    pub(crate) state: Mutex<State>,
    pub(crate) changed: Condvar,
}

/// What the mutex guards.
#[derive(Default)]
pub(crate) struct State {
    ready: VecDeque<Arc<Task>>,
    tasks: BTreeMap<u64, Arc<Task>>,
    pub(crate) timers: BTreeMap<(Duration, u64), Event>,
    pub(crate) next_number: u64,
    pub(crate) stopped: bool,
}

/// What the executor's thread does next.
pub(crate) enum Next {
    /// Run this task.
    Run(Arc<Task>),
    /// Everything was stopped.
    Stop,
}

impl Scheduler {
    pub(crate) fn spawn(self: &Arc<Scheduler>, name: &'static str, is_worker: bool, future: TaskFuture) {
        let mut state = self.state.lock();
        if state.stopped {
            drop(state);
            tracing::warn!(task = name, "a background task was started after shutdown and is dropped");
            return;
        }
        let number = state.next_number;
        state.next_number += 1;
        let task = Arc::new(Task {
            name,
            is_worker,
            number,
            queued: AtomicBool::new(true),
            future: Mutex::new(Some(future)),
            woken_meanwhile: AtomicBool::new(false),
            scheduler: self.clone(),
        });
        state.tasks.insert(number, task.clone());
        state.ready.push_back(task);
        drop(state);
        self.changed.notify_one();
    }

    fn make_ready(&self, task: Arc<Task>) {
        let mut state = self.state.lock();
        if state.stopped {
            return;
        }
        state.ready.push_back(task);
        drop(state);
        self.changed.notify_one();
    }

    fn knows(&self, number: u64) -> bool {
        self.state.lock().tasks.contains_key(&number)
    }

    fn forget(&self, number: u64) {
        self.state.lock().tasks.remove(&number);
    }

    /// Whether no task is left.
    pub(crate) fn is_idle(&self) -> bool {
        self.state.lock().tasks.is_empty()
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.state.lock().stopped
    }

    /// Drops every task and refuses new ones. The futures are dropped here, on the calling thread, except one
    /// that is being polled right now.
    pub(crate) fn stop(&self) {
        let (ready, tasks, timers) = {
            let mut state = self.state.lock();
            state.stopped = true;
            let state = &mut *state;
            (
                std::mem::take(&mut state.ready),
                std::mem::take(&mut state.tasks),
                std::mem::take(&mut state.timers),
            )
        };
        self.changed.notify_all();
        drop(ready);
        // Who waits with a deadline, a thread of the embedding program perhaps, would wait for ever.
        timers.values().for_each(Event::set);
        for task in tasks.into_values() {
            let future = task.future.lock().take();
            drop(future);
        }
    }

    /// Blocks until a task is ready, firing timers as `now` passes them.
    pub(crate) fn next(&self, now: &dyn Fn() -> Duration) -> Next {
        let mut state = self.state.lock();
        loop {
            if state.stopped {
                return Next::Stop;
            }
            let time = now();
            let due = take_due(&mut state, time);
            if !due.is_empty() {
                drop(state);
                due.iter().for_each(Event::set);
                state = self.state.lock();
                continue;
            }
            if let Some(task) = state.ready.pop_front() {
                return Next::Run(task);
            }
            match state.timers.first_key_value().map(|((deadline, _), _)| *deadline) {
                Some(deadline) => {
                    self.changed.wait_for(&mut state, deadline.saturating_sub(time));
                }
                None => self.changed.wait(&mut state),
            }
        }
    }

    /// Number of ready tasks.
    pub(crate) fn ready_count(&self) -> usize {
        self.state.lock().ready.len()
    }

    /// Takes the ready task at `index`, unless it is being polled further up the stack. One that was woken
    /// and is over, in that order, is taken like any other: it must not stay in the queue, which would never
    /// be empty again.
    pub(crate) fn take_ready(&self, index: usize) -> Option<Arc<Task>> {
        let mut state = self.state.lock();
        let task = state.ready.get(index)?;
        if task.is_running() && state.tasks.contains_key(&task.number) {
            return None;
        }
        state.ready.remove(index)
    }

    /// As [`Scheduler::take_ready`], but no worker: for a run nested in a blocking wait, whose latches a
    /// worker could run into.
    pub(crate) fn take_ready_helper(&self, index: usize) -> Option<Arc<Task>> {
        if self.state.lock().ready.get(index)?.is_worker {
            return None;
        }
        self.take_ready(index)
    }

    /// Names of the living tasks, for messages.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.state.lock().tasks.values().map(|task| task.name).collect()
    }
}
