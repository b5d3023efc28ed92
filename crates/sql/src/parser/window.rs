//! Window functions: their calls, OVER, WINDOW and frames.

use super::expression::function;
use super::{Parsed, Parser};
use crate::ast::{Expr, Frame, FrameBound, FrameUnit, Over, WindowSpec};
use crate::errors;
use crate::lexer::TokenKind;

/// Functions that are of a window only.
const WINDOW_FUNCTIONS: &[&str] = &[
    "CUME_DIST",
    "DENSE_RANK",
    "FIRST_VALUE",
    "LAG",
    "LAST_VALUE",
    "LEAD",
    "NTH_VALUE",
    "NTILE",
    "PERCENT_RANK",
    "RANK",
    "ROW_NUMBER",
];

/// Aggregates that are written like other functions.
const AGGREGATES: &[&str] = &[
    "BIT_AND",
    "BIT_OR",
    "BIT_XOR",
    "JSON_ARRAYAGG",
    "JSON_OBJECTAGG",
    "STD",
    "STDDEV",
    "STDDEV_POP",
    "STDDEV_SAMP",
    "VARIANCE",
    "VAR_POP",
    "VAR_SAMP",
];

/// Whether this is a function of windows only.
pub(super) fn is_window_function(name: &str) -> bool {
    WINDOW_FUNCTIONS.contains(&name)
}

/// Whether an aggregate of this name is written like any other function.
pub(super) fn is_plain_aggregate(name: &str) -> bool {
    AGGREGATES.contains(&name)
}

impl Parser<'_> {
    /// `OVER …` behind an aggregate, if it is there.
    pub(super) fn over(&mut self, call: Expr) -> Parsed<Expr> {
        if !self.accept("OVER") {
            return Ok(call);
        }
        self.grow()?;
        let over = match self.is_symbol(b"(") {
            true => Over::Own(Box::new(self.window_spec()?)),
            false => Over::Named(self.name()?),
        };
        Ok(Expr::Window { call: Box::new(call), over })
    }

    /// A call of a function that needs a window.
    pub(super) fn window_function(&mut self, name: &str) -> Parsed<Expr> {
        self.advance();
        self.expect_symbol(b"(")?;
        let mut arguments = Vec::new();
        match name {
            "NTILE" => arguments.push(self.limit_value()?),
            "FIRST_VALUE" | "LAST_VALUE" => arguments.push(self.expr()?),
            "NTH_VALUE" => {
                arguments.push(self.expr()?);
                self.expect_symbol(b",")?;
                arguments.push(if self.accept("NULL") { Expr::Null } else { self.limit_value()? });
            }
            "LAG" | "LEAD" => {
                arguments.push(self.expr()?);
                if self.accept_symbol(b",") {
                    arguments.push(self.limit_value()?);
                }
                if arguments.len() == 2 && self.accept_symbol(b",") {
                    arguments.push(self.expr()?);
                }
            }
            _ => {}
        }
        self.expect_symbol(b")")?;
        if name == "NTH_VALUE" && self.accept("FROM") {
            if self.is_word("LAST") {
                return Err(errors::unsupported("FROM LAST"));
            }
            self.expect("FIRST")?;
        }
        if self.accept_all(&["IGNORE", "NULLS"]) {
            return Err(errors::unsupported("IGNORE NULLS"));
        }
        let _ = self.accept_all(&["RESPECT", "NULLS"]);
        if !self.is_word("OVER") {
            return Err(self.unexpected());
        }
        self.over(function(name, arguments))
    }

    /// `WINDOW w AS (…), …`
    pub(super) fn named_windows(&mut self) -> Parsed<Vec<(String, WindowSpec)>> {
        self.list(|parser| {
            let name = parser.name()?;
            parser.expect("AS")?;
            Ok((name, parser.window_spec()?))
        })
    }

    fn window_spec(&mut self) -> Parsed<WindowSpec> {
        self.expect_symbol(b"(")?;
        let mut spec = WindowSpec::default();
        let named = matches!(self.current.kind, TokenKind::Word | TokenKind::QuotedName);
        if named && !self.is_any_word(&["PARTITION", "ORDER", "ROWS", "RANGE", "GROUPS"]) {
            spec.base = Some(self.name()?);
        }
        if self.accept("PARTITION") {
            self.expect("BY")?;
            spec.partition_by = self.list(Self::expr)?;
        }
        if self.accept("ORDER") {
            self.expect("BY")?;
            spec.order_by = self.order_items()?;
        }
        if let Some(word) = self.accept_any(&["ROWS", "RANGE", "GROUPS"]) {
            spec.frame = Some(self.frame(word)?);
        }
        self.expect_symbol(b")")?;
        Ok(spec)
    }

    fn frame(&mut self, word: &str) -> Parsed<Frame> {
        let unit = if word == "RANGE" { FrameUnit::Range } else { FrameUnit::Rows };
        let (start, end) = if self.accept("BETWEEN") {
            let start = self.frame_bound(false)?;
            self.expect("AND")?;
            (start, self.frame_bound(false)?)
        } else {
            (self.frame_bound(true)?, FrameBound::CurrentRow)
        };
        if word == "GROUPS" || self.is_word("EXCLUDE") {
            return Err(errors::unsupported(if word == "GROUPS" { "GROUPS" } else { "EXCLUDE" }));
        }
        Ok(Frame { unit, start, end })
    }

    /// An end of a frame; one that stands alone is the start, which cannot be behind the row.
    fn frame_bound(&mut self, alone: bool) -> Parsed<FrameBound> {
        if self.accept("UNBOUNDED") {
            if self.accept("PRECEDING") {
                return Ok(FrameBound::UnboundedPreceding);
            }
            return self.following(alone, FrameBound::UnboundedFollowing);
        }
        if self.accept("CURRENT") {
            self.expect("ROW")?;
            return Ok(FrameBound::CurrentRow);
        }
        let offset = match self.current.kind {
            TokenKind::Integer | TokenKind::Decimal | TokenKind::Float | TokenKind::Parameter => {
                self.primary()?
            }
            TokenKind::Word if self.is_word("INTERVAL") => self.primary()?,
            _ => return Err(self.unexpected()),
        };
        if self.accept("PRECEDING") {
            return Ok(FrameBound::Preceding(offset));
        }
        self.following(alone, FrameBound::Following(offset))
    }

    fn following(&mut self, alone: bool, bound: FrameBound) -> Parsed<FrameBound> {
        if alone {
            return Err(self.unexpected());
        }
        self.expect("FOLLOWING")?;
        Ok(bound)
    }
}
