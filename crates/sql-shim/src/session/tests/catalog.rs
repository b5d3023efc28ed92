//! Statements about the catalog are statements like others: their rows are made one by one, in slices of
//! time, and charged.

use sql::catalog_views;

use super::*;

const TABLES: usize = 40;

fn fixture(name: &str) -> Fixture {
    let mut fixture = Fixture::new(name);
    for table in 0..TABLES {
        fixture
            .good(&format!("CREATE TABLE table_{table:02} (id INT PRIMARY KEY, a INT, b INT, KEY a (a, b))"));
    }
    fixture
}

/// Statements with the rows they make at least.
const STATEMENTS: [(&str, usize); 7] = [
    ("SHOW TABLES", TABLES),
    ("SHOW FULL TABLES WHERE Table_type <> 'BASE TABLE'", TABLES),
    ("SHOW TABLE STATUS LIKE '%no such table%'", TABLES),
    ("SELECT COUNT(*) FROM information_schema.TABLES", TABLES),
    ("SELECT COUNT(*) FROM information_schema.COLUMNS", 3 * TABLES),
    ("SELECT COUNT(*) FROM information_schema.STATISTICS", 3 * TABLES),
    ("SELECT COUNT(*) FROM information_schema.KEY_COLUMN_USAGE", TABLES),
];

#[test]
fn statements_about_many_tables_give_way_and_see_a_kill() {
    let mut fixture = fixture("catalog-turns");
    fixture.measure_in_units(UNITS);
    for (sql, made) in STATEMENTS {
        let (sink, polls) = fixture.drive(sql, None);
        assert_eq!(sink.error, None, "{sql}");
        assert!(polls >= rows(4 * made), "{sql}: {polls} polls for {made} rows");
        let (sink, polls) = fixture.drive(sql, Some(2));
        assert_eq!(sink.error, Some(1317), "{sql}");
        assert!(polls <= 3, "{sql}: {polls} polls, killed before the second");
    }
}

#[test]
fn rows_of_a_view_are_made_when_they_are_asked_for() {
    let mut fixture = fixture("catalog-lazy");
    let view = catalog_views::find("information_schema", "TABLES").unwrap();
    let mut made = view.rows(&fixture.session.state);
    assert!(made.next().is_some());
    let last = format!("table_{:02}", TABLES - 1);
    fixture.good(&format!("INSERT INTO {last} VALUES (1, 1, 1), (2, 2, 2), (3, 3, 3)"));
    let row = made.find(|row| row[2].to_text().as_ref() == last.as_bytes()).unwrap();
    assert_eq!(row[7].to_text().as_ref(), b"3", "the count of when the row was asked for");
}

#[test]
fn what_a_view_takes_is_charged() {
    let mut fixture = fixture("catalog-charge");
    let sorted = "SELECT * FROM information_schema.COLUMNS ORDER BY COLUMN_NAME";
    assert!(fixture.good(sorted).rows.len() >= 3 * TABLES);
    fixture.good("SET untorn_statement_memory_limit = 65536");
    assert_eq!(fixture.run(sorted).error, Some(1041));
    assert_eq!(fixture.good("SHOW TABLES").rows.len(), TABLES);
}

/// The least limit of memory, to 1 KiB, with which a statement works.
fn least_memory(fixture: &mut Fixture, sql: &str) -> u64 {
    let (mut refused, mut enough) = (64, 4096);
    while enough - refused > 1 {
        let middle = (refused + enough) / 2;
        fixture.good(&format!("SET untorn_statement_memory_limit = {}", middle << 10));
        match fixture.run(sql).error {
            Some(1041) => refused = middle,
            None => enough = middle,
            error => panic!("{sql}: {error:?}"),
        }
    }
    enough << 10
}

#[test]
fn rows_of_show_are_charged_while_their_condition_is_looked_at() {
    let mut fixture = Fixture::new("catalog-where");
    let rows = least_memory(&mut fixture, "SHOW VARIABLES WHERE LENGTH(Variable_name) > 0");
    assert!(rows > 65 << 10, "{rows}: too few to tell");
    // A KiB more than what is asked for: so fine is the measure.
    let long = "SHOW VARIABLES WHERE LENGTH(REPEAT('a', 201024 + LENGTH(Variable_name))) > 0";
    let both = least_memory(&mut fixture, long);
    assert!(both >= rows + 200_000, "{both}, the rows alone {rows}");
}
