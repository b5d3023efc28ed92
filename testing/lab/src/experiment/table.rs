//! A Markdown table: the first columns are words, the rest figures.

use std::fmt;

/// Heads and rows of the same length.
pub struct Table {
    heads: Vec<&'static str>,
    /// Columns that are words.
    words: usize,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Without rows.
    pub fn new(words: &[&'static str], figures: &[&'static str]) -> Table {
        Table { heads: [words, figures].concat(), words: words.len(), rows: Vec::new() }
    }

    /// One more row; what is missing at its end stays empty.
    pub fn row(&mut self, mut cells: Vec<String>) {
        cells.resize(self.heads.len(), String::new());
        self.rows.push(cells);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "| {} |", self.heads.join(" | "))?;
        let figures = self.heads.len().saturating_sub(self.words);
        writeln!(out, "|{}{}", "---|".repeat(self.words), "---:|".repeat(figures))?;
        for row in &self.rows {
            // A bar would begin another column.
            let cells: Vec<String> = row.iter().map(|cell| cell.replace('|', "/")).collect();
            writeln!(out, "| {} |", cells.join(" | "))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Table;

    #[test]
    fn every_row_has_all_columns() {
        let mut table = Table::new(&["server"], &["a", "b"]);
        table.row(vec!["A|B".to_owned(), "1".to_owned()]);
        assert_eq!(table.to_string(), "| server | a | b |\n|---|---:|---:|\n| A/B | 1 |  |\n");
    }
}
