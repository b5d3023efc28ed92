//! EXTRACTVALUE and UPDATEXML: nothing that is given to them takes more memory or time than a statement has,
//! or goes deeper than the stack is.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support::engine::Engine;
use crate::support::{Client, all};

/// The only value of a statement, or the number of its error.
fn value(client: &mut Client, expression: &str) -> Result<Option<String>, u16> {
    client.run(&format!("SELECT {expression}")).map(|rows| rows[0][0].clone()).map_err(|error| error.0)
}

fn some(text: &str) -> Result<Option<String>, u16> {
    Ok(Some(text.to_owned()))
}

#[test]
fn long_paths_and_texts() {
    let engine = Engine::start();
    let mut root = engine.root();
    for (expression, wanted) in [
        ("EXTRACTVALUE('<a/>', CONCAT(REPEAT('1+', 10000), '1'))", some("10001")),
        ("EXTRACTVALUE('<a/>', CONCAT(REPEAT('1=', 9999), '1'))", some("1")),
        ("EXTRACTVALUE('<a/>', CONCAT(REPEAT('-', 10000), '1'))", some("1")),
        ("EXTRACTVALUE('<a/>', CONCAT('count(/a', REPEAT('/.', 10000), ')'))", some("1")),
        ("EXTRACTVALUE('<a/>', CONCAT('count(/a', REPEAT('/../a', 10000), ')'))", some("1")),
        ("EXTRACTVALUE('<a/>', CONCAT('count(/a', REPEAT('[1]', 10000), ')'))", some("1")),
        ("EXTRACTVALUE('<a/>', CONCAT('count(/b', REPEAT('|/a', 10000), ')'))", some("1")),
        ("EXTRACTVALUE('<a/>', CONCAT('0', REPEAT(' or 0', 10000), ' or 1'))", some("1")),
        ("EXTRACTVALUE('<a/>', CONCAT(REPEAT('(', 31), '1', REPEAT(')', 31)))", some("1")),
        ("EXTRACTVALUE('<a/>', CONCAT(REPEAT('(', 32), '1', REPEAT(')', 32)))", Err(1436)),
        ("EXTRACTVALUE('<a>x</a>', CONCAT('/a', REPEAT('[/a', 31), REPEAT(']', 31)))", some("x")),
        ("EXTRACTVALUE('<a>x</a>', CONCAT('/a', REPEAT('[/a', 100000)))", Err(1436)),
        ("EXTRACTVALUE('<a/>', CONCAT(REPEAT('not(', 100000)))", Err(1436)),
        ("EXTRACTVALUE(REPEAT('<a>x</a>', 100000), 'count(/a)')", some("100000")),
        ("EXTRACTVALUE(REPEAT('<a><b>x</b></a>', 50000), 'count(//a[contains(b, \"X\")])')", some("50000")),
        ("LENGTH(UPDATEXML(CONCAT(REPEAT('<a>x</a>', 100000), '<b/>'), '/b', 'c'))", some("800001")),
        ("EXTRACTVALUE(REPEAT('<', 1000000), '/a')", Ok(None)),
        ("EXTRACTVALUE(CONCAT('<a ', REPEAT('b=c ', 100000), '/>'), 'count(//@b)')", some("100000")),
    ] {
        assert_eq!(value(&mut root, expression), wanted, "{expression}");
    }
    engine.finish();
}

#[test]
fn memory_and_time_of_a_statement() {
    let engine = Engine::start();
    let mut root = engine.root();
    all(&mut root, &["SET untorn_statement_memory_limit = 40000000"]);
    let deep = "CONCAT(REPEAT('<a>', 250), REPEAT('</a>', 250))";
    for (expression, wanted) in [
        // Many nodes; one node found many times; many expressions; many texts.
        ("EXTRACTVALUE(REPEAT('<a/>', 2000000), 'count(//a)')", Err(1041)),
        (&*format!("EXTRACTVALUE({deep}, 'count(//a//a)')"), some("31125")),
        (&*format!("EXTRACTVALUE({deep}, 'count(//a//a//a//a)')"), Err(1041)),
        ("EXTRACTVALUE('<a/>', CONCAT(REPEAT('1+', 2000000), '1'))", Err(1041)),
        ("EXTRACTVALUE('<a/>', CONCAT('/a', REPEAT('|/a', 2000000)))", Err(1041)),
        // What a predicate takes for one node is there again for the next.
        ("EXTRACTVALUE(REPEAT('<a>x</a>', 3000), 'count(/a[count(/a) > 1])')", some("3000")),
    ] {
        assert_eq!(value(&mut root, expression), wanted, "{expression}");
    }
    // Copies of a variable are charged.
    all(&mut root, &["SET untorn_statement_memory_limit = DEFAULT", "SET @long = REPEAT('x', 1000000)"]);
    all(&mut root, &["SET untorn_statement_memory_limit = 10000000"]);
    let long = format!("EXTRACTVALUE('<a/>', 'count(/a[{}contains($@long, $@long)])')", "1=1 and ".repeat(9));
    assert_eq!(value(&mut root, &long), some("1"));
    // Each operand of a condition goes before the next comes.
    let many = format!("EXTRACTVALUE('<a/>', 'count(/a[{}1])')", "$@long = 1 or ".repeat(30));
    assert_eq!(value(&mut root, &many), some("1"));
    all(&mut root, &["SET untorn_statement_memory_limit = 900000"]);
    assert_eq!(value(&mut root, "EXTRACTVALUE('<a/>', 'string-length($@long)')"), Err(1041));
    all(&mut root, &["SET untorn_statement_memory_limit = 40000000"]);
    all(&mut root, &["SET max_execution_time = 20"]);
    for expression in [
        "EXTRACTVALUE(REPEAT('<a>x</a>', 50000), 'count(/a[count(/a) > 1])')",
        "EXTRACTVALUE(REPEAT('<a>x</a>', 50000), 'count(/a[/a = \"y\"])')",
        "EXTRACTVALUE(REPEAT('<a>x</a>', 50000), 'count(/a[sum(/a) = 1])')",
        "EXTRACTVALUE(REPEAT('<a>x</a>', 50000), 'count(/a[string-length(/a) = 1])')",
        "EXTRACTVALUE(REPEAT('<a>x</a>', 50000), 'count(/a[/a/..])')",
    ] {
        assert_eq!(value(&mut root, expression), Err(3024), "{expression}");
    }
    engine.finish();
}

// Breaks with: steps, names, children or texts that count as no work; no bound.
#[test]
fn a_call_ends_at_a_bound_of_work() {
    let engine = Engine::start();
    let mut root = engine.root();
    for expression in [
        "EXTRACTVALUE(REPEAT('<a>x</a>', 50000), 'count(/a[/a[/a = \"y\"] = \"y\"])')",
        "EXTRACTVALUE(CONCAT('<a>', REPEAT('<b/>', 50000), '</a>'), 'count(//b[/a = \"y\"])')",
        "EXTRACTVALUE(REPEAT(CONCAT('<', REPEAT('n', 10000), '/>'), 1000), \
         CONCAT('count(//*[/', REPEAT('n', 10000), '])'))",
    ] {
        let expression = expression.replace("\\\n", "");
        assert_eq!(value(&mut root, &expression), Err(1105), "{expression}");
    }
    engine.finish();
}

// Breaks with: a byte too many behind a declaration, in the middle of a character.
#[test]
fn no_character_is_cut() {
    let engine = Engine::start();
    let mut root = engine.root();
    for (text, path) in [("<!DOCTYPE a>é<b/>", "/DOCTYPE"), ("<!DOCTYPE a>€", "/DOCTYPE"), ("<?x?>é", "/x")]
    {
        let changed = value(&mut root, &format!("UPDATEXML('{text}', '{path}', 'ü')")).unwrap().unwrap();
        let left = text.rsplit(['>', '<']).find(|part| !part.is_ascii()).unwrap_or_default();
        assert!(changed.contains(left) && !changed.contains('\u{fffd}'), "{changed}");
    }
    engine.finish();
}
