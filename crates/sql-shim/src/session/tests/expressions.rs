//! What expressions take, and in which order a sorted change computes.

use sql::lexer::LexicalModes;
use sql::parser;

use super::*;

#[test]
fn work_inside_of_expressions_ends_slices() {
    let mut fixture = Fixture::new("work");
    fixture.fill(21);
    fixture.measure_in_units(UNITS);
    // Each evaluation is more than a slice.
    let long = "LENGTH(REPEAT('a', 70000))";
    let of_row = "REPEAT('a', 70000 + id)";
    for (sql, slices) in [
        (format!("SELECT COUNT(*) FROM t WHERE id < 100 AND LENGTH({of_row}) > 1"), 100),
        (format!("SELECT COUNT(*) FROM t WHERE id < 100 AND {of_row} NOT LIKE '%aab%'"), 100),
        (format!("SELECT SUM({long}) FROM t WHERE id < 100"), 100),
        (format!("SELECT {}", [long; 100].join(",")), 100),
        (format!("UPDATE t SET few = {long} WHERE id < 100"), 100),
        (format!("INSERT INTO t (id, few) VALUES {}", value_rows(long, 100)), 100),
        (format!("SELECT id FROM t WHERE id < 100 AND id + 1e6 IN ({})", ["1e0"; 5000].join(",")), 100),
    ] {
        let (sink, polls) = fixture.drive(&sql, None);
        assert_eq!(sink.error, None, "{sql:.80}");
        assert!(polls >= slices, "{sql:.80}: {polls} polls where its work is {slices} slices");
    }
}

fn value_rows(value: &str, count: usize) -> String {
    (0..count).map(|row| format!("({}, {value})", 10_000 + row)).collect::<Vec<_>>().join(",")
}

#[test]
fn an_expression_ends_at_a_kill_and_when_it_had_its_time() {
    let mut fixture = Fixture::new("stop");
    for item in ["REPEAT('a', 200000)", "REPEAT('a', 200000) LIKE '%b%'", "REVERSE(REPEAT('a', 200000))"] {
        let mut sink = Sink { kills: Some(fixture.connection.clone()), ..Sink::default() };
        let sql = format!("SELECT 'the kill comes with this', {item}");
        fixture.connection.clear_query_kill();
        untorn::engine::block_on(fixture.session.query(sql.as_bytes(), &mut sink)).unwrap();
        assert_eq!(sink.error, Some(1317), "{item}");
    }
    fixture.good("SET max_execution_time = 1");
    let long = "REPLACE(REPEAT('a', 8000000), 'a', 'b')";
    assert_eq!(fixture.run(&format!("SELECT LENGTH(REVERSE({long})), LENGTH({long})")).error, Some(3024));
}

#[test]
fn values_of_expressions_are_charged_while_they_live() {
    let mut fixture = Fixture::new("values");
    fixture.fill(22);
    fixture.good("SET @a = REPEAT('a', 100000)");
    fixture.good("SET untorn_statement_memory_limit = 300000");
    let long = "REPEAT('a', 100000)";
    let short = "REPEAT('a', 10000)";
    for sql in [
        format!("SELECT ELT(1, {})", [long; 4].join(",")),
        format!("SELECT FIELD('b', {})", [short; 40].join(",")),
        format!("SELECT LENGTH(CONCAT({long}, {long}))"),
        "SELECT LENGTH(REPEAT('a', 400000))".to_owned(),
        "SELECT ELT(1, @a, @a, @a, @a)".to_owned(),
        format!("SELECT {}", [long; 4].join(",")),
        format!("SELECT {}", [short; 40].join(",")),
        format!("SELECT {}", ["@a"; 4].join(",")),
        format!("SELECT MAX({long}), MIN({long}), MAX(CONCAT({long}, few)) FROM t"),
        format!(
            "INSERT INTO t (id, word, note) VALUES (9000, LEFT({long}, 1), LEFT(CONCAT({long}, {long}), 1))"
        ),
    ] {
        assert_eq!(fixture.run(&sql).error, Some(1041), "{sql:.80}");
    }
    // What is given back in time is no matter how often.
    for sql in [
        "SELECT COUNT(*) FROM t WHERE LENGTH(REPEAT('a', 5000 + id)) > 0 AND id < 500".to_owned(),
        format!("SELECT LENGTH(REPLACE(REVERSE(LOWER(UPPER({short}))), 'a', 'b'))"),
        format!("SELECT LENGTH({short}), {}", vec![format!("LENGTH({short})"); 60].join(",")),
        "UPDATE t SET note = REPEAT('x', 9000) WHERE id < 300".to_owned(),
        "SELECT note FROM t WHERE id < 300".to_owned(),
        // Rows that nobody takes.
        "SELECT COUNT(*) FROM t WHERE REPEAT('a', 5000 + id) = 'x'".to_owned(),
        "SELECT COUNT(*) FROM t WHERE REPEAT('a', 5000 + id) LIKE '%needle%'".to_owned(),
        "SELECT COUNT(*) FROM t a JOIN t b ON b.id = a.id AND CONCAT(REPEAT('a', 5000), a.id) = b.word"
            .to_owned(),
        "SELECT few, COUNT(*) FROM t GROUP BY few HAVING REPEAT('a', 9000) = 'x'".to_owned(),
        "DELETE FROM t WHERE REPEAT('a', 5000 + id) = 'x'".to_owned(),
        format!("SELECT 'x' IN ({})", [short; 60].join(",")),
        format!("SELECT CASE 'x' {} END", vec![format!("WHEN {short} THEN 1"); 60].join(" ")),
    ] {
        fixture.good(&sql);
    }
}

#[test]
fn a_sorted_update_counts_and_computes_in_its_order() {
    let mut fixture = Fixture::new("sorted");
    fixture.good("CREATE TABLE s (id INT PRIMARY KEY, a INT, name VARCHAR(10), tiny TINYINT, note TEXT)");
    fixture.good(
        "INSERT INTO s VALUES (1,1,'c',0,NULL),(2,0,'a',0,REPEAT('n',20000)),(3,0,'b',0,'n'),(4,400,NULL,0,'n')",
    );
    // Rows that have the value already are matched.
    assert_eq!(fixture.good("UPDATE s SET a = 1 ORDER BY id LIMIT 1").affected, Some(0));
    assert_eq!(fixture.good("SELECT a FROM s ORDER BY id").rows, ["1|", "0|", "0|", "400|"]);
    // Values are computed in the order of the sort, of the rows that are changed.
    fixture.good("SET @n := 0");
    assert_eq!(fixture.good("UPDATE s SET a = (@n := @n + 1) ORDER BY name").affected, Some(4));
    assert_eq!(
        fixture.good("SELECT a, LENGTH(note) FROM s ORDER BY id").rows,
        ["4|NULL|", "2|20000|", "3|1|", "1|1|"]
    );
    fixture.good("UPDATE s SET a = 400 WHERE id = 4");
    assert_eq!(fixture.good("UPDATE s SET tiny = a ORDER BY id LIMIT 2").affected, Some(2));
    assert_eq!(fixture.run("UPDATE s SET tiny = a ORDER BY id DESC LIMIT 2").error, Some(1264));
    assert_eq!(
        fixture.good("UPDATE s SET note = CONCAT(note, 'x'), a = a + 1 ORDER BY name DESC LIMIT 3").affected,
        Some(3)
    );
    let lengths = fixture.good("SELECT a, LENGTH(note) FROM s ORDER BY id").rows;
    assert_eq!(lengths, ["5|NULL|", "3|20001|", "4|2|", "400|1|"]);
    assert_eq!(fixture.good("DELETE FROM s ORDER BY a DESC LIMIT 1").affected, Some(1));
    assert_eq!(fixture.good("SELECT id FROM s ORDER BY id").rows, ["1|", "2|", "3|"]);
}

#[test]
fn a_row_that_a_sorted_update_takes_up_again_is_charged() {
    let mut fixture = Fixture::new("taken-up");
    fixture.good("CREATE TABLE s (id INT PRIMARY KEY, a INT, note MEDIUMTEXT)");
    fixture.good("INSERT INTO s VALUES (1, 0, REPEAT('n', 200000))");
    let sql = "UPDATE s SET a = LENGTH(note) ORDER BY a";
    fixture.good("SET untorn_statement_memory_limit = 500000");
    assert_eq!(fixture.run(sql).error, Some(1041));
    fixture.good("SET untorn_statement_memory_limit = 900000");
    assert_eq!(fixture.good(sql).affected, Some(1));
}

#[test]
fn nothing_is_read_where_nothing_is_wanted() {
    let mut fixture = Fixture::new("nothing");
    fixture.fill(23);
    fixture.measure_in_units(UNITS);
    let (sink, polls) = fixture.drive("SELECT id FROM t ORDER BY word LIMIT 0", None);
    assert!(sink.rows.is_empty() && polls < 5, "{polls} polls");
}

#[test]
fn preparing_a_long_text_takes_turns_and_is_charged_until_it_is_closed() {
    let mut fixture = Fixture::new("prepare");
    let tokens = 150_000;
    let sql = format!("SELECT 1 IN (1{})", ",1".repeat(tokens));
    fixture.measure_in_units(UNITS);
    let mut polls = 0;
    let prepared = {
        let mut work = pin!(fixture.session.prepare(sql.as_bytes()));
        untorn::engine::block_on(poll_fn(|context| {
            polls += 1;
            work.as_mut().poll(context)
        }))
        .unwrap()
    };
    assert!(polls >= bound(2 * tokens), "{polls} polls");
    let kept = fixture.session.state.memory.kept();
    assert!(kept >= 2 * tokens as u64 * 40, "{kept} bytes");
    drop(prepared);
    // Its plan is given back on a thread of its own.
    while fixture.session.state.memory.kept() > 0 {
        std::thread::yield_now();
    }
    // A kill ends it, and nobody waits for the parser any more.
    let connection = fixture.connection.clone();
    let mut polls = 0;
    let killed = {
        let mut work = pin!(fixture.session.prepare(sql.as_bytes()));
        untorn::engine::block_on(poll_fn(|context| {
            polls += 1;
            if polls == 5 {
                connection.kill(Kill::Query);
            }
            work.as_mut().poll(context)
        }))
    };
    assert_eq!(killed.map(|_| ()).map_err(|error| error.code), Err(1317));
    fixture.good("SET untorn_statement_memory_limit = 300000");
    let refused = untorn::engine::block_on(fixture.session.prepare(sql.as_bytes()));
    assert_eq!(refused.map(|_| ()).map_err(|error| error.code), Err(1041));
    fixture.good("SET untorn_statement_memory_limit = 0");
    fixture.good(&format!("SET @s = CONCAT('SELECT 1 IN (1', REPEAT(',1', {tokens}), ')')"));
    fixture.good("PREPARE p FROM @s");
    assert_eq!(fixture.good("EXECUTE p").rows, ["1|"]);
    fixture.good("SET untorn_statement_memory_limit = 1000000");
    assert_eq!(fixture.run("EXECUTE p").error, Some(1041));
    assert_eq!(fixture.run("PREPARE p FROM @s").error, Some(1041));
}

/// Texts of `values`, with as many that nothing is like.
fn with_others(values: &[&str], others: impl Fn(usize) -> String) -> String {
    (0..100).map(others).chain(values.iter().map(|value| (*value).to_owned())).collect::<Vec<_>>().join(",")
}

#[test]
fn a_long_list_of_constants_answers_like_its_parts() {
    let mut fixture = Fixture::new("constants");
    fixture.good(
        "CREATE TABLE c (id INT PRIMARY KEY, small TINYINT, wide BIGINT UNSIGNED, exact DECIMAL(6,2), f DOUBLE,
             word VARCHAR(20), bin VARCHAR(20) COLLATE utf8mb4_bin, day DATE, both_a INT, both_b VARCHAR(20),
             KEY small (small), KEY wide (wide), KEY word (word), KEY bin (bin), KEY day (day), KEY two (both_a, both_b))",
    );
    fixture.good(
        "INSERT INTO c VALUES
             (1, 1, 18446744073709551615, 1, 1, 'one', 'one', '2024-01-01', 1, 'one'),
             (2, -2, 2, -2.50, 2.5, 'Two ', 'Two ', '2024-01-02', 1, 'TWO'),
             (3, 127, 0, 0, 0, '', '', '2024-01-03', 2, 'one'),
             (4, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
             (5, -128, 9223372036854775808, 3, 3, '3', '3', '2024-03-03', 1, 'two'),
             (-6, 0, 7, 7, 7, 'ünd', 'ünd', '2024-07-07', 1, 'ü')",
    );
    let integers: &[&str] = &["1", "-2", "127", "300", "-300", "18446744073709551615", "7", "-6", "5", "1"];
    let texts: &[&str] = &["'ONE'", "'two'", "'ÜND'", "''", "'3'", "'2024-01-02'", "'two '", "'one'"];
    // Beside `=` a text that is no day is an error.
    let days: &[&str] = &["'2024-01-02'", "'2024-1-3'", "'20240101'", "'2024-07-07 00:00:00'"];
    let mut compared = 0;
    for column in ["id", "small", "wide", "exact", "f", "word", "bin", "day"] {
        let texts = if column == "day" { (days, 2) } else { (texts, 1) };
        for (list, others) in [(integers, 0), texts] {
            // Numbers of a date are an error for both, in warnings.
            for null in ["", ",NULL"] {
                let many = with_others(list, |n| match others {
                    0 => format!("{}", 1000 + n * 3),
                    2 => format!("'{}-02-03'", 1000 + n),
                    _ => format!("'other {n}'"),
                });
                let parts: Vec<String> = many
                    .split(',')
                    .chain(null.split(',').filter(|part| !part.is_empty()))
                    .map(|item| format!("{column} = {item}"))
                    .collect();
                for (not, tail) in [("", ""), ("NOT ", ""), ("", " DESC")] {
                    let order = format!("ORDER BY {column}{tail}, id{tail}");
                    let by_list = format!("SELECT id FROM c WHERE {column} {not}IN ({many}{null}) {order}");
                    let by_parts = format!(
                        "SELECT id FROM c IGNORE INDEX (PRIMARY, small, wide, word, bin, day, two) WHERE {not}({}) {order}",
                        parts.join(" OR ")
                    );
                    let found = fixture.good(&by_list).rows;
                    assert_eq!(found, fixture.good(&by_parts).rows, "{by_list}");
                    compared += found.len();
                }
            }
        }
    }
    assert!(compared > 60, "{compared} rows compared");
    // Behind a column that is given, and beside other conditions.
    let words = with_others(texts, |n| format!("'other {n}'"));
    let two = format!("SELECT id FROM c WHERE both_a = 1 AND both_b IN ({words}) ORDER BY id");
    assert_eq!(fixture.good(&two).rows, ["1|", "2|", "5|"]);
    let many = with_others(integers, |n| format!("{}", 1000 + n));
    for (sql, rows) in [
        (format!("SELECT id FROM c WHERE id IN ({many}) AND id > 1"), &["5|"][..]),
        (
            format!("SELECT id FROM c WHERE (id IN ({many}) OR id = 2) AND id < 3 ORDER BY id"),
            &["-6|", "1|", "2|"],
        ),
        (format!("SELECT id FROM c WHERE id IN ({many}) ORDER BY id DESC LIMIT 2"), &["5|", "1|"]),
        (format!("SELECT a.id FROM c a JOIN c b ON a.id = b.small WHERE b.small IN ({many})"), &["1|"]),
    ] {
        assert_eq!(fixture.good(&sql).rows, rows, "{sql:.60}");
    }
    fixture.good(&format!("UPDATE c SET f = 100 WHERE id IN ({many})"));
    assert_eq!(fixture.good("SELECT id FROM c WHERE f = 100 ORDER BY id").rows, ["-6|", "1|", "5|"]);
    fixture.good(&format!("DELETE FROM c WHERE small NOT IN ({many}) OR id IN ({many})"));
    assert_eq!(fixture.good("SELECT id FROM c ORDER BY id").rows, ["2|", "3|", "4|"]);
}

/// Each row looks once, and nothing is made for each constant when the statement begins.
#[test]
fn a_long_list_of_constants_is_a_set() {
    let mut fixture = Fixture::new("set");
    fixture.fill(22);
    fixture.measure_in_units(UNITS);
    let many = (0..20_000).map(|n| (n * 3).to_string()).collect::<Vec<_>>().join(",");
    // By the index each constant is a range, whether it has rows or not; otherwise each row looks once.
    for (column, slices) in [("id", rows(20_000)), ("few", rows(ROWS))] {
        let (sink, polls) =
            fixture.drive(&format!("SELECT COUNT(*) FROM t WHERE {column} IN ({many})"), None);
        assert_eq!(sink.error, None);
        assert!((slices..10 * slices).contains(&polls), "{column}: {polls} polls, {slices} slices of work");
    }
    // Numbers and texts of other kinds look once as well.
    for column in ["exact", "f", "word", "word COLLATE utf8mb4_bin"] {
        let (sink, polls) =
            fixture.drive(&format!("SELECT COUNT(*) FROM t WHERE {column} IN ({many})"), None);
        assert_eq!(sink.error, None);
        assert!(polls < 10 * rows(ROWS), "{column}: {polls} polls");
    }
    let words = (0..5000).map(|n| format!("'no {n}'")).collect::<Vec<_>>().join(",");
    let bin = format!("SELECT COUNT(*) FROM t WHERE word COLLATE utf8mb4_bin IN ({words})");
    assert!(fixture.drive(&bin, None).1 < 30 * rows(ROWS));
    // What is no set is gone through for each row, and may be stopped meanwhile.
    let texts = (0..5000).map(|n| format!("'no {n}'")).collect::<Vec<_>>().join(",");
    let sql = format!("SELECT COUNT(*) FROM t WHERE day IN ({texts})");
    assert!(fixture.drive(&sql, None).1 >= 100);
    let (sink, polls) = fixture.drive(&sql, Some(9));
    assert_eq!(sink.error, Some(1317));
    assert!(polls < 40, "{polls} polls, killed before the ninth");
}

/// Binding is one step; it ends when the statement is to end.
#[test]
fn a_long_chain_is_not_bound_to_its_end_when_its_time_is_over() {
    let fixture = Fixture::new("bound");
    let chain = format!("SELECT {}", ["@a = 1"; 50_000].join(" OR "));
    let statement = parser::parse(chain.as_bytes(), LexicalModes::default()).unwrap().statement;
    let plan = || fixture.session.planner().data(&statement).err().map(|error| error.code);
    assert_eq!(plan(), None);
    fixture.session.state.evaluation.set_deadline(Some(std::time::Duration::ZERO));
    assert_eq!(plan(), Some(3024));
}

/// The keys of a long list are used beside other conditions of its column, whichever comes first.
#[test]
fn a_long_list_of_constants_is_the_path_beside_other_conditions() {
    let mut fixture = Fixture::new("beside");
    fixture.fill(24);
    fixture.measure_in_units(UNITS);
    for count in [31, 40] {
        let list = (0..count).map(|n| (n * 50).to_string()).collect::<Vec<_>>().join(",");
        for (condition, found) in [
            (format!("id >= 0 AND id IN ({list})"), count),
            (format!("id IN ({list}) AND id >= 0"), count),
            (format!("id IN ({list}) OR id = 7"), count + 1),
            (format!("id = 7 OR id IN ({list})"), count + 1),
        ] {
            let (sink, polls) = fixture.drive(&format!("SELECT id FROM t WHERE {condition}"), None);
            assert_eq!(sink.rows.len(), found, "{condition}");
            assert!(polls < rows(ROWS) / 2, "{condition}: {polls} polls");
        }
    }
}

/// Ranges made in slices of time are those that are made at once.
#[test]
fn many_ranges_are_sorted_and_joined_like_few() {
    let mut fixture = Fixture::new("ranges");
    fixture.good("CREATE TABLE r (id INT PRIMARY KEY, word VARCHAR(20), KEY (word))");
    let values: Vec<String> =
        (0..4000).map(|id| format!("({id},'{}{}')", ["w", "W"][id % 2], id / 2)).collect();
    fixture.good(&format!("INSERT INTO r VALUES {}", values.join(",")));
    // 1,200 alternatives, out of order: points, the same again, ranges that overlap and empty ones. `+ 0` is
    // no constant.
    let alternatives: Vec<String> = (0..1200)
        .map(|n| {
            let id = n * 7919 % 3500;
            match n % 4 {
                0 => format!("id = {id} + 0"),
                1 => format!("id BETWEEN {id} AND {}", id + n % 3),
                2 => format!("id BETWEEN {id} AND {}", id - 1),
                _ => format!("id = {}", n * 7919 % 100),
            }
        })
        .collect();
    let texts: Vec<String> = (0..900).map(|n| format!("word = CONCAT('w', {})", n * 7919 % 2500)).collect();
    for (column, all) in [("id", &alternatives), ("word", &texts)] {
        let many = all.join(" OR ");
        let mut few: Vec<i64> = Vec::new();
        for part in all.chunks(100) {
            let found = fixture.good(&format!("SELECT id FROM r WHERE {}", part.join(" OR "))).rows;
            few.extend(found.iter().map(|row| row.trim_end_matches('|').parse::<i64>().unwrap()));
        }
        few.sort_unstable();
        few.dedup();
        let plan = fixture.good(&format!("EXPLAIN SELECT id FROM r WHERE {many}")).rows.concat();
        assert!(plan.contains("range"), "{plan}");
        fixture.measure_in_units(UNITS);
        for (order, back) in [("", false), (" DESC", true)] {
            let sql = format!("SELECT id FROM r WHERE {many} ORDER BY {column}{order}, id{order}");
            let (sink, polls) = fixture.drive(&sql, None);
            assert_eq!(sink.error, None);
            let mut found: Vec<i64> =
                sink.rows.iter().map(|row| row.trim_end_matches('|').parse().unwrap()).collect();
            if column == "id" {
                assert!(found.is_sorted_by(|a, b| if back { a > b } else { a < b }), "{order}");
            }
            found.sort_unstable();
            assert_eq!(found, few);
            // Made, sorted in runs and twice merged, joined, read.
            assert!(polls >= rows(4 * all.len()) + bound(9 * all.len()), "{polls} polls");
        }
        fixture.measure_in_units(0);
        let joined = format!("SELECT COUNT(*) FROM (SELECT 1 AS one UNION ALL SELECT 2) d JOIN r ON {many}");
        assert_eq!(fixture.good(&joined).rows, [format!("{}|", 2 * few.len())]);
        fixture.good("SET untorn_statement_memory_limit = 280000");
        assert_eq!(
            fixture.run(&format!("SELECT id FROM r WHERE {many}")).error,
            (column == "id").then_some(1041)
        );
        fixture.good("SET untorn_statement_memory_limit = 0");
    }
}
