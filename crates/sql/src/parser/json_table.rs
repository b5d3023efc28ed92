//! JSON_TABLE: the document, the path of the rows, the columns.

use super::super::ast::{JsonColumn, JsonInstead, JsonRows, JsonTable, JsonValueColumn, TableRef};
use super::super::lexer::TokenKind;
use super::{Parsed, Parser};
use crate::errors;

impl Parser<'_> {
    /// Whether a JSON_TABLE follows.
    pub(super) fn is_json_table(&self) -> bool {
        self.is_word("JSON_TABLE") && self.peek_is_symbol(b"(")
    }

    /// `JSON_TABLE(document, path COLUMNS (…)) [AS] alias`
    pub(super) fn json_table(&mut self) -> Parsed<TableRef> {
        self.expect("JSON_TABLE")?;
        self.expect_symbol(b"(")?;
        let document = self.nested(Self::expr)?;
        self.expect_symbol(b",")?;
        let rows = self.json_rows()?;
        self.expect_symbol(b")")?;
        let alias = self.alias(false)?;
        let alias = alias.ok_or_else(|| errors::error(errors::TABLE_FUNCTION_MUST_HAVE_ALIAS, &[]))?;
        Ok(TableRef::JsonTable { table: Box::new(JsonTable { document, rows }), alias })
    }

    fn json_rows(&mut self) -> Parsed<JsonRows> {
        let path = self.text_string()?;
        self.expect("COLUMNS")?;
        self.expect_symbol(b"(")?;
        self.grow()?;
        let columns = self.nested(|parser| parser.list(Self::json_column))?;
        self.expect_symbol(b")")?;
        Ok(JsonRows { path, columns })
    }

    fn json_column(&mut self) -> Parsed<JsonColumn> {
        if self.is_word("NESTED") && self.peek_is_word("PATH") {
            self.advance();
            self.advance();
            return Ok(JsonColumn::Nested(Box::new(self.json_rows()?)));
        }
        let name = self.name()?;
        if self.accept_all(&["FOR", "ORDINALITY"]) {
            return Ok(JsonColumn::Ordinality(name));
        }
        let data_type = self.data_type(&name)?;
        let exists = self.accept("EXISTS");
        self.expect("PATH")?;
        let path = self.text_string()?;
        let [on_empty, on_error] = self.json_instead()?;
        let column = JsonValueColumn { name, data_type, exists, path, on_empty, on_error };
        Ok(JsonColumn::Value(Box::new(column)))
    }

    /// `{NULL | ERROR | DEFAULT text} ON EMPTY` and the same `ON ERROR`, in either order.
    fn json_instead(&mut self) -> Parsed<[Option<JsonInstead>; 2]> {
        let mut on = [None, None];
        while self.is_any_word(&["NULL", "ERROR", "DEFAULT"]) {
            let word = self.current;
            let instead = if self.accept("NULL") {
                JsonInstead::Null
            } else if self.accept("ERROR") {
                JsonInstead::Error
            } else {
                self.expect("DEFAULT")?;
                if self.current.kind != TokenKind::Text {
                    let what = "non-string DEFAULT value for a column in a JSON_TABLE expression";
                    return Err(errors::unsupported(what));
                }
                JsonInstead::Default(self.text()?)
            };
            self.expect("ON")?;
            let at = usize::from(!self.is_word("EMPTY"));
            if on[at].is_some() {
                self.current = word;
                return Err(self.unexpected());
            }
            self.expect(["EMPTY", "ERROR"][at])?;
            on[at] = Some(instead);
        }
        Ok(on)
    }
}
