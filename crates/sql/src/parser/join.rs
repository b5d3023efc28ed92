//! Joins: which tables each of them joins, and by which condition.
//!
//! Joins are read from left to right, and the condition of one stands behind it. That of an outer join may
//! come later: until then the joins that follow are on its inner side. That of an inner join may be missing,
//! so that only a condition that is one too many tells of `a JOIN b JOIN c ON … ON …`: the last join without
//! one gets it, and has what follows it on its right side.

use super::{Parsed, Parser};
use crate::ast::{Expr, JoinKind, TableRef};

/// ON and the columns of USING.
type JoinCondition = (Option<Expr>, Vec<String>);

impl Parser<'_> {
    /// A run of joins.
    pub(super) fn joined_table(&mut self) -> Parsed<TableRef> {
        let open_before = std::mem::take(&mut self.open_joins);
        let mut left = self.table_factor()?;
        while let Some((kind, natural)) = self.join_kind()? {
            left = self.joined_with(left, kind, natural)?;
            while self.open_joins > 0 && self.is_condition() {
                self.open_joins -= 1;
                let condition = self.join_condition()?;
                self.grow()?;
                left = with_condition(left, condition);
            }
        }
        self.open_joins = open_before;
        Ok(left)
    }

    /// Whether ON or USING follows. What follows a join may be ON DUPLICATE KEY as well.
    fn is_condition(&self) -> bool {
        self.is_word("USING") || self.is_word("ON") && !self.peek_is_word("DUPLICATE")
    }

    /// ON or USING, if there is one.
    fn join_condition(&mut self) -> Parsed<JoinCondition> {
        if self.accept("ON") {
            return Ok((Some(self.expr()?), Vec::new()));
        }
        match self.accept("USING") {
            true => Ok((None, self.parenthesised(Self::name)?)),
            false => Ok((None, Vec::new())),
        }
    }

    /// Which join follows, if one does, and whether it is NATURAL.
    fn join_kind(&mut self) -> Parsed<Option<(JoinKind, bool)>> {
        let natural = self.accept("NATURAL");
        let kind = if self.accept("INNER") || self.accept("CROSS") {
            self.expect("JOIN")?;
            JoinKind::Inner
        } else if self.accept("JOIN") {
            JoinKind::Inner
        } else if self.accept("STRAIGHT_JOIN") {
            JoinKind::Straight
        } else if (self.is_word("LEFT") || self.is_word("RIGHT")) && !self.peek_is_symbol(b"(") {
            let kind = if self.is_word("LEFT") { JoinKind::Left } else { JoinKind::Right };
            self.advance();
            let _ = self.accept("OUTER");
            self.expect("JOIN")?;
            kind
        } else if natural {
            return Err(self.unexpected());
        } else {
            return Ok(None);
        };
        Ok(Some((kind, natural)))
    }

    /// Behind the kind of a join. `a LEFT JOIN b LEFT JOIN c ON … ON …`: what has no ON yet has the next join
    /// on its inner side.
    fn joined_with(&mut self, left: TableRef, kind: JoinKind, natural: bool) -> Parsed<TableRef> {
        let mut right = self.table_factor()?;
        let needs_on = matches!(kind, JoinKind::Left | JoinKind::Right) && !natural;
        while needs_on && !self.is_any_word(&["ON", "USING"]) {
            let Some((kind, natural)) = self.join_kind()? else { return Err(self.unexpected()) };
            right = self.nested(|parser| parser.joined_with(right, kind, natural))?;
        }
        // What follows a NATURAL JOIN may be ON DUPLICATE KEY.
        let (on, using) = if natural { (None, Vec::new()) } else { self.join_condition()? };
        self.open_joins += u32::from(!natural && on.is_none() && using.is_empty());
        self.grow()?;
        Ok(TableRef::Join { left: Box::new(left), right: Box::new(right), kind, on, using, natural })
    }
}

/// Two tables with a comma between them.
pub(super) fn beside(left: TableRef, right: TableRef) -> TableRef {
    let (left, right) = (Box::new(left), Box::new(right));
    TableRef::Join { left, right, kind: JoinKind::Inner, on: None, using: Vec::new(), natural: false }
}

/// A run of joins with one more condition behind it: the last of them that has none takes it, and what is
/// behind that one to its right side. Where none of them lacks one, a join on an inner side does: what is the
/// outer join's by now belongs there.
fn with_condition(table: TableRef, condition: JoinCondition) -> TableRef {
    let run = std::iter::successors(Some(&table), |table| match table {
        TableRef::Join { left, .. } => Some(&**left),
        _ => None,
    });
    let in_run = run.take_while(|table| matches!(table, TableRef::Join { .. })).any(is_open);
    let mut behind = Vec::new();
    let mut at = table;
    while let TableRef::Join { left, right, kind, on, using, natural } = at {
        let open = !natural && on.is_none() && using.is_empty();
        if in_run && open {
            let right = rejoined(*right, behind);
            let (on, using) = condition;
            return TableRef::Join { left, right: Box::new(right), kind, on, using, natural };
        }
        if !in_run && has_open(&right) {
            let right = Box::new(with_condition(*right, (on, using)));
            let (on, using) = condition;
            return rejoined(TableRef::Join { left, right, kind, on, using, natural }, behind);
        }
        behind.push((right, kind, on, using, natural));
        at = *left;
    }
    rejoined(at, behind)
}

/// What a join has beside its left side.
type Rest = (Box<TableRef>, JoinKind, Option<Expr>, Vec<String>, bool);

/// A table with the joins behind it, the first of them last.
fn rejoined(table: TableRef, behind: Vec<Rest>) -> TableRef {
    let join = |left, (right, kind, on, using, natural)| TableRef::Join {
        left: Box::new(left),
        right,
        kind,
        on,
        using,
        natural,
    };
    behind.into_iter().rev().fold(table, join)
}

fn is_open(table: &TableRef) -> bool {
    matches!(table, TableRef::Join { on: None, using, natural: false, .. } if using.is_empty())
}

fn has_open(table: &TableRef) -> bool {
    match table {
        TableRef::Join { left, right, .. } => is_open(table) || has_open(left) || has_open(right),
        _ => false,
    }
}
