//! Charts of what happens in each second, below each other, as SVG.

use anyhow::{Result, anyhow};
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
        let points = figures.iter().enumerate().map(|(at, figure)| (at as f64 + 1.0, *figure));
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

const COLORS: [RGBColor; 6] = [
    RGBColor(200, 60, 40),
    RGBColor(30, 110, 180),
    RGBColor(40, 140, 70),
    RGBColor(150, 90, 180),
    RGBColor(210, 140, 20),
    RGBColor(90, 90, 90),
];

/// Writes the charts below each other.
pub fn write(path: &Path, charts: &[Chart]) -> Result<()> {
    let height = 320 * charts.len().max(1) as u32;
    let root = SVGBackend::new(path, (1000, height)).into_drawing_area();
    let wrong = |error: &dyn std::fmt::Display| anyhow!("{}: {error}", path.display());
    root.fill(&WHITE).map_err(|error| wrong(&error))?;
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
            .build_cartesian_2d(0.0..seconds, 0.0..most)
            .map_err(|error| wrong(&error))?;
        let mut mesh = chart.configure_mesh();
        mesh.x_desc("seconds").y_desc(*unit).draw().map_err(|error| wrong(&error))?;
        for (line, color) in lines.iter().zip(COLORS.iter().cycle()) {
            let color = *color;
            let series = LineSeries::new(line.points.iter().copied(), color.stroke_width(2));
            let drawn = chart.draw_series(series).map_err(|error| wrong(&error))?;
            drawn
                .label(&line.name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], color.stroke_width(2)));
        }
        let mut labels = chart.configure_series_labels();
        labels.background_style(WHITE.mix(0.8)).border_style(BLACK).draw().map_err(|error| wrong(&error))?;
    }
    root.present().map_err(|error| wrong(&error))
}
