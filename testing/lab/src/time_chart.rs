//! Charts of what happens in each second, below each other, as SVG.

use crate::ink::{Ink, for_dark_pages};
use anyhow::{Context, Result};
use plotters::prelude::*;
use std::path::Path;

/// One line of a chart.
pub struct Line {
    /// For the legend.
    pub name: String,
    /// Second, figure.
    pub points: Vec<(f64, f64)>,
}

impl Line {
    /// A line of one figure for each second from the first on.
    pub fn of_seconds(name: &str, figures: &[f64]) -> Line {
        // What a server does not tell has no figure.
        let drawable = |figure: f64| if figure.is_finite() { figure } else { 0.0 };
        let points = figures.iter().enumerate().map(|(at, figure)| (at as f64 + 1.0, drawable(*figure)));
        Line { name: name.to_owned(), points: points.collect() }
    }
}

/// One chart.
pub struct Chart {
    /// What stands above it.
    pub title: String,
    /// What is counted.
    pub unit: &'static str,
    /// Its lines.
    pub lines: Vec<Line>,
}

/// Of the lines, from the beginning again when there are more.
const LINES: [Ink; 8] = [
    Ink::new(0xc83c28, 0xff7b63),
    Ink::new(0x1e6eb4, 0x58a6ff),
    Ink::new(0x288c46, 0x56d364),
    Ink::new(0x965ab4, 0xd2a8ff),
    Ink::new(0xd28c14, 0xe3b341),
    Ink::new(0x5a5a5a, 0xb1bac4),
    Ink::new(0x0f8b8d, 0x39c5cf),
    Ink::new(0xb4326e, 0xff7eb6),
];
const PAPER: Ink = Ink::new(0xffffff, 0x0d1117);
/// Text, axes and, thinned, the grid.
const TEXT: Ink = Ink::new(0x000000, 0xe6edf3);

/// Writes the charts below each other, for a light and a dark page.
pub fn write(path: &Path, charts: &[Chart]) -> Result<()> {
    let titles: Vec<&str> = charts.iter().map(|chart| chart.title.as_str()).collect();
    let inks = LINES.iter().chain([&PAPER, &TEXT]);
    let text = for_dark_pages(&drawn(charts)?, &titles.join("; "), inks);
    std::fs::write(path, text).with_context(|| path.display().to_string())
}

fn drawn(charts: &[Chart]) -> Result<String> {
    let height = 320 * charts.len().max(1) as u32;
    let mut text = String::new();
    let root = SVGBackend::with_string(&mut text, (1000, height)).into_drawing_area();
    root.fill(&PAPER.light)?;
    for (area, Chart { title, unit, lines }) in root.split_evenly((charts.len().max(1), 1)).iter().zip(charts)
    {
        let points = || lines.iter().flat_map(|line| &line.points);
        let seconds = points().map(|point| point.0).fold(1.0, f64::max);
        let most = points().map(|point| point.1).fold(1.0, f64::max) * 1.1;
        let mut chart = ChartBuilder::on(area)
            .caption(title, ("sans-serif", 18))
            .margin(10)
            .x_label_area_size(30)
            .y_label_area_size(70)
            .build_cartesian_2d(0.0..seconds, 0.0..most)?;
        let mut mesh = chart.configure_mesh();
        mesh.x_desc("seconds").y_desc(*unit).draw()?;
        for (line, ink) in lines.iter().zip(LINES.iter().cycle()) {
            let color = ink.light;
            let series = LineSeries::new(line.points.iter().copied(), color.stroke_width(2));
            chart
                .draw_series(series)?
                .label(&line.name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], color.stroke_width(2)));
        }
        let mut labels = chart.configure_series_labels();
        labels.background_style(PAPER.light.mix(0.8)).border_style(TEXT.light).draw()?;
    }
    root.present()?;
    drop(root);
    Ok(text)
}

#[cfg(test)]
#[allow(clippy::expect_used)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_has_a_line_for_each_series_and_all_its_colours_turn_dark() {
        let lines = vec![Line::of_seconds("A", &[1.0, 5.0]), Line::of_seconds("B", &[2.0, f64::NAN])];
        let text = drawn(&[Chart { title: "Rate".to_owned(), unit: "per second", lines }]).expect("a chart");
        for part in ["Rate", ">\nA\n<", ">\nB\n<", "#C83C28", "#1E6EB4"] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        let known: Vec<String> = LINES
            .iter()
            .chain([&PAPER, &TEXT])
            .map(|ink| format!("#{:02X}{:02X}{:02X}", ink.light.0, ink.light.1, ink.light.2))
            .collect();
        for attribute in ["fill=\"#", "stroke=\"#"] {
            for color in text.split(attribute).skip(1).filter_map(|rest| rest.get(..6)) {
                assert!(known.contains(&format!("#{color}")), "{color} would stay as it is");
            }
        }
    }
}
