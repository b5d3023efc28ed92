//! Where the random numbers of a run start. Every run prints its seed, so that it can be run again.

use anyhow::Result;
use std::time::{SystemTime, UNIX_EPOCH};

/// The seed asked for, or one from the clock.
pub fn seed_or_time(seed: Option<u64>) -> Result<u64> {
    match seed {
        Some(seed) => Ok(seed),
        None => Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos() as u64),
    }
}
