//! Which index a table is read by.
//!
//! The conditions of the query are a list of conjuncts; `range_analysis.rs` finds the ranges of a column
//! that each implies. For each index the longest run of its columns with an equality is taken, then one
//! more column with ranges (`<`, BETWEEN, IN, LIKE, an OR of such), or several columns that one conjunct
//! gives together (`(a, b) IN (…)`). The path with the most equalities comes first; a unique key that is
//! given whole beats everything; without any the clustered index is scanned, or a secondary index that
//! has all needed columns. Of several indexes that serve, the one is taken that reads the fewest rows, by
//! an estimate (`estimate.rs`). Index hints limit the choice.
//!
//! A key on the first characters of a column takes part with these alone: it is the last of the path, and
//! its conjunct is always checked.
//!
//! A conjunct that the path covers is not evaluated again, unless a key value could not be turned into
//! the column's storage form exactly (see `exec::keys`): then the range is widened and all conjuncts are
//! checked.

// The fields of variants say by their names what they are.
#![allow(missing_docs)]

use std::sync::Arc;

use untorn::Table;
use untorn::engine::ScanIndex;
use untorn::schema::{KeyDef, KeyKind};

use super::estimate::{ROWS_FEW, ROWS_MANY, cost, depends_on_parameters, has_ranges, rows_of};
use super::functional_keys::KeyExpressions;
use super::{Condition, Planner};
use crate::ast::{BinaryOperator, HintKind};
use crate::expr::{Expr, ValueSet};

/// A path must cost this share of another at most to be taken instead.
pub(super) const CLEARLY_CHEAPER: f64 = 0.9;

/// One side of a range: the value and whether it belongs to the range.
pub type End = (Expr, bool);

/// What a column may be.
#[derive(Clone, Debug)]
pub enum Alternative {
    /// Equal to a value.
    Equal(Expr),
    /// Equal to one of many constants.
    AnyOf(Arc<ValueSet>),
    /// NULL.
    Null,
    /// Between two ends; without any: not NULL.
    Range { lower: Option<End>, upper: Option<End> },
    /// Begins with what stands before the first wildcard of a pattern.
    Like { pattern: Expr, escape: Expr },
    /// This column and those behind it are equal to these values.
    Row(Vec<Expr>),
}

/// How a source is read.
#[derive(Clone, Debug)]
pub struct Path {
    /// Which index.
    pub index: ScanIndex,
    /// Columns of the index that keys are made of: those of `equal`, then that of `last`.
    pub columns: Vec<u16>,
    /// Leading columns that have one value.
    pub equal: Vec<Alternative>,
    /// What the next column may be; empty: anything. Rows stand among rows of the same length only.
    pub last: Vec<Alternative>,
    /// The index has only this many characters of the column of `last`.
    pub prefix_chars: Option<u32>,
    /// One row at most: a unique key is given whole.
    pub unique: bool,
    /// The index has all columns that are needed.
    pub covering: bool,
    /// Read from the end.
    pub backward: bool,
    /// Numbers of the conjuncts that the ranges express.
    pub consumed: Vec<usize>,
    /// About how many rows are read at a time; 0 where nobody asked.
    pub rows: f64,
    /// All indexes that the conditions say something of; only EXPLAIN asks.
    pub possible: Vec<ScanIndex>,
    /// Several paths in the place of this one, for the parts of an OR: each row comes once.
    pub merged: Vec<Path>,
}

impl Path {
    /// The whole clustered index.
    pub fn everything() -> Path {
        Path {
            index: ScanIndex::Clustered,
            columns: Vec::new(),
            equal: Vec::new(),
            last: Vec::new(),
            prefix_chars: None,
            unique: false,
            covering: false,
            backward: false,
            consumed: Vec::new(),
            rows: 0.0,
            possible: Vec::new(),
            merged: Vec::new(),
        }
    }

    /// What it gains over reading everything: the more, the earlier it stands in a join.
    pub fn rank(&self) -> u32 {
        let merged = u32::from(!self.merged.is_empty()) * 5;
        merged
            + self.equal.len() as u32 * 10
            + u32::from(!self.last.is_empty()) * 5
            + u32::from(self.unique) * 1000
    }

    /// Whether it reads the whole index.
    pub fn is_full_scan(&self) -> bool {
        self.equal.is_empty() && self.last.is_empty() && self.merged.is_empty()
    }
}

/// Chooses the path of one source, by what is known when it is chosen.
pub struct PathChooser<'q> {
    /// Who plans.
    pub planner: &'q Planner<'q>,
    /// The table.
    pub table: &'q Arc<Table>,
    /// Its number among the sources.
    pub source: u16,
    /// The conjuncts.
    pub conjuncts: &'q [Condition],
    /// Sources whose rows are at hand.
    pub bound: &'q [u16],
    /// Columns that the query needs of this source.
    pub needed: &'q [u16],
    /// What its keys are made of besides columns.
    pub(super) expressions: &'q KeyExpressions<'q>,
    /// Hints.
    pub hints: &'q [(HintKind, Vec<String>)],
    /// What counts.
    pub choice: Choice,
}

/// What counts in the choice of a path.
#[derive(Clone, Copy, Default)]
pub struct Choice {
    /// It is to be known how many rows the path reads.
    pub estimates: bool,
    /// The cheapest of several; otherwise the one with the most equalities. (What LIMIT will leave of the
    /// rows is not known.)
    pub by_cost: bool,
    /// All rows in their order may be cheaper than looking up many by another index.
    pub may_scan: bool,
    /// The rows themselves are wanted, whatever columns an index has: they are changed.
    pub whole_rows: bool,
}

/// An index with its key columns.
pub struct IndexColumns<'t> {
    /// Which.
    pub index: ScanIndex,
    /// Its definition; `None` for a hidden clustered index.
    pub key: Option<&'t KeyDef>,
}

/// The indexes of a table that may be read, the clustered one first: not those that are INVISIBLE.
pub fn indexes(table: &Table) -> Vec<IndexColumns<'_>> {
    let mut visible = all_indexes(table);
    visible.retain(|index| index.key.is_none_or(|key| !key.invisible));
    visible
}

/// The indexes of a table, the clustered one first.
fn all_indexes(table: &Table) -> Vec<IndexColumns<'_>> {
    let clustered = IndexColumns { index: ScanIndex::Clustered, key: table.def.clustered_key() };
    let secondary = table.def.secondary_keys().iter().enumerate();
    let secondary = secondary.map(|(n, key)| IndexColumns { index: ScanIndex::Secondary(n), key: Some(key) });
    std::iter::once(clustered).chain(secondary).collect()
}

/// The definition of an index; `None` for a hidden clustered index.
pub fn key_of(table: &Table, index: ScanIndex) -> Option<&KeyDef> {
    match index {
        ScanIndex::Clustered => table.def.clustered_key(),
        ScanIndex::Secondary(n) => table.def.secondary_keys().get(n),
    }
}

/// Whether the index holds all of `needed` in full.
pub fn covers(table: &Table, index: ScanIndex, needed: &[u16]) -> bool {
    let ScanIndex::Secondary(n) = index else { return true };
    let Some(secondary) = table.rows.secondaries.get(n) else { return false };
    needed.iter().all(|column| {
        secondary.columns.iter().any(|field| field.column == *column && field.prefix_bytes.is_none())
    })
}

impl PathChooser<'_> {
    /// The path over one index, with its score.
    fn path(&self, index: &IndexColumns<'_>) -> (Path, u32) {
        let mut path = Path { index: index.index, ..Path::everything() };
        path.covering = index.index != ScanIndex::Clustered
            && !self.choice.whole_rows
            && covers(self.table, index.index, self.needed);
        let Some(key) = index.key else { return (path, 0) };
        for (at, part) in key.parts.iter().enumerate() {
            let of = self.column_range(part);
            if let Some((number, one)) = of.equal {
                path.columns.push(part.column);
                path.consumed.extend(number);
                path.equal.push(one);
                continue;
            }
            if let Some(rows) = self.row_values(&key.parts[at..]) {
                path.columns.extend(key.parts[at..][..rows.columns].iter().map(|part| part.column));
                path.last = rows.rows.into_iter().map(Alternative::Row).collect();
                path.consumed.extend(rows.consumed);
            } else if !of.last.is_empty() {
                path.columns.push(part.column);
                path.last = of.last;
                path.prefix_chars = part.prefix_chars;
                path.consumed.extend(of.consumed);
            }
            break;
        }
        let whole = path.equal.len() == key.parts.len();
        let no_nulls = path.equal.iter().all(|one| matches!(one, Alternative::Equal(_)));
        path.unique = whole && no_nulls && key.kind != KeyKind::Secondary;
        let score = score(&path);
        (path, score)
    }

    fn allowed(&self, index: &IndexColumns<'_>) -> bool {
        let name = index.key.map_or("PRIMARY", |key| key.name.as_str());
        let named = |names: &[String]| names.iter().any(|wanted| wanted.eq_ignore_ascii_case(name));
        let of_handler = self.hints.iter().any(|(kind, _)| *kind == HintKind::Handler);
        let mut allowed = of_handler || index.key.is_none_or(|key| !key.invisible);
        let mut chosen = None;
        for (kind, names) in self.hints {
            match kind {
                HintKind::Ignore => allowed &= !named(names),
                HintKind::Use | HintKind::Force | HintKind::Handler => {
                    chosen = Some(chosen.unwrap_or(false) || named(names))
                }
            }
        }
        allowed && chosen.unwrap_or(true)
    }

    /// The best path, over one index or several.
    pub fn best(&self) -> Path {
        let mut best = self.best_of_one();
        if let Some(mut merged) = self.merged(&mut best) {
            merged.possible = std::mem::take(&mut best.possible);
            if self.planner.explains.get() {
                let more = merged.merged.iter().map(|path| path.index);
                let more: Vec<_> = more.filter(|index| !merged.possible.contains(index)).collect();
                merged.possible.extend(more);
            }
            return merged;
        }
        best
    }

    /// The best path over one index.
    pub(super) fn best_of_one(&self) -> Path {
        let mut paths: Vec<(Path, u32)> = Vec::new();
        let mut possible = Vec::new();
        for index in all_indexes(self.table).iter().filter(|index| self.allowed(index)) {
            let (path, mut score) = self.path(index);
            if score > 0 && self.planner.explains.get() {
                possible.push(index.index);
            }
            // A covering secondary index is smaller than the table.
            if score == 0 && path.covering {
                score = 1;
            }
            let is_forced = |kind: &HintKind| matches!(kind, HintKind::Force | HintKind::Handler);
            if score == 0 && self.hints.iter().any(|(kind, _)| is_forced(kind)) {
                score = 1;
            }
            if score > 0 {
                paths.push((path, score));
            }
        }
        let highest = paths.iter().map(|(_, score)| *score).max().unwrap_or(0);
        let several = paths.len() > 1 && self.choice.by_cost;
        let first = paths.iter().position(|(_, score)| *score == highest);
        let mut best = first.map_or_else(Path::everything, |first| paths.remove(first).0);
        if !best.is_full_scan() {
            // What a guess takes for many rows may be few: a range is not given up for a whole index.
            paths.retain(|(path, _)| !path.is_full_scan());
        }
        if several && !best.unique && rows_of(self.table) >= ROWS_FEW {
            best = self.cheapest(best, paths);
        }
        if self.choice.may_scan && self.is_dearer_than_all(&mut best) {
            best = Path::everything();
        }
        if self.choice.estimates || self.planner.explains.get() {
            self.estimate(&mut best);
        }
        best.possible = possible;
        best
    }

    /// The cheapest of these paths; where that makes no difference, the first.
    fn cheapest(&self, mut best: Path, others: Vec<(Path, u32)>) -> Path {
        let mut paths = others.iter().map(|(path, _)| path);
        if !others.is_empty() && (depends_on_parameters(&best) || paths.any(depends_on_parameters)) {
            // Chosen for these values, it may be wrong for others.
            self.planner.value_dependent.set(true);
        }
        self.planner.want_statistics(self.table);
        self.estimate(&mut best);
        for (mut path, _) in others {
            self.estimate(&mut path);
            if cost(&path) < CLEARLY_CHEAPER * cost(&best) {
                best = path;
            }
        }
        best
    }

    /// Whether looking up the rows of a range one by one costs more than reading all rows.
    fn is_dearer_than_all(&self, path: &mut Path) -> bool {
        let forced = self.hints.iter().any(|(kind, _)| *kind != HintKind::Ignore);
        let looks_up = matches!(path.index, ScanIndex::Secondary(_)) && !path.covering;
        if forced || !looks_up || !has_ranges(path) || rows_of(self.table) < ROWS_MANY {
            return false;
        }
        if depends_on_parameters(path) {
            self.planner.value_dependent.set(true);
        }
        // A guess is no reason to read everything: a range whose ends are not known may have one row.
        self.estimate_by_index(path) && cost(path) > rows_of(self.table)
    }
}

/// How good a path is; 0: it reads everything.
fn score(path: &Path) -> u32 {
    let is_range = |one: &Alternative| matches!(one, Alternative::Range { .. } | Alternative::Like { .. });
    let mut score = path.equal.len() as u32 * 10;
    match &path.last[..] {
        [] => {}
        [Alternative::Row(values), ..] => score += values.len() as u32 * 10 - 2,
        [Alternative::Range { lower: Some(_), upper: Some(_) } | Alternative::Like { .. }] => score += 6,
        last if !last.iter().any(is_range) => score += 8,
        _ => score += 5,
    }
    // A few characters tell less than the column.
    score -= u32::from(path.prefix_chars.is_some() && score > 1);
    if score > 0 {
        score += if path.covering { 2 } else { 0 };
        score += u32::from(path.index == ScanIndex::Clustered);
    }
    if path.unique { score + 1000 } else { score }
}

/// Those of [`equalities`] that rows are looked up by. What is the same for all rows tells them apart no
/// better than a condition does, and its value may be of another kind than the column: it is left out, unless
/// there is nothing else.
pub fn lookup_equalities(conditions: &[Condition], source: u16) -> Vec<(u16, &Expr)> {
    let mut found = equalities(conditions, source);
    let differs = |wanted: &Expr| matches!(wanted, Expr::Column { .. } | Expr::Outer(_));
    if found.iter().any(|(_, wanted)| differs(wanted)) {
        found.retain(|(_, wanted)| differs(wanted));
    }
    found
}

/// Columns of a source in memory that the conditions compare with something else, and with what.
pub fn equalities(conditions: &[Condition], source: u16) -> Vec<(u16, &Expr)> {
    let mut found = Vec::new();
    for condition in conditions {
        let Expr::Compare(BinaryOperator::Equal, left, right) = &**condition else { continue };
        for (column, wanted) in [(left, right), (right, left)] {
            let simple = matches!(
                **wanted,
                Expr::Column { source: other, .. } if other != source
            ) || matches!(**wanted, Expr::Literal(_) | Expr::Parameter(_) | Expr::Outer(_));
            if let Expr::Column { source: own, column } = **column
                && own == source
                && simple
            {
                found.push((column, &**wanted));
            }
        }
    }
    found
}
