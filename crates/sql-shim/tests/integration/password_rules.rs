//! Passwords that expire, accounts that are blocked, limits of accounts: what clients hear at a login and
//! after it. What statements say of the rules is in the golden script `98_password_options.test`.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use sql_shim::auth::native;

use crate::support::engine::Engine;
use crate::support::{CAPABILITIES, Client, all, code, error_code, execute, one, prepare};

/// A client says that it can handle expired passwords.
const HANDLES_EXPIRED: u32 = 1 << 22;

fn first_column(client: &mut Client, sql: &str) -> Vec<String> {
    client.run(sql).unwrap().into_iter().map(|row| row[0].clone().unwrap()).collect()
}

/// A server with an account `app@%`, whose password is `pw`.
fn served() -> (Engine, Client) {
    let engine = Engine::start();
    let mut root = engine.root();
    all(&mut root, &["CREATE DATABASE d", "CREATE TABLE d.t (a INT)", "CREATE USER app"]);
    all(
        &mut root,
        &["ALTER USER app IDENTIFIED WITH mysql_native_password BY 'pw'", "GRANT ALL ON d.* TO app"],
    );
    (engine, root)
}

fn login(engine: &Engine, password: &str) -> Result<Client, (u16, String)> {
    login_with(engine, password, CAPABILITIES)
}

fn login_with(engine: &Engine, password: &str, capabilities: u32) -> Result<Client, (u16, String)> {
    let mut client = engine.server.connect();
    let reply = client.log_in("app", password.as_bytes(), native::PLUGIN, capabilities, None);
    match reply.first() {
        Some(0) => Ok(client),
        _ => Err((error_code(&reply), String::from_utf8_lossy(&reply[9..]).into_owned())),
    }
}

fn refused(engine: &Engine, password: &str) -> u16 {
    login(engine, password).err().map_or(0, |(code, _)| code)
}

#[test]
fn an_expired_password_can_only_be_changed() {
    let (engine, mut root) = served();
    let mut running = login(&engine, "pw").unwrap();
    all(&mut root, &["ALTER USER app PASSWORD EXPIRE"]);
    all(&mut running, &["SELECT 1"]);
    assert_eq!((refused(&engine, "wrong"), refused(&engine, "pw")), (1045, 1862));
    let mut app = login_with(&engine, "pw", CAPABILITIES | HANDLES_EXPIRED).unwrap();
    for statement in
        ["SELECT 1", "SELECT * FROM d.t", "SELECT * FROM d.nothing", "SET @a = 1", "USE d", "BEGIN"]
    {
        assert_eq!(code(&mut app, statement), 1820, "{statement}");
    }
    for command in [&b"\x02d"[..], b"\x09", b"\x1f", b"\x11root\0\0\0"] {
        assert_eq!(error_code(&app.command(command)), 1820, "{command:?}");
    }
    assert_eq!(app.command(b"\x0e").first(), Some(&0), "COM_PING");
    // Nothing else of its own account, and nobody else's.
    assert_eq!(code(&mut app, "ALTER USER app PASSWORD EXPIRE NEVER"), 1227);
    assert_eq!(code(&mut app, "ALTER USER root@localhost IDENTIFIED BY 'mine'"), 1227);
    assert_eq!(code(&mut app, "SELECT 1"), 1820);
    all(&mut app, &["SET PASSWORD = 'new'", "SELECT 1", "INSERT INTO d.t VALUES (1)"]);
    assert_eq!((refused(&engine, "pw"), refused(&engine, "new")), (1045, 0));
    // Locked is said before expired.
    all(&mut root, &["ALTER USER app PASSWORD EXPIRE ACCOUNT LOCK"]);
    assert_eq!((refused(&engine, "new"), refused(&engine, "wrong")), (3118, 1045));
    engine.finish();
}

/// Ages are kept in the file of accounts, with all the rest.
#[test]
fn passwords_grow_old_over_restarts() {
    let (engine, mut root) = served();
    all(
        &mut root,
        &["ALTER USER app WITH MAX_USER_CONNECTIONS 7 PASSWORD HISTORY 2 PASSWORD EXPIRE INTERVAL 30 DAY \
           FAILED_LOGIN_ATTEMPTS 9 PASSWORD_LOCK_TIME UNBOUNDED"],
    );
    let shown = first_column(&mut root, "SHOW CREATE USER app");
    assert!(shown[0].contains("WITH MAX_USER_CONNECTIONS 7 PASSWORD EXPIRE INTERVAL 30 DAY"), "{shown:?}");
    all(&mut root, &["ALTER USER app IDENTIFIED BY 'pw2'", "ALTER USER app IDENTIFIED BY 'pw'"]);
    drop(root);
    let directory = engine.stop();
    let file = directory.join("untorn-accounts.json");
    let set = |days: u64| {
        let text = std::fs::read_to_string(&file).unwrap();
        let mut json: serde_json::Value = serde_json::from_str(&text).unwrap();
        let app =
            json["accounts"].as_array_mut().unwrap().iter_mut().find(|account| account["user"] == "app");
        let app = app.unwrap();
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
        app["password_set_unix_s"] = (now - days * 86_400).into();
        std::fs::write(&file, serde_json::to_string(&json).unwrap()).unwrap();
    };
    set(29);
    let engine = Engine::open(&directory);
    let mut root = engine.root();
    assert_eq!(refused(&engine, "pw"), 0);
    assert_eq!(first_column(&mut root, "SHOW CREATE USER app"), shown);
    assert_eq!(code(&mut root, "ALTER USER app IDENTIFIED BY 'pw2'"), 3638);
    drop(root);
    engine.stop();
    set(31);
    let engine = Engine::open(&directory);
    let mut root = engine.root();
    assert_eq!(refused(&engine, "pw"), 1862);
    all(&mut root, &["ALTER USER app PASSWORD EXPIRE NEVER"]);
    assert_eq!(refused(&engine, "pw"), 0);
    all(&mut root, &["ALTER USER app PASSWORD EXPIRE DEFAULT"]);
    assert_eq!(refused(&engine, "pw"), 0);
    all(&mut root, &["SET GLOBAL default_password_lifetime = 30"]);
    assert_eq!(refused(&engine, "pw"), 1862);
    all(&mut root, &["SET GLOBAL default_password_lifetime = 32"]);
    assert_eq!(refused(&engine, "pw"), 0);
    engine.finish();
}

#[test]
fn wrong_passwords_block_an_account() {
    let (engine, mut root) = served();
    let blocked = |password: &str| login(&engine, password).err().unwrap();
    all(&mut root, &["ALTER USER app FAILED_LOGIN_ATTEMPTS 2 PASSWORD_LOCK_TIME 3"]);
    // One right one in between, and they are no longer in a row.
    assert_eq!([refused(&engine, "x"), refused(&engine, "pw"), refused(&engine, "")], [1045, 0, 1045]);
    let (code, message) = blocked("x");
    assert_eq!(code, 3955);
    assert_eq!(
        message,
        "Access denied for user 'app'@'localhost'. Account is blocked for 3 day(s) (3 day(s) remaining) due to 2 \
         consecutive failed logins."
    );
    assert_eq!(blocked("pw").0, 3955, "whatever the password");
    all(&mut root, &["ALTER USER app ACCOUNT LOCK", "ALTER USER app IDENTIFIED BY 'pw'"]);
    assert_eq!(blocked("pw").0, 3955, "a lock and a new password change nothing of it");
    all(&mut root, &["ALTER USER app ACCOUNT UNLOCK"]);
    assert_eq!([refused(&engine, "x"), refused(&engine, "x"), refused(&engine, "pw")], [1045, 3955, 3955]);
    all(&mut root, &["ALTER USER app PASSWORD_LOCK_TIME UNBOUNDED"]);
    assert_eq!([refused(&engine, "pw"), refused(&engine, "x")], [0, 1045]);
    assert!(blocked("x").1.contains("blocked for unlimited day(s) (unlimited day(s) remaining)"));
    all(&mut root, &["FLUSH PRIVILEGES"]);
    assert_eq!(refused(&engine, "pw"), 0);
    // Nobody else is blocked, and an account without such rules is not either.
    all(&mut root, &["ALTER USER app PASSWORD_LOCK_TIME 0"]);
    assert_eq!([refused(&engine, "x"), refused(&engine, "x"), refused(&engine, "x")], [1045, 1045, 1045]);
    assert_eq!(refused(&engine, "pw"), 0);
    engine.finish();
}

#[test]
fn what_an_account_may_use() {
    let (engine, mut root) = served();
    let exceeded = |resource: &str, limit: u32| {
        format!("User 'app' has exceeded the '{resource}' resource (current value: {limit})")
    };
    all(&mut root, &["ALTER USER app WITH MAX_USER_CONNECTIONS 2"]);
    let mut app = login(&engine, "pw").unwrap();
    let second = login(&engine, "pw").unwrap();
    assert_eq!(login(&engine, "pw").err().unwrap(), (1226, exceeded("max_user_connections", 2)));
    all(&mut root, &["ALTER USER app WITH MAX_USER_CONNECTIONS 0", "SET GLOBAL max_user_connections = 2"]);
    let text = "User app already has more than 'max_user_connections' active connections";
    assert_eq!(login(&engine, "pw").err().unwrap(), (1203, text.to_owned()));
    assert_eq!(one(&mut app, "SELECT @@session.max_user_connections"), "2");
    all(&mut root, &["ALTER USER app WITH MAX_USER_CONNECTIONS 3"]);
    assert_eq!(one(&mut app, "SELECT @@max_user_connections"), "3");
    assert_eq!(one(&mut app, "SELECT @@global.max_user_connections"), "2");
    all(&mut root, &["SET GLOBAL max_user_connections = 0", "ALTER USER app WITH MAX_USER_CONNECTIONS 2"]);
    drop(second);
    // When the server has seen that it is gone.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while refused(&engine, "pw") == 1226 {
        assert!(std::time::Instant::now() < deadline, "a connection that has ended is still counted");
        std::thread::yield_now();
    }
    all(&mut root, &["ALTER USER app WITH MAX_USER_CONNECTIONS 0"]);

    all(&mut root, &["ALTER USER app WITH MAX_QUERIES_PER_HOUR 4 MAX_UPDATES_PER_HOUR 1"]);
    all(&mut app, &["SELECT 1", "INSERT INTO d.t VALUES (1)"]);
    assert_eq!(app.run("INSERT INTO d.t VALUES (2)").err(), Some((1226, exceeded("max_updates", 1))));
    all(&mut app, &["SELECT 1"]);
    for statement in ["SELECT 1", "SELECT COUNT(*) FROM d.t", "SET @a = 1", "COMMIT"] {
        assert_eq!(app.run(statement).err(), Some((1226, exceeded("max_questions", 4))), "{statement}");
    }
    all(&mut root, &["FLUSH USER_RESOURCES"]);
    all(&mut app, &["SELECT 1", "CREATE TABLE d.u (a INT)"]);
    assert_eq!(code(&mut app, "DROP TABLE d.u"), 1226);
    // Setting limits begins the hour again.
    all(&mut root, &["ALTER USER app WITH MAX_QUERIES_PER_HOUR 0"]);
    all(&mut app, &["DROP TABLE d.u", "SELECT 1", "SELECT 1", "SELECT 1", "SELECT 1", "SELECT 1"]);
    assert_eq!(first_column(&mut root, "SELECT COUNT(*) FROM d.t"), ["1"]);

    all(&mut root, &["ALTER USER app WITH MAX_UPDATES_PER_HOUR 0 MAX_CONNECTIONS_PER_HOUR 1"]);
    let third = login(&engine, "pw").unwrap();
    assert_eq!(login(&engine, "pw").err().unwrap(), (1226, exceeded("max_connections_per_hour", 1)));
    assert_eq!(refused(&engine, "x"), 1045);
    drop(third);
    assert_eq!(refused(&engine, "pw"), 1226, "it is of the hour, not of what is open");
    engine.finish();
}

/// What an account may do in an hour it may do in whatever form it says it.
#[test]
fn prepared_statements_count() {
    let (engine, mut root) = served();
    all(&mut root, &["ALTER USER app WITH MAX_QUERIES_PER_HOUR 1000 MAX_UPDATES_PER_HOUR 2"]);
    let mut app = login(&engine, "pw").unwrap();
    all(&mut root, &["CREATE TABLE d.k (id INT PRIMARY KEY)"]);
    all(&mut app, &["HANDLER d.k OPEN", "HANDLER k READ FIRST", "HANDLER k CLOSE"]);
    all(&mut app, &["PREPARE s FROM 'INSERT INTO d.t VALUES (1)'", "PREPARE r FROM 'SELECT 1'"]);
    all(&mut app, &["EXECUTE r", "EXECUTE s"]);
    let insert = prepare(&mut app, "INSERT INTO d.t VALUES (2)");
    let select = prepare(&mut app, "SELECT a FROM d.t");
    assert_eq!(app.command(&execute(insert, &[])).first(), Some(&0));
    assert_eq!(error_code(&app.command(&execute(insert, &[]))), 1226);
    assert_eq!(code(&mut app, "EXECUTE s"), 1226);
    let first = app.command(&execute(select, &[]));
    assert_eq!(app.rows(&first).len(), 2);
    all(&mut app, &["EXECUTE r"]);
    // Statements are counted in all forms, and an EXECUTE once. One that was refused counts as well.
    all(&mut root, &["ALTER USER app WITH MAX_QUERIES_PER_HOUR 4 MAX_UPDATES_PER_HOUR 0"]);
    all(&mut app, &["EXECUTE s", "EXECUTE r"]);
    assert_eq!(app.command(&execute(insert, &[])).first(), Some(&0));
    all(&mut app, &["SELECT 1"]);
    assert_eq!(error_code(&app.command(&execute(insert, &[]))), 1226);
    assert_eq!(code(&mut app, "EXECUTE r"), 1226);
    assert_eq!(one(&mut root, "SELECT COUNT(*) FROM d.t"), "4");
    engine.finish();
}

/// Privileges do not open what an expired password closes.
#[test]
fn an_expired_password_comes_before_everybody_elses() {
    let (engine, mut root) = served();
    all(&mut root, &["CREATE USER other IDENTIFIED BY 'o'", "GRANT CREATE USER ON *.* TO app"]);
    all(&mut root, &["ALTER USER app PASSWORD EXPIRE"]);
    let mut app = login_with(&engine, "pw", CAPABILITIES | HANDLES_EXPIRED).unwrap();
    for statement in [
        "ALTER USER other IDENTIFIED BY 'mine'",
        "ALTER USER other ACCOUNT LOCK",
        "ALTER USER app PASSWORD EXPIRE NEVER",
        "SET PASSWORD FOR other = 'mine'",
        "CREATE USER third",
        "GRANT SELECT ON d.* TO other IDENTIFIED BY 'mine'",
    ] {
        assert_eq!(code(&mut app, statement), 1820, "{statement}");
    }
    all(&mut app, &["ALTER USER app IDENTIFIED BY 'n' PASSWORD EXPIRE NEVER", "SELECT 1"]);
    all(&mut app, &["ALTER USER other IDENTIFIED BY 'mine'"]);
    engine.finish();
}

/// A session whose account is dropped and made again has not set its password by that.
#[test]
fn an_account_that_is_not_there_sets_no_password() {
    let (engine, mut root) = served();
    all(&mut root, &["ALTER USER app PASSWORD EXPIRE"]);
    let mut app = login_with(&engine, "pw", CAPABILITIES | HANDLES_EXPIRED).unwrap();
    all(&mut root, &["DROP USER app"]);
    all(&mut app, &["ALTER USER IF EXISTS app IDENTIFIED BY 'n'"]);
    assert_eq!(code(&mut app, "SELECT 1"), 1820);
    engine.finish();
}

/// GRANT makes an account as CREATE USER does, and gives none to a view that names it as its definer.
#[test]
fn a_grant_with_a_password_makes_no_definer() {
    let (engine, mut root) = served();
    all(&mut root, &["CREATE DEFINER = 'gone'@'%' VIEW d.w AS SELECT 1"]);
    all(&mut root, &["GRANT CREATE USER, SELECT ON *.* TO app WITH GRANT OPTION"]);
    let mut app = login(&engine, "pw").unwrap();
    for statement in ["CREATE USER gone", "GRANT SELECT ON d.* TO gone IDENTIFIED BY 'p'"] {
        assert_eq!(code(&mut app, statement), 4006, "{statement}");
    }
    all(&mut app, &["GRANT SELECT ON d.* TO another IDENTIFIED BY 'p'"]);
    engine.finish();
}

/// As statements of their own may: those that set the password.
#[test]
fn an_expired_password_can_be_changed_by_a_prepared_statement() {
    let (engine, mut root) = served();
    let mut before = login(&engine, "pw").unwrap();
    all(&mut root, &["ALTER USER app PASSWORD EXPIRE"]);
    all(&mut before, &["SELECT 1"]);
    let mut app = login_with(&engine, "pw", CAPABILITIES | HANDLES_EXPIRED).unwrap();
    // Preparing does nothing yet.
    for refused in ["SELECT 1", "INSERT INTO d.t VALUES (1)", "CREATE USER third", "SET @a = 1"] {
        let statement = prepare(&mut app, refused);
        assert_eq!(error_code(&app.command(&execute(statement, &[]))), 1820, "{refused}");
    }
    let set = prepare(&mut app, "ALTER USER app IDENTIFIED BY 'n'");
    assert_eq!(app.command(&execute(set, &[])).first(), Some(&0));
    all(&mut app, &["SELECT 1"]);
    assert_eq!((refused(&engine, "pw"), refused(&engine, "n")), (1045, 0));
    engine.finish();
}

/// A stored form is compared with no rule: it is for who may change any account.
#[test]
fn ones_own_password_is_said_in_clear() {
    let (engine, mut root) = served();
    all(&mut root, &["ALTER USER app PASSWORD HISTORY 3", "ALTER USER app IDENTIFIED BY 'pw2'"]);
    let mut app = login(&engine, "pw2").unwrap();
    let hash = native::stored(b"pw2");
    let stored = format!("ALTER USER USER() IDENTIFIED WITH mysql_native_password AS '{hash}'");
    let named = "ALTER USER USER() IDENTIFIED WITH mysql_native_password BY 'pw3'";
    for statement in [&stored, named, "ALTER USER app"] {
        assert_eq!(code(&mut app, statement), 1227, "{statement}");
    }
    assert_eq!(code(&mut app, "SET PASSWORD = 'pw2'"), 3638);
    // By whatever statement a password comes.
    assert_eq!(code(&mut root, "GRANT SELECT ON d.* TO app IDENTIFIED BY 'pw2'"), 3638);
    all(&mut root, &["GRANT SELECT ON d.* TO app IDENTIFIED BY 'pw4'"]);
    assert_eq!((refused(&engine, "pw2"), refused(&engine, "pw4")), (1045, 0));
    // Hosts are names without case.
    all(&mut root, &["CREATE USER app@localhost IDENTIFIED WITH mysql_native_password BY 'pw5'"]);
    let mut app = login(&engine, "pw5").unwrap();
    all(
        &mut app,
        &["SET PASSWORD FOR app@LocalHost = 'pw6'", "ALTER USER app@LOCALHOST IDENTIFIED BY 'pw7'"],
    );
    engine.finish();
}
