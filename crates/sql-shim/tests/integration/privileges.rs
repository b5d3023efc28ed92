//! Who may do what, over real sockets and the real engine.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::Arc;

use crate::support::engine::Engine;
use crate::support::{Client, all, error_code};

fn error(client: &mut Client, sql: &str) -> (u16, String) {
    match client.run(sql) {
        Err(error) => error,
        Ok(rows) => unreachable!("{sql}: allowed, {rows:?}"),
    }
}

fn denied(client: &mut Client, sql: &str, code: u16, text: &str) {
    assert_eq!(error(client, sql), (code, text.to_owned()), "{sql}");
}

fn first_column(client: &mut Client, sql: &str) -> Vec<String> {
    client.run(sql).unwrap().into_iter().map(|row| row[0].clone().unwrap()).collect()
}

/// Two databases with tables, and an account `app@%` without any privilege.
fn shop() -> (Engine, Client) {
    let engine = Engine::start();
    let mut root = engine.root();
    all(
        &mut root,
        &[
            "CREATE DATABASE shop",
            "CREATE DATABASE other",
            "CREATE TABLE shop.cart (id INT PRIMARY KEY, n INT)",
            "CREATE TABLE shop.secret (id INT PRIMARY KEY, n INT)",
            "CREATE TABLE other.t (id INT PRIMARY KEY)",
            "INSERT INTO shop.cart VALUES (1, 10), (2, 20)",
            "CREATE USER app IDENTIFIED WITH mysql_native_password BY 'pw'",
        ],
    );
    (engine, root)
}

#[test]
fn without_a_grant_nothing_is_seen() {
    let (engine, _root) = shop();
    let reply = engine.login("app", "pw", Some("shop")).err().unwrap();
    assert_eq!(error_code(&reply), 1044);
    let mut app = engine.login("app", "pw", None).ok().unwrap();
    denied(&mut app, "USE shop", 1044, "Access denied for user 'app'@'%' to database 'shop'");
    denied(&mut app, "USE missing", 1044, "Access denied for user 'app'@'%' to database 'missing'");
    // Whether the table exists is not said either.
    for table in ["cart", "missing"] {
        let text = format!("command denied to user 'app'@'localhost' for table '{table}'");
        let select = format!("SELECT * FROM shop.{table}");
        denied(&mut app, &select, 1142, &format!("SELECT {text}"));
        denied(&mut app, &format!("INSERT INTO shop.{table} VALUES (1, 1)"), 1142, &format!("INSERT {text}"));
        denied(&mut app, &format!("UPDATE shop.{table} SET n = 1"), 1142, &format!("UPDATE {text}"));
        denied(&mut app, &format!("DELETE FROM shop.{table}"), 1142, &format!("DELETE {text}"));
        denied(&mut app, &format!("DROP TABLE shop.{table}"), 1142, &format!("DROP {text}"));
        denied(&mut app, &format!("DESCRIBE shop.{table}"), 1142, &format!("SELECT {text}"));
        denied(&mut app, &format!("SHOW CREATE TABLE shop.{table}"), 1142, &format!("SHOW {text}"));
        denied(
            &mut app,
            &format!("SELECT 1 IN (SELECT id FROM shop.{table})"),
            1142,
            &format!("SELECT {text}"),
        );
        assert_eq!(error_code(&app.command(&[&[0x16], select.as_bytes()].concat())), 1142, "prepared");
    }
    assert_eq!(first_column(&mut app, "SHOW DATABASES"), ["information_schema", "performance_schema"]);
    let list = "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA <> 'information_schema'";
    assert!(first_column(&mut app, list).is_empty());
    assert_eq!(error(&mut app, "SHOW TABLES FROM shop").0, 1044);
    assert_eq!(error(&mut app, "CREATE DATABASE mine").0, 1044);
    denied(
        &mut app,
        "CREATE TABLE shop.mine (id INT)",
        1142,
        "CREATE command denied to user 'app'@'localhost' for table 'mine'",
    );
    assert_eq!(first_column(&mut app, "SHOW GRANTS"), ["GRANT USAGE ON *.* TO `app`@`%`"]);
    engine.finish();
}

#[test]
fn grants_count_at_once_on_their_level() {
    let (engine, mut root) = shop();
    let mut app = engine.login("app", "pw", None).ok().unwrap();
    // The same statement again, so that the plan of the plan cache is met.
    let select = "SELECT n FROM shop.cart WHERE id = 1";
    assert_eq!(error(&mut app, select).0, 1142);
    all(&mut root, &["GRANT SELECT ON shop.cart TO app"]);
    assert_eq!(first_column(&mut app, select), ["10"]);
    assert_eq!(error(&mut app, "SELECT * FROM shop.secret").0, 1142);
    all(&mut app, &["USE shop"]);
    assert_eq!(first_column(&mut app, "SHOW TABLES"), ["cart"]);
    assert_eq!(
        first_column(&mut app, "SHOW DATABASES"),
        ["information_schema", "performance_schema", "shop"]
    );
    denied(
        &mut app,
        "SELECT n FROM cart WHERE id = 1 FOR UPDATE",
        1142,
        "SELECT with locking clause command denied to user 'app'@'localhost' for table 'cart'",
    );
    all(&mut root, &["REVOKE SELECT ON shop.cart FROM app"]);
    assert_eq!(error(&mut app, select).0, 1142);
    all(&mut root, &["GRANT SELECT, UPDATE ON shop.* TO app"]);
    all(&mut app, &[select, "SELECT * FROM secret", "UPDATE cart SET n = 11 WHERE id = 1"]);
    assert_eq!(error(&mut app, "INSERT INTO cart VALUES (3, 3)").0, 1142);
    all(&mut root, &["REVOKE ALL ON shop.* FROM app", "GRANT INSERT ON *.* TO app"]);
    all(&mut app, &["INSERT INTO cart VALUES (3, 3)"]);
    let duplicate = "INSERT INTO cart VALUES (3, 3) ON DUPLICATE KEY UPDATE n = 4";
    assert_eq!(error(&mut app, duplicate).0, 1142);
    assert_eq!(error(&mut app, "REPLACE INTO cart VALUES (3, 3)").0, 1142);
    assert_eq!(error(&mut app, select).0, 1142);
    all(&mut root, &["DROP USER app"]);
    assert_eq!(
        error(&mut app, "INSERT INTO cart VALUES (4, 4)").0,
        1142,
        "an open session of a dropped account"
    );
    engine.finish();
}

#[test]
fn prepared_statements_are_checked_again_after_a_change() {
    let (engine, mut root) = shop();
    all(&mut root, &["GRANT SELECT ON shop.cart TO app"]);
    let mut app = engine.login("app", "pw", Some("shop")).ok().unwrap();
    let prepared = app.command(b"\x16SELECT n FROM cart WHERE id = 1");
    assert_eq!(prepared[0], 0);
    let columns = u16::from_le_bytes([prepared[5], prepared[6]]);
    for _ in 0..=columns {
        app.receive().unwrap();
    }
    let execute = [&[0x17][..], &prepared[1..5], &[0, 1, 0, 0, 0]].concat();
    let first = app.command(&execute);
    assert_eq!(app.rows(&first).len(), 1);
    all(&mut root, &["REVOKE SELECT ON shop.cart FROM app"]);
    assert_eq!(error_code(&app.command(&execute)), 1142);
    all(&mut root, &["GRANT SELECT ON shop.cart TO app"]);
    let first = app.command(&execute);
    assert_eq!(app.rows(&first).len(), 1);
    engine.finish();
}

#[test]
fn changing_is_not_reading() {
    let (engine, mut root) = shop();
    all(&mut root, &["GRANT UPDATE, DELETE ON shop.cart TO app"]);
    let mut app = engine.login("app", "pw", Some("shop")).ok().unwrap();
    all(&mut app, &["UPDATE cart SET n = 5"]);
    let text = "SELECT command denied to user 'app'@'localhost' for column 'id' in table 'cart'";
    denied(&mut app, "UPDATE cart SET n = 5 WHERE id = 1", 1143, text);
    denied(&mut app, "DELETE FROM cart WHERE id = 1", 1143, text);
    assert_eq!(error(&mut app, "UPDATE cart SET n = n + 1").0, 1143);
    all(&mut app, &["DELETE FROM cart"]);
    engine.finish();
}

#[test]
fn definitions_need_their_privileges() {
    let (engine, mut root) = shop();
    all(&mut root, &["GRANT CREATE ON shop.* TO app"]);
    let mut app = engine.login("app", "pw", Some("shop")).ok().unwrap();
    all(&mut app, &["CREATE TABLE mine (id INT PRIMARY KEY, a INT)"]);
    let missing = |client: &mut Client, sql: &str, privilege: &str| {
        let (code, text) = error(client, sql);
        assert_eq!(code, 1142, "{sql}: {text}");
        assert!(text.starts_with(&format!("{privilege} command denied")), "{sql}: {text}");
    };
    missing(&mut app, "CREATE INDEX a ON mine (a)", "INDEX");
    missing(&mut app, "ALTER TABLE mine ADD KEY (a)", "ALTER");
    missing(&mut app, "TRUNCATE TABLE mine", "DROP");
    missing(&mut app, "RENAME TABLE mine TO yours", "DROP, ALTER");
    missing(&mut app, "CREATE TABLE copy LIKE cart", "SELECT");
    missing(&mut app, "LOCK TABLES mine READ", "SELECT, LOCK TABLES");
    missing(&mut app, "CHECK TABLE mine", "SELECT");
    missing(&mut app, "OPTIMIZE TABLE mine", "SELECT, INSERT");
    assert_eq!(error(&mut app, "DROP DATABASE shop").0, 1044);
    all(&mut root, &["GRANT DROP, ALTER, INDEX ON shop.mine TO app"]);
    all(&mut app, &["CREATE INDEX a ON mine (a)", "ALTER TABLE mine DROP KEY a", "TRUNCATE TABLE mine"]);
    missing(&mut app, "RENAME TABLE mine TO yours", "INSERT");
    all(&mut app, &["DROP TABLE mine"]);
    engine.finish();
}

#[test]
fn the_servers_own_privileges() {
    let (engine, mut root) = shop();
    let mut app = engine.login("app", "pw", None).ok().unwrap();
    for (sql, privilege) in [
        ("SET GLOBAL innodb_lock_wait_timeout = 7", "SUPER or SYSTEM_VARIABLES_ADMIN"),
        ("SET GLOBAL TRANSACTION ISOLATION LEVEL SERIALIZABLE", "SUPER or SYSTEM_VARIABLES_ADMIN"),
        ("SHOW ENGINE INNODB STATUS", "PROCESS"),
        ("SELECT * FROM information_schema.INNODB_TRX", "PROCESS"),
        ("FLUSH PRIVILEGES", "RELOAD"),
        ("FLUSH TABLES WITH READ LOCK", "RELOAD or FLUSH_TABLES"),
        ("SHUTDOWN", "SHUTDOWN"),
        ("CREATE USER x", "CREATE USER"),
        ("DROP USER app", "CREATE USER"),
        ("ALTER USER root@localhost IDENTIFIED BY 'mine'", "CREATE USER"),
        ("SET PASSWORD FOR root@localhost = 'mine'", "CREATE USER"),
        ("REVOKE ALL PRIVILEGES, GRANT OPTION FROM app", "CREATE USER"),
    ] {
        let text = format!(
            "Access denied; you need (at least one of) the {privilege} privilege(s) for this operation"
        );
        denied(&mut app, sql, 1227, &text);
    }
    denied(
        &mut app,
        "GRANT SELECT ON *.* TO app",
        1045,
        "Access denied for user 'app'@'%' (using password: YES)",
    );
    assert_eq!(error(&mut app, "GRANT SELECT ON shop.* TO app").0, 1044);
    assert_eq!(error(&mut app, "GRANT SELECT ON shop.cart TO app").0, 1142);
    assert_eq!(error(&mut app, "SHOW GRANTS FOR root@localhost").0, 1044);
    // Others' connections.
    let id = root.connection_id();
    assert_eq!(first_column(&mut app, "SHOW PROCESSLIST").len(), 1);
    denied(&mut app, &format!("KILL {id}"), 1095, &format!("You are not owner of thread {id}"));
    assert_eq!(error_code(&app.command(&[&[0x0c], &id.to_le_bytes()[..]].concat())), 1095);
    assert_eq!(error_code(&app.command(&[8, 0])), 1227, "COM_SHUTDOWN");
    all(
        &mut root,
        &["GRANT PROCESS, CONNECTION_ADMIN, SYSTEM_USER, SYSTEM_VARIABLES_ADMIN, RELOAD ON *.* TO app"],
    );
    assert_eq!(first_column(&mut app, "SHOW PROCESSLIST").len(), 2);
    all(
        &mut app,
        &["SHOW ENGINE INNODB STATUS", "FLUSH PRIVILEGES", "SET GLOBAL innodb_lock_wait_timeout = 50"],
    );
    all(&mut app, &[&format!("KILL {id}")]);
    assert!(root.is_closed());
    // One's own password and sessions take no privilege.
    let mut twin = engine.login("app", "pw", None).ok().unwrap();
    all(&mut app, &[&format!("KILL {}", twin.connection_id()), "SET PASSWORD = 'new'"]);
    assert!(twin.is_closed());
    assert!(engine.login("app", "pw", None).is_err());
    assert!(engine.login("app", "new", None).is_ok());
    engine.finish();
}

/// Another session's SET GLOBAL comes between the change and the file: here it is played by what acts on the
/// change.
#[test]
fn what_is_persisted_is_what_the_statement_set() {
    let engine = Engine::start();
    let variables = Arc::clone(&engine.server.server);
    let meanwhile = move |_: &_| variables.variables.set_at_start("max_connections", "99").map(drop);
    engine.server.server.variables.on_change("max_connections", Box::new(meanwhile));
    let mut root = engine.root();
    all(&mut root, &["SET PERSIST max_connections = 77", "SET PERSIST read_only = ON"]);
    let kept = sql_shim::variables::persisted::read(&engine.directory).unwrap();
    assert_eq!(kept["max_connections"], "77");
    assert_eq!(kept["read_only"], "OFF", "what stays is what is kept");
    drop(root);
    engine.finish();
}

#[test]
fn handing_on_and_persistence() {
    let (engine, mut root) = shop();
    all(
        &mut root,
        &[
            "CREATE USER boss IDENTIFIED WITH mysql_native_password BY 'pw'",
            "GRANT SELECT, INSERT ON shop.* TO boss WITH GRANT OPTION",
            "GRANT ALL ON `oth%`.* TO boss",
            "USE shop",
            "GRANT DELETE ON * TO boss",
            "GRANT UPDATE ON cart TO boss",
        ],
    );
    let mut boss = engine.login("boss", "pw", None).ok().unwrap();
    all(&mut boss, &["GRANT SELECT ON shop.* TO app", "SELECT * FROM other.t"]);
    assert_eq!(error(&mut boss, "GRANT DROP ON shop.* TO app").0, 1044, "does not have it");
    assert_eq!(error(&mut boss, "GRANT SELECT ON other.* TO app").0, 1044, "may not hand it on");
    for (sql, code) in [
        ("GRANT SELECT ON shop.* TO nobody", 1410),
        ("GRANT PROCESS ON shop.* TO app", 1221),
        ("GRANT LOCK TABLES ON shop.cart TO app", 1144),
        ("GRANT FLYING ON *.* TO app", 3929),
        ("GRANT SELECT (missing) ON shop.cart TO app", 1054),
        ("GRANT chief TO app", 3523),
        ("GRANT SELECT ON shop.missing TO app", 1146),
        ("REVOKE SELECT ON other.* FROM app", 1141),
        ("REVOKE SELECT ON shop.secret FROM app", 1147),
        ("SHOW GRANTS FOR nobody", 1141),
    ] {
        assert_eq!(error(&mut root, sql).0, code, "{sql}");
    }
    let expected = [
        "GRANT USAGE ON *.* TO `boss`@`%`",
        "GRANT ALL PRIVILEGES ON `oth%`.* TO `boss`@`%`",
        "GRANT SELECT, INSERT, DELETE ON `shop`.* TO `boss`@`%` WITH GRANT OPTION",
        "GRANT UPDATE ON `shop`.`cart` TO `boss`@`%`",
    ];
    assert_eq!(first_column(&mut boss, "SHOW GRANTS"), expected);
    drop((boss, root));
    let engine = Engine::open(&engine.stop());
    let mut boss = engine.login("boss", "pw", Some("shop")).ok().unwrap();
    assert_eq!(first_column(&mut boss, "SHOW GRANTS FOR CURRENT_USER()"), expected);
    let mut app = engine.login("app", "pw", Some("shop")).ok().unwrap();
    all(&mut app, &["SELECT * FROM cart"]);
    let mut root = engine.root();
    let table =
        "SELECT PRIVILEGE_TYPE FROM information_schema.TABLE_PRIVILEGES WHERE GRANTEE = \"'boss'@'%'\"";
    assert_eq!(first_column(&mut root, table), ["UPDATE"]);
    all(&mut root, &["REVOKE ALL PRIVILEGES, GRANT OPTION FROM boss"]);
    assert_eq!(first_column(&mut boss, "SHOW GRANTS"), expected[..1]);
    engine.finish();
}

/// What ALTER USER does not say stays as it is, the password above all.
#[test]
fn account_options_never_open_an_account() {
    let (engine, mut root) = shop();
    let refused = |engine: &Engine, password: &str| {
        engine.login("app", password, None).err().map(|reply| error_code(&reply))
    };
    for option in [
        "REQUIRE SUBJECT '/CN=app'",
        "REQUIRE CIPHER 'x'",
        "PASSWORD EXPIRE REQUIRE ISSUER '/CN=ca'",
        "COMMENT 'x'",
        "ATTRIBUTE '{}'",
        "DISCARD OLD PASSWORD",
        "IDENTIFIED WITH mysql_native_password",
        "IDENTIFIED BY RANDOM PASSWORD",
        "IDENTIFIED BY 'new' RETAIN CURRENT PASSWORD",
        "IDENTIFIED BY 'new' REQUIRE ISSUER '/CN=ca'",
    ] {
        assert_eq!(error(&mut root, &format!("ALTER USER app {option}")).0, 1235, "{option}");
        assert_eq!(refused(&engine, ""), Some(1045), "{option}");
        assert_eq!(refused(&engine, "pw"), None, "{option}");
    }
    for option in ["REQUIRE CIPHER 'x'", "PASSWORD EXPIRE COMMENT 'x'"] {
        let create = format!("CREATE USER guest IDENTIFIED BY 'x' {option}");
        assert_eq!(error(&mut root, &create).0, 1235, "{option}");
        assert_eq!(error(&mut root, "SHOW GRANTS FOR guest").0, 1141, "{option}");
    }
    for option in ["REQUIRE SSL", "WITH MAX_USER_CONNECTIONS 1", "PASSWORD EXPIRE"] {
        assert_eq!(error(&mut root, &format!("GRANT SELECT ON *.* TO app {option}")).0, 1235, "{option}");
    }
    all(&mut root, &["GRANT SELECT ON *.* TO app REQUIRE NONE WITH MAX_USER_CONNECTIONS 0"]);
    all(&mut root, &["REVOKE SELECT ON *.* FROM app"]);
    // Options that restrict nothing, as dumps of accounts have them.
    all(
        &mut root,
        &[
            "ALTER USER app REQUIRE NONE PASSWORD EXPIRE DEFAULT ACCOUNT UNLOCK PASSWORD HISTORY DEFAULT \
             PASSWORD REUSE INTERVAL DEFAULT PASSWORD REQUIRE CURRENT DEFAULT",
            "ALTER USER app WITH MAX_QUERIES_PER_HOUR 0 MAX_USER_CONNECTIONS 0",
            "ALTER USER app PASSWORD EXPIRE NEVER FAILED_LOGIN_ATTEMPTS 0",
        ],
    );
    assert_eq!((refused(&engine, ""), refused(&engine, "pw")), (Some(1045), None));

    all(&mut root, &["ALTER USER app ACCOUNT LOCK"]);
    let reply = engine.login("app", "pw", None).err().unwrap();
    assert_eq!(error_code(&reply), 3118);
    assert!(String::from_utf8_lossy(&reply).ends_with("user 'app'@'localhost'. Account is locked."));
    assert_eq!(refused(&engine, "wrong"), Some(1045), "the lock is told to those who know the password");
    all(&mut root, &["ALTER USER app IDENTIFIED BY 'pw2'"]);
    assert_eq!(refused(&engine, "pw2"), Some(3118), "a new password does not unlock");
    let directory = engine.stop();
    let engine = Engine::open(&directory);
    let refused = |password: &str| engine.login("app", password, None).err().map(|reply| error_code(&reply));
    let mut root = engine.root();
    assert_eq!(refused("pw2"), Some(3118), "locked for good");
    all(&mut root, &["ALTER USER app ACCOUNT UNLOCK"]);
    assert_eq!((refused("pw2"), refused("")), (None, Some(1045)));
    all(&mut root, &["CREATE USER shut IDENTIFIED WITH mysql_native_password BY 'x' ACCOUNT LOCK"]);
    assert_eq!(engine.login("shut", "x", None).err().map(|reply| error_code(&reply)), Some(3118));
    engine.finish();
}

#[test]
fn statements_on_several_accounts_are_done_or_not() {
    let (engine, mut root) = shop();
    all(&mut root, &["CREATE USER a, b", "ALTER USER IF EXISTS a, nobody ACCOUNT LOCK"]);
    assert_eq!(
        first_column(&mut root, "SHOW WARNINGS"),
        ["Note"],
        "the account that is not there, and the other was changed"
    );
    assert_eq!(engine.login("a", "", None).err().map(|reply| error_code(&reply)), Some(3118));
    denied(&mut root, "DROP USER a, x, y, b", 1396, "Operation DROP USER failed for 'x'@'%','y'@'%'");
    denied(&mut root, "CREATE USER c, a", 1396, "Operation CREATE USER failed for 'a'@'%'");
    assert_eq!(error(&mut root, "SHOW GRANTS FOR c").0, 1141);
    assert_eq!(error(&mut root, "ALTER USER b, x IDENTIFIED BY 'new'").0, 1396);
    assert!(engine.login("b", "", None).is_ok(), "half of a statement");
    // The account exists: GRANT changes its password, as in MySQL 5.7 and MariaDB.
    all(&mut root, &["GRANT SELECT ON *.* TO b IDENTIFIED WITH mysql_native_password BY 'set'"]);
    assert_eq!(engine.login("b", "", None).err().map(|reply| error_code(&reply)), Some(1045));
    assert!(engine.login("b", "set", None).is_ok());
    engine.finish();
}

#[test]
fn create_user_does_not_make_an_administrator() {
    let (engine, mut root) = shop();
    all(&mut root, &["GRANT CREATE USER ON *.* TO app", "CREATE USER small"]);
    let mut app = engine.login("app", "pw", None).ok().unwrap();
    for statement in [
        "ALTER USER root@localhost IDENTIFIED BY 'mine'",
        "ALTER USER root@localhost ACCOUNT LOCK",
        "SET PASSWORD FOR root@localhost = 'mine'",
        "DROP USER root@localhost",
        "REVOKE ALL PRIVILEGES, GRANT OPTION FROM root@localhost",
    ] {
        denied(
            &mut app,
            statement,
            1227,
            "Access denied; you need (at least one of) the SYSTEM_USER privilege(s) for this operation",
        );
    }
    all(&mut app, &["ALTER USER small IDENTIFIED BY 'x'", "DROP USER small", "SET PASSWORD = 'own'"]);
    assert_eq!(error(&mut app, "ALTER USER app ACCOUNT LOCK, small").0, 1064);
    // A connection of an administrator is not theirs either.
    all(&mut root, &["GRANT CONNECTION_ADMIN ON *.* TO app"]);
    let id = first_column(&mut root, "SELECT CONNECTION_ID()")[0].clone();
    assert_eq!(error(&mut app, &format!("KILL {id}")).0, 1095);
    all(&mut root, &["GRANT SYSTEM_USER ON *.* TO app"]);
    all(&mut app, &["ALTER USER root@localhost IDENTIFIED BY 'mine'"]);
    engine.finish();
}
