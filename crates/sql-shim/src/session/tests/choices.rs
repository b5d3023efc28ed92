//! Which index, which order of a join, and whether by hash: what is chosen shows in EXPLAIN and in the work
//! that a statement takes.

use super::*;

impl Fixture {
    /// `c`: 3000 rows, `few` with three values, `many` with 1500, `skew` 0 in all rows but thirty.
    pub(super) fn table_of_choices(&mut self, name: &str, keys: &str) {
        self.good(&format!("CREATE TABLE {name} (id INT, few INT, many INT, skew INT, pad INT{keys})"));
        let row = |id: usize| {
            let skew = if id % 100 == 7 { id } else { 0 };
            format!("({id},{},{},{skew},1)", id % 3, id / 2)
        };
        let rows: Vec<String> = (0..ROWS).map(row).collect();
        self.good(&format!("INSERT INTO {name} VALUES {}", rows.join(",")));
    }

    /// Tables in the order of the join, each with its key and the rows that are estimated.
    fn plan_of(&mut self, sql: &str) -> Vec<(String, String, u64)> {
        let rows = self.good(&format!("EXPLAIN {sql}")).rows;
        let columns = rows.iter().map(|row| row.split('|').collect::<Vec<_>>());
        columns.map(|row| (row[2].to_owned(), row[6].to_owned(), row[9].parse().unwrap())).collect()
    }

    /// Units of work that a statement takes.
    pub(super) fn work(&mut self, sql: &str) -> usize {
        self.good(sql);
        self.measure_in_units(UNITS);
        let (sink, polls) = self.drive(sql, None);
        self.measure_in_units(0);
        assert_eq!(sink.error, None, "{sql}");
        polls * UNITS as usize
    }
}

#[test]
fn the_index_with_the_fewest_rows_is_read() {
    let mut fixture = Fixture::new("choice-of-index");
    let keys = ", PRIMARY KEY (id), KEY by_few (few), KEY by_many (many), KEY by_skew (skew)";
    fixture.table_of_choices("c", keys);
    for (condition, key, least, most) in [
        // By the number of different keys.
        ("few = 1 AND many = 70", "by_many", 2, 2),
        ("many = 70 AND few = 1", "by_many", 2, 2),
        // By how many rows are in a range, which two descents tell.
        ("few = 1 AND many BETWEEN 5 AND 9", "by_many", 10, 10),
        ("few = 1 AND many > 5", "by_few", 900, 1100),
        ("skew > 0 AND many BETWEEN 5 AND 900", "by_skew", 30, 30),
        ("skew < 1 AND many BETWEEN 5 AND 9", "by_many", 10, 10),
        // All rows are read faster than most of them are looked up.
        ("skew < 1", "NULL", 3000, 3000),
        ("skew > 1", "by_skew", 30, 30),
    ] {
        let plan = fixture.plan_of(&format!("SELECT pad FROM c WHERE {condition}"));
        assert_eq!(plan[0].1, key, "{condition}: {plan:?}");
        assert!((least..=most).contains(&plan[0].2), "{condition}: {plan:?}");
    }
}

#[test]
fn a_plan_for_one_value_is_not_kept_for_another() {
    let mut fixture = Fixture::new("choice-by-value");
    fixture.table_of_choices("c", ", PRIMARY KEY (id), KEY by_skew (skew), KEY by_many (many)");
    let sql =
        |skew: &str, to: u32| format!("SELECT SUM(pad) FROM c WHERE skew {skew} AND many BETWEEN 2 AND {to}");
    // The same text but for its numbers: the first suits one index, the second the other.
    for _ in 0..2 {
        assert!(fixture.work(&sql("> 0", 1400)) < 600, "thirty rows");
        assert!(fixture.work(&sql("> -1", 5)) < 600, "eight rows");
    }
}

#[test]
fn a_range_that_is_not_known_is_no_reason_to_read_everything() {
    let mut fixture = Fixture::new("choice-prepared");
    fixture.table_of_choices("c", ", PRIMARY KEY (id), KEY by_many (many)");
    fixture.good("PREPARE p FROM 'SELECT pad FROM c WHERE many > ?'");
    fixture.good("SET @v = 1495");
    assert!(fixture.work("EXECUTE p USING @v") < 600, "eight rows");
}

#[test]
fn a_join_begins_with_what_leaves_few_rows() {
    let mut fixture = Fixture::new("choice-of-order");
    for name in ["big", "middle", "small"] {
        fixture.table_of_choices(name, ", PRIMARY KEY (id), KEY by_many (many), KEY by_skew (skew)");
    }
    let order = |fixture: &mut Fixture, sql: &str| {
        let plan = fixture.plan_of(sql);
        plan.into_iter().map(|(table, ..)| table).collect::<Vec<_>>().join(" ")
    };
    let joined = "big.many = middle.id AND middle.many = small.id";
    let sql = format!("SELECT SUM(big.pad) FROM big, middle, small WHERE {joined} AND small.skew > 2900");
    assert_eq!(order(&mut fixture, &sql), "small middle big");
    assert!(fixture.work(&sql) < 2000, "{}", fixture.work(&sql));
    // Said otherwise, it is left alone.
    let straight = sql.replace("SELECT", "SELECT STRAIGHT_JOIN");
    assert_eq!(order(&mut fixture, &straight), "big middle small");
    assert_eq!(fixture.good(&straight).rows, fixture.good(&sql).rows);
    // Eight tables are too many to compare all orders.
    let tables: Vec<String> = (0..8).map(|n| format!("middle m{n}")).collect();
    let links: Vec<String> = (1..8).map(|n| format!("m{}.many = m{n}.id", n - 1)).collect();
    let sql = format!(
        "SELECT SUM(m0.pad) FROM {} WHERE {} AND m7.skew = 7",
        tables.join(", "),
        links.join(" AND ")
    );
    assert!(order(&mut fixture, &sql).starts_with("m7 m6 m5"), "{}", order(&mut fixture, &sql));
}

#[test]
fn tables_without_an_index_are_joined_by_hash() {
    let mut fixture = Fixture::new("hash-join");
    for name in ["a", "b", "c"] {
        fixture.table_of_choices(name, "");
    }
    let joins = [
        ("SELECT COUNT(*), SUM(a.id * b.id) FROM a JOIN b ON a.many = b.id", "Inner hash join"),
        (
            "SELECT COUNT(*), SUM(a.id * COALESCE(b.id, 3)) FROM a LEFT JOIN b ON a.many = b.id AND b.few = 1",
            "Left hash join",
        ),
        // What is equal to a constant of another type is no part of the key.
        ("SELECT COUNT(*), SUM(a.id) FROM a JOIN b ON a.many = b.id AND b.few = '1'", "Inner hash join"),
        (
            "SELECT COUNT(*), SUM(a.id * c.id) FROM a JOIN b ON a.many = b.id JOIN c ON b.many = c.id",
            "Inner hash join",
        ),
    ];
    for (sql, kind) in joins {
        let tree = fixture.good(&format!("EXPLAIN FORMAT=TREE {sql}")).rows.concat();
        assert!(tree.contains(kind), "{tree}");
        // Each table is read twice at most; a loop would read millions of rows.
        let work = fixture.work(sql);
        assert!(work < 40 * ROWS, "{sql}: {work}");
        let by_hash = fixture.good(sql).rows;
        // With less memory than the rows take, both sides are sorted on disk.
        fixture.good("SET untorn_statement_memory_limit = 1500000");
        assert_eq!(fixture.good(sql).rows, by_hash, "{sql}");
        let work = fixture.work(sql);
        assert!(work < 80 * ROWS, "{sql}: {work}");
        fixture.good("SET untorn_statement_memory_limit = 0");
        // Rows that are locked one by one are read one by one.
        fixture.good("CREATE INDEX by_id ON b (id)");
        assert_eq!(fixture.good(sql).rows, by_hash, "{sql}");
        fixture.good("DROP INDEX by_id ON b");
    }
}

#[test]
fn rows_of_one_key_beyond_memory_are_read_again() {
    let mut fixture = Fixture::new("hash-join-one-key");
    fixture.table_of_choices("b", "");
    fixture.good("UPDATE b SET many = 1 WHERE id > 20");
    fixture.good("CREATE TABLE s (id INT)");
    fixture.good("INSERT INTO s VALUES (1), (2), (1), (NULL), (5), (1), (4000)");
    let sql = "SELECT s.id, COUNT(*), SUM(b.id) FROM s LEFT JOIN b ON s.id = b.many GROUP BY s.id ORDER BY 1";
    let expected = fixture.good(sql).rows;
    for limit in [1_000_000, 700_000, 400_000] {
        fixture.good(&format!("SET untorn_statement_memory_limit = {limit}"));
        assert_eq!(fixture.good(sql).rows, expected, "{limit}");
    }
}

#[test]
fn what_shows_the_order_of_rows_is_joined_by_a_loop() {
    let mut fixture = Fixture::new("no-hash-join");
    for name in ["a", "b"] {
        fixture.table_of_choices(name, "");
    }
    for (more, by_hash) in [("", true), (" AND (@n := b.few) >= 0", false), (" FOR UPDATE", false)] {
        let sql = format!("SELECT a.id FROM a JOIN b ON a.many = b.id{more}");
        let tree = fixture.good(&format!("EXPLAIN FORMAT=TREE {sql}")).rows.concat();
        assert_eq!(tree.contains("hash join"), by_hash, "{tree}");
        let table = fixture.good(&format!("EXPLAIN {sql}")).rows.concat();
        assert_eq!(table.contains("hash join"), by_hash, "{table}");
    }
}

#[test]
fn a_subquery_sees_what_a_cascade_has_deleted() {
    let mut fixture = Fixture::new("hashed-subquery-cascade");
    fixture.good("CREATE TABLE p (id INT PRIMARY KEY)");
    let key = "FOREIGN KEY (pid) REFERENCES p (id) ON DELETE CASCADE";
    fixture.good(&format!("CREATE TABLE ch (pid INT, y INT, {key})"));
    let list = |row: fn(u32) -> String| (1..=20).map(row).collect::<Vec<_>>().join(",");
    fixture.good(&format!("INSERT INTO p VALUES {}", list(|id| format!("({id})"))));
    fixture.good(&format!("INSERT INTO ch VALUES {}", list(|id| format!("({id},{})", id % 20 + 1))));
    // Each that goes takes along what the next one is kept by.
    fixture.good("DELETE FROM p WHERE (SELECT COUNT(*) FROM ch WHERE ch.y = p.id) = 1");
    let left: Vec<String> = (1..=10).map(|half| format!("{}|", 2 * half)).collect();
    assert_eq!(fixture.good("SELECT id FROM p ORDER BY id").rows, left);
}

#[test]
fn a_subquery_without_an_index_looks_its_rows_up() {
    let mut fixture = Fixture::new("hashed-subquery");
    fixture.table_of_choices("a", "");
    fixture.table_of_choices("b", "");
    fixture.good("UPDATE b SET many = NULL WHERE id % 5 = 0");
    for condition in [
        "EXISTS (SELECT 1 FROM b WHERE b.many = a.id AND b.few = 1)",
        "NOT EXISTS (SELECT 1 FROM b WHERE b.many = a.id AND b.few = a.few)",
        "(SELECT COUNT(*) FROM b WHERE b.many = a.id) = 2",
        "(SELECT MAX(id) FROM b WHERE b.many = a.id) > 100",
        "a.id IN (SELECT b.id FROM b WHERE b.many = a.many)",
    ] {
        let sql = format!("SELECT COUNT(*), SUM(id) FROM a WHERE {condition}");
        let work = fixture.work(&sql);
        assert!(work < 30 * ROWS, "{sql}: {work}");
        let by_hash = fixture.good(&sql).rows;
        fixture.good("CREATE INDEX by_many ON b (many)");
        assert_eq!(fixture.good(&sql).rows, by_hash, "{sql}");
        fixture.good("DROP INDEX by_many ON b");
    }
}

#[test]
fn cardinality_is_shown() {
    let mut fixture = Fixture::new("cardinality");
    fixture.table_of_choices("c", ", PRIMARY KEY (id), KEY by_few (few, many)");
    let shown = |fixture: &mut Fixture| {
        let sql = "SELECT CARDINALITY FROM information_schema.STATISTICS WHERE TABLE_NAME = 'c'";
        fixture.good(&format!("{sql} ORDER BY INDEX_NAME, SEQ_IN_INDEX")).rows
    };
    assert_eq!(fixture.good("ANALYZE TABLE c").rows, ["d.c|analyze|status|OK|"]);
    assert_eq!(shown(&mut fixture), ["3|", "3000|", "3000|"]);
    let rows = "SELECT TABLE_ROWS FROM information_schema.TABLES WHERE TABLE_NAME = 'c'";
    assert_eq!(fixture.good(rows).rows, ["3000|"]);
}
