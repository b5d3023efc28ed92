//! A recursive-descent parser for MySQL's SQL, on the byte-level lexer.
//!
//! One function for each grammar rule, grouped by topic in the files beside this one. The parser holds the
//! current token and a lexer position behind it, so looking ahead is copying the lexer. Errors are MySQL's
//! 1064 with the text from the offending token on.
//!
//! No statement can exhaust the stack. Everything that is done with a syntax tree later (binding, evaluating,
//! cloning, dropping) recurses as deep as the tree is high, and the parser as deep as things are nested, so
//! both are limited here: [`DEPTH_MAX`] and [`HEIGHT_MAX`], error 1436 beyond them. The two differ because a
//! loop over `a = b = c …` makes a tree as high as the chain is long. Chains that people and programs do
//! write with thousands of links, of AND, OR and of arithmetic, are one node each and not high.
//! [`STACK_BYTES`] is the stack that the limits were measured for.

mod accounts;
mod administration;
mod alter;
mod data_change;
mod data_definition;
mod expression;
mod function;
mod handler;
mod into;
mod join;
mod json_table;
mod load;
mod query;
pub(crate) mod reserved;
mod roles;
mod rows;
mod settings;
mod temporal;
#[cfg(test)]
mod tests;
mod view;
mod window;
mod xa;

pub use roles::parse_roles;

pub use data_definition::{check_key_name, is_wrong_column};

use super::ast::{Expr, Statement, TableName};
use super::lexer::{Lexer, LexicalModes, Token, TokenKind, unquote};
use crate::errors;
use crate::result::SqlError;

/// Deepest nesting of expressions and subqueries.
pub const DEPTH_MAX: u32 = 200;

/// Highest tree of expressions and subqueries.
pub const HEIGHT_MAX: u32 = 400;

/// Stack of a thread that executes statements: what the deepest ones take in a program without optimisation
/// (200 common tables, each of which names the one before: 34 MB), and half as much again
/// (`tests/statement_depth.rs`).
pub const STACK_BYTES: usize = 64 << 20;

/// Most tables of one FROM, as in MySQL.
const TABLES_MAX: u32 = 61;

/// Longest name of a database, table or column, in characters.
const NAME_CHARS_MAX: usize = 64;

pub(crate) type Parsed<T> = Result<T, SqlError>;

/// What came out of a parse.
#[derive(Debug)]
pub struct ParsedStatement {
    /// The statement.
    pub statement: Statement,
    /// How many `?` it has.
    pub parameters: u16,
    /// Bytes consumed, with the `;` that ended the statement.
    pub consumed: usize,
    /// How high its tree is, at most [`HEIGHT_MAX`].
    pub height: u32,
}

/// Parses the first statement of `text`; the rest, if any, begins at `consumed`.
pub fn parse(text: &[u8], modes: LexicalModes) -> Result<ParsedStatement, SqlError> {
    let mut parser = Parser::new(text, modes);
    let statement = parser.statement()?;
    let consumed = match parser.current.kind {
        TokenKind::End => text.len(),
        _ if parser.is_symbol(b";") => parser.current.end as usize,
        _ => return Err(parser.unexpected()),
    };
    Ok(ParsedStatement { statement, parameters: parser.parameters, consumed, height: parser.height })
}

/// Parses an expression that is all of `text`.
pub fn parse_expression(text: &[u8], modes: LexicalModes) -> Result<Expr, SqlError> {
    let mut parser = Parser::new(text, modes);
    let expr = parser.expr()?;
    if parser.current.kind == TokenKind::End { Ok(expr) } else { Err(parser.unexpected()) }
}

/// The text without blanks around it, and without the semicolons behind it: between them there is no
/// statement.
pub fn trimmed(text: &[u8]) -> &[u8] {
    let is_end = |byte: &u8| byte.is_ascii_whitespace() || *byte == b';';
    let length = text.iter().rposition(|byte| !is_end(byte)).map_or(0, |last| last + 1);
    text[..length].trim_ascii_start()
}

/// Whether `text` holds nothing but blanks and comments.
pub fn is_blank(text: &[u8], modes: LexicalModes) -> bool {
    Lexer::new(text, modes).next_token().kind == TokenKind::End
}

#[cold]
fn too_deep() -> SqlError {
    errors::error(errors::STACK_OVERRUN, &[])
}

/// Error 1059 for a name longer than any can be, before anybody looks for it.
pub fn check_length(name: &str) -> Parsed<()> {
    // Four bytes a character at most: short names are not counted.
    if name.len() > NAME_CHARS_MAX && name.chars().count() > NAME_CHARS_MAX {
        return Err(errors::error(errors::TOO_LONG_IDENT, &[&name]));
    }
    Ok(())
}

/// Refuses the name of a database that no client may name.
fn check_database(name: &str) -> Parsed<()> {
    if untorn::private::is_private(name) {
        return Err(errors::error(errors::BAD_DB, &[&name]));
    }
    Ok(())
}

pub(crate) struct Parser<'a> {
    lexer: Lexer<'a>,
    pub(crate) current: Token,
    previous_end: u32,
    pub(crate) parameters: u16,
    depth: u32,
    /// Height of the highest tree that was read by the rule at work, see [`Parser::grow`].
    height: u32,
    /// Common tables that may be named here, with the heights of their trees.
    common_tables: Vec<(String, u32)>,
    /// Tables of the FROM at work.
    tables: u32,
    /// Joins without a condition in the run of joins at work: one may come further behind.
    open_joins: u32,
    into: into::Into,
}

impl<'a> Parser<'a> {
    pub(crate) fn new(text: &'a [u8], modes: LexicalModes) -> Self {
        let mut lexer = Lexer::new(text, modes);
        let current = lexer.next_token();
        Self {
            lexer,
            current,
            previous_end: 0,
            parameters: 0,
            depth: 0,
            height: 0,
            common_tables: Vec::new(),
            tables: 0,
            open_joins: 0,
            into: into::Into::default(),
        }
    }

    pub(crate) fn modes(&self) -> LexicalModes {
        self.lexer.modes()
    }

    #[inline]
    pub(crate) fn slice(&self) -> &'a [u8] {
        self.lexer.slice(self.current)
    }

    #[inline]
    pub(crate) fn advance(&mut self) -> Token {
        let token = self.current;
        self.previous_end = token.end;
        self.current = self.lexer.next_token();
        token
    }

    pub(crate) fn token_bytes(&self, token: Token) -> &'a [u8] {
        self.lexer.slice(token)
    }

    /// The token behind the current one.
    pub(crate) fn peek(&self) -> Token {
        self.lexer.clone_at().next_token()
    }

    /// The text from `start` to the end of the last consumed token.
    pub(crate) fn text_since(&self, start: u32) -> String {
        let text = self.lexer.text().get(start as usize..self.previous_end as usize).unwrap_or_default();
        String::from_utf8_lossy(text).into_owned()
    }

    /// Error 1064 at the current token.
    #[cold]
    pub(crate) fn unexpected(&self) -> SqlError {
        self.unexpected_at(self.current)
    }

    /// Error 1064 at a token. It reads the whole statement: to be made when it is known to be needed.
    #[cold]
    pub(crate) fn unexpected_at(&self, token: Token) -> SqlError {
        let text = self.lexer.text();
        let at = (token.start as usize).min(text.len());
        let end = text.iter().rposition(|b| *b != 0).map_or(at, |last| (last + 1).max(at));
        let line = 1 + text[..at].iter().filter(|b| **b == b'\n').count();
        errors::syntax(&text[at..end], line)
    }

    /// Runs `rule` one level deeper; what it read is part of something.
    pub(crate) fn nested<T>(&mut self, rule: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= DEPTH_MAX {
            return Err(too_deep());
        }
        self.depth += 1;
        let result = self.beside(|parser| {
            let read = rule(parser)?;
            parser.grow()?;
            Ok(read)
        });
        self.depth -= 1;
        result
    }

    /// Runs `rule` beside what was read before: the higher of both counts.
    pub(crate) fn beside<T>(&mut self, rule: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        let before = std::mem::take(&mut self.height);
        let result = rule(self);
        self.height = self.height.max(before);
        result
    }

    /// What was read becomes part of a node above it.
    pub(crate) fn grow(&mut self) -> Parsed<()> {
        self.height += 1;
        if self.height > HEIGHT_MAX { Err(too_deep()) } else { Ok(()) }
    }

    #[inline]
    pub(crate) fn is_word(&self, word: &str) -> bool {
        self.current.kind == TokenKind::Word && self.slice().eq_ignore_ascii_case(word.as_bytes())
    }

    pub(crate) fn is_any_word(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.is_word(word))
    }

    pub(crate) fn peek_is_word(&self, word: &str) -> bool {
        let next = self.peek();
        next.kind == TokenKind::Word && self.lexer.slice(next).eq_ignore_ascii_case(word.as_bytes())
    }

    pub(crate) fn peek_is_symbol(&self, symbol: &[u8]) -> bool {
        let next = self.peek();
        next.kind == TokenKind::Symbol && self.lexer.slice(next) == symbol
    }

    #[inline]
    pub(crate) fn accept(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        if found {
            self.advance();
        }
        found
    }

    /// Accepts all of `words` in a row or none.
    pub(crate) fn accept_all(&mut self, words: &[&str]) -> bool {
        let mut lexer = self.lexer.clone_at();
        let mut token = self.current;
        for (index, word) in words.iter().enumerate() {
            if index > 0 {
                token = lexer.next_token();
            }
            if token.kind != TokenKind::Word || !lexer.slice(token).eq_ignore_ascii_case(word.as_bytes()) {
                return false;
            }
        }
        for _ in words {
            self.advance();
        }
        true
    }

    /// Accepts one of `words` and says which.
    pub(crate) fn accept_any(&mut self, words: &[&'static str]) -> Option<&'static str> {
        let found = words.iter().find(|word| self.is_word(word)).copied();
        if found.is_some() {
            self.advance();
        }
        found
    }

    pub(crate) fn expect(&mut self, word: &str) -> Parsed<()> {
        if self.accept(word) { Ok(()) } else { Err(self.unexpected()) }
    }

    #[inline]
    pub(crate) fn is_symbol(&self, symbol: &[u8]) -> bool {
        self.current.kind == TokenKind::Symbol && self.slice() == symbol
    }

    #[inline]
    pub(crate) fn accept_symbol(&mut self, symbol: &[u8]) -> bool {
        let found = self.is_symbol(symbol);
        if found {
            self.advance();
        }
        found
    }

    pub(crate) fn expect_symbol(&mut self, symbol: &[u8]) -> Parsed<()> {
        if self.accept_symbol(symbol) { Ok(()) } else { Err(self.unexpected()) }
    }

    pub(crate) fn at_end(&self) -> bool {
        self.current.kind == TokenKind::End || self.is_symbol(b";")
    }

    fn utf8(&self, bytes: &[u8]) -> Parsed<String> {
        String::from_utf8(bytes.to_vec()).map_err(|_| {
            errors::error(errors::INVALID_CHARACTER_STRING, &[&"utf8mb4", &String::from_utf8_lossy(bytes)])
        })
    }

    /// An identifier: quoted, or a word that is not reserved.
    pub(crate) fn name(&mut self) -> Parsed<String> {
        match self.current.kind {
            TokenKind::Word if !reserved::is_reserved(self.slice()) => {}
            TokenKind::QuotedName => {}
            _ => return Err(self.unexpected()),
        }
        self.any_name()
    }

    /// An identifier where reserved words are harmless (behind a point, variable names, option values).
    pub(crate) fn any_name(&mut self) -> Parsed<String> {
        let bytes = self.slice();
        match self.current.kind {
            TokenKind::Word => {
                let name = self.utf8(bytes)?;
                self.advance();
                Ok(name)
            }
            TokenKind::QuotedName => {
                let name = self.utf8(&unquote(bytes, self.modes()))?;
                self.advance();
                Ok(name)
            }
            _ => Err(self.unexpected()),
        }
    }

    /// A name given as identifier or as string.
    pub(crate) fn name_or_text(&mut self) -> Parsed<String> {
        if self.current.kind == TokenKind::Text {
            let bytes = self.text()?;
            return self.utf8(&bytes);
        }
        self.any_name()
    }

    /// The bytes of a string literal.
    pub(crate) fn text(&mut self) -> Parsed<Vec<u8>> {
        if self.current.kind != TokenKind::Text {
            return Err(self.unexpected());
        }
        let token = self.advance();
        let mut bytes = unquote(self.token_bytes(token), self.modes()).into_owned();
        while self.current.kind == TokenKind::Text {
            let token = self.advance();
            bytes.extend_from_slice(&unquote(self.token_bytes(token), self.modes()));
        }
        Ok(bytes)
    }

    pub(crate) fn text_string(&mut self) -> Parsed<String> {
        let bytes = self.text()?;
        self.utf8(&bytes)
    }

    /// An unsigned integer literal.
    pub(crate) fn integer(&mut self) -> Parsed<u64> {
        if self.current.kind != TokenKind::Integer {
            return Err(self.unexpected());
        }
        let value = std::str::from_utf8(self.slice()).ok().and_then(|digits| digits.parse().ok());
        let value = value.ok_or_else(|| self.unexpected())?;
        self.advance();
        Ok(value)
    }

    /// The length of a column's type; error 1439 beyond 32 bits.
    pub(crate) fn length_of(&mut self, column: &str) -> Parsed<u32> {
        if !matches!(self.current.kind, TokenKind::Integer | TokenKind::Decimal) {
            return Err(self.unexpected());
        }
        // Of `10.2` nothing counts behind the point.
        let whole = self.slice().split(|byte| *byte == b'.').next().unwrap_or_default();
        let digits = std::str::from_utf8(whole).ok().and_then(|digits| digits.parse().ok());
        let length =
            digits.ok_or_else(|| errors::error(errors::TOO_BIG_DISPLAYWIDTH, &[&column, &u32::MAX]))?;
        self.advance();
        Ok(length)
    }

    pub(crate) fn small_integer(&mut self) -> Parsed<u32> {
        let at = self.current;
        u32::try_from(self.integer()?).map_err(|_| self.unexpected_at(at))
    }

    /// `[database.]table`
    pub(crate) fn table_name(&mut self) -> Parsed<TableName> {
        let first = self.name()?;
        let named = if self.accept_symbol(b".") {
            check_database(&first)?;
            TableName { database: Some(first), name: self.any_name()? }
        } else {
            TableName { database: None, name: first }
        };
        named.database.iter().chain([&named.name]).try_for_each(|name| check_length(name))?;
        Ok(named)
    }

    /// The name of a database.
    pub(crate) fn database_name(&mut self) -> Parsed<String> {
        let name = self.name()?;
        check_length(&name)?;
        check_database(&name)?;
        Ok(name)
    }

    /// `item, item, …`
    pub(crate) fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut items = vec![item(self)?];
        while self.accept_symbol(b",") {
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// `(item, item, …)`
    pub(crate) fn parenthesised<T>(&mut self, item: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        self.expect_symbol(b"(")?;
        let items = self.list(item)?;
        self.expect_symbol(b")")?;
        Ok(items)
    }

    pub(crate) fn if_exists(&mut self) -> bool {
        self.accept_all(&["IF", "EXISTS"])
    }

    pub(crate) fn if_not_exists(&mut self) -> bool {
        self.accept_all(&["IF", "NOT", "EXISTS"])
    }

    /// One statement, up to its end or `;`.
    fn statement(&mut self) -> Parsed<Statement> {
        if self.current.kind == TokenKind::End {
            return Ok(Statement::Empty);
        }
        if self.is_symbol(b"(") {
            return self.select_statement();
        }
        if self.current.kind != TokenKind::Word {
            return Err(self.unexpected());
        }
        let word = self.slice().to_ascii_uppercase();
        match word.as_slice() {
            b"SELECT" | b"TABLE" | b"VALUES" => self.select_statement(),
            b"WITH" => self.with_statement(),
            b"INSERT" | b"REPLACE" => self.insert(),
            b"UPDATE" => self.update(Vec::new()),
            b"DELETE" => self.delete(Vec::new()),
            b"CREATE" => self.create(),
            b"DROP" => self.drop_statement(),
            b"ALTER" => self.alter(),
            b"TRUNCATE" => self.truncate(),
            b"RENAME" => self.rename(),
            b"BEGIN" | b"START" | b"COMMIT" | b"ROLLBACK" | b"SAVEPOINT" | b"RELEASE" => {
                self.transaction_control()
            }
            b"SET" => self.set(),
            b"SHOW" => self.show(),
            b"DESCRIBE" | b"DESC" | b"EXPLAIN" => self.describe(),
            _ => self.administration(),
        }
    }
}
