//! Operators, LIKE, CASE and shifts of dates, with the types of their results.

use untorn::types::Collation;

use super::beside_numbers::beside_numbers;
use super::beside_texts::{beside_texts, clock_beside};
use super::beside_years::{beside_year, year_of_moment};
use super::chosen_texts::chosen_texts;
use super::coercion::{
    as_part, as_shown, as_text, beside_exact, beside_moment, is_number, may_be_number, of_days, with_sign_of,
};
use super::common_type::chosen;
use super::large_integers::{beside_text, constants_as_doubles};
use super::{Binder, Bound, coercion, collation, value_type};
use crate::ast::text::symbol;
use crate::ast::{self, BinaryOperator, UnaryOperator};
use crate::errors;
use crate::expr::types::{Derivation, Type};
use crate::expr::{Expr, arithmetic, functions};
use crate::plan::TextOfDay;
use crate::result::{SqlError, kind};
use crate::sql_mode;
use crate::value::{BigDecimal, Value};

/// What REGEXP is as a function.
const REGEXP: &str = "REGEXP_LIKE";

/// GREATEST or LEAST, which among texts is a text in MySQL.
fn is_extreme(expr: &Expr) -> bool {
    matches!(expr, Expr::Call(function, _) if matches!(function.name, "GREATEST" | "LEAST"))
}

impl Binder<'_, '_> {
    pub(super) fn unary(&mut self, operator: UnaryOperator, operand: &ast::Expr) -> Result<Bound, SqlError> {
        let mut operand = self.bind(operand)?;
        if operator == UnaryOperator::BitNot && has_bits_of_bytes(&operand) {
            let (operand, ty) = operand;
            let made = Type { nullable: ty.nullable, ..Type::bytes(ty.length) };
            return Ok((Expr::Call(&functions::BYTES_NOT, vec![operand]), made));
        }
        if matches!(operator, UnaryOperator::Minus | UnaryOperator::BitNot | UnaryOperator::Not) {
            operand = self.as_number(operand);
        }
        let (operand, ty) = operand;
        let of = ty;
        Ok(match operator {
            UnaryOperator::Plus => (operand, ty),
            UnaryOperator::Minus => match operand {
                // Fold, so that `-5` is a constant to the access paths.
                Expr::Literal(value) if !value.is_null() => {
                    let value = match value {
                        // What is no BIGINT is exact.
                        Value::Int(i64::MIN) => Value::Decimal(BigDecimal::from(i64::MIN.unsigned_abs())),
                        Value::UInt(v) if v > i64::MIN.unsigned_abs() => Value::Decimal(-BigDecimal::from(v)),
                        value => arithmetic::negate(value)?.into_owned(),
                    };
                    // Back in the range of BIGINT.
                    let value = match value {
                        Value::Decimal(number) if number == i64::MIN => Value::Int(i64::MIN),
                        value => value,
                    };
                    let mut ty = value_type(&value).not_null();
                    ty.length = ty.length.max(1);
                    if of.is_temporal() {
                        ty.decimals = of.decimals;
                    }
                    (Expr::Literal(value), ty)
                }
                operand => {
                    let double = Type { nullable: ty.nullable, ..Type::DOUBLE };
                    let ty = match ty.kind {
                        kind::JSON => double,
                        _ if ty.is_text() => Type::DOUBLE,
                        _ if ty.is_temporal() => Type { decimals: ty.decimals, ..double },
                        // The least of a small type has no counterpart in it.
                        _ if ty.is_integer() => Type { unsigned: false, kind: kind::LONGLONG, ..ty },
                        _ => Type { unsigned: false, ..ty },
                    };
                    (Expr::Negate(Box::new(operand)), ty)
                }
            },
            UnaryOperator::BitNot => (Expr::BitNot(Box::new(operand)), Type::UINT),
            UnaryOperator::Not => (Expr::Not(Box::new(operand)), Type::BOOL),
            UnaryOperator::Binary => {
                let bytes = Type { derivation: Derivation::Implicit, ..Type::bytes(ty.length) };
                (Expr::Collate(Box::new(operand), Collation::Binary), bytes)
            }
        })
    }

    pub(super) fn binary(
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
        if operator == Xor {
            let (left, right) = (self.condition(left)?, self.condition(right)?);
            return Ok((Expr::Xor(Box::new(left), Box::new(right)), Type::BOOL));
        }
        let (left, right) = match (left, right) {
            (ast::Expr::Row(one), ast::Expr::Row(other))
                if one.len() == other.len() && !operator.is_arithmetic() =>
            {
                self.rows_beside(operator, one, other)?
            }
            _ => {
                let said = (left, right);
                let (left, right) = match (left, right) {
                    (ast::Expr::Row(row), ast::Expr::Subquery(query)) => {
                        (self.bind(left)?, self.only_row(query, row.len())?)
                    }
                    (ast::Expr::Subquery(query), ast::Expr::Row(row)) => {
                        (self.only_row(query, row.len())?, self.bind(right)?)
                    }
                    (ast::Expr::Subquery(query), _) if !operator.is_arithmetic() => {
                        self.only_row_beside(query, right)?
                    }
                    _ => (self.bind(left)?, self.bind(right)?),
                };
                match said {
                    (ast::Expr::Parameter(_), ast::Expr::Parameter(_)) => {}
                    (ast::Expr::Parameter(index), _) => {
                        self.planner.state.parameters.note_beside(*index, right.1)
                    }
                    (_, ast::Expr::Parameter(index)) => {
                        self.planner.state.parameters.note_beside(*index, left.1)
                    }
                    _ => {}
                }
                if operator.is_arithmetic() {
                    return self.arithmetic(operator, left, right);
                }
                self.note_text_of_day(&left, &right)?;
                self.beside(operator, said, left, right)?
            }
        };
        let ty = if operator == NullSafeEqual { Type::BOOL.not_null() } else { Type::BOOL };
        Ok((Expr::Compare(operator, Box::new(left.0), Box::new(right.0)), ty))
    }

    /// The only row of a subquery, and what it is compared with: another one, if it has several columns.
    fn only_row_beside(&mut self, query: &ast::Query, other: &ast::Expr) -> Result<(Bound, Bound), SqlError> {
        let mut parts = self.only_row_in_parts(query)?;
        if parts.len() == 1 {
            return Ok((parts.remove(0), self.bind(other)?));
        }
        let ast::Expr::Subquery(query) = other else {
            return Err(errors::error(errors::OPERAND_COLUMNS, &[&parts.len()]));
        };
        let other = self.only_row(query, parts.len())?;
        let row = Expr::Row(parts.into_iter().map(|(part, _)| part).collect());
        Ok(((row, Type::NULL), (other.0, Type::NULL)))
    }

    /// Notes a constant text that is compared with a day or moment.
    pub(super) fn note_text_of_day(&self, left: &Bound, right: &Bound) -> Result<(), SqlError> {
        for ((said, day), (text, ty)) in [(left, right), (right, left)] {
            let kind = match day.kind {
                kind::DATE => "DATE",
                kind::DATETIME => "DATETIME",
                kind::TIMESTAMP => "TIMESTAMP",
                _ => continue,
            };
            // What a client sends is taken, as MySQL does. So is what is known only at execution, of which
            // MySQL refuses some.
            let length = match text {
                Expr::Literal(Value::Text(text, _)) => text.len(),
                Expr::Parameter(_) if self.is_lifted() => 0,
                _ => continue,
            };
            if ty.is_text() && !is_extreme(said) {
                let column =
                    self.source_column(said).and_then(|(source, at)| source.columns.get(usize::from(at)));
                let column = column.map(|column| column.name.clone());
                let length = length + column.as_ref().map_or(0, String::len);
                self.planner.expand(1, size_of::<TextOfDay>() + length)?;
                self.planner.texts_of_days.borrow_mut().push(TextOfDay { text: text.clone(), kind, column });
            }
        }
        Ok(())
    }

    /// Two rows of the same length, each element as it is compared with the one at its place.
    fn rows_beside(
        &mut self,
        operator: BinaryOperator,
        one: &[ast::Expr],
        other: &[ast::Expr],
    ) -> Result<(Bound, Bound), SqlError> {
        let (mut left, mut right) = (Vec::with_capacity(one.len()), Vec::with_capacity(other.len()));
        for pair in one.iter().zip(other) {
            let (one, other) = match pair {
                (ast::Expr::Row(one), ast::Expr::Row(other)) if one.len() == other.len() => {
                    self.rows_beside(operator, one, other)?
                }
                (one, other) => {
                    let bound = (self.bind(one)?, self.bind(other)?);
                    self.note_parameter(one, [bound.1.1].into_iter());
                    self.note_parameter(other, [bound.0.1].into_iter());
                    self.note_text_of_day(&bound.0, &bound.1)?;
                    self.beside(operator, (one, other), bound.0, bound.1)?
                }
            };
            left.push(one.0);
            right.push(other.0);
        }
        Ok(((Expr::Row(left), Type::NULL), (Expr::Row(right), Type::NULL)))
    }

    /// Two operands as they are compared with each other: as documents, numbers, moments, or texts of one
    /// collation.
    pub(super) fn beside(
        &mut self,
        operator: BinaryOperator,
        said: (&ast::Expr, &ast::Expr),
        mut left: Bound,
        mut right: Bound,
    ) -> Result<(Bound, Bound), SqlError> {
        let types = (left.1, right.1);
        (left, right) = (year_of_moment(types.1, left), year_of_moment(types.0, right));
        if left.1.kind == kind::JSON || right.1.kind == kind::JSON {
            (left, right) = (as_part(said.0, left), as_part(said.1, right));
        } else if is_number(left.1) || is_number(right.1) {
            (left, right) = (self.as_number(left), self.as_number(right));
            let types = (left.1, right.1);
            [left, right] = beside_exact([beside_year(types.1, left), beside_year(types.0, right)]);
            [left, right] = constants_as_doubles([left, right]);
            (left, right) = beside_numbers(self.is_lifted(), left, right);
        }
        right = clock_beside(&left, right);
        left = clock_beside(&right, left);
        let types = (left.1, right.1);
        (left, right) = (beside_moment(types.1, left), beside_moment(types.0, right));
        (left, right) = chosen_texts(left, right);
        (left, right) = beside_texts(self.is_lifted(), operator, left, right);
        if left.1.is_text() && right.1.is_text() && left.1.collation != right.1.collation {
            let operands = self.comparable(symbol(operator), vec![left, right])?;
            let [one, other] = <[Bound; 2]>::try_from(operands)
                .map_err(|_| errors::error(errors::INTERNAL_ERROR, &[&"two operands are not two"]))?;
            (left, right) = (one, other);
        }
        Ok((left, right))
    }

    /// `left operator right`, as one more link where `left` is arithmetic already.
    pub(super) fn arithmetic(
        &self,
        operator: BinaryOperator,
        mut left: Bound,
        mut right: Bound,
    ) -> Result<Bound, SqlError> {
        if let Some(function) = of_bytes(operator, &left, &right) {
            let length = left.1.length.max(if operator.is_shift() { 0 } else { right.1.length });
            let ty = Type { nullable: left.1.nullable || right.1.nullable, ..Type::bytes(length) };
            if operator.is_shift() {
                right = self.as_number(right);
            }
            return Ok((Expr::Call(function, vec![left.0, right.0]), ty));
        }
        if operator != BinaryOperator::Concat {
            (left, right) = match of_integers(operator) {
                true => (self.as_number(left), self.as_number(right)),
                false => (self.as_operand(left), self.as_operand(right)),
            };
        } else if left.1.is_text() && right.1.is_text() {
            let both = <[Bound; 2]>::try_from(collation::joinable(vec![left, right])?);
            let Ok([first, second]) = both else { unreachable!("as many texts as before") };
            (left, right) = (first, second);
        }
        let division_digits = self.planner.state.settings().div_precision_increment;
        let mut ty = arithmetic_type(operator, left.1, right.1, division_digits);
        let mode = self.planner.state.settings().sql_mode;
        if operator == BinaryOperator::Subtract && mode & sql_mode::NO_UNSIGNED_SUBTRACTION != 0 {
            ty.unsigned = false;
        }
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
        let of_numbers = operator == BinaryOperator::Concat && !left.1.is_text() && !right.1.is_text();
        Ok(if of_numbers { self.in_connection((expr, ty)) } else { (expr, ty) })
    }

    /// The operands of a chain of AND or OR, those of the same chains inside it among them.
    pub(super) fn flat(
        &mut self,
        list: &[ast::Expr],
        open: fn(Expr) -> Result<Vec<Expr>, Expr>,
    ) -> Result<Vec<Expr>, SqlError> {
        let mut flat = self.planner.elsewhere(Vec::with_capacity(list.len()));
        for operand in list {
            match open(self.condition(operand)?) {
                Ok(inner) => flat.extend(inner),
                Err(single) => flat.push(single),
            }
        }
        Ok(flat.into_inner())
    }

    pub(super) fn date_shift(
        &mut self,
        date: &ast::Expr,
        amount: &ast::Expr,
        unit: ast::IntervalUnit,
        subtract: bool,
    ) -> Result<Bound, SqlError> {
        let (date, ty) = of_days(self.bind(date)?);
        let mut amount = self.bind(amount)?;
        if unit.is_single() {
            amount = self.as_number(amount);
        }
        let (amount, amount_type) = amount;
        let (amount, fraction) = (Box::new(amount), functions::interval_type_digits(amount_type, unit));
        let result = match ty.kind {
            kind::DATE if !functions::finer_than_day(unit) => Type::DATE,
            kind::DATE => Type::datetime(fraction),
            kind::DATETIME | kind::TIMESTAMP => Type::datetime(ty.decimals.max(fraction)),
            kind::TIME if functions::is_of_clock(unit) => Type::time(ty.decimals.max(fraction)),
            kind::TIME => Type::datetime(ty.decimals.max(fraction)),
            _ => Type::text(29),
        };
        Ok(self.in_connection((Expr::DateShift { date: Box::new(date), amount, unit, subtract }, result)))
    }

    pub(super) fn like(
        &mut self,
        operand: &ast::Expr,
        pattern: &ast::Expr,
        escape: Option<&ast::Expr>,
        negated: bool,
    ) -> Result<Bound, SqlError> {
        let (operand, pattern) = (as_shown(self.bind(operand)?), as_shown(self.bind(pattern)?));
        let operands = vec![self.filled(operand), self.filled(pattern)];
        let [operand, pattern] = <[Bound; 2]>::try_from(self.comparable("like", operands)?)
            .map_err(|_| errors::error(errors::INTERNAL_ERROR, &[&"two operands are not two"]))?;
        let (operand, pattern) = (Box::new(operand.0), Box::new(pattern.0));
        let escape = match escape {
            Some(escape) => self.bind(escape)?.0,
            // Where a backslash is a letter like any other there is none.
            None => Expr::Literal(Value::text(if self.has_escapes() { "\\" } else { "" })),
        };
        Ok((Expr::Like { operand, pattern, escape: Box::new(escape), negated }, Type::BOOL))
    }

    fn has_escapes(&self) -> bool {
        self.planner.state.settings().sql_mode & sql_mode::NO_BACKSLASH_ESCAPES == 0
    }

    pub(super) fn regexp(
        &mut self,
        operand: &ast::Expr,
        pattern: &ast::Expr,
        negated: bool,
    ) -> Result<Bound, SqlError> {
        let operand = self.bind(operand)?;
        let operands = vec![self.filled(as_shown(operand)), self.bind(pattern)?];
        let operands = self.together(REGEXP, operands)?.into_iter().map(|(expr, _)| expr).collect();
        let Some(function) = functions::find(REGEXP) else {
            return Err(errors::error(errors::INTERNAL_ERROR, &[&"a function without code"]));
        };
        let call = Expr::Call(function, operands);
        Ok((if negated { Expr::Not(Box::new(call)) } else { call }, Type::BOOL))
    }

    /// What CASE compares, and what with: texts in one collation, beside which dates and documents are texts,
    /// too.
    fn case_under_one(&self, operand: Bound, whens: Vec<Bound>) -> Result<(Bound, Vec<Bound>), SqlError> {
        if !collation::counts(operand.1) {
            return Ok((operand, whens));
        }
        let whens = whens.into_iter().map(|when| self.as_own_text(as_text(when)));
        let operands = std::iter::once(operand).chain(whens).collect();
        let mut operands = collation::under_one("case", operands)?.into_iter();
        let operand = operands.next().unwrap_or((Expr::Literal(Value::Null), Type::NULL));
        Ok((operand, operands.collect()))
    }

    pub(super) fn case(
        &mut self,
        operand: Option<&ast::Expr>,
        whens: &[(ast::Expr, ast::Expr)],
        otherwise: Option<&ast::Expr>,
    ) -> Result<Bound, SqlError> {
        let mut conditions = Vec::with_capacity(whens.len());
        let said = operand;
        let mut operand = match operand {
            Some(operand) => {
                for (condition, _) in whens {
                    conditions.push(self.bind(condition)?);
                }
                Some(self.bind(operand)?)
            }
            None => None,
        };
        if let (Some(said), Some(bound)) = (said, operand.take()) {
            self.note_parameter(said, conditions.iter().map(|(_, ty)| *ty));
            whens.iter().for_each(|(when, _)| self.note_parameter(when, [bound.1].into_iter()));
            let (number, text) = (is_number(bound.1), collation::counts(bound.1));
            let whens = conditions.into_iter().map(|when| beside_text(text, when));
            conditions = whens.map(|when| if number { self.as_number(when) } else { when }).collect();
            let (bound, all) = self.case_under_one(bound, conditions)?;
            (operand, conditions) = (Some(bound), all);
        }
        if let Some((_, ty)) = operand {
            conditions = conditions.into_iter().map(|when| with_sign_of(ty, when)).collect();
        }
        let numbers = conditions.iter().filter(|(_, ty)| is_number(*ty)).count();
        operand = match operand {
            // Unlike `=`, CASE compares a document as a double with numbers, and as its text with texts.
            Some(mut document) if document.1.kind == kind::JSON && !document.0.has_volatile() => {
                for (condition, ty) in &mut conditions {
                    let again = (document.0.share(), document.1);
                    let left = match ty.kind {
                        kind::JSON => again.0,
                        _ if is_number(*ty) => Expr::Cast(Box::new(again.0), ast::CastType::Double),
                        _ => as_text(again).0,
                    };
                    let right = std::mem::replace(condition, Expr::Literal(Value::Null));
                    *condition = Expr::Compare(BinaryOperator::Equal, Box::new(left), Box::new(right));
                }
                None
            }
            Some(bound) if bound.1.kind == kind::BIT || numbers == conditions.len() => {
                Some(self.as_number(bound))
            }
            // Compared as a number with some and as a text with others.
            Some(bound) if numbers > 0 && may_be_number(&bound) => {
                let number = self.as_number(bound.clone()).0;
                for (condition, ty) in &mut conditions {
                    let left = if is_number(*ty) { number.clone() } else { bound.0.clone() };
                    let right = std::mem::replace(condition, Expr::Literal(Value::Null));
                    *condition = Expr::Compare(BinaryOperator::Equal, Box::new(left), Box::new(right));
                }
                None
            }
            bound => bound,
        };
        let operand = operand.map(|(operand, _)| Box::new(operand));
        let mut conditions = conditions.into_iter();
        let (mut bound, mut types) = (Vec::with_capacity(whens.len()), Vec::with_capacity(whens.len()));
        let mut ty = Type::NULL;
        for (condition, result) in whens {
            let condition = match conditions.next() {
                Some((condition, _)) => condition,
                None => {
                    let condition = self.bind(condition)?;
                    self.chooser(condition)
                }
            };
            let (result, result_type) = self.bind(result)?;
            ty = if bound.is_empty() { result_type } else { ty.union(result_type) };
            bound.push((condition, result));
            types.push(result_type);
        }
        let said_otherwise = otherwise.is_some();
        let (otherwise, else_type) = match otherwise {
            Some(otherwise) => self.bind(otherwise)?,
            None => (Expr::Literal(Value::Null), Type::NULL),
        };
        let results: Vec<Type> = types.iter().copied().chain(said_otherwise.then_some(else_type)).collect();
        collation::check_explicit("case", &results)?;
        let ty = ty.union(else_type);
        let whens = bound.into_iter().zip(types);
        let whens = whens.map(|((when, then), of)| Ok((when, chosen((then, of), ty)?)));
        let whens = whens.collect::<Result<_, SqlError>>()?;
        let otherwise = Box::new(chosen((otherwise, else_type), ty)?);
        Ok((Expr::Case { operand, whens, otherwise }, coercion::chosen_among(&results, ty)))
    }
}

/// Whether an operator makes integers of its operands.
fn of_integers(operator: BinaryOperator) -> bool {
    use BinaryOperator::{BitAnd, BitOr, BitXor, IntegerDivide, ShiftLeft, ShiftRight};
    matches!(operator, BitAnd | BitOr | BitXor | ShiftLeft | ShiftRight | IntegerDivide)
}

/// Whether this is a binary string, and no literal that is a number beside numbers.
pub(super) fn has_bits_of_bytes((expr, ty): &Bound) -> bool {
    is_bytes(ty) && !(ty.unsigned && matches!(expr, Expr::Literal(_)))
}

fn is_bytes(ty: &Type) -> bool {
    let text = ty.is_text() && !matches!(ty.kind, kind::BIT | kind::ENUM | kind::SET);
    text && ty.collation == Collation::Binary
}

/// The bit operator of binary strings, where both operands are such (of a shift the left one).
fn of_bytes(operator: BinaryOperator, left: &Bound, right: &Bound) -> Option<&'static functions::Function> {
    use BinaryOperator::{BitAnd, BitOr, BitXor, ShiftLeft, ShiftRight};
    let function = match operator {
        BitAnd => &functions::BYTES_AND,
        BitOr => &functions::BYTES_OR,
        BitXor => &functions::BYTES_XOR,
        ShiftLeft => &functions::BYTES_LEFT,
        ShiftRight => &functions::BYTES_RIGHT,
        _ => return None,
    };
    let of_bytes = match operator {
        ShiftLeft | ShiftRight => has_bits_of_bytes(left),
        _ => {
            let both = is_bytes(&left.1) && is_bytes(&right.1);
            both && (has_bits_of_bytes(left) || has_bits_of_bytes(right))
        }
    };
    of_bytes.then_some(function)
}

pub(super) fn open_and(expr: Expr) -> Result<Vec<Expr>, Expr> {
    match expr {
        Expr::And(list) => Ok(list),
        other => Err(other),
    }
}

pub(super) fn open_or(expr: Expr) -> Result<Vec<Expr>, Expr> {
    match expr {
        Expr::Or(list) => Ok(list),
        other => Err(other),
    }
}

/// The type of arithmetic.
/// Digits behind the point that a number is shown with; 31 where they are not fixed.
fn shown_digits(ty: Type) -> u8 {
    if ty.is_double() || ty.kind == kind::NEWDECIMAL {
        ty.decimals
    } else if ty.is_integer() {
        0
    } else {
        31
    }
}

pub(super) fn arithmetic_type(
    operator: BinaryOperator,
    left: Type,
    right: Type,
    division_digits: u8,
) -> Type {
    use BinaryOperator::*;
    let nullable = left.nullable || right.nullable || matches!(operator, Divide | IntegerDivide | Modulo);
    let number = |ty: Type| match ty.kind {
        kind::DATE => Type::INT,
        kind::DATETIME | kind::TIMESTAMP | kind::TIME if ty.decimals == 0 => Type::INT,
        kind::DATETIME | kind::TIMESTAMP | kind::TIME => Type::decimal(20, ty.decimals),
        kind::NULL if operator == IntegerDivide => Type::INT,
        // As in MySQL: it might be any number.
        kind::NULL => Type { decimals: 0, ..Type::DOUBLE },
        _ => ty,
    };
    if operator == Concat {
        let rule = match (left.is_text(), right.is_text()) {
            (true, true) => crate::value::collation::common(left.collation, right.collation),
            (true, false) => left.collation,
            (false, true) => right.collation,
            (false, false) => Collation::Utf8mb4GeneralCi,
        };
        let length = left.length.saturating_add(right.length);
        let derivation = left.derivation.min(right.derivation);
        return Type { nullable, collation: rule, derivation, ..Type::text(length) };
    }
    let (left, right) = (number(left), number(right));
    let floating = left.is_double() || right.is_double() || left.is_text() || right.is_text();
    let ((p1, s1), (p2, s2)) = (left.digits(), right.digits());
    let unsigned = left.unsigned || right.unsigned;
    let ty = match operator {
        BitOr | BitAnd | BitXor | ShiftLeft | ShiftRight => Type::UINT,
        IntegerDivide => Type { unsigned, ..Type::INT },
        _ if floating => {
            let (a, b) = (shown_digits(left), shown_digits(right));
            let decimals = match operator {
                Multiply => a.saturating_add(b),
                Divide => a.max(b).saturating_add(division_digits),
                _ => a.max(b),
            };
            Type { decimals: decimals.min(31), ..Type::DOUBLE }
        }
        Divide => {
            let scale = (s1 + division_digits).min(30);
            Type::decimal((p1 + division_digits + s2).min(65).max(scale), scale)
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
