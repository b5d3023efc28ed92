//! What planning takes beyond the text: columns that stars name, values that aliases mention, joins of many
//! tables.

use sql::expr::Expr;
use sql::lexer::LexicalModes;
use sql::parser;
use sql::plan::{Charged, Plan, Planner, SelectPlan};

use super::*;

/// Columns of the wide tables.
const COLUMNS: usize = 200;

impl Fixture {
    /// Tables `w0`, `w1`, … of many columns.
    fn wide_tables(&mut self, count: usize) {
        let columns = (0..COLUMNS).map(|n| format!("c{n} INT")).collect::<Vec<_>>().join(",");
        for table in 0..count {
            self.good(&format!("CREATE TABLE w{table} (id INT PRIMARY KEY, {columns})"));
        }
    }

    fn select_plan(&self, sql: &str) -> Charged<SelectPlan> {
        let statement = parser::parse(sql.as_bytes(), LexicalModes::default()).unwrap().statement;
        match Planner::new(&self.session.state).data(&statement).unwrap() {
            Some(Plan::Select(plan)) => plan,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn what_stars_and_tables_add_to_a_plan_is_charged() {
    let mut fixture = Fixture::new("stars");
    fixture.wide_tables(1);
    fixture.good("SET untorn_statement_memory_limit = 2000000");
    let stars = vec!["w0.*"; 40].join(",");
    let unions = vec!["SELECT * FROM w0"; 40].join(" UNION ALL ");
    let tables = vec!["SELECT 1 FROM w0"; 400].join(" UNION ALL ");
    let inside = vec!["EXISTS (SELECT * FROM w0)"; 40].join(" AND ");
    for sql in [
        format!("SELECT {stars} FROM w0"),
        unions.clone(),
        tables.clone(),
        format!("SELECT 1 FROM (SELECT {stars} FROM w0 LIMIT 1) d"),
        format!("INSERT INTO w0 SELECT {stars} FROM w0"),
        format!("DELETE FROM w0 WHERE {inside}"),
        format!("EXPLAIN SELECT {stars} FROM w0"),
        format!("SET @a = (SELECT 1 FROM w0 WHERE {inside})"),
    ] {
        assert_eq!(fixture.run(&sql).error, Some(1041), "{sql:.60}");
        while fixture.session.state.memory.kept() > 0 {
            std::thread::yield_now();
        }
    }
    fixture.good("SET untorn_statement_memory_limit = 100000000");
    for sql in [format!("SELECT {stars} FROM w0"), unions, tables] {
        fixture.good(&sql);
        fixture.good(&format!("PREPARE p FROM '{sql}'"));
        assert_eq!(fixture.run("EXECUTE p").error, None);
    }
    fixture.good("DEALLOCATE PREPARE p");
}

/// A plan that is kept for later statements keeps its charge; the kept ones do not take what a statement may
/// have.
#[test]
fn kept_plans_of_wide_tables_leave_room_for_statements() {
    let mut fixture = Fixture::new("kept-plans");
    fixture.wide_tables(1);
    fixture.good("SET untorn_statement_memory_limit = 20000000");
    let mut most = 0;
    for number in 0..300 {
        fixture.good(&format!(
            "SELECT w0.*, w0.*, w0.* FROM w0 AS w0 WHERE c{} = 5 + {number}",
            number % COLUMNS
        ));
        most = most.max(fixture.session.state.memory.kept());
    }
    assert!((1 << 20..9 << 20).contains(&most), "{most} bytes kept");
}

#[test]
fn a_select_has_no_more_columns_than_can_be_numbered() {
    let mut fixture = Fixture::new("columns");
    fixture.wide_tables(1);
    let stars = |count| format!("SELECT {} FROM w0", vec!["w0.*"; count].join(","));
    assert_eq!(fixture.run(&stars(326)).error, None);
    assert_eq!(fixture.run(&stars(327)).error, Some(1117));
}

#[test]
fn what_an_alias_stands_for_is_not_copied() {
    let mut fixture = Fixture::new("aliases");
    fixture.good("CREATE TABLE o (id INT PRIMARY KEY)");
    let sum = vec!["id"; 500].join(" + ");
    let plan = fixture.select_plan(&format!("SELECT {sum} AS x, id AS y FROM o ORDER BY x, 1, x + 1, y, X"));
    let shared = |expr: &Expr| match expr {
        Expr::Shared(inner) => Arc::as_ptr(inner),
        _ => panic!("it is copied"),
    };
    let keys: Vec<&Expr> = plan.order.iter().map(|(key, _)| key).collect();
    // `1` and `X` are `x` once more.
    let [by_name, Expr::Arithmetic(_, inside, _), Expr::Column { .. }] = &keys[..] else {
        panic!("{} keys", keys.len())
    };
    for key in [by_name, &&**inside] {
        assert_eq!(shared(key), shared(&plan.items[0]));
    }
    // As many mentions as fit, each of them a walk only.
    let (sink, _) =
        fixture.drive(&format!("SELECT {sum} AS x FROM o ORDER BY {}", vec!["x"; 5000].join(",")), None);
    assert_eq!(sink.error, None);
}

/// Statements of few bytes, with the slices that planning them takes.
fn short_texts() -> Vec<(String, usize)> {
    let tables = |count: usize, between: &str| {
        (0..count).map(|n| format!("w{n} t{n}")).collect::<Vec<_>>().join(between)
    };
    let conditions = (0..300)
        .map(|n| format!("t{}.c{n} = t{}.c1", n % 12, (n + 1) % 12))
        .collect::<Vec<_>>()
        .join(" AND ");
    vec![
        (format!("SELECT 1 FROM {}", tables(12, " NATURAL JOIN ")), bound(12 * COLUMNS * 6)),
        (format!("SELECT * FROM {}", tables(12, ", ")), bound(2 * 12 * COLUMNS)),
        (format!("SELECT 1 FROM {} WHERE {}", tables(12, ", "), conditions.replace("c2", "c1")), bound(ROWS)),
        (format!("EXPLAIN SELECT * FROM {}", tables(12, ", ")), bound(2 * 12 * COLUMNS)),
        (
            format!("SET @a = (SELECT 1 FROM {} WHERE {conditions} LIMIT 1)", tables(12, ", "))
                .replace("c2", "c1"),
            bound(ROWS),
        ),
        (format!("SET @a = {}", vec!["1"; 6 * ROWS].join("+")), bound(6 * ROWS)),
        (format!("DO {}", vec!["1"; 6 * ROWS].join("+")), bound(6 * ROWS)),
    ]
}

#[test]
fn short_texts_with_much_to_plan_give_way_and_end_at_a_kill() {
    let mut fixture = Fixture::new("short-texts");
    fixture.wide_tables(12);
    fixture.measure_in_units(UNITS);
    for (sql, slices) in short_texts() {
        let (sink, polls) = fixture.drive(&sql, None);
        assert_eq!(sink.error, None, "{sql:.60}");
        assert!(polls >= slices, "{sql:.60}: {polls} polls where planning is {slices} slices");
        for kill_before in [2, polls / 2] {
            let (sink, ended) = fixture.drive(&sql, Some(kill_before));
            assert_eq!(sink.error, Some(1317), "{sql:.60}: killed before {kill_before} of {polls}");
            assert!(ended <= kill_before + 20, "{sql:.60}: {ended} polls, killed before {kill_before}");
        }
    }
}

/// Also while paths are chosen, which is behind binding.
#[test]
fn planning_a_select_ends_when_its_time_is_over() {
    let mut fixture = Fixture::new("planning-time");
    fixture.wide_tables(40);
    fixture.measure_in_units(UNITS);
    let tables = (0..40).map(|n| format!("w{n} t{n}")).collect::<Vec<_>>().join(",");
    let conditions = (0..4000)
        .map(|n| format!("t{}.c{} = t{}.id", n % 40, n % COLUMNS, (n + 1) % 40))
        .collect::<Vec<_>>()
        .join(" AND ");
    let sql = format!("SELECT 1 FROM {tables} WHERE {conditions}");
    let (sink, polls) = fixture.drive(&sql, None);
    assert_eq!(sink.error, None);
    // Choosing looks at a condition only for the sources that it speaks of.
    assert!(polls < bound(60 * 4000 * 40), "{polls} polls");
    fixture.good("SET max_execution_time = 1");
    let (sink, ended) = fixture.drive(&sql, None);
    assert_eq!(sink.error, Some(3024));
    assert!(ended < polls, "{ended} of {polls} polls");
}

#[test]
fn many_statements_in_one_text_take_turns_and_no_more_than_their_length() {
    let mut fixture = Fixture::new("many");
    let mut flags = fixture.connection.client_flags();
    flags.multi_statements = true;
    fixture.connection.set_client_flags(flags);
    fixture.measure_in_units(UNITS);
    const STATEMENTS: usize = 20_000;
    let (sink, polls) = fixture.drive(&"DO 1, 2, 3; ".repeat(STATEMENTS), None);
    assert_eq!((sink.error, sink.affected), (None, Some(0)));
    assert!((STATEMENTS..3 * STATEMENTS).contains(&polls), "{polls} polls");
    // The text of a syntax error is that of its statement.
    let sql = format!("DO 1; DO /*{}*/ 1 2; DO 3", "-".repeat(300_000));
    assert_eq!(fixture.run(&sql).error, Some(1064));
}

#[test]
fn ranges_of_long_keys_are_charged() {
    let mut fixture = Fixture::new("long-keys");
    fixture.good("CREATE TABLE k (id INT PRIMARY KEY, a VARCHAR(100), b INT, KEY (a, b))");
    fixture.good("INSERT INTO k VALUES (1, 'a', 1)");
    let numbers = (0..100).map(|n| format!("{n} + 0.0")).collect::<Vec<_>>().join(",");
    for (sql, bytes) in [
        // Few keys, each long.
        ("SELECT id FROM k WHERE a IN (REPEAT('x', 50000), REPEAT('y', 50000), 'a')".to_owned(), 400_000),
        ("SELECT id FROM k WHERE a > REPEAT('x', 100000)".to_owned(), 400_000),
        // A long one in front of many.
        (format!("SELECT id FROM k WHERE a = REPEAT('x', 20000) AND b IN ({numbers})"), 4_000_000),
    ] {
        fixture.good(&format!("SET untorn_statement_memory_limit = {}", bytes - 10_000));
        assert_eq!(fixture.run(&sql).error, Some(1041), "{sql:.60}");
        fixture.good(&format!("SET untorn_statement_memory_limit = {}", 2 * bytes));
        fixture.good(&sql);
    }
}

/// What stays is charged to the last byte, and names of columns count.
#[test]
fn plans_that_stay_are_charged_however_small() {
    let mut fixture = Fixture::new("small-plans");
    fixture.wide_tables(1);
    let kept = |fixture: &Fixture| fixture.session.state.memory.kept();
    let prepare = |fixture: &mut Fixture, sql: &str| {
        untorn::engine::block_on(fixture.session.prepare(sql.as_bytes())).unwrap()
    };
    let item = size_of::<Expr>() + size_of::<sql::result::ColumnMeta>();
    let plans: Vec<_> = (0..10).map(|_| prepare(&mut fixture, "SELECT * FROM w0")).collect();
    assert!(kept(&fixture) >= (10 * COLUMNS * item) as u64, "{} bytes", kept(&fixture));
    drop(plans);
    assert_eq!(kept(&fixture), 0);
    let name = "n".repeat(250);
    let columns = (0..40).map(|n| format!("{n} AS {name}{n}")).collect::<Vec<_>>().join(",");
    let plan =
        prepare(&mut fixture, &format!("SELECT {} FROM (SELECT {columns}) d", vec!["d.*"; 20].join(",")));
    assert!(kept(&fixture) >= 20 * 40 * 250, "{} bytes", kept(&fixture));
    drop(plan);
    let branches = vec!["SELECT 1"; 500].join(" UNION ALL ");
    let plan = prepare(&mut fixture, &branches);
    assert!(kept(&fixture) >= (500 * size_of::<SelectPlan>()) as u64, "{} bytes", kept(&fixture));
    drop(plan);
    // Large ones are given back on a thread of its own.
    while kept(&fixture) > 0 {
        std::thread::yield_now();
    }
}

/// Each mention of the alias is a walk through all of it.
#[test]
fn a_kill_ends_the_walks_through_what_is_mentioned_often() {
    let mut fixture = Fixture::new("mentions");
    fixture.good("CREATE TABLE o (id INT PRIMARY KEY)");
    // What is selected is no function of the keys of GROUP BY.
    fixture.good("SET sql_mode = ''");
    fixture.measure_in_units(UNITS);
    let sum = vec!["id"; 1000].join("+");
    let mentions = (0..300).map(|n| format!("x+{n}")).collect::<Vec<_>>().join(",");
    for clause in
        [format!("ORDER BY {mentions}"), format!("GROUP BY {mentions}"), format!("HAVING 0 IN ({mentions})")]
    {
        let sql = format!("SELECT {sum} AS x FROM o {clause}");
        let (sink, polls) = fixture.drive(&sql, None);
        assert_eq!(sink.error, None, "{clause:.40}");
        assert!(polls > bound(300 * 1000), "{clause:.40}: {polls} polls");
        for kill_before in [5, polls / 2] {
            let (sink, ended) = fixture.drive(&sql, Some(kill_before));
            assert_eq!(sink.error, Some(1317), "{clause:.40}: killed before {kill_before} of {polls}");
            assert!(ended <= kill_before + 20, "{clause:.40}: {ended} polls, killed before {kill_before}");
        }
    }
    // The same key once more decides nothing, and costs nothing.
    let (sink, polls) =
        fixture.drive(&format!("SELECT {sum} AS x FROM o ORDER BY {}", vec!["x"; 3000].join(",")), None);
    assert_eq!(sink.error, None);
    assert!(polls < bound(60 * 3000), "{polls} polls");
}
