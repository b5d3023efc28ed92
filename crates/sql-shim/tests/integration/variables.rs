//! What clients see of variables without effect.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::support::Client;
use crate::support::engine::Engine;

fn warnings(client: &mut Client, statement: &str) -> Vec<(String, String)> {
    client.run(statement).unwrap_or_else(|error| panic!("{statement}: {error:?}"));
    let rows = client.run("SHOW WARNINGS").unwrap();
    rows.into_iter()
        .map(|mut row| {
            assert_eq!(row[0].as_deref(), Some("Warning"), "{statement}");
            (row[1].take().unwrap(), row[2].take().unwrap())
        })
        .collect()
}

#[test]
fn set_of_a_variable_without_effect_warns() {
    let engine = Engine::start();
    let mut root = engine.root();
    for (statement, name) in [
        ("SET GLOBAL innodb_io_capacity = 4000", "innodb_io_capacity"),
        ("SET GLOBAL read_only = ON", "read_only"),
        ("SET optimizer_switch = 'hash_join=on'", "optimizer_switch"),
        ("SET @@session.join_buffer_size = DEFAULT", "join_buffer_size"),
    ] {
        let found = warnings(&mut root, statement);
        assert_eq!(found.len(), 1, "{statement}: {found:?}");
        let (code, message) = &found[0];
        let said = format!("'{name}' is accepted for compatibility and has no effect");
        assert!(code == "1618" && message.starts_with(&said), "{statement}: {message}");
    }
    for (name, value) in [("innodb_io_capacity", "4000"), ("read_only", "0")] {
        let shown = root.run(&format!("SELECT @@{name}")).unwrap();
        assert_eq!(shown[0][0].as_deref(), Some(value), "{name}");
    }
    let several = warnings(&mut root, "SET sql_log_bin = 1, autocommit = 1, max_seeks_for_key = 5");
    assert_eq!(several.len(), 2, "{several:?}");
    engine.finish();
}

/// What stock clients, connectors and dumps send by themselves: mysqldump and mariadb-dump as recorded,
/// Connector/J, MariaDB Connector/J, Connector/Python, PyMySQL, Go's driver, Django, Rails, phpMyAdmin, and
/// the head and tail of a dump.
const BY_CLIENTS: &[&str] = &[
    "/*!40100 SET @@SQL_MODE='' */",
    "/*!40103 SET TIME_ZONE='+00:00' */",
    "/*!80000 SET SESSION information_schema_stats_expiry=0 */",
    "SET SESSION NET_READ_TIMEOUT= 86400, SESSION NET_WRITE_TIMEOUT= 86400",
    "SET SQL_QUOTE_SHOW_CREATE=1",
    "SET SESSION character_set_results = 'binary'",
    "set optimizer_switch='semijoin=off'",
    "set optimizer_switch=default",
    "SET character_set_results = NULL",
    "SET autocommit=1",
    "SET sql_mode='STRICT_TRANS_TABLES'",
    "SET SQL_SELECT_LIMIT=DEFAULT",
    "SET net_write_timeout=600",
    "set autocommit=1, session_track_schema=1, sql_mode = concat(@@sql_mode,',STRICT_TRANS_TABLES')",
    "set session_track_system_variables='auto_increment_increment'",
    "SET NAMES 'utf8mb4' COLLATE 'utf8mb4_general_ci'",
    "SET @@session.autocommit = OFF",
    "SET SQL_AUTO_IS_NULL = 0",
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SET @@SESSION.sql_auto_is_null = 0, @@SESSION.wait_timeout = 2147483",
    "SET lc_messages = 'de_DE'",
    "/*!40014 SET @OLD_UNIQUE_CHECKS=@@UNIQUE_CHECKS, UNIQUE_CHECKS=0 */",
    "/*!40014 SET @OLD_FOREIGN_KEY_CHECKS=@@FOREIGN_KEY_CHECKS, FOREIGN_KEY_CHECKS=0 */",
    "/*!40111 SET @OLD_SQL_NOTES=@@SQL_NOTES, SQL_NOTES=0 */",
    "SET @MYSQLDUMP_TEMP_LOG_BIN = @@SESSION.SQL_LOG_BIN",
    "SET @@SESSION.SQL_LOG_BIN= 0",
    "SET @@SESSION.SQL_LOG_BIN = @MYSQLDUMP_TEMP_LOG_BIN",
    "/*!40014 SET FOREIGN_KEY_CHECKS=@OLD_FOREIGN_KEY_CHECKS */",
    "/*!40014 SET UNIQUE_CHECKS=@OLD_UNIQUE_CHECKS */",
    "/*!40111 SET SQL_NOTES=@OLD_SQL_NOTES */",
];

#[test]
fn what_clients_set_by_themselves_warns_nobody() {
    let engine = Engine::start();
    let mut root = engine.root();
    for statement in BY_CLIENTS {
        assert_eq!(warnings(&mut root, statement), [], "{statement}");
    }
    engine.finish();
}
