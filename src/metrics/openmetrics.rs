//! Status rows as OpenMetrics text, under the names that dashboards for mysqld_exporter ask for.
//!
//! That exporter makes `mysql_global_status_…` of every status row, and gathers a few groups (commands,
//! handler calls, rows, pages of the pool) in one family each, told apart by a label. The rows that it passes
//! on one by one it leaves untyped, which is `unknown` here; OpenMetrics would want `_total` at the end of a
//! counter, and then no dashboard would find it. `Untorn_…` rows have no such past: they are `untorn_…`, with
//! the kind that the table of metrics gives them.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use super::{Kind, Metric, all};

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
fn place(name: &str, metric: Option<&Metric>) -> Option<Place> {
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
/// `Innodb_buffer_pool_pages_total`, as mysqld_exporter leaves it out.
pub fn text<'a>(rows: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let known: HashMap<String, &Metric> =
        all().map(|metric| (metric.name.to_ascii_lowercase(), metric)).collect();
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    for (name, value) in rows {
        let name = name.to_ascii_lowercase();
        let is_number = value.parse::<f64>().is_ok_and(f64::is_finite);
        if !is_number || !is_plain(&name) {
            continue;
        }
        let metric = known.get(&name).copied();
        let Some(Place { family, kind, label }) = place(&name, metric) else { continue };
        // A family of several rows has no single meaning.
        let help = metric.filter(|_| label.is_none()).map_or("", |metric| metric.help);
        let labels = label.map(|(label, value)| format!("{{{label}=\"{value}\"}}")).unwrap_or_default();
        let family = families.entry(family).or_insert(Family { kind, help, samples: Vec::new() });
        family.samples.push((labels, value.to_owned()));
    }
    let mut text = String::from("# TYPE mysql_up gauge\n# HELP mysql_up The server answers.\nmysql_up 1\n");
    for (name, family) in &families {
        write_family(&mut text, name, family);
    }
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

#[cfg(test)]
mod tests {
    use super::*;

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
            ("Ssl_cipher", ""),
            ("Odd", "NaN"),
            ("Bad name", "1"),
        ];
        let text = text(rows);
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
                "untorn_row_locks 1",
            ]
        );
        assert!(
            text.contains("# TYPE untorn_commits counter\n# HELP untorn_commits Transactions committed.\n")
        );
        assert!(text.contains("# TYPE mysql_global_status_innodb_os_log_written unknown\n"));
        assert!(text.ends_with("\n# EOF\n"));
    }
}
