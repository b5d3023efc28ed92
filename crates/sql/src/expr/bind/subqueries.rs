//! Subqueries in expressions: what they are compared with, and planning them.

use super::coercion::is_number;
use super::scope::{RoomForAggregates, Scope};
use super::{Binder, Bound, collation, number_of};
use crate::ast;
use crate::ast::text::symbol;
use crate::errors;
use crate::expr::Expr;
use crate::expr::select_list::SelectList;
use crate::expr::types::Type;
use crate::plan::with::Around;
use crate::result::SqlError;
use crate::value::Value;

impl Binder<'_, '_> {
    /// No more rows of a subquery than this decide anything.
    pub(super) fn limit_subquery(&mut self, index: u16, rows: i64) {
        if let Some(plan) = self.subqueries.get_mut(usize::from(index))
            && plan.limit.is_none()
        {
            plan.limit = Some((Expr::int(rows), None));
        }
    }

    pub(super) fn quantified(
        &mut self,
        operator: ast::BinaryOperator,
        operand: &ast::Expr,
        query: &ast::Query,
        all: bool,
    ) -> Result<Bound, SqlError> {
        // Of rows there is equality alone.
        match (operator, operand) {
            (ast::BinaryOperator::Equal, ast::Expr::Subquery(_)) if !all => {
                return self.in_query(operand, query, false);
            }
            (ast::BinaryOperator::NotEqual, ast::Expr::Subquery(_)) if all => {
                return self.in_query(operand, query, true);
            }
            _ => {}
        }
        let mut operands = vec![self.bind(operand)?];
        let (subquery, _) = self.subquery(query, Some(1), true)?;
        // MySQL has numbers of members where equality is asked for, and their texts in an order.
        let equality = matches!(operator, ast::BinaryOperator::Equal | ast::BinaryOperator::NotEqual);
        // ALL is that there is none of the opposite.
        let compared = if all { operator.opposite() } else { operator };
        self.beside_query(&mut operands, subquery, equality, symbol(compared))?;
        let operand = Box::new(operands.remove(0).0);
        Ok((Expr::Quantified { operator, operand, subquery, all }, Type::BOOL))
    }

    pub(super) fn in_query(
        &mut self,
        operand: &ast::Expr,
        query: &ast::Query,
        negated: bool,
    ) -> Result<Bound, SqlError> {
        let mut operands = match operand {
            ast::Expr::Row(row) => self.bound_list(row)?,
            ast::Expr::Subquery(query) => self.only_row_in_parts(query)?,
            _ => vec![self.bind(operand)?],
        };
        let (subquery, _) = self.subquery(query, Some(operands.len()), true)?;
        self.beside_query(&mut operands, subquery, true, "=")?;
        let operand = match operands.len() {
            1 => operands.remove(0).0,
            _ => Expr::Row(operands.into_iter().map(|(expr, _)| expr).collect()),
        };
        Ok((Expr::InSubquery { operand: Box::new(operand), subquery, negated }, Type::BOOL))
    }

    /// ENUM and SET columns of a subquery beside numbers are numbers, and the operands too if they are to be.
    /// Texts are compared in one collation.
    fn beside_query(
        &mut self,
        operands: &mut [Bound],
        subquery: u16,
        both: bool,
        operation: &str,
    ) -> Result<(), SqlError> {
        let at = usize::from(subquery);
        for (column, operand) in operands.iter_mut().enumerate() {
            let Some(plan) = self.subqueries.get_mut(at) else { return Ok(()) };
            let Some(ty) = plan.types.get(column).copied() else { return Ok(()) };
            let bound = std::mem::replace(operand, (Expr::Literal(Value::Null), Type::NULL));
            if is_number(bound.1) {
                plan.number_member(column);
                *operand = bound;
            } else if both && is_number(ty) && plan.unions.is_empty() {
                *operand = self.as_number(bound);
            } else {
                let (bound, rule) = collation::beside_column(operation, bound, ty)?;
                *operand = bound;
                if let Some(rule) = rule {
                    plan.put_under(column, rule);
                }
            }
        }
        Ok(())
    }

    /// A subquery that has one row of this many columns, or none.
    pub(super) fn only_row(&mut self, query: &ast::Query, columns: usize) -> Result<Bound, SqlError> {
        let (index, ty) = self.subquery(query, Some(columns), false)?;
        // A second row is enough for error 1242.
        self.limit_subquery(index, 2);
        Ok((Expr::Subquery(index), Type { nullable: true, ..ty }))
    }

    /// A subquery of any number of columns that has one row or none, as the values of its columns.
    pub(super) fn only_row_in_parts(&mut self, query: &ast::Query) -> Result<Vec<Bound>, SqlError> {
        let (subquery, ty) = self.subquery(query, None, false)?;
        self.limit_subquery(subquery, 2);
        let plan = self.subqueries.get_mut(usize::from(subquery));
        let types = match plan {
            Some(plan) if plan.types.len() > 1 => {
                plan.whole_rows = true;
                plan.types.clone()
            }
            _ => return Ok(vec![(Expr::Subquery(subquery), Type { nullable: true, ..ty })]),
        };
        let columns = number_of(types.len())?;
        let part = |(column, ty): (usize, Type)| {
            let column = number_of(column)?;
            Ok((Expr::OfOnlyRow { subquery, column, columns }, Type { nullable: true, ..ty }))
        };
        types.into_iter().enumerate().map(part).collect()
    }

    /// Plans a subquery of that many columns; `of_members`: of EXISTS, IN, ANY or ALL.
    pub(super) fn subquery(
        &mut self,
        query: &ast::Query,
        columns: Option<usize>,
        of_members: bool,
    ) -> Result<(u16, Type), SqlError> {
        let Around { outer, with, .. } = self.around;
        let room = match (self.in_aggregate, self.aggregates_allowed) {
            (true, _) => RoomForAggregates::InAggregate,
            (false, true) => RoomForAggregates::After(self.aggregates.len()),
            (false, false) => RoomForAggregates::None,
        };
        let select_list = std::mem::replace(&mut self.select_list, SelectList::empty());
        let scope = Scope::new(self.sources, self.visible.clone(), outer)
            .with_select_list(select_list)
            .with_room(room, self.subqueries.len());
        let of_existence = of_members && columns.is_none();
        let around = Around { outer: Some(&scope), with, of_members, of_existence, ..Around::default() };
        let mut plan = self.planner.query(query, around)?;
        let read = scope.into_read();
        plan.captures = read.captures;
        self.select_list = read.select_list;
        self.aggregates.extend(read.aggregates);
        self.subqueries.extend(read.subqueries);
        plan.whole_rows = columns.is_some_and(|columns| columns > 1);
        if let Some(wanted) = columns
            && plan.items.len() != wanted
        {
            return Err(errors::error(errors::OPERAND_COLUMNS, &[&wanted]));
        }
        let ty = plan.types.first().copied().unwrap_or(Type::NULL);
        self.subqueries.push(plan);
        Ok((number_of(self.subqueries.len() - 1)?, ty))
    }
}
