//! `information_schema.KEYWORDS`: which words mean something, and which of them are reserved.
//!
//! Connector/J asks for the reserved ones, and Hibernate does not start without an answer.

use super::ViewType::{Small, Text};
use super::table_tables::view;
use super::{INFORMATION_SCHEMA, RowSource, View, number, text};
use crate::context::SqlContext;
use crate::digest::keywords_in_order;
use crate::parser::reserved::is_reserved;

pub(super) const VIEWS: &[View] = &[view!("KEYWORDS", ["WORD" Text(31), "RESERVED" Small], keywords)];

fn keywords(_: &SqlContext) -> RowSource {
    Box::new(keywords_in_order().map(|word| vec![text(word), number(u8::from(is_reserved(word.as_bytes())))]))
}
