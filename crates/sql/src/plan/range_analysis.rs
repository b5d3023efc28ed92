//! Range analysis: the values and ranges of an index's columns that the conditions of a query imply.
//!
//! A condition may be nothing but values and ranges of one column (`a IN (1, 5)`): a path over them need not
//! check it again. Or it implies them and says more (`(a = 1 AND x > 2) OR a = 3` implies that `a` is 1 or
//! 3): it limits the range, and is checked on each row.

use untorn::schema::KeyPart;
use untorn::types::ColumnType;

use super::access_path::{Alternative, PathChooser};
use crate::ast::BinaryOperator;
use crate::expr::{Expr, ValueSet};
use crate::value::Value;
use crate::value::collation::has_one_weight_each;

/// Constants that are not keys of a column as they are: more are looked for in every row instead. (MariaDB's
/// `optimizer_max_sel_args` is 16,000, MySQL's `range_optimizer_max_mem_size` about 36,000.)
const KEYS_MAX: usize = 65_536;

/// Rows of values, likewise: their keys are sorted in one go.
const ROWS_MAX: usize = 4096;

/// A value with more nodes than this is no key: it would be copied for each index.
const KEY_NODES_MAX: usize = 4096;

/// Whether the index of a column leaves out the spaces at the end, which its values are compared by.
fn is_trimmed(kind: &ColumnType) -> bool {
    matches!(kind, ColumnType::Char { collation, .. } if !collation.pads())
}

/// What a condition implies for one column.
pub(super) struct ImpliedRange {
    /// One of these.
    alternatives: Vec<Alternative>,
    /// It says no more.
    whole: bool,
}

impl ImpliedRange {
    fn one(alternative: Alternative) -> ImpliedRange {
        ImpliedRange { alternatives: vec![alternative], whole: true }
    }
}

/// What all conditions together imply for a column.
#[derive(Default)]
pub(super) struct ColumnRange {
    /// It has one value; with the condition that says so and nothing else.
    pub(super) equal: Option<(Option<usize>, Alternative)>,
    /// Otherwise what it may be.
    pub(super) last: Vec<Alternative>,
    /// The conditions that are expressed by that.
    pub(super) consumed: Vec<usize>,
}

/// Values that a condition gives several columns together.
pub(super) struct RowValues {
    /// How many columns.
    pub(super) columns: usize,
    /// One value for each in each row.
    pub(super) rows: Vec<Vec<Expr>>,
    /// The condition, when it says no more.
    pub(super) consumed: Option<usize>,
}

/// What a value is compared for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum For {
    Equality,
    Order,
}

impl PathChooser<'_> {
    fn is_known(&self, expr: &Expr) -> bool {
        let mut nodes = 0;
        expr.visit(&mut |inner| {
            nodes += 1;
            nodes <= KEY_NODES_MAX
                && self.planner.walk()
                && match inner {
                    Expr::Column { source, .. } => self.bound.contains(source),
                    Expr::Aggregate(_) | Expr::Assign(..) | Expr::Random { .. } => false,
                    Expr::Call(function, _) => !function.volatile,
                    _ => true,
                }
        })
    }

    fn is_column(&self, expr: &Expr, column: u16) -> bool {
        matches!(expr, Expr::Column { source, column: c } if *source == self.source && *c == column)
    }

    fn fits(&self, column: u16, value: &Expr, wanted: For) -> bool {
        let Some(def) = self.table.def.columns.get(usize::from(column)) else { return false };
        match def.kind {
            ColumnType::Float | ColumnType::Double | ColumnType::Bit { .. } => return false,
            // An index has them in the order of their numbers, a comparison in that of their names.
            ColumnType::Set { .. } | ColumnType::Enum { .. } if wanted == For::Order => return false,
            _ => {}
        }
        let named = matches!(def.kind, ColumnType::Set { .. } | ColumnType::Enum { .. });
        // Text compared with numbers is compared as doubles: the index order does not help.
        !((def.kind.is_string() || named)
            && matches!(value, Expr::Literal(value) if value.is_number() || value.is_temporal()))
            && !matches!(value, Expr::Row(_))
            && self.is_known(value)
    }

    /// Constants one by one, if they are not too many.
    fn each_of(&self, column: u16, constants: &ValueSet) -> Option<Vec<Alternative>> {
        if constants.values.len() > KEYS_MAX {
            return None;
        }
        let value = |value: &Value<'static>| {
            let value = Expr::Literal(value.clone());
            self.fits(column, &value, For::Equality).then_some(Alternative::Equal(value))
        };
        constants.values.iter().map(value).collect()
    }

    /// Whether constants are keys of the column as they are, in the order of its index.
    fn has_keys(&self, column: u16, constants: &ValueSet) -> bool {
        let Some(def) = self.table.def.columns.get(usize::from(column)) else { return false };
        match def.kind.integer() {
            Some(_) => constants.is_integers(),
            // Keys of such a CHAR lack the spaces at the end that its values are compared by.
            None if is_trimmed(&def.kind) => false,
            None => def.kind.is_string() && constants.is_texts_of(def.kind.collation()),
        }
    }

    /// A comparison of the column with something known.
    fn comparison(
        &self,
        operator: BinaryOperator,
        left: &Expr,
        right: &Expr,
        column: u16,
    ) -> Option<Alternative> {
        use BinaryOperator::{Equal, Greater, GreaterEqual, Less, LessEqual};
        let (operator, value) = if self.is_column(left, column) {
            (operator, right)
        } else if self.is_column(right, column) {
            (mirrored(operator), left)
        } else {
            return None;
        };
        let wanted = if operator == Equal { For::Equality } else { For::Order };
        if !matches!(operator, Equal | Less | LessEqual | Greater | GreaterEqual)
            || !self.fits(column, value, wanted)
        {
            return None;
        }
        let value = value.clone();
        Some(match operator {
            Less => Alternative::Range { lower: None, upper: Some((value, false)) },
            LessEqual => Alternative::Range { lower: None, upper: Some((value, true)) },
            Greater => Alternative::Range { lower: Some((value, false)), upper: None },
            GreaterEqual => Alternative::Range { lower: Some((value, true)), upper: None },
            _ => Alternative::Equal(value),
        })
    }

    /// What `expr` says of `column`, or `None` when it says nothing.
    fn implied_range(&self, expr: &Expr, column: u16) -> Option<ImpliedRange> {
        if !self.planner.walk() {
            return None;
        }
        match expr {
            Expr::Compare(operator, left, right) => {
                self.comparison(*operator, left, right, column).map(ImpliedRange::one)
            }
            Expr::Between { operand, low, high, negated: false }
                if self.is_column(operand, column)
                    && self.fits(column, low, For::Order)
                    && self.fits(column, high, For::Order) =>
            {
                let (lower, upper) = (Some(((**low).clone(), true)), Some(((**high).clone(), true)));
                Some(ImpliedRange::one(Alternative::Range { lower, upper }))
            }
            Expr::InList { operand, list, negated: false } => self.range_of_list(operand, list, column),
            Expr::InConstants { operand, constants, negated: false } if self.is_column(operand, column) => {
                if self.has_keys(column, constants) {
                    return Some(ImpliedRange::one(Alternative::AnyOf(constants.clone())));
                }
                Some(ImpliedRange { alternatives: self.each_of(column, constants)?, whole: true })
            }
            Expr::Like { operand, pattern, escape, negated: false } => {
                let def = self.table.def.columns.get(usize::from(column))?;
                let usable = self.is_column(operand, column)
                    && def.kind.is_string()
                    && has_one_weight_each(def.kind.collation())
                    && self.is_known(pattern)
                    && self.is_known(escape);
                usable.then(|| {
                    let (pattern, escape) = ((**pattern).clone(), (**escape).clone());
                    ImpliedRange { alternatives: vec![Alternative::Like { pattern, escape }], whole: false }
                })
            }
            Expr::IsNull(operand, false) if self.is_column(operand, column) => {
                Some(ImpliedRange::one(Alternative::Null))
            }
            Expr::Or(list) => self.range_of_any(list, column),
            Expr::And(list) => self.range_of_all(list, column),
            _ => None,
        }
    }

    /// `column IN (list)`, `(column, …) IN (list of rows)`.
    fn range_of_list(&self, operand: &Expr, list: &[Expr], column: u16) -> Option<ImpliedRange> {
        let place = match operand {
            Expr::Row(row) => Some(row.iter().position(|item| self.is_column(item, column))?),
            operand if self.is_column(operand, column) => None,
            _ => return None,
        };
        let mut alternatives = Vec::with_capacity(list.len());
        for item in list {
            let value = match (place, item) {
                (None, item) => item,
                (Some(place), Expr::Row(row)) => row.get(place)?,
                _ => return None,
            };
            if !self.planner.walk() || !self.fits(column, value, For::Equality) {
                return None;
            }
            alternatives.push(Alternative::Equal(value.clone()));
        }
        Some(ImpliedRange { alternatives, whole: place.is_none() })
    }

    /// Each of them implies something, or nothing is implied.
    fn range_of_any(&self, list: &[Expr], column: u16) -> Option<ImpliedRange> {
        let mut all = ImpliedRange { alternatives: Vec::new(), whole: true };
        for item in list {
            let implied = self.implied_range(item, column)?;
            all.whole &= implied.whole;
            for one in implied.alternatives {
                match one {
                    // Keys that are made while they are read are not sorted among others.
                    Alternative::AnyOf(constants) => {
                        all.alternatives.extend(self.each_of(column, &constants)?);
                    }
                    one => all.alternatives.push(one),
                }
            }
        }
        Some(all)
    }

    /// Inside an OR: `k >= 1 AND k < 5`. What does not speak of the column is checked on each row.
    fn range_of_all(&self, list: &[Expr], column: u16) -> Option<ImpliedRange> {
        let mut merged: Option<ImpliedRange> = None;
        let mut whole = true;
        for item in list {
            let Some(implied) = self.implied_range(item, column) else {
                whole = false;
                continue;
            };
            whole &= implied.whole;
            merged = Some(match merged {
                None => implied,
                Some(before) => match both(&before.alternatives, &implied.alternatives) {
                    Some(one) => ImpliedRange::one(one),
                    None => {
                        whole = false;
                        // One value is better than a range, and few are better than many.
                        let better = matches!(implied.alternatives[..], [Alternative::Equal(_)])
                            || (before.alternatives.len() > 1 && implied.alternatives.len() == 1);
                        if better { implied } else { before }
                    }
                },
            });
        }
        merged.map(|implied| ImpliedRange { whole, ..implied })
    }

    /// What all conjuncts say of a part of a key.
    pub(super) fn column_range(&self, part: &KeyPart) -> ColumnRange {
        let mut of = ColumnRange::default();
        // Texts that are equal in another order need not begin with the same characters.
        let column = self.table.def.columns.get(usize::from(part.column));
        let in_order = |kind: &ColumnType| has_one_weight_each(kind.collation()) && !is_trimmed(kind);
        if part.prefix_chars.is_some() && column.is_none_or(|column| !in_order(&column.kind)) {
            return of;
        }
        let mut range: Option<Alternative> = None;
        let mut in_range = Vec::new();
        for (number, conjunct) in self.conjuncts.iter().enumerate() {
            let Some(ImpliedRange { mut alternatives, whole }) = self.implied_range(conjunct, part.column)
            else {
                continue;
            };
            let number = (whole && part.prefix_chars.is_none()).then_some(number);
            if alternatives.len() != 1 {
                if !alternatives.is_empty() {
                    (of.last, of.consumed) = (alternatives, number.into_iter().collect());
                }
                continue;
            }
            let Some(one) = alternatives.pop() else { continue };
            match one {
                Alternative::Equal(_) | Alternative::Null if part.prefix_chars.is_some() => {
                    return ColumnRange { last: vec![one], ..ColumnRange::default() };
                }
                Alternative::Equal(_) | Alternative::Null => {
                    return ColumnRange { equal: Some((number, one)), ..ColumnRange::default() };
                }
                Alternative::AnyOf(constants) => {
                    let many = match part.prefix_chars {
                        None => Some(vec![Alternative::AnyOf(constants)]),
                        Some(_) => self.each_of(part.column, &constants),
                    };
                    if let Some(many) = many {
                        (of.last, of.consumed) = (many, number.into_iter().collect());
                    }
                }
                one => {
                    range = Some(match range.take() {
                        None => {
                            in_range.extend(number);
                            one
                        }
                        Some(other) => match merge(&other, &one) {
                            Some(merged) => {
                                in_range.extend(number);
                                merged
                            }
                            // A second limit of the same end stays a filter.
                            None => other,
                        },
                    });
                }
            }
        }
        if of.last.is_empty()
            && let Some(range) = range
        {
            (of.last, of.consumed) = (vec![range], in_range);
        }
        of
    }

    /// The rows of values that one conjunct gives the most of these parts of a key; two at least.
    pub(super) fn row_values(&self, parts: &[KeyPart]) -> Option<RowValues> {
        let whole_columns = parts.iter().take_while(|part| part.prefix_chars.is_none());
        let columns: Vec<u16> = whole_columns.map(|part| part.column).collect();
        if columns.len() < 2 {
            return None;
        }
        let mut best: Option<RowValues> = None;
        for (number, conjunct) in self.conjuncts.iter().enumerate() {
            let Some((rows, whole)) = self.rows(conjunct, &columns) else { continue };
            let given = rows.first().map_or(0, Vec::len);
            if best.as_ref().is_none_or(|best| given > best.columns) {
                best = Some(RowValues { columns: given, rows, consumed: whole.then_some(number) });
            }
        }
        best
    }

    /// Rows of values for the first two of `columns` or more, and whether `expr` says no more.
    fn rows(&self, expr: &Expr, columns: &[u16]) -> Option<(Vec<Vec<Expr>>, bool)> {
        let branches: Vec<Vec<(&Expr, &Expr)>> = match expr {
            Expr::InList { operand, list, negated: false } if list.len() <= ROWS_MAX => {
                let Expr::Row(operand) = &**operand else { return None };
                let mut branches = Vec::with_capacity(list.len());
                for item in list {
                    match item {
                        Expr::Row(row) if row.len() == operand.len() => {
                            branches.push(operand.iter().zip(row).collect());
                        }
                        _ => return None,
                    }
                }
                branches
            }
            Expr::Or(list) if list.len() <= ROWS_MAX => list.iter().map(equalities).collect::<Option<_>>()?,
            _ => return None,
        };
        let mut rows: Vec<Vec<Expr>> = Vec::with_capacity(branches.len());
        let mut given = columns.len();
        let mut whole = true;
        for pairs in branches {
            let mut row = Vec::with_capacity(given);
            for column in &columns[..given] {
                if !self.planner.walk() {
                    return None;
                }
                let value = pairs.iter().find_map(|(left, right)| {
                    let value = match (self.is_column(left, *column), self.is_column(right, *column)) {
                        (true, _) => right,
                        (_, true) => left,
                        _ => return None,
                    };
                    self.fits(*column, value, For::Equality).then_some(*value)
                });
                match value {
                    Some(value) => row.push(value.clone()),
                    None => break,
                }
            }
            given = given.min(row.len());
            if given < 2 {
                return None;
            }
            whole &= pairs.len() == row.len();
            rows.push(row);
        }
        whole &= rows.iter().all(|row| row.len() == given);
        rows.iter_mut().for_each(|row| row.truncate(given));
        (!rows.is_empty()).then_some((rows, whole))
    }
}

/// The sides of the equalities of a branch of an OR; `None` when there is one at most. What is no equality
/// has itself on both sides, so that nothing is found in it.
fn equalities(branch: &Expr) -> Option<Vec<(&Expr, &Expr)>> {
    let mut pairs = Vec::new();
    let list = match branch {
        Expr::And(list) => list.as_slice(),
        other => std::slice::from_ref(other),
    };
    for item in list {
        match item {
            Expr::Compare(BinaryOperator::Equal, left, right) => match (&**left, &**right) {
                (Expr::Row(left), Expr::Row(right)) if left.len() == right.len() => {
                    pairs.extend(left.iter().zip(right));
                }
                (left, right) => pairs.push((left, right)),
            },
            other => pairs.push((other, other)),
        }
    }
    (pairs.len() > 1).then_some(pairs)
}

/// Two conditions on the same column as one.
fn both(left: &[Alternative], right: &[Alternative]) -> Option<Alternative> {
    match (left, right) {
        ([left], [right]) => merge(left, right),
        _ => None,
    }
}

/// Both ranges at once; `None` when they limit the same end twice.
fn merge(left: &Alternative, right: &Alternative) -> Option<Alternative> {
    match (left, right) {
        (
            Alternative::Range { lower: Some(lower), upper: None },
            Alternative::Range { lower: None, upper: Some(upper) },
        )
        | (
            Alternative::Range { lower: None, upper: Some(upper) },
            Alternative::Range { lower: Some(lower), upper: None },
        ) => Some(Alternative::Range { lower: Some(lower.clone()), upper: Some(upper.clone()) }),
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
