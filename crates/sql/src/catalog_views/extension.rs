//! `information_schema.UNTORN_BPE`: the buffer pool extension, in one row.

use super::ViewType::{Number, Text};
use super::table_tables::view;
use super::{INFORMATION_SCHEMA, RowSource, View, number, text};
use crate::context::SqlContext;
use crate::value::Value;

fn extension(state: &SqlContext) -> RowSource {
    let status = state.database.extension();
    let micros =
        |time: Option<std::time::Duration>| time.map_or(Value::Null, |time| number(time.as_micros()));
    let ratio = |ratio: f64| text(format!("{ratio:.4}"));
    let looked_up = (status.hits + status.misses).max(1) as f64;
    let reason = match &status.state {
        untorn::ExtensionState::Failed(why) => text(why.as_str()),
        _ => Value::Null,
    };
    let row = vec![
        text(status.state.name()),
        reason,
        status.file.as_ref().map_or(Value::Null, |file| text(file.display().to_string())),
        number(status.size_bytes),
        number(status.page_bytes),
        number(status.pages_max),
        number(status.pages),
        number(status.memory_bytes),
        number(status.hits),
        number(status.misses),
        ratio(status.hits as f64 / looked_up),
        ratio(status.estimate.half),
        ratio(status.estimate.same),
        ratio(status.estimate.twice),
        number(status.admitted),
        number(status.refused_off),
        number(status.refused_present),
        number(status.refused_touched_once),
        number(status.refused_scan),
        number(status.refused_read_ahead),
        number(status.refused_budget),
        number(status.refused_busy),
        number(status.invalidated),
        number(status.evicted),
        number(status.bytes_read),
        number(status.bytes_written),
        number(status.write_budget),
        text(format!("{:.3}", status.drive_writes_per_day)),
        number(status.mismatches_misdirected + status.mismatches_stale + status.mismatches_corrupt),
        number(status.read_errors),
        micros(status.read_latency),
        micros(status.data_read_latency),
        number(status.suspensions),
        number(status.restored),
    ];
    Box::new(std::iter::once(row))
}

pub(super) static VIEWS: &[View] = &[view!("UNTORN_BPE", [
    "STATE" Text(16), "REASON" Text(1024), "FILE" Text(1024), "SIZE_BYTES" Number, "PAGE_SIZE" Number,
    "PAGES_TOTAL" Number, "PAGES_DATA" Number, "MEMORY_BYTES" Number, "HITS" Number, "MISSES" Number,
    "HIT_RATIO" Text(8), "HIT_RATIO_HALF_SIZE" Text(8), "HIT_RATIO_SAME_SIZE" Text(8),
    "HIT_RATIO_TWICE_SIZE" Text(8), "ADMITTED" Number, "REJECTED_OFF" Number, "REJECTED_PRESENT" Number,
    "REJECTED_TOUCHED_ONCE" Number, "REJECTED_SCAN" Number, "REJECTED_READ_AHEAD" Number,
    "REJECTED_BUDGET" Number, "REJECTED_BUSY" Number, "INVALIDATIONS" Number, "EVICTED" Number,
    "BYTES_READ" Number, "BYTES_WRITTEN" Number, "WRITE_BUDGET" Number, "DRIVE_WRITES_PER_DAY" Text(16),
    "MISMATCHES" Number, "READ_ERRORS" Number, "READ_LATENCY_US" Number, "DATA_READ_LATENCY_US" Number,
    "SUSPENSIONS" Number, "PAGES_KEPT" Number,
], extension)];
