//! A record as Markdown: what was measured on what, two tables, the geometric means.

use super::record::{Record, Server};
use super::summary::{Ratios, Typical};

/// A figure with some decimals, or a dash.
pub fn figure(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.decimals$}"))
}

/// A whole number with a comma after each three digits.
pub fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number and what it counts.
fn counted(number: u32, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// The whole text.
pub fn markdown(record: &Record) -> String {
    let speed = Table::new(
        record,
        &[
            Columns::of_servers("QPS", record, |typical| thousands(typical.queries_per_second)),
            Columns::of_peers("×", record, |ratios| figure(ratios.speed, 2)),
            Columns::of_servers("p99 ms", record, |typical| figure(Some(typical.p99_ms), 2)),
            Columns::of_servers("CPU µs/query", record, |typical| figure(typical.processor_us, 1)),
        ],
    );
    let writes = Table::new(
        record,
        &[
            Columns::of_servers("KiB written/query", record, |typical| figure(typical.kib_written, 2)),
            Columns::of_servers("syncs/query", record, |typical| figure(typical.syncs, 3)),
        ],
    );
    format!("{}\n\n{}\n{}\n{}", description(record), speed.0, writes.0, means(record))
}

fn description(record: &Record) -> String {
    let Record { machine, load, .. } = record;
    let servers: Vec<String> =
        record.servers.iter().map(|server| format!("{} {}", server.name, server.version)).collect();
    format!(
        "{}, commit {}. {}; sysbench {}. {} × {} rows, {}; medians of {} of {} s per script and \
         server, in turn. {} cores ({}), {:.0} GiB, Linux {}; page protection of Untorn: {}.",
        record.day(),
        record.commit_name(),
        servers.join(", "),
        record.sysbench,
        counted(load.tables, "table"),
        thousands(load.rows as f64),
        counted(load.threads, "thread"),
        counted(load.rounds, "round"),
        load.seconds,
        machine.cores,
        machine.processor,
        machine.memory_bytes as f64 / f64::from(1 << 30),
        machine.kernel,
        record.page_protection,
    )
}

fn means(record: &Record) -> String {
    let told = |ratios: Ratios| {
        format!("QPS × {}, CPU per query × {}", figure(ratios.speed, 2), figure(ratios.processor, 2))
    };
    let mut parts: Vec<String> = record
        .peers()
        .iter()
        .map(|peer| format!("against {} {}", peer.name, told(record.mean_ratios(&peer.name))))
        .collect();
    if parts.len() > 1 {
        let best = told(record.mean_ratios_to_the_best());
        parts.push(format!("against the best of them in each script {best}"));
    }
    if parts.is_empty() { String::new() } else { format!("Geometric means: {}.\n", parts.join("; ")) }
}

/// Columns for the same figure, one for each server.
struct Columns {
    heads: Vec<String>,
    /// The cells of each script.
    rows: Vec<Vec<String>>,
}

impl Columns {
    fn new(heads: Vec<String>, record: &Record, row: impl Fn(&str) -> Vec<String>) -> Columns {
        Columns { heads, rows: record.load.scripts.iter().map(|script| row(script)).collect() }
    }

    fn of_servers(figure: &str, record: &Record, cell: impl Fn(Typical) -> String) -> Columns {
        let head = |server: &Server| format!("{}, {figure}", server.name);
        Columns::new(record.servers.iter().map(head).collect(), record, |script| {
            record.servers.iter().map(|server| cell(record.typical(script, &server.name))).collect()
        })
    }

    fn of_peers(figure: &str, record: &Record, cell: impl Fn(Ratios) -> String) -> Columns {
        let head = |server: &Server| format!("{figure} {}", server.name);
        Columns::new(record.peers().iter().map(head).collect(), record, |script| {
            record.peers().iter().map(|peer| cell(record.ratios(script, &peer.name))).collect()
        })
    }
}

/// A Markdown table with a row for each script.
struct Table(String);

impl Table {
    fn new(record: &Record, columns: &[Columns]) -> Table {
        let heads: Vec<&str> =
            columns.iter().flat_map(|columns| &columns.heads).map(String::as_str).collect();
        let mut text = format!("| script | {} |\n|---|{}\n", heads.join(" | "), "---:|".repeat(heads.len()));
        for (at, script) in record.load.scripts.iter().enumerate() {
            let cells: Vec<&str> = columns
                .iter()
                .filter_map(|columns| columns.rows.get(at))
                .flatten()
                .map(String::as_str)
                .collect();
            text += &format!("| {script} | {} |\n", cells.join(" | "));
        }
        Table(text)
    }
}

#[cfg(test)]
mod tests {
    use super::{figure, markdown, thousands};
    use crate::bench::record::tests::example;

    #[test]
    fn figures_are_written_as_people_read_them() {
        assert_eq!((thousands(81899.4), thousands(999.6), thousands(7.0)).0, "81,899");
        assert_eq!((thousands(999.6), thousands(7.0)), ("1,000".to_owned(), "7".to_owned()));
        assert_eq!((figure(Some(1.005), 1), figure(None, 2)), ("1.0".to_owned(), "–".to_owned()));
    }

    #[test]
    fn the_tables_have_a_row_for_each_script_and_the_means() {
        let text = markdown(&example());
        assert!(
            text.contains("2026-11-23, commit 0123abc. Untorn 1.0, A 1.0, B 1.0; sysbench 1.0.20. 4 tables × 100,000 rows, 16 threads; medians of 2 rounds of 10 s"),
            "{text}"
        );
        assert!(
            text.contains(
                "| oltp_point_select | 75 | 38 | 19 | 2.00 | 4.00 | 2.50 | 2.50 | 2.50 | 10.0 | 20.0 | – |"
            ),
            "{text}"
        );
        assert!(text.contains("| oltp_write_only | 4.00 | 4.00 | – | 0.500 | 0.500 | 0.500 |"), "{text}");
        assert!(text.contains("against A QPS × 1.41, CPU per query × 0.50;"), "{text}");
        assert!(
            text.contains("against the best of them in each script QPS × 1.00, CPU per query × –."),
            "{text}"
        );
    }
}
