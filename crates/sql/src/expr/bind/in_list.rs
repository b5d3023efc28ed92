//! `operand IN (…)`: constants that were collected before, rows, and lists whose entries are compared with
//! the operand as one kind or each by itself.

use std::sync::Arc;

use super::chosen_texts::chosen_texts;
use super::coercion::is_number;
use super::literals::value_type;
use super::{Binder, Bound, NODE_BYTES, beside_numbers, beside_years, coercion, collation, lists_of_moments};
use crate::ast;
use crate::errors;
use crate::expr::types::Type;
use crate::expr::{Expr, ValueSet};
use crate::result::{SqlError, kind};
use crate::value::Value;

impl Binder<'_, '_> {
    /// A condition is a boolean of JSON beside a document, as by `=`.
    fn document_in_list(
        &mut self,
        (operand, mut first): (&ast::Expr, Bound),
        list: &[ast::Expr],
        negated: bool,
    ) -> Result<Expr, SqlError> {
        let mut equalities = self.planner.elsewhere(Vec::with_capacity(list.len()));
        for said in list {
            let (again, item) = ((first.0.share(), first.1), self.bind(said)?);
            let (left, right) = self.beside(ast::BinaryOperator::Equal, (operand, said), again, item)?;
            let (left, right) = (Box::new(left.0), Box::new(right.0));
            equalities.push(Expr::Compare(ast::BinaryOperator::Equal, left, right));
        }
        Ok(any_of(equalities.into_inner(), negated))
    }

    pub(super) fn in_constants(
        &mut self,
        operand: &ast::Expr,
        constants: &Arc<ValueSet>,
        negated: bool,
    ) -> Result<Expr, SqlError> {
        let mut operand = self.bind(operand)?;
        if constants.is_integers() {
            operand = self.as_number(operand);
        }
        if lists_of_moments::texts_apart(&operand, constants) {
            let entry = |value: &Value<'static>| (Expr::Literal(value.clone()), value_type(value));
            let operands = std::iter::once(operand).chain(constants.values.iter().map(entry));
            let mut operands = lists_of_moments::of_one_kind(operands.collect()).into_iter();
            let operand = operands.next().map_or(Expr::Literal(Value::Null), |(operand, _)| operand);
            let list = operands.map(|(entry, _)| entry).collect();
            return Ok(Expr::InList { operand: Box::new(operand), list, negated });
        }
        let (operand, constants) = self.among(operand, constants)?;
        Ok(Expr::InConstants { operand: Box::new(operand), constants, negated })
    }

    /// Whether a member is chosen and its name is compared with some entries, its number with others.
    fn is_member_among_others(&self, operands: &[Bound]) -> bool {
        let Some(((first, _), entries)) = operands.split_first() else { return false };
        let number = |(_, ty): &Bound| is_number(*ty);
        self.chooses_members(first) && entries.iter().any(number) && !entries.iter().all(number)
    }

    /// A row, or the only row of a subquery, among rows.
    fn row_in_rows(
        &mut self,
        operand: &ast::Expr,
        list: &[ast::Expr],
        negated: bool,
    ) -> Result<Option<Expr>, SqlError> {
        let first = match (operand, list) {
            (ast::Expr::Row(row), _) if rows_of(list, row.len()).is_some() => self.bound_list(row)?,
            (ast::Expr::Subquery(query), [ast::Expr::Row(row), ..]) if rows_of(list, row.len()).is_some() => {
                self.only_row_in_parts(query)?
            }
            _ => return Ok(None),
        };
        let rows = rows_of(list, first.len());
        let rows = rows.ok_or_else(|| errors::error(errors::OPERAND_COLUMNS, &[&first.len()]))?;
        self.in_rows(first, rows, negated).map(Some)
    }

    /// A row among others of as many values.
    fn in_rows(
        &mut self,
        first: Vec<Bound>,
        rows: Vec<&[ast::Expr]>,
        negated: bool,
    ) -> Result<Expr, SqlError> {
        let rows = rows.into_iter().map(|row| self.bound_list(row)).collect::<Result<_, _>>()?;
        let row = |items: Vec<Bound>| Expr::Row(items.into_iter().map(|(expr, _)| expr).collect());
        let mut rows = collation::rows_under_one(first, rows)?.into_iter().map(row);
        let operand = rows.next().unwrap_or(Expr::Literal(Value::Null));
        Ok(Expr::InList { operand: Box::new(operand), list: rows.collect(), negated })
    }

    pub(super) fn in_list(
        &mut self,
        operand: &ast::Expr,
        list: &[ast::Expr],
        negated: bool,
    ) -> Result<Expr, SqlError> {
        let made = |operand, list| Expr::InList { operand: Box::new(operand), list, negated };
        if let (ast::Expr::Row(_), [only]) | (ast::Expr::Subquery(_), [only @ ast::Expr::Row(_)]) =
            (operand, list)
        {
            // One row is compared as by `=`, where numbers are beside their ENUM; of several only texts are.
            let equal = self.binary(ast::BinaryOperator::Equal, operand, only)?.0;
            return Ok(any_of(vec![equal], negated));
        }
        if let Some(among) = self.row_in_rows(operand, list, negated)? {
            return Ok(among);
        }
        let first = self.bind(operand)?;
        for item in list {
            if let ast::Expr::Parameter(index) = item {
                self.planner.state.parameters.note_members(*index, first.1);
            }
        }
        let is_document = first.1.kind == kind::JSON && !first.0.has_volatile();
        if is_document && list.iter().any(ast::Expr::is_condition) {
            return self.document_in_list((operand, first), list, negated);
        }
        if let ([only], kind::DATE | kind::DATETIME | kind::TIMESTAMP | kind::TIME) = (list, first.1.kind)
            && !matches!(only, ast::Expr::Binary(_) | ast::Expr::Row(_))
        {
            // One number or text is compared as by `=`.
            let item = self.bind(only)?;
            self.note_text_of_day(&first, &item)?;
            if !is_number(item.1) && first.1.kind != kind::TIME {
                let (first, item) = chosen_texts(first, item);
                return Ok(made(first.0, vec![item.0]));
            }
            return self.equals_one(vec![first, item], (operand, only), negated);
        }
        let of_numbers = is_number(first.1) || coercion::may_be_number(&first);
        if !first.1.is_text() && !of_numbers && !list.iter().any(|item| matches!(item, ast::Expr::Binary(_)))
        {
            let lifted = self.is_lifted();
            let mut operands = vec![first];
            operands.extend(self.bound_list(list)?);
            self.note_among(&[operand], &operands);
            let mut operands = lists_of_moments::of_one_kind(operands).into_iter();
            let first = operands.next().unwrap_or((Expr::Literal(Value::Null), Type::NULL));
            let items = operands.map(|item| beside_numbers::among_days(lifted, &first, item).0).collect();
            return Ok(made(first.0, items));
        }
        let mut operands = vec![first];
        operands.extend(self.bound_list(list)?);
        self.note_among(&[operand], &operands);
        operands = by_their_bits(operands);
        beside_years::year_among_texts(&mut operands);
        operands = self.moments_among_numbers(operands);
        if let ([_, (_, Type { kind: kind::TIME, .. })], [said]) = (&operands[..], list) {
            return self.equals_one(operands, (operand, said), negated);
        }
        if coercion::depends_on_the_other(&operands) || self.is_member_among_others(&operands) {
            let mut equalities: Vec<Expr> = Vec::with_capacity(list.len());
            let mut first = operands.remove(0);
            // It is evaluated once for all that it is compared with in the same way.
            let (mut volatile, mut nodes) = (false, 0);
            first.0.visit(&mut |inner| {
                nodes += NODE_BYTES;
                volatile |= inner.is_volatile();
                self.planner.walk()
            });
            self.planner.outcome()?;
            for (said, item) in list.iter().zip(operands) {
                // It may be long, and so may be the list.
                let operand_again = (first.0.share(), first.1);
                let pair = self.beside(ast::BinaryOperator::Equal, (operand, said), operand_again, item)?;
                let (left, right) = (pair.0.0, pair.1.0);
                self.planner.work(if volatile { nodes } else { 0 })?;
                let alike = equalities.iter_mut().filter(|_| volatile).find_map(|equality| match equality {
                    Expr::InList { operand, list, .. } if **operand == left => Some(list),
                    _ => None,
                });
                match alike {
                    Some(list) => list.push(right),
                    None if volatile => {
                        let (operand, list) = (Box::new(left), vec![right]);
                        equalities.push(Expr::InList { operand, list, negated: false });
                    }
                    None => {
                        let (left, right) = (Box::new(left), Box::new(right));
                        equalities.push(Expr::Compare(ast::BinaryOperator::Equal, left, right));
                    }
                }
            }
            return Ok(any_of(equalities, negated));
        }
        let mut operands = self.comparable("in", operands)?.into_iter().map(|(expr, _)| expr);
        let operand = operands.next().unwrap_or(Expr::Literal(Value::Null));
        Ok(made(operand, operands.collect()))
    }
}

/// Integers among several entries that are not all constants are compared by their bits. Among constants
/// it is the plan's choice in MySQL.
fn by_their_bits(operands: Vec<Bound>) -> Vec<Bound> {
    let Some(first) = operands.first().map(|(_, ty)| *ty).filter(Type::is_integer) else { return operands };
    if operands.len() == 2 || operands[1..].iter().all(coercion::is_one_for_all) {
        return operands;
    }
    operands.into_iter().map(|operand| coercion::with_sign_of(first, operand)).collect()
}

/// The rows of a list, if all are plain rows of that many columns.
fn rows_of(list: &[ast::Expr], width: usize) -> Option<Vec<&[ast::Expr]>> {
    let plain = |item: &ast::Expr| !matches!(item, ast::Expr::Row(_));
    list.iter()
        .map(|item| match item {
            ast::Expr::Row(row) if row.len() == width && row.iter().all(plain) => Some(&row[..]),
            _ => None,
        })
        .collect()
}

/// Whether one of them holds, or none.
pub(super) fn any_of(mut conditions: Vec<Expr>, negated: bool) -> Expr {
    let any = match conditions.pop() {
        Some(only) if conditions.is_empty() => only,
        last => {
            conditions.extend(last);
            Expr::Or(conditions)
        }
    };
    if negated { Expr::Not(Box::new(any)) } else { any }
}
