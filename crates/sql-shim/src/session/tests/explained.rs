//! What EXPLAIN says of a plan, and EXPLAIN ANALYZE of its run.

use super::*;

impl Fixture {
    /// `p` has 200 rows with ten values of `b`, `q` refers to it by `y`.
    fn tables_to_explain(&mut self) {
        self.good("CREATE TABLE p (a INT PRIMARY KEY, b INT, c VARCHAR(10), KEY by_b (b), KEY by_c (c))");
        self.good("CREATE TABLE q (x INT PRIMARY KEY, y INT)");
        let list = |row: fn(u32) -> String| (1..=200).map(row).collect::<Vec<_>>().join(",");
        self.good(&format!("INSERT INTO p VALUES {}", list(|n| format!("({n},{},'c{}')", n % 10, n % 40))));
        self.good(&format!("INSERT INTO q VALUES {}", list(|n| format!("({n},{})", n % 10))));
    }

    /// The tree, with what was measured but for times.
    fn measured(&mut self, sql: &str) -> String {
        let tree = self.good(&format!("EXPLAIN ANALYZE {sql}")).rows.concat();
        let mut shown = String::new();
        for line in tree.lines() {
            let what = line.split("  (").next().unwrap().trim_end();
            let rows = line.split_once(" rows=").filter(|_| line.contains("actual time="));
            let rows = rows.map(|_| line.rsplit_once(" rows=").unwrap().1.trim_end_matches(['|', ')']));
            shown.push_str(what.trim_end_matches('|'));
            match rows {
                Some(rows) => shown.push_str(&format!(" [{rows}]\n")),
                None if line.contains("never executed") => shown.push_str(" [never]\n"),
                None => shown.push('\n'),
            }
        }
        shown.trim_end().to_owned()
    }
}

#[test]
fn analyze_says_how_many_rows_there_were() {
    let mut fixture = Fixture::new("explain-analyze");
    fixture.tables_to_explain();
    for (sql, tree) in [
        (
            "SELECT * FROM p WHERE b = 3 AND a > 50 ORDER BY c LIMIT 3",
            "-> Limit: 3 row(s) [3 loops=1]\n    -> Sort: p.c, limit input to 3 row(s) per chunk [3 loops=1]\n        \
             -> Filter: (p.a > 50) [15 loops=1]\n            -> Index lookup on p using by_b (b = 3) [20 loops=1]",
        ),
        (
            "SELECT q.x FROM q STRAIGHT_JOIN p ON p.a = q.y WHERE q.x < 21",
            "-> Nested loop inner join [18 loops=1]\n    \
             -> Index range scan on q using PRIMARY over (x < 21) [20 loops=1]\n    \
             -> Single-row index lookup on p using PRIMARY (a = q.y) [0.9 loops=20]",
        ),
        (
            "SELECT b, COUNT(*) FROM p WHERE a <= 95 GROUP BY b HAVING COUNT(*) > 9",
            "-> Filter: (count(0) > 9) [5 loops=1]\n    -> Table scan on <temporary> [10 loops=1]\n        \
             -> Aggregate using temporary table [10 loops=1]\n            \
             -> Index range scan on p using PRIMARY over (a <= 95) [95 loops=1]",
        ),
        (
            "SELECT a FROM p WHERE a < 4 AND EXISTS (SELECT 1 FROM q WHERE q.x = p.b AND q.y > 1)",
            "-> Filter: exists(select #2) [2 loops=1]\n    \
             -> Index range scan on p using PRIMARY over (a < 4) [3 loops=1]\n\
             -> Select #2 (subquery in condition; dependent)\n    -> Limit: 1 row(s) [0.667 loops=3]\n        \
             -> Filter: (q.y > 1) [0.667 loops=3]\n            \
             -> Single-row index lookup on q using PRIMARY (x = p.b) [1 loops=3]",
        ),
        (
            "SELECT * FROM p WHERE b = 3 OR c = 'c7'",
            "-> Filter: ((p.b = 3) or (p.c = 'c7')) [25 loops=1]\n    \
             -> Deduplicate rows sorted by row ID [25 loops=1]\n        \
             -> Index range scan on p using by_b over (b = 3)\n        \
             -> Index range scan on p using by_c over (c = 'c7')",
        ),
        (
            "SELECT a FROM p WHERE 1 = 0 AND a = 3",
            "-> Filter: (1 = 0) [0 loops=1]\n    -> Single-row index lookup on p using PRIMARY (a = 3) [never]",
        ),
    ] {
        assert_eq!(fixture.measured(sql), tree, "{sql}");
    }
}

/// By hash each table is read once.
#[test]
fn analyze_counts_the_rows_of_a_hash_join() {
    let mut fixture = Fixture::new("explain-analyze-hash");
    fixture.tables_to_explain();
    let tree = fixture.measured("SELECT COUNT(*) FROM q r JOIN q ON q.y = r.y");
    assert!(tree.contains("-> Inner hash join (q.y = r.y) [4000 loops=1]"), "{tree}");
    for table in ["-> Table scan on r [200 loops=1]", "-> Table scan on q [200 loops=1]"] {
        assert!(tree.contains(table), "{tree}");
    }
}

/// Where the tables are sorted on disk, the steps have read and had the same rows.
#[test]
fn analyze_counts_the_rows_of_a_hash_join_on_disk() {
    let mut fixture = Fixture::new("explain-analyze-spilled");
    for name in ["a", "b", "c"] {
        fixture.table_of_choices(name, "");
    }
    let sql = "SELECT COUNT(*) FROM a LEFT JOIN b ON a.many = b.id AND b.few = 1 JOIN c ON a.id = c.many";
    let in_memory = fixture.measured(sql);
    assert!(in_memory.contains("Left hash join") && in_memory.contains("Inner hash join"), "{in_memory}");
    fixture.good("SET untorn_statement_memory_limit = 1500000");
    assert_eq!(fixture.measured(sql), in_memory);
}

/// It runs the query, and sends none of its rows.
#[test]
fn analyze_runs_what_it_explains() {
    let mut fixture = Fixture::new("explain-analyze-runs");
    fixture.tables_to_explain();
    fixture.good("SET @n = 0");
    fixture.good("EXPLAIN ANALYZE SELECT @n := @n + 1 FROM p");
    assert_eq!(fixture.good("SELECT @n").rows, ["200|"]);
    fixture.good("EXPLAIN ANALYZE SELECT a FROM p WHERE a = 7 INTO @n");
    assert_eq!(fixture.good("SELECT @n").rows, ["200|"]);
    fixture.good("EXPLAIN SELECT @n := @n + 1 FROM p");
    fixture.good("EXPLAIN FORMAT=JSON SELECT @n := @n + 1 FROM p");
    fixture.good("EXPLAIN ANALYZE DELETE FROM p");
    fixture.good("EXPLAIN ANALYZE UPDATE p SET b = 100");
    assert_eq!(fixture.good("SELECT @n, COUNT(*), MAX(b) FROM p").rows, ["200|200|9|"]);
    // Nothing of that stays behind.
    assert!(!fixture.good("EXPLAIN FORMAT=TREE SELECT * FROM p").rows.concat().contains("actual"));
}

/// A row that meets both parts of an OR is changed once, whichever index it is found by.
#[test]
fn an_index_merge_changes_each_row_once() {
    let mut fixture = Fixture::new("index-merge-changes");
    fixture.good("CREATE TABLE m (id INT PRIMARY KEY, a INT, b INT, n INT, KEY (a), KEY (b))");
    let row = |id: usize| format!("({id},{},{},0)", id % 100, id % 99);
    let rows: Vec<String> = (0..ROWS).map(row).collect();
    fixture.good(&format!("INSERT INTO m VALUES {}", rows.join(",")));
    let shown = fixture.good("EXPLAIN UPDATE m SET n = n + 1 WHERE a = 5 OR b = 5").rows.concat();
    assert!(shown.contains("|index_merge|a,b|a,b|5,5|") && shown.contains("Using union(a,b)"), "{shown}");
    let both = |id: &usize| id % 100 == 5 || id % 99 == 5;
    let count = (0..ROWS).filter(both).count() as u64;
    // What is found by the first index is found by the second one afterwards.
    fixture.good("UPDATE m SET n = n + 1, a = a + 1, b = 5 WHERE a = 5 OR b = 5");
    assert_eq!(fixture.good("SELECT SUM(n), MAX(n) FROM m").rows, [format!("{count}|1|")]);
    // Ahead in the range that is being read, of the index behind which nothing is remembered, and behind what
    // is read before the first change.
    fixture.good("UPDATE m SET n = 0");
    let shown =
        fixture.good("EXPLAIN UPDATE m SET n = n + 1 WHERE a = 9 OR b BETWEEN 20 AND 27").rows.concat();
    assert!(shown.contains("Using sort_union(a,b)"), "{shown}");
    fixture.good("UPDATE m SET n = n + 1, b = b + 3 WHERE a = 9 OR b BETWEEN 20 AND 27");
    assert_eq!(fixture.good("SELECT MAX(n) FROM m").rows, ["1|"]);
    let found = fixture.good("SELECT COUNT(*), COUNT(DISTINCT id) FROM m WHERE a = 6 OR b = 5").rows;
    let by_scan = "SELECT COUNT(*), COUNT(*) FROM m IGNORE INDEX (a, b) WHERE a = 6 OR b = 5";
    assert_eq!(fixture.good(by_scan).rows, found);
    assert_eq!(
        fixture.good("DELETE FROM m WHERE a = 6 OR b = 5").affected,
        found[0].split('|').next().unwrap().parse().ok()
    );
    // It reads what it needs, and no more.
    let work = fixture.work("SELECT COUNT(n) FROM m WHERE a = 7 OR b = 8");
    assert!(work < ROWS / 2, "{work}");
}

#[test]
fn an_or_that_no_index_serves_whole_reads_the_table() {
    let mut fixture = Fixture::new("index-merge-not");
    fixture.tables_to_explain();
    for condition in [
        // A part without an index; most of the rows; another answer each time.
        "b = 3 OR CHAR_LENGTH(c) = 1",
        "b > 3 OR c > 'c1'",
        "(b = 3 OR c = 'c7') AND RAND() < 2",
        "b = 3 OR c = 'c7' AND (@n := 1) = 1",
        "b = 3 OR c = 7",
    ] {
        let shown = fixture.good(&format!("EXPLAIN SELECT * FROM p WHERE {condition}")).rows.concat();
        assert!(shown.contains("|ALL|"), "{condition}: {shown}");
    }
    // The rows come in no order.
    let sql = "SELECT a FROM p WHERE b = 3 OR c = 'c7' ORDER BY a LIMIT 2";
    assert_eq!(fixture.good(sql).rows, ["3|", "7|"]);
    assert_eq!(fixture.good("SELECT MIN(a), MAX(a) FROM p WHERE b = 3 OR c = 'c7'").rows, ["3|193|"]);
}
