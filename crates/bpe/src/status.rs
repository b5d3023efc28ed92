//! What a tier tells about itself.

use std::path::PathBuf;
use std::time::Duration;

use crate::counters::Counter;
use crate::size_estimate::Estimate;
use crate::tier::Tier;

/// Whether a tier is in use.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum State {
    /// Off, as asked for or because there is no file.
    Off,
    /// Off after an error, for this reason.
    Failed(String),
    /// Waiting for recovery to end.
    Recovering,
    /// In use.
    On,
    /// Not clearly faster than the data files at present.
    Suspended,
}

impl State {
    /// In capitals, as status variables show it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            State::Off => "OFF",
            State::Failed(_) => "FAILED",
            State::Recovering => "RECOVERING",
            State::On => "ON",
            State::Suspended => "SUSPENDED",
        }
    }
}

/// Figures of a tier; counts are since it was opened, over all switching and resizing.
#[derive(Clone, Debug)]
pub struct Status {
    /// On, off and why.
    pub state: State,
    /// The file, if it is on.
    pub file: Option<PathBuf>,
    /// Bytes of the file when all regions are written; less than was asked for while it is suspended for
    /// long.
    pub size_bytes: u64,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Pages it has room for.
    pub pages_max: u64,
    /// Pages in it.
    pub pages: u64,
    /// Bytes of memory it takes: table, filter, ghosts, buffers (no buffers while it is suspended).
    pub memory_bytes: u64,
    /// Pages read from it and used.
    pub hits: u64,
    /// Pages looked for and not found, including those that were not what had been stored.
    pub misses: u64,
    /// Pages taken.
    pub admitted: u64,
    /// Refused because it was off or suspended. The pool offers little to a suspended tier.
    pub refused_off: u64,
    /// Refused because this version was there.
    pub refused_present: u64,
    /// Refused because the page was wanted only once.
    pub refused_touched_once: u64,
    /// Refused because a scan had read it.
    pub refused_scan: u64,
    /// Refused because it was read ahead for nothing.
    pub refused_read_ahead: u64,
    /// Refused for the write budget.
    pub refused_budget: u64,
    /// Refused because all buffers or regions were busy.
    pub refused_busy: u64,
    /// Writes to the file (up to a region each).
    pub writes: u64,
    /// Bytes written to the file, those of the map included.
    pub bytes_written: u64,
    /// Of these, bytes of the map.
    pub bytes_written_map: u64,
    /// Syncs of the map.
    pub map_syncs: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Pages dropped because they were changed, or their tablespace was.
    pub invalidated: u64,
    /// Tablespaces dropped.
    pub spaces_invalidated: u64,
    /// Pages dropped to make room.
    pub evicted: u64,
    /// Regions made free.
    pub regions_cleaned: u64,
    /// Regions given a second chance as a whole.
    pub regions_kept: u64,
    /// Pages given a second chance by copying.
    pub pages_saved: u64,
    /// Reads that returned another page.
    pub mismatches_misdirected: u64,
    /// Reads that returned another version of the page.
    pub mismatches_stale: u64,
    /// Reads that returned damaged bytes.
    pub mismatches_corrupt: u64,
    /// Reads whose slot was given to another page meanwhile.
    pub overtaken: u64,
    /// Reads that failed.
    pub read_errors: u64,
    /// Times nothing was found for a moment, to see what the data files take alone.
    pub trials: u64,
    /// Times it was suspended.
    pub suspensions: u64,
    /// Times it was resumed.
    pub resumptions: u64,
    /// Times an error switched it off.
    pub failures: u64,
    /// Pages that survived the last restart.
    pub restored: u64,
    /// Latency of reads from it, smoothed.
    pub read_latency: Option<Duration>,
    /// Latency of reads from the data files, smoothed.
    pub data_read_latency: Option<Duration>,
    /// Bytes per second that may be written, 0 for no limit.
    pub write_budget: u64,
    /// Times its size that it writes per day, at the rate since it was opened.
    pub drive_writes_per_day: f64,
    /// Hit ratios it would have at half, the same and twice the size; as they were before while it is
    /// suspended.
    pub estimate: Estimate,
}

impl Tier {
    /// The figures at this moment.
    #[must_use]
    pub fn status(&self) -> Status {
        let get = |counter| self.counters.get(counter);
        let store = self.store();
        let geometry = store.as_ref().map(|store| store.geometry);
        let (map_bytes, map_syncs) = store
            .as_ref()
            .and_then(|store| store.journal.as_ref())
            .map_or((0, 0), |journal| journal.written());
        let bytes_written = get(Counter::BytesWritten) + map_bytes;
        let size_bytes = geometry.map_or(0, |geometry| geometry.file_bytes());
        let seconds = self.env.now().saturating_sub(self.opened_at).as_secs_f64().max(1.0);
        let latency = |seconds: Option<f64>| seconds.map(Duration::from_secs_f64);
        let (tier_latency, data_latency) = self.adapt.latencies();
        Status {
            state: self.state(store.is_some()),
            file: store.as_ref().map(|store| store.path.clone()),
            size_bytes,
            page_bytes: self.options.page_size.bytes() as u64,
            pages_max: geometry.map_or(0, |geometry| u64::from(geometry.slots())),
            pages: store.as_ref().map_or(0, |store| store.table.len() as u64),
            memory_bytes: store.as_ref().map_or(0, |store| self.memory_of(store) as u64),
            hits: get(Counter::Hits),
            misses: get(Counter::Misses),
            admitted: get(Counter::Admitted),
            refused_off: get(Counter::RefusedOff),
            refused_present: get(Counter::RefusedPresent),
            refused_touched_once: get(Counter::RefusedTouchedOnce),
            refused_scan: get(Counter::RefusedScan),
            refused_read_ahead: get(Counter::RefusedReadAhead),
            refused_budget: get(Counter::RefusedBudget),
            refused_busy: get(Counter::RefusedBusy),
            writes: get(Counter::Writes),
            bytes_written,
            bytes_written_map: map_bytes,
            map_syncs,
            bytes_read: get(Counter::BytesRead),
            invalidated: get(Counter::Invalidated),
            spaces_invalidated: get(Counter::SpacesInvalidated),
            evicted: get(Counter::Evicted),
            regions_cleaned: get(Counter::RegionsCleaned),
            regions_kept: get(Counter::RegionsKept),
            pages_saved: get(Counter::Saved),
            mismatches_misdirected: get(Counter::Misdirected),
            mismatches_stale: get(Counter::Stale),
            mismatches_corrupt: get(Counter::Corrupt),
            overtaken: get(Counter::Overtaken),
            read_errors: get(Counter::ReadErrors),
            trials: get(Counter::Trials),
            suspensions: get(Counter::Suspensions),
            resumptions: get(Counter::Resumptions),
            failures: get(Counter::Failures),
            restored: get(Counter::Restored),
            read_latency: latency(tier_latency),
            data_read_latency: latency(data_latency),
            write_budget: self.budget.rate(),
            drive_writes_per_day: bytes_written as f64 / size_bytes.max(1) as f64 / seconds * 86_400.0,
            estimate: store.as_ref().map_or_else(Estimate::default, |store| store.estimate()),
        }
    }

    fn state(&self, is_open: bool) -> State {
        if let Some(why) = self.control.lock().failure.clone() {
            State::Failed(why)
        } else if !is_open {
            State::Off
        } else if !self.recovered.load(std::sync::atomic::Ordering::Acquire) {
            State::Recovering
        } else if self.adapt.is_suspended() {
            State::Suspended
        } else {
            State::On
        }
    }
}
