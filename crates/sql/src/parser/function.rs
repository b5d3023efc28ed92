//! Function calls: those with a grammar of their own, aggregates, CAST's types.

use std::fmt::Display;
use std::ops::{Range, RangeInclusive};

use super::super::ast::{BinaryOperator, CastType, Expr, InsteadOfValue, IntervalUnit, JsonValue, TrimSide};
use super::super::expr::functions;
use super::super::lexer::{Token, TokenKind};
use super::expression::{aggregate, binary, function};
use super::window::is_plain_aggregate;
use super::{Parsed, Parser};
use crate::errors;

/// Most digits of a DECIMAL, most of them behind the point, and most bits of a FLOAT.
const PRECISION_MAX: u32 = 65;
const SCALE_MAX: u32 = 30;
const FLOAT_BITS_MAX: u32 = 53;

/// The name of a function of the clock, in errors.
fn clock(name: &str) -> Option<&'static str> {
    Some(match name {
        "NOW" | "CURRENT_TIMESTAMP" | "LOCALTIME" | "LOCALTIMESTAMP" => "now",
        "CURTIME" | "CURRENT_TIME" => "curtime",
        "SYSDATE" => "sysdate",
        "UTC_TIMESTAMP" => "utc_timestamp",
        "UTC_TIME" => "utc_time",
        _ => return None,
    })
}

fn fraction_digits(digits: u64, of: &str) -> Parsed<u8> {
    match digits {
        0..=6 => Ok(digits as u8),
        _ => Err(errors::error(errors::TOO_BIG_PRECISION, &[&digits, &of, &6])),
    }
}

impl Parser<'_> {
    /// Behind the function's name, at `(`.
    pub(super) fn function_call(&mut self, name: &str, typed: Token) -> Parsed<Expr> {
        self.expect_symbol(b"(")?;
        let mut arguments = Vec::new();
        let first = self.current;
        let _ = is_plain_aggregate(name) && self.accept("ALL");
        if !self.is_symbol(b")") {
            arguments = self.list(|parser| parser.argument(name, typed))?;
        }
        if let Some(clock) = clock(name)
            && let [digits] = &arguments[..]
        {
            match digits {
                Expr::Integer(digits) => fraction_digits(*digits, clock).map(drop)?,
                // One of the plan cache.
                Expr::Parameter(_) => {}
                _ => return Err(self.unexpected_at(first)),
            }
        }
        self.expect_symbol(b")")?;
        let refused = |taken: RangeInclusive<usize>| !taken.contains(&arguments.len());
        if functions::arguments_of(name).is_some_and(refused)
            || functions::json::lacks_a_partner(name, arguments.len())
        {
            let typed = String::from_utf8_lossy(self.token_bytes(typed));
            return Err(errors::error(errors::WRONG_PARAMCOUNT_TO_NATIVE_FCT, &[&typed]));
        }
        let call = function(name, arguments);
        if is_plain_aggregate(name) { self.over(call) } else { Ok(call) }
    }

    /// An argument of a function, which has no name there, unlike an item of a SELECT (1583, 1584).
    fn argument(&mut self, function: &str, typed: Token) -> Parsed<Expr> {
        let argument = self.expr()?;
        let named = self.is_word("AS")
            || matches!(self.current.kind, TokenKind::Text | TokenKind::QuotedName)
            || self.current.kind == TokenKind::Word && !super::reserved::is_reserved(self.slice());
        if !named {
            return Ok(argument);
        }
        let typed = String::from_utf8_lossy(self.token_bytes(typed)).to_lowercase();
        Err(match functions::arguments_of(function) {
            Some(_) => errors::error(errors::WRONG_PARAMETERS_TO_NATIVE_FCT, &[&typed]),
            None => self.unexpected(),
        })
    }

    /// Functions whose arguments have a grammar of their own.
    pub(super) fn special_function(&mut self, name: &str) -> Parsed<Expr> {
        self.advance();
        self.expect_symbol(b"(")?;
        let result = match name {
            "CAST" => {
                let start = self.current.start;
                let operand = Box::new(self.expr()?);
                let said = start..self.previous_end;
                self.expect("AS")?;
                Expr::Cast { operand, target: self.cast_type(said)? }
            }
            "CONVERT" => {
                let start = self.current.start;
                let operand = Box::new(self.expr()?);
                let said = start..self.previous_end;
                if self.accept("USING") {
                    Expr::ConvertCharset { operand, charset: self.name_or_text()? }
                } else {
                    self.expect_symbol(b",")?;
                    Expr::Cast { operand, target: self.cast_type(said)? }
                }
            }
            "EXTRACT" => {
                let unit = self.interval_unit()?;
                self.expect("FROM")?;
                Expr::Extract { unit, operand: Box::new(self.expr()?) }
            }
            "JSON_VALUE" => self.json_value()?,
            "TRIM" => self.trim()?,
            "SUBSTRING" | "SUBSTR" | "MID" => self.substring()?,
            "POSITION" => {
                let needle = self.bit_expr(0)?;
                self.expect("IN")?;
                function("LOCATE", vec![needle, self.expr()?])
            }
            "VALUES" => match self.column()? {
                Expr::Column { name, .. } => Expr::InsertedValue(name),
                _ => return Err(self.unexpected()),
            },
            "DATE_ADD" | "ADDDATE" | "DATE_SUB" | "SUBDATE" => self.date_arithmetic(name)?,
            "TIMESTAMPADD" => {
                let unit = self.simple_unit()?;
                self.expect_symbol(b",")?;
                let amount = Box::new(self.expr()?);
                self.expect_symbol(b",")?;
                binary(BinaryOperator::Add, self.expr()?, Expr::Interval { amount, unit })
            }
            "TIMESTAMPDIFF" => {
                let unit = self.simple_unit()?;
                self.expect_symbol(b",")?;
                let from = self.expr()?;
                self.expect_symbol(b",")?;
                let unit = Expr::Interval { amount: Box::new(Expr::Integer(1)), unit };
                function(name, vec![unit, from, self.expr()?])
            }
            "CHAR" => {
                let arguments = self.list(Self::expr)?;
                if self.accept("USING") {
                    let charset = self.name_or_text()?;
                    Expr::ConvertCharset { operand: Box::new(function(name, arguments)), charset }
                } else {
                    function(name, arguments)
                }
            }
            "GROUPING" => function(name, self.list(Self::expr)?),
            "GET_FORMAT" => {
                let kind = self.accept_any(&["DATE", "TIME", "DATETIME", "TIMESTAMP"]);
                let kind = kind.ok_or_else(|| self.unexpected())?;
                self.expect_symbol(b",")?;
                let kind = Expr::Text { bytes: kind.into(), introducer: None };
                function(name, vec![kind, self.expr()?])
            }
            "WEIGHT_STRING" => self.weight_string()?,
            _ => self.aggregate(name)?,
        };
        self.expect_symbol(b")")?;
        let aggregate = matches!(name, "COUNT" | "SUM" | "AVG" | "MIN" | "MAX" | "GROUP_CONCAT");
        if aggregate { self.over(result) } else { Ok(result) }
    }

    pub(super) fn aggregate(&mut self, name: &str) -> Parsed<Expr> {
        if name == "COUNT" && self.accept_symbol(b"*") {
            return Ok(aggregate(name, Vec::new(), false, true));
        }
        let distinct = self.accept("DISTINCT");
        let _ = !distinct && self.accept("ALL");
        let many = name == "GROUP_CONCAT" || (name == "COUNT" && distinct);
        let arguments = if many { self.list(Self::expr)? } else { vec![self.expr()?] };
        let mut result = aggregate(name, arguments, distinct, false);
        if name == "GROUP_CONCAT" {
            let order = if self.accept("ORDER") {
                self.expect("BY")?;
                self.order_items()?
            } else {
                Vec::new()
            };
            let said = if self.accept("SEPARATOR") { Some(self.text()?) } else { None };
            if let Expr::Function { order_by, separator, .. } = &mut result {
                *order_by = order;
                *separator = said;
            }
        }
        Ok(result)
    }

    /// WEIGHT_STRING, behind its parenthesis.
    fn weight_string(&mut self) -> Parsed<Expr> {
        let operand = self.expr()?;
        if self.accept_symbol(b",") {
            let mut arguments = vec![operand, Expr::Integer(self.long_number()?)];
            for _ in 0..2 {
                self.expect_symbol(b",")?;
                arguments.push(Expr::Integer(self.long_number()?));
            }
            return Ok(function("WEIGHT_STRING", arguments));
        }
        if !self.accept("AS") {
            return Ok(function("WEIGHT_STRING", vec![operand]));
        }
        let binary = match self.accept_any(&["CHAR", "CHARACTER", "BINARY"]) {
            Some(kind) => kind == "BINARY",
            None => return Err(self.unexpected()),
        };
        self.expect_symbol(b"(")?;
        let at = self.current;
        let length = self.integer()?;
        if length == 0 {
            return Err(self.unexpected_at(at));
        }
        self.expect_symbol(b")")?;
        let name = if binary { "WEIGHT_STRING AS BINARY" } else { "WEIGHT_STRING AS CHAR" };
        Ok(function(name, vec![operand, Expr::Integer(length)]))
    }

    /// An integer, or a hexadecimal literal as one.
    fn long_number(&mut self) -> Parsed<u64> {
        if self.current.kind != TokenKind::Hex {
            return self.integer();
        }
        let token = self.advance();
        let bytes = super::super::lexer::hex_value(self.token_bytes(token));
        let bytes = bytes.filter(|bytes| bytes.len() <= size_of::<u64>());
        let bytes = bytes.ok_or_else(|| self.unexpected_at(token))?;
        Ok(bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn trim(&mut self) -> Parsed<Expr> {
        let side = match self.accept_any(&["BOTH", "LEADING", "TRAILING"]) {
            Some("LEADING") => Some(TrimSide::Leading),
            Some("TRAILING") => Some(TrimSide::Trailing),
            Some(_) => Some(TrimSide::Both),
            None => None,
        };
        let mut what = None;
        if side.is_none() || !self.is_word("FROM") {
            what = Some(Box::new(self.expr()?));
        }
        if !self.accept("FROM") {
            return match (side, what) {
                (None, Some(operand)) => Ok(Expr::Trim { side: TrimSide::Both, what: None, operand }),
                _ => Err(self.unexpected()),
            };
        }
        Ok(Expr::Trim { side: side.unwrap_or(TrimSide::Both), what, operand: Box::new(self.expr()?) })
    }

    fn substring(&mut self) -> Parsed<Expr> {
        let mut arguments = vec![self.expr()?];
        if self.accept("FROM") {
            arguments.push(self.expr()?);
            if self.accept("FOR") {
                arguments.push(self.expr()?);
            }
        } else {
            self.expect_symbol(b",")?;
            arguments.push(self.expr()?);
            if self.accept_symbol(b",") {
                arguments.push(self.expr()?);
            }
        }
        Ok(function("SUBSTRING", arguments))
    }

    fn date_arithmetic(&mut self, name: &str) -> Parsed<Expr> {
        let date = self.expr()?;
        self.expect_symbol(b",")?;
        let at = self.current;
        let mut amount = self.expr()?;
        if !matches!(amount, Expr::Interval { .. }) {
            if name.starts_with("DATE_") {
                return Err(self.unexpected_at(at));
            }
            amount = Expr::Interval { amount: Box::new(amount), unit: IntervalUnit::Day };
        }
        let add = name == "DATE_ADD" || name == "ADDDATE";
        Ok(binary(if add { BinaryOperator::Add } else { BinaryOperator::Subtract }, date, amount))
    }

    fn optional_length(&mut self) -> Parsed<Option<u32>> {
        if !self.accept_symbol(b"(") {
            return Ok(None);
        }
        let length = self.length_of("cast as char")?;
        self.expect_symbol(b")")?;
        Ok(Some(length))
    }

    /// The digits of a DECIMAL, behind the word; `said` is where the operand stands.
    /// JSON_VALUE, behind its parenthesis.
    fn json_value(&mut self) -> Parsed<Expr> {
        let document = self.expr()?;
        self.expect_symbol(b",")?;
        let start = self.current.start;
        let path = self.expr()?;
        let said = start..self.previous_end;
        let returning = if self.accept("RETURNING") { Some(self.cast_type(said)?) } else { None };
        let mut on = [InsteadOfValue::Null, InsteadOfValue::Null];
        let mut at = 0;
        while at < 2 && self.is_any_word(&["NULL", "ERROR", "DEFAULT"]) {
            let instead = if self.accept("NULL") {
                InsteadOfValue::Null
            } else if self.accept("ERROR") {
                InsteadOfValue::Error
            } else {
                self.expect("DEFAULT")?;
                InsteadOfValue::Default(self.bit_expr(0)?)
            };
            self.expect("ON")?;
            let of_error = at == 1 || !self.is_word("EMPTY");
            self.expect(if of_error { "ERROR" } else { "EMPTY" })?;
            at = if of_error { 2 } else { 1 };
            on[at - 1] = instead;
        }
        let [on_empty, on_error] = on;
        Ok(Expr::JsonValue(Box::new(JsonValue { document, path, returning, on_empty, on_error })))
    }

    fn cast_decimal(&mut self, operand: Range<u32>) -> Parsed<CastType> {
        let mut numbers = Vec::new();
        if self.is_symbol(b"(") {
            numbers = self.parenthesised(Self::small_integer)?;
        }
        let scale = numbers.get(1).copied().unwrap_or(0);
        // No digits at all are as many as if none were said.
        let said = numbers.first().copied().filter(|precision| *precision > 0 || scale > 0);
        let precision = said.unwrap_or(10);
        let text = self.lexer.text().get(operand.start as usize..operand.end as usize).unwrap_or_default();
        let shown = String::from_utf8_lossy(text);
        if precision > PRECISION_MAX {
            return Err(errors::error(errors::TOO_BIG_PRECISION, &[&precision, &shown, &PRECISION_MAX]));
        }
        if scale > precision {
            return Err(errors::error(errors::M_BIGGER_THAN_D, &[&""]));
        }
        if scale > SCALE_MAX {
            return Err(errors::error(errors::TOO_BIG_SCALE, &[&scale, &shown, &SCALE_MAX]));
        }
        Ok(CastType::Decimal { precision: precision as u8, scale: scale as u8 })
    }

    /// Digits of a second.
    fn fraction(&mut self) -> Parsed<u8> {
        fraction_digits(self.optional_length()?.unwrap_or(0).into(), "CAST")
    }

    /// A character set, and whether the word BINARY stands before or behind it: that means its `_bin`
    /// collation, not bytes.
    fn cast_charset(&mut self) -> Parsed<(Option<String>, bool)> {
        let before = self.accept("BINARY");
        let charset = if self.accept_all(&["CHARACTER", "SET"]) || self.accept("CHARSET") {
            Some(self.name_or_text()?.to_ascii_lowercase())
        } else if self.accept("ASCII") {
            Some("latin1".into())
        } else if self.accept("UNICODE") {
            Some("ucs2".into())
        } else {
            None
        };
        Ok((charset, before || self.accept("BINARY")))
    }

    fn cast_type(&mut self, said: Range<u32>) -> Parsed<CastType> {
        let word = String::from_utf8_lossy(self.slice()).to_ascii_uppercase();
        let at = self.advance();
        Ok(match word.as_str() {
            "SIGNED" | "UNSIGNED" => {
                let _ = self.accept_any(&["INTEGER", "INT"]);
                if word == "SIGNED" { CastType::Signed } else { CastType::Unsigned }
            }
            "CHAR" | "CHARACTER" | "NCHAR" | "NATIONAL" => {
                if word == "NATIONAL" && self.accept_any(&["CHAR", "CHARACTER"]).is_none() {
                    return Err(self.unexpected());
                }
                let length = self.optional_length()?;
                if self.accept("BYTE") {
                    return Ok(CastType::Binary { length });
                }
                let (charset, bin) = self.cast_charset()?;
                match charset.as_deref() {
                    Some("binary") => CastType::Binary { length },
                    _ => CastType::Char { length, charset, bin },
                }
            }
            "BINARY" => CastType::Binary { length: self.optional_length()? },
            "DECIMAL" | "DEC" | "NUMERIC" => self.cast_decimal(said)?,
            "REAL" if self.modes().real_as_float => CastType::Float,
            "DOUBLE" | "REAL" => {
                let _ = self.accept("PRECISION");
                CastType::Double
            }
            "FLOAT" => match self.optional_length()? {
                Some(bits) if bits > FLOAT_BITS_MAX => {
                    let said = [&bits as &dyn Display, &"CAST", &FLOAT_BITS_MAX];
                    return Err(errors::error(errors::TOO_BIG_PRECISION, &said));
                }
                Some(bits) if bits > 24 => CastType::Double,
                _ => CastType::Float,
            },
            "DATE" => CastType::Date,
            "DATETIME" => CastType::DateTime { fraction: self.fraction()? },
            "TIME" => CastType::Time { fraction: self.fraction()? },
            "YEAR" => CastType::Year,
            "JSON" => CastType::Json,
            _ => return Err(self.unexpected_at(at)),
        })
    }
}
