//! Colours of charts for light and dark pages.
//!
//! A chart is drawn in the light colours. A style in the SVG replaces each by its dark one where the reader
//! prefers a dark page: a rule of CSS comes before the attributes `fill` and `stroke` that plotters writes.

use plotters::style::RGBColor;

/// A colour on a light page, and what replaces it on a dark one.
pub struct Ink {
    pub light: RGBColor,
    pub dark: RGBColor,
}

impl Ink {
    /// Two colours as 0xRRGGBB.
    pub const fn new(light: u32, dark: u32) -> Ink {
        Ink { light: rgb(light), dark: rgb(dark) }
    }
}

const fn rgb(color: u32) -> RGBColor {
    RGBColor((color >> 16) as u8, (color >> 8) as u8, color as u8)
}

/// Adds a label, which is read to those who do not see the chart, and the style with the dark colours.
pub fn for_dark_pages<'i>(svg: &str, label: &str, inks: impl IntoIterator<Item = &'i Ink>) -> String {
    let hex = |color: RGBColor| format!("#{:02X}{:02X}{:02X}", color.0, color.1, color.2);
    let rules: String = inks
        .into_iter()
        .map(|ink| {
            let (light, dark) = (hex(ink.light), hex(ink.dark));
            format!("[fill=\"{light}\"]{{fill:{dark}}}[stroke=\"{light}\"]{{stroke:{dark}}}")
        })
        .collect();
    let style = format!("<style>@media (prefers-color-scheme:dark){{{rules}}}</style>");
    match svg.split_once(">\n") {
        Some((open, rest)) => format!("{open} role=\"img\" aria-label=\"{label}\">\n{style}\n{rest}"),
        None => svg.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Ink, for_dark_pages};

    #[test]
    fn lines_and_areas_change_their_colour() {
        let svg = "<svg width=\"1\">\n<line stroke=\"#C2410C\"/>\n</svg>\n";
        let both = for_dark_pages(svg, "a chart", &[Ink::new(0xc2410c, 0xf0883e)]);
        assert!(both.contains("[fill=\"#C2410C\"]{fill:#F0883E}[stroke=\"#C2410C\"]{stroke:#F0883E}"));
        assert!(both.starts_with("<svg width=\"1\" role=\"img\" aria-label=\"a chart\">\n<style>"), "{both}");
    }
}
