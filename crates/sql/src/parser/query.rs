//! SELECT: unions, select lists, FROM with joins and derived tables, grouping, LIMIT, locking clauses.

use super::super::ast::{
    CommonTable, Expr, HintKind, IndexHint, Limit, LockWait, Locking, Query, Select, SelectItem,
    SetOperation, Statement, TableRef,
};
use super::super::lexer::TokenKind;
use super::{Parsed, Parser, reserved};
use untorn::types::Charset;

use crate::errors;

/// Words between SELECT and its list that change nothing here.
const SELECT_OPTIONS: &[&str] = &[
    "ALL",
    "HIGH_PRIORITY",
    "SQL_SMALL_RESULT",
    "SQL_BIG_RESULT",
    "SQL_BUFFER_RESULT",
    "SQL_NO_CACHE",
    "SQL_CACHE",
];

/// Whether the query has nothing that a part of a UNION cannot have.
fn is_plain(query: &Query) -> bool {
    query.operation == SetOperation::Union && has_no_tail(query)
}

/// Whether nothing is said of the query as a whole.
fn has_no_tail(query: &Query) -> bool {
    query.with.is_empty() && query.order_by.is_empty() && query.limit.is_none() && query.locking.is_none()
}

/// A query expression in parentheses as a part of another: what it sorts and limits is its own.
fn whole(mut query: Query) -> Select {
    let items = vec![SelectItem::Star { database: None, table: None }];
    // SQL_CALC_FOUND_ROWS of the first part is about the whole.
    let counts_all =
        query.selects.first_mut().is_some_and(|(_, first)| std::mem::take(&mut first.counts_all));
    Select { items, from: Some(TableRef::part(query)), counts_all, ..Select::default() }
}

impl Parser<'_> {
    /// `SELECT … [UNION|EXCEPT|INTERSECT [ALL] SELECT …]… [ORDER BY] [LIMIT] [FOR UPDATE]`
    pub(super) fn query_expression(&mut self) -> Parsed<Query> {
        let known = self.common_tables.len();
        let with = if self.accept("WITH") { self.common_tables()? } else { Vec::new() };
        let query = self.query_behind(with)?;
        self.common_tables.truncate(known);
        Ok(query)
    }

    /// A query expression behind its WITH, or without one.
    pub(super) fn query_behind(&mut self, with: Vec<CommonTable>) -> Parsed<Query> {
        let mut query = self.query_body()?;
        if !with.is_empty() {
            if !query.with.is_empty() {
                query = Query::of(whole(query));
            }
            query.with = with;
        }
        Ok(query)
    }

    /// `WITH … SELECT`, `WITH … UPDATE`, `WITH … DELETE`
    pub(super) fn with_statement(&mut self) -> Parsed<Statement> {
        self.expect("WITH")?;
        let known = self.common_tables.len();
        let with = self.common_tables()?;
        let statement = match () {
            () if self.is_word("UPDATE") => self.update(with)?,
            () if self.is_word("DELETE") => self.delete(with)?,
            () => self.select_with(with)?,
        };
        self.common_tables.truncate(known);
        Ok(statement)
    }

    /// `name [(columns)] AS (query), …`
    fn common_tables(&mut self) -> Parsed<Vec<CommonTable>> {
        let recursive = self.accept("RECURSIVE");
        let known = self.common_tables.len();
        self.list(|parser| {
            let name = parser.name()?;
            if parser.common_tables[known..].iter().any(|(other, _)| *other == name) {
                return Err(errors::error(errors::NONUNIQ_TABLE, &[&name]));
            }
            let columns = match parser.accept_symbol(b"(") {
                true => {
                    let columns = parser.list(Self::name)?;
                    parser.expect_symbol(b")")?;
                    columns
                }
                false => Vec::new(),
            };
            parser.expect("AS")?;
            parser.expect_symbol(b"(")?;
            let before = std::mem::take(&mut parser.height);
            let query = parser.nested(Self::query)?;
            parser.expect_symbol(b")")?;
            // The tree of a query that names it is higher by its own.
            parser.common_tables.push((name.clone(), parser.height));
            parser.height = parser.height.max(before);
            Ok(CommonTable { name, columns, query, recursive })
        })
    }

    fn query_body(&mut self) -> Parsed<Query> {
        let mut query = self.intersections()?;
        while let Some(word) = self.accept_any(&["UNION", "EXCEPT"]) {
            self.no_into_before()?;
            let all = self.accept_all_or_distinct();
            let next = self.intersections()?;
            if word == "EXCEPT" {
                query = self.set_operation(query, SetOperation::Except, all, next)?;
                continue;
            }
            if !is_plain(&query) {
                query = Query::of(whole(query));
            }
            // It does not matter which parts of a UNION are taken together first, and one without ALL takes
            // out the duplicates of all.
            match is_plain(&next) && (!all || next.selects.iter().all(|(all, _)| *all)) {
                true => query.selects.extend(next.selects.into_iter().map(|(_, select)| (all, select))),
                false => query.selects.push((all, whole(next))),
            }
        }
        if (self.is_word("ORDER") || self.is_word("LIMIT")) && !has_no_tail(&query) {
            query = Query::of(whole(query));
        }
        if self.accept("ORDER") {
            self.expect("BY")?;
            query.order_by = self.order_items()?;
        }
        if self.is_word("LIMIT") {
            query.limit = Some(self.limit()?);
        }
        self.accept_into()?;
        query.locking = self.locking()?.or(query.locking);
        self.accept_into()?;
        Ok(query)
    }

    /// `ALL` or `DISTINCT`, which is what nothing means.
    fn accept_all_or_distinct(&mut self) -> bool {
        let all = self.accept("ALL");
        let _ = !all && self.accept("DISTINCT");
        all
    }

    /// INTERSECT binds stronger than the others.
    fn intersections(&mut self) -> Parsed<Query> {
        let mut query = self.query_term()?;
        while self.accept("INTERSECT") {
            self.no_into_before()?;
            let all = self.accept_all_or_distinct();
            let next = self.query_term()?;
            query = self.set_operation(query, SetOperation::Intersect, all, next)?;
        }
        Ok(query)
    }

    /// A query of two others.
    fn set_operation(
        &mut self,
        left: Query,
        operation: SetOperation,
        all: bool,
        right: Query,
    ) -> Parsed<Query> {
        self.grow()?;
        let mut query =
            if is_plain(&left) && left.selects.len() == 1 { left } else { Query::of(whole(left)) };
        let right =
            if is_plain(&right) && right.selects.len() == 1 { right } else { Query::of(whole(right)) };
        query.operation = operation;
        query.selects.extend(right.selects.into_iter().map(|(_, select)| (all, select)));
        Ok(query)
    }

    fn query_term(&mut self) -> Parsed<Query> {
        if self.accept_symbol(b"(") {
            let query = self.nested(Self::query_expression)?;
            self.expect_symbol(b")")?;
            return Ok(query);
        }
        if self.accept("TABLE") {
            let name = self.table_name()?;
            let select = Select {
                items: vec![SelectItem::Star { database: None, table: None }],
                from: Some(TableRef::Table { name, alias: None, hints: Vec::new() }),
                ..Select::default()
            };
            return Ok(Query::of(select));
        }
        if self.is_word("VALUES") && self.peek_is_word("ROW") {
            return self.table_values();
        }
        Ok(Query::of(self.select()?))
    }

    /// `VALUES ROW(…), ROW(…)`: a UNION ALL of its rows, whose columns are `column_0`, `column_1` and so on.
    fn table_values(&mut self) -> Parsed<Query> {
        self.expect("VALUES")?;
        let rows = self.list(|parser| {
            parser.expect("ROW")?;
            let values = parser.parenthesised(Self::expr)?;
            let item = |(at, expr)| SelectItem::Expr {
                expr,
                alias: Some(format!("column_{at}")),
                text: String::new(),
            };
            let items = values.into_iter().enumerate().map(item).collect();
            Ok(Select { items, is_values: true, ..Select::default() })
        })?;
        let mut rows = rows.into_iter();
        let mut query = Query::of(rows.next().unwrap_or_default());
        query.selects.extend(rows.map(|row| (true, row)));
        Ok(query)
    }

    fn select(&mut self) -> Parsed<Select> {
        self.expect("SELECT")?;
        let tables = std::mem::take(&mut self.tables);
        let select = self.beside(Self::select_body);
        self.tables = tables;
        select
    }

    fn select_body(&mut self) -> Parsed<Select> {
        let mut select = Select::default();
        loop {
            if self.accept("DISTINCT") || self.accept("DISTINCTROW") {
                select.distinct = true;
            } else if self.accept("SQL_CALC_FOUND_ROWS") {
                select.counts_all = true;
            } else if self.accept("STRAIGHT_JOIN") {
                select.straight = true;
            } else if self.accept_any(SELECT_OPTIONS).is_none() {
                break;
            }
        }
        // A bare star comes first or not at all.
        if self.accept_symbol(b"*") {
            select.items.push(SelectItem::Star { database: None, table: None });
        }
        if select.items.is_empty() || self.accept_symbol(b",") {
            select.items.extend(self.list(Self::select_item)?);
        }
        self.accept_into()?;
        if self.accept("FROM") {
            if self.accept("DUAL") {
                select.from = None;
            } else {
                select.from = Some(self.table_references()?);
            }
        }
        if self.accept("WHERE") {
            select.filter = Some(self.expr()?);
        }
        if self.accept("GROUP") {
            self.expect("BY")?;
            if self.is_word("ROLLUP") && self.peek_is_symbol(b"(") {
                self.advance();
                select.group_by = self.parenthesised(Self::expr)?;
                select.rollup = true;
            } else {
                select.group_by = self.order_items()?.into_iter().map(|item| item.expr).collect();
                select.rollup = self.accept_all(&["WITH", "ROLLUP"]);
            }
        }
        if self.accept("HAVING") {
            select.having = Some(self.expr()?);
        }
        if self.accept("WINDOW") {
            select.windows = self.named_windows()?;
        }
        Ok(select)
    }

    fn select_item(&mut self) -> Parsed<SelectItem> {
        if let Some(star) = self.qualified_star()? {
            return Ok(star);
        }
        let start = self.current.start;
        let expr = self.expr()?;
        let text = match &expr {
            Expr::Text { bytes, introducer: Some(of) } => self.heading_of_introduced(bytes, of, start),
            // As MySQL does, without the white space that it begins with.
            Expr::Text { bytes, .. } => String::from_utf8_lossy(bytes.trim_ascii_start()).into_owned(),
            Expr::Null => "NULL".to_owned(),
            Expr::Column { name, .. } => name.clone(),
            Expr::Function { name, arguments, .. } if name == "NAME_CONST" => match arguments.first() {
                Some(Expr::Text { bytes, .. }) => String::from_utf8_lossy(bytes).into_owned(),
                _ => self.text_since(start),
            },
            _ => self.text_since(start),
        };
        let text = cut_name(text);
        let alias = self.alias(true)?;
        Ok(SelectItem::Expr { expr, alias, text })
    }

    /// What stands above a literal with an introducer: its text, unless that is written in digits.
    fn heading_of_introduced(&self, bytes: &[u8], introducer: &str, start: u32) -> String {
        let typed = self.text_since(start);
        let literal = typed.get(1 + introducer.len()..).unwrap_or_default().trim_start();
        if !literal.starts_with(['\'', '"']) {
            return typed;
        }
        let charset = Charset::from_name(introducer).unwrap_or(Charset::Utf8mb4);
        String::from_utf8_lossy(&charset.to_utf8(bytes)).into_owned()
    }

    /// `t.*` or `db.t.*`, looking ahead.
    fn qualified_star(&mut self) -> Parsed<Option<SelectItem>> {
        if !matches!(self.current.kind, TokenKind::Word | TokenKind::QuotedName) {
            return Ok(None);
        }
        let mut lexer = self.lexer.clone_at();
        for parts in 1..=2usize {
            let point = lexer.next_token();
            if point.kind != TokenKind::Symbol || lexer.slice(point) != b"." {
                return Ok(None);
            }
            let next = lexer.next_token();
            if next.kind == TokenKind::Symbol && lexer.slice(next) == b"*" {
                let first = self.any_name()?;
                self.expect_symbol(b".")?;
                let mut item = SelectItem::Star { database: None, table: Some(first.clone()) };
                if parts == 2 {
                    item = SelectItem::Star { database: Some(first), table: Some(self.any_name()?) };
                    self.expect_symbol(b".")?;
                }
                self.expect_symbol(b"*")?;
                return Ok(Some(item));
            }
        }
        Ok(None)
    }

    /// `[AS] alias`; strings only for columns.
    pub(super) fn alias(&mut self, text_allowed: bool) -> Parsed<Option<String>> {
        let said = self.accept("AS");
        match self.current.kind {
            TokenKind::Text if text_allowed => self.text_string().map(Some),
            TokenKind::QuotedName => self.any_name().map(Some),
            TokenKind::Word if !reserved::is_reserved(self.slice()) => self.any_name().map(Some),
            _ if said => Err(self.unexpected()),
            _ => Ok(None),
        }
    }

    /// `t1, t2 JOIN t3 ON …`; the comma binds weaker than JOIN.
    pub(crate) fn table_references(&mut self) -> Parsed<TableRef> {
        let mut left = self.joined_table()?;
        while self.accept_symbol(b",") {
            let right = self.joined_table()?;
            self.grow()?;
            left = super::join::beside(left, right);
        }
        Ok(left)
    }

    pub(crate) fn table_factor(&mut self) -> Parsed<TableRef> {
        self.beside(Self::table_factor_itself)
    }

    fn table_factor_itself(&mut self) -> Parsed<TableRef> {
        if self.is_json_table() {
            self.count_table()?;
            return self.json_table();
        }
        if self.is_word("LATERAL") {
            self.advance();
            self.expect_symbol(b"(")?;
            return self.derived_table(true);
        }
        if self.is_symbol(b"(") {
            let derived = self.starts_query() || self.peek_is_word("TABLE") || self.peek_is_word("VALUES");
            self.advance();
            // `((SELECT …) UNION …) d` is a derived table, `((SELECT …) d JOIN …)` a join.
            let is_query = !self.is_symbol(b"(") || self.query_goes_on_behind(true);
            if derived && is_query || self.is_word("SELECT") {
                return self.derived_table(false);
            }
            let inner = self.nested(Self::table_references)?;
            self.expect_symbol(b")")?;
            return Ok(inner);
        }
        if self.accept_symbol(b"{") {
            // ODBC's way to write an outer join, `{ OJ … }`.
            self.name()?;
            let inner = self.nested(Self::table_references)?;
            self.expect_symbol(b"}")?;
            return Ok(inner);
        }
        self.count_table()?;
        let name = self.table_name()?;
        if name.database.is_none() && !self.common_tables.is_empty() {
            let common = self.common_tables.iter().rev();
            let mut named = common.filter(|(common, _)| *common == name.name);
            if let Some((_, height)) = named.next() {
                self.height = self.height.max(*height);
                self.grow()?;
            }
        }
        if self.is_word("PARTITION") {
            return Err(errors::unsupported("PARTITION"));
        }
        let alias = self.alias(false)?;
        let mut hints = Vec::new();
        while let Some(hint) = self.index_hint()? {
            hints.push(hint);
        }
        Ok(TableRef::Table { name, alias, hints })
    }

    /// A derived table, behind its parenthesis.
    fn derived_table(&mut self, lateral: bool) -> Parsed<TableRef> {
        self.count_table()?;
        let query = Box::new(self.nested(Self::query)?);
        self.expect_symbol(b")")?;
        let alias = self.alias(false)?;
        let alias = alias.ok_or_else(|| errors::error(errors::DERIVED_MUST_HAVE_ALIAS, &[]))?;
        let columns = if self.is_symbol(b"(") { self.parenthesised(Self::name)? } else { Vec::new() };
        Ok(TableRef::Derived { query, alias, columns, lateral })
    }

    fn count_table(&mut self) -> Parsed<()> {
        self.tables += 1;
        if self.tables > super::TABLES_MAX {
            return Err(errors::error(errors::TOO_MANY_TABLES, &[&super::TABLES_MAX]));
        }
        Ok(())
    }

    fn index_hint(&mut self) -> Parsed<Option<IndexHint>> {
        let kind = match () {
            () if !(self.peek_is_word("INDEX") || self.peek_is_word("KEY")) => return Ok(None),
            () if self.is_word("FORCE") => HintKind::Force,
            () if self.is_word("USE") => HintKind::Use,
            () if self.is_word("IGNORE") => HintKind::Ignore,
            () => return Ok(None),
        };
        self.advance();
        self.advance();
        if self.accept("FOR") {
            let _ =
                self.accept("JOIN") || self.accept_all(&["ORDER", "BY"]) || self.accept_all(&["GROUP", "BY"]);
        }
        self.expect_symbol(b"(")?;
        let mut indexes = Vec::new();
        if !self.is_symbol(b")") {
            indexes = self.list(Self::any_name)?;
        }
        self.expect_symbol(b")")?;
        Ok(Some(IndexHint { kind, indexes }))
    }

    /// `LIMIT count`, `LIMIT offset, count`, `LIMIT count OFFSET offset`.
    pub(crate) fn limit(&mut self) -> Parsed<Limit> {
        self.expect("LIMIT")?;
        let first = self.limit_value()?;
        if self.accept_symbol(b",") {
            return Ok(Limit { count: self.limit_value()?, offset: Some(first) });
        }
        let offset = if self.accept("OFFSET") { Some(self.limit_value()?) } else { None };
        Ok(Limit { count: first, offset })
    }

    pub(super) fn limit_value(&mut self) -> Parsed<Expr> {
        match self.current.kind {
            TokenKind::Integer | TokenKind::Parameter => self.primary(),
            _ => Err(self.unexpected()),
        }
    }

    fn locking(&mut self) -> Parsed<Option<Locking>> {
        let exclusive = if self.accept_all(&["LOCK", "IN", "SHARE", "MODE"]) {
            return Ok(Some(Locking { exclusive: false, wait: LockWait::Wait }));
        } else if self.accept_all(&["FOR", "UPDATE"]) {
            true
        } else if self.accept_all(&["FOR", "SHARE"]) {
            false
        } else {
            return Ok(None);
        };
        if self.accept("OF") {
            self.list(Self::table_name)?;
        }
        let wait = if self.accept("NOWAIT") {
            LockWait::NoWait
        } else if self.accept_all(&["SKIP", "LOCKED"]) {
            LockWait::SkipLocked
        } else {
            LockWait::Wait
        };
        Ok(Some(Locking { exclusive, wait }))
    }
}

/// The name of a column that has none of its own: its text, cut as MySQL cuts it. It goes to the client in
/// one packet.
fn cut_name(mut text: String) -> String {
    const CHARS_MAX: usize = 255;
    if text.len() > CHARS_MAX
        && let Some((end, _)) = text.char_indices().nth(CHARS_MAX)
    {
        text.truncate(end);
        text.shrink_to_fit();
    }
    text
}
