//! A coarse clock: milliseconds since the server started, advanced by the listener's ticker.
//!
//! Idle timeouts and the Time column of SHOW PROCESSLIST need seconds, so a command does not pay for reading
//! a real clock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How often it advances.
pub const TICK: Duration = Duration::from_millis(250);

/// The clock.
#[derive(Debug)]
pub struct CoarseClock {
    started: Instant,
    now_ms: AtomicU64,
}

impl Default for CoarseClock {
    fn default() -> Self {
        Self { started: Instant::now(), now_ms: AtomicU64::new(0) }
    }
}

impl CoarseClock {
    /// Milliseconds since the start, at most one tick old.
    #[inline]
    pub fn now_ms(&self) -> u64 {
        self.now_ms.load(Ordering::Relaxed)
    }

    /// Reads the real clock.
    pub fn advance(&self) -> u64 {
        let now = self.started.elapsed().as_millis() as u64;
        self.now_ms.store(now, Ordering::Relaxed);
        now
    }
}
