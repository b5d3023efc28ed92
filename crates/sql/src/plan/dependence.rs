//! Which columns of a query's rows depend on others: equal values of those go with equal values of them.
//!
//! A unique key without NULLs determines its table, what a column is equal to determines it, the columns that
//! a generated one is computed from determine that, and what a derived table is grouped by determines its
//! rows. On the inner side of an outer join ON says what the outer side determines there, and not the other
//! way round, unless WHERE throws the rows of NULLs away.
//!
//! ONLY_FULL_GROUP_BY (`full_group.rs`) refuses what is not found to depend. So in doubt a column does: MySQL
//! looks at some of these rules more closely, and refuses a few statements more.

use std::collections::HashSet;

use untorn::schema::{KeyKind, TableDef};

use super::outer_join::OuterJoin;
use super::source::{Source, SourceKind};
use super::{Condition, Planner, SelectPlan};
use crate::ast::BinaryOperator;
use crate::expr::{Expr, NODE_BYTES};
use crate::result::SqlError;

/// Derived tables further inside are not looked into: all their columns count as dependent.
const DEPTH_MAX: usize = 3;

/// Source and number of a column.
pub(super) type ColumnNumber = (u16, u16);

/// The rows of a query before they are grouped.
pub(super) struct Rows<'r> {
    pub(super) sources: &'r [Source],
    /// Conditions that all rows meet.
    pub(super) conjuncts: &'r [Condition],
    pub(super) outer: &'r [OuterJoin],
    /// Columns that are NULL in none of them, as the query around says.
    pub(super) not_null: HashSet<ColumnNumber>,
}

/// An equality of two columns, or of a column with a value that is the same for all rows.
struct Equality {
    column: ColumnNumber,
    other: Option<ColumnNumber>,
    /// Of ON: the outer join. It says nothing of the outer side.
    join: Option<usize>,
}

/// What has been found.
#[derive(Default)]
pub(super) struct Dependent {
    columns: HashSet<ColumnNumber>,
    /// Sources of which all columns are, a bit for each.
    whole: u64,
}

impl Dependent {
    pub(super) fn has(&self, column: ColumnNumber) -> bool {
        self.whole & 1 << column.0 != 0 || self.columns.contains(&column)
    }

    /// How much it is: it only grows.
    fn size(&self) -> (u32, usize) {
        (self.whole.count_ones(), self.columns.len())
    }
}

/// The column that an expression is, however it is compared.
fn column_of(expr: &Expr) -> Option<ColumnNumber> {
    match expr {
        Expr::Column { source, column } => Some((*source, *column)),
        Expr::Shared(inner) => column_of(inner),
        Expr::Cast(inner, _) | Expr::Collate(inner, _) | Expr::MemberNumber(inner, _) => column_of(inner),
        _ => None,
    }
}

impl Planner<'_> {
    /// The columns that depend on those `known`, of a query that is that many derived tables inside.
    pub(super) fn dependent(
        &self,
        rows: &Rows<'_>,
        known: HashSet<ColumnNumber>,
        depth: usize,
    ) -> Result<Dependent, SqlError> {
        let mut found = Dependent { columns: known, whole: 0 };
        // How many columns of each source were known when it was looked at: it says no more of as many.
        let mut looked_at: Vec<Option<usize>> = vec![None; rows.sources.len()];
        // ON says so of its side only where the row is none of NULLs: then all columns there are NULL.
        let conditions = rows.conjuncts.iter().chain(rows.outer.iter().flat_map(|join| &join.on));
        let mut not_null = self.columns_not_null(conditions)?;
        not_null.extend(&rows.not_null);
        let equalities = self.equalities(rows)?;
        let reads = self.columns_of_joins(rows)?;
        loop {
            let before = found.size();
            // All that they say, before sources are asked: each may be a query with sources of its own.
            self.close_over(&equalities, rows, &reads, &mut found)?;
            for (at, source) in rows.sources.iter().enumerate() {
                let at = at as u16;
                let known = |found: &Dependent| found.columns.iter().filter(|(of, _)| *of == at).count();
                let looked_at = &mut looked_at[usize::from(at)];
                self.work(NODE_BYTES)?;
                if found.whole & 1 << at == 0 && *looked_at != Some(known(&found)) {
                    self.within_source(at, source, &not_null, &mut found, depth)?;
                    *looked_at = Some(known(&found));
                }
            }
            if found.size() == before {
                return Ok(found);
            }
        }
    }

    /// Adds the columns that equalities lead to.
    fn close_over(
        &self,
        equalities: &[Equality],
        rows: &Rows<'_>,
        reads: &[Vec<ColumnNumber>],
        found: &mut Dependent,
    ) -> Result<(), SqlError> {
        loop {
            let before = found.size();
            for equality in equalities {
                self.work(NODE_BYTES)?;
                let join = equality.join.map(|at| (&rows.outer[at], &reads[at]));
                let may = |column: ColumnNumber| {
                    join.is_none_or(|(join, _)| (join.first..=join.last).contains(&usize::from(column.0)))
                };
                // In a row of NULLs two columns of the inner side are equal, too.
                let always = equality.other.is_some_and(|other| may(other) && may(equality.column));
                let matches = join.is_none_or(|(_, reads)| reads.iter().all(|column| found.has(*column)));
                if !always && !matches {
                    continue;
                }
                match equality.other {
                    None if may(equality.column) => drop(found.columns.insert(equality.column)),
                    None => {}
                    Some(other) => {
                        for (from, to) in [(equality.column, other), (other, equality.column)] {
                            if found.has(from) && may(to) {
                                found.columns.insert(to);
                            }
                        }
                    }
                }
            }
            if found.size() == before {
                return Ok(());
            }
        }
    }

    /// Adds the columns of one source that depend on others of it.
    fn within_source(
        &self,
        at: u16,
        source: &Source,
        not_null: &HashSet<ColumnNumber>,
        found: &mut Dependent,
        depth: usize,
    ) -> Result<(), SqlError> {
        match &source.kind {
            SourceKind::Table(table) => {
                let def = &table.0.def;
                if determines(at, def, not_null, found) {
                    found.whole |= 1 << at;
                    return Ok(());
                }
                self.generated_columns(at, def, found)
            }
            SourceKind::Derived(plan) if depth < DEPTH_MAX => {
                let known: Vec<usize> =
                    (0..plan.items.len()).filter(|item| found.has((at, *item as u16))).collect();
                let of_source = not_null.iter().filter(|(of, _)| *of == at);
                let not_null: Vec<usize> = of_source.map(|(_, item)| usize::from(*item)).collect();
                let more = self.dependent_items(plan, &known, &not_null, depth + 1)?;
                found.columns.extend(more.into_iter().map(|item| (at, item as u16)));
                Ok(())
            }
            // Nothing says that a row of a document is there once.
            SourceKind::JsonTable(_) => Ok(()),
            // Their tables have keys of which nothing is known here.
            SourceKind::View(_)
            | SourceKind::Definition(_)
            | SourceKind::Given(_)
            | SourceKind::Recursion(_)
            | SourceKind::Derived(_) => {
                found.whole |= 1 << at;
                Ok(())
            }
        }
    }

    fn generated_columns(&self, at: u16, def: &TableDef, found: &mut Dependent) -> Result<(), SqlError> {
        let visible = def.visible_columns();
        for (number, column) in visible.iter().enumerate() {
            let Some(text) = &column.generated else { continue };
            self.work(text.len() + NODE_BYTES)?;
            let text = text.to_lowercase();
            let mut others = visible.iter().enumerate().filter(|(other, _)| *other != number);
            if others.all(|(other, column)| {
                found.has((at, other as u16)) || !has_word(&text, &column.name.to_lowercase())
            }) {
                found.columns.insert((at, number as u16));
            }
        }
        Ok(())
    }

    /// The items of a derived table that depend on those `known`.
    fn dependent_items(
        &self,
        plan: &SelectPlan,
        known: &[usize],
        not_null: &[usize],
        depth: usize,
    ) -> Result<Vec<usize>, SqlError> {
        if !plan.unions.is_empty() || plan.recursion.is_some() {
            return Ok(Vec::new());
        }
        let all = || (0..plan.items.len()).collect();
        if plan.windowed.is_some() {
            return Ok(all());
        }
        let finished: Vec<Condition>;
        let (conjuncts, outer) = match &plan.pending {
            Some(pending) => (&pending.conjuncts[..], &pending.outer[..]),
            None => {
                let of_steps = plan.steps.iter().flat_map(|step| &step.all_conditions);
                finished = plan.constant_conditions.iter().chain(of_steps).cloned().collect();
                (&finished[..], &[][..])
            }
        };
        let column = |item: &Expr| match item {
            Expr::Column { source, column } => Some((*source, *column)),
            _ => None,
        };
        // What is said of items that are no columns of the tables inside says nothing of those.
        let not_null = not_null.iter().filter_map(|at| column(plan.items.get(*at)?.unshared()));
        let rows = Rows { sources: &plan.sources, conjuncts, outer, not_null: not_null.collect() };
        let known_items: Vec<&Expr> = known.iter().map(|at| plan.items[*at].unshared()).collect();
        let columns = known_items.iter().filter_map(|item| column(item));
        let found = self.dependent(&rows, columns.collect(), depth)?;
        // LATERAL: it is another table for each row.
        let lateral = !plan.captures.is_empty();
        let has = |inner: &Expr| match inner {
            Expr::Column { source, column } => found.has((*source, *column)),
            Expr::Aggregate(_) | Expr::RolledUp { .. } => false,
            Expr::Outer(_) if lateral => false,
            _ => self.walk(),
        };
        let is_known = |expr: &Expr| {
            let expr = expr.unshared();
            let of_subquery = |number: u16| {
                let subquery = plan.subqueries.get(usize::from(number));
                subquery.is_some_and(|plan| plan.captures.iter().all(|capture| capture.visit(&mut { has })))
            };
            let mut known = true;
            expr.visit_subqueries(&mut |number| known &= of_subquery(number));
            known_items.contains(&expr) || (known && expr.visit(&mut { has }))
        };
        let by_group = |keys: &[Expr]| !(lateral && keys.is_empty()) && keys.iter().all(is_known);
        let found = match &plan.grouping {
            Some(grouping) if !grouping.rollup && by_group(&grouping.keys) => all(),
            _ => (0..plan.items.len()).filter(|at| is_known(&plan.items[*at])).collect(),
        };
        self.outcome()?;
        Ok(found)
    }

    /// Columns that are NULL in no row that meets the conditions, and some of which that is not known.
    fn columns_not_null<'c>(
        &self,
        conditions: impl Iterator<Item = &'c Condition>,
    ) -> Result<HashSet<ColumnNumber>, SqlError> {
        let mut found = HashSet::new();
        for condition in conditions {
            // Who is to know what functions make of NULL: in doubt they throw it away.
            let rejects = !matches!(
                &**condition,
                Expr::IsNull(_, false) | Expr::Compare(BinaryOperator::NullSafeEqual, ..)
            );
            if rejects {
                condition.visit(&mut |inner| {
                    if let Expr::Column { source, column } = inner {
                        found.insert((*source, *column));
                    }
                    self.walk()
                });
            }
        }
        self.outcome()?;
        Ok(found)
    }

    fn equalities(&self, rows: &Rows<'_>) -> Result<Vec<Equality>, SqlError> {
        let mut found = Vec::new();
        for condition in rows.conjuncts {
            found.extend(self.equality(condition, None)?);
        }
        if rows.outer.is_empty() {
            return Ok(found);
        }
        let mut of_where = self.columns_not_null(rows.conjuncts.iter())?;
        of_where.extend(&rows.not_null);
        let mut of_joins = Vec::with_capacity(rows.outer.len());
        for join in rows.outer {
            of_joins.push(self.columns_not_null(join.on.iter())?);
        }
        for (at, join) in rows.outer.iter().enumerate() {
            let home = home(at, rows.outer, &of_where, &of_joins);
            for condition in &join.on {
                found.extend(self.equality(condition, home)?);
            }
        }
        Ok(found)
    }

    /// What a condition says to be equal.
    fn equality(&self, condition: &Expr, join: Option<usize>) -> Result<Option<Equality>, SqlError> {
        self.work(NODE_BYTES)?;
        let (left, right) = match condition {
            Expr::Compare(BinaryOperator::Equal, left, right) => (&**left, &**right),
            Expr::Not(inner) => match &**inner {
                Expr::Compare(BinaryOperator::NotEqual, left, right) => (&**left, &**right),
                // `NOT flag`: it is 0.
                inner => {
                    return Ok(column_of(inner).map(|column| Equality { column, other: None, join }));
                }
            },
            Expr::Between { operand, low, high, negated: false } if low == high => (&**operand, &**low),
            Expr::InList { operand, list, negated: false } if list.len() == 1 => (&**operand, &list[0]),
            _ => return Ok(None),
        };
        Ok(match (column_of(left), column_of(right)) {
            (Some(column), Some(other)) => Some(Equality { column, other: Some(other), join }),
            (Some(column), None) if self.is_same_for_all(right)? => {
                Some(Equality { column, other: None, join })
            }
            (None, Some(column)) if self.is_same_for_all(left)? => {
                Some(Equality { column, other: None, join })
            }
            _ => None,
        })
    }

    /// Whether it has one value for all rows, and no subquery.
    fn is_same_for_all(&self, expr: &Expr) -> Result<bool, SqlError> {
        let same = expr.visit(&mut |inner| inner.may_be_constant() && !is_subquery(inner) && self.walk());
        self.outcome()?;
        Ok(same)
    }

    /// The columns of the outer side that ON of each outer join reads: which row of the inner side is joined
    /// depends on all of them.
    fn columns_of_joins(&self, rows: &Rows<'_>) -> Result<Vec<Vec<ColumnNumber>>, SqlError> {
        let mut found = Vec::with_capacity(rows.outer.len());
        for join in rows.outer {
            let mut reads = Vec::new();
            for condition in &join.on {
                condition.visit(&mut |inner| {
                    if let Expr::Column { source, column } = inner
                        && !(join.first..=join.last).contains(&usize::from(*source))
                        && !reads.contains(&(*source, *column))
                    {
                        reads.push((*source, *column));
                    }
                    self.walk()
                });
            }
            found.push(reads);
        }
        self.outcome()?;
        Ok(found)
    }
}

/// The outer join that the conditions of this one say something of: the first around it that throws its rows
/// of NULLs away makes it an inner join. `None`: WHERE does.
fn home(
    at: usize,
    outer: &[OuterJoin],
    of_where: &HashSet<ColumnNumber>,
    of_joins: &[HashSet<ColumnNumber>],
) -> Option<usize> {
    let (first, last) = (outer[at].first, outer[at].last);
    let rejects = |columns: &HashSet<ColumnNumber>| {
        columns.iter().any(|(source, _)| (first..=last).contains(&usize::from(*source)))
    };
    if rejects(of_where) {
        return None;
    }
    let around = |other: usize| {
        let join = &outer[other];
        join.first <= first && join.last >= last && (join.first, join.last) != (first, last)
    };
    let found = (0..outer.len()).filter(|other| around(*other)).find(|other| rejects(&of_joins[*other]));
    found.map_or(Some(at), |other| home(other, outer, of_where, of_joins))
}

fn is_subquery(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::Subquery(_)
            | Expr::OfOnlyRow { .. }
            | Expr::Exists(_)
            | Expr::InSubquery { .. }
            | Expr::Quantified { .. }
    )
}

/// Whether columns of a unique key without NULLs are all found.
fn determines(at: u16, def: &TableDef, not_null: &HashSet<ColumnNumber>, found: &Dependent) -> bool {
    let unique = def.keys.iter().filter(|key| key.kind != KeyKind::Secondary);
    unique.filter(|key| !key.parts.is_empty()).any(|key| {
        key.parts.iter().all(|part| {
            let column = (at, part.column);
            let nullable = def.columns.get(usize::from(part.column)).is_none_or(|column| column.nullable);
            part.prefix_chars.is_none() && found.has(column) && (!nullable || not_null.contains(&column))
        })
    })
}

/// Whether a text has this word. Both are in lower case.
fn has_word(text: &str, word: &str) -> bool {
    let of_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    text.match_indices(word).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + word.len()..]);
        !before.ends_with(of_word) && !after.starts_with(of_word)
    })
}
