//! From syntax to bound expressions: names are resolved against the sources of the query, aggregates are collected,
//! subqueries are planned, types are inferred.

use std::collections::HashSet;
use std::sync::Arc;

use untorn::types::Collation;

use super::super::ast::{self, BinaryOperator, TemporalKind, UnaryOperator};
use super::super::plan::aggregate::{Aggregate, AggregateKind};
use super::super::plan::source::Source;
use super::super::plan::{Planner, SelectPlan};
use super::super::value::{Value, decimal, temporal};
use super::functions;
use super::select_list::{Meaning, SelectList};
use super::types::{Type, cast_type};
use super::{Context, Expr, NODE_BYTES};
use crate::discard::Elsewhere;
use crate::errors;
use crate::result::{SqlError, kind};

/// A bound expression with its type.
pub type Bound = (Expr, Type);

/// What a column's name is looked for in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// The tables, then the select list where there is one.
    Tables,
    /// The select list, then the tables: a name that ORDER BY has for itself.
    SelectList,
    /// The select list, unless the tables have another column of that name: a name that GROUP BY has for itself.
    Group,
    /// HAVING: the columns that are grouped by and the select list, and nothing else of the tables.
    Having,
}

/// Binds the expressions of one query.
pub struct Binder<'p, 'a> {
    /// The planner of the statement.
    pub planner: &'p Planner<'a>,
    /// Where columns may come from.
    pub sources: &'p [Source],
    /// Only the first so many sources are visible (join conditions).
    pub visible: usize,
    /// Aggregates found so far.
    pub aggregates: Vec<Aggregate>,
    /// Whether aggregates are allowed where we are.
    pub aggregates_allowed: bool,
    /// Subqueries found so far.
    pub subqueries: Vec<SelectPlan>,
    /// The select list, for GROUP BY, HAVING and ORDER BY.
    pub select_list: SelectList,
    /// Columns of the select list that HAVING may name.
    pub selected: HashSet<(u16, u16)>,
    /// Columns of GROUP BY that HAVING may name.
    pub grouped: HashSet<(u16, u16)>,
    /// Where names are looked for.
    pub rule: NameRule,
    /// Name of the clause for error 1054.
    pub clause: &'static str,
    /// The table of an INSERT, for VALUES().
    pub inserted: Option<&'p Source>,
}

impl<'p, 'a> Binder<'p, 'a> {
    /// A binder that sees all of `sources`.
    pub fn new(planner: &'p Planner<'a>, sources: &'p [Source]) -> Self {
        Self {
            planner,
            sources,
            visible: sources.len(),
            aggregates: Vec::new(),
            aggregates_allowed: false,
            subqueries: Vec::new(),
            select_list: SelectList::new(Elsewhere::new(Vec::new(), false)),
            selected: HashSet::new(),
            grouped: HashSet::new(),
            rule: NameRule::Tables,
            clause: "field list",
            inserted: None,
        }
    }

    /// Binds one expression.
    pub fn bind(&mut self, expr: &ast::Expr) -> Result<Bound, SqlError> {
        self.planner.work(NODE_BYTES)?;
        Ok(match expr {
            ast::Expr::Null => (Expr::Literal(Value::Null), Type::NULL),
            ast::Expr::Integer(value) => integer_literal(*value),
            ast::Expr::Decimal(text) => decimal_literal(text),
            ast::Expr::Float(value) => (Expr::Literal(Value::Double(*value)), Type::DOUBLE.not_null()),
            ast::Expr::Text { bytes, introducer } => text_literal(bytes, introducer.as_deref()),
            ast::Expr::Binary(bytes) => (
                Expr::Literal(Value::Text(bytes.clone().into(), Collation::Binary)),
                Type::bytes(bytes.len() as u32).not_null(),
            ),
            ast::Expr::Temporal { kind, text } => temporal_literal(*kind, text)?,
            ast::Expr::Column { database, table, name } => {
                self.column(database.as_deref(), table.as_deref(), name)?
            }
            ast::Expr::Parameter(index) => (Expr::Parameter(*index), self.planner.parameter_type(*index)),
            ast::Expr::UserVariable(name) => {
                (Expr::UserVariable(name.clone()), self.planner.user_variable_type(name))
            }
            ast::Expr::Assign(name, value) => {
                let (value, ty) = self.bind(value)?;
                (Expr::Assign(name.clone(), Box::new(value)), ty)
            }
            ast::Expr::SystemVariable { scope, name } => {
                let ty = value_type(&self.planner.state.system_variable(name, *scope)?);
                (Expr::SystemVariable { scope: *scope, name: name.clone() }, ty)
            }
            ast::Expr::InsertedValue(name) => self.inserted_value(name)?,
            ast::Expr::Default(_) => return Err(errors::unsupported("DEFAULT here")),
            ast::Expr::Unary(operator, operand) => self.unary(*operator, operand)?,
            ast::Expr::And(list) => (Expr::And(self.flat(list, open_and)?), Type::BOOL),
            ast::Expr::Or(list) => (Expr::Or(self.flat(list, open_or)?), Type::BOOL),
            ast::Expr::Binary2(operator, left, right) => self.binary(*operator, left, right)?,
            ast::Expr::Chain(first, links) => {
                let mut chain = self.bind(first)?;
                for (operator, operand) in links {
                    let operand = self.bind(operand)?;
                    chain = self.arithmetic(*operator, chain, operand);
                }
                chain
            }
            ast::Expr::IsNull { operand, negated } => {
                (Expr::IsNull(Box::new(self.bind(operand)?.0), *negated), Type::BOOL.not_null())
            }
            ast::Expr::IsTruth { operand, truth, negated } => {
                let operand = Box::new(self.bind(operand)?.0);
                (Expr::IsTruth { operand, truth: *truth, negated: *negated }, Type::BOOL.not_null())
            }
            ast::Expr::Between { operand, low, high, negated } => {
                let operand = Box::new(self.bind(operand)?.0);
                let (low, high) = (Box::new(self.bind(low)?.0), Box::new(self.bind(high)?.0));
                (Expr::Between { operand, low, high, negated: *negated }, Type::BOOL)
            }
            ast::Expr::InList { operand, list, negated } => {
                let operand = Box::new(self.bind(operand)?.0);
                let list = self.list(list)?;
                (Expr::InList { operand, list, negated: *negated }, Type::BOOL)
            }
            ast::Expr::InConstants { operand, constants, negated } => {
                let operand = Box::new(self.bind(operand)?.0);
                let constants = constants.clone();
                (Expr::InConstants { operand, constants, negated: *negated }, Type::BOOL)
            }
            ast::Expr::InQuery { operand, query, negated } => {
                let operand = Box::new(self.bind(operand)?.0);
                let (subquery, _) = self.subquery(query, Some(1))?;
                (Expr::InSubquery { operand, subquery, negated: *negated }, Type::BOOL)
            }
            ast::Expr::Like { operand, pattern, escape, negated } => {
                self.like(operand, pattern, escape.as_deref(), *negated)?
            }
            ast::Expr::Regexp { .. } => return Err(errors::unsupported("REGEXP")),
            ast::Expr::Case { operand, whens, otherwise } => {
                self.case(operand.as_deref(), whens, otherwise.as_deref())?
            }
            ast::Expr::Function { .. } => self.function(expr)?,
            ast::Expr::Cast { operand, target } => {
                let mut operand = self.bind(operand)?;
                if !matches!(target, ast::CastType::Char { .. } | ast::CastType::Binary { .. }) {
                    operand = self.as_number(operand);
                }
                let operand = operand.0;
                (Expr::Cast(Box::new(operand), target.clone()), cast_type(target))
            }
            ast::Expr::ConvertCharset { operand, charset } => {
                let (operand, ty) = self.bind(operand)?;
                let rule = self.planner.charset_collation(charset)?;
                (Expr::Collate(Box::new(operand), rule), Type { collation: rule, ..Type::text(ty.length) })
            }
            ast::Expr::Collate { operand, collation } => {
                let (operand, ty) = self.bind(operand)?;
                let rule = self.planner.collation(collation)?;
                (Expr::Collate(Box::new(operand), rule), Type { collation: rule, ..Type::text(ty.length) })
            }
            ast::Expr::Interval { .. } => return Err(errors::error(errors::PARSE_ERROR, &[&"INTERVAL", &1])),
            ast::Expr::Extract { unit, operand } => {
                (Expr::Extract(*unit, Box::new(self.bind(operand)?.0)), Type::INT)
            }
            ast::Expr::Trim { side, what, operand } => {
                let what = match what {
                    Some(what) => Some(Box::new(self.bind(what)?.0)),
                    None => None,
                };
                let (operand, ty) = self.bind(operand)?;
                (Expr::Trim { side: *side, what, operand: Box::new(operand) }, Type::text(ty.length))
            }
            ast::Expr::Subquery(query) => {
                let (index, ty) = self.subquery(query, Some(1))?;
                // A second row is enough for error 1242.
                self.limit_subquery(index, 2);
                (Expr::Subquery(index), Type { nullable: true, ..ty })
            }
            ast::Expr::Exists(query) => {
                let index = self.subquery(query, None)?.0;
                self.limit_subquery(index, 1);
                (Expr::Exists(index), Type::BOOL.not_null())
            }
            ast::Expr::Row(items) => (Expr::Row(self.list(items)?), Type::NULL),
        })
    }

    fn list(&mut self, list: &[ast::Expr]) -> Result<Vec<Expr>, SqlError> {
        let mut bound = self.planner.elsewhere(Vec::with_capacity(list.len()));
        for item in list {
            bound.push(self.bind(item)?.0);
        }
        Ok(bound.into_inner())
    }

    fn column(&mut self, database: Option<&str>, table: Option<&str>, name: &str) -> Result<Bound, SqlError> {
        let found = match self.rule {
            NameRule::Tables => {
                let column = self.table_column(database, table, name)?;
                match self.only(column, name)? {
                    None => self.listed(table, name)?,
                    found => found,
                }
            }
            NameRule::SelectList => match self.listed(table, name)? {
                None => {
                    let column = self.table_column(database, table, name)?;
                    self.only(column, name)?
                }
                found => found,
            },
            NameRule::Group => {
                let listed = self.listed(table, name)?;
                let column = self.table_column(database, table, name)?;
                match (listed, column) {
                    (Some(listed), Meaning::One(column)) if column.0.identity() == listed.0.identity() => {
                        Some(listed)
                    }
                    (Some(listed), Meaning::Nothing | Meaning::Several) => Some(listed),
                    (_, column) => self.only(column, name)?,
                }
            }
            NameRule::Having => self.having_column(database, table, name)?,
        };
        found.ok_or_else(|| {
            let shown = [database, table, Some(name)].into_iter().flatten().collect::<Vec<_>>().join(".");
            errors::error(errors::BAD_FIELD, &[&shown, &self.clause])
        })
    }

    /// What a name stands for, unless that is several things.
    fn only<T>(&self, meaning: Meaning<T>, name: &str) -> Result<Option<T>, SqlError> {
        match meaning {
            Meaning::Nothing => Ok(None),
            Meaning::One(one) => Ok(Some(one)),
            Meaning::Several => Err(errors::error(errors::NON_UNIQ, &[&name, &self.clause])),
        }
    }

    /// The entry of the select list that has this name.
    fn listed(&mut self, table: Option<&str>, name: &str) -> Result<Option<Bound>, SqlError> {
        if table.is_some() {
            return Ok(None);
        }
        let meaning = self.select_list.named(name);
        self.only(meaning, name)
    }

    /// The columns of the tables that are meant, those apart that were merged into others.
    fn table_columns<'n>(
        &self,
        database: Option<&'n str>,
        table: Option<&'n str>,
        name: &'n str,
    ) -> Result<impl Iterator<Item = (u16, u16)> + use<'p, 'n, 'a>, SqlError> {
        self.planner.work(self.visible * NODE_BYTES)?;
        let answering = self.sources.iter().take(self.visible).enumerate();
        let answering = answering.filter(move |(_, source)| source.answers_to(database, table));
        Ok(answering.filter_map(move |(at, source)| Some((at as u16, source.column_number(name)?))))
    }

    fn table_column(
        &self,
        database: Option<&str>,
        table: Option<&str>,
        name: &str,
    ) -> Result<Meaning<Bound>, SqlError> {
        let mut meaning = Meaning::Nothing;
        for (source, column) in self.table_columns(database, table, name)? {
            if meaning == Meaning::Nothing || !self.sources[usize::from(source)].is_merged(column) {
                meaning.add((source, column));
            }
        }
        Ok(match meaning {
            Meaning::Nothing => Meaning::Nothing,
            Meaning::One(place) => Meaning::One(self.at(place)),
            Meaning::Several => Meaning::Several,
        })
    }

    fn at(&self, (source, column): (u16, u16)) -> Bound {
        (Expr::Column { source, column }, self.sources[usize::from(source)].columns[usize::from(column)].ty)
    }

    /// `ORDER BY 2`: the entry of the select list of that position.
    pub fn position(&mut self, expr: &ast::Expr) -> Result<Option<Bound>, SqlError> {
        let ast::Expr::Integer(number) = expr else { return Ok(None) };
        let at = usize::try_from(*number).ok().and_then(|number| number.checked_sub(1));
        let entry = at.and_then(|at| self.select_list.entry(at));
        entry.map(Some).ok_or_else(|| errors::error(errors::BAD_FIELD, &[number, &self.clause]))
    }

    /// A column of HAVING. Where a column is grouped by and another entry of the select list has its name, the column is meant.
    fn having_column(
        &mut self,
        database: Option<&str>,
        table: Option<&str>,
        name: &str,
    ) -> Result<Option<Bound>, SqlError> {
        let (mut selected, mut grouped) = (Meaning::Nothing, Meaning::Nothing);
        for place in self.table_columns(database, table, name)? {
            if self.selected.contains(&place) {
                selected.add(place);
            }
            if self.grouped.contains(&place) {
                grouped.add(place);
            }
        }
        let listed = match self.listed(table, name)? {
            None => self.only(selected, name)?.map(|place| self.at(place)),
            listed => listed,
        };
        let grouped = self.only(grouped, name)?.map(|place| self.at(place));
        Ok(grouped.or(listed))
    }

    /// A subquery that does not know a column which this query has is correlated: say so instead.
    fn explain_outer_column(&self, error: SqlError) -> SqlError {
        let quoted = (error.code == errors::BAD_FIELD).then(|| error.message.split('\'').nth(1)).flatten();
        let Some(shown) = quoted else { return error };
        let mut parts = shown.rsplit('.');
        let (name, table, database) = (parts.next().unwrap_or(shown), parts.next(), parts.next());
        let outer = self
            .sources
            .iter()
            .any(|source| source.answers_to(database, table) && source.column_number(name).is_some());
        if !outer {
            return error;
        }
        errors::unsupported(&format!("correlated subqueries (column {shown} belongs to the outer query)"))
    }

    fn inserted_value(&mut self, name: &str) -> Result<Bound, SqlError> {
        let column = self.inserted.and_then(|source| Some((source, source.column_number(name)?)));
        match column {
            Some((source, column)) => Ok((Expr::Inserted(column), source.columns[usize::from(column)].ty)),
            None => Err(errors::error(errors::BAD_FIELD, &[&name, &self.clause])),
        }
    }

    /// Where a number is wanted: the number of an ENUM's or SET's members, anything else as it is.
    fn as_number(&self, (expr, ty): Bound) -> Bound {
        let (Expr::Column { source, column }, kind::ENUM | kind::SET) = (&expr, ty.kind) else {
            return (expr, ty);
        };
        let table = self.sources.get(usize::from(*source)).and_then(Source::engine_table);
        match table.and_then(|table| table.def.columns.get(usize::from(*column))) {
            Some(column) => {
                let kind = Arc::new(column.kind.clone());
                (Expr::MemberNumber(Box::new(expr), kind), Type { nullable: ty.nullable, ..Type::UINT })
            }
            None => (expr, ty),
        }
    }

    fn unary(&mut self, operator: UnaryOperator, operand: &ast::Expr) -> Result<Bound, SqlError> {
        let mut operand = self.bind(operand)?;
        if matches!(operator, UnaryOperator::Minus | UnaryOperator::BitNot) {
            operand = self.as_number(operand);
        }
        let (operand, ty) = operand;
        Ok(match operator {
            UnaryOperator::Plus => (operand, ty),
            UnaryOperator::Minus => match operand {
                // Fold, so that `-5` is a constant to the access paths.
                Expr::Literal(value) if !value.is_null() => {
                    let value = super::arithmetic::negate(value)?.into_owned();
                    let mut ty = value_type(&value).not_null();
                    ty.length = ty.length.max(1);
                    (Expr::Literal(value), ty)
                }
                operand => {
                    let ty = if ty.is_text() { Type::DOUBLE } else { Type { unsigned: false, ..ty } };
                    (Expr::Negate(Box::new(operand)), ty)
                }
            },
            UnaryOperator::BitNot => (Expr::BitNot(Box::new(operand)), Type::UINT),
            UnaryOperator::Not => (Expr::Not(Box::new(operand)), Type::BOOL),
            UnaryOperator::Binary => {
                (Expr::Collate(Box::new(operand), Collation::Binary), Type::bytes(ty.length))
            }
        })
    }

    fn binary(
        &mut self,
        operator: BinaryOperator,
        left: &ast::Expr,
        right: &ast::Expr,
    ) -> Result<Bound, SqlError> {
        use BinaryOperator::*;
        match (operator, left, right) {
            (Add, ast::Expr::Interval { amount, unit }, date)
            | (Add, date, ast::Expr::Interval { amount, unit }) => {
                return self.date_shift(date, amount, *unit, false);
            }
            (Subtract, date, ast::Expr::Interval { amount, unit }) => {
                return self.date_shift(date, amount, *unit, true);
            }
            _ => {}
        }
        let (mut left, mut right) = (self.bind(left)?, self.bind(right)?);
        if operator == Xor {
            return Ok((Expr::Xor(Box::new(left.0), Box::new(right.0)), Type::BOOL));
        }
        if operator.is_arithmetic() {
            return Ok(self.arithmetic(operator, left, right));
        }
        if is_number(left.1) || is_number(right.1) {
            (left, right) = (self.as_number(left), self.as_number(right));
        }
        let ty = if operator == NullSafeEqual { Type::BOOL.not_null() } else { Type::BOOL };
        Ok((Expr::Compare(operator, Box::new(left.0), Box::new(right.0)), ty))
    }

    /// `left operator right`, as one more link where `left` is arithmetic already.
    fn arithmetic(&self, operator: BinaryOperator, mut left: Bound, mut right: Bound) -> Bound {
        if operator != BinaryOperator::Concat {
            (left, right) = (self.as_number(left), self.as_number(right));
        }
        let ty = arithmetic_type(operator, left.1, right.1);
        let expr = match left.0 {
            Expr::Chain(first, mut links) => {
                links.push((operator, right.0));
                Expr::Chain(first, links)
            }
            Expr::Arithmetic(before, first, second) => {
                Expr::Chain(first, vec![(before, *second), (operator, right.0)])
            }
            left => Expr::Arithmetic(operator, Box::new(left), Box::new(right.0)),
        };
        (expr, ty)
    }

    /// The operands of a chain of AND or OR, those of the same chains inside of it among them.
    fn flat(
        &mut self,
        list: &[ast::Expr],
        open: fn(Expr) -> Result<Vec<Expr>, Expr>,
    ) -> Result<Vec<Expr>, SqlError> {
        let mut flat = self.planner.elsewhere(Vec::with_capacity(list.len()));
        for operand in list {
            match open(self.bind(operand)?.0) {
                Ok(inner) => flat.extend(inner),
                Err(single) => flat.push(single),
            }
        }
        Ok(flat.into_inner())
    }

    fn date_shift(
        &mut self,
        date: &ast::Expr,
        amount: &ast::Expr,
        unit: ast::IntervalUnit,
        subtract: bool,
    ) -> Result<Bound, SqlError> {
        let (date, ty) = self.bind(date)?;
        let amount = Box::new(self.bind(amount)?.0);
        let result = match ty.kind {
            kind::DATE if !functions::finer_than_day(unit) => Type::DATE,
            kind::DATE => Type::datetime(0),
            kind::DATETIME | kind::TIMESTAMP => Type::datetime(ty.decimals),
            kind::TIME => Type::time(ty.decimals),
            _ => Type::text(29),
        };
        Ok((Expr::DateShift { date: Box::new(date), amount, unit, subtract }, result))
    }

    fn like(
        &mut self,
        operand: &ast::Expr,
        pattern: &ast::Expr,
        escape: Option<&ast::Expr>,
        negated: bool,
    ) -> Result<Bound, SqlError> {
        let operand = Box::new(self.bind(operand)?.0);
        let pattern = Box::new(self.bind(pattern)?.0);
        let escape = match escape {
            Some(escape) => self.bind(escape)?.0,
            None => Expr::Literal(Value::text("\\")),
        };
        Ok((Expr::Like { operand, pattern, escape: Box::new(escape), negated }, Type::BOOL))
    }

    fn case(
        &mut self,
        operand: Option<&ast::Expr>,
        whens: &[(ast::Expr, ast::Expr)],
        otherwise: Option<&ast::Expr>,
    ) -> Result<Bound, SqlError> {
        let operand = match operand {
            Some(operand) => Some(Box::new(self.bind(operand)?.0)),
            None => None,
        };
        let (mut bound, mut types) = (Vec::with_capacity(whens.len()), Vec::with_capacity(whens.len()));
        let mut ty = Type::NULL;
        for (condition, result) in whens {
            let condition = self.bind(condition)?.0;
            let (result, result_type) = self.bind(result)?;
            ty = if bound.is_empty() { result_type } else { ty.union(result_type) };
            bound.push((condition, result));
            types.push(result_type);
        }
        let (otherwise, else_type) = match otherwise {
            Some(otherwise) => self.bind(otherwise)?,
            None => (Expr::Literal(Value::Null), Type::NULL),
        };
        let ty = ty.union(else_type);
        let whens = bound.into_iter().zip(types);
        let whens = whens.map(|((when, then), of)| (when, converted((then, of), ty))).collect();
        let otherwise = Box::new(converted((otherwise, else_type), ty));
        Ok((Expr::Case { operand, whens, otherwise }, ty))
    }

    fn function(&mut self, call: &ast::Expr) -> Result<Bound, SqlError> {
        let ast::Expr::Function { name, arguments, distinct, star, order_by, separator } = call else {
            return Err(errors::error(errors::UNKNOWN_ERROR, &[&"not a function"]));
        };
        if let Some(aggregate) = AggregateKind::of_name(name) {
            return self.aggregate(aggregate, arguments, *distinct, *star, order_by, separator.as_deref());
        }
        if name == "TIMESTAMPDIFF"
            && let [ast::Expr::Interval { unit, .. }, from, to] = &arguments[..]
        {
            let (from, to) = (Box::new(self.bind(from)?.0), Box::new(self.bind(to)?.0));
            return Ok((Expr::TimestampDiff(*unit, from, to), Type::INT));
        }
        let Some(taken) = functions::arguments_of(name) else {
            let shown = match self.planner.state.current_database() {
                Some(database) => format!("{database}.{}", name.to_ascii_lowercase()),
                None => name.clone(),
            };
            return Err(errors::error(errors::SP_DOES_NOT_EXIST, &[&"FUNCTION", &shown]));
        };
        // The parser has looked at what it was told; this is for the evaluation, which indexes.
        if !taken.contains(&arguments.len()) {
            return Err(errors::error(errors::WRONG_PARAMCOUNT_TO_NATIVE_FCT, &[&name]));
        }
        let mut bound = self.planner.elsewhere(Vec::with_capacity(arguments.len()));
        let mut types = Vec::with_capacity(arguments.len());
        for argument in arguments {
            let (expr, ty) = self.bind(argument)?;
            bound.push(expr);
            types.push(ty);
        }
        let mut bound = bound.into_inner();
        let united = types.iter().copied().reduce(Type::union).unwrap_or(Type::NULL);
        match (name.as_str(), bound.len()) {
            ("COALESCE" | "IFNULL" | "NVL", _) => {
                let nullable = types.iter().all(|ty| ty.nullable);
                let bound = bound.into_iter().zip(types).map(|bound| converted(bound, united)).collect();
                return Ok((Expr::Coalesce(bound), Type { nullable, ..united }));
            }
            ("NULLIF", 2) => {
                let right = Box::new(bound.remove(1));
                return Ok((
                    Expr::NullIf(Box::new(bound.remove(0)), right),
                    Type { nullable: true, ..types[0] },
                ));
            }
            ("IF", 3) => {
                let ty = types[1].union(types[2]);
                let otherwise = Box::new(converted((bound.remove(2), types[2]), ty));
                let result = converted((bound.remove(1), types[1]), ty);
                let whens = vec![(bound.remove(0), result)];
                return Ok((Expr::Case { operand: None, whens, otherwise }, ty));
            }
            _ => {}
        }
        let Some(function) = functions::find(name) else {
            return Err(errors::error(errors::INTERNAL_ERROR, &[&"a function without code"]));
        };
        let ty = rounded_type(function.name, &bound, &types).unwrap_or_else(|| (function.result)(&types));
        // They answer one of their arguments, which need not be of the kind of the others.
        let chooses = matches!(function.name, "GREATEST" | "LEAST" | "ELT");
        let target = chooses.then(|| types.iter().find_map(|of| of.conversion(ty))).flatten();
        let call = Expr::Call(function, bound);
        Ok(match target {
            Some(target) => (Expr::Cast(Box::new(call), target), ty),
            None => (call, ty),
        })
    }

    fn aggregate(
        &mut self,
        kind: AggregateKind,
        arguments: &[ast::Expr],
        distinct: bool,
        star: bool,
        order_by: &[ast::OrderItem],
        separator: Option<&[u8]>,
    ) -> Result<Bound, SqlError> {
        if !self.aggregates_allowed {
            return Err(errors::error(errors::INVALID_GROUP_FUNC_USE, &[]));
        }
        self.aggregates_allowed = false;
        // Aggregates are of the rows of the tables.
        let rule = std::mem::replace(&mut self.rule, NameRule::Tables);
        let mut bound = Vec::new();
        let mut types = Vec::new();
        for argument in arguments {
            let mut argument = self.bind(argument)?;
            if matches!(kind, AggregateKind::Sum | AggregateKind::Average) {
                argument = self.as_number(argument);
            }
            bound.push(argument.0);
            types.push(argument.1);
        }
        let mut order = Vec::new();
        for item in order_by {
            let expr = match &item.expr {
                // The argument of this position.
                ast::Expr::Integer(number) => {
                    let at = usize::try_from(*number).ok().and_then(|number| number.checked_sub(1));
                    let argument = at.and_then(|at| bound.get_mut(at));
                    argument
                        .map(Expr::share)
                        .ok_or_else(|| errors::error(errors::BAD_FIELD, &[number, &"order clause"]))?
                }
                expr => self.bind(expr)?.0,
            };
            order.push((expr, item.descending));
        }
        self.aggregates_allowed = true;
        self.rule = rule;
        let ty = kind.result_type(types.first().copied());
        self.aggregates.push(Aggregate {
            kind,
            arguments: if star { Vec::new() } else { bound },
            distinct,
            order,
            separator: separator.unwrap_or(b",").to_vec(),
            ty,
        });
        let index = number_of(self.aggregates.len() - 1)?;
        Ok((Expr::Aggregate(index), ty))
    }

    /// No more rows of a subquery than this decide anything.
    fn limit_subquery(&mut self, index: u16, rows: i64) {
        if let Some(plan) = self.subqueries.get_mut(usize::from(index))
            && plan.limit.is_none()
        {
            plan.limit = Some((Expr::int(rows), None));
        }
    }

    fn subquery(&mut self, query: &ast::Query, columns: Option<usize>) -> Result<(u16, Type), SqlError> {
        let plan = self.planner.select(query).map_err(|error| self.explain_outer_column(error))?;
        if let Some(wanted) = columns
            && plan.items.len() != wanted
        {
            return Err(errors::error(errors::OPERAND_COLUMNS, &[&wanted]));
        }
        let ty = plan.types.first().copied().unwrap_or(Type::NULL);
        self.subqueries.push(plan);
        Ok((number_of(self.subqueries.len() - 1)?, ty))
    }

    /// Evaluates an expression that must be a constant now.
    pub fn constant(&mut self, expr: &ast::Expr) -> Result<Value<'static>, SqlError> {
        let (bound, _) = self.bind(expr)?;
        if !self.subqueries.is_empty() {
            return Err(errors::unsupported("a subquery here"));
        }
        let cx = Context::constant(self.planner.state, &[]);
        bound.eval(&cx).map(Value::into_owned)
    }
}

/// Aggregates and subqueries of one query are numbered with 16 bits.
fn number_of(index: usize) -> Result<u16, SqlError> {
    u16::try_from(index)
        .map_err(|_| errors::unsupported("more than 65535 aggregates or subqueries in one query"))
}

/// A value of one type among those of a union of types.
fn converted((expr, from): Bound, to: Type) -> Expr {
    match from.conversion(to) {
        Some(target) => Expr::Cast(Box::new(expr), target),
        None => expr,
    }
}

fn open_and(expr: Expr) -> Result<Vec<Expr>, Expr> {
    match expr {
        Expr::And(list) => Ok(list),
        other => Err(other),
    }
}

fn open_or(expr: Expr) -> Result<Vec<Expr>, Expr> {
    match expr {
        Expr::Or(list) => Ok(list),
        other => Err(other),
    }
}

fn integer_literal(value: u64) -> Bound {
    let length = value.to_string().len() as u32;
    match i64::try_from(value) {
        Ok(signed) => (Expr::Literal(Value::Int(signed)), Type { length, ..Type::INT }.not_null()),
        Err(_) => (Expr::Literal(Value::UInt(value)), Type { length, ..Type::UINT }.not_null()),
    }
}

fn decimal_literal(text: &str) -> Bound {
    match decimal::parse(text) {
        Some(value) => {
            let scale = decimal::scale(&value);
            let precision = text.bytes().filter(u8::is_ascii_digit).count().clamp(1, 65) as u8;
            (Expr::Literal(Value::Decimal(value)), Type::decimal(precision.max(scale), scale).not_null())
        }
        None => (Expr::Literal(Value::Double(text.parse().unwrap_or(0.0))), Type::DOUBLE.not_null()),
    }
}

fn text_literal(bytes: &[u8], introducer: Option<&str>) -> Bound {
    let rule = if introducer == Some("binary") { Collation::Binary } else { Collation::Utf8mb4GeneralCi };
    let length = super::collation::char_count(bytes, rule) as u32;
    let ty = Type { collation: rule, ..Type::text(length) }.not_null();
    (Expr::Literal(Value::Text(bytes.to_vec().into(), rule)), ty)
}

fn temporal_literal(kind: TemporalKind, text: &[u8]) -> Result<Bound, SqlError> {
    let wrong = |kind: &str| {
        let mut error =
            errors::error(errors::TRUNCATED_WRONG_VALUE, &[&kind, &String::from_utf8_lossy(text)]);
        error.message = format!("Incorrect {kind} value: '{}'", String::from_utf8_lossy(text)).into();
        error
    };
    Ok(match kind {
        TemporalKind::Date => {
            let (moment, ..) = temporal::parse_datetime(text).ok_or_else(|| wrong("DATE"))?;
            (Expr::Literal(Value::Date(moment.date)), Type::DATE.not_null())
        }
        TemporalKind::DateTime => {
            let (moment, digits, _) = temporal::parse_datetime(text).ok_or_else(|| wrong("DATETIME"))?;
            (Expr::Literal(Value::DateTime(moment, digits)), Type::datetime(digits).not_null())
        }
        TemporalKind::Time => {
            let (span, digits, _) = temporal::parse_time(text).ok_or_else(|| wrong("TIME"))?;
            (Expr::Literal(Value::Time(span, digits)), Type::time(digits).not_null())
        }
    })
}

/// The type of a value at hand.
pub fn value_type(value: &Value<'_>) -> Type {
    match value {
        Value::Null => Type::NULL,
        Value::Int(_) => Type::INT,
        Value::UInt(_) => Type::UINT,
        Value::Float(_) | Value::Double(_) => Type::DOUBLE,
        Value::Decimal(v) => {
            let text = decimal::format(v);
            let digits = text.bytes().filter(u8::is_ascii_digit).count().clamp(1, 65) as u8;
            Type::decimal(digits, decimal::scale(v))
        }
        Value::Text(text, rule) => {
            Type { collation: *rule, ..Type::text(super::collation::char_count(text, *rule) as u32) }
        }
        Value::Date(_) => Type::DATE,
        Value::DateTime(_, digits) => Type::datetime(*digits),
        Value::Time(_, digits) => Type::time(*digits),
    }
}

/// The type of functions that change the digits behind the point, which depends on the value of their argument.
fn rounded_type(name: &str, arguments: &[Expr], types: &[Type]) -> Option<Type> {
    let operand = *types.first().filter(|ty| ty.kind == kind::NEWDECIMAL)?;
    let (precision, scale) = operand.digits();
    let wanted = match (name, arguments.get(1)) {
        ("CEIL" | "CEILING" | "FLOOR", _) => return Some(Type { nullable: operand.nullable, ..Type::INT }),
        ("ROUND" | "TRUNCATE", Some(Expr::Literal(digits))) => {
            digits.to_i64().clamp(0, i64::from(scale)) as u8
        }
        ("ROUND", None) => 0,
        _ => return None,
    };
    let whole = precision - scale.min(precision) + 1;
    Some(Type { nullable: operand.nullable, ..Type::decimal((whole + wanted).min(65), wanted) })
}

/// The type of arithmetic.
/// Whether comparing with this compares numbers.
fn is_number(ty: Type) -> bool {
    ty.is_integer() || matches!(ty.kind, kind::NEWDECIMAL | kind::DOUBLE | kind::FLOAT)
}

fn arithmetic_type(operator: BinaryOperator, left: Type, right: Type) -> Type {
    use BinaryOperator::*;
    let nullable = left.nullable || right.nullable || matches!(operator, Divide | IntegerDivide | Modulo);
    let number = |ty: Type| match ty.kind {
        kind::DATE => Type::INT,
        kind::DATETIME | kind::TIMESTAMP | kind::TIME if ty.decimals == 0 => Type::INT,
        kind::DATETIME | kind::TIMESTAMP | kind::TIME => Type::decimal(20, ty.decimals),
        kind::NULL => Type::INT,
        _ => ty,
    };
    if operator == Concat {
        return Type { nullable, ..Type::text(left.length.saturating_add(right.length)) };
    }
    let (left, right) = (number(left), number(right));
    let floating = left.is_double() || right.is_double() || left.is_text() || right.is_text();
    let ((p1, s1), (p2, s2)) = (left.digits(), right.digits());
    let unsigned = left.unsigned || right.unsigned;
    let ty = match operator {
        BitOr | BitAnd | BitXor | ShiftLeft | ShiftRight => Type::UINT,
        IntegerDivide => Type { unsigned, ..Type::INT },
        _ if floating => Type::DOUBLE,
        Divide => {
            let scale = (s1 + 4).min(30);
            Type::decimal((p1 + 4 + s2).min(65).max(scale), scale)
        }
        _ if left.is_integer() && right.is_integer() => Type { unsigned, ..Type::INT },
        Multiply => {
            let scale = (s1 + s2).min(30);
            Type::decimal((p1 + p2).min(65).max(scale), scale)
        }
        _ => {
            let scale = s1.max(s2);
            let whole = p1.saturating_sub(s1).max(p2.saturating_sub(s2));
            Type::decimal((whole + scale + 1).min(65), scale)
        }
    };
    Type { nullable, ..ty }
}
