//! The processor time of the calling thread.

use std::time::Duration;

/// How long the calling thread has had a core. A system call; `None` where there is no such clock.
#[must_use]
pub fn thread_cpu_time() -> Option<Duration> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a timespec of this function, which the call fills in.
    let done = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    let seconds = u64::try_from(time.tv_sec).ok()?;
    let nanoseconds = u32::try_from(time.tv_nsec).ok()?;
    (done == 0).then(|| Duration::new(seconds, nanoseconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_processor_time_and_sleep_takes_none() {
        let before = thread_cpu_time().unwrap();
        std::thread::sleep(Duration::from_millis(50));
        let slept = thread_cpu_time().unwrap() - before;
        assert!(slept < Duration::from_millis(25), "{slept:?}");
        let mut sum = 0u64;
        while thread_cpu_time().unwrap() - before < slept + Duration::from_millis(5) {
            sum = std::hint::black_box(sum + 1);
        }
    }
}
