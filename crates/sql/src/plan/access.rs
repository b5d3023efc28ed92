//! Which index a table is read by.
//!
//! The conditions of the query are a list of conjuncts. For each index the longest run of its columns with an
//! equality is taken, then one more column with ranges (`<`, BETWEEN, IN, an OR of such). The path with the
//! most equalities wins; a unique key that is given whole beats everything; without any the clustered index
//! is scanned, or a secondary index that has all needed columns. Index hints limit the choice.
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

use super::{Condition, Planner, SelectPlan};
use crate::ast::{BinaryOperator, HintKind};
use crate::expr::{Expr, ValueSet};
use crate::value::Value;

/// One side of a range: the value and whether it belongs to the range.
pub type End = (Expr, bool);

/// Constants that are not keys of a column as they are: more are looked for in every row instead. (MariaDB's
/// `optimizer_max_sel_args` is 16,000, MySQL's `range_optimizer_max_mem_size` about 36,000.)
const KEYS_MAX: usize = 65_536;

/// A value with more nodes than this is no key: it would be copied for each index.
const KEY_NODES_MAX: usize = 4096;

/// What a column may be.
#[derive(Clone, Debug)]
pub enum Alternative {
    /// Equal to a value.
    Equal(Expr),
    /// Equal to one of many constants.
    AnyOf(Arc<ValueSet>),
    /// NULL.
    Null,
    /// Between two ends.
    Range { lower: Option<End>, upper: Option<End> },
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
    /// What the next column may be; empty: anything.
    pub last: Vec<Alternative>,
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
    fn is_known(&self, expr: &Expr) -> bool {
        let mut nodes = 0;
        expr.visit(&mut |inner| {
            nodes += 1;
            nodes <= KEY_NODES_MAX
                && self.planner.walk()
                && match inner {
                    Expr::Column { source, .. } => self.bound.contains(source),
                    Expr::Aggregate(_) | Expr::Assign(..) => false,
                    Expr::Call(function, _) => !function.volatile,
                    _ => true,
                }
        })
    }

    fn is_column(&self, expr: &Expr, column: u16) -> bool {
        matches!(expr, Expr::Column { source, column: c } if *source == self.source && *c == column)
    }

    fn fits(&self, column: u16, value: &Expr) -> bool {
        let Some(def) = self.table.def.columns.get(usize::from(column)) else { return false };
        if matches!(
            def.kind,
            ColumnType::Float
                | ColumnType::Double
                | ColumnType::Bit { .. }
                | ColumnType::Set { .. }
                | ColumnType::Enum { .. }
        ) {
            return false;
        }
        // Text columns compared with numbers compare as doubles: the index order does not help.
        !(def.kind.is_string()
            && matches!(value, Expr::Literal(value) if value.is_number() || value.is_temporal()))
            && self.is_known(value)
    }

    /// Constants one by one, if they are not too many.
    fn each_of(&self, column: u16, constants: &ValueSet) -> Option<Vec<Alternative>> {
        if constants.values.len() > KEYS_MAX {
            return None;
        }
        let value = |value: &Value<'static>| {
            let value = Expr::Literal(value.clone());
            self.fits(column, &value).then_some(Alternative::Equal(value))
        };
        constants.values.iter().map(value).collect()
    }

    /// Whether constants are keys of the column as they are, in the order of its index.
    fn has_keys(&self, column: u16, constants: &ValueSet) -> bool {
        let Some(def) = self.table.def.columns.get(usize::from(column)) else { return false };
        match def.kind.integer() {
            Some(_) => constants.is_integers(),
            None => def.kind.is_string() && constants.is_texts_of(def.kind.collation()),
        }
    }

    /// What `expr` says of `column` alone, or `None` when it says more or something else.
    fn alternatives(&self, expr: &Expr, column: u16) -> Option<Vec<Alternative>> {
        use BinaryOperator::{Equal, Greater, GreaterEqual, Less, LessEqual, NullSafeEqual};
        if !self.planner.walk() {
            return None;
        }
        match expr {
            Expr::Compare(operator, left, right) => {
                let (operator, value) = if self.is_column(left, column) {
                    (*operator, right)
                } else if self.is_column(right, column) {
                    (mirrored(*operator), left)
                } else {
                    return None;
                };
                if !self.fits(column, value) {
                    return None;
                }
                let value = (**value).clone();
                Some(vec![match operator {
                    Equal => Alternative::Equal(value),
                    Less => Alternative::Range { lower: None, upper: Some((value, false)) },
                    LessEqual => Alternative::Range { lower: None, upper: Some((value, true)) },
                    Greater => Alternative::Range { lower: Some((value, false)), upper: None },
                    GreaterEqual => Alternative::Range { lower: Some((value, true)), upper: None },
                    NullSafeEqual => return None,
                    _ => return None,
                }])
            }
            Expr::Between { operand, low, high, negated: false }
                if self.is_column(operand, column) && self.fits(column, low) && self.fits(column, high) =>
            {
                let (lower, upper) = (Some(((**low).clone(), true)), Some(((**high).clone(), true)));
                Some(vec![Alternative::Range { lower, upper }])
            }
            Expr::InList { operand, list, negated: false }
                if self.is_column(operand, column) && list.iter().all(|item| self.fits(column, item)) =>
            {
                let equal = |item: &Expr| self.planner.walk().then(|| Alternative::Equal(item.clone()));
                list.iter().map(equal).collect()
            }
            Expr::InConstants { operand, constants, negated: false } if self.is_column(operand, column) => {
                if self.has_keys(column, constants) {
                    return Some(vec![Alternative::AnyOf(constants.clone())]);
                }
                self.each_of(column, constants)
            }
            Expr::IsNull(operand, false) if self.is_column(operand, column) => Some(vec![Alternative::Null]),
            Expr::Or(list) => {
                let mut all = Vec::new();
                for item in list {
                    for one in self.alternatives(item, column)? {
                        match one {
                            // Keys that are made while they are read are not sorted among others.
                            Alternative::AnyOf(constants) => all.extend(self.each_of(column, &constants)?),
                            one => all.push(one),
                        }
                    }
                }
                Some(all)
            }
            Expr::And(list) => {
                // Inside of an OR: `k >= 1 AND k < 5`.
                let mut merged: Option<Alternative> = None;
                for item in list {
                    let mut found = self.alternatives(item, column)?;
                    let only = found.pop().filter(|_| found.is_empty())?;
                    merged = Some(match merged {
                        None => only,
                        Some(other) => merge(other, only)?,
                    });
                }
                merged.map(|one| vec![one])
            }
            _ => None,
        }
    }

    /// The path over one index, with its score.
    fn path(&self, index: &IndexColumns<'_>) -> (Path, u32) {
        let mut path = Path { index: index.index, ..Path::everything() };
        path.covering = index.index != ScanIndex::Clustered && covers(self.table, index.index, self.needed);
        let Some(key) = index.key else { return (path, 0) };
        for part in &key.parts {
            if part.prefix_chars.is_some() {
                break;
            }
            let mut range: Option<Alternative> = None;
            let mut many: Option<(usize, Vec<Alternative>)> = None;
            let mut equal = None;
            let mut used = Vec::new();
            for (number, conjunct) in self.conjuncts.iter().enumerate() {
                let Some(mut found) = self.alternatives(conjunct, part.column) else { continue };
                match found.pop() {
                    Some(one @ (Alternative::Equal(_) | Alternative::Null)) if found.is_empty() => {
                        equal = Some((number, one));
                        break;
                    }
                    Some(one @ Alternative::AnyOf(_)) => many = Some((number, vec![one])),
                    Some(one) if found.is_empty() => match range.take() {
                        None => {
                            range = Some(one);
                            used.push(number);
                        }
                        Some(other) => match merge(other.clone(), one) {
                            Some(merged) => {
                                range = Some(merged);
                                used.push(number);
                            }
                            // A second limit of the same end stays a filter.
                            None => range = Some(other),
                        },
                    },
                    Some(last) => {
                        found.push(last);
                        many = Some((number, found));
                    }
                    None => {}
                }
            }
            path.columns.push(part.column);
            if let Some((number, one)) = equal {
                path.consumed.push(number);
                path.equal.push(one);
                continue;
            }
            if let Some((number, alternatives)) = many {
                path.last = alternatives;
                path.consumed.push(number);
            } else if let Some(range) = range {
                path.last = vec![range];
                path.consumed.extend(used);
            } else {
                path.columns.pop();
            }
            break;
        }
        let whole = path.equal.len() == key.parts.len();
        let no_nulls = path.equal.iter().all(|one| matches!(one, Alternative::Equal(_)));
        path.unique = whole && no_nulls && key.kind != KeyKind::Secondary;
        let mut score = path.equal.len() as u32 * 10;
        if !path.last.is_empty() {
            let is_point = |one: &Alternative| !matches!(one, Alternative::Range { .. });
            let points = path.last.iter().all(is_point);
            score += if points { 8 } else { 5 };
            if matches!(&path.last[..], [Alternative::Range { lower: Some(_), upper: Some(_) }]) {
                score += 1;
            }
        }
        if score > 0 {
            score += if path.covering { 2 } else { 0 };
            score += u32::from(index.index == ScanIndex::Clustered);
        }
        if path.unique {
            score += 1000;
        }
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

/// Both ranges at once; `None` when they limit the same end twice.
fn merge(left: Alternative, right: Alternative) -> Option<Alternative> {
    match (left, right) {
        (
            Alternative::Range { lower: Some(lower), upper: None },
            Alternative::Range { lower: None, upper: Some(upper) },
        )
        | (
            Alternative::Range { lower: None, upper: Some(upper) },
            Alternative::Range { lower: Some(lower), upper: None },
        ) => Some(Alternative::Range { lower: Some(lower), upper: Some(upper) }),
        _ => None,
    }
}

fn mirrored(operator: BinaryOperator) -> BinaryOperator {
    use BinaryOperator::*;
    match operator {
        Less => Greater,
        LessEqual => GreaterEqual,
        Greater => Less,
        GreaterEqual => LessEqual,
        other => other,
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
