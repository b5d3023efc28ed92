//! Expressions, with MySQL's precedence (lowest first):
//!
//! `OR ||` · `XOR` · `AND &&` · `NOT` · `BETWEEN CASE` · comparisons, `IS LIKE REGEXP IN` · `|` · `&` · `<<
//! >>` · `- +` · `* / DIV % MOD` · `^` · unary `- ~` · `!` · `BINARY COLLATE`.
//!
//! The levels up to the predicates are MySQL's own grammar rules (expr, bool_pri, predicate); those of
//! `bit_expr` are climbed by binding power.

use std::sync::Arc;

use untorn::types::{Charset, Collation};

use super::super::ast::{BinaryOperator, Expr, IntervalUnit, OrderItem, Scope, UnaryOperator};
use super::super::lexer::{Token, TokenKind, bit_value, hex_value, unquote};
use super::temporal::odbc_literal;
use super::window::is_window_function;
use super::{Parsed, Parser, reserved, rows};
use crate::errors;
use crate::expr::ValueSet;
use crate::value::Value;

/// Functions written without parentheses when they have no arguments.
const BARE_FUNCTIONS: &[&str] = &[
    "CURRENT_DATE",
    "CURRENT_TIME",
    "CURRENT_TIMESTAMP",
    "CURRENT_USER",
    "LOCALTIME",
    "LOCALTIMESTAMP",
    "UTC_DATE",
    "UTC_TIME",
    "UTC_TIMESTAMP",
];

/// More reserved words that name functions when a parenthesis follows.
const RESERVED_FUNCTIONS: &[&str] = &[
    "CHAR", "DATABASE", "IF", "INSERT", "LEFT", "MOD", "REPEAT", "REPLACE", "RIGHT", "SCHEMA", "VALUES",
    "INTERVAL",
];

fn is_function_word(word: &str) -> bool {
    RESERVED_FUNCTIONS.contains(&word) || BARE_FUNCTIONS.contains(&word)
}

impl Parser<'_> {
    pub(crate) fn expr(&mut self) -> Parsed<Expr> {
        self.nested(Self::or_expr)
    }

    fn or_expr(&mut self) -> Parsed<Expr> {
        let pipes = !self.modes().pipes_as_concat;
        let more = |parser: &mut Self| parser.accept("OR") || (pipes && parser.accept_symbol(b"||"));
        self.flat(Self::xor_expr, more, Expr::Or)
    }

    /// A chain of one associative operator, as one node.
    fn flat(
        &mut self,
        operand: fn(&mut Self) -> Parsed<Expr>,
        more: impl Fn(&mut Self) -> bool,
        node: fn(Vec<Expr>) -> Expr,
    ) -> Parsed<Expr> {
        let first = operand(self)?;
        if !more(self) {
            return Ok(first);
        }
        let mut list = vec![first, self.beside(operand)?];
        while more(self) {
            list.push(self.beside(operand)?);
        }
        self.grow()?;
        Ok(node(list))
    }

    fn xor_expr(&mut self) -> Parsed<Expr> {
        let mut left = self.and_expr()?;
        while self.accept("XOR") {
            let right = self.beside(Self::and_expr)?;
            self.grow()?;
            left = binary(BinaryOperator::Xor, left, right);
        }
        Ok(left)
    }

    fn and_expr(&mut self) -> Parsed<Expr> {
        self.flat(Self::not_expr, |parser| parser.accept("AND") || parser.accept_symbol(b"&&"), Expr::And)
    }

    fn not_expr(&mut self) -> Parsed<Expr> {
        if !self.modes().high_not_precedence && self.accept("NOT") {
            let operand = self.nested(Self::not_expr)?;
            return Ok(Expr::Unary(UnaryOperator::Not, Box::new(operand)));
        }
        self.boolean_primary()
    }

    /// `bool_pri`: comparisons and IS, all of one level, left-associative.
    fn boolean_primary(&mut self) -> Parsed<Expr> {
        let mut left = self.predicate()?;
        loop {
            if self.accept("IS") {
                self.grow()?;
                let negated = self.accept("NOT");
                let operand = Box::new(left);
                left = if self.accept("NULL") {
                    Expr::IsNull { operand, negated }
                } else if let Some(word) = self.accept_any(&["TRUE", "FALSE", "UNKNOWN"]) {
                    let truth = (word != "UNKNOWN").then_some(word == "TRUE");
                    Expr::IsTruth { operand, truth, negated }
                } else {
                    return Err(self.unexpected());
                };
                continue;
            }
            let Some(operator) = self.comparison() else {
                return Ok(left);
            };
            self.advance();
            if self.is_any_word(&["ANY", "SOME", "ALL"]) && self.peek_is_symbol(b"(") {
                let all = self.is_word("ALL");
                self.advance();
                left = self.quantified(left, operator, all)?;
                self.grow()?;
                continue;
            }
            let mut right = self.beside(Self::predicate)?;
            self.grow()?;
            rows::flattened(&mut left, &mut right);
            left = binary(operator, left, right);
        }
    }

    /// `= ANY (query)` is IN, `<> ALL (query)` is NOT IN.
    fn quantified(&mut self, left: Expr, operator: BinaryOperator, all: bool) -> Parsed<Expr> {
        self.expect_symbol(b"(")?;
        let query = Box::new(self.query()?);
        self.expect_symbol(b")")?;
        match (operator, all) {
            (BinaryOperator::Equal, false) => {
                Ok(Expr::InQuery { operand: Box::new(left), query, negated: false })
            }
            (BinaryOperator::NotEqual, true) => {
                Ok(Expr::InQuery { operand: Box::new(left), query, negated: true })
            }
            (BinaryOperator::NullSafeEqual, _) => Err(self.unexpected()),
            _ => Ok(Expr::Quantified { operator, operand: Box::new(left), query, all }),
        }
    }

    fn comparison(&self) -> Option<BinaryOperator> {
        if self.current.kind != TokenKind::Symbol {
            return None;
        }
        Some(match self.slice() {
            b"=" => BinaryOperator::Equal,
            b"<=>" => BinaryOperator::NullSafeEqual,
            b"<>" | b"!=" => BinaryOperator::NotEqual,
            b"<" => BinaryOperator::Less,
            b"<=" => BinaryOperator::LessEqual,
            b">" => BinaryOperator::Greater,
            b">=" => BinaryOperator::GreaterEqual,
            _ => return None,
        })
    }

    fn predicate(&mut self) -> Parsed<Expr> {
        let left = self.bit_expr(0)?;
        if self.current.kind != TokenKind::Word {
            return Ok(left);
        }
        let follows = ["IN", "BETWEEN", "LIKE", "REGEXP", "RLIKE"];
        let negated = self.is_word("NOT") && follows.iter().any(|word| self.peek_is_word(word));
        if negated {
            self.advance();
        }
        if self.is_word("MEMBER") && (self.peek_is_word("OF") || self.peek_is_symbol(b"(")) {
            self.advance();
            let _ = self.accept("OF");
            self.expect_symbol(b"(")?;
            let document = self.beside(Self::expr)?;
            self.expect_symbol(b")")?;
            self.grow()?;
            return Ok(function("MEMBER OF", vec![left, document]));
        }
        let word = self.accept_any(&["IN", "BETWEEN", "LIKE", "REGEXP", "RLIKE", "SOUNDS"]);
        let Some(word) = word else { return Ok(left) };
        let operand = Box::new(left);
        let predicate = self.beside(|parser| parser.predicate_behind(word, operand, negated))?;
        self.grow()?;
        Ok(predicate)
    }

    fn predicate_behind(&mut self, word: &'static str, operand: Box<Expr>, negated: bool) -> Parsed<Expr> {
        match word {
            "IN" => self.in_predicate(operand, negated),
            "BETWEEN" => {
                let low = Box::new(self.bit_expr(0)?);
                self.expect("AND")?;
                // The upper end is a predicate itself, beside the lower.
                let high = Box::new(self.nested(Self::predicate)?);
                Ok(Expr::Between { operand, low, high, negated })
            }
            "LIKE" => {
                let pattern = Box::new(self.bit_expr(0)?);
                let escape =
                    if self.accept("ESCAPE") { Some(Box::new(self.beside(Self::primary)?)) } else { None };
                Ok(Expr::Like { operand, pattern, escape, negated })
            }
            "SOUNDS" => {
                self.expect("LIKE")?;
                let sound = |operand| function("SOUNDEX", vec![operand]);
                Ok(binary(BinaryOperator::Equal, sound(*operand), sound(self.bit_expr(0)?)))
            }
            _ => Ok(Expr::Regexp { operand, pattern: Box::new(self.bit_expr(0)?), negated }),
        }
    }

    fn in_predicate(&mut self, mut operand: Box<Expr>, negated: bool) -> Parsed<Expr> {
        self.expect_symbol(b"(")?;
        let result = if self.starts_subquery() {
            Expr::InQuery { operand, query: Box::new(self.query()?), negated }
        } else {
            let mut list = self.list(Self::expr)?;
            // `IN ((SELECT …))`: more parentheses do not make it one value.
            if let [Expr::Subquery(_)] = &list[..]
                && let Some(Expr::Subquery(query)) = list.pop()
            {
                self.expect_symbol(b")")?;
                return Ok(Expr::InQuery { operand, query, negated });
            }
            rows::flattened_list(&mut operand, &mut list);
            match constants(list) {
                Ok(constants) => Expr::InConstants { operand, constants: Arc::new(constants), negated },
                Err(list) => Expr::InList { operand, list, negated },
            }
        };
        self.expect_symbol(b")")?;
        Ok(result)
    }

    pub(crate) fn starts_query(&self) -> bool {
        self.is_any_word(&["SELECT", "WITH", "TABLE"])
            || self.is_word("VALUES") && self.peek_is_word("ROW")
            || (self.is_symbol(b"(") && {
                // `((SELECT …) UNION …)`
                let mut lexer = self.lexer.clone_at();
                let mut token = lexer.next_token();
                // More would be nested too deeply anyway.
                for _ in 0..super::DEPTH_MAX {
                    if token.kind != TokenKind::Symbol || lexer.slice(token) != b"(" {
                        break;
                    }
                    token = lexer.next_token();
                }
                let begins = |word: &str| lexer.slice(token).eq_ignore_ascii_case(word.as_bytes());
                token.kind == TokenKind::Word && (begins("SELECT") || begins("WITH"))
            })
    }

    /// Whether all that follows up to the closing parenthesis is a query: `((SELECT …) UNION …)` is,
    /// `((SELECT …) + 1)` is not.
    fn starts_subquery(&self) -> bool {
        self.starts_query() && (!self.is_symbol(b"(") || self.query_goes_on_behind(false))
    }

    /// At a parenthesis: whether what it closes is a part of a query; `or_ends` if another one closes there.
    pub(super) fn query_goes_on_behind(&self, or_ends: bool) -> bool {
        let mut lexer = self.lexer.clone_at();
        let mut depth = 1u32;
        while depth > 0 {
            let token = lexer.next_token();
            match (token.kind, lexer.slice(token)) {
                (TokenKind::End, _) => return false,
                (TokenKind::Symbol, b"(") => depth += 1,
                (TokenKind::Symbol, b")") => depth -= 1,
                _ => {}
            }
        }
        let next = lexer.next_token();
        let word = lexer.slice(next);
        or_ends && next.kind == TokenKind::Symbol && word == b")"
            || next.kind == TokenKind::Word
                && ["UNION", "EXCEPT", "INTERSECT", "ORDER", "LIMIT"]
                    .iter()
                    .any(|goes_on| word.eq_ignore_ascii_case(goes_on.as_bytes()))
    }

    /// Infix operators of `bit_expr` with their binding power.
    fn bit_operator(&self) -> Option<(BinaryOperator, u8)> {
        use BinaryOperator::*;
        match self.current.kind {
            TokenKind::Symbol => Some(match self.slice() {
                b"|" => (BitOr, 1),
                b"&" => (BitAnd, 2),
                b"<<" => (ShiftLeft, 3),
                b">>" => (ShiftRight, 3),
                b"+" => (Add, 4),
                b"-" => (Subtract, 4),
                b"*" => (Multiply, 5),
                b"/" => (Divide, 5),
                b"%" => (Modulo, 5),
                b"^" => (BitXor, 6),
                b"||" if self.modes().pipes_as_concat => (Concat, 7),
                _ => return None,
            }),
            TokenKind::Word if self.is_word("DIV") => Some((IntegerDivide, 5)),
            TokenKind::Word if self.is_word("MOD") => Some((Modulo, 5)),
            _ => None,
        }
    }

    pub(super) fn bit_expr(&mut self, least: u8) -> Parsed<Expr> {
        let mut left = self.unary()?;
        while let Some((operator, power)) = self.bit_operator() {
            if power < least.max(1) {
                break;
            }
            self.advance();
            let right = self.nested(|parser| parser.bit_expr(power + 1))?;
            left = match chained(operator, left, right) {
                Ok(chain) => chain,
                Err(node) => {
                    self.grow()?;
                    node
                }
            };
        }
        Ok(left)
    }

    fn unary(&mut self) -> Parsed<Expr> {
        let operator = match self.current.kind {
            TokenKind::Symbol => match self.slice() {
                b"-" => UnaryOperator::Minus,
                b"+" => UnaryOperator::Plus,
                b"~" => UnaryOperator::BitNot,
                b"!" => UnaryOperator::Not,
                _ => return self.collated(),
            },
            TokenKind::Word if self.is_word("BINARY") => UnaryOperator::Binary,
            TokenKind::Word if self.modes().high_not_precedence && self.is_word("NOT") => UnaryOperator::Not,
            _ => return self.collated(),
        };
        self.advance();
        let operand = self.nested(Self::unary)?;
        Ok(Expr::Unary(operator, Box::new(operand)))
    }

    fn collated(&mut self) -> Parsed<Expr> {
        let mut operand = self.primary()?;
        while self.accept("COLLATE") {
            self.grow()?;
            operand = Expr::Collate { operand: Box::new(operand), collation: self.name_or_text()? };
        }
        Ok(operand)
    }

    /// `simple_expr`.
    pub(crate) fn primary(&mut self) -> Parsed<Expr> {
        let token = self.current;
        match token.kind {
            TokenKind::Integer | TokenKind::Decimal | TokenKind::Float => self.number(),
            TokenKind::Text | TokenKind::NationalText => {
                Ok(Expr::Text { bytes: self.any_text()?, introducer: None })
            }
            TokenKind::Hex | TokenKind::Bits => self.binary_literal(),
            TokenKind::Parameter => {
                self.advance();
                let index = self.parameters;
                self.parameters =
                    index.checked_add(1).ok_or_else(|| errors::unsupported("more than 65535 parameters"))?;
                Ok(Expr::Parameter(index))
            }
            TokenKind::UserVariable => self.user_variable(),
            TokenKind::SystemVariable => self.system_variable(),
            TokenKind::QuotedName => self.column_or_part(),
            TokenKind::Word => self.word_expr(),
            TokenKind::Symbol if self.is_symbol(b"(") => self.parenthesised_expr(),
            TokenKind::Symbol if self.is_symbol(b"{") => {
                // ODBC escape: {d '…'}, {fn …}
                self.advance();
                let kind = self.any_name()?;
                let inner = self.expr()?;
                self.expect_symbol(b"}")?;
                Ok(odbc_literal(&kind, inner))
            }
            _ => Err(self.unexpected()),
        }
    }

    fn any_text(&mut self) -> Parsed<Vec<u8>> {
        if self.current.kind == TokenKind::NationalText {
            let token = self.advance();
            return Ok(unquote(self.token_bytes(token), self.modes()).into_owned());
        }
        self.text()
    }

    fn parenthesised_expr(&mut self) -> Parsed<Expr> {
        self.advance();
        if self.starts_subquery() {
            let query = Box::new(self.nested(Self::query)?);
            self.expect_symbol(b")")?;
            return Ok(Expr::Subquery(query));
        }
        let mut items = self.list(Self::expr)?;
        self.expect_symbol(b")")?;
        match items.pop() {
            Some(only) if items.is_empty() => Ok(only),
            Some(last) => {
                items.push(last);
                Ok(Expr::Row(items))
            }
            None => Err(self.unexpected()),
        }
    }

    fn number(&mut self) -> Parsed<Expr> {
        let token = self.advance();
        let text = String::from_utf8_lossy(self.token_bytes(token)).into_owned();
        Ok(match token.kind {
            TokenKind::Integer => text.parse().map_or(Expr::Decimal(text), Expr::Integer),
            TokenKind::Decimal => Expr::Decimal(text),
            _ => match text.parse() {
                Ok(number) if f64::is_finite(number) => Expr::Float(number),
                _ => return Err(errors::error(errors::ILLEGAL_VALUE_FOR_TYPE, &[&"double", &text])),
            },
        })
    }

    pub(super) fn binary_literal(&mut self) -> Parsed<Expr> {
        let token = self.advance();
        let bytes = self.token_bytes(token);
        let value = if token.kind == TokenKind::Hex { hex_value(bytes) } else { bit_value(bytes) };
        value.map(Expr::Binary).ok_or_else(|| self.unexpected_at(token))
    }

    fn user_variable(&mut self) -> Parsed<Expr> {
        let token = self.advance();
        let name = self.user_variable_name(token)?;
        if self.accept_symbol(b":=") {
            return Ok(Expr::Assign(name, Box::new(self.expr()?)));
        }
        Ok(Expr::UserVariable(name))
    }

    pub(crate) fn user_variable_name(&self, token: Token) -> Parsed<String> {
        let bytes = self.token_bytes(token).get(1..).unwrap_or_default();
        let name = match bytes.first() {
            Some(b'\'' | b'"' | b'`') => unquote(bytes, self.modes()).into_owned(),
            _ => bytes.to_vec(),
        };
        self.utf8(&name).map(|name| name.to_lowercase())
    }

    fn system_variable(&mut self) -> Parsed<Expr> {
        self.advance();
        let (scope, name) = self.system_variable_name()?;
        Ok(Expr::SystemVariable { scope, name })
    }

    /// `[GLOBAL.|SESSION.|LOCAL.]name[.part]` behind `@@`.
    pub(crate) fn system_variable_name(&mut self) -> Parsed<(Option<Scope>, String)> {
        let mut scope = None;
        if self.peek_is_symbol(b".") {
            scope = match self.accept_any(&["GLOBAL", "SESSION", "LOCAL", "PERSIST"]) {
                Some("GLOBAL") => Some(Scope::Global),
                Some("PERSIST") => Some(Scope::Persist),
                Some(_) => Some(Scope::Session),
                None => None,
            };
            if scope.is_some() {
                self.expect_symbol(b".")?;
            }
        }
        let mut name = self.any_name()?;
        while self.accept_symbol(b".") {
            name.push('.');
            name.push_str(&self.any_name()?);
        }
        Ok((scope, name.to_ascii_lowercase()))
    }

    /// `[[database.]table.]column`
    pub(crate) fn column(&mut self) -> Parsed<Expr> {
        let mut parts = vec![self.name()?];
        while parts.len() < 3 && self.is_symbol(b".") {
            self.advance();
            parts.push(self.any_name()?);
        }
        let name = parts.pop().unwrap_or_default();
        let table = parts.pop();
        Ok(Expr::Column { database: parts.pop(), table, name })
    }

    /// A column, or with `-> path` and `->> path` a part of the document in it.
    fn column_or_part(&mut self) -> Parsed<Expr> {
        let column = self.column()?;
        if let Expr::Column { database: None, table: Some(database), name } = &column
            && self.is_symbol(b"(")
        {
            return Err(errors::error(
                errors::SP_DOES_NOT_EXIST,
                &[&"FUNCTION", &format!("{database}.{name}")],
            ));
        }
        let unquoted = self.accept_symbol(b"->>");
        if !unquoted && !self.accept_symbol(b"->") {
            return Ok(column);
        }
        self.grow()?;
        let path = Expr::Text { bytes: self.text()?, introducer: None };
        let part = function("JSON_EXTRACT", vec![column, path]);
        Ok(if unquoted { function("JSON_UNQUOTE", vec![part]) } else { part })
    }

    fn word_expr(&mut self) -> Parsed<Expr> {
        let word = String::from_utf8_lossy(self.slice()).to_ascii_uppercase();
        let call = self.peek_is_symbol(b"(");
        match word.as_str() {
            "NULL" => return self.constant(Expr::Null),
            "TRUE" => return self.constant(Expr::Truth(true)),
            "FALSE" => return self.constant(Expr::Truth(false)),
            "CASE" => return self.nested(Self::case),
            "EXISTS" => {
                self.advance();
                self.expect_symbol(b"(")?;
                let query = Box::new(self.nested(Self::query)?);
                self.expect_symbol(b")")?;
                return Ok(Expr::Exists(query));
            }
            "DEFAULT" => return self.default_value(),
            "INTERVAL" => return self.interval(),
            "NOT" => {
                self.advance();
                let operand = self.nested(Self::unary)?;
                return Ok(Expr::Unary(UnaryOperator::Not, Box::new(operand)));
            }
            "ROW" if call => {
                self.advance();
                return Ok(Expr::Row(self.parenthesised(Self::expr)?));
            }
            "DATE" | "TIME" | "TIMESTAMP" if self.peek().kind == TokenKind::Text => {
                return self.temporal_literal(&word);
            }
            "CAST" | "CONVERT" | "EXTRACT" | "TRIM" | "SUBSTRING" | "SUBSTR" | "MID" | "POSITION"
            | "COUNT" | "GROUP_CONCAT" | "VALUES" | "DATE_ADD" | "ADDDATE" | "DATE_SUB" | "SUBDATE"
            | "TIMESTAMPADD" | "TIMESTAMPDIFF" | "GET_FORMAT" | "CHAR" | "WEIGHT_STRING" | "SUM" | "AVG"
            | "MIN" | "MAX" | "GROUPING" | "JSON_VALUE"
                if call =>
            {
                return self.special_function(&word);
            }
            _ => {}
        }
        if call && is_window_function(&word) {
            return self.window_function(&word);
        }
        if word.starts_with('_') && self.peek().kind != TokenKind::Symbol && self.is_introducer(&word) {
            return self.introduced_text();
        }
        if BARE_FUNCTIONS.contains(&word.as_str()) && !call {
            self.advance();
            return Ok(function(&word, Vec::new()));
        }
        if call && (!reserved::is_reserved(self.slice()) || is_function_word(&word)) {
            let typed = self.advance();
            return self.function_call(&word, typed);
        }
        self.column_or_part()
    }

    fn constant(&mut self, value: Expr) -> Parsed<Expr> {
        self.advance();
        Ok(value)
    }

    fn is_introducer(&self, word: &str) -> bool {
        let next = self.peek().kind;
        matches!(next, TokenKind::Text | TokenKind::Hex | TokenKind::Bits)
            && ["_UTF8MB4", "_UTF8MB3", "_UTF8", "_LATIN1", "_BINARY", "_ASCII", "_UCS2", "_UTF16", "_UTF32"]
                .contains(&word)
    }

    fn introduced_text(&mut self) -> Parsed<Expr> {
        let word = self.advance();
        let introducer =
            String::from_utf8_lossy(self.token_bytes(word).get(1..).unwrap_or_default()).to_ascii_lowercase();
        let bytes = match self.primary()? {
            Expr::Text { bytes, .. } if self.modes().was_latin1 => {
                Charset::Latin1.from_utf8_lossy(&bytes).into_owned()
            }
            Expr::Text { bytes, .. } | Expr::Binary(bytes) => bytes,
            _ => return Err(self.unexpected()),
        };
        Ok(Expr::Text { bytes, introducer: Some(introducer) })
    }

    fn default_value(&mut self) -> Parsed<Expr> {
        self.advance();
        if !self.accept_symbol(b"(") {
            return Ok(Expr::Default(None));
        }
        let column = self.column()?;
        self.expect_symbol(b")")?;
        match column {
            column @ Expr::Column { .. } => Ok(Expr::Default(Some(Box::new(column)))),
            _ => Err(self.unexpected()),
        }
    }

    fn case(&mut self) -> Parsed<Expr> {
        self.advance();
        let operand = if self.is_word("WHEN") { None } else { Some(Box::new(self.expr()?)) };
        let mut whens = Vec::new();
        while self.accept("WHEN") {
            let condition = self.expr()?;
            self.expect("THEN")?;
            whens.push((condition, self.expr()?));
        }
        if whens.is_empty() {
            return Err(self.unexpected());
        }
        let otherwise = if self.accept("ELSE") { Some(Box::new(self.expr()?)) } else { None };
        self.expect("END")?;
        Ok(Expr::Case { operand, whens, otherwise })
    }

    /// `INTERVAL n UNIT`, or the function `INTERVAL(n, a, b, …)`.
    fn interval(&mut self) -> Parsed<Expr> {
        self.advance();
        // The function ends at its parenthesis; an amount may go on behind one.
        if self.is_list()
            && let Expr::Row(items) = self.primary()?
        {
            return Ok(function("INTERVAL", items));
        }
        let amount = self.expr()?;
        let unit = self.interval_unit()?;
        Ok(Expr::Interval { amount: Box::new(amount), unit })
    }

    /// Whether a parenthesis begins here with a comma in it.
    fn is_list(&self) -> bool {
        if !self.is_symbol(b"(") {
            return false;
        }
        let mut lexer = self.lexer.clone_at();
        let mut token = lexer.next_token();
        let query = ["SELECT", "WITH", "TABLE", "VALUES"];
        if query.iter().any(|word| lexer.slice(token).eq_ignore_ascii_case(word.as_bytes())) {
            return false;
        }
        let mut open = 1;
        loop {
            match (token.kind, lexer.slice(token)) {
                (TokenKind::End, _) => return false,
                (TokenKind::Symbol, b"(") => open += 1,
                (TokenKind::Symbol, b")") if open == 1 => return false,
                (TokenKind::Symbol, b")") => open -= 1,
                (TokenKind::Symbol, b",") if open == 1 => return true,
                _ => {}
            }
            token = lexer.next_token();
        }
    }

    pub(crate) fn interval_unit(&mut self) -> Parsed<IntervalUnit> {
        let word = String::from_utf8_lossy(self.slice()).to_ascii_uppercase();
        let unit = match word.as_str() {
            "MICROSECOND" => IntervalUnit::Microsecond,
            "SECOND_MICROSECOND" => IntervalUnit::SecondMicrosecond,
            "MINUTE_MICROSECOND" => IntervalUnit::MinuteMicrosecond,
            "HOUR_MICROSECOND" => IntervalUnit::HourMicrosecond,
            "DAY_MICROSECOND" => IntervalUnit::DayMicrosecond,
            "MINUTE_SECOND" => IntervalUnit::MinuteSecond,
            "HOUR_MINUTE" => IntervalUnit::HourMinute,
            "HOUR_SECOND" => IntervalUnit::HourSecond,
            "DAY_HOUR" => IntervalUnit::DayHour,
            "DAY_MINUTE" => IntervalUnit::DayMinute,
            "DAY_SECOND" => IntervalUnit::DaySecond,
            "YEAR_MONTH" => IntervalUnit::YearMonth,
            _ => return self.simple_unit(),
        };
        self.advance();
        Ok(unit)
    }

    /// A unit of one part.
    pub(crate) fn simple_unit(&mut self) -> Parsed<IntervalUnit> {
        let word = String::from_utf8_lossy(self.slice()).to_ascii_uppercase();
        let named = word.strip_prefix("SQL_TSI_");
        let unit = match named.unwrap_or(&word) {
            "MICROSECOND" if named.is_none() => IntervalUnit::Microsecond,
            "SECOND" => IntervalUnit::Second,
            "MINUTE" => IntervalUnit::Minute,
            "HOUR" => IntervalUnit::Hour,
            "DAY" => IntervalUnit::Day,
            "WEEK" => IntervalUnit::Week,
            "MONTH" => IntervalUnit::Month,
            "QUARTER" => IntervalUnit::Quarter,
            "YEAR" => IntervalUnit::Year,
            _ => return Err(self.unexpected()),
        };
        self.advance();
        Ok(unit)
    }

    pub(crate) fn order_items(&mut self) -> Parsed<Vec<OrderItem>> {
        self.list(|parser| {
            let expr = parser.expr()?;
            let descending = parser.accept("DESC");
            let _ = !descending && parser.accept("ASC");
            Ok(OrderItem { expr, descending })
        })
    }
}

pub(super) fn binary(operator: BinaryOperator, left: Expr, right: Expr) -> Expr {
    Expr::Binary2(operator, Box::new(left), Box::new(right))
}

/// `left operator right` as one more link of the chain that `left` is; `Err` with a node of its own, when
/// that is one level higher than `left`.
///
/// A date with an interval is a node of its own: it becomes a function, not arithmetic.
fn chained(operator: BinaryOperator, left: Expr, right: Expr) -> Result<Expr, Expr> {
    let shift = |expr: &Expr| matches!(expr, Expr::Interval { .. });
    match left {
        Expr::Chain(first, mut links) if !shift(&right) => {
            links.push((operator, right));
            Ok(Expr::Chain(first, links))
        }
        Expr::Binary2(before, first, second)
            if before.is_arithmetic() && !shift(&first) && !shift(&second) && !shift(&right) =>
        {
            Ok(Expr::Chain(first, vec![(before, *second), (operator, right)]))
        }
        left => Err(binary(operator, left, right)),
    }
}

pub(super) fn aggregate(name: &str, arguments: Vec<Expr>, distinct: bool, star: bool) -> Expr {
    Expr::Function { name: name.to_owned(), arguments, distinct, star, order_by: Vec::new(), separator: None }
}

pub(super) fn function(name: &str, arguments: Vec<Expr>) -> Expr {
    aggregate(name, arguments, false, false)
}

/// Constants from this number on are made a set.
const CONSTANTS_MIN: usize = 32;

/// A long list as a set, if all of it are constants of one kind.
fn constants(list: Vec<Expr>) -> Result<ValueSet, Vec<Expr>> {
    let is_integer = |item: &Expr| match item {
        Expr::Integer(_) | Expr::Null => true,
        Expr::Unary(UnaryOperator::Minus, operand) => matches!(**operand, Expr::Integer(..=NEGATIVE_MAX)),
        _ => false,
    };
    let is_text = |item: &Expr| matches!(item, Expr::Text { introducer: None, .. } | Expr::Null);
    if list.len() < CONSTANTS_MIN || !(list.iter().all(is_integer) || list.iter().all(is_text)) {
        return Err(list);
    }
    // As the binder reads them.
    let value = |item: &Expr| match item {
        Expr::Integer(value) => i64::try_from(*value).map_or(Value::UInt(*value), Value::Int),
        Expr::Unary(_, operand) => match **operand {
            Expr::Integer(value) => Value::Int(value.wrapping_neg() as i64),
            _ => Value::Null,
        },
        Expr::Text { bytes, .. } => Value::Text(bytes.clone().into(), Collation::Utf8mb4GeneralCi),
        _ => Value::Null,
    };
    ValueSet::of_constants(list.iter().map(value).collect()).ok_or(list)
}

/// The largest integer whose negative is one of 64 bits.
const NEGATIVE_MAX: u64 = 1 << 63;
