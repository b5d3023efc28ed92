//! The chart of a record: queries per second of each script, a bar for each server, for a light and a dark
//! page.

use super::record::Record;
use super::table::thousands;
use crate::ink::{Ink, for_dark_pages};
use anyhow::Result;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

const OURS: Ink = Ink::new(0xc2410c, 0xf0883e);
/// In the order of the peers; from the beginning again when there are more.
const PEERS: [Ink; 3] =
    [Ink::new(0x8aa4c8, 0x58769f), Ink::new(0xc3cad3, 0x4d5661), Ink::new(0xa3bf9c, 0x5c7a55)];
const TEXT: Ink = Ink::new(0x24292f, 0xe6edf3);
const NOTE: Ink = Ink::new(0x6e7781, 0x9198a1);

/// All in pixels.
const WIDTH: u32 = 760;
/// Left end of the bars.
const AXIS: i32 = 190;
/// Length of the longest bar.
const LONGEST: f64 = 500.0;
const BAR: i32 = 8;
/// From the top of a bar to the top of the next server's.
const NEXT_BAR: i32 = BAR + 1;
/// Between the bars of two scripts.
const GAP: i32 = 12;
/// Above the first bar.
const HEAD: i32 = 56;
const FOOT: i32 = 28;
const LEGEND_COLUMN: i32 = 130;

/// The chart as the text of an SVG file.
pub fn svg(record: &Record) -> Result<String> {
    let group = NEXT_BAR * record.servers.len() as i32 + GAP;
    let height = HEAD + group * record.load.scripts.len() as i32 + FOOT;
    let mut text = String::new();
    let area = SVGBackend::with_string(&mut text, (WIDTH, height.unsigned_abs())).into_drawing_area();
    let write = |text: String, at: (i32, i32), size: f64, ink: &Ink, side: HPos| {
        // The backend divides the size by this.
        let font = ("system-ui, sans-serif", size * 1.24).into_font();
        let style = font.color(&ink.light).pos(Pos::new(side, VPos::Center));
        area.draw(&Text::new(text, at, style))
    };
    let bar = |(x, y): (i32, i32), (width, height): (i32, i32), ink: &Ink| {
        area.draw(&Rectangle::new([(x, y), (x + width, y + height)], ink.light.filled()))
    };

    write(title(record), (0, 12), 14.0, &TEXT, HPos::Left)?;
    for ((at, server), ink) in (0..).zip(&record.servers).zip(inks()) {
        let x = AXIS + at * LEGEND_COLUMN;
        bar((x, 32), (10, 10), ink)?;
        write(server.name.clone(), (x + 15, 37), 12.0, &TEXT, HPos::Left)?;
    }
    let rate = |script: &str, server: &str| record.typical(script, server).queries_per_second;
    let most = record
        .load
        .scripts
        .iter()
        .flat_map(|script| record.servers.iter().map(|server| rate(script, &server.name)))
        .fold(1.0, f64::max);
    for (at, script) in (0..).zip(&record.load.scripts) {
        let top = HEAD + at * group;
        let middle = top + (group - GAP) / 2;
        write(script.clone(), (AXIS - 8, middle), 12.0, &TEXT, HPos::Right)?;
        for ((turn, server), ink) in (0..).zip(&record.servers).zip(inks()) {
            let (rate, y) = (rate(script, &server.name), top + turn * NEXT_BAR);
            let length = (rate / most * LONGEST).round() as i32;
            bar((AXIS, y), (length, BAR), ink)?;
            if turn == 0 {
                write(thousands(rate), (AXIS + length + 5, y + BAR / 2), 10.0, &NOTE, HPos::Left)?;
            }
        }
    }
    write(note(record), (0, height - 8), 10.0, &NOTE, HPos::Left)?;
    area.present()?;
    drop(area);
    Ok(for_dark_pages(&text, &label(record), [&OURS, &TEXT, &NOTE].into_iter().chain(&PEERS)))
}

/// One ink for each server: ours, then the peers.
fn inks() -> impl Iterator<Item = &'static Ink> {
    std::iter::once(&OURS).chain(PEERS.iter().cycle())
}

fn title(record: &Record) -> String {
    let load = &record.load;
    let durable = record.servers.iter().all(|server| {
        server.settings.get("innodb_flush_log_at_trx_commit").is_some_and(|value| value == "1")
    });
    format!(
        "sysbench, queries per second ({} threads, {} × {} rows{})",
        load.threads,
        load.tables,
        thousands(load.rows as f64),
        if durable { ", durable commits" } else { "" }
    )
}

fn note(record: &Record) -> String {
    format!(
        "One machine with {} cores, servers in turn, medians of {} × {} s; {}, commit {}: docs/benchmarks.md",
        record.machine.cores,
        record.load.rounds,
        record.load.seconds,
        record.day(),
        record.commit_name()
    )
}

/// What is read to those who do not see the chart.
fn label(record: &Record) -> String {
    let names: Vec<&str> = record.servers.iter().map(|server| server.name.as_str()).collect();
    format!("sysbench: queries per second of {}", names.join(", "))
}

#[cfg(test)]
#[allow(clippy::expect_used)]
mod tests {
    use super::svg;
    use crate::bench::record::tests::example;

    #[test]
    fn the_chart_has_a_bar_for_each_script_and_server_as_long_as_its_median() {
        let chart = svg(&example()).expect("a chart");
        // The fastest median is 600 of B in the second script; two scripts of three servers, and three
        // squares of the legend.
        assert_eq!(chart.matches("<rect").count(), 2 * 3 + 3);
        let widths: Vec<&str> = chart
            .split("width=\"")
            .skip(2)
            .filter_map(|rest| rest.split_once('"').map(|(width, _)| width))
            .filter(|width| *width != "10")
            .collect();
        assert_eq!(widths, ["63", "31", "16", "250", "250", "500"]);
    }

    #[test]
    fn the_chart_is_labelled_and_knows_dark_pages() {
        let chart = svg(&example()).expect("a chart");
        for part in [
            "aria-label=\"sysbench: queries per second of Untorn, A, B\"",
            "prefers-color-scheme:dark",
            "[fill=\"#C2410C\"]{fill:#F0883E}",
            "fill=\"#C2410C\"",
            "16 threads, 4 × 100,000 rows, durable commits",
            "medians of 2 × 10 s; 2026-11-23, commit 0123abc",
            "oltp_point_select",
        ] {
            assert!(chart.contains(part), "{part} is not in\n{chart}");
        }
        assert!(chart.starts_with("<svg ") && chart.trim_end().ends_with("</svg>"), "{chart}");
    }
}
