//! Status rows as OpenMetrics text, under the names that dashboards for mysqld_exporter ask for.
//!
//! That exporter makes `mysql_global_status_…` of every status row, and gathers a few groups (commands,
//! handler calls, rows, pages of the pool) in one family each, told apart by a label. The rows that it passes
//! on one by one it leaves untyped, which is `unknown` here; OpenMetrics would want `_total` at the end of a
//! counter, and then no dashboard would find it. `Untorn_…` rows have no such past: they are `untorn_…`, with
//! the kind that the table of metrics gives them. A histogram has a bucket for each power of two of
//! nanoseconds, in seconds; its rows of SHOW STATUS are left out, for the buckets say more.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;

use super::{Description, Kind, Series, all};

/// The media type of [`text`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A metric family: the samples of a family stand together in the text.
struct Family {
    kind: &'static str,
    help: &'static str,
    samples: Vec<(String, String)>,
}

/// Where a row goes.
struct Place {
    family: String,
    kind: &'static str,
    /// Name and value.
    label: Option<(&'static str, String)>,
}

impl Place {
    fn labelled(family: &str, kind: &'static str, label: &'static str, value: &str) -> Place {
        Place { family: family.to_owned(), kind, label: Some((label, value.to_owned())) }
    }
}

/// The place of a row of this name in lower case; `None` for one that the exporter leaves out.
fn place(name: &str, metric: Option<&Description>) -> Option<Place> {
    const STATUS: &str = "mysql_global_status_";
    if name.starts_with("untorn_") {
        let kind = match metric.map(|metric| metric.kind) {
            Some(Kind::Counter) => "counter",
            Some(Kind::Gauge) => "gauge",
            None => "unknown",
        };
        return Some(Place { family: name.to_owned(), kind, label: None });
    }
    let groups = [
        ("com_", "commands", "command"),
        ("handler_", "handlers", "handler"),
        ("connection_errors_", "connection_errors", "error"),
        ("innodb_rows_", "innodb_row_ops", "operation"),
    ];
    for (prefix, family, label) in groups {
        if let Some(which) = name.strip_prefix(prefix) {
            return Some(Place::labelled(&format!("{STATUS}{family}"), "counter", label, which));
        }
    }
    let plain = |name: &str, kind| Some(Place { family: format!("{STATUS}{name}"), kind, label: None });
    match name.strip_prefix("innodb_buffer_pool_pages_") {
        // The sum of the states.
        Some("total") => None,
        Some("dirty") => plain("buffer_pool_dirty_pages", "gauge"),
        Some(state @ ("data" | "free" | "misc" | "old")) => {
            Some(Place::labelled(&format!("{STATUS}buffer_pool_pages"), "gauge", "state", state))
        }
        Some(operation) => {
            let family = format!("{STATUS}buffer_pool_page_changes");
            Some(Place::labelled(&family, "counter", "operation", operation))
        }
        None => plain(name, "unknown"),
    }
}

/// Whether a name needs nothing escaped.
fn is_plain(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// The OpenMetrics text of status rows (name, value). Rows that are no numbers are left out, and so is
/// `Innodb_buffer_pool_pages_total`, as mysqld_exporter leaves it out. `others` describes rows that are not
/// the engine's. `is_up`: whether clients are answered; a server that recovers is not up.
pub fn text<'a>(
    is_up: bool,
    rows: impl IntoIterator<Item = (&'a str, &'a str)>,
    times: &[Series],
    others: &[Description],
) -> String {
    let told_by_buckets: HashSet<String> =
        times.iter().flat_map(|series| series.rows).map(str::to_ascii_lowercase).collect();
    let of_engine = all().map(|metric| {
        let (name, kind, help) = (metric.name, metric.kind, metric.help);
        Description { name, kind, help }
    });
    let known: HashMap<String, Description> = of_engine
        .chain(others.iter().copied())
        .map(|metric| (metric.name.to_ascii_lowercase(), metric))
        .collect();
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    for (name, value) in rows {
        let name = name.to_ascii_lowercase();
        let is_number = value.parse::<f64>().is_ok_and(f64::is_finite);
        if !is_number || !is_plain(&name) || told_by_buckets.contains(&name) {
            continue;
        }
        let metric = known.get(&name);
        let Some(Place { family, kind, label }) = place(&name, metric) else { continue };
        // A family of several rows has no single meaning.
        let help = metric.filter(|_| label.is_none()).map_or("", |metric| metric.help);
        let labels = label.map(|(label, value)| format!("{{{label}=\"{value}\"}}")).unwrap_or_default();
        let family = families.entry(family).or_insert(Family { kind, help, samples: Vec::new() });
        family.samples.push((labels, value.to_owned()));
    }
    let up = u8::from(is_up);
    let mut text = format!("# TYPE mysql_up gauge\n# HELP mysql_up The server answers.\nmysql_up {up}\n");
    for (name, family) in &families {
        write_family(&mut text, name, family);
    }
    write_times(&mut text, times);
    text.push_str("# EOF\n");
    text
}

fn write_family(text: &mut String, name: &str, family: &Family) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "# TYPE {name} {}", family.kind);
    if !family.help.is_empty() {
        let _ = writeln!(text, "# HELP {name} {}", family.help);
    }
    let suffix = if family.kind == "counter" { "_total" } else { "" };
    for (labels, value) in &family.samples {
        let _ = writeln!(text, "{name}{suffix}{labels} {value}");
    }
}

/// Series of one family stand together.
fn write_times(text: &mut String, times: &[Series]) {
    let mut family = "";
    for series in times {
        let name = format!("{}_seconds", series.family.to_ascii_lowercase());
        if family != series.family {
            family = series.family;
            let _ = writeln!(
                text,
                "# TYPE {name} histogram\n# UNIT {name} seconds\n# HELP {name} {}",
                series.help
            );
        }
        let label = series.label.map(|(label, value)| format!("{label}=\"{value}\"")).unwrap_or_default();
        let comma = if label.is_empty() { "" } else { "," };
        for (most, count) in series.times.cumulative() {
            let most = most.as_secs_f64();
            let _ = writeln!(text, "{name}_bucket{{{label}{comma}le=\"{most}\"}} {count}");
        }
        let (count, sum) = (series.times.count(), series.times.sum().as_secs_f64());
        let braced = if label.is_empty() { label.clone() } else { format!("{{{label}}}") };
        let _ = writeln!(text, "{name}_bucket{{{label}{comma}le=\"+Inf\"}} {count}");
        let _ = writeln!(text, "{name}_sum{braced} {sum}\n{name}_count{braced} {count}");
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::metrics::Times;

    #[test]
    fn histograms_are_in_seconds_and_their_rows_are_left_out() {
        let series = |value, micros: &[u64]| {
            let mut times = Times::default();
            micros.iter().for_each(|micros| times.record(Duration::from_micros(*micros)));
            let label = Some(("way", value));
            Series {
                family: "Untorn_page_write",
                label,
                help: "Writes.",
                rows: ["A_p50_us", "A_p99_us"],
                times,
            }
        };
        let text = text(
            true,
            [("a_p50_us", "3")],
            &[series("atomic", &[1, 500, 600_000_000]), series("plain", &[])],
            &[],
        );
        assert!(!text.contains("a_p50"), "{text}");
        let head = "# TYPE untorn_page_write_seconds histogram\n# UNIT untorn_page_write_seconds seconds\n";
        assert_eq!(text.matches(head).count(), 1);
        for line in [
            "untorn_page_write_seconds_bucket{way=\"atomic\",le=\"0.000001024\"} 1",
            "untorn_page_write_seconds_bucket{way=\"atomic\",le=\"0.000262144\"} 1",
            "untorn_page_write_seconds_bucket{way=\"atomic\",le=\"0.000524288\"} 2",
            "untorn_page_write_seconds_bucket{way=\"atomic\",le=\"137.438953472\"} 2",
            "untorn_page_write_seconds_bucket{way=\"atomic\",le=\"+Inf\"} 3",
            "untorn_page_write_seconds_sum{way=\"atomic\"} 600.000501",
            "untorn_page_write_seconds_count{way=\"plain\"} 0",
        ] {
            assert!(text.lines().any(|known| known == line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn rows_go_where_mysqld_exporter_puts_them() {
        let rows = [
            ("Com_select", "3"),
            ("Innodb_rows_read", "4"),
            ("Innodb_buffer_pool_pages_total", "9"),
            ("Innodb_buffer_pool_pages_data", "5"),
            ("Innodb_buffer_pool_pages_dirty", "2"),
            ("Innodb_buffer_pool_pages_flushed", "6"),
            ("Innodb_os_log_written", "7"),
            ("Untorn_commits", "8"),
            ("Untorn_row_locks", "1"),
            ("Untorn_of_others", "2"),
            ("Ssl_cipher", ""),
            ("Odd", "NaN"),
            ("Bad name", "1"),
        ];
        let other = Description { name: "Untorn_of_others", kind: Kind::Counter, help: "Others." };
        let text = text(true, rows, &[], &[other]);
        let samples: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(
            samples,
            [
                "mysql_up 1",
                "mysql_global_status_buffer_pool_dirty_pages 2",
                "mysql_global_status_buffer_pool_page_changes_total{operation=\"flushed\"} 6",
                "mysql_global_status_buffer_pool_pages{state=\"data\"} 5",
                "mysql_global_status_commands_total{command=\"select\"} 3",
                "mysql_global_status_innodb_os_log_written 7",
                "mysql_global_status_innodb_row_ops_total{operation=\"read\"} 4",
                "untorn_commits_total 8",
                "untorn_of_others_total 2",
                "untorn_row_locks 1",
            ]
        );
        assert!(text.contains("# TYPE untorn_of_others counter\n# HELP untorn_of_others Others.\n"));
        assert!(
            text.contains("# TYPE untorn_commits counter\n# HELP untorn_commits Transactions committed.\n")
        );
        assert!(text.contains("# TYPE mysql_global_status_innodb_os_log_written unknown\n"));
        assert!(text.ends_with("\n# EOF\n"));
    }
}
