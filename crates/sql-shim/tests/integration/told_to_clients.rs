//! What stands in packets beside the rows: ids of rows, flags and types of columns and parameters, counts of
//! warnings. Drivers and ORMs act on it. The answers are those of MySQL 9.7.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use sql::result::{column_flag as flag, kind};

use crate::support::engine::Engine;
use crate::support::{Client, all, execute, prepare};

const MORE_RESULTS: u8 = 8;

/// The length-encoded number at the beginning of these bytes, and what is behind it.
fn number(bytes: &[u8]) -> (u64, &[u8]) {
    let (length, from) = match bytes[0] {
        0xfc => (2, 1),
        0xfd => (3, 1),
        0xfe => (8, 1),
        _ => (1, 0),
    };
    let mut value = [0; 8];
    value[..length].copy_from_slice(&bytes[from..from + length]);
    (u64::from_le_bytes(value), &bytes[from + length..])
}

/// The id in the OK packet of a statement.
fn told_id(client: &mut Client, sql: &str) -> u64 {
    let ok = client.query(sql);
    assert_eq!(ok[0], 0, "{sql}: {}", String::from_utf8_lossy(&ok));
    number(number(&ok[1..]).1).0
}

/// A column's name, length, type and flags.
fn definition(packet: &[u8]) -> (String, u32, u8, u16) {
    let mut rest = packet;
    let mut texts = Vec::new();
    for _ in 0..6 {
        let (length, behind) = number(rest);
        texts.push(String::from_utf8_lossy(&behind[..length as usize]).into_owned());
        rest = &behind[length as usize..];
    }
    let length = u32::from_le_bytes(rest[3..7].try_into().unwrap());
    (texts.remove(4), length, rest[7], u16::from_le_bytes([rest[8], rest[9]]))
}

/// The definitions of a result set, whose rows are passed over.
fn columns(client: &mut Client, sql: &str) -> Vec<(String, u32, u8, u16)> {
    let first = client.query(sql);
    assert_ne!(first[0], 0xff, "{sql}: {}", String::from_utf8_lossy(&first));
    let found = (0..first[0]).map(|_| definition(&client.receive().unwrap())).collect();
    for _ in 0..2 {
        while client.receive().unwrap().first() != Some(&0xfe) {}
    }
    found
}

#[test]
fn the_id_of_a_row_is_told_whoever_numbered_it() {
    let engine = Engine::start();
    let mut client = engine.root();
    all(&mut client, &["CREATE DATABASE d", "USE d"]);
    all(&mut client, &["CREATE TABLE a (id BIGINT AUTO_INCREMENT PRIMARY KEY, b VARCHAR(9), u INT UNIQUE)"]);
    for (sql, id) in [
        ("INSERT INTO a (id, b) VALUES (5, 'x')", 5),
        ("INSERT INTO a (id, b) VALUES (7, 'x'), (8, 'y')", 8),
        ("INSERT INTO a (b) VALUES ('z')", 9),
        ("INSERT INTO a (id, b) VALUES (100, 'x') ON DUPLICATE KEY UPDATE b = 'q'", 100),
        ("INSERT INTO a (id, b) VALUES (100, 'x') ON DUPLICATE KEY UPDATE b = 'r'", 100),
        ("INSERT INTO a (id, b) VALUES (100, 'x') ON DUPLICATE KEY UPDATE b = 'r'", 0),
        ("INSERT INTO a (id, b) VALUES (100, 'x') ON DUPLICATE KEY UPDATE id = 101", 101),
        ("INSERT INTO a (id, b) VALUES (101, 'x'), (300, 'n') ON DUPLICATE KEY UPDATE b = 'k'", 300),
        ("INSERT INTO a (id, b) VALUES (301, 'x'), (101, 'n') ON DUPLICATE KEY UPDATE b = 'kk'", 101),
        ("INSERT INTO a (id, b) VALUES (NULL, 'x'), (101, 'n') ON DUPLICATE KEY UPDATE b = 'kkk'", 302),
        (
            "INSERT INTO a (id, b) VALUES (101, 'n') ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id), b = 'm'",
            101,
        ),
        (
            "INSERT INTO a (id, b) VALUES (101, 'n') ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id), b = 'm'",
            101,
        ),
        ("INSERT INTO a (b, u) VALUES (LAST_INSERT_ID(77), 9)", 304),
        ("INSERT INTO a (id, b) VALUES (LAST_INSERT_ID(777), 'z')", 777),
        ("REPLACE INTO a (id, b) VALUES (800, 'x')", 800),
        ("REPLACE INTO a (id, b) VALUES (800, 'x')", 800),
        ("INSERT IGNORE INTO a (id, b) VALUES (800, 'x')", 0),
        ("INSERT IGNORE INTO a (id, b) VALUES (801, 'x'), (800, 'x')", 800),
        ("INSERT INTO a (id, b) SELECT 900, 'k'", 900),
        ("INSERT INTO a (id, b) SELECT NULL, 'k' UNION ALL SELECT NULL, 'l'", 901),
        ("INSERT INTO a (id, b) SELECT 900, 'k' ON DUPLICATE KEY UPDATE b = 'oo'", 0),
        ("INSERT INTO a (id, b) VALUES (-5, 'x')", u64::MAX - 4),
        ("UPDATE a SET b = 'y' WHERE id = 5", 0),
        ("UPDATE a SET id = LAST_INSERT_ID(id) WHERE id = 5", 5),
        ("CREATE TABLE plain (id INT PRIMARY KEY)", 0),
        ("INSERT INTO plain VALUES (4)", 0),
        ("CREATE VIEW seen AS SELECT b FROM a", 0),
        ("INSERT INTO seen VALUES ('v')", 904),
    ] {
        assert_eq!(told_id(&mut client, sql), id, "{sql}");
    }
    // What nobody generated is no LAST_INSERT_ID().
    told_id(&mut client, "INSERT INTO a (b) VALUES ('one more')");
    told_id(&mut client, "INSERT INTO a (id, b) VALUES (5000, 'x')");
    assert_eq!(client.run("SELECT LAST_INSERT_ID()").unwrap(), [[Some("905".to_owned())]]);
    engine.finish();
}

#[test]
fn columns_of_tables_have_the_flags_of_their_definition() {
    let engine = Engine::start();
    let mut client = engine.root();
    all(&mut client, &["CREATE DATABASE d", "USE d"]);
    client
        .run(
            "CREATE TABLE m (id INT PRIMARY KEY AUTO_INCREMENT, flag BOOLEAN, bits BIT(10), ye YEAR, \
             du DECIMAL(8,3) UNSIGNED, ts TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE \
             CURRENT_TIMESTAMP, dt DATETIME DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, \
             cb CHAR(5) COLLATE utf8mb4_bin, tx TEXT, bl BLOB, k2 INT NOT NULL, vk VARCHAR(10), KEY (k2, vk))",
        )
        .unwrap();
    let (part, not_null, binary) = (flag::PART_KEY, flag::NOT_NULL, flag::BINARY);
    let expected = [
        ("id", 11, kind::LONG, not_null | flag::PRIMARY_KEY | flag::AUTO_INCREMENT | part),
        ("flag", 1, kind::TINY, 0),
        ("bits", 10, kind::BIT, flag::UNSIGNED),
        ("ye", 4, kind::YEAR, flag::UNSIGNED | flag::ZEROFILL),
        ("du", 9, kind::NEWDECIMAL, flag::UNSIGNED),
        ("ts", 19, kind::TIMESTAMP, not_null | binary | flag::TIMESTAMP | flag::ON_UPDATE_NOW),
        ("dt", 19, kind::DATETIME, binary),
        ("cb", 20, kind::STRING, binary),
        ("tx", 262_140, kind::BLOB, flag::BLOB),
        ("bl", 65_535, kind::BLOB, flag::BLOB | binary),
        ("k2", 11, kind::LONG, not_null | flag::MULTIPLE_KEY | flag::NO_DEFAULT_VALUE | part),
        ("vk", 40, kind::VAR_STRING, part),
    ];
    let expected = expected.map(|(name, length, kind, flags)| (name.to_owned(), length, kind, flags));
    assert_eq!(columns(&mut client, "SELECT * FROM m"), expected);
    // MySQL puts such a query in the place of the derived table, and of a view.
    assert_eq!(columns(&mut client, "SELECT * FROM (SELECT * FROM m) AS q"), expected);
    all(&mut client, &["CREATE VIEW v AS SELECT id, flag FROM m"]);
    assert_eq!(columns(&mut client, "SELECT * FROM v"), expected[..2]);
    // A materialized one has its columns, and no keys.
    let made = columns(&mut client, "SELECT * FROM (SELECT id, flag FROM m LIMIT 1) AS q");
    assert_eq!(made.iter().map(|(.., flags)| *flags).collect::<Vec<_>>(), [not_null, 0]);
    assert_eq!(made[1].1, 1);
    // Behind an outer join anything may be NULL.
    let outer = columns(&mut client, "SELECT b.id, b.k2 FROM m a LEFT JOIN m b ON b.id = a.k2");
    assert!(outer.iter().all(|(.., flags)| flags & not_null == 0), "{outer:?}");
    engine.finish();
}

/// Small types have no room for the value of their least one with another sign.
#[test]
fn a_negative_and_an_absolute_value_are_bigint() {
    let engine = Engine::start();
    let mut client = engine.root();
    all(&mut client, &["CREATE DATABASE d", "USE d", "CREATE TABLE k (t TINYINT, u INT UNSIGNED)"]);
    all(&mut client, &["INSERT INTO k VALUES (-128, 4294967295)"]);
    let kinds = |columns: Vec<(String, u32, u8, u16)>| columns.into_iter().map(|(_, _, kind, _)| kind);
    let sql = "SELECT -t, ABS(t), -u, CEIL(t), FLOOR(t), ROUND(t), TRUNCATE(t, 0) FROM k";
    assert_eq!(kinds(columns(&mut client, sql)).collect::<Vec<_>>(), [kind::LONGLONG; 7]);
    let statement = prepare(&mut client, "SELECT -t, ABS(t), -u FROM k");
    let first = client.command(&execute(statement, &[]));
    let rows = client.rows(&first);
    let values = [128i64, 128, -4_294_967_295].map(i64::to_le_bytes).concat();
    // A header, and a byte for what is NULL.
    assert_eq!(rows, [[&[0, 0][..], &values].concat()]);
    engine.finish();
}

#[test]
fn names_of_columns_are_those_of_what_mysql_merges() {
    let engine = Engine::start();
    let mut client = engine.root();
    all(&mut client, &["CREATE DATABASE d", "USE d", "CREATE TABLE nm (AbC INT, d INT)"]);
    all(&mut client, &["CREATE VIEW vnm AS SELECT AbC AS XyZ, D FROM nm"]);
    for (sql, name) in [
        ("SELECT abc FROM nm", "abc"),
        ("SELECT xyz FROM vnm", "XyZ"),
        ("SELECT xyz AS Zz FROM vnm", "Zz"),
        ("SELECT q.xYz FROM (SELECT AbC AS XyZ FROM nm) q", "XyZ"),
        ("SELECT xX FROM (SELECT Xx FROM (SELECT AbC AS xx FROM nm) q) q", "xx"),
        ("SELECT xX FROM (SELECT AbC AS Xx FROM nm LIMIT 5) q", "xX"),
        ("SELECT xX FROM (SELECT DISTINCT AbC AS Xx FROM nm) q", "xX"),
        ("SELECT table_name FROM information_schema.tables WHERE 1 = 0", "TABLE_NAME"),
        ("SELECT Table_Name AS tt FROM information_schema.tables WHERE 1 = 0", "tt"),
        ("SELECT table_name FROM information_schema.tables WHERE 1 = 0 UNION SELECT 1", "TABLE_NAME"),
        ("SELECT engine FROM information_schema.engines", "engine"),
        ("SELECT NULL", "NULL"),
        ("SELECT (null)", "NULL"),
        ("SELECT '  lead'", "lead"),
    ] {
        assert_eq!(columns(&mut client, sql)[0].0, name, "{sql}");
    }
    // Letter case counts in names of tables, and not in those of columns.
    let count = |client: &mut Client, condition: &str| {
        let from = "SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = 'd'";
        client.run(&format!("{from} AND {condition}")).unwrap()[0][0].clone().unwrap()
    };
    assert_eq!(count(&mut client, "table_name = 'NM'"), "0");
    assert_eq!(count(&mut client, "table_name = 'nm' AND column_name = 'ABC'"), "1");
    let listed = |client: &mut Client, sql: &str| client.run(sql).unwrap().len();
    assert_eq!(listed(&mut client, "SHOW TABLES LIKE 'NM'"), 0);
    assert_eq!(listed(&mut client, "SHOW TABLES LIKE 'nm'"), 1);
    assert_eq!(listed(&mut client, "SHOW DATABASES LIKE 'D'"), 0);
    assert_eq!(listed(&mut client, "SHOW COLUMNS FROM nm LIKE 'aBC'"), 1);
    engine.finish();
}

#[test]
fn more_results_are_announced_where_the_definitions_end() {
    let engine = Engine::start();
    let mut client = engine.root();
    // Without CLIENT_MULTI_STATEMENTS: it is switched on by the command for that.
    assert_eq!(client.command(&[0x1b, 0, 0])[0], 0xfe);
    client.query("SELECT 1; SELECT 2");
    let mut flags = Vec::new();
    for result in 0..2 {
        if result > 0 {
            client.receive().unwrap();
        }
        client.receive().unwrap();
        flags.push(client.receive().unwrap()[3] & MORE_RESULTS);
        client.receive().unwrap();
        flags.push(client.receive().unwrap()[3] & MORE_RESULTS);
    }
    assert_eq!(flags, [MORE_RESULTS, MORE_RESULTS, 0, 0]);
    engine.finish();
}

#[test]
fn the_list_of_warnings_counts_none_of_its_own() {
    let engine = Engine::start();
    let mut client = engine.root();
    let told = |client: &mut Client, sql: &str| {
        let first = client.query(sql);
        for _ in 0..first[0] {
            client.receive().unwrap();
        }
        client.receive().unwrap();
        loop {
            let packet = client.receive().unwrap();
            if packet[0] == 0xfe && packet.len() < 9 {
                return packet[1];
            }
        }
    };
    assert_eq!(told(&mut client, "SELECT CAST('12x' AS SIGNED)"), 1);
    assert_eq!(told(&mut client, "SHOW WARNINGS"), 0);
    assert_eq!(told(&mut client, "SHOW COUNT(*) WARNINGS"), 0);
    assert_eq!(client.run("SHOW WARNINGS").unwrap().len(), 1);
    engine.finish();
}

#[test]
fn parameters_have_the_type_of_what_they_are_stored_in_or_compared_with() {
    let engine = Engine::start();
    let mut client = engine.root();
    all(&mut client, &["CREATE DATABASE d", "USE d"]);
    all(&mut client, &["CREATE TABLE k (id INT PRIMARY KEY, bu BIGINT UNSIGNED, v VARCHAR(9), d DOUBLE)"]);
    let mut kinds = |sql: &str| {
        let answer = client.command(&[b"\x16", sql.as_bytes()].concat());
        assert_eq!(answer[0], 0, "{sql}");
        let [columns, parameters] = [5, 7].map(|at| u16::from_le_bytes([answer[at], answer[at + 1]]));
        let told: Vec<(u8, u16)> = (0..parameters)
            .map(|_| definition(&client.receive().unwrap()))
            .map(|(_, _, kind, flags)| (kind, flags & flag::UNSIGNED))
            .collect();
        // The end of their list, and the columns with theirs.
        let rest = u16::from(parameters > 0) + columns + u16::from(columns > 0);
        (0..rest).for_each(|_| drop(client.receive().unwrap()));
        told
    };
    let (number, unsigned) = ((kind::LONGLONG, 0), (kind::LONGLONG, flag::UNSIGNED));
    let (text, double) = ((kind::VAR_STRING, 0), (kind::DOUBLE, 0));
    assert_eq!(kinds("INSERT INTO k VALUES (?, ?, ?, ?)"), [number, unsigned, text, double]);
    assert_eq!(kinds("UPDATE k SET bu = ?, d = ? WHERE id = ?"), [unsigned, double, number]);
    assert_eq!(kinds("SELECT ?, id FROM k WHERE ? < bu AND v = ?"), [text, unsigned, text]);
    engine.finish();
}

/// An entry of a select list that is a parameter has the type that was bound.
#[test]
fn a_parameter_that_is_shown_has_the_type_that_was_bound() {
    let engine = Engine::start();
    let mut client = engine.root();
    let statement = prepare(&mut client, "SELECT ? AS a");
    let mut shown = |bound: u8, value: &[u8]| {
        let packet = [&[0x17][..], &statement, &[0, 1, 0, 0, 0, 0, 1, bound, 0], value].concat();
        let first = client.command(&packet);
        assert_eq!(first, [1]);
        let (.., kind, _) = definition(&client.receive().unwrap());
        client.receive().unwrap();
        let row = client.receive().unwrap();
        client.receive().unwrap();
        (kind, row[2..].to_vec())
    };
    let double = 1.5f64.to_le_bytes();
    assert_eq!(shown(kind::DOUBLE, &double), (kind::DOUBLE, double.to_vec()));
    assert_eq!(shown(kind::LONGLONG, &7i64.to_le_bytes()), (kind::LONGLONG, 7i64.to_le_bytes().to_vec()));
    assert_eq!(shown(kind::VAR_STRING, b"\x02ab"), (kind::VAR_STRING, b"\x02ab".to_vec()));
    let statement = prepare(&mut client, "SELECT ? AS a UNION ALL SELECT ?");
    let values = [1.5f64, 2.5].map(f64::to_le_bytes).concat();
    let bound = [0, 1, kind::DOUBLE, 0, kind::DOUBLE, 0];
    let first = client.command(&[&[0x17][..], &statement, &[0, 1, 0, 0, 0], &bound, &values].concat());
    let rows = client.rows(&first);
    assert_eq!(rows.iter().flat_map(|row| row[2..].to_vec()).collect::<Vec<_>>(), values);
    // By its text a statement has the types of the variables.
    all(&mut client, &["PREPARE s FROM 'SELECT ? AS a'", "SET @a = 1.5e0"]);
    assert_eq!(columns(&mut client, "EXECUTE s USING @a")[0].2, kind::DOUBLE);
    engine.finish();
}

/// Numbers and moments in the answers of SHOW are such for a client, too: a driver gives `Time` of a process
/// as a number.
#[test]
fn what_show_says_has_types() {
    let engine = Engine::start();
    let mut client = engine.root();
    all(&mut client, &["CREATE DATABASE d", "USE d"]);
    all(&mut client, &["CREATE TABLE a (id INT PRIMARY KEY, b VARCHAR(9), KEY (b))"]);
    const NOT_NULL: u16 = flag::NOT_NULL;
    const UNSIGNED: u16 = flag::UNSIGNED;
    for (sql, column, ty, flags) in [
        ("SHOW PROCESSLIST", "Id", kind::LONGLONG, NOT_NULL),
        ("SHOW FULL PROCESSLIST", "Time", kind::LONG, NOT_NULL),
        ("SELECT * FROM information_schema.PROCESSLIST", "ID", kind::LONGLONG, NOT_NULL | UNSIGNED),
        ("SELECT * FROM information_schema.PROCESSLIST", "TIME", kind::LONG, NOT_NULL),
        ("SELECT * FROM performance_schema.processlist", "TIME", kind::LONGLONG, 0),
        ("SHOW INDEX FROM a", "Non_unique", kind::LONG, NOT_NULL),
        ("SHOW INDEX FROM a", "Seq_in_index", kind::LONG, NOT_NULL | UNSIGNED),
        ("SHOW INDEX FROM a", "Cardinality", kind::LONGLONG, 0),
        ("SHOW INDEX FROM a", "Sub_part", kind::LONGLONG, 0),
        ("SHOW TABLE STATUS", "Version", kind::LONG, 0),
        ("SHOW TABLE STATUS", "Rows", kind::LONGLONG, UNSIGNED),
        ("SHOW TABLE STATUS", "Create_time", kind::TIMESTAMP, NOT_NULL),
        ("SHOW TABLE STATUS", "Update_time", kind::DATETIME, 0),
        ("SHOW TABLE STATUS", "Checksum", kind::LONGLONG, 0),
        ("SHOW COLLATION", "Sortlen", kind::LONG, NOT_NULL | UNSIGNED),
        ("SHOW CHARACTER SET", "Maxlen", kind::LONG, NOT_NULL | UNSIGNED),
        ("SHOW WARNINGS", "Code", kind::LONG, NOT_NULL | UNSIGNED),
        ("SHOW OPEN TABLES", "In_use", kind::LONGLONG, NOT_NULL),
        ("CHECKSUM TABLE a", "Checksum", kind::LONGLONG, 0),
    ] {
        let found = columns(&mut client, sql);
        let found = found.iter().find(|(name, ..)| name == column).unwrap();
        assert_eq!((found.2, found.3 & (NOT_NULL | UNSIGNED)), (ty, flags), "{sql}: {column}");
    }
}
