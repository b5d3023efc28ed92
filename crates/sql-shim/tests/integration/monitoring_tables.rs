//! What monitoring reads beside figures: `mysql.user`, I/O of files, tablespaces.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::support::engine::Engine;
use crate::support::{Client, all, code, one};

const OWN_HASH: &str = "SELECT authentication_string FROM mysql.user WHERE User = 'app'";

fn number(client: &mut Client, sql: &str) -> u64 {
    one(client, sql).parse().unwrap_or_else(|_| panic!("{sql}"))
}

fn column(client: &mut Client, sql: &str) -> Vec<Option<String>> {
    client.run(sql).unwrap().into_iter().map(|mut row| row.remove(0)).collect()
}

/// Moments are those of the session's zone, as NOW() is.
#[test]
fn a_moment_is_shown_in_the_zone_of_the_session() {
    let engine = Engine::start();
    let mut root = engine.root();
    all(
        &mut root,
        &[
            "SET time_zone = '+09:00'",
            "CREATE DATABASE d",
            "CREATE TABLE d.t (id INT PRIMARY KEY)",
            "CREATE VIEW d.v AS SELECT 1",
            "BEGIN",
            "INSERT INTO d.t VALUES (1)",
        ],
    );
    for moment in [
        "SELECT MAX(LAST_SEEN) FROM performance_schema.events_statements_summary_by_digest",
        "SELECT MIN(CREATE_TIME) FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'd'",
        "SELECT trx_started FROM information_schema.INNODB_TRX",
        "SELECT password_last_changed FROM mysql.user",
        "SELECT MIN(TIME_ENABLED) FROM information_schema.INNODB_METRICS",
    ] {
        let away = one(&mut root, &format!("SELECT ABS(TIMESTAMPDIFF(SECOND, ({moment}), NOW())) < 3600"));
        assert_eq!(away, "1", "{moment}");
    }
    engine.finish();
}

/// Who may see what others do sees no password of theirs.
#[test]
fn statements_that_run_are_shown_without_passwords() {
    let engine = Engine::start();
    let (mut root, mut other) = (engine.root(), engine.root());
    all(
        &mut other,
        &[
            "CREATE DATABASE d",
            "CREATE TABLE d.t (id INT PRIMARY KEY)",
            "BEGIN",
            "INSERT INTO d.t VALUES (1)",
        ],
    );
    other.sequence = 0;
    other.send(b"\x03SELECT SLEEP(1000), 'IDENTIFIED BY secret'");
    let id = other.connection_id();
    for shown in [
        format!("SELECT INFO FROM information_schema.PROCESSLIST WHERE ID = {id} AND INFO IS NOT NULL"),
        "SELECT trx_query FROM information_schema.INNODB_TRX WHERE trx_query LIKE '%SLEEP%'".to_owned(),
    ] {
        let text = loop {
            if let Some(row) = root.run(&shown).unwrap().into_iter().next() {
                break row[0].clone().unwrap();
            }
        };
        assert!(text.contains("SLEEP") && !text.contains("secret"), "{text}");
    }
    all(&mut root, &[&format!("KILL {id}")]);
    drop(other);
    engine.finish();
}

#[test]
fn accounts_are_read_by_those_who_may_and_changed_by_nobody() {
    let engine = Engine::start();
    let mut root = engine.root();
    all(
        &mut root,
        &[
            "CREATE USER app IDENTIFIED WITH mysql_native_password BY 'pw'",
            "CREATE USER admin@localhost IDENTIFIED WITH mysql_native_password BY 'pw' REQUIRE SSL ACCOUNT LOCK",
            "GRANT SELECT, SYSTEM_USER ON *.* TO admin@localhost WITH GRANT OPTION",
        ],
    );
    let shown = "SELECT CONCAT_WS('|', User, Host, Select_priv, Insert_priv, Grant_priv, Create_user_priv, ssl_type, \
         plugin, account_locked) FROM mysql.user";
    let known: Vec<_> = column(&mut root, shown).into_iter().flatten().collect();
    assert_eq!(
        known,
        [
            "app|%|N|N|N|N||mysql_native_password|N",
            "admin|localhost|Y|N|Y|N|ANY|mysql_native_password|Y",
            "root|localhost|Y|Y|Y|Y||caching_sha2_password|N"
        ]
    );
    let hash = one(&mut root, OWN_HASH);
    assert!(hash.starts_with('*') && hash.len() == 41, "{hash}");

    let mut app = engine.login("app", "pw", None).ok().unwrap();
    for sql in ["SELECT User FROM mysql.user", "DESCRIBE mysql.user", "SELECT * FROM mysql.user u FOR UPDATE"]
    {
        assert_eq!(code(&mut app, sql), 1142, "{sql}");
    }
    assert_eq!(code(&mut app, "USE mysql"), 1044);
    // To read is not to see hashes; to change accounts is, but for those that it may not change.
    all(&mut root, &["GRANT SELECT ON mysql.user TO app"]);
    assert_eq!(column(&mut app, "SELECT authentication_string FROM mysql.user"), [None, None, None]);
    assert_eq!(one(&mut app, "SELECT COUNT(*) FROM mysql.user WHERE plugin LIKE '%password'"), "3");
    assert!(column(&mut app, "SHOW TABLES FROM mysql").is_empty());
    all(&mut app, &["USE mysql", "DESCRIBE user"]);
    all(&mut root, &["GRANT CREATE USER ON *.* TO app"]);
    let hashes = "SELECT COALESCE(authentication_string, '-') FROM mysql.user ORDER BY User";
    assert_eq!(column(&mut app, hashes), [Some("-".into()), Some(hash), Some("-".into())]);

    for sql in [
        "UPDATE mysql.user SET Super_priv = 'Y'",
        "DELETE FROM mysql.user",
        "INSERT INTO mysql.user (User) VALUES ('x')",
        "DROP TABLE mysql.user",
        "TRUNCATE TABLE mysql.user",
    ] {
        assert_ne!(code(&mut root, sql), 0, "{sql}");
    }
    assert_eq!(code(&mut root, "UPDATE mysql.user SET Super_priv = 'Y'"), 1036);
    assert_eq!(one(&mut root, "SELECT COUNT(*) FROM mysql.user"), "3");
    engine.finish();
}

/// A dump of all databases of a MySQL server brings one of this name, and MySQL's mysqldump makes one only
/// where it sees it.
#[test]
fn a_database_that_is_called_mysql_is_that_database() {
    let engine = Engine::start();
    let mut root = engine.root();
    let listed = "SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = 'mysql'";
    assert_eq!(one(&mut root, listed), "1");
    all(&mut root, &["CREATE USER app", "SHOW CREATE DATABASE IF NOT EXISTS mysql"]);
    let mut app = engine.login("app", "", None).ok().unwrap();
    assert_eq!(one(&mut app, listed), "0", "it may see nothing there");
    let prepared = "PREPARE p FROM 'SELECT COUNT(*) FROM mysql.user'";
    all(&mut root, &[prepared, "EXECUTE p"]);
    all(
        &mut root,
        &[
            "CREATE DATABASE IF NOT EXISTS mysql",
            "CREATE TABLE mysql.seen (id INT)",
            "SELECT User FROM mysql.user",
            "CREATE TABLE mysql.user (id INT)",
            "INSERT INTO mysql.user VALUES (1), (2)",
        ],
    );
    assert_eq!(one(&mut root, "SELECT SUM(id) FROM mysql.user"), "3");
    assert_eq!(one(&mut root, "EXECUTE p"), "2");
    assert_eq!(one(&mut root, listed), "1");
    all(&mut root, &["DROP DATABASE mysql"]);
    assert_eq!(one(&mut root, "EXECUTE p"), "2");
    assert_eq!(one(&mut root, "SELECT COUNT(*) FROM mysql.user WHERE User = 'root'"), "1");
    engine.finish();
}

#[test]
fn io_of_files_is_counted() {
    let engine = Engine::start();
    let mut root = engine.root();
    all(
        &mut root,
        &["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)", "INSERT INTO d.t VALUES (1)"],
    );
    let of_log = |what: &str| {
        format!(
            "SELECT {what} FROM performance_schema.file_summary_by_event_name \
             WHERE EVENT_NAME = 'wait/io/file/innodb/innodb_log_file'"
        )
    };
    let before = number(&mut root, &of_log("SUM_NUMBER_OF_BYTES_WRITE"));
    all(&mut root, &["INSERT INTO d.t VALUES (2)"]);
    assert!(number(&mut root, &of_log("SUM_NUMBER_OF_BYTES_WRITE")) > before, "a commit is written");
    for check in [
        "COUNT_WRITE > 0 AND MIN_TIMER_WRITE > 0 AND AVG_TIMER_WRITE BETWEEN MIN_TIMER_WRITE AND MAX_TIMER_WRITE",
        "COUNT_STAR = COUNT_READ + COUNT_WRITE + COUNT_MISC",
        "SUM_TIMER_WAIT = SUM_TIMER_READ + SUM_TIMER_WRITE + SUM_TIMER_MISC",
    ] {
        assert_eq!(one(&mut root, &of_log(check)), "1", "{check}");
    }
    // The file goes, and what was done with data files does not become less.
    let of_table = "SELECT COUNT(*), COALESCE(SUM(COUNT_STAR), 0) FROM performance_schema.file_summary_by_instance \
         WHERE FILE_NAME LIKE '%/d/%.ibd' AND EVENT_NAME = 'wait/io/file/innodb/innodb_data_file'";
    assert_eq!(one(&mut root, of_table), "1");
    all(&mut root, &["RENAME TABLE d.t TO d.renamed"]);
    let renamed = "SELECT COUNT(*) FROM performance_schema.file_summary_by_instance \
         WHERE FILE_NAME LIKE '%/d/renamed.ibd' AND COUNT_STAR > 0";
    assert_eq!(one(&mut root, renamed), "1");
    // The catalog was written under another name.
    let unfinished = renamed.replace("%/d/renamed.ibd", "%.new");
    assert_eq!(one(&mut root, &unfinished), "0");
    let sum = "SELECT COUNT_STAR FROM performance_schema.file_summary_by_event_name \
         WHERE EVENT_NAME = 'wait/io/file/innodb/innodb_data_file'";
    let before = number(&mut root, sum);
    all(&mut root, &["DROP TABLE d.renamed"]);
    while one(&mut root, of_table) != "0" {
        std::thread::yield_now();
    }
    assert!(number(&mut root, sum) >= before);
    engine.finish();
}

#[test]
fn tablespaces_are_as_large_as_their_files() {
    let engine = Engine::start();
    let mut root = engine.root();
    all(
        &mut root,
        &[
            "CREATE DATABASE d",
            "CREATE TABLE d.`a b` (id INT PRIMARY KEY)",
            "CREATE TEMPORARY TABLE d.mine (id INT PRIMARY KEY)",
        ],
    );
    let all_of_them = "SELECT CONCAT_WS('|', NAME, FLAG, ROW_FORMAT, PAGE_SIZE, SPACE_TYPE, ENCRYPTION, STATE) \
         FROM information_schema.INNODB_TABLESPACES ORDER BY SPACE";
    let shown: Vec<_> = column(&mut root, all_of_them).into_iter().flatten().collect();
    assert_eq!(
        shown,
        ["d/a@0020b|33|Dynamic|16384|Single|N|normal", "innodb_undo_001|33|Undo|16384|Undo|N|active"]
    );
    let size = "SELECT FILE_SIZE FROM information_schema.INNODB_TABLESPACES WHERE NAME = 'd/a@0020b'";
    let file = std::fs::metadata(engine.directory.join("d/a@0020b.ibd")).unwrap();
    assert_eq!(number(&mut root, size), file.len());
    let allocated = size.replace("FILE_SIZE", "ALLOCATED_SIZE");
    assert_eq!(number(&mut root, &allocated), std::os::unix::fs::MetadataExt::blocks(&file) * 512);
    all(&mut root, &["ALTER TABLE d.`a b` DISCARD TABLESPACE"]);
    assert_eq!(one(&mut root, &size.replace("FILE_SIZE", "STATE")), "discarded");
    all(&mut root, &["CREATE USER app IDENTIFIED WITH mysql_native_password BY 'pw'"]);
    let mut app = engine.login("app", "pw", None).ok().unwrap();
    assert_eq!(code(&mut app, "SELECT * FROM information_schema.INNODB_TABLESPACES"), 1227);
    engine.finish();
}

// Breaks with: the view of the accounts comes before one that somebody made, as a dump of all of a MariaDB
// server's databases does.
#[test]
fn a_view_that_was_made_comes_before_the_one_of_the_accounts() {
    let engine = Engine::start();
    let mut root = engine.root();
    all(
        &mut root,
        &[
            "CREATE DATABASE mysql",
            "CREATE TABLE mysql.global_priv (Host CHAR(60), User CHAR(80), Priv TEXT)",
            "INSERT INTO mysql.global_priv VALUES ('h', 'made', '{}')",
            "CREATE VIEW mysql.user AS SELECT User AS Name, Host FROM mysql.global_priv",
        ],
    );
    let names = [Some("Name".to_owned()), Some("Host".to_owned())];
    assert_eq!(column(&mut root, "SELECT Name FROM mysql.user"), [Some("made".to_owned())]);
    assert_eq!(column(&mut root, "SHOW COLUMNS FROM mysql.user"), names);
    assert_eq!(column(&mut root, "DESCRIBE mysql.user"), names);
    // A view over it takes its columns.
    all(&mut root, &["CREATE VIEW mysql.over AS SELECT * FROM mysql.user u"]);
    assert_eq!(column(&mut root, "SHOW COLUMNS FROM mysql.over"), names);
    let shown = root.run("SHOW CREATE VIEW mysql.user").unwrap()[0][1].clone().unwrap();
    assert!(shown.contains("from `mysql`.`global_priv`"), "{shown}");
    all(&mut root, &["UPDATE mysql.user SET Name = 'changed'"]);
    assert_eq!(column(&mut root, "SELECT Name FROM mysql.over"), [Some("changed".to_owned())]);
    // COM_FIELD_LIST.
    all(&mut root, &["USE mysql"]);
    let first = root.command(b"\x04user\0");
    assert!(first.windows(4).any(|bytes| bytes == b"Name"), "{first:?}");
    while root.receive().unwrap()[0] != 0xFE {}
    all(&mut root, &["DROP VIEW mysql.over, mysql.user"]);
    assert_eq!(column(&mut root, "SELECT User FROM mysql.user"), [Some("root".to_owned())]);
    engine.finish();
}
