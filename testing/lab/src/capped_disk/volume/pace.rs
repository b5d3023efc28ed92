//! When a request may be answered: one clock for reads and writes together, or one for each of several
//! striped volumes.
//!
//! The clock stands at the moment from which the next request may start. A request moves it on by what it
//! costs, and is answered when the clock's old place has come. Nobody waits while the clock is read, so any
//! number of requests can be under way, and an answer that comes late does not move the clock: the rate holds
//! over any time in which requests are waiting.
//!
//! Credits are counted on the same clock. Every request takes one, also one that was not paid for with them:
//! what it owes comes back until the next may start, so that an empty bucket means exactly the base rate.

use crate::capped_disk::{Cap, Profile};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Requests up to this count as one, larger ones as several, as volumes of clouds count them.
const COUNTED_BYTES: u64 = 256 << 10;

/// The clocks and the profile they run by.
pub struct Pace(Mutex<State>);

struct State {
    profile: Profile,
    members: Vec<Member>,
}

/// The clock of one volume.
struct Member {
    next: Instant,
    credits: f64,
    /// Credits came back until then.
    earned: Instant,
}

impl Pace {
    /// Uncapped.
    pub fn new() -> Pace {
        Pace(Mutex::new(State::new(Profile::capped(Cap::NONE), Instant::now())))
    }

    /// From now on, with full buckets.
    pub fn set(&self, profile: Profile) {
        // A State is whole at every moment, even after a panic.
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = State::new(profile, Instant::now());
    }

    /// When a read of these bytes that came at `now` may be answered.
    pub fn read(&self, offset: u64, bytes: u64, now: Instant) -> Instant {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.slot(offset, bytes, now).max(now + state.profile.read_latency)
    }

    /// When a write of these bytes that came at `now` may be answered.
    pub fn write(&self, offset: u64, bytes: u64, now: Instant) -> Instant {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.slot(offset, bytes, now).max(now + state.profile.write_latency)
    }
}

impl State {
    fn new(profile: Profile, now: Instant) -> State {
        let credits = profile.burst.map_or(0.0, |burst| burst.credits as f64);
        let member = |_| Member { next: now, credits, earned: now };
        State { profile, members: (0..profile.members.max(1)).map(member).collect() }
    }

    /// The slot of the last part, where a request lies on several members.
    fn slot(&mut self, offset: u64, bytes: u64, now: Instant) -> Instant {
        let members = self.members.len() as u64;
        if members == 1 {
            return self.members[0].slot(&self.profile, bytes, now);
        }
        let (chunk, end) = (self.profile.chunk.max(1), offset.saturating_add(bytes));
        let (mut at, mut last) = (offset, now);
        while at < end {
            let next = (at / chunk + 1).saturating_mul(chunk).min(end);
            let member = &mut self.members[(at / chunk % members) as usize];
            last = last.max(member.slot(&self.profile, next - at, now));
            at = next;
        }
        last
    }
}

impl Member {
    fn slot(&mut self, profile: &Profile, bytes: u64, now: Instant) -> Instant {
        let slot = self.next.max(now);
        let mut cap = profile.cap;
        if let Some(burst) = profile.burst {
            let back = slot.saturating_duration_since(self.earned).as_secs_f64() * cap.operations as f64;
            self.credits = (self.credits + back).min(burst.credits as f64);
            self.earned = slot;
            let price = counted(bytes) as f64;
            if self.credits >= price {
                cap.operations = burst.operations;
            }
            self.credits -= price;
        }
        self.next = slot + cost(cap, bytes);
        slot
    }
}

fn counted(bytes: u64) -> u64 {
    bytes.div_ceil(COUNTED_BYTES).max(1)
}

/// The longer of what its number and what its bytes take.
fn cost(cap: Cap, bytes: u64) -> Duration {
    let share = |count: u64, per_second: u64| {
        if per_second == 0 { 0.0 } else { count as f64 / per_second as f64 }
    };
    Duration::from_secs_f64(share(counted(bytes), cap.operations).max(share(bytes, cap.bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capped_disk::Burst;

    const CAP: Cap = Cap { operations: 1000, bytes: 64_000_000 };
    const KIB: u64 = 1 << 10;

    /// A moment after [`Pace::set`], from which on the slots can be told.
    fn later() -> Instant {
        Instant::now() + Duration::from_secs(1)
    }

    /// How many small requests that all came at `begin` are answered within this time.
    fn answered(pace: &Pace, begin: Instant, within: Duration) -> u32 {
        (0..).find(|_| pace.write(0, 4096, begin) >= begin + within).unwrap_or(0)
    }

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
        pace.set(Profile::capped(CAP));
        let begin = later();
        let slots = [0, 1, 2].map(|_| pace.read(0, 4096, begin));
        assert_eq!(slots, [0, 1, 2].map(|at| begin + Duration::from_millis(at)));
        let later = begin + Duration::from_secs(5);
        assert_eq!(pace.write(0, 4096, later), later);
        assert_eq!(pace.read(0, 4096, later), later + Duration::from_millis(1));
    }

    #[test]
    fn an_answer_takes_its_latency_and_keeps_its_rate() {
        let (pace, begin) = (Pace::new(), later());
        let (read, write) = (Duration::from_millis(2), Duration::from_millis(5));
        pace.set(Profile::capped(CAP).answering_in(read, write));
        assert_eq!(pace.read(0, 4096, begin), begin + read);
        assert_eq!(pace.write(0, 4096, begin), begin + write);
        let last = (0..100).map(|_| pace.read(0, 4096, begin)).last();
        assert_eq!(last, Some(begin + Duration::from_millis(101)), "they overlap");
    }

    /// 100 requests a second, bursts of 500, 2000 credits: 400 a second are lost, which lasts 5 s.
    fn bursting() -> Profile {
        let plain = Profile::capped(Cap { operations: 100, bytes: 0 });
        Profile { burst: Some(Burst { operations: 500, credits: 2000 }), ..plain }
    }

    #[test]
    fn a_full_bucket_bursts_until_it_is_empty_and_then_the_base_rate_holds() {
        let (pace, begin) = (Pace::new(), later());
        pace.set(bursting());
        let close = |count: u32, expected: u32| count.abs_diff(expected) <= 3;
        let first = answered(&pace, begin, Duration::from_secs(5));
        assert!(close(first, 2500), "{first} in the 5 s of the bucket");
        let second = answered(&pace, begin, Duration::from_secs(15));
        assert!(close(second, 1000), "{second} in the 10 s after it");
    }

    #[test]
    fn credits_come_back_at_the_base_rate_up_to_a_full_bucket() {
        let (pace, begin) = (Pace::new(), later());
        pace.set(bursting());
        answered(&pace, begin, Duration::from_secs(6));
        // 8 s of rest are 800 credits, which last 2 s.
        let rested = begin + Duration::from_secs(14);
        let count = answered(&pace, rested, Duration::from_secs(2));
        assert!(count.abs_diff(1000) <= 5, "{count} after a short rest");
        let rested = begin + Duration::from_secs(1000);
        let count = answered(&pace, rested, Duration::from_secs(10));
        assert!(count.abs_diff(3000) <= 5, "{count}: no more than a full bucket");
    }

    #[test]
    fn members_work_side_by_side_and_one_alone_is_no_faster() {
        let (pace, begin) = (Pace::new(), later());
        let striped = Profile::capped(CAP).striped(4, 64 * KIB);
        pace.set(striped);
        let spread: Vec<_> = (0..8).map(|at| pace.write(at * 64 * KIB, 4096, begin)).collect();
        assert_eq!(spread[3], begin);
        assert_eq!(spread[7], begin + Duration::from_millis(1));
        pace.set(striped);
        let one: Vec<_> = (0..8).map(|at| pace.write(at * 256 * KIB, 4096, begin)).collect();
        assert_eq!(one[7], begin + Duration::from_millis(7));
    }

    #[test]
    fn a_request_on_several_members_waits_for_the_slowest() {
        let (pace, begin) = (Pace::new(), later());
        pace.set(Profile::capped(CAP).striped(2, 64 * KIB));
        for _ in 0..3 {
            pace.read(64 * KIB, 4096, begin);
        }
        assert_eq!(pace.read(0, 4096, begin), begin, "the first member is idle");
        assert_eq!(pace.read(60 * KIB, 8 * KIB, begin), begin + Duration::from_millis(3));
    }
}
