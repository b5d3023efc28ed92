//! When a request may be answered: one clock for reads and writes together.
//!
//! The clock stands at the moment from which the next request may start. A request moves it on by what it
//! costs, and is answered when the clock's old place has come. Nobody waits while the clock is read, so any
//! number of requests can be under way, and an answer that comes late does not move the clock: the rate holds
//! over any time in which requests are waiting.

use crate::capped_disk::Cap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Requests up to this count as one, larger ones as several, as volumes of clouds count them.
const COUNTED_BYTES: u64 = 256 << 10;

/// The clock and the cap it runs by.
pub struct Pace(Mutex<State>);

struct State {
    cap: Cap,
    next: Instant,
}

impl Pace {
    /// Uncapped.
    pub fn new() -> Pace {
        Pace(Mutex::new(State { cap: Cap::NONE, next: Instant::now() }))
    }

    /// From now on.
    pub fn set(&self, cap: Cap) {
        // A State is whole at every moment, even after a panic.
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *state = State { cap, next: Instant::now() };
    }

    /// When a request of this size that came at `now` may be answered.
    pub fn slot(&self, bytes: u64, now: Instant) -> Instant {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = state.next.max(now);
        state.next = slot + cost(state.cap, bytes);
        slot
    }
}

/// The longer of what its number and what its bytes take.
fn cost(cap: Cap, bytes: u64) -> Duration {
    let share = |count: u64, per_second: u64| {
        if per_second == 0 { 0.0 } else { count as f64 / per_second as f64 }
    };
    let requests = bytes.div_ceil(COUNTED_BYTES).max(1);
    Duration::from_secs_f64(share(requests, cap.operations).max(share(bytes, cap.bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAP: Cap = Cap { operations: 1000, bytes: 64_000_000 };

    #[test]
    fn counts_requests_or_bytes_whichever_is_more() {
        assert_eq!(cost(CAP, 16 << 10), Duration::from_millis(1));
        assert_eq!(cost(CAP, 640_000), Duration::from_millis(10));
        assert_eq!(cost(Cap { operations: 100, bytes: 0 }, 300 << 10), Duration::from_millis(20));
        assert_eq!(cost(Cap::NONE, 1 << 20), Duration::ZERO);
    }

    #[test]
    fn spaces_requests_and_saves_nothing_up() {
        let pace = Pace::new();
        pace.set(CAP);
        let begin = Instant::now() + Duration::from_secs(1);
        let slots = [0, 1, 2].map(|_| pace.slot(4096, begin));
        assert_eq!(slots, [0, 1, 2].map(|at| begin + Duration::from_millis(at)));
        let later = begin + Duration::from_secs(5);
        assert_eq!(pace.slot(4096, later), later);
        assert_eq!(pace.slot(4096, later), later + Duration::from_millis(1));
    }
}
