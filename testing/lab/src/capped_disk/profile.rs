//! What a volume promises: requests and bytes per second, how long an answer takes at least, credits for
//! bursts, several volumes striped into one.
//!
//! The volumes of clouds are built from what their documentation says of them. AWS, "General Purpose SSD
//! volumes" (gp2): 3 requests a second for each GiB, at least 100, at most 16,000; below 1000 GiB bursts of
//! 3000 from a bucket that begins with 5.4 million credits and refills at the base rate; a request of up to
//! 256 KiB costs one; 128 MiB/s up to 170 GiB, 250 MiB/s above. "Provisioned IOPS SSD volumes" (io1): what
//! was bought, at most 50 for each GiB; 256 KiB/s for each up to 500 MiB/s, above 32,000 of them 16 KiB/s
//! for each up to 1000 MiB/s. Alibaba Cloud, "ESSDs" (PL1): 1800 + 50 for each GiB, at most 50,000; 120 MB/s
//! + 0.5 for each GiB, at most 350; 0.2 ms. For AWS's "single-digit milliseconds" 1 ms stands here.

use super::Cap;
use serde::{Deserialize, Serialize};
use std::time::Duration;

const MIB: u64 = 1 << 20;
/// The bucket of a gp2 volume, full.
const GP2_CREDITS: u64 = 5_400_000;
/// What a gp2 volume does while it has credits.
const GP2_BURST: u64 = 3000;
const GP2_LEAST: u64 = 100;
const GP2_MOST: u64 = 16_000;
const AWS_LATENCY: Duration = Duration::from_millis(1);

/// A rate above the cap, for as long as there are credits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Burst {
    /// Requests per second.
    pub operations: u64,
    /// In a full bucket. A request takes one; the cap's requests per second come back each second.
    pub credits: u64,
}

/// How a volume behaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Profile {
    /// Of each member, reads and writes together.
    pub cap: Cap,
    /// Of each member.
    pub burst: Option<Burst>,
    /// A read takes this long at least.
    pub read_latency: Duration,
    /// A write takes this long at least.
    pub write_latency: Duration,
    /// Volumes that this one is striped over, 1 or more.
    pub members: u32,
    /// Bytes that lie on a member before the next one's turn.
    pub chunk: u64,
}

impl Profile {
    /// A cap and nothing else.
    pub fn capped(cap: Cap) -> Profile {
        let none = Duration::ZERO;
        Profile { cap, burst: None, read_latency: none, write_latency: none, members: 1, chunk: MIB }
    }

    /// The same, with a least time for reads and one for writes.
    pub fn answering_in(self, read_latency: Duration, write_latency: Duration) -> Profile {
        Profile { read_latency, write_latency, ..self }
    }

    /// AWS gp2 of this size, whose bucket holds one credit where a real one holds `divisor`.
    pub fn gp2(gib: u64, divisor: u64) -> Profile {
        let operations = gib.saturating_mul(3).clamp(GP2_LEAST, GP2_MOST);
        let bytes = if gib <= 170 { 128 * MIB } else { 250 * MIB };
        let credits = GP2_CREDITS / divisor.max(1);
        let burst = (operations < GP2_BURST).then_some(Burst { operations: GP2_BURST, credits });
        let plain = Profile::capped(Cap { operations, bytes }).answering_in(AWS_LATENCY, AWS_LATENCY);
        Profile { burst, ..plain }
    }

    /// AWS io1 with this many requests per second.
    pub fn io1(operations: u64) -> Profile {
        let bytes = if operations <= 32_000 {
            operations.saturating_mul(256 << 10).min(500 * MIB)
        } else {
            operations.saturating_mul(16 << 10).min(1000 * MIB)
        };
        Profile::capped(Cap { operations, bytes }).answering_in(AWS_LATENCY, AWS_LATENCY)
    }

    /// Alibaba Cloud's ESSD, performance level 1, of this size.
    pub fn essd(gib: u64) -> Profile {
        let operations = gib.saturating_mul(50).saturating_add(1800).min(50_000);
        let bytes = gib.saturating_mul(500_000).saturating_add(120_000_000).min(350_000_000);
        let latency = Duration::from_micros(200);
        Profile::capped(Cap { operations, bytes }).answering_in(latency, latency)
    }

    /// RAID 0 of several such volumes.
    pub fn striped(self, members: u32, chunk: u64) -> Profile {
        Profile { members: members.max(1), chunk: chunk.max(1), ..self }
    }

    /// Seconds until the bucket is empty when as much is asked of the volume as it does.
    pub fn burst_seconds(&self) -> Option<f64> {
        let Burst { operations, credits } = self.burst?;
        Some(credits as f64 / operations.saturating_sub(self.cap.operations).max(1) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gp2_grows_with_its_size_between_its_bounds() {
        let operations = |gib| Profile::gp2(gib, 1).cap.operations;
        assert_eq!((operations(8), operations(100), operations(10_000)), (100, 300, 16_000));
        assert_eq!(Profile::gp2(100, 1).burst, Some(Burst { operations: 3000, credits: 5_400_000 }));
        assert_eq!(Profile::gp2(1000, 1).burst, None, "the base rate is the burst");
        assert_eq!(Profile::gp2(100, 1).cap.bytes, 128 << 20);
        assert_eq!(Profile::gp2(334, 1).cap.bytes, 250 << 20);
    }

    #[test]
    fn a_full_bucket_of_100_gib_lasts_2000_seconds_and_a_hundredth_of_it_20() {
        assert_eq!(Profile::gp2(100, 1).burst_seconds(), Some(2000.0));
        assert_eq!(Profile::gp2(100, 100).burst_seconds(), Some(20.0));
        assert_eq!(Profile::io1(3000).burst_seconds(), None);
    }

    #[test]
    fn io1_and_essd_are_as_documented() {
        let cap = |operations, bytes| Cap { operations, bytes };
        assert_eq!(Profile::io1(1000).cap, cap(1000, 1000 * (256 << 10)));
        assert_eq!(Profile::io1(5000).cap, cap(5000, 500 << 20));
        assert_eq!(Profile::io1(64_000).cap, cap(64_000, 1000 << 20));
        assert_eq!(Profile::essd(100).cap, cap(6800, 170_000_000));
        assert_eq!(Profile::essd(2000).cap, cap(50_000, 350_000_000));
    }
}
