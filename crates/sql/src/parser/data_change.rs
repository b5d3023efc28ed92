//! INSERT, REPLACE, UPDATE, DELETE.

use super::super::ast::{
    Assignment, CommonTable, Delete, Expr, Insert, InsertSource, RowAlias, Statement, TableName, TableRef,
    Update,
};
use super::super::lexer::TokenKind;
use super::{Parsed, Parser};
use crate::errors;

impl Parser<'_> {
    pub(crate) fn insert(&mut self) -> Parsed<Statement> {
        let replace = self.accept("REPLACE");
        if !replace {
            self.expect("INSERT")?;
        }
        let mut ignore = false;
        loop {
            if self.accept("IGNORE") {
                ignore = true;
            } else if self.accept_any(&["LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED"]).is_none() {
                break;
            }
        }
        let _ = self.accept("INTO");
        let table = self.table_name()?;
        if self.is_word("PARTITION") {
            return Err(errors::unsupported("PARTITION"));
        }
        let mut insert = Insert {
            table,
            columns: Vec::new(),
            source: InsertSource::Values(Vec::new()),
            ignore,
            replace,
            on_duplicate: Vec::new(),
            row_alias: None,
        };
        if self.accept("SET") {
            let mut row = Vec::new();
            for Assignment { column, value, .. } in self.assignments()? {
                insert.columns.push(column);
                row.push(value);
            }
            insert.source = InsertSource::Values(vec![row]);
        } else {
            if self.is_symbol(b"(") && !self.starts_query_behind_parenthesis() {
                insert.columns = self.column_names()?;
            }
            insert.source = self.insert_source()?;
        }
        // What stands behind a query is the query's.
        if matches!(insert.source, InsertSource::Values(_)) && !replace && self.accept("AS") {
            let name = self.name()?;
            let columns = if self.is_symbol(b"(") { self.parenthesised(Self::name)? } else { Vec::new() };
            insert.row_alias = Some(RowAlias { name, columns });
        }
        if self.accept_all(&["ON", "DUPLICATE", "KEY", "UPDATE"]) {
            if replace {
                return Err(self.unexpected());
            }
            let alias = insert.row_alias.as_ref().map(|alias| &alias.name);
            for Assignment { table, column, value, .. } in self.assignments()? {
                // What was to be inserted is read only.
                if table.is_some() && table.as_ref() == alias {
                    let shown = format!("{}.{column}", table.unwrap_or_default());
                    return Err(errors::error(errors::BAD_FIELD, &[&shown, &"field list"]));
                }
                insert.on_duplicate.push((column, value));
            }
        }
        Ok(Statement::Insert(Box::new(insert)))
    }

    fn starts_query_behind_parenthesis(&self) -> bool {
        let next = self.peek();
        next.kind == TokenKind::Word && self.token_bytes(next).eq_ignore_ascii_case(b"SELECT")
    }

    /// `()` or `(a, t.b, …)`
    fn column_names(&mut self) -> Parsed<Vec<String>> {
        self.expect_symbol(b"(")?;
        let mut columns = Vec::new();
        if !self.is_symbol(b")") {
            columns = self.list(|parser| match parser.column()? {
                Expr::Column { name, .. } => Ok(name),
                _ => Err(parser.unexpected()),
            })?;
        }
        self.expect_symbol(b")")?;
        Ok(columns)
    }

    fn insert_source(&mut self) -> Parsed<InsertSource> {
        if self.accept("VALUES") || self.accept("VALUE") {
            let mut rows: Vec<Vec<Expr>> = Vec::new();
            loop {
                let _ = self.accept("ROW");
                let width = rows.last().map_or(4, Vec::len);
                rows.push(self.row_values(width)?);
                if !self.accept_symbol(b",") {
                    return Ok(InsertSource::Values(rows));
                }
            }
        }
        if self.starts_query() {
            return Ok(InsertSource::Query(Box::new(self.query()?)));
        }
        Err(self.unexpected())
    }

    fn row_values(&mut self, width: usize) -> Parsed<Vec<Expr>> {
        self.expect_symbol(b"(")?;
        let mut values = Vec::with_capacity(width);
        if self.accept_symbol(b")") {
            return Ok(values);
        }
        loop {
            values.push(self.row_value()?);
            if self.accept_symbol(b")") {
                return Ok(values);
            }
            self.expect_symbol(b",")?;
        }
    }

    /// A literal directly before `,` or `)` skips the precedence levels: bulk loads consist of nothing else.
    fn row_value(&mut self) -> Parsed<Expr> {
        let literal = matches!(self.current.kind, TokenKind::Integer | TokenKind::Decimal | TokenKind::Text);
        if literal {
            let next = self.peek();
            if next.kind == TokenKind::Symbol && matches!(self.token_bytes(next), b"," | b")") {
                return self.primary();
            }
        }
        self.expr()
    }

    /// `[[d.]t.]a = expr, …`
    pub(crate) fn assignments(&mut self) -> Parsed<Vec<Assignment>> {
        self.list(|parser| {
            let Expr::Column { database, table, name: column } = parser.column()? else {
                return Err(parser.unexpected());
            };
            if !parser.accept_symbol(b"=") && !parser.accept_symbol(b":=") {
                return Err(parser.unexpected());
            }
            Ok(Assignment { database, table, column, value: parser.expr()? })
        })
    }

    /// UPDATE behind its WITH, or without one.
    pub(crate) fn update(&mut self, with: Vec<CommonTable>) -> Parsed<Statement> {
        self.expect("UPDATE")?;
        let _ = self.accept("LOW_PRIORITY");
        let ignore = self.accept("IGNORE");
        let table = self.table_references()?;
        self.expect("SET")?;
        let assignments = self.assignments()?;
        let filter = if self.accept("WHERE") { Some(self.expr()?) } else { None };
        let (order_by, limit) = self.order_and_limit()?;
        if !matches!(table, TableRef::Table { .. }) {
            if !order_by.is_empty() {
                return Err(errors::error(errors::WRONG_USAGE, &[&"UPDATE", &"ORDER BY"]));
            }
            if limit.is_some() {
                return Err(errors::error(errors::WRONG_USAGE, &[&"UPDATE", &"LIMIT"]));
            }
        }
        Ok(Statement::Update(Box::new(Update { with, table, assignments, filter, order_by, limit, ignore })))
    }

    fn order_and_limit(
        &mut self,
    ) -> Parsed<(Vec<super::super::ast::OrderItem>, Option<super::super::ast::Limit>)> {
        let mut order_by = Vec::new();
        if self.accept("ORDER") {
            self.expect("BY")?;
            order_by = self.order_items()?;
        }
        let limit = if self.is_word("LIMIT") { Some(self.limit()?) } else { None };
        Ok((order_by, limit))
    }

    /// DELETE behind its WITH, or without one.
    pub(crate) fn delete(&mut self, with: Vec<CommonTable>) -> Parsed<Statement> {
        self.expect("DELETE")?;
        let mut ignore = false;
        while let Some(word) = self.accept_any(&["LOW_PRIORITY", "QUICK", "IGNORE"]) {
            ignore |= word == "IGNORE";
        }
        let from_first = self.accept("FROM");
        if from_first && !self.names_several_targets() {
            let table = self.table_factor()?;
            if !matches!(table, TableRef::Table { .. }) {
                return Err(self.unexpected());
            }
            let filter = if self.accept("WHERE") { Some(self.expr()?) } else { None };
            let (order_by, limit) = self.order_and_limit()?;
            let targets = Vec::new();
            return Ok(Statement::Delete(Box::new(Delete {
                with,
                targets,
                table,
                filter,
                order_by,
                limit,
                ignore,
            })));
        }
        let targets = self.list(Self::delete_target)?;
        self.expect(if from_first { "USING" } else { "FROM" })?;
        let table = self.table_references()?;
        let filter = if self.accept("WHERE") { Some(self.expr()?) } else { None };
        let (order_by, limit) = (Vec::new(), None);
        Ok(Statement::Delete(Box::new(Delete { with, targets, table, filter, order_by, limit, ignore })))
    }

    /// Whether names of tables follow as `DELETE FROM a, b.* USING …` has them.
    fn names_several_targets(&self) -> bool {
        let mut ahead = Parser {
            lexer: self.lexer.clone_at(),
            current: self.current,
            common_tables: Vec::new(),
            into: super::into::Into::default(),
            ..*self
        };
        let names = ahead.list(Self::delete_target);
        // What is wrong with the name of a single table is said when it is read.
        names.is_ok_and(|names| names.len() > 1 || ahead.is_word("USING"))
    }

    /// `[database.]table[.*]`
    fn delete_target(&mut self) -> Parsed<TableName> {
        let first = self.name()?;
        if !self.accept_symbol(b".") {
            return Ok(TableName { database: None, name: first });
        }
        if self.accept_symbol(b"*") {
            return Ok(TableName { database: None, name: first });
        }
        let name = self.any_name()?;
        if self.accept_symbol(b".") {
            self.expect_symbol(b"*")?;
        }
        Ok(TableName { database: Some(first), name })
    }
}
