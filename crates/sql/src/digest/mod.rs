//! Statements without their values: the text under which runs of one statement are counted together.
//!
//! The form is MySQL's: literals become `?`, lists of them `?, ...`, rows `(...)`, many rows
//! `(...) /* , ... */`, the lists of IN `(...)`; names are quoted, keywords are in capitals and those that
//! mean the same are one; comments and layout are gone. Positions in GROUP BY and ORDER BY stay, because
//! they are no values. Which words are keywords is taken from MySQL's own table of them (`keywords.txt`).
//!
//! Differences that are known: optimizer hints are comments here, and a sign is part of the literal also
//! where MySQL's grammar happens to have decided before it came to it.
//!
//! A text is read by others than who sent the statement, so no password may be in it. A password need not be
//! a literal (ANSI_QUOTES makes it a name, a slip leaves its quotes away): behind IDENTIFIED, and behind the
//! PASSWORD of a SET, nothing is shown, and for text that does not parse ([`Shape::Broken`]), no names are
//! shown either.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::OnceLock;

use crate::lexer::{Lexer, LexicalModes, Token, TokenKind, unquote};
use crate::parser::reserved;

/// Bytes of a statement that are looked at: what follows makes no other statement of it.
const LOOKED_AT_MAX: usize = 64 << 10;
/// Bytes of a text; the rest is cut off.
const TEXT_BYTES_MAX: usize = 4096;

/// Keywords that mean the same, and the one that stands for them.
const SYNONYMS: &[(&str, &str)] = &[
    ("ANY", "SOME"),
    ("BIGINT", "INT8"),
    ("CHAR", "CHARACTER"),
    ("COLUMNS", "FIELDS"),
    ("CURRENT_DATE", "CURDATE"),
    ("CURRENT_TIMESTAMP", "NOW"),
    ("DATABASE", "SCHEMA"),
    ("DATABASES", "SCHEMAS"),
    ("DAY", "SQL_TSI_DAY"),
    ("DEC", "DECIMAL"),
    ("DESCRIBE", "EXPLAIN"),
    ("DISTINCT", "DISTINCTROW"),
    ("DOUBLE", "FLOAT8"),
    ("INT", "INTEGER"),
    ("LOCALTIME", "NOW"),
    ("MID", "SUBSTRING"),
    ("MONTH", "SQL_TSI_MONTH"),
    ("REGEXP", "RLIKE"),
    ("SECOND", "SQL_TSI_SECOND"),
    ("SESSION_USER", "SYSTEM_USER"),
    ("STD", "STDDEV_POP"),
    ("SUBSTR", "SUBSTRING"),
    ("USER", "SYSTEM_USER"),
    ("VARCHAR", "VARCHARACTER"),
];

/// After these words of a GROUP BY or ORDER BY, or a number before them, no position is meant.
const AFTER_POSITION: &[&str] =
    &["ASC", "DESC", "HAVING", "LIMIT", "ORDER", "WITH", "FOR", "UNION", "EXCEPT", "INTERSECT", "LOCK", "ON"];

/// Where a sign is between two values, though a keyword stands before it.
const BEFORE_BINARY_SIGN: &[&str] = &["WHERE", "HAVING", "END", "NOW", "CURDATE", "CURRENT_TIME", "NULL"];

/// MySQL's keywords, sorted.
pub(crate) fn keywords_in_order() -> impl Iterator<Item = &'static str> {
    include_str!("keywords.txt").lines()
}

fn keywords() -> &'static HashSet<&'static str> {
    static KEYWORDS: OnceLock<HashSet<&'static str>> = OnceLock::new();
    KEYWORDS.get_or_init(|| keywords_in_order().collect())
}

/// What is known of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// It has been parsed, or will be.
    Whole,
    /// It was refused: what stands in it for a name may be a value whose quotes are wrong.
    Broken,
}

/// What has been read.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Item {
    Word(Cow<'static, str>),
    Name(String),
    /// `?`
    Value,
    /// `?, ...`
    Values,
    /// `(?)`
    One,
    /// `(...)`
    Many,
    /// `(?) /* , ... */`
    Ones,
    /// `(...) /* , ... */`
    Manies,
}

impl Item {
    fn is(&self, word: &str) -> bool {
        matches!(self, Item::Word(text) if text == word)
    }

    fn text(&self) -> Cow<'_, str> {
        match self {
            Item::Word(word) => Cow::Borrowed(word),
            Item::Name(name) => Cow::Owned(format!("`{name}`")),
            Item::Value => "?".into(),
            Item::Values => "?, ...".into(),
            Item::One => "(?)".into(),
            Item::Many => "(...)".into(),
            Item::Ones => "(?) /* , ... */".into(),
            Item::Manies => "(...) /* , ... */".into(),
        }
    }
}

/// The list of a GROUP BY or ORDER BY.
#[derive(Default)]
struct Places {
    depth: u32,
    /// Depths at which such a list is being read, the innermost last.
    lists: Vec<u32>,
}

impl Places {
    fn begin_list(&mut self) {
        if self.lists.last() != Some(&self.depth) {
            self.lists.push(self.depth);
        }
    }

    /// Ends those of this depth. None is deeper, so that each is looked at when it ends and never before.
    fn end_lists(&mut self) {
        while self.lists.last().is_some_and(|depth| *depth >= self.depth) {
            self.lists.pop();
        }
    }
}

/// The text of a statement without its values.
pub fn text(sql: &[u8], modes: LexicalModes, shape: Shape) -> String {
    let cut = sql.len() > LOOKED_AT_MAX;
    let mut items = Vec::new();
    let mut lexer = Lexer::new(sql.get(..LOOKED_AT_MAX).unwrap_or(sql), modes);
    let mut places = Places::default();
    loop {
        let token = lexer.next_token();
        if token.kind == TokenKind::End || lexer.slice(token) == b";" {
            break;
        }
        if token.kind == TokenKind::Invalid {
            break;
        }
        read(token, &lexer, &mut items, &mut places);
        if hides_the_rest(&items) {
            items.push(Item::Word("...".into()));
            break;
        }
        if let (Shape::Broken, Some(name @ Item::Name(_))) = (shape, items.last_mut()) {
            *name = Item::Value;
        }
    }
    if cut {
        // Of rows without end the ones read stand for all.
        let whole = items.iter().rposition(|item| matches!(item, Item::Ones | Item::Manies));
        items.truncate(whole.map_or(items.len(), |last| last + 1));
    }
    render(&items)
}

/// Whether a password may follow what was just read.
fn hides_the_rest(items: &[Item]) -> bool {
    let sets = || items.first().is_some_and(|first| first.is("SET"));
    items.last().is_some_and(|last| last.is("IDENTIFIED") || (last.is("PASSWORD") && sets()))
}

/// A name or number as text: no more of it than a text may have.
fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.get(..TEXT_BYTES_MAX).unwrap_or(bytes)).into_owned()
}

fn read(token: Token, lexer: &Lexer<'_>, items: &mut Vec<Item>, places: &mut Places) {
    let bytes = lexer.slice(token);
    match token.kind {
        TokenKind::Word => word(token, lexer, items, places),
        TokenKind::QuotedName => {
            items.push(Item::Name(lossy(&unquote(bytes, lexer.modes()))));
        }
        TokenKind::Integer if is_position(lexer, items, places) => {
            items.push(Item::Word(lossy(bytes).into()))
        }
        TokenKind::Text
        | TokenKind::NationalText
        | TokenKind::Integer
        | TokenKind::Decimal
        | TokenKind::Float
        | TokenKind::Hex
        | TokenKind::Bits
        | TokenKind::Parameter => push_value(items),
        TokenKind::UserVariable => items.push(Item::Word("@?".into())),
        TokenKind::SystemVariable => items.push(Item::Word("@@".into())),
        TokenKind::Symbol => symbol(bytes, items, places),
        TokenKind::End | TokenKind::Invalid => {}
    }
}

fn symbol(bytes: &[u8], items: &mut Vec<Item>, places: &mut Places) {
    match bytes {
        b"(" => places.depth += 1,
        b")" => {
            places.end_lists();
            places.depth = places.depth.saturating_sub(1);
            return close(items);
        }
        b"<>" => return items.push(Item::Word("!=".into())),
        _ => {}
    }
    items.push(Item::Word(lossy(bytes).into()));
}

fn word(token: Token, lexer: &Lexer<'_>, items: &mut Vec<Item>, places: &mut Places) {
    let bytes = lexer.slice(token);
    let next = lexer.text().get(token.end as usize).copied().unwrap_or(0);
    let upper = lossy(bytes).to_ascii_uppercase();
    let last = items.last();
    let of_variable = last.is_some_and(|last| last.is("@@"));
    let in_name = last.is_some_and(|last| last.is(".")) || (next == b'.' && !of_variable);
    let function = next == b'(' && reserved::FUNCTIONS.contains(&&*upper);
    if bytes.first() == Some(&b'_') && lexer.clone_at().next_token().kind == TokenKind::Text {
        return items.push(Item::Word("(_charset)".into()));
    }
    let scope = ["GLOBAL", "SESSION", "LOCAL", "PERSIST", "PERSIST_ONLY"].contains(&&*upper);
    let keyword = function || keywords().contains(&*upper);
    if in_name || !keyword || (of_variable && !(scope && next == b'.')) {
        return items.push(Item::Name(lossy(bytes)));
    }
    let before = ["IS", "NOT", "SET"];
    if upper == "NULL" && !last.is_some_and(|last| before.iter().any(|word| last.is(word))) {
        return push_value(items);
    }
    match &*upper {
        "BY" => places.begin_list(),
        word if AFTER_POSITION.contains(&word) && !["ASC", "DESC"].contains(&word) => {
            places.end_lists();
        }
        _ => {}
    }
    let known = SYNONYMS.iter().find(|(word, _)| *word == upper);
    items.push(Item::Word(known.map_or(Cow::Owned(upper), |(_, stands)| Cow::Borrowed(*stands))));
}

/// Whether the number just read is a whole element of a GROUP BY or ORDER BY.
fn is_position(lexer: &Lexer<'_>, items: &[Item], places: &Places) -> bool {
    let begins = items.last().is_some_and(|last| last.is("BY") || last.is(","));
    if !begins || places.lists.last() != Some(&places.depth) {
        return false;
    }
    let mut ahead = lexer.clone_at();
    let next = ahead.next_token();
    let bytes = ahead.slice(next).to_ascii_uppercase();
    next.kind == TokenKind::End
        || [b",".as_slice(), b")", b";"].contains(&&*bytes)
        || AFTER_POSITION.iter().any(|word| word.as_bytes() == bytes)
}

fn push_value(items: &mut Vec<Item>) {
    if let [before @ .., sign] = items.as_slice()
        && (sign.is("-") || sign.is("+"))
        && is_unary_after(before.last())
    {
        items.pop();
    }
    if let [.., Item::Value | Item::Values, comma] = items.as_slice()
        && comma.is(",")
    {
        items.truncate(items.len() - 2);
        return items.push(Item::Values);
    }
    items.push(Item::Value);
}

/// Whether a sign behind this belongs to the value that follows.
fn is_unary_after(before: Option<&Item>) -> bool {
    match before {
        None => true,
        Some(Item::Word(word)) => word != ")" && word != "@?" && !BEFORE_BINARY_SIGN.contains(&&**word),
        Some(_) => false,
    }
}

/// A parenthesis closes: around values it is a row.
fn close(items: &mut Vec<Item>) {
    let row = match items.as_slice() {
        [.., open, Item::Value] if open.is("(") => Item::One,
        [.., open, Item::Values] if open.is("(") => Item::Many,
        _ => return items.push(Item::Word(")".into())),
    };
    items.truncate(items.len() - 2);
    let rows = match (items.as_slice(), &row) {
        ([.., last], _) if last.is("IN") => return items.push(Item::Word("(...)".into())),
        ([.., Item::One | Item::Ones, comma], Item::One) if comma.is(",") => Item::Ones,
        ([.., Item::Many | Item::Manies, comma], Item::Many) if comma.is(",") => Item::Manies,
        _ => return items.push(row),
    };
    items.truncate(items.len() - 2);
    items.push(rows);
}

fn render(items: &[Item]) -> String {
    let mut text = String::new();
    for item in items {
        if !text.is_empty() && !text.ends_with("@@") {
            text.push(' ');
        }
        text.push_str(&item.text());
        if text.len() > TEXT_BYTES_MAX {
            text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
            text.push_str("...");
            break;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(sql: &str) -> String {
        text(sql.as_bytes(), LexicalModes::default(), Shape::Whole)
    }

    /// Statements and MySQL's answers to STATEMENT_DIGEST_TEXT.
    #[test]
    fn texts_are_mysqls() {
        let pairs = include_str!("mysql.txt").lines().collect::<Vec<_>>();
        assert!(pairs.len() > 100 && pairs.len() % 2 == 0);
        for pair in pairs.chunks(2) {
            let [sql, wanted] = pair else { continue };
            assert_eq!(of(sql), *wanted, "{sql}");
        }
    }

    #[test]
    fn rows_without_end_are_the_same_statement_and_nothing_is_looked_at_for_ever() {
        let insert = |rows: usize| {
            let rows = vec!["(1, 'abc', NULL)"; rows].join(",");
            of(&format!("INSERT INTO t VALUES {rows}"))
        };
        assert_eq!(insert(2), "INSERT INTO `t` VALUES (...) /* , ... */");
        assert_eq!(insert(50_000), insert(2));
        let names = vec!["a_long_name"; 50_000].join(", ");
        assert!(of(&format!("SELECT {names}")).len() <= TEXT_BYTES_MAX + 3);
    }

    /// One name fills no table, and what is no text in it does not grow.
    #[test]
    fn a_long_name_is_cut() {
        for name in [b'a', 0xff].map(|byte| vec![byte; LOOKED_AT_MAX - 10]) {
            let sql = [b"SELECT `", name.as_slice(), b"`"].concat();
            let text = text(&sql, LexicalModes::default(), Shape::Whole);
            assert!(text.len() <= TEXT_BYTES_MAX + 3 && text.ends_with("..."), "{}", text.len());
            assert!(lossy(&name).len() <= 3 * TEXT_BYTES_MAX, "it is cut before it grows");
        }
    }

    #[test]
    fn no_password_is_in_a_text() {
        let ansi = LexicalModes { ansi_quotes: true, ..LexicalModes::default() };
        for shape in [Shape::Whole, Shape::Broken] {
            for sql in [
                "ALTER USER root@localhost IDENTIFIED BY topsecret",
                "ALTER USER root@localhost IDENTIFIED BY 'it's topsecret'",
                "ALTER USER root@localhost IDENTIFIED BY \"topsecret\"",
                "CREATE USER a IDENTIFIED WITH mysql_native_password AS topsecret",
                "GRANT ALL ON *.* TO a IDENTIFIED BY topsecret",
                "SET PASSWORD = topsecret",
                "/*! set password */ FOR a = \"topsecret\"",
            ] {
                for modes in [LexicalModes::default(), ansi] {
                    let text = text(sql.as_bytes(), modes, shape);
                    assert!(!text.contains("topsecret") && text.ends_with("..."), "{text}");
                }
            }
        }
        let broken = |sql: &str| text(sql.as_bytes(), ansi, Shape::Broken);
        assert_eq!(broken("ALTER USR a IDENTIFED BY \"topsecret\""), "ALTER ? ? ? BY ?");
        assert_eq!(of("SELECT password FROM t"), "SELECT PASSWORD FROM `t`");
    }

    /// There is one list for each depth, and the innermost ends first.
    #[test]
    fn lists_are_looked_at_once() {
        let mut places = Places::default();
        for _ in 0..4000 {
            places.begin_list();
            places.begin_list();
            places.depth += 1;
        }
        assert_eq!(places.lists.len(), 4000);
        places.end_lists();
        assert_eq!(places.lists.len(), 4000, "none of this depth");
        places.depth = 3998;
        places.end_lists();
        assert_eq!(places.lists.len(), 3998);
    }

    #[test]
    fn what_the_statement_cache_makes_of_a_statement_has_the_same_text() {
        assert_eq!(
            of("SELECT c FROM t WHERE id=? AND d IN (?,?)"),
            of("select c from t where id=5 and d in (1,2)")
        );
    }
}
