//! LOAD DATA: files of clients, who may send anything, and files of the server.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::PathBuf;

use crate::support::engine::Engine;
use crate::support::{CAPABILITIES, Client, all, code, error_code, one};
use sql_shim::auth::native;

const LOCAL_FILES: u32 = 1 << 7;

fn start() -> (Engine, Client) {
    let engine = Engine::start();
    engine.server.server.variables.set_at_start("local_infile", "ON").unwrap();
    let mut client = loader(&engine);
    all(
        &mut client,
        &[
            "CREATE DATABASE d",
            "USE d",
            "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, a INT NOT NULL, \
             b VARCHAR(5) NOT NULL DEFAULT 'dd', c INT DEFAULT 9, g INT AS (a + 1) STORED)",
            "CREATE TABLE u (id INT AUTO_INCREMENT PRIMARY KEY, a INT NOT NULL, b VARCHAR(5), \
             c INT DEFAULT 9, d DATE DEFAULT '2020-01-01')",
        ],
    );
    (engine, client)
}

fn loader(engine: &Engine) -> Client {
    let mut client = engine.server.connect();
    let reply = client.log_in("root", b"", native::PLUGIN, CAPABILITIES | LOCAL_FILES, None);
    assert_eq!(reply[0], 0);
    client
}

/// Asks for a load, up to the server's request for the file.
fn ask(client: &mut Client, sql: &str) {
    let request = client.query(sql);
    assert_eq!(request, b"\xfbfile", "{}", String::from_utf8_lossy(&request));
}

/// Sends a file in pieces of this length: the text of the OK, or the error's number.
fn send(client: &mut Client, file: &[u8], piece: usize) -> Result<String, u16> {
    for piece in file.chunks(piece) {
        client.send(piece);
    }
    client.send(b"");
    let reply = client.receive().unwrap();
    if reply[0] == 0xff { Err(error_code(&reply)) } else { Ok(String::from_utf8_lossy(&reply[8..]).into()) }
}

fn rows(client: &mut Client, sql: &str) -> Vec<String> {
    let text = |value: Option<String>| value.unwrap_or_else(|| "~".into());
    let rows = client.run(sql).unwrap();
    rows.into_iter().map(|row| row.into_iter().map(text).collect::<Vec<_>>().join("|")).collect()
}

/// The answers are those of MySQL 9.7.
#[test]
fn a_file_of_the_client_in_pieces_of_any_length() {
    let (engine, mut client) = start();
    let file = b"1,abc\n2,\"x,y\"\n3\n4,d,extra\nxx,e\n\\N,f\n,g\n";
    for piece in [1, 5, 1000] {
        all(&mut client, &["TRUNCATE t"]);
        ask(
            &mut client,
            "LOAD DATA LOCAL INFILE 'file' INTO TABLE t FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\"' (a, b)",
        );
        let done = send(&mut client, file, piece);
        assert_eq!(done.as_deref(), Ok("Records: 7  Deleted: 0  Skipped: 0  Warnings: 5"));
        assert_eq!(
            rows(&mut client, "SHOW WARNINGS"),
            [
                "Warning|1261|Row 3 doesn't contain data for all columns",
                "Warning|1262|Row 4 was truncated; it contained more data than there were input columns",
                "Warning|1366|Incorrect integer value: 'xx' for column 'a' at row 5",
                "Warning|1263|Column set to default value; NULL supplied to NOT NULL column 'a' at row 6",
                "Warning|1366|Incorrect integer value: '' for column 'a' at row 7",
            ]
        );
        assert_eq!(
            rows(&mut client, "SELECT * FROM t"),
            ["1|1|abc|9|2", "2|2|x,y|9|3", "3|3||9|4", "4|4|d|9|5", "5|0|e|9|1", "6|0|f|9|1", "7|0|g|9|1"]
        );
    }
    engine.finish();
}

#[test]
fn variables_assignments_and_what_is_there_already() {
    let (engine, mut client) = start();
    let fields = "FIELDS TERMINATED BY ',' ENCLOSED BY '\"'";
    let load =
        |what: &str, rest: &str| format!("LOAD DATA LOCAL INFILE 'file' {what} INTO TABLE u {fields} {rest}");
    ask(&mut client, &load("", "IGNORE 2 LINES (@x, b) SET a = @x + 5, c = a * 2"));
    send(&mut client, b"h1\nh2\n5,\"q\"\"q\"\n6,NULL\n7,\"NULL\"\n", 4).unwrap();
    assert_eq!(
        rows(&mut client, "SELECT a, b, c, d FROM u"),
        ["10|q\"q|20|2020-01-01", "11|~|22|2020-01-01", "12|NULL|24|2020-01-01"]
    );
    // Fields of generated columns are for nobody.
    ask(&mut client, "LOAD DATA LOCAL INFILE 'file' INTO TABLE t");
    send(&mut client, b"5\t1\tx\t2\t99\n", 4).unwrap();
    assert_eq!(rows(&mut client, "SELECT * FROM t"), ["5|1|x|2|2"]);
    // An escaped terminator ends no line, of those that are not wanted neither.
    ask(&mut client, "LOAD DATA LOCAL INFILE 'file' INTO TABLE t IGNORE 1 LINES (a)");
    send(&mut client, b"a\\\nb\n21\tx\\\n22\ty\n", 4).unwrap();
    assert_eq!(rows(&mut client, "SELECT a FROM t WHERE a > 5"), ["21"]);
    all(&mut client, &["SET sql_mode = 'NO_BACKSLASH_ESCAPES'"]);
    ask(&mut client, "LOAD DATA LOCAL INFILE 'file' INTO TABLE t (a, b)");
    send(&mut client, b"31\tx\\ty\n", 4).unwrap();
    all(&mut client, &["SET sql_mode = DEFAULT"]);
    assert_eq!(one(&mut client, "SELECT HEX(b) FROM t WHERE a = 31"), "785C7479");
    // Missing fields are not defaults.
    ask(&mut client, &load("", "(a, b, c, d)"));
    send(&mut client, b"1,a\n2\n", 9).unwrap();
    assert_eq!(
        rows(&mut client, "SELECT a, b, c, d FROM u WHERE a < 3"),
        ["1|a|0|0000-00-00", "2|~|0|0000-00-00"]
    );
    let ids = b"1,5,x\n9,5,y\n";
    ask(&mut client, &load("IGNORE", "(id, a, b)"));
    let done = send(&mut client, ids, 9);
    assert_eq!(done.as_deref(), Ok("Records: 2  Deleted: 0  Skipped: 1  Warnings: 1"));
    ask(&mut client, &load("REPLACE", "(id, a, b)"));
    let done = send(&mut client, b"1,5,x\n9,6,y\n", 9);
    assert_eq!(done.as_deref(), Ok("Records: 2  Deleted: 2  Skipped: 0  Warnings: 0"));
    ask(
        &mut client,
        &load("", "CHARACTER SET latin1 (a, b)").replace(fields, "CHARACTER SET latin1").replace(
            "CHARACTER SET latin1 CHARACTER SET latin1",
            "CHARACTER SET latin1 FIELDS TERMINATED BY ','",
        ),
    );
    send(&mut client, b"77,\x80\xe9\n", 9).unwrap();
    assert_eq!(one(&mut client, "SELECT b FROM u WHERE a = 77"), "\u{20ac}\u{e9}");
    let refused = [
        ("(nosuch)", 1054),
        ("(a) SET a = (SELECT 1)", 1110),
        ("(a) SET c = (SELECT 1)", 1235),
        ("IGNORE LINES", 1064),
    ];
    for (rest, number) in refused {
        assert_eq!(code(&mut client, &load("", rest)), number, "{rest}");
    }
    assert_eq!(code(&mut client, "LOAD DATA LOCAL INFILE 'f' INTO TABLE u FIELDS ENCLOSED BY 'ab'"), 1083);
    let long = "x".repeat(256);
    assert_eq!(code(&mut client, &load("", &format!("LINES TERMINATED BY '{long}'"))), 1083);
    assert_eq!(code(&mut client, "LOAD DATA LOCAL INFILE 'f' INTO TABLE u FIELDS TERMINATED BY ''"), 1235);
    assert_eq!(code(&mut client, "LOAD DATA LOCAL INFILE 'f' INTO TABLE u CHARACTER SET nosuch"), 1115);
    assert_eq!(error_code(&client.command(b"\x16LOAD DATA LOCAL INFILE 'f' INTO TABLE u")), 1295);
    engine.finish();
}

/// The answers are those of MySQL 9.7.
#[test]
fn lines_with_too_few_fields() {
    let (engine, mut client) = start();
    all(
        &mut client,
        &["CREATE TABLE w (a INT PRIMARY KEY, d DATE NOT NULL DEFAULT '2001-01-01', \
           ts TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, e ENUM('x', 'y') NOT NULL DEFAULT 'y', j JSON)"],
    );
    let file = b"1\t2001-02-30\n2\tx\n3\n";
    ask(&mut client, "LOAD DATA LOCAL INFILE 'file' INTO TABLE w");
    let done = send(&mut client, file, 100);
    assert_eq!(done.as_deref(), Ok("Records: 3  Deleted: 0  Skipped: 0  Warnings: 12"));
    let missing = |row: u8| format!("Warning|1261|Row {row} doesn't contain data for all columns");
    let mut warnings = vec!["Warning|1264|Out of range value for column 'd' at row 1".to_owned()];
    warnings.extend([1, 1, 1].map(missing));
    warnings.push("Warning|1265|Data truncated for column 'd' at row 2".to_owned());
    warnings.extend([2, 2, 2, 3, 3, 3, 3].map(missing));
    assert_eq!(rows(&mut client, "SHOW WARNINGS"), warnings);
    let zero = "0000-00-00|0000-00-00 00:00:00|0||~";
    let contents = rows(&mut client, "SELECT a, d, ts, e + 0, e, j FROM w");
    assert_eq!(contents, [1, 2, 3].map(|a| format!("{a}|{zero}")));
    // A variable that has no field is NULL, and not missed.
    ask(
        &mut client,
        "LOAD DATA LOCAL INFILE 'file' REPLACE INTO TABLE w (a, @d) SET d = COALESCE(@d, '2002-02-02')",
    );
    assert_eq!(
        send(&mut client, b"9\n", 100).as_deref(),
        Ok("Records: 1  Deleted: 0  Skipped: 0  Warnings: 0")
    );
    assert_eq!(one(&mut client, "SELECT d FROM w WHERE a = 9"), "2002-02-02");
    // In strict mode what is wrong first is the error.
    for (file, number) in [(&b"1\t2001-02-30\n"[..], 1292), (b"1\n", 1261)] {
        ask(&mut client, "LOAD DATA LOCAL INFILE 'file' REPLACE INTO TABLE w");
        assert_eq!(send(&mut client, file, 100), Err(number));
    }
    engine.finish();
}

/// Values that SET computes are gone with their row: many rows need no more memory than one.
#[test]
fn rows_give_their_memory_back() {
    let (engine, mut client) = start();
    all(&mut client, &["CREATE TABLE w (a INT, b INT)", "SET untorn_statement_memory_limit = 8000000"]);
    ask(&mut client, "LOAD DATA LOCAL INFILE 'file' INTO TABLE w (a) SET b = LENGTH(REPEAT(a, 500000))");
    let file: String = (0..200).map(|a| format!("{a}\n")).collect();
    assert!(send(&mut client, file.as_bytes(), 100).unwrap().starts_with("Records: 200"));
    engine.finish();
}

#[test]
fn who_may_not_ask_for_files() {
    let (engine, mut client) = start();
    let load = "LOAD DATA LOCAL INFILE 'file' INTO TABLE d.t (a)";
    let mut without = engine.root();
    assert_eq!(code(&mut without, load), 3948);
    all(&mut client, &["SET GLOBAL local_infile = OFF"]);
    assert_eq!(code(&mut client, load), 3948);
    engine.finish();
}

const LOAD: &str = "LOAD DATA LOCAL INFILE 'file' INTO TABLE d.t (a)";

/// Waits until this client alone is there.
fn until_alone(engine: &Engine) {
    while engine.server.server.connections.len() > 1 {
        std::thread::yield_now();
    }
}

#[test]
fn clients_that_do_not_send_what_was_asked_for() {
    let (engine, mut root) = start();
    let count = "SELECT COUNT(*) FROM d.t";
    // Nothing.
    let mut client = loader(&engine);
    ask(&mut client, LOAD);
    assert!(send(&mut client, b"", 1).unwrap().starts_with("Records: 0"));
    drop(client);
    // Part of it: gone, out of turn, and silent.
    all(&mut root, &["SET GLOBAL net_read_timeout = 1"]);
    for how in ["gone", "out of turn", "silent"] {
        let mut client = loader(&engine);
        ask(&mut client, LOAD);
        client.send(b"1\n2\n3");
        match how {
            "gone" => drop(client),
            "out of turn" => {
                client.sequence = 0;
                client.send(b"\x03SELECT 1");
                assert!(client.is_closed());
            }
            _ => assert!(client.is_closed()),
        }
        until_alone(&engine);
        assert_eq!(one(&mut root, count), "0", "{how}");
    }
    all(&mut root, &["SET GLOBAL net_read_timeout = 30"]);
    engine.finish();
}

#[test]
fn errors_are_heard_behind_the_file_and_the_connection_goes_on() {
    let (engine, mut root) = start();
    let count = "SELECT COUNT(*) FROM d.t";
    // A line longer than a packet may be; what follows is read, and not kept.
    all(&mut root, &["SET GLOBAL max_allowed_packet = 65536"]);
    let mut client = loader(&engine);
    ask(&mut client, LOAD);
    client.send(b"1\n");
    assert_eq!(send(&mut client, &vec![b'x'; 1 << 20], 50_000), Err(1153));
    assert_eq!(one(&mut client, count), "0");
    // What failed keeps nobody waiting while its client goes on sending.
    all(&mut root, &["CREATE TABLE d.k (id INT PRIMARY KEY)"]);
    let mut slow = loader(&engine);
    ask(&mut slow, "LOAD DATA LOCAL INFILE 'file' INTO TABLE d.k");
    slow.send(b"1\n");
    (0..3).for_each(|_| slow.send(&[b'x'; 50_000]));
    let mut other = engine.root();
    all(&mut other, &["SET innodb_lock_wait_timeout = 20", "INSERT INTO d.k VALUES (1)"]);
    assert_eq!(send(&mut slow, b"2\n", 2), Err(1153));
    assert_eq!(one(&mut other, "SELECT COUNT(*) FROM d.k"), "1");
    drop((slow, other));
    // Killed while its client sends a line at a time: it hears of it at the end, and nothing more is read.
    ask(&mut client, LOAD);
    client.send(b"1\n");
    all(&mut root, &[&format!("KILL QUERY {}", client.connection_id())]);
    for _ in 0..10 {
        client.send(b"2\n");
    }
    assert_eq!(send(&mut client, b"3\n", 2), Err(1317));
    // Killed by somebody else while the client takes its time.
    ask(&mut client, LOAD);
    client.send(b"1\n");
    let id = client.connection_id();
    all(&mut root, &[&format!("KILL QUERY {id}")]);
    assert_eq!(send(&mut client, b"2\n3\n", 2), Err(1317));
    assert_eq!(one(&mut client, count), "0");
    // A transaction keeps what it did before.
    all(&mut client, &["BEGIN", "INSERT INTO d.t (a) VALUES (7)"]);
    ask(&mut client, LOAD);
    assert_eq!(send(&mut client, &vec![b'x'; 1 << 20], 50_000), Err(1153));
    all(&mut client, &["COMMIT"]);
    assert_eq!(one(&mut client, "SELECT a FROM d.t"), "7");
    drop(client);
    engine.finish();
}

#[test]
fn files_of_the_server() {
    let (engine, mut client) = start();
    let directory: PathBuf = engine.directory.with_extension("files");
    std::fs::create_dir_all(directory.join("deeper")).unwrap();
    let shown = directory.display().to_string();
    let write = |name: &str, text: &[u8]| std::fs::write(directory.join(name), text).unwrap();
    for (name, text) in
        [("short", &b"1,a\n2\n"[..]), ("long", b"1,a,5\n"), ("null", b"\\N,a\n"), ("good", b"1,a\n2,b")]
    {
        write(name, text);
    }
    std::os::unix::fs::symlink("/etc/passwd", directory.join("link")).unwrap();
    let load =
        |name: &str| format!("LOAD DATA INFILE '{name}' INTO TABLE d.u FIELDS TERMINATED BY ',' (a, b)");
    assert_eq!(code(&mut client, &load("good")), 1290, "no directory was named");
    engine.server.server.variables.set_at_start("secure_file_priv", &shown).unwrap();
    engine.server.server.open_files().unwrap();
    let refused = [
        ("short", 1261),
        ("long", 1262),
        ("null", 1263),
        ("missing", 13),
        ("deeper", 1085),
        ("link", 1290),
        ("../x", 1290),
        ("/etc/passwd", 1290),
    ];
    for (name, number) in refused {
        assert_eq!(code(&mut client, &load(name)), number, "{name}");
    }
    assert_eq!(one(&mut client, "SELECT COUNT(*) FROM d.u"), "0");
    all(&mut client, &[&load(&format!("{shown}/good"))]);
    assert_eq!(rows(&mut client, "SELECT a, b FROM d.u"), ["1|a", "2|b"]);
    all(
        &mut client,
        &["CREATE USER app IDENTIFIED WITH mysql_native_password BY 'pw'", "GRANT ALL ON d.* TO app"],
    );
    let mut app = engine.login("app", "pw", None).unwrap();
    assert_eq!(code(&mut app, &load("good")), 1227);
    std::fs::remove_dir_all(directory).unwrap();
    engine.finish();
}

#[test]
fn rows_into_files_of_the_server() {
    let (engine, mut client) = start();
    let directory: PathBuf = engine.directory.with_extension("out");
    std::fs::create_dir_all(directory.join("deeper")).unwrap();
    std::os::unix::fs::symlink("/tmp", directory.join("away")).unwrap();
    std::os::unix::fs::symlink("nowhere", directory.join("link")).unwrap();
    assert_eq!(code(&mut client, "SELECT 1 INTO OUTFILE 'a'"), 1290);
    engine.server.server.variables.set_at_start("secure_file_priv", directory.to_str().unwrap()).unwrap();
    engine.server.server.open_files().unwrap();
    let read = |name: &str| std::fs::read(directory.join(name));
    all(
        &mut client,
        &[
            "INSERT INTO u (a, b, c) VALUES (1, 'x\\ty', NULL), (2, '\"', 5)",
            "SELECT * FROM u ORDER BY a INTO OUTFILE 'a'",
            "SELECT a, b, c FROM u ORDER BY a INTO OUTFILE 'deeper/b' \
             FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\"' LINES TERMINATED BY '\\r\\n'",
            "SELECT a, b INTO DUMPFILE 'c' FROM u WHERE a = 1",
        ],
    );
    assert_eq!(read("a").unwrap(), b"1\t1\tx\\\ty\t\\N\t2020-01-01\n2\t2\t\"\t5\t2020-01-01\n");
    assert_eq!(read("deeper/b").unwrap(), b"1,\"x\ty\",\\N\r\n2,\"\\\"\",5\r\n");
    assert_eq!(read("c").unwrap(), b"1x\ty");
    for (name, number) in [("a", 1086), ("link", 1086), ("away/a", 1290), ("../a", 1290), ("/tmp/a", 1290)] {
        assert_eq!(code(&mut client, &format!("SELECT 1 INTO OUTFILE '{name}'")), number, "{name}");
    }
    assert_eq!(code(&mut client, "SELECT 1 INTO OUTFILE 'nowhere/a'"), 1);
    // What failed leaves nothing.
    assert_eq!(code(&mut client, "SELECT a FROM u INTO DUMPFILE 'two'"), 1172);
    assert!(read("two").is_err());
    // The files are MySQL's. INTO behind the last part of a UNION is the statement's, wherever it stands.
    all(
        &mut client,
        &[
            "CREATE TABLE n (z INT(6) ZEROFILL, d DOUBLE(10,2), s VARCHAR(9))",
            "INSERT INTO n VALUES (42, 3.1, 'x\\ny')",
            "SELECT 1 UNION SELECT 2.5 INTO OUTFILE 'union'",
            "SELECT s FROM n UNION ALL SELECT z INTO OUTFILE 'all' FROM n",
            "SELECT 2 EXCEPT SELECT 3 INTO OUTFILE 'except'",
            "(SELECT 4 INTO OUTFILE 'brackets')",
            "SELECT * INTO OUTFILE 'numbers' FIELDS ENCLOSED BY '\"' LINES TERMINATED BY '\\n' FROM n",
            "SELECT 1, 2 INTO OUTFILE 'ends' FIELDS TERMINATED BY ',' LINES TERMINATED BY ''",
            "SET sql_mode = 'NO_BACKSLASH_ESCAPES'",
            "SELECT 'a\\b', NULL INTO OUTFILE 'plain'",
            "SET sql_mode = DEFAULT",
        ],
    );
    for (name, text) in [
        ("union", "1.0\n2.5\n"),
        ("all", "x\\\ny\n42\n"),
        ("except", "2\n"),
        ("brackets", "4\n"),
        ("numbers", "\"000042\"\t\"3.10\"\t\"x\\\ny\"\n"),
        ("ends", "1,2,"),
        ("plain", "a\\b\tNULL\n"),
    ] {
        assert_eq!(String::from_utf8(read(name).unwrap()).unwrap(), text, "{name}");
    }
    for name in ["x/", "deeper/.", "deeper"] {
        let number = code(&mut client, &format!("SELECT 1 INTO OUTFILE '{name}'"));
        assert_eq!(number, if name == "deeper" { 1086 } else { 1 }, "{name}");
    }
    // What was written is read again as it was.
    all(&mut client, &["CREATE TABLE v LIKE u", "LOAD DATA INFILE 'a' INTO TABLE v"]);
    assert_eq!(rows(&mut client, "SELECT * FROM v"), rows(&mut client, "SELECT * FROM u"));
    all(
        &mut client,
        &["CREATE USER app IDENTIFIED WITH mysql_native_password BY 'pw'", "GRANT ALL ON d.* TO app"],
    );
    let mut app = engine.login("app", "pw", None).unwrap();
    assert_eq!(code(&mut app, "SELECT 1 INTO OUTFILE 'd'"), 1227);
    std::fs::remove_dir_all(directory).unwrap();
    engine.finish();
}

#[test]
fn files_of_the_server_as_values() {
    let (engine, mut client) = start();
    let directory: PathBuf = engine.directory.with_extension("values");
    std::fs::create_dir_all(directory.join("deeper")).unwrap();
    let shown = directory.display().to_string();
    std::fs::write(directory.join("file"), b"a\0b\xff").unwrap();
    std::fs::write(directory.join("deeper/empty"), b"").unwrap();
    std::fs::write(directory.join("large"), vec![b'x'; 300_000]).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", directory.join("link")).unwrap();
    std::os::unix::fs::symlink("file", directory.join("inside")).unwrap();
    let null = "SELECT LOAD_FILE('file') IS NULL";
    assert_eq!(one(&mut client, null), "1", "no directory was named");
    engine.server.server.variables.set_at_start("secure_file_priv", &shown).unwrap();
    engine.server.server.open_files().unwrap();
    for name in ["file", "inside", "deeper/../file", &format!("{shown}/file")] {
        assert_eq!(one(&mut client, &format!("SELECT HEX(LOAD_FILE('{name}'))")), "610062FF", "{name}");
    }
    assert_eq!(one(&mut client, "SELECT LENGTH(LOAD_FILE('deeper/empty'))"), "0");
    assert_eq!(one(&mut client, "SELECT LENGTH(LOAD_FILE('large'))"), "300000");
    for name in ["missing", "deeper", "link", "../x", "/etc/passwd", "", "file\\0"] {
        assert_eq!(one(&mut client, &format!("SELECT LOAD_FILE('{name}') IS NULL")), "1", "{name}");
    }
    all(&mut client, &["INSERT INTO u (a, b) VALUES (1, 'file')"]);
    assert_eq!(one(&mut client, "SELECT HEX(LOAD_FILE(b)) FROM u"), "610062FF");
    all(&mut client, &["CREATE TABLE f AS SELECT LOAD_FILE('file') AS bytes"]);
    assert_eq!(one(&mut client, "SELECT HEX(bytes) FROM f"), "610062FF");
    // Another file under the same name is read.
    std::fs::write(directory.join("file"), b"new").unwrap();
    assert_eq!(one(&mut client, "SELECT LOAD_FILE('file')"), "new");
    all(&mut client, &["SET GLOBAL max_allowed_packet = 200000"]);
    let mut other = engine.root();
    assert_eq!(one(&mut other, "SELECT LOAD_FILE('large') IS NULL"), "1");
    assert!(rows(&mut other, "SHOW WARNINGS")[0].starts_with("Warning|1301|Result of load_file()"));
    all(
        &mut client,
        &["CREATE USER app IDENTIFIED WITH mysql_native_password BY 'pw'", "GRANT ALL ON d.* TO app"],
    );
    let mut app = engine.login("app", "pw", None).unwrap();
    assert_eq!(one(&mut app, null), "1", "without FILE");
    all(&mut client, &["GRANT FILE ON *.* TO app"]);
    assert_eq!(one(&mut app, null), "0");
    std::fs::remove_dir_all(directory).unwrap();
    engine.finish();
}
