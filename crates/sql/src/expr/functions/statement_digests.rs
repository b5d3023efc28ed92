//! STATEMENT_DIGEST and STATEMENT_DIGEST_TEXT: a statement without its values ([`crate::digest`]).
//!
//! The argument has to be a statement. One that this server knows and refuses has a digest all the same, and
//! so has a long one, which nobody reads to its end here.

use sha2::{Digest, Sha256};
use untorn::types::Collation;

use super::{Function, TextOf, function, owned_text};
use crate::context::SqlContext;
use crate::digest::{self, Shape};
use crate::errors;
use crate::expr::types::Type;
use crate::expr::{Context, Evaluated};
use crate::lexer::LexicalModes;
use crate::parser;
use crate::result::SqlError;
use crate::value::Value;

/// The functions.
pub(super) static FUNCTIONS: &[Function] = &[
    function!("STATEMENT_DIGEST", 1..=1, |_| Type::text(64), |v, cx| {
        let digits = |byte: &u8| [byte >> 4, byte & 15].map(|four| b"0123456789abcdef"[usize::from(four)]);
        of_statement(v, cx, |text| Sha256::digest(text.as_bytes()).iter().flat_map(digits).collect())
    })
    .with_text_of(TextOf::Connection),
    function!("STATEMENT_DIGEST_TEXT", 1..=1, |_| Type::text(u32::MAX / 4), |v, cx| {
        of_statement(v, cx, String::into_bytes)
    })
    .with_text_of(TextOf::Connection),
];

/// Longer statements are not parsed.
const PARSED_MAX: usize = 64 << 10;
/// Memory that a syntax tree takes for each byte of its text.
const TREE_RATIO: usize = 64;

fn of_statement<'a>(
    values: &[Value<'_>],
    cx: &Context<'_>,
    made: impl FnOnce(String) -> Vec<u8>,
) -> Evaluated<'a> {
    if values[0].is_null() {
        return Ok(Value::Null);
    }
    let statement = values[0].to_text();
    let modes = cx.state.settings().lexical_modes();
    check(&statement, modes, cx.state)?;
    let text = digest::text(&statement, modes, Shape::Whole);
    Ok(owned_text(made(text), Collation::Utf8mb4GeneralCi))
}

/// Error 3676 for what is no statement.
fn check(statement: &[u8], modes: LexicalModes, state: &SqlContext) -> Result<(), SqlError> {
    if statement.len() > PARSED_MAX {
        return Ok(());
    }
    let held = state.held();
    state.hold(statement.len() * TREE_RATIO)?;
    let parsed = if statement.is_empty() {
        Err(errors::error(errors::EMPTY_QUERY, &[]))
    } else {
        parser::parse(statement, modes).and_then(|parsed| match statement.get(parsed.consumed..) {
            Some(rest) if !parser::is_blank(rest, modes) && !parser::trimmed(rest).is_empty() => {
                Err(errors::syntax(parser::trimmed(rest.strip_prefix(b";").unwrap_or(rest)), 1))
            }
            _ => Ok(()),
        })
    };
    state.give_back_to(held);
    match parsed {
        Err(error) if error.code != errors::NOT_SUPPORTED_YET => {
            Err(errors::error(errors::PARSE_ERROR_IN_DIGEST_FN, &[&error.message]))
        }
        _ => Ok(()),
    }
}
