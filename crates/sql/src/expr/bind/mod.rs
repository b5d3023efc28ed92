//! From syntax to bound expressions: names are resolved against the sources of the query, aggregates are
//! collected, subqueries are planned, types are inferred.

mod beside_numbers;
mod beside_texts;
mod beside_years;
mod cast;
mod chosen_texts;
mod coercion;
pub mod collation;
pub mod common_type;
mod function_types;
mod in_list;
mod json_value;
mod large_integers;
mod lists_of_moments;
mod literals;
mod members;
mod names;
mod operators;
mod own_text;
pub mod scope;
mod subqueries;
pub mod window;

use std::collections::HashSet;
use std::ops::Range;

use untorn::types::Collation;

use super::functions;
use super::rollup::GROUPING_ARGUMENTS_MAX;
use super::select_list::SelectList;
use super::types::{Derivation, Type};
use super::{Context, Expr, NODE_BYTES};
use crate::ast;
use crate::errors;
use crate::plan::aggregate::{Aggregate, AggregateKind};
use crate::plan::source::Source;
use crate::plan::window::WindowCall;
use crate::plan::with::Around;
use crate::plan::{Planner, SelectPlan};
use crate::privilege::Privileges;
use crate::result::{SqlError, kind};
use crate::value::Value;
use coercion::as_shown;
pub(crate) use coercion::{is_number as is_type_of_numbers, literal_as_number};
use collation::collated;
use common_type::{chosen, conversion, converted, in_variable};
use function_types::{null_by_type, type_of_call, with_six_digits};
pub use literals::value_type;
use literals::{decimal_literal, integer_literal, temporal_value};
pub use names::InsertedAs;
use operators::{open_and, open_or};
use scope::aggregates::Moving;

/// A bound expression with its type.
pub type Bound = (Expr, Type);

/// What a column's name is looked for in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// The tables, then the select list where there is one.
    Tables,
    /// The select list, then the tables: a name that ORDER BY has for itself.
    SelectList,
    /// The select list, unless the tables have another column of that name: a name that GROUP BY has for
    /// itself.
    Group,
    /// HAVING: the columns that are grouped by and the select list, and nothing else of the tables.
    Having,
    /// ORDER BY of several SELECTs: the columns of the result, which belong to no table.
    Whole,
}

/// Binds the expressions of one query.
pub struct Binder<'p, 'a> {
    /// The planner of the statement.
    pub planner: &'p Planner<'a>,
    /// Where columns may come from.
    pub sources: &'p [Source],
    /// Only these sources are visible (join conditions).
    pub visible: Range<usize>,
    /// Aggregates found so far.
    pub aggregates: Vec<Aggregate>,
    /// Whether aggregates are allowed where we are.
    pub aggregates_allowed: bool,
    /// In the argument of an aggregate.
    pub in_aggregate: bool,
    /// A name stood for an entry of the select list.
    pub reads_alias: bool,
    /// Whether window functions are allowed where we are.
    pub windows_allowed: bool,
    /// WINDOW.
    pub named_windows: &'p [(String, ast::WindowSpec)],
    /// Window functions found so far.
    pub windows: Vec<WindowCall>,
    /// GROUPING has been found.
    pub asks_grouping: bool,
    /// Subqueries found so far.
    pub subqueries: Vec<SelectPlan>,
    /// The select list, for GROUP BY, HAVING and ORDER BY.
    pub select_list: SelectList,
    /// The select list is not whole yet: only subqueries see the names that it gives.
    pub in_select_list: bool,
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
    /// The name of the row that was to be inserted, and its columns.
    pub inserted_as: Option<InsertedAs<'p>>,
    /// The queries and common tables around this one.
    pub around: Around<'p>,
    /// What a column that is named is named for.
    pub privilege: Privileges,
    /// The query is the subquery of an EXISTS: its `*` reads no columns.
    pub of_existence: bool,
    /// The query is that of a view.
    pub of_view: bool,
    /// A table's definition keeps the expression: it means the same in every session.
    pub is_kept: bool,
}

impl<'p, 'a> Binder<'p, 'a> {
    /// A binder that sees all of `sources`.
    pub fn new(planner: &'p Planner<'a>, sources: &'p [Source]) -> Self {
        Self {
            planner,
            sources,
            visible: 0..sources.len(),
            aggregates: Vec::new(),
            aggregates_allowed: false,
            in_aggregate: false,
            reads_alias: false,
            windows_allowed: false,
            named_windows: &[],
            windows: Vec::new(),
            asks_grouping: false,
            subqueries: Vec::new(),
            select_list: SelectList::empty(),
            in_select_list: false,
            selected: HashSet::new(),
            grouped: HashSet::new(),
            rule: NameRule::Tables,
            clause: "field list",
            inserted: None,
            inserted_as: None,
            around: Around::default(),
            privilege: Privileges::SELECT,
            of_existence: false,
            of_view: false,
            is_kept: false,
        }
    }

    /// Binds one expression.
    pub fn bind(&mut self, expr: &ast::Expr) -> Result<Bound, SqlError> {
        self.planner.work(NODE_BYTES)?;
        Ok(match expr {
            ast::Expr::Null => (Expr::Literal(Value::Null), Type::NULL),
            ast::Expr::Integer(value) => integer_literal(*value),
            ast::Expr::Truth(truth) => integer_literal(u64::from(*truth)),
            ast::Expr::Decimal(text) => decimal_literal(text),
            ast::Expr::Float(value) => (Expr::Literal(Value::Double(*value)), Type::DOUBLE.not_null()),
            ast::Expr::Text { bytes, introducer } => self.text(bytes, introducer.as_deref())?,
            ast::Expr::Binary(bytes) => (
                Expr::Literal(Value::Text(bytes.clone().into(), Collation::Binary)),
                // Unsigned: a number where one is wanted.
                Type { unsigned: true, ..Type::bytes(bytes.len() as u32) }.not_null(),
            ),
            ast::Expr::Temporal { kind, text } => temporal_value(*kind, text, self.planner.state)?,
            ast::Expr::Column { database, table, name } => {
                self.column(database.as_deref(), table.as_deref(), name)?
            }
            ast::Expr::Parameter(index) => (Expr::Parameter(*index), self.planner.parameter_type(*index)),
            ast::Expr::UserVariable(name) => self.user_variable(name),
            ast::Expr::Assign(name, value) => {
                let (value, ty) = in_variable(self.bind(value)?);
                (Expr::Assign(name.clone(), Box::new(value)), ty)
            }
            ast::Expr::SystemVariable { scope, name } => {
                let ty = value_type(&self.planner.state.system_variable(name, *scope)?);
                (Expr::SystemVariable { scope: *scope, name: name.clone() }, ty)
            }
            ast::Expr::InsertedValue(name) => self.inserted_value(name)?,
            ast::Expr::Default(Some(column)) => self.default_of(column)?,
            ast::Expr::Default(None) => return Err(errors::unsupported("DEFAULT here")),
            ast::Expr::Unary(operator, operand) => self.unary(*operator, operand)?,
            ast::Expr::And(list) => (Expr::And(self.flat(list, open_and)?), Type::BOOL),
            ast::Expr::Or(list) => (Expr::Or(self.flat(list, open_or)?), Type::BOOL),
            ast::Expr::Binary2(operator, left, right) => self.binary(*operator, left, right)?,
            ast::Expr::Chain(first, links) => self.chain(first, links)?,
            ast::Expr::IsNull { operand, negated } => {
                (Expr::IsNull(Box::new(self.bind(operand)?.0), *negated), Type::BOOL.not_null())
            }
            ast::Expr::IsTruth { operand, truth, negated } => {
                let operand = Box::new(self.condition(operand)?);
                (Expr::IsTruth { operand, truth: *truth, negated: *negated }, Type::BOOL.not_null())
            }
            ast::Expr::Between { operand, low, high, negated } => {
                let said = [&**operand, &**low, &**high];
                let operands = vec![self.bind(operand)?, self.bind(low)?, self.bind(high)?];
                self.note_among(&said, &operands);
                let [operand, low, high] = <[Bound; 3]>::try_from(self.comparable("between", operands)?)
                    .map_err(|_| errors::error(errors::INTERNAL_ERROR, &[&"three are not three"]))?
                    .map(|(expr, _)| Box::new(expr));
                (Expr::Between { operand, low, high, negated: *negated }, Type::BOOL)
            }
            ast::Expr::InList { operand, list, negated } => {
                (self.in_list(operand, list, *negated)?, Type::BOOL)
            }
            ast::Expr::InConstants { operand, constants, negated } => {
                (self.in_constants(operand, constants, *negated)?, Type::BOOL)
            }
            ast::Expr::InQuery { operand, query, negated } => self.in_query(operand, query, *negated)?,
            ast::Expr::Quantified { operator, operand, query, all } => {
                self.quantified(*operator, operand, query, *all)?
            }
            ast::Expr::Like { operand, pattern, escape, negated } => {
                self.like(operand, pattern, escape.as_deref(), *negated)?
            }
            ast::Expr::Regexp { operand, pattern, negated } => self.regexp(operand, pattern, *negated)?,
            ast::Expr::Case { operand, whens, otherwise } => {
                self.case(operand.as_deref(), whens, otherwise.as_deref())?
            }
            ast::Expr::Function { .. } => self.function(expr)?,
            ast::Expr::Window { call, over } => self.window(call, over)?,
            ast::Expr::Cast { operand, target } => self.cast(operand, target)?,
            ast::Expr::ConvertCharset { operand, charset } => {
                let operand = self.bind(operand)?;
                let rule = self.planner.charset_collation(charset)?;
                collated(collation::checked(operand, rule), rule, Derivation::Implicit)
            }
            ast::Expr::Collate { operand, collation } => self.collate(operand, collation)?,
            ast::Expr::Interval { .. } => return Err(errors::error(errors::PARSE_ERROR, &[&"INTERVAL", &1])),
            ast::Expr::JsonValue(call) => self.json_value(call)?,
            ast::Expr::Extract { unit, operand } => {
                (Expr::Extract(*unit, Box::new(coercion::of_days(self.bind(operand)?).0)), Type::INT)
            }
            ast::Expr::Trim { side, what, operand } => self.trim(*side, what.as_deref(), operand)?,
            ast::Expr::Subquery(query) => self.only_row(query, 1)?,
            ast::Expr::Exists(query) => {
                let index = self.subquery(query, None, true)?.0;
                self.limit_subquery(index, 1);
                (Expr::Exists(index), Type::BOOL.not_null())
            }
            ast::Expr::Row(items) => (Expr::Row(self.list(items)?), Type::NULL),
        })
    }

    fn user_variable(&self, name: &str) -> Bound {
        let ty = self.planner.user_variable_type(name);
        let derivation = ty.derivation.min(Derivation::Connection);
        (Expr::UserVariable(name.to_owned()), Type { derivation, ..ty })
    }

    fn chain(
        &mut self,
        first: &ast::Expr,
        links: &[(ast::BinaryOperator, ast::Expr)],
    ) -> Result<Bound, SqlError> {
        let mut chain = self.bind(first)?;
        for (operator, operand) in links {
            let operand = self.bind(operand)?;
            chain = self.arithmetic(*operator, chain, operand)?;
        }
        Ok(chain)
    }

    fn trim(
        &mut self,
        side: ast::TrimSide,
        what: Option<&ast::Expr>,
        operand: &ast::Expr,
    ) -> Result<Bound, SqlError> {
        let what = match what {
            Some(what) => Some(Box::new(self.bind(what)?.0)),
            None => None,
        };
        let (operand, ty) = self.bind(operand)?;
        let rule = if ty.is_text() { ty.collation } else { Collation::Utf8mb4GeneralCi };
        let trimmed = (
            Expr::Trim { side, what, operand: Box::new(operand) },
            Type { collation: rule, derivation: ty.derivation, ..Type::text(ty.length) },
        );
        Ok(if ty.is_text() { trimmed } else { self.in_connection(trimmed) })
    }

    fn list(&mut self, list: &[ast::Expr]) -> Result<Vec<Expr>, SqlError> {
        let mut bound = self.planner.elsewhere(Vec::with_capacity(list.len()));
        for item in list {
            bound.push(self.bind(item)?.0);
        }
        Ok(bound.into_inner())
    }

    /// Whether parameters are the literals of a statement that keeps its plan.
    fn is_lifted(&self) -> bool {
        !self.planner.parameter_types.is_empty()
    }

    fn bound_list(&mut self, list: &[ast::Expr]) -> Result<Vec<Bound>, SqlError> {
        let mut bound = self.planner.elsewhere(Vec::with_capacity(list.len()));
        for item in list {
            bound.push(self.bind(item)?);
        }
        Ok(bound.into_inner())
    }

    fn function(&mut self, call: &ast::Expr) -> Result<Bound, SqlError> {
        let ast::Expr::Function { name, arguments, distinct, star, order_by, separator } = call else {
            return Err(errors::error(errors::UNKNOWN_ERROR, &[&"not a function"]));
        };
        if let Some(aggregate) = AggregateKind::of_name(name) {
            return self.aggregate(aggregate, arguments, *distinct, *star, order_by, separator.as_deref());
        }
        if name == "GROUPING" {
            return self.grouping(arguments);
        }
        if name == "TIMESTAMPDIFF"
            && let [ast::Expr::Interval { unit, .. }, from, to] = &arguments[..]
        {
            return self.timestamp_diff(*unit, from, to);
        }
        let Some(taken) = functions::arguments_of(name) else {
            // It might be a stored function, if there were a database to have it.
            let Some(database) = self.planner.state.current_database() else {
                return Err(errors::error(errors::NO_DB, &[]));
            };
            let shown = format!("{database}.{}", name.to_ascii_lowercase());
            return Err(errors::error(errors::SP_DOES_NOT_EXIST, &[&"FUNCTION", &shown]));
        };
        // The parser has checked the functions it knows; this protects the evaluation, which indexes.
        if !taken.contains(&arguments.len()) {
            return Err(errors::error(errors::WRONG_PARAMCOUNT_TO_NATIVE_FCT, &[&name]));
        }
        match (name.as_str(), &arguments[..]) {
            ("NAME_CONST", [called, value]) => return self.name_const(called, value),
            ("COERCIBILITY", [argument]) => return self.coercibility(argument),
            ("ANY_VALUE", [argument]) => return self.any_value(argument),
            _ => {}
        }
        if let Some(bound) = self.otherwise_called(name, arguments)? {
            return Ok(bound);
        }
        let mut bound = self.planner.elsewhere(Vec::with_capacity(arguments.len()));
        let (mut types, mut of_bytes) = (Vec::with_capacity(arguments.len()), false);
        for (at, argument) in arguments.iter().enumerate() {
            let mut bound_argument = self.bind(argument)?;
            if functions::json::takes_value(name, at) {
                bound_argument = coercion::as_part(argument, bound_argument);
            }
            of_bytes |= name == "BIT_COUNT" && operators::has_bits_of_bytes(&bound_argument);
            let (expr, ty) = coercion::argument(self, name, at, bound_argument);
            bound.push(expr);
            types.push(ty);
        }
        self.note_arguments(name, arguments, &types);
        let first = types.first().copied().unwrap_or(Type::NULL);
        let arguments = bound.into_inner().into_iter().zip(types).collect();
        let (mut bound, types): (Vec<_>, Vec<_>) = self.together(name, arguments)?.into_iter().unzip();
        let united = types.iter().copied().reduce(Type::union).unwrap_or(Type::NULL);
        match (name.as_str(), bound.len()) {
            ("COALESCE" | "IFNULL" | "NVL", _) => {
                let nullable = types.iter().all(|ty| ty.nullable);
                let bound = bound.into_iter().zip(types).map(|bound| chosen(bound, united));
                return Ok((Expr::Coalesce(bound.collect::<Result<_, _>>()?), Type { nullable, ..united }));
            }
            ("NULLIF", 2) => return Ok(self.null_if(bound, [types[0], types[1]], first)),
            ("IF", 3) => {
                let ty = types[1].union(types[2]);
                let otherwise = Box::new(chosen((bound.remove(2), types[2]), ty)?);
                let when = self.chooser((bound.remove(0), types[0]));
                let whens = vec![(when, chosen((bound.remove(0), types[1]), ty)?)];
                let ty = coercion::chosen_among(&types[1..], ty);
                return Ok((Expr::Case { operand: None, whens, otherwise }, ty));
            }
            _ => {}
        }
        let found = if of_bytes { Some(&functions::BYTES_COUNT) } else { functions::find(name) };
        let Some(function) = found else {
            return Err(errors::error(errors::INTERNAL_ERROR, &[&"a function without code"]));
        };
        let function = functions::of_row(function, &bound);
        if function.name == "RAND"
            && let Some(seed) = bound.pop()
        {
            let constant = seed.visit(&mut |inner| inner.may_be_constant());
            let seed = Box::new(seed);
            return Ok((Expr::Random { seed, constant }, Type::DOUBLE.not_null()));
        }
        let of_values = type_of_call(function.name, &bound, &types, self.planner.state);
        let ty = of_values.unwrap_or_else(|| (function.result)(&types));
        bound = members::each_of_elt(function.name, bound, &types, ty);
        let chooses = matches!(function.name, "GREATEST" | "LEAST");
        let whole = matches!(function.name, "CEIL" | "CEILING" | "FLOOR") && ty.kind == kind::NEWDECIMAL;
        let from = types.iter().copied().find(|of| chooses && conversion(*of, ty).is_some());
        let ty = collation::as_meant(function, ty, &bound, &types)?;
        null_by_type(function.name, &mut bound, &types);
        let call = with_six_digits(Expr::Call(function, bound), &types, ty);
        let result = match from {
            Some(from) => (converted((call, from), ty), ty),
            None if whole => {
                (Expr::Cast(Box::new(call), ast::CastType::Decimal { precision: 65, scale: 0 }), ty)
            }
            None => (call, ty),
        };
        Ok(self.own_text(function, result, &types))
    }

    fn name_const(&mut self, called: &ast::Expr, value: &ast::Expr) -> Result<Bound, SqlError> {
        let literal = match value {
            ast::Expr::Collate { operand, .. } => operand,
            value => value,
        };
        if !called.is_literal() || !literal.is_literal() {
            return Err(errors::error(errors::WRONG_ARGUMENTS, &[&"NAME_CONST"]));
        }
        self.bind(value)
    }

    /// ANY_VALUE: an expression that may read columns where the rows are groups. It reads the group's first
    /// row, as a column without it does.
    fn any_value(&mut self, argument: &ast::Expr) -> Result<Bound, SqlError> {
        let (expr, ty) = self.bind(argument)?;
        Ok((Expr::Call(&functions::ANY_VALUE, vec![expr]), ty))
    }

    fn timestamp_diff(
        &mut self,
        unit: ast::IntervalUnit,
        from: &ast::Expr,
        to: &ast::Expr,
    ) -> Result<Bound, SqlError> {
        let (from, to) = (coercion::of_days(self.bind(from)?), coercion::of_days(self.bind(to)?));
        Ok((Expr::TimestampDiff(unit, Box::new(from.0), Box::new(to.0)), Type::INT))
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
        let allowed = self.aggregates_allowed;
        if !allowed && self.around.outer.is_none_or(|outer| !outer.may_take_aggregates()) {
            return Err(errors::error(errors::INVALID_GROUP_FUNC_USE, &[]));
        }
        let first = self.subqueries.len();
        self.aggregates_allowed = false;
        let in_aggregate = std::mem::replace(&mut self.in_aggregate, true);
        let windows_allowed = std::mem::take(&mut self.windows_allowed);
        let alias_before = std::mem::take(&mut self.reads_alias);
        let aggregate = self.aggregate_of(kind, arguments, (distinct, star), order_by, separator)?;
        self.aggregates_allowed = allowed;
        self.in_aggregate = in_aggregate;
        self.windows_allowed = windows_allowed;
        // An entry of the select list that reads anything is its own query's.
        let reads_alias = std::mem::replace(&mut self.reads_alias, alias_before);
        let subqueries = self.subqueries.split_off(first);
        let moving = Moving { planner: self.planner, aggregate, subqueries, first };
        if !reads_alias
            && let (Some(outer), Some(reads)) = (self.around.outer, moving.reads()?)
            && !(in_aggregate && reads.is_empty())
            && let Some(level) = outer.level_of_aggregate(&reads, allowed)?
        {
            return outer.take_aggregate(moving, level);
        }
        if !allowed {
            return Err(errors::error(errors::INVALID_GROUP_FUNC_USE, &[]));
        }
        let Moving { aggregate, subqueries, .. } = moving;
        self.subqueries.extend(subqueries);
        let ty = aggregate.ty;
        let at = self.known_aggregate(&aggregate)?.unwrap_or(self.aggregates.len());
        if at == self.aggregates.len() {
            self.aggregates.push(aggregate);
        }
        Ok((Expr::Aggregate(number_of(at)?), ty))
    }

    /// The number of an aggregate that is there already: an ORDER BY may say again what is selected. What has
    /// another value each time is never the same.
    fn known_aggregate(&self, aggregate: &Aggregate) -> Result<Option<usize>, SqlError> {
        self.planner.work(self.aggregates.len() * NODE_BYTES)?;
        let Some(at) = self.aggregates.iter().position(|other| other == aggregate) else { return Ok(None) };
        let orders = aggregate.order.iter().map(|(expr, _)| expr);
        let mut parts = aggregate.arguments.iter().chain(orders);
        let stays = parts.all(|part| part.visit(&mut |inner| !inner.is_volatile() && self.planner.walk()));
        self.planner.outcome()?;
        Ok(stays.then_some(at))
    }

    /// An aggregate, also of a window.
    fn aggregate_of(
        &mut self,
        kind: AggregateKind,
        arguments: &[ast::Expr],
        (distinct, star): (bool, bool),
        order_by: &[ast::OrderItem],
        separator: Option<&[u8]>,
    ) -> Result<Aggregate, SqlError> {
        // Aggregates are of the rows of the tables.
        let rule = std::mem::replace(&mut self.rule, NameRule::Tables);
        let mut bound = Vec::new();
        let mut types = Vec::new();
        let wanted = if kind == AggregateKind::JsonObject { 2 } else { 1 };
        let of_documents = matches!(kind, AggregateKind::JsonArray | AggregateKind::JsonObject);
        if of_documents && (star || arguments.len() != wanted) {
            return Err(errors::error(
                errors::WRONG_PARAMCOUNT_TO_NATIVE_FCT,
                &[&if wanted == 2 { "JSON_OBJECTAGG" } else { "JSON_ARRAYAGG" }],
            ));
        }
        for (at, said) in arguments.iter().enumerate() {
            let mut argument = self.bind(said)?;
            argument = match kind {
                AggregateKind::JsonArray => coercion::as_part(said, argument),
                AggregateKind::JsonObject if at == 1 => coercion::as_part(said, argument),
                AggregateKind::JsonObject => argument,
                AggregateKind::Count | AggregateKind::Min | AggregateKind::Max => argument,
                AggregateKind::BitAnd | AggregateKind::BitOr | AggregateKind::BitXor
                    if operators::has_bits_of_bytes(&argument) =>
                {
                    return Err(errors::unsupported("BIT_AND, BIT_OR and BIT_XOR of binary strings"));
                }
                AggregateKind::GroupConcat => as_shown(argument),
                AggregateKind::BitAnd | AggregateKind::BitOr | AggregateKind::BitXor => {
                    self.as_number(argument)
                }
                _ => self.as_operand(argument),
            };
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
                        .ok_or_else(|| self.planner.unknown_column(number, "order clause"))?
                }
                expr => self.condition(expr)?,
            };
            order.push((expr, item.descending));
        }
        if distinct && order.is_empty() && kind == AggregateKind::GroupConcat {
            // MySQL's distinct values come sorted.
            order = bound.iter_mut().map(|argument| (argument.share(), false)).collect();
        }
        self.rule = rule;
        let division_digits = self.planner.state.settings().div_precision_increment;
        let mut ty = kind.result_type(types.first().copied(), division_digits);
        if kind == AggregateKind::GroupConcat {
            let texts: Vec<Bound> = bound.into_iter().zip(types).map(coercion::as_text).collect();
            let types: Vec<Type> = texts.iter().map(|(_, ty)| *ty).collect();
            collation::check_explicit("group_concat", &types)?;
            (bound, ty) = self.concatenated(texts, ty)?;
        }
        Ok(Aggregate {
            kind,
            arguments: if star { Vec::new() } else { bound },
            distinct,
            order,
            separator: separator.unwrap_or(b",").to_vec(),
            ty,
        })
    }

    /// `GROUPING(…)`: what it names is found when GROUP BY is known ([`crate::expr::rollup`]).
    fn grouping(&mut self, arguments: &[ast::Expr]) -> Result<Bound, SqlError> {
        if !self.aggregates_allowed {
            return Err(errors::error(errors::INVALID_GROUP_FUNC_USE, &[]));
        }
        let (count, most) = (arguments.len(), GROUPING_ARGUMENTS_MAX);
        if count > most {
            return Err(errors::error(errors::TOO_MANY_FUNCTION_ARGUMENTS, &[&"GROUPING", &count, &most]));
        }
        self.asks_grouping = true;
        let arguments = self.list(arguments)?;
        if arguments.iter().any(|argument| argument.visit(&mut |inner| inner.may_be_constant())) {
            return Err(errors::error(errors::WRONG_ARGUMENTS, &[&"GROUPING function"]));
        }
        Ok((Expr::Grouping(arguments), Type { length: 21, ..Type::INT }))
    }

    /// Evaluates an expression that must be a constant now.
    pub fn constant(&mut self, expr: &ast::Expr) -> Result<Value<'static>, SqlError> {
        let (bound, _) = self.bind(expr)?;
        self.constant_value(&bound)
    }

    /// The value of an expression without columns that is stored in a column of this type.
    ///
    /// # Errors
    /// As [`Binder::constant`].
    pub fn constant_for(&mut self, expr: &ast::Expr, column: Type) -> Result<Value<'static>, SqlError> {
        let bound = self.stored(expr, column)?;
        self.constant_value(&bound)
    }

    fn constant_value(&self, bound: &Expr) -> Result<Value<'static>, SqlError> {
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
