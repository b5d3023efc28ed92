#![allow(clippy::unwrap_used, clippy::panic)]
//! The corpus: every statement of the tools this server is for must parse; precedence is compared with
//! MySQL's table by writing out the parentheses.

use super::super::ast::{Expr, Statement};
use super::super::lexer::LexicalModes;
use super::*;

const CORPUS: &str = include_str!("../../tests/corpus.sql");

fn parse_one(sql: &str) -> Result<ParsedStatement, SqlError> {
    parse(sql.as_bytes(), LexicalModes::default())
}

#[test]
fn corpus_parses() {
    let mut failed = Vec::new();
    let mut count = 0;
    for line in CORPUS.lines().filter(|line| !line.trim().is_empty() && !line.starts_with("-- ")) {
        count += 1;
        match parse_one(line) {
            Ok(parsed) if parsed.consumed >= line.trim_end_matches(';').len() => {}
            Ok(_) => failed.push(format!("{line}: not to the end")),
            Err(error) => failed.push(format!("{line}: {error}")),
        }
    }
    assert!(count > 150, "the corpus has shrunk to {count}");
    assert!(failed.is_empty(), "{} of {count} failed:\n{}", failed.len(), failed.join("\n"));
}

#[test]
fn what_is_missing_is_refused_by_its_name() {
    for (sql, what) in [
        ("CREATE PROCEDURE p() SELECT 1", "CREATE PROCEDURE"),
        ("CREATE DEFINER = u@localhost PROCEDURE p() SELECT 1", "CREATE PROCEDURE"),
        ("CREATE FUNCTION f() RETURNS INT RETURN 1", "CREATE FUNCTION"),
        ("CREATE AGGREGATE FUNCTION f RETURNS INT SONAME 'f.so'", "CREATE AGGREGATE FUNCTION"),
        ("CREATE TRIGGER x BEFORE INSERT ON t FOR EACH ROW SET @a = 1", "CREATE TRIGGER"),
        ("CREATE EVENT e ON SCHEDULE EVERY 1 HOUR DO SELECT 1", "CREATE EVENT"),
        ("DROP EVENT IF EXISTS e", "DROP EVENT"),
        ("ALTER EVENT e DISABLE", "ALTER EVENT"),
        ("ALTER DEFINER = u@localhost EVENT e DISABLE", "ALTER EVENT"),
    ] {
        let refused = parse_one(sql).unwrap().statement;
        assert!(matches!(refused, Statement::Unsupported(named) if named == what), "{sql}: {refused:?}");
    }
    assert_eq!(parse_one("CREATE NONSENSE x").unwrap_err().code, 1064);
    assert_eq!(parse_one("ALTER NONSENSE x").unwrap_err().code, 1064);
}

/// What a view keeps of a query: written and read again it is the same, in every SQL mode.
#[test]
fn queries_are_text_again() {
    let mut count = 0;
    for line in CORPUS.lines() {
        let Ok(ParsedStatement { statement: Statement::Select(query), .. }) = parse_one(line) else {
            continue;
        };
        // Parameters and variables are no part of a view.
        let Ok(text) = query.to_text(None) else { continue };
        count += 1;
        let again = match parse_one(&text).unwrap_or_else(|error| panic!("{line}\n{text}\n{error}")).statement
        {
            Statement::Select(again) => again.to_text(None).unwrap(),
            other => panic!("{line}\n{text}\n{other:?}"),
        };
        assert_eq!(again, text, "{line}");
    }
    assert!(count > 30, "{count}");
}

fn expr(sql: &str) -> Expr {
    let mut parser = Parser::new(sql.as_bytes(), LexicalModes::default());
    let expr = parser.expr().unwrap_or_else(|error| panic!("{sql}: {error}"));
    assert!(parser.at_end(), "{sql} was not read to its end");
    expr
}

#[test]
fn precedence() {
    for (plain, explicit) in [
        ("a OR b AND c", "a OR (b AND c)"),
        ("a OR b XOR c AND d", "a OR (b XOR (c AND d))"),
        ("NOT a = b", "NOT (a = b)"),
        ("NOT a AND b", "(NOT a) AND b"),
        ("!a = b", "(!a) = b"),
        ("a = b = c", "(a = b) = c"),
        ("a | b & c", "a | (b & c)"),
        ("a & b << c", "a & (b << c)"),
        ("a << b + c", "a << (b + c)"),
        ("a + b * c", "a + (b * c)"),
        ("a - b - c", "(a - b) - c"),
        ("a * b ^ c", "a * (b ^ c)"),
        ("-a ^ b", "(-a) ^ b"),
        ("a DIV b * c MOD d", "((a DIV b) * c) MOD d"),
        ("a BETWEEN b AND c AND d", "(a BETWEEN b AND c) AND d"),
        ("a BETWEEN b AND c OR d BETWEEN e AND f", "(a BETWEEN b AND c) OR (d BETWEEN e AND f)"),
        ("a = b LIKE c", "a = (b LIKE c)"),
        ("a IN (1, 2) = b", "(a IN (1, 2)) = b"),
        ("a IS NULL AND b", "(a IS NULL) AND b"),
        ("a = b IS NULL", "(a = b) IS NULL"),
        ("a || b", "a OR b"),
        ("a && b || c", "(a AND b) OR c"),
        ("BINARY a = b", "(BINARY a) = b"),
        ("a NOT LIKE b OR c NOT IN (1)", "(a NOT LIKE b) OR (c NOT IN (1))"),
        ("CASE WHEN a THEN b ELSE c END + 1", "(CASE WHEN a THEN b ELSE c END) + 1"),
    ] {
        assert_eq!(expr(plain), expr(explicit), "{plain}");
    }
}

/// What a definition keeps means the same under every SQL mode, to every reader.
#[test]
fn an_expression_written_out_reads_as_itself() {
    let modes = LexicalModes { pipes_as_concat: true, ansi_quotes: true, ..LexicalModes::default() };
    for (text, written) in [
        ("a||b||'c' = \"d\"", "(concat(concat(`a`,`b`),_utf8mb4'c') = `d`)"),
        ("a+b*c-1", "((`a` + (`b` * `c`)) - 1)"),
        ("NOT a OR b AND NOT c", "((0 = `a`) or ((0 <> `b`) and (0 = `c`)))"),
        ("NOT (a = 1 OR b IN (2) OR NOT c)", "((`a` <> 1) and (`b` <> 2) and (0 <> `c`))"),
        (
            "NOT (a <=> b) AND (c AND d IS NOT TRUE)",
            "((not((`a` <=> `b`))) and (0 <> `c`) and ((0 <> `d`) is not true))",
        ),
        ("a BETWEEN 1 AND 2 XOR b NOT IN (1,2,-3)", "((`a` between 1 and 2) xor (`b` not in (1,2,-(3))))"),
        ("a IS NOT NULL AND b IS UNKNOWN", "((`a` is not null) and (`b` is null))"),
        (
            "x'0aFF' = b'101' AND a LIKE '%''\\\\_' ESCAPE '|'",
            "((0x0aff = 0x05) and (`a` like _utf8mb4'%\\'\\\\_' escape _utf8mb4'|'))",
        ),
        ("CASE a WHEN 1 THEN 2 ELSE 3.50 END", "(case `a` when 1 then 2 else 3.50 end)"),
        ("TRIM(BOTH 'x' FROM a) = TRIM(b)", "(trim(both _utf8mb4'x' from `a`) = trim(`b`))"),
        ("TIMESTAMPDIFF(MONTH, a, b) > 1e-3", "(timestampdiff(MONTH,`a`,`b`) > 1e-3)"),
        (
            "d - INTERVAL '1 2' DAY_HOUR < DATE '2020-01-01'",
            "((`d` - interval _utf8mb4'1 2' day_hour) < DATE'2020-01-01')",
        ),
        (
            "CAST(a AS DECIMAL(10,2)) <=> CONVERT(b USING utf8mb4)",
            "(cast(`a` as decimal(10,2)) <=> convert(`b` using utf8mb4))",
        ),
        ("`odd``name` + IF(a, NULL, -5)", "(`odd``name` + if(`a`,NULL,-(5)))"),
        ("(a, b) = (SELECT 1, 2)", ""),
        ("@x > 1", ""),
        ("a = ?", ""),
    ] {
        let mut parser = Parser::new(text.as_bytes(), modes);
        let Ok(kept) = parser.expr().unwrap().to_text() else {
            assert_eq!(written, "", "{text}");
            continue;
        };
        assert_eq!(kept, written, "{text}");
        let again = parse_expression(kept.as_bytes(), LexicalModes::default()).unwrap();
        assert_eq!(again.to_text().unwrap(), kept, "{text}");
    }
}

#[test]
fn pipes_concatenate_when_the_mode_says_so() {
    let modes = LexicalModes { pipes_as_concat: true, ..LexicalModes::default() };
    let mut parser = Parser::new(b"a || b = c", modes);
    let Expr::Binary2(operator, ..) = parser.expr().unwrap() else { panic!() };
    assert_eq!(operator, super::super::ast::BinaryOperator::Equal);
}

#[test]
fn errors_show_the_text_from_the_offending_token() {
    let error = parse_one("SELECT a FORM t").err();
    // `FORM` is an alias; the trouble starts behind it.
    assert_eq!(error.unwrap().message.split("near ").nth(1), Some("'t' at line 1"));
    let error = parse_one("SELECT\n* FROM\nWHERE").unwrap_err();
    assert_eq!((error.code, error.message.ends_with("near 'WHERE' at line 3")), (1064, true));
    assert_eq!(parse_one("SELECT 'abc").unwrap_err().code, 1064);
}

#[test]
fn statements_are_split_at_semicolons() {
    let sql = b"SELECT 1; SELECT ';' ;\n";
    let first = parse(sql, LexicalModes::default()).unwrap();
    assert_eq!(first.consumed, 9);
    let rest = &sql[first.consumed..];
    let second = parse(rest, LexicalModes::default()).unwrap();
    assert_eq!(trimmed(&rest[second.consumed..]), b"");
    assert_eq!(trimmed(b"\n ;DO 1; ;\t"), b";DO 1");
    assert_eq!(parse_one(";DO 1").unwrap_err().code, 1064);
    assert_eq!(parse_one("/* only a comment */").unwrap().statement, Statement::Empty);
}

#[test]
fn parameters_are_counted_in_order() {
    let parsed = parse_one("UPDATE t SET a = ?, b = b + ? WHERE id = ? LIMIT ?").unwrap();
    assert_eq!(parsed.parameters, 4);
}

#[test]
fn what_was_to_be_inserted_is_not_assigned() {
    let insert = |update: &str| {
        let sql = format!("INSERT INTO t VALUES (1, 2) AS new ON DUPLICATE KEY UPDATE {update}");
        parse_one(&sql).map(|_| ()).map_err(|error| error.code)
    };
    assert_eq!(insert("b = new.b"), Ok(()));
    assert_eq!(insert("t.b = new.b"), Ok(()));
    assert_eq!(insert("new.b = 1"), Err(crate::errors::BAD_FIELD));
}
