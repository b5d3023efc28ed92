//! Which pages are let in: those wanted a second time, never a scan's and never read-ahead that nobody used,
//! and no more bytes than the write budget allows.
//!
//! A second touch is seen in one of two ways: the pool says that the page was wanted again while it was in
//! memory, or the page was missed by the pool twice. For the latter every miss leaves seven bits of the
//! page's hash in a table of one byte per slot; the next page that falls on the same byte takes it over, so
//! what was seen long ago is forgotten. As long as the tier has regions that were never used, the second
//! touch is not asked for: such a page displaces nothing.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use page::PageId;
use page::extension::{History, Refusal};
use parking_lot::Mutex;

use crate::table::hash;

const TWICE: u8 = 0x80;

/// Remembers roughly which pages were missed once, and twice.
pub(crate) struct SeenBefore(Box<[AtomicU8]>);

impl SeenBefore {
    pub(crate) fn new(slots: u32) -> SeenBefore {
        SeenBefore((0..slots.max(1)).map(|_| AtomicU8::new(0)).collect())
    }

    pub(crate) fn memory_bytes(slots: u32) -> usize {
        slots as usize
    }

    /// The page's byte, and its seven bits, never 0.
    fn place(&self, page: PageId) -> (&AtomicU8, u8) {
        let hash = hash(page).rotate_left(29);
        let at = (((hash & 0xFFFF_FFFF) * self.0.len() as u64) >> 32) as usize;
        (&self.0[at], ((hash >> 40) as u8 & 0x7F).max(1))
    }

    /// The pool missed the page.
    pub(crate) fn missed(&self, page: PageId) {
        let (byte, bits) = self.place(page);
        let seen = byte.load(Ordering::Relaxed) & !TWICE == bits;
        byte.store(if seen { bits | TWICE } else { bits }, Ordering::Relaxed);
    }

    /// Whether the page was missed twice recently.
    pub(crate) fn twice(&self, page: PageId) -> bool {
        let (byte, bits) = self.place(page);
        byte.load(Ordering::Relaxed) == bits | TWICE
    }
}

/// Whether a page's history lets it in.
pub(crate) fn judge(
    seen: &SeenBefore,
    page: PageId,
    history: History,
    has_unused_room: bool,
) -> Result<(), Refusal> {
    if history.read_ahead_unused {
        Err(Refusal::ReadAheadUnused)
    } else if history.touched_again {
        Ok(())
    } else if history.from_scan {
        Err(Refusal::Scan)
    } else if has_unused_room || seen.twice(page) {
        Ok(())
    } else {
        Err(Refusal::TouchedOnce)
    }
}

/// Bytes that may be written: fills at the budgeted rate, up to one second's worth or two regions.
///
/// Pages saved while a region is cleaned are charged in advance: dropping a cached page would cost the same
/// write later, and a read of the data file. The admissions that follow get that much less, so the rate
/// holds.
pub(crate) struct WriteBudget {
    /// Bytes per second; 0 is no limit.
    rate: AtomicU64,
    burst_min: u64,
    bucket: Mutex<Bucket>,
}

struct Bucket {
    /// Less than nothing when bytes were taken in advance.
    bytes: i64,
    filled_at: Duration,
}

impl WriteBudget {
    /// A full bucket.
    pub(crate) fn new(rate: u64, region_bytes: usize, now: Duration) -> WriteBudget {
        let burst_min = 2 * region_bytes as u64;
        WriteBudget {
            rate: AtomicU64::new(rate),
            burst_min,
            bucket: Mutex::new(Bucket { bytes: signed(rate.max(burst_min)), filled_at: now }),
        }
    }

    pub(crate) fn rate(&self) -> u64 {
        self.rate.load(Ordering::Relaxed)
    }

    pub(crate) fn set_rate(&self, rate: u64) {
        self.rate.store(rate, Ordering::Relaxed);
    }

    /// Takes `bytes` from the bucket if they are there.
    pub(crate) fn take(&self, bytes: u64, now: Duration) -> bool {
        self.with_bucket(now, |bucket| {
            let enough = bucket.bytes >= signed(bytes);
            if enough {
                bucket.bytes -= signed(bytes);
            }
            enough
        })
    }

    /// Takes `bytes` whether or not they are there.
    pub(crate) fn take_in_advance(&self, bytes: u64, now: Duration) {
        self.with_bucket(now, |bucket| {
            bucket.bytes = bucket.bytes.saturating_sub(signed(bytes));
            true
        });
    }

    /// Whether `bytes` are there.
    pub(crate) fn has(&self, bytes: u64, now: Duration) -> bool {
        self.with_bucket(now, |bucket| bucket.bytes >= signed(bytes))
    }

    fn with_bucket(&self, now: Duration, act: impl FnOnce(&mut Bucket) -> bool) -> bool {
        let rate = self.rate();
        if rate == 0 {
            return true;
        }
        let mut bucket = self.bucket.lock();
        let elapsed = now.saturating_sub(bucket.filled_at);
        let earned = (u128::from(rate) * elapsed.as_nanos() / 1_000_000_000) as u64;
        // Less than a byte is left to grow.
        if earned > 0 {
            bucket.filled_at = now;
            let most = signed(rate.max(self.burst_min));
            bucket.bytes = bucket.bytes.saturating_add(signed(earned)).min(most);
        }
        act(&mut bucket)
    }
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(touched_again: bool, read_ahead_unused: bool, from_scan: bool) -> History {
        History { touched_again, read_ahead_unused, from_scan }
    }

    #[test]
    fn a_second_touch_lets_in_and_scans_stay_out() {
        let seen = SeenBefore::new(1000);
        let page = PageId::new(5, 6);
        let judge = |history| judge(&seen, page, history, false);
        assert_eq!(judge(history(false, true, true)), Err(Refusal::ReadAheadUnused));
        assert_eq!(judge(history(false, false, true)), Err(Refusal::Scan));
        assert_eq!(judge(history(true, false, true)), Ok(()));
        seen.missed(page);
        assert_eq!(judge(history(false, false, false)), Err(Refusal::TouchedOnce));
        // Asking does not count as a touch.
        assert_eq!(judge(history(false, false, false)), Err(Refusal::TouchedOnce));
        seen.missed(page);
        assert_eq!(judge(history(false, false, false)), Ok(()));
        // A scan that comes by twice is still a scan.
        assert_eq!(judge(history(false, false, true)), Err(Refusal::Scan));
    }

    #[test]
    fn what_was_seen_long_ago_is_forgotten() {
        let seen = SeenBefore::new(64);
        let page = PageId::new(5, 6);
        seen.missed(page);
        for other in 0..4096 {
            seen.missed(PageId::new(9, other));
        }
        seen.missed(page);
        // (One chance in 127 that the last page on this byte had the same bits; not with these numbers.)
        assert!(!seen.twice(page));
    }

    #[test]
    fn the_budget_is_a_rate() {
        let second = Duration::from_secs(1);
        let budget = WriteBudget::new(10 << 20, 256 << 10, Duration::ZERO);
        let taken_until = |now: Duration| (0..).take_while(|_| budget.take(1 << 20, now)).count();
        assert_eq!(taken_until(Duration::ZERO), 10);
        assert_eq!(taken_until(second / 2), 5);
        // What nobody used is not saved up for longer than a second.
        assert_eq!(taken_until(second * 60), 10);
        // Many short steps add up to the same.
        let steps: usize = (1..=1000).map(|ms| taken_until(second * 60 + second * ms / 1000)).sum();
        assert!((9..=10).contains(&steps), "{steps}");
        // What was taken in advance is missing afterwards.
        budget.take_in_advance(30 << 20, second * 62);
        assert_eq!(taken_until(second * 64), 0);
        assert_eq!(taken_until(second * 65), 10);
        budget.set_rate(0);
        assert!(budget.take(u64::MAX, second * 61));
    }
}
