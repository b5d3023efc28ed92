//! Which `Com_…` of SHOW STATUS a statement counts in: the names are those that MySQL 9.7 counts each in.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use crate::support::Client;
use crate::support::engine::Engine;

/// Statements, one a line, and the counters that each adds one to; refused ones too.
const STATEMENTS: &str = "
CREATE DATABASE d => create_db
USE d => change_db
CREATE TABLE t (a INT PRIMARY KEY, b INT) => create_table
CREATE TABLE t2 AS SELECT * FROM t => create_table
CREATE TEMPORARY TABLE tt (a INT) => create_table
INSERT INTO t VALUES (1, 2) => insert
INSERT INTO t SELECT 5, 6 => insert_select
REPLACE INTO t VALUES (1, 3) => replace
REPLACE INTO t SELECT 5, 7 => replace_select
CREATE INDEX i ON t (b) => create_index
ALTER TABLE t ADD c INT => alter_table
DROP INDEX i ON t => drop_index
RENAME TABLE t TO u => rename_table
RENAME TABLE u TO t => rename_table
TRUNCATE TABLE t2 => truncate
CREATE VIEW v AS SELECT a FROM t => create_view
ALTER VIEW v AS SELECT a FROM t => create_view
CREATE OR REPLACE VIEW v AS SELECT a FROM t => create_view
SHOW CREATE VIEW v => show_create_table
DROP VIEW v => drop_view
UPDATE t SET b = 1 => update
UPDATE t, t2 SET t.b = 1 => update_multi
DELETE FROM t WHERE a = 77 => delete
DELETE t FROM t, t2 => delete_multi
BEGIN => begin
START TRANSACTION READ ONLY => begin
SAVEPOINT s => savepoint
ROLLBACK TO s => rollback_to_savepoint
RELEASE SAVEPOINT s => release_savepoint
ROLLBACK => rollback
XA START 'a' JOIN => xa_start
XA END 'a' => xa_end
XA PREPARE 'a' => xa_prepare
XA RECOVER => xa_recover
XA COMMIT 'a' => xa_commit
XA ROLLBACK 'a' => xa_rollback
COMMIT => commit
SET @a = 1 => set_option
SET NAMES utf8mb4 => set_option
SET TRANSACTION ISOLATION LEVEL READ COMMITTED => set_option
SET PASSWORD FOR nobody_there = 'x' => set_password
SHOW DATABASES => show_databases
SHOW TABLES => show_tables
SHOW FULL TABLES => show_tables
SHOW TABLE STATUS => show_table_status
SHOW OPEN TABLES => show_open_tables
SHOW COLUMNS FROM t => show_fields
DESCRIBE t => show_fields
SHOW INDEX FROM t => show_keys
SHOW CREATE TABLE t => show_create_table
SHOW CREATE DATABASE d => show_create_db
SHOW VARIABLES LIKE 'port' => show_variables
SHOW GLOBAL STATUS LIKE 'Uptime' => show_status
SHOW PROCESSLIST => show_processlist
SHOW WARNINGS => show_warnings
SHOW COUNT(*) WARNINGS => select
SHOW ERRORS => show_errors
SHOW ENGINES => show_storage_engines
SHOW ENGINE INNODB STATUS => show_engine_status
SHOW ENGINE INNODB MUTEX => show_engine_mutex
SHOW PLUGINS => show_plugins
SHOW PRIVILEGES => show_privileges
SHOW CHARACTER SET => show_charsets
SHOW COLLATION => show_collations
SHOW GRANTS => show_grants
SHOW TRIGGERS => show_triggers
SHOW EVENTS => show_events
SHOW PROCEDURE STATUS => show_procedure_status
SHOW FUNCTION STATUS => show_function_status
SHOW BINARY LOGS => show_binlogs
SHOW BINLOG EVENTS => show_binlog_events
SHOW REPLICA STATUS => show_replica_status
SHOW REPLICAS => show_replicas
SHOW PROFILES => show_profiles
EXPLAIN SELECT 1 => select
EXPLAIN UPDATE t SET b = 1 => update
SELECT 2 => select
SELECT 3 => select
SELECT * FROM nowhere_at_all => select
WITH x AS (SELECT 1) SELECT * FROM x => select
DO 1 => do
ANALYZE TABLE t => analyze
CHECK TABLE t => check
OPTIMIZE TABLE t => optimize
REPAIR TABLE t => repair
CHECKSUM TABLE t => checksum
KILL 999999999 => kill
KILL QUERY 999999999 => kill
FLUSH TABLES => flush
FLUSH TABLES WITH READ LOCK => flush
UNLOCK TABLES => unlock_tables
LOCK TABLES t READ => lock_tables
UNLOCK TABLES => unlock_tables
CREATE USER u1@localhost => create_user
ALTER USER u1@localhost IDENTIFIED BY 'x' => alter_user
GRANT SELECT ON d.* TO u1@localhost => grant
REVOKE SELECT ON d.* FROM u1@localhost => revoke
REVOKE ALL PRIVILEGES, GRANT OPTION FROM u1@localhost => revoke_all
RENAME USER u1@localhost TO u2@localhost => rename_user
DROP USER u1@localhost => drop_user
PREPARE p FROM 'SELECT a FROM t' => prepare_sql stmt_prepare
EXECUTE p => execute_sql stmt_execute select
EXECUTE p => execute_sql stmt_execute select
DEALLOCATE PREPARE p => dealloc_sql stmt_close
PREPARE p FROM 'SHOW TABLES' => prepare_sql stmt_prepare
EXECUTE p => execute_sql stmt_execute show_tables
DROP PREPARE p => dealloc_sql stmt_close
PREPARE p FROM 'SELEC' => prepare_sql stmt_prepare
EXECUTE nowhere => execute_sql
DEALLOCATE PREPARE nowhere => dealloc_sql
CALL nowhere() => call_procedure
HELP 'x' => help
GET DIAGNOSTICS @n = NUMBER => get_diagnostics
LOAD DATA INFILE '/nowhere/at/all' INTO TABLE t => load
ALTER DATABASE d CHARACTER SET utf8mb4 => alter_db
CREATE ROLE r => create_role
DROP ROLE r => drop_role
CREATE TRIGGER x BEFORE INSERT ON t FOR EACH ROW SET @a = 1 => create_trigger
CREATE DEFINER = root@localhost TRIGGER x BEFORE INSERT ON t FOR EACH ROW SET @a = 1 => create_trigger
DROP TRIGGER x => drop_trigger
CREATE PROCEDURE p() SELECT 1 => create_procedure
DROP PROCEDURE p => drop_procedure
CREATE FUNCTION f() RETURNS INT NO SQL RETURN 1 => create_function
DROP FUNCTION f => drop_function
CREATE EVENT e ON SCHEDULE EVERY 1 HOUR DISABLE DO SELECT 1 => create_event
DROP EVENT e => drop_event
DROP TABLE t2 => drop_table
DROP TEMPORARY TABLE tt => drop_table
DROP TABLE t => drop_table
DROP DATABASE d => drop_db
SELEC =>
";

fn counters(client: &mut Client, scope: &str) -> BTreeMap<String, u64> {
    let rows = client.run(&format!("SHOW {scope} STATUS LIKE 'Com\\_%'")).unwrap();
    let row = |row: Vec<Option<String>>| {
        let [Some(name), Some(value)] = &row[..] else { unreachable!("{row:?}") };
        (name.trim_start_matches("Com_").to_owned(), value.parse().unwrap())
    };
    rows.into_iter().map(row).collect()
}

/// Counters that have grown, but for the SHOW STATUS between the two.
fn grown(before: &BTreeMap<String, u64>, after: &BTreeMap<String, u64>) -> Vec<String> {
    let by = |name: &String, value: u64| value - before[name] - u64::from(name == "show_status");
    let names = after.iter().flat_map(|(name, value)| {
        let times = usize::try_from(by(name, *value)).unwrap();
        std::iter::repeat_n(name.clone(), times)
    });
    names.collect()
}

#[test]
fn each_statement_counts_where_mysql_counts_it() {
    let engine = Engine::start();
    let (mut client, mut other) = (engine.root(), engine.root());
    for scope in ["SESSION", "GLOBAL"] {
        for line in STATEMENTS.lines().filter(|line| !line.is_empty()) {
            let (statement, expected) = line.split_once(" =>").unwrap();
            let mut expected: Vec<&str> = expected.split_ascii_whitespace().collect();
            expected.sort_unstable();
            let before = counters(&mut client, scope);
            // Of another session's statements a session knows nothing.
            if scope == "SESSION" {
                other.run("SELECT 1").unwrap();
            }
            let _ = client.run(statement);
            assert_eq!(grown(&before, &counters(&mut client, scope)), expected, "{scope}: {statement}");
        }
    }
    let questions = |client: &mut Client| {
        let rows = client.run("SHOW SESSION STATUS LIKE 'Questions'").unwrap();
        rows[0][1].as_deref().unwrap().parse::<u64>().unwrap()
    };
    assert!(questions(&mut client) > questions(&mut other));
    client.run("FLUSH STATUS").unwrap();
    assert_eq!(questions(&mut client), 1);
    engine.finish();
}

/// COM_STMT_EXECUTE counts itself and the statement, a USE by COM_INIT_DB as well.
#[test]
fn commands_count_as_statements_do() {
    let engine = Engine::start();
    let mut client = engine.root();
    client.run("CREATE DATABASE d").unwrap();
    let before = counters(&mut client, "SESSION");
    client.command(b"\x02d");
    let prepared = client.command(b"\x16DO 1");
    client.command(&[&[0x17][..], &prepared[1..5], &[0, 1, 0, 0, 0]].concat());
    let after = counters(&mut client, "SESSION");
    assert_eq!(grown(&before, &after), ["change_db", "do", "stmt_execute", "stmt_prepare"]);
    engine.finish();
}
