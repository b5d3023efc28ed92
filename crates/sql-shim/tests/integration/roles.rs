//! Roles and privileges on columns as sessions meet them over real sockets: plans that are kept, logins,
//! views in somebody's name, and what a change of grants does to who is connected.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::support::engine::Engine;
use crate::support::{Client, all, code, error_code};

fn first_column(client: &mut Client, sql: &str) -> Vec<String> {
    client.run(sql).unwrap().into_iter().map(|row| row[0].clone().unwrap()).collect()
}

/// A table, and accounts that may log in with the password `pw`, without privileges.
fn shop(users: &[&str]) -> (Engine, Client) {
    let engine = Engine::start();
    let mut root = engine.root();
    all(
        &mut root,
        &[
            "CREATE DATABASE shop",
            "CREATE TABLE shop.cart (id INT PRIMARY KEY, n INT, secret INT)",
            "INSERT INTO shop.cart VALUES (1, 10, 100)",
        ],
    );
    for user in users {
        all(&mut root, &[&format!("CREATE USER {user} IDENTIFIED WITH mysql_native_password BY 'pw'")]);
    }
    (engine, root)
}

fn login(engine: &Engine, user: &str) -> Client {
    engine.login(user, "pw", None).ok().unwrap()
}

#[test]
fn a_kept_plan_belongs_to_the_active_roles() {
    let (engine, mut root) = shop(&["app"]);
    all(
        &mut root,
        &["CREATE ROLE reader", "GRANT SELECT (id, n) ON shop.cart TO reader", "GRANT reader TO app"],
    );
    let mut app = login(&engine, "app");
    let select = "SELECT n FROM shop.cart WHERE id = 1";
    assert_eq!(code(&mut app, select), 1142);
    all(&mut app, &["SET ROLE reader", select, select]);
    all(&mut app, &["PREPARE p FROM 'SELECT n FROM shop.cart'", "EXECUTE p"]);
    assert_eq!(code(&mut app, "SELECT secret FROM shop.cart WHERE id = 1"), 1143);
    all(&mut app, &["SET ROLE NONE"]);
    assert_eq!((code(&mut app, select), code(&mut app, "EXECUTE p")), (1142, 1142));
    all(&mut app, &["SET ROLE ALL", select, "EXECUTE p"]);
    // Of others' statements each acts at once.
    all(&mut root, &["REVOKE SELECT (n) ON shop.cart FROM reader"]);
    assert_eq!((code(&mut app, select), code(&mut app, "EXECUTE p")), (1143, 1143));
    all(&mut root, &["GRANT SELECT (n) ON shop.cart TO reader"]);
    all(&mut app, &[select, "EXECUTE p"]);
    all(&mut root, &["REVOKE reader FROM app"]);
    assert_eq!((code(&mut app, select), code(&mut app, "EXECUTE p")), (1142, 1142));
    assert_eq!(first_column(&mut app, "SELECT CURRENT_ROLE()"), ["`reader`@`%`"], "as in MySQL");
    all(&mut root, &["GRANT reader TO app"]);
    all(&mut app, &[select]);
    all(&mut root, &["DROP ROLE reader"]);
    assert_eq!(code(&mut app, select), 1142);
    assert_eq!(first_column(&mut root, "SHOW GRANTS FOR app"), ["GRANT USAGE ON *.* TO `app`@`%`"]);
    // One of the same name is another role.
    all(&mut root, &["CREATE ROLE reader", "GRANT SELECT ON shop.* TO reader"]);
    assert_eq!(code(&mut app, select), 1142);
    engine.finish();
}

#[test]
fn a_login_activates_default_roles_or_all() {
    let (engine, mut root) = shop(&["app"]);
    all(&mut root, &["CREATE ROLE one, two", "GRANT one, two TO app", "SET DEFAULT ROLE one TO app"]);
    let roles = |engine: &Engine| first_column(&mut login(engine, "app"), "SELECT CURRENT_ROLE()");
    assert_eq!(roles(&engine), ["`one`@`%`"]);
    all(&mut root, &["SET GLOBAL activate_all_roles_on_login = ON"]);
    assert_eq!(roles(&engine), ["`one`@`%`,`two`@`%`"]);
    all(&mut root, &["SET GLOBAL activate_all_roles_on_login = OFF", "REVOKE one FROM app"]);
    assert_eq!(roles(&engine), ["NONE"], "what is taken back is no default any more");
    // Plans that were made with what a definer had before end.
    all(&mut root, &["GRANT SELECT ON shop.cart TO one", "GRANT one TO app", "SET DEFAULT ROLE NONE TO app"]);
    all(&mut root, &["CREATE DEFINER = app VIEW shop.v AS SELECT n FROM shop.cart"]);
    let select = "SELECT n FROM shop.v";
    assert_eq!(code(&mut root, select), 1356);
    all(&mut root, &["SET GLOBAL activate_all_roles_on_login = ON", select, select]);
    all(&mut root, &["SET GLOBAL activate_all_roles_on_login = OFF"]);
    assert_eq!(code(&mut root, select), 1356);
    // A connection that is used again begins as a new one does.
    all(&mut root, &["SET DEFAULT ROLE two TO app"]);
    let mut app = login(&engine, "app");
    all(&mut app, &["SET ROLE NONE"]);
    assert_eq!(app.command(b"\x1f").first(), Some(&0));
    assert_eq!(first_column(&mut app, "SELECT CURRENT_ROLE()"), ["`two`@`%`"]);
    engine.finish();
}

#[test]
fn mandatory_roles_are_everybodys() {
    let (engine, mut root) = shop(&["app", "admin"]);
    all(&mut root, &["CREATE ROLE staff", "GRANT SELECT ON shop.* TO staff"]);
    let mut app = login(&engine, "app");
    assert_eq!(code(&mut app, "SET ROLE staff"), 3530);
    all(&mut root, &["SET GLOBAL mandatory_roles = 'staff@`%`, nobody_yet'"]);
    assert_eq!(
        first_column(&mut app, "SHOW GRANTS"),
        ["GRANT USAGE ON *.* TO `app`@`%`", "GRANT `staff`@`%` TO `app`@`%`"]
    );
    all(&mut app, &["SET ROLE staff", "SELECT * FROM shop.cart"]);
    assert_eq!(code(&mut root, "REVOKE staff FROM app"), 3628);
    assert_eq!(code(&mut root, "DROP ROLE staff"), 3628);
    assert_eq!(code(&mut root, "DROP USER staff"), 3628);
    assert_eq!(code(&mut root, "SET GLOBAL mandatory_roles = 'a b'"), 1231);
    assert_eq!(code(&mut root, "SET GLOBAL mandatory_roles = 'a; SET ROLE b'"), 1231);
    all(&mut app, &["SELECT * FROM shop.cart"]);
    all(&mut root, &["SET GLOBAL mandatory_roles = ''"]);
    assert_eq!(code(&mut app, "SELECT * FROM shop.cart"), 1142);
    // It grants something to everybody: that takes more than to set variables.
    all(&mut root, &["GRANT SYSTEM_VARIABLES_ADMIN ON *.* TO admin"]);
    let mut admin = login(&engine, "admin");
    assert_eq!(code(&mut admin, "SET GLOBAL mandatory_roles = 'staff'"), 1227);
    engine.finish();
}

#[test]
fn nobody_logs_in_to_a_role() {
    let (engine, mut root) = shop(&[]);
    all(&mut root, &["CREATE ROLE staff"]);
    let refused =
        |password: &str| engine.login("staff", password, None).err().map(|reply| error_code(&reply));
    assert_eq!(refused(""), Some(3118));
    all(&mut root, &["ALTER USER staff ACCOUNT UNLOCK"]);
    assert_eq!(refused(""), Some(1862), "it has no password yet");
    all(&mut root, &["ALTER USER staff IDENTIFIED WITH mysql_native_password BY 'pw'"]);
    assert_eq!((refused(""), refused("pw")), (Some(1045), None));
    engine.finish();
}

#[test]
fn a_view_reads_with_its_definers_default_roles() {
    let (engine, mut root) = shop(&["owner", "app"]);
    all(
        &mut root,
        &[
            "CREATE ROLE reader",
            "GRANT SELECT (id, n) ON shop.cart TO reader",
            "GRANT reader TO owner",
            "CREATE DEFINER = owner VIEW shop.v AS SELECT id, n FROM shop.cart",
            "SET DEFAULT ROLE reader TO owner",
            "GRANT SELECT (n) ON shop.v TO app",
            "SET DEFAULT ROLE NONE TO owner",
        ],
    );
    let mut app = login(&engine, "app");
    assert_eq!(code(&mut app, "SELECT n FROM shop.v"), 1356, "the role is not active");
    all(&mut root, &["SET DEFAULT ROLE reader TO owner"]);
    assert_eq!(first_column(&mut app, "SELECT n FROM shop.v"), ["10"]);
    assert_eq!(code(&mut app, "SELECT id FROM shop.v"), 1143);
    assert_eq!(code(&mut app, "SELECT * FROM shop.v"), 1142);
    all(&mut root, &["REVOKE SELECT (n) ON shop.cart FROM reader"]);
    assert_eq!(code(&mut app, "SELECT n FROM shop.v"), 1356);
    all(&mut root, &["GRANT SELECT ON shop.* TO reader"]);
    all(&mut app, &["SELECT n FROM shop.v"]);
    all(&mut root, &["REVOKE reader FROM owner"]);
    assert_eq!(code(&mut app, "SELECT n FROM shop.v"), 1356, "the definer's role is taken back");
    engine.finish();
}

/// MySQL lets all of these pass.
#[test]
fn what_is_compared_or_copied_is_read() {
    let (engine, mut root) = shop(&["app"]);
    all(
        &mut root,
        &[
            "CREATE TABLE shop.other (id INT PRIMARY KEY, secret INT)",
            "GRANT SELECT (id, n) ON shop.cart TO app",
            "GRANT SELECT ON shop.other TO app",
            "CREATE DATABASE own",
            "GRANT ALL ON own.* TO app",
        ],
    );
    let mut app = login(&engine, "app");
    for (statement, wanted) in [
        ("SELECT n FROM shop.cart JOIN shop.other USING (secret)", 1143),
        ("SELECT n FROM shop.other NATURAL JOIN shop.cart", 1143),
        ("SELECT n FROM shop.cart JOIN shop.other USING (nosuch)", 1143),
        ("SELECT EXISTS (SELECT * FROM shop.cart HAVING secret > 1)", 1142),
        ("SELECT EXISTS (SELECT * FROM shop.cart INTERSECT SELECT 1, 10, 100)", 1142),
        ("SELECT EXISTS (SELECT * FROM shop.cart EXCEPT SELECT 1, 10, 100)", 1142),
        ("SELECT EXISTS (SELECT * FROM shop.cart GROUP BY 1, 2, 3)", 1142),
        ("CREATE VIEW own.v AS SELECT id, secret FROM shop.cart", 1143),
        ("CREATE TABLE own.t LIKE shop.cart", 1142),
        ("CHECKSUM TABLE shop.cart", 1142),
    ] {
        assert_eq!(code(&mut app, statement), wanted, "{statement}");
    }
    all(
        &mut app,
        &[
            "SELECT n FROM shop.cart JOIN shop.other USING (id)",
            "SELECT EXISTS (SELECT * FROM shop.cart WHERE n > 1 LIMIT 1)",
            "SELECT n AS secret FROM shop.cart HAVING secret > 1",
        ],
    );
    engine.finish();
}

#[test]
fn a_view_gives_no_more_than_who_it_acts_for_has() {
    let (engine, mut root) = shop(&["app"]);
    all(
        &mut root,
        &["CREATE DATABASE own", "GRANT ALL ON own.* TO app", "GRANT SELECT, UPDATE (n) ON shop.cart TO app"],
    );
    let mut app = login(&engine, "app");
    all(
        &mut app,
        &[
            "CREATE VIEW own.v AS SELECT id, n, secret FROM shop.cart",
            "CREATE VIEW own.having_alias AS SELECT id, secret AS s FROM shop.cart HAVING s > 1",
            "UPDATE own.v, (SELECT 1 x) d SET v.n = 11",
            "SELECT id FROM own.having_alias",
        ],
    );
    for statement in ["UPDATE own.v SET secret = 1", "UPDATE own.v, (SELECT 1 x) d SET v.secret = 1"] {
        assert_eq!(code(&mut app, statement), 1356, "{statement}");
    }
    all(&mut root, &["REVOKE SELECT ON shop.cart FROM app", "GRANT SELECT (id, n) ON shop.cart TO app"]);
    all(&mut app, &["SELECT id FROM own.v"]);
    assert_eq!(code(&mut app, "SELECT id FROM own.having_alias"), 1356);
    engine.finish();
}

#[test]
fn mandatory_roles_make_no_administrators() {
    let (engine, mut root) = shop(&["app", "hr"]);
    all(
        &mut root,
        &[
            "CREATE ROLE big, staff",
            "GRANT ALL ON *.* TO big",
            "GRANT SELECT ON shop.* TO staff",
            "GRANT SYSTEM_VARIABLES_ADMIN, ROLE_ADMIN ON *.* TO hr",
        ],
    );
    let (mut hr, mut app) = (login(&engine, "hr"), login(&engine, "app"));
    for value in ["big", "staff, big", "root@localhost"] {
        for name in ["mandatory_roles", "MANDATORY_ROLES"] {
            assert_eq!(code(&mut hr, &format!("SET GLOBAL {name} = '{value}'")), 1227, "{value}");
        }
    }
    all(&mut hr, &["SET GLOBAL mandatory_roles = 'staff'"]);
    all(&mut app, &["SET ROLE staff", "SELECT * FROM shop.cart"]);
    // Who sets it does not matter: nobody has such a role by that.
    all(&mut root, &["SET GLOBAL mandatory_roles = 'staff, big'", "GRANT ALL ON *.* TO staff"]);
    assert_eq!(code(&mut app, "SET ROLE big"), 3530);
    assert_eq!(code(&mut app, "SELECT * FROM shop.cart"), 1142, "active, and no longer granted by that");
    all(&mut root, &["GRANT big TO app"]);
    all(&mut app, &["SET ROLE big", "SELECT * FROM mysql.user"]);
    engine.finish();
}

#[test]
fn columns_that_may_not_be_used_are_not_shown() {
    let (engine, mut root) = shop(&["app"]);
    all(
        &mut root,
        &[
            "CREATE TABLE shop.seen (id INT PRIMARY KEY, secret INT UNIQUE DEFAULT 42, CHECK (secret > 7))",
            "GRANT SELECT (id) ON shop.seen TO app",
        ],
    );
    let column = |user: &mut Client, from: &str, schema: &str| {
        let sql = format!("SELECT {from} WHERE {schema} = 'shop' AND TABLE_NAME = 'seen' ORDER BY 1");
        first_column(user, &sql)
    };
    let statistics = "COLUMN_NAME FROM information_schema.STATISTICS";
    let usage = "COLUMN_NAME FROM information_schema.KEY_COLUMN_USAGE";
    let checks =
        "SELECT CHECK_CLAUSE FROM information_schema.CHECK_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = 'shop'";
    let mut app = login(&engine, "app");
    for from in [statistics, usage] {
        assert_eq!(column(&mut root, from, "TABLE_SCHEMA"), ["id", "secret"], "{from}");
        assert_eq!(column(&mut app, from, "TABLE_SCHEMA"), ["id"], "{from}");
    }
    assert_eq!(app.run("SHOW INDEX FROM shop.seen").unwrap().len(), 1);
    assert_eq!((first_column(&mut root, checks).len(), first_column(&mut app, checks).len()), (1, 0));
    // COM_FIELD_LIST.
    for (user, wanted) in [(&mut root, 2), (&mut app, 1)] {
        all(user, &["USE shop"]);
        let mut packet = user.command(b"\x04seen\0");
        let mut columns = 0;
        while packet[0] != 0xfe {
            columns += 1;
            packet = user.receive().unwrap();
        }
        assert_eq!(columns, wanted);
    }
    engine.finish();
}

#[test]
fn whom_a_role_protects_shows_no_hash() {
    let (engine, mut root) = shop(&["app", "plain", "hr"]);
    all(
        &mut root,
        &[
            "CREATE ROLE big, middle",
            "GRANT ALL ON *.* TO big",
            "GRANT big TO middle",
            "GRANT middle TO app",
            "GRANT CREATE USER ON *.* TO hr",
            "GRANT SELECT ON *.* TO hr",
        ],
    );
    let shown = |client: &mut Client| {
        let select = "SELECT User FROM mysql.user WHERE authentication_string <> '' ORDER BY User";
        first_column(client, select)
    };
    assert_eq!(shown(&mut login(&engine, "hr")), ["hr", "plain"]);
    assert!(shown(&mut root).contains(&"app".to_owned()));
    engine.finish();
}

#[test]
fn grants_on_performance_schema_are_what_can_be_done_there() {
    let (engine, mut root) = shop(&["app"]);
    let mut app = login(&engine, "app");
    let read = "SELECT COUNT(*) FROM performance_schema.data_locks";
    assert_eq!(code(&mut app, read), 1142);
    for (statement, wanted) in [
        ("GRANT INSERT ON performance_schema.data_locks TO app", 1142),
        ("GRANT DROP ON performance_schema.data_locks TO app", 1142),
        ("GRANT ALL ON performance_schema.data_locks TO app", 1044),
        ("GRANT CREATE ON performance_schema.* TO app", 1044),
        ("GRANT SELECT ON performance_schema.nosuch TO app", 1146),
        ("GRANT SELECT ON PERFORMANCE_SCHEMA.DATA_LOCKS TO app", 1146),
        ("GRANT SELECT (nosuch) ON performance_schema.data_locks TO app", 1054),
        ("GRANT SELECT ON information_schema.tables TO app", 1044),
        ("GRANT SELECT (TABLE_NAME) ON information_schema.tables TO app", 1044),
        ("REVOKE SELECT ON performance_schema.data_locks FROM app", 1147),
    ] {
        assert_eq!(code(&mut root, statement), wanted, "{statement}");
    }
    all(&mut root, &["GRANT SELECT (ENGINE) ON performance_schema.data_locks TO app"]);
    all(&mut app, &["SELECT ENGINE FROM performance_schema.data_locks", read]);
    assert_eq!(code(&mut app, "SELECT LOCK_TYPE FROM performance_schema.data_locks"), 1143);
    assert_eq!(code(&mut app, "SELECT * FROM performance_schema.data_locks"), 1142);
    all(&mut root, &["GRANT SELECT ON performance_schema.data_locks TO app"]);
    all(&mut app, &["SELECT * FROM performance_schema.data_locks"]);
    assert_eq!(code(&mut app, "SELECT * FROM performance_schema.data_lock_waits"), 1142);
    all(&mut root, &["REVOKE SELECT ON performance_schema.data_locks FROM app"]);
    assert_eq!(code(&mut app, read), 1142);
    engine.finish();
}

#[test]
fn create_user_is_shown_with_its_hash_to_who_may_change_it() {
    let (engine, mut root) = shop(&["app", "auditor"]);
    let hash = first_column(&mut root, "SELECT authentication_string FROM mysql.user WHERE User = 'app'");
    let shown = |how: &str| {
        format!(
            "CREATE USER `app`@`%` IDENTIFIED WITH 'mysql_native_password' AS {how} REQUIRE NONE PASSWORD EXPIRE \
             DEFAULT ACCOUNT UNLOCK PASSWORD HISTORY DEFAULT PASSWORD REUSE INTERVAL DEFAULT PASSWORD REQUIRE \
             CURRENT DEFAULT"
        )
    };
    let text = shown(&format!("'{}'", hash[0]));
    assert_eq!(first_column(&mut root, "SHOW CREATE USER app"), std::slice::from_ref(&text));
    let mut app = login(&engine, "app");
    assert_eq!(first_column(&mut app, "SHOW CREATE USER CURRENT_USER()"), std::slice::from_ref(&text));
    assert_eq!(code(&mut app, "SHOW CREATE USER auditor"), 1044);
    assert_eq!(code(&mut root, "SHOW CREATE USER nobody"), 1396);
    all(&mut root, &["GRANT SELECT ON *.* TO auditor", "SET print_identified_with_as_hex = ON"]);
    let hex: String = hash[0].bytes().map(|byte| format!("{byte:02X}")).collect();
    let in_hex = shown(&format!("0x{hex}"));
    assert_eq!(first_column(&mut root, "SHOW CREATE USER app"), std::slice::from_ref(&in_hex));
    let mut auditor = login(&engine, "auditor");
    assert_eq!(first_column(&mut auditor, "SHOW CREATE USER app"), [shown("'<secret>'")]);
    // Both forms make the account again.
    for text in [text, in_hex] {
        all(&mut root, &["DROP USER app", &text]);
        login(&engine, "app");
    }
    all(&mut root, &["CREATE ROLE staff"]);
    let role = first_column(&mut root, "SHOW CREATE USER staff");
    all(&mut root, &["DROP ROLE staff", &role[0]]);
    assert_eq!(first_column(&mut root, "SHOW CREATE USER staff"), role);
    engine.finish();
}

#[test]
fn rights_do_not_grow_by_themselves() {
    let (engine, mut root) = shop(&["app", "hr"]);
    all(
        &mut root,
        &[
            "CREATE ROLE big, small",
            "GRANT ALL ON *.* TO big",
            "GRANT small TO app WITH ADMIN OPTION",
            "GRANT CREATE USER, CREATE ROLE, DROP ROLE, ROLE_ADMIN ON *.* TO hr",
        ],
    );
    let mut app = login(&engine, "app");
    for statement in ["GRANT big TO app", "GRANT big TO small", "REVOKE big FROM app", "CREATE ROLE mine"] {
        assert_eq!(code(&mut app, statement), 1227, "{statement}");
    }
    all(&mut app, &["GRANT small TO hr", "SET ROLE small"]);
    assert_eq!(code(&mut app, "GRANT SELECT ON shop.cart TO app"), 1142);
    assert_eq!(code(&mut app, "SET DEFAULT ROLE small TO hr"), 1227);
    // Who hands roles on and makes accounts is no administrator yet.
    let mut hr = login(&engine, "hr");
    for statement in [
        "GRANT big TO hr",
        "GRANT root@localhost TO hr",
        "GRANT small TO root@localhost",
        "CREATE USER puppet DEFAULT ROLE big",
        "DROP ROLE big",
        "ALTER USER big IDENTIFIED BY 'mine'",
        "SET DEFAULT ROLE NONE TO root@localhost",
    ] {
        assert_eq!(code(&mut hr, statement), 1227, "{statement}");
    }
    // Nor is who may change the account of one that has the role, active or not.
    all(&mut root, &["GRANT big TO app"]);
    assert_eq!(code(&mut hr, "ALTER USER app IDENTIFIED BY 'mine'"), 1227);
    assert_eq!(code(&mut hr, "DROP USER app"), 1227);
    all(&mut app, &["SET PASSWORD = 'pw'", "SET DEFAULT ROLE small TO app"]);
    engine.finish();
}

#[test]
fn a_role_may_be_all_that_its_administrator_has() {
    let (engine, mut root) = shop(&["admin"]);
    all(
        &mut root,
        &[
            "CREATE ROLE big",
            "GRANT ALL ON *.* TO big WITH GRANT OPTION",
            "GRANT big TO admin",
            "SET DEFAULT ROLE big TO admin",
        ],
    );
    let mut admin = login(&engine, "admin");
    all(&mut admin, &["DROP USER root@localhost"]);
    // A session that is open has nothing any more.
    assert_eq!(code(&mut root, "SELECT * FROM shop.cart"), 1142);
    all(&mut admin, &["CREATE USER root@localhost IDENTIFIED WITH mysql_native_password BY ''"]);
    all(&mut admin, &["GRANT ALL ON *.* TO root@localhost WITH GRANT OPTION", "DROP ROLE big"]);
    assert_eq!(code(&mut admin, "SELECT * FROM shop.cart"), 1142);
    let directory = engine.stop();
    // The roles of a session are not what the file keeps; the default ones are, and have gone with theirs.
    let engine = Engine::open(&directory);
    let mut admin = login(&engine, "admin");
    assert_eq!(first_column(&mut admin, "SELECT CURRENT_ROLE()"), ["NONE"]);
    engine.finish();
}

#[test]
fn roles_and_columns_are_there_after_a_restart() {
    let (engine, mut root) = shop(&["app"]);
    all(
        &mut root,
        &[
            "CREATE ROLE reader, other",
            "GRANT SELECT (n), UPDATE (n) ON shop.cart TO reader",
            "GRANT other TO reader WITH ADMIN OPTION",
            "GRANT reader TO app",
            "SET DEFAULT ROLE ALL TO app",
        ],
    );
    let wanted = first_column(&mut root, "SHOW GRANTS FOR app USING reader");
    let directory = engine.stop();
    let file = std::fs::read_to_string(directory.join("untorn-accounts.json")).unwrap();
    assert!(file.contains("\"version\": 6"), "programs that know no roles refuse the file: {file}");
    let engine = Engine::open(&directory);
    let mut app = login(&engine, "app");
    assert_eq!(first_column(&mut app, "SHOW GRANTS"), wanted);
    assert_eq!(first_column(&mut app, "SELECT n FROM shop.cart"), ["10"]);
    assert_eq!(code(&mut app, "SELECT secret FROM shop.cart"), 1143);
    engine.finish();
}

#[test]
fn grants_of_roles_as_a_graph() {
    let (engine, mut root) = shop(&["app"]);
    all(
        &mut root,
        &["CREATE ROLE reader, `w<r`", "GRANT reader TO app WITH ADMIN OPTION", "GRANT `w<r` TO reader"],
    );
    let graph = first_column(&mut root, "SELECT ROLES_GRAPHML()").remove(0);
    let number = |name: &str| {
        let (before, _) = graph.split_once(name).unwrap();
        before.rsplit_once("<node id=\"").unwrap().1.split('"').next().unwrap().to_owned()
    };
    let (app, reader, writer) = (number("`app`@`%`"), number("`reader`@`%`"), number("`w&lt;r`@`%`"));
    let edge = |source: &str, target: &str, admin: u8| {
        format!(
            "source=\"{source}\" target=\"{target}\">\n      <data key=\"key0\">{admin}</data>\n    </edge>"
        )
    };
    assert!(graph.contains(&edge(&app, &reader, 1)), "{graph}");
    assert!(graph.contains(&edge(&reader, &writer, 0)), "{graph}");
    assert_eq!(graph.matches("<edge ").count(), 2);
    // The functions read what they write.
    let names = first_column(&mut root, "SELECT EXTRACTVALUE(ROLES_GRAPHML(), 'count(//node/data)')");
    assert_eq!(names, [graph.matches("<node ").count().to_string()]);
    let empty = r#"<?xml version="1.0" encoding="UTF-8"?><graphml />"#;
    assert_eq!(first_column(&mut login(&engine, "app"), "SELECT ROLES_GRAPHML()"), [empty]);
    engine.finish();
}
