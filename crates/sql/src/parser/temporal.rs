//! `DATE '…'`, `TIME '…'`, `TIMESTAMP '…'` and their forms of ODBC.
//!
//! What they may say is checked here, and not where they are bound: what the catalog keeps may be older than
//! the rule, and has the meaning that it had ([`crate::lexer::LexicalModes::is_kept`]).

use super::{Parsed, Parser};
use crate::ast::{Expr, TemporalKind};
use crate::value::temporal_literal::{read, wrong};

impl Parser<'_> {
    /// At the word before the text.
    pub(super) fn temporal_literal(&mut self, word: &str) -> Parsed<Expr> {
        self.advance();
        let kind = match word {
            "DATE" => TemporalKind::Date,
            "TIME" => TemporalKind::Time,
            _ => TemporalKind::DateTime,
        };
        let text = self.text()?;
        if !self.modes().is_kept && read(kind, &text).is_none() {
            return Err(wrong(kind, &text));
        }
        Ok(Expr::Temporal { kind, text })
    }
}

/// `{d '…'}`: a text where it says no day.
pub(super) fn odbc_literal(kind: &str, inner: Expr) -> Expr {
    let kind = match kind.to_ascii_lowercase().as_str() {
        "d" => TemporalKind::Date,
        "t" => TemporalKind::Time,
        "ts" => TemporalKind::DateTime,
        _ => return inner,
    };
    match inner {
        Expr::Text { bytes, .. } if read(kind, &bytes).is_some() => Expr::Temporal { kind, text: bytes },
        other => other,
    }
}
