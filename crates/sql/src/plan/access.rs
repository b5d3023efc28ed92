//! Which index a table is read by.
//!
//! The conditions of the query are a list of conjuncts; `column_conditions.rs` finds what each says of a
//! column. For each index the longest run of its columns with an equality is taken, then one more column
//! with ranges (`<`, BETWEEN, IN, LIKE, an OR of such), or several columns that one conjunct gives together
//! (`(a, b) IN (…)`). The path with the most equalities wins; a unique key that is given whole beats
//! everything; without any the clustered index is scanned, or a secondary index that has all needed columns.
//! Index hints limit the choice.
//!
//! A key on the first characters of a column takes part with these alone: it is the last of the path, and its
//! conjunct is always checked.
//!
//! A conjunct that the path covers is not evaluated again, unless a key value could not be turned into the
//! column's storage form exactly (see `exec::keys`): then the range is widened and all conjuncts are checked.

// The fields of variants say by their names what they are.
#![allow(missing_docs)]

use std::sync::Arc;

use untorn::Table;
use untorn::engine::ScanIndex;
use untorn::schema::{KeyDef, KeyKind};
use untorn::types::ColumnType;

use super::aggregate::AggregateKind;
use super::{Condition, Planner, SelectPlan};
use crate::ast::{BinaryOperator, HintKind};
use crate::expr::{Expr, ValueSet};
use crate::value::{Value, collation};

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
        }
    }

    /// What it gains over reading everything: the more, the earlier it stands in a join.
    pub fn rank(&self) -> u32 {
        self.equal.len() as u32 * 10 + u32::from(!self.last.is_empty()) * 5 + u32::from(self.unique) * 1000
    }

    /// Whether it reads the whole index.
    pub fn is_full_scan(&self) -> bool {
        self.equal.is_empty() && self.last.is_empty()
    }
}

/// What is known when a path is chosen.
pub struct Question<'q> {
    /// Who asks.
    pub planner: &'q Planner<'q>,
    /// The table.
    pub table: &'q Table,
    /// Its number among the sources.
    pub source: u16,
    /// The conjuncts.
    pub conjuncts: &'q [Condition],
    /// Sources whose rows are at hand.
    pub bound: &'q [u16],
    /// Columns that the query needs of this source.
    pub needed: &'q [u16],
    /// Hints.
    pub hints: &'q [(HintKind, Vec<String>)],
}

/// An index with its key columns.
pub struct IndexColumns<'t> {
    /// Which.
    pub index: ScanIndex,
    /// Its definition; `None` for a hidden clustered index.
    pub key: Option<&'t KeyDef>,
}

/// The indexes of a table, the clustered one first.
pub fn indexes(table: &Table) -> Vec<IndexColumns<'_>> {
    let clustered = IndexColumns { index: ScanIndex::Clustered, key: table.def.clustered_key() };
    let secondary = table.def.secondary_keys().iter().enumerate();
    let mut all = vec![clustered];
    all.extend(secondary.map(|(n, key)| IndexColumns { index: ScanIndex::Secondary(n), key: Some(key) }));
    all
}

/// Whether the index holds all of `needed` in full.
pub fn covers(table: &Table, index: ScanIndex, needed: &[u16]) -> bool {
    let ScanIndex::Secondary(n) = index else { return true };
    let Some(secondary) = table.rows.secondaries.get(n) else { return false };
    needed.iter().all(|column| {
        secondary.columns.iter().any(|field| field.column == *column && field.prefix_bytes.is_none())
    })
}

impl Question<'_> {
    /// The path over one index, with its score.
    fn path(&self, index: &IndexColumns<'_>) -> (Path, u32) {
        let mut path = Path { index: index.index, ..Path::everything() };
        path.covering = index.index != ScanIndex::Clustered && covers(self.table, index.index, self.needed);
        let Some(key) = index.key else { return (path, 0) };
        for (at, part) in key.parts.iter().enumerate() {
            let of = self.said_of(part);
            if let Some((number, one)) = of.equal {
                path.columns.push(part.column);
                path.consumed.extend(number);
                path.equal.push(one);
                continue;
            }
            if let Some(rows) = self.rows_of(&key.parts[at..]) {
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
        let mut allowed = true;
        let mut chosen = None;
        for (kind, names) in self.hints {
            match kind {
                HintKind::Ignore => allowed &= !named(names),
                HintKind::Use | HintKind::Force => chosen = Some(chosen.unwrap_or(false) || named(names)),
            }
        }
        allowed && chosen.unwrap_or(true)
    }

    /// The best path.
    pub fn answer(&self) -> Path {
        let mut best: Option<(Path, u32)> = None;
        for index in indexes(self.table).iter().filter(|index| self.allowed(index)) {
            let (path, mut score) = self.path(index);
            // A covering secondary index is smaller than the table.
            if score == 0 && path.covering {
                score = 1;
            }
            if score == 0 && self.hints.iter().any(|(kind, _)| *kind == HintKind::Force) {
                score = 1;
            }
            if best.as_ref().is_none_or(|(_, found)| score > *found) && score > 0 {
                best = Some((path, score));
            }
        }
        best.map_or_else(Path::everything, |(path, _)| path)
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

/// Whether an equality will be a key when it is executed. One that turns out not to be (a number beside a
/// text, a text under another collation) reads the whole index and checks each row: then rows do not come in
/// the order of what stands behind it.
fn has_key_for_certain(kind: &ColumnType, one: &Alternative) -> bool {
    let Alternative::Equal(value) = one else { return true };
    match value {
        Expr::Literal(Value::Text(_, of_value)) if kind.is_string() => {
            let rule = kind.collation();
            let common = collation::common(rule, *of_value);
            common == rule || collation::is_finest(common, rule.pads())
        }
        Expr::Literal(value) if kind.integer().is_some() => {
            !value.is_temporal() && !matches!(value, Value::Float(_) | Value::Double(_))
        }
        _ => !kind.is_string(),
    }
}

/// Whether rows come in the wanted order: `Some(backward)`.
pub fn order_of(table: &Table, source: u16, path: &Path, order: &[(Expr, bool)]) -> Option<bool> {
    let key = match path.index {
        ScanIndex::Clustered => table.def.clustered_key()?,
        ScanIndex::Secondary(n) => table.def.secondary_keys().get(n)?,
    };
    let mut columns: Vec<u16> = Vec::new();
    for part in &key.parts {
        if part.prefix_chars.is_some() {
            break;
        }
        columns.push(part.column);
    }
    if columns.len() == key.parts.len() && path.index != ScanIndex::Clustered {
        columns.extend(table.def.clustered_key().iter().flat_map(|key| &key.parts).map(|part| part.column));
    }
    let backward = order.first()?.1;
    let fixed = path.equal.len();
    let mut equal = path.equal.iter().zip(&columns);
    if !equal.all(|(one, column)| has_key_for_certain(&table.def.columns[usize::from(*column)].kind, one)) {
        return None;
    }
    let single = path.last.len() <= 1 && !matches!(path.last[..], [Alternative::AnyOf(_)]);
    let mut at = fixed;
    for (expr, descending) in order {
        let Expr::Column { source: s, column } = expr else { return None };
        if *s != source || *descending != backward {
            return None;
        }
        if columns[..fixed.min(columns.len())].contains(column) {
            continue;
        }
        if columns.get(at) != Some(column) {
            return None;
        }
        // Several ranges follow each other in the order of their column; what is behind it starts over in
        // each.
        if at > fixed && !single {
            return None;
        }
        at += 1;
    }
    Some(backward)
}

/// Drops the sort if an index gives the order.
pub(super) fn use_index_order(plan: &mut SelectPlan) {
    let single = plan.steps.len() == 1 && plan.grouping.is_none() && plan.unions.is_empty();
    if !single || plan.order.is_empty() {
        return;
    }
    let source = plan.steps[0].source;
    let Some(table) = plan.sources[source].engine_table().map(Arc::clone) else { return };
    if let Some(backward) = order_of(&table, source as u16, &plan.steps[0].path, &plan.order) {
        plan.steps[0].path.backward = backward;
        plan.order.clear();
        return;
    }
    // With a LIMIT, a full scan may as well follow the index that gives the order.
    if plan.limit.is_some() && plan.steps[0].path.is_full_scan() {
        for index in indexes(&table) {
            let covering = covers(&table, index.index, &plan.needed[source]);
            let path = Path { index: index.index, covering, ..Path::everything() };
            if let Some(backward) = order_of(&table, source as u16, &path, &plan.order) {
                plan.steps[0].path = Path { backward, ..path };
                plan.order.clear();
                return;
            }
        }
    }
}

/// MIN or MAX of a column by the first row of an index that has it behind columns with one value.
pub(super) fn use_index_end(plan: &mut SelectPlan) {
    let [step] = &plan.steps[..] else { return };
    let Some(grouping) = plan.grouping.as_ref().filter(|grouping| grouping.keys.is_empty()) else { return };
    let [aggregate] = &grouping.aggregates[..] else { return };
    let descending = match aggregate.kind {
        AggregateKind::Min => false,
        AggregateKind::Max => true,
        _ => return,
    };
    let [argument @ Expr::Column { column, .. }] = &aggregate.arguments[..] else { return };
    let Some(table) = plan.sources[step.source].engine_table().map(Arc::clone) else { return };
    let Some(def) = table.def.columns.get(usize::from(*column)) else { return };
    // Their names are compared, and their numbers are what an index is sorted by.
    if matches!(def.kind, ColumnType::Enum { .. } | ColumnType::Set { .. }) {
        return;
    }
    let source = step.source as u16;
    let wanted = [(argument.clone(), descending)];
    let mut paths = vec![step.path.clone()];
    // Without conditions any index will do; with one that no range expresses, its first row may be far.
    if step.path.is_full_scan() && step.filter.is_empty() {
        paths.extend(indexes(&table).iter().map(|index| Path {
            index: index.index,
            covering: index.index != ScanIndex::Clustered
                && covers(&table, index.index, &plan.needed[step.source]),
            ..Path::everything()
        }));
    }
    for mut path in paths {
        let Some(backward) = order_of(&table, source, &path, &wanted) else { continue };
        path.backward = backward;
        if path.last.is_empty() && !path.columns.contains(column) {
            // NULL, which comes first, is no value.
            path.columns.push(*column);
            path.last = vec![Alternative::Range { lower: None, upper: None }];
        }
        plan.steps[0].path = path;
        plan.first_value_decides = true;
        return;
    }
}
