//! EXTRACTVALUE and UPDATEXML: XML as MySQL reads it, and its part of XPath.
//!
//! A text is scanned (`scan.rs`) into a flat list of nodes (`document.rs`); a path is parsed (`parser.rs`,
//! its words: `lexer.rs`, what it is: `xpath.rs`) and evaluated (`evaluate.rs`, steps between nodes:
//! `node_set.rs`). Values are compared and computed by SQL's own code.
//!
//! Neither nests deeper than a bound, so nothing here recurses further. A path may look at all nodes for each
//! node, and lead to one node many times: each look counts as work, so that a kill ends it, and each set as
//! memory of the statement while it lives. One call works no more than a bound (`meter.rs`).

mod document;
mod evaluate;
mod lexer;
mod meter;
mod node_set;
mod parser;
mod scan;
mod xpath;

use untorn::types::Collation;

use super::{Function, any_null, function, text_sum};
use crate::context::SqlContext;
use crate::errors;
use crate::expr::types::Type;
use crate::expr::{Context, Evaluated};
use crate::result::SqlError;
use crate::value::json::Room;
use crate::value::{Value, collation};
use document::Document;
use evaluate::Evaluator;
use meter::Meter;
use xpath::Expr;

/// The functions.
pub(super) static FUNCTIONS: &[Function] = &[
    function!("EXTRACTVALUE", 2..=2, text_type, |v, cx| extract(v, cx)),
    function!("UPDATEXML", 3..=3, text_type, |v, cx| update(v, cx)),
];

fn text_type(types: &[Type]) -> Type {
    Type { length: u32::MAX / 4, nullable: true, ..text_sum(&types[..2]) }
}

/// Reads a path without a document, for what is wrong with it.
///
/// # Errors
/// 1105, 1436, memory.
pub fn check_path(path: &Value<'_>, state: &SqlContext) -> Result<(), SqlError> {
    let held = state.held();
    let checked = if path.is_null() { Ok(()) } else { parsed(path, state).map(drop) };
    state.give_back_to(held);
    checked
}

fn parsed(path: &Value<'_>, state: &SqlContext) -> Result<Expr, SqlError> {
    let ask = |bytes| super::json::room(state, bytes);
    let path = path.to_text();
    state.hold(path.len())?;
    state.work(path.len())?;
    parser::parse(&String::from_utf8_lossy(&path), &mut Room::new(&ask))
}

/// A text as a document; `None`, with a warning, if it is none.
fn document<'t>(text: &'t [u8], state: &SqlContext) -> Result<Option<Document<'t>>, SqlError> {
    let ask = |bytes| super::json::room(state, bytes);
    if u32::try_from(text.len()).is_err() {
        return Err(crate::memory::refused());
    }
    state.work(text.len())?;
    match scan::read(text, &mut Room::new(&ask))? {
        Ok(document) => Ok(Some(document)),
        Err(why) => {
            state.warn(errors::error(errors::WRONG_VALUE, &[&"XML", &why]));
            Ok(None)
        }
    }
}

/// The collation of the two texts.
fn rule(values: &[Value<'_>]) -> Collation {
    collation::common(values[0].collation(), values[1].collation())
}

fn extract<'a>(values: &[Value<'a>], cx: &Context<'a>) -> Evaluated<'a> {
    if any_null(values) {
        return Ok(Value::Null);
    }
    let path = parsed(&values[1], cx.state)?;
    let text = values[0].to_text();
    let Some(document) = document(&text, cx.state)? else { return Ok(Value::Null) };
    let collation = rule(values);
    let evaluator = Evaluator { document: &document, cx, collation, meter: Meter::new(cx.state) };
    Ok(match evaluator.value(&path, None)? {
        Value::Null => Value::Null,
        Value::Text(text, _) => Value::Text(text.into_owned().into(), collation),
        other => Value::Text(other.to_text().into_owned().into(), collation),
    })
}

fn update<'a>(values: &[Value<'a>], cx: &Context<'a>) -> Evaluated<'a> {
    if any_null(values) {
        return Ok(Value::Null);
    }
    let Expr::Nodes(path) = parsed(&values[1], cx.state)? else { return Ok(Value::Null) };
    let text = values[0].to_text();
    let Some(document) = document(&text, cx.state)? else { return Ok(Value::Null) };
    let collation = rule(values);
    let evaluator = Evaluator { document: &document, cx, collation, meter: Meter::new(cx.state) };
    let [found] = evaluator.nodes(&path, None)?[..] else {
        return Ok(Value::Text(text.to_vec().into(), collation));
    };
    let place = document.bytes_of(found.node);
    let instead = values[2].to_text();
    let parts = [&text[..place.start], &instead[..], &text[place.end..]];
    let length = parts.iter().map(|part| part.len()).sum();
    if !super::text_fits(length, "updatexml", cx.state) {
        return Ok(Value::Null);
    }
    cx.state.hold(length)?;
    cx.state.work(length)?;
    Ok(Value::Text(parts.concat().into(), collation))
}
