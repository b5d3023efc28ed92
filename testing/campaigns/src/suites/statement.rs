//! What the runner must know of a statement: what it writes, how its answer compares, whether it is played.
//!
//! Nothing is parsed: words are looked at. A statement is not played at all when it reaches outside the
//! run's own database (the peers may have other guests) or concerns a feature that is excluded; the list is
//! in the chapter on testing.

use super::judge::Rows;
use super::script::first_word;

/// Words of features that this engine does not set out to have, and that are not played.
const EXCLUDED: [&str; 46] = [
    " procedure ",
    " function ",
    " trigger ",
    " event ",
    " package ",
    " call ",
    "begin not atomic",
    "partition",
    "geometry",
    " point",
    "(point",
    "polygon",
    "linestring",
    "spatial",
    " st_",
    "(st_",
    "=st_",
    "fulltext",
    "match (",
    "match(",
    " against (",
    " against(",
    " multipoint",
    "gis_multi",
    " handler ",
    "create sequence",
    "for system_time",
    "system versioning",
    "drop server",
    "create server",
    "engine=merge",
    "engine=mrg",
    "engine=archive",
    "engine=csv",
    "engine=blackhole",
    "engine=federated",
    "engine=example",
    "engine=sequence",
    "install ",
    "execute immediate",
    "create or replace table",
    "seq_1_to",
    "nextval",
    "lastval",
    "rownum",
    "within group",
];

/// Words of statements that others on the same server would notice.
const OUTSIDE: [&str; 23] = [
    " xa ",
    "global ",
    "@@global",
    "persist ",
    " shutdown",
    " kill ",
    "create user",
    "drop user",
    "alter user",
    "rename user",
    "grant ",
    "revoke ",
    "set password",
    " flush ",
    " reset ",
    "change master",
    "start slave",
    "stop slave",
    " purge ",
    "create role",
    "drop role",
    "set role",
    "mysql.",
];

/// Why a statement is not played.
pub fn excluded(sql: &str) -> Option<&'static str> {
    let text = match prepared(sql) {
        Some(prepared) => plain(prepared),
        None => plain(sql),
    };
    let word = OUTSIDE.iter().chain(&EXCLUDED).find(|word| text.contains(*word))?;
    Some(word.trim())
}

/// The statement inside `PREPARE name FROM '…'`, with what it closes with.
fn prepared(sql: &str) -> Option<&str> {
    let (_, text) = sql.split_once(['\'', '"']).filter(|_| first_word(sql) == "prepare")?;
    Some(text.trim_end_matches(['\'', '"']))
}

/// Small letters, one blank between words and at both ends, no quoted text, no comments.
pub fn plain(sql: &str) -> String {
    let mut text = String::from(" ");
    let mut quote = None;
    for letter in sql.chars() {
        match quote {
            Some(open) => quote = Some(open).filter(|open| *open != letter),
            None if letter == '\'' || letter == '"' => quote = Some(letter),
            None if letter.is_whitespace() => {
                if !text.ends_with(' ') {
                    text.push(' ');
                }
            }
            None => text.extend(letter.to_lowercase()),
        }
    }
    if !text.ends_with(' ') {
        text.push(' ');
    }
    text.replace(" = ", "=").replace("engine ", "engine=").replace("engine==", "engine=")
}

/// As it is sent: other engines' tables are made as ours, and the database `test` is the run's own.
pub fn sent(sql: &str, database: &str) -> String {
    let mut text = sql.to_owned();
    for engine in ["myisam", "memory", "heap", "aria", "bdb", "$engine"] {
        text = replaced(&text, &["engine", "type"], engine, "InnoDB");
    }
    if plain(&text).starts_with(" use test") {
        return format!("USE {database}");
    }
    text.replace("test.t", &format!("{database}.t")).replace("`test`.", &format!("`{database}`."))
}

/// Puts `new` where `old` follows one of the words and an equals sign.
fn replaced(text: &str, words: &[&str], old: &str, new: &str) -> String {
    let mut result = String::new();
    let mut rest = text;
    let small = text.to_ascii_lowercase();
    let mut from = 0;
    while let Some(at) = small[from..].find(old).map(|at| at + from) {
        let before = small[..at].trim_end().trim_end_matches('=').trim_end();
        let end = at + old.len();
        let whole = !small[end..].starts_with(|c: char| c.is_ascii_alphanumeric());
        let done = text.len() - rest.len();
        result.push_str(&text[done..at]);
        result.push_str(if whole && words.iter().any(|word| before.ends_with(word)) {
            new
        } else {
            &text[at..end]
        });
        rest = &text[end..];
        from = end;
    }
    result + rest
}

/// How its rows are compared.
pub fn rows(sql: &str, sorted: bool) -> Rows {
    let text = plain(sql);
    let describes =
        ["show", "explain", "describe", "desc", "analyze", "check", "checksum", "optimize", "repair", "help"];
    if describes.contains(&&*first_word(sql)) || text.contains("information_schema") {
        return Rows::Text;
    }
    if !sorted && orders_all(&text) { Rows::Ordered } else { Rows::Unordered }
}

/// Whether it has an ORDER BY outside parentheses: in a part of a UNION or in a derived table it says
/// nothing of the result.
fn orders_all(text: &str) -> bool {
    let mut depth = 0_i32;
    text.char_indices().any(|(at, letter)| {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        depth == 0 && text[at..].starts_with(" order by ")
    })
}

/// Whether it asks for what the statement before it left behind.
pub fn asks_after_the_last(sql: &str) -> bool {
    let text = plain(sql);
    ["row_count", "found_rows", "show warnings", "show errors", "warning_count", "error_count", "diagnostics"]
        .iter()
        .any(|word| text.contains(word))
}

/// Whether it may change rows or definitions.
pub fn writes(sql: &str) -> bool {
    let words = [
        "insert", "replace", "update", "delete", "truncate", "create", "alter", "drop", "rename", "load",
        "with", "execute", "rollback", "commit", "xa",
    ];
    words.contains(&&*first_word(sql))
}

/// The names in it: words, quoted names, and user variables with their `@`.
pub fn names(sql: &str) -> Vec<String> {
    let text = plain(sql).replace('`', " ");
    let part = |letter: char| letter.is_alphanumeric() || "_$@".contains(letter);
    text.split(|letter| !part(letter)).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// The names that it makes: of a database, a table, a view, a prepared statement, user variables.
pub fn makes(sql: &str) -> Vec<String> {
    let names = names(sql);
    let kinds = ["table", "view", "database", "schema"];
    let mut rest = names.iter().skip(1).skip_while(|word| !kinds.contains(&&***word)).skip(1);
    match names.first().map(String::as_str) {
        Some("create" | "drop") => {
            let small = ["if", "not", "exists"];
            rest.find(|name| !small.contains(&&***name)).cloned().into_iter().collect()
        }
        Some("prepare") => names.get(1).cloned().into_iter().collect(),
        Some("set" | "select") => names.iter().filter(|name| name.starts_with('@')).cloned().collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_that_reach_outside_are_not_played() {
        assert_eq!(excluded("SET GLOBAL a = 1"), Some("global"));
        assert_eq!(excluded("create  user x"), Some("create user"));
        assert_eq!(excluded("CREATE TABLE t(a INT) ENGINE = merge"), Some("engine=merge"));
        assert_eq!(excluded("select 'set global a'"), None);
        assert_eq!(excluded("select pointer from t"), Some("point"));
        assert_eq!(excluded("XA START 'a'"), Some("xa"));
        assert_eq!(excluded("savepoint a"), None);
        assert_eq!(excluded("select last_insert_id()"), None);
        assert_eq!(excluded("prepare s from 'select match (a) against (1) from t'"), Some("match ("));
        assert_eq!(excluded("prepare s from 'select 1'"), None);
    }

    #[test]
    fn other_engines_and_the_database_are_replaced() {
        assert_eq!(
            sent("create table t(a int) Engine=MyISAM, comment 'memory'", "s"),
            "create table t(a int) Engine=InnoDB, comment 'memory'"
        );
        assert_eq!(sent("select * from test.t1", "s"), "select * from s.t1");
        assert_eq!(sent("USE test", "s"), "USE s");
    }

    #[test]
    fn the_order_counts_where_it_is_asked_for() {
        assert_eq!(rows("select a from t order by a", false), Rows::Ordered);
        assert_eq!(rows("select a from t order by a", true), Rows::Unordered);
        assert_eq!(rows("select ' order by ' from t", false), Rows::Unordered);
        assert_eq!(rows("(select a from t order by a) union select 1", false), Rows::Unordered);
        assert_eq!(rows("(select a from t) order by 1", false), Rows::Ordered);
        assert_eq!(rows("show tables", false), Rows::Text);
    }

    #[test]
    fn names_that_a_statement_makes() {
        assert_eq!(makes("CREATE TABLE IF NOT EXISTS `t1` (a int)"), ["t1"]);
        assert_eq!(makes("create temporary table t2 select 1"), ["t2"]);
        assert_eq!(makes("create database d character set utf8mb4"), ["d"]);
        assert_eq!(makes("prepare s from 'select 1'"), ["s"]);
        assert_eq!(makes("set @a=1, @b:=@c"), ["@a", "@b", "@c"]);
        assert!(makes("insert into t values (1)").is_empty());
    }
}
