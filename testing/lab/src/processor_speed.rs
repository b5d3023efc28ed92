//! How fast the machine's processors are from second to second.
//!
//! A virtual machine shares its cores, and a load that is bound by the processor is no steadier than they
//! are. So the processors are watched during a load: a thread on each of them counts for a millisecond now
//! and then, a hundredth of its time, by the clock of its own processor time. What other threads of this
//! machine take is not in that clock; what the host takes, and what a neighbour on the same core takes, is.

use nix::sched::{CpuSet, sched_setaffinity};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Processor time of one count.
const COUNT: Duration = Duration::from_millis(1);
/// Between two counts of a thread.
const PAUSE: Duration = Duration::from_millis(99);

/// Watches until it is dropped.
pub struct ProcessorSpeed {
    counted: Arc<Counted>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Counted {
    steps: AtomicU64,
    nanoseconds: AtomicU64,
    over: AtomicBool,
}

/// All that was counted until then.
#[derive(Clone, Copy, Default)]
pub struct Steps {
    steps: u64,
    nanoseconds: u64,
}

impl Steps {
    /// Steps in a microsecond of processor time since `before`; not a number when nothing was counted.
    pub fn speed_since(self, before: Steps) -> f64 {
        let nanoseconds = self.nanoseconds.saturating_sub(before.nanoseconds);
        self.steps.saturating_sub(before.steps) as f64 * 1e3 / nanoseconds as f64
    }
}

impl ProcessorSpeed {
    /// A thread on each processor that this process may use.
    pub fn watch() -> ProcessorSpeed {
        let counted = Arc::new(Counted::default());
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let threads = (0..processors).map(|processor| {
            let counted = Arc::clone(&counted);
            thread::spawn(move || {
                stay_on(processor);
                while !counted.over.load(Ordering::Relaxed) {
                    count(&counted);
                    thread::park_timeout(PAUSE);
                }
            })
        });
        let threads = threads.collect();
        ProcessorSpeed { counted, threads }
    }

    /// Until now, all processors together.
    pub fn steps(&self) -> Steps {
        Steps {
            steps: self.counted.steps.load(Ordering::Relaxed),
            nanoseconds: self.counted.nanoseconds.load(Ordering::Relaxed),
        }
    }
}

impl Drop for ProcessorSpeed {
    fn drop(&mut self) {
        self.counted.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.thread().unpark();
            // A thread that panicked has counted nothing more; its seconds are not numbers.
            let _ = thread.join();
        }
    }
}

/// Keeps this thread on a processor. Where that is not allowed it counts wherever it runs.
fn stay_on(processor: usize) {
    let mut only = CpuSet::new();
    if only.set(processor).is_ok() {
        let _ = sched_setaffinity(Pid::from_raw(0), &only);
    }
}

fn processor_time() -> Option<Duration> {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).ok().map(Duration::from)
}

/// Additions and multiplications of four chains, so that a neighbour on the same core is felt.
fn count(counted: &Counted) {
    let Some(begin) = processor_time() else { return };
    let (mut chains, mut steps) = ([1_u64, 3, 5, 7], 0_u64);
    loop {
        for _ in 0..5_000 {
            for chain in &mut chains {
                *chain = chain.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
            }
        }
        black_box(&chains);
        steps += 5_000;
        let Some(took) = processor_time().and_then(|now| now.checked_sub(begin)) else { return };
        if took >= COUNT {
            counted.steps.fetch_add(steps, Ordering::Relaxed);
            counted.nanoseconds.fetch_add(took.as_nanos() as u64, Ordering::Relaxed);
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_speed_is_steps_by_processor_time() {
        let steps = |steps, nanoseconds| Steps { steps, nanoseconds };
        assert_eq!(steps(3_000, 5_000).speed_since(steps(1_000, 1_000)), 500.0);
        assert!(steps(1, 1).speed_since(steps(1, 1)).is_nan());
    }

    #[test]
    fn a_count_takes_its_processor_time_and_no_other() {
        let counted = Counted::default();
        count(&counted);
        let Counted { steps, nanoseconds, .. } = counted;
        assert!(steps.into_inner() > 0 && nanoseconds.into_inner() >= COUNT.as_nanos() as u64);
    }
}
