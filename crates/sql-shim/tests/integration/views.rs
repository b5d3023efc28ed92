//! Views over real sockets: whose rights count, what stays as it is meanwhile, and what a restart leaves.

use crate::support::engine::Engine;
use crate::support::{Client, all, code, one};

fn start() -> (Engine, Client) {
    let engine = Engine::start();
    let mut root = engine.root();
    all(
        &mut root,
        &[
            "CREATE DATABASE d",
            "CREATE TABLE d.t (id INT PRIMARY KEY, n INT)",
            "INSERT INTO d.t VALUES (1, 10), (2, 20), (3, 30)",
            "CREATE USER app IDENTIFIED WITH mysql_native_password BY 'pw'",
        ],
    );
    (engine, root)
}

fn login(engine: &Engine) -> Client {
    engine.login("app", "pw", None).ok().unwrap()
}

/// Who may read a view need not be able to read its tables, and a row that the view does not show stays
/// unknown.
#[test]
fn a_view_reads_with_the_rights_of_its_definer() {
    let (engine, mut root) = start();
    all(
        &mut root,
        &[
            "CREATE VIEW d.v AS SELECT id, n FROM d.t WHERE id < 3",
            "CREATE SQL SECURITY INVOKER VIEW d.open AS SELECT id FROM d.t",
            "CREATE VIEW d.sums AS SELECT SUM(n) AS s FROM d.t",
        ],
    );
    let mut app = login(&engine);
    assert_eq!(code(&mut app, "SELECT * FROM d.v"), 1142);
    all(&mut root, &["GRANT SELECT ON d.v TO app", "GRANT SELECT ON d.open TO app"]);
    assert_eq!(one(&mut app, "SELECT COUNT(*) FROM d.v"), "2");
    assert_eq!(one(&mut app, "SELECT n FROM d.v WHERE id = 2"), "20");
    assert_eq!(code(&mut app, "SELECT * FROM d.t"), 1142);
    // The invoker's own rights, which are none.
    assert_eq!(code(&mut app, "SELECT * FROM d.open"), 1356);
    assert_eq!(code(&mut app, "SELECT * FROM d.sums"), 1142);
    // What the text says is for those who may see it.
    assert_eq!(code(&mut app, "SHOW CREATE VIEW d.v"), 1142);
    assert_eq!(code(&mut app, "EXPLAIN SELECT * FROM d.v"), 1345);
    let text = "SELECT VIEW_DEFINITION = '' FROM information_schema.VIEWS WHERE TABLE_NAME = 'v'";
    assert_eq!(one(&mut app, text), "1");
    all(&mut root, &["GRANT SHOW VIEW ON d.v TO app"]);
    all(&mut app, &["SHOW CREATE VIEW d.v", "EXPLAIN SELECT * FROM d.v"]);
    assert_eq!(one(&mut app, text), "0");
    // Changes need the view's privilege of the user, and the table's of the definer.
    assert_eq!(code(&mut app, "UPDATE d.v SET n = 1 WHERE id = 1"), 1142);
    all(&mut root, &["GRANT UPDATE ON d.v TO app"]);
    all(&mut app, &["UPDATE d.v SET n = 11 WHERE id = 1"]);
    all(&mut app, &["UPDATE d.v SET n = 99 WHERE id = 3"]);
    assert_eq!(one(&mut root, "SELECT GROUP_CONCAT(n ORDER BY id) FROM d.t"), "11,20,30");
    assert_eq!(code(&mut app, "DELETE FROM d.v"), 1142);
    assert_eq!(code(&mut app, "INSERT INTO d.v VALUES (0, 0)"), 1142);
    engine.finish();
}

/// The definition would be somebody's, and the rights another's.
#[test]
fn only_its_definer_or_super_alters_a_view() {
    let (engine, mut root) = start();
    all(
        &mut root,
        &[
            "CREATE DATABASE e",
            "CREATE VIEW e.v AS SELECT id FROM d.t",
            "GRANT SELECT ON d.t TO app",
            "GRANT SELECT, UPDATE, DROP, CREATE VIEW ON e.* TO app",
        ],
    );
    let mut app = login(&engine);
    assert_eq!(code(&mut app, "ALTER VIEW e.v AS SELECT id, n FROM d.t"), 1227);
    assert_eq!(code(&mut app, "ALTER DEFINER = root@localhost VIEW e.v AS SELECT id, n FROM d.t"), 1227);
    // One of their own acts with their own rights.
    all(&mut app, &["CREATE OR REPLACE VIEW e.v AS SELECT id, n FROM d.t"]);
    assert_eq!(code(&mut app, "UPDATE e.v SET n = 77"), 1356);
    all(&mut app, &["ALTER VIEW e.v AS SELECT id FROM d.t"]);
    engine.finish();
}

#[test]
fn a_definer_without_rights_makes_the_view_useless() {
    let (engine, mut root) = start();
    all(
        &mut root,
        &[
            "CREATE USER owner IDENTIFIED WITH mysql_native_password BY 'pw'",
            "GRANT SELECT ON d.* TO owner",
            "CREATE DEFINER = owner VIEW d.v AS SELECT id, n FROM d.t",
            "GRANT SELECT, UPDATE ON d.v TO app",
        ],
    );
    let mut app = login(&engine);
    let select = "SELECT COUNT(*) FROM d.v";
    assert_eq!(one(&mut app, select), "3");
    // The owner may not change the table, so nobody does through the view.
    assert_eq!(code(&mut app, "UPDATE d.v SET n = 0"), 1356);
    assert_eq!(code(&mut app, "UPDATE d.v JOIN d.v w ON v.id = w.id SET v.n = 0"), 1356);
    all(&mut root, &["GRANT UPDATE ON d.* TO owner"]);
    all(&mut app, &["UPDATE d.v SET n = 0 WHERE id = 1"]);
    // A plan that was made before.
    all(&mut root, &["REVOKE ALL ON d.* FROM owner"]);
    assert_eq!(code(&mut app, select), 1356);
    all(&mut root, &["DROP USER owner"]);
    assert_eq!(code(&mut app, select), 1449);
    engine.finish();
}

#[test]
fn making_a_view_takes_privileges_on_it_and_on_what_it_reads() {
    let (engine, mut root) = start();
    let mut app = login(&engine);
    all(&mut root, &["CREATE DATABASE mine"]);
    assert_eq!(code(&mut app, "CREATE VIEW mine.v AS SELECT 1 AS a"), 1142);
    all(&mut root, &["GRANT CREATE VIEW ON mine.* TO app"]);
    all(&mut app, &["CREATE VIEW mine.v AS SELECT 1 AS a"]);
    assert_eq!(code(&mut app, "CREATE VIEW mine.w AS SELECT * FROM d.t"), 1142);
    assert_eq!(code(&mut app, "CREATE OR REPLACE VIEW mine.v AS SELECT 2 AS a"), 1142);
    assert_eq!(code(&mut app, "ALTER VIEW mine.v AS SELECT 2 AS a"), 1142);
    assert_eq!(code(&mut app, "DROP VIEW mine.v"), 1142);
    // In somebody else's name.
    assert_eq!(code(&mut app, "CREATE DEFINER = root@localhost VIEW mine.w AS SELECT 1 AS a"), 1227);
    all(&mut root, &["GRANT DROP ON mine.* TO app"]);
    all(&mut app, &["CREATE OR REPLACE VIEW mine.v AS SELECT 2 AS a", "DROP VIEW mine.v"]);
    engine.finish();
}

#[test]
fn a_view_stays_as_it_is_while_a_transaction_uses_it() {
    let (engine, mut root) = start();
    let mut other = engine.root();
    all(&mut root, &["CREATE VIEW d.v AS SELECT id FROM d.t WHERE id > 1", "BEGIN", "SELECT * FROM d.v"]);
    all(&mut other, &["SET lock_wait_timeout = 1"]);
    for change in [
        "DROP VIEW d.v",
        "CREATE OR REPLACE VIEW d.v AS SELECT 1 AS id",
        "RENAME TABLE d.v TO d.w",
        // The tables below, too.
        "DROP TABLE d.t",
    ] {
        assert_eq!(code(&mut other, change), 1205, "{change}");
    }
    assert_eq!(one(&mut root, "SELECT COUNT(*) FROM d.v"), "2");
    all(&mut root, &["COMMIT"]);
    all(&mut other, &["CREATE OR REPLACE VIEW d.v AS SELECT 7 AS id"]);
    assert_eq!(one(&mut root, "SELECT id FROM d.v"), "7");
    engine.finish();
}

#[test]
fn views_are_there_after_a_restart() {
    let (engine, mut root) = start();
    all(
        &mut root,
        &[
            "CREATE VIEW d.v AS SELECT id, n FROM d.t WHERE n > 10 WITH CHECK OPTION",
            "CREATE VIEW d.gone AS SELECT 1 AS a",
            "CREATE VIEW d.w (x) AS SELECT id FROM d.v",
            "DROP VIEW d.gone",
            "CREATE DATABASE e",
            "CREATE VIEW e.v AS SELECT * FROM d.w",
        ],
    );
    let shown = one(&mut root, "SELECT VIEW_DEFINITION FROM information_schema.VIEWS WHERE TABLE_NAME = 'w'");
    let directory = engine.stop();
    let engine = Engine::open(&directory);
    let mut root = engine.root();
    assert_eq!(
        one(&mut root, "SELECT VIEW_DEFINITION FROM information_schema.VIEWS WHERE TABLE_NAME = 'w'"),
        shown
    );
    assert_eq!(one(&mut root, "SELECT SUM(x) FROM e.v"), "5");
    assert_eq!(code(&mut root, "INSERT INTO d.v VALUES (4, 4)"), 1369);
    assert_eq!(code(&mut root, "SELECT * FROM d.gone"), 1146);
    all(&mut root, &["DROP DATABASE e"]);
    assert_eq!(code(&mut root, "SELECT * FROM e.v"), 1049);
    engine.finish();
}

/// What `mysqldump` writes for views: a stand-in first, for those that others read, and the views at last.
#[test]
fn a_dump_with_stand_ins_is_loaded() {
    let (engine, mut root) = start();
    all(&mut root, &["USE d"]);
    let dump = [
        "/*!50001 DROP VIEW IF EXISTS `w`*/",
        "SET @saved_cs_client     = @@character_set_client",
        "/*!50503 SET character_set_client = utf8mb4 */",
        "/*!50001 CREATE VIEW `w` AS SELECT \n 1 AS `x`,\n 1 AS `n`*/",
        "SET character_set_client = @saved_cs_client",
        "/*!50001 CREATE VIEW `v` AS SELECT \n 1 AS `x`*/",
        "/*!50001 DROP VIEW IF EXISTS `v`*/",
        "/*!50001 CREATE ALGORITHM=UNDEFINED */\n/*!50013 DEFINER=`root`@`localhost` SQL SECURITY DEFINER */\n\
         /*!50001 VIEW `v` AS select `w`.`x` AS `x` from `w` where (`w`.`n` > 10) */",
        "/*!50001 DROP VIEW IF EXISTS `w`*/",
        "/*!50001 CREATE ALGORITHM=UNDEFINED */\n/*!50013 DEFINER=`root`@`localhost` SQL SECURITY DEFINER */\n\
         /*!50001 VIEW `w` AS select `t`.`id` AS `x`,`t`.`n` AS `n` from `t` */",
    ];
    all(&mut root, &dump);
    assert_eq!(one(&mut root, "SELECT SUM(x) FROM v"), "5");
    // MariaDB's stand-ins of old are tables.
    all(
        &mut root,
        &["DROP VIEW v", "/*!50001 CREATE TABLE `v` (\n  `x` tinyint NOT NULL\n) ENGINE=MyISAM */"],
    );
    all(&mut root, &["/*!50001 DROP TABLE IF EXISTS `v`*/", "CREATE VIEW v AS SELECT 1 AS x"]);
    engine.finish();
}

/// Views upon views are refused before the stack ends, and a plan of too many tables before the memory does.
#[test]
fn views_are_not_nested_without_end() {
    let (engine, mut root) = start();
    all(&mut root, &["USE d", "CREATE VIEW v0 AS SELECT id, COUNT(*) AS c FROM t GROUP BY id"]);
    let mut refused = None;
    for number in 1..400 {
        let below = number - 1;
        let text = format!("CREATE VIEW v{number} AS SELECT id, COUNT(*) AS c FROM v{below} GROUP BY id");
        match root.run(&text) {
            Ok(_) => {}
            Err((code, _)) => {
                refused = Some((number, code));
                break;
            }
        }
    }
    let (number, code) = refused.expect("no end");
    assert_eq!(code, 1436);
    assert!(number > 30, "{number}");
    assert_eq!(one(&mut root, &format!("SELECT COUNT(*) FROM v{}", number - 1)), "3");
    engine.finish();
}

/// A dump makes a view before the one that it reads, over one that only stands in for that. MySQL looks
/// again then, too.
#[test]
fn what_can_be_changed_follows_the_views_below() {
    let (engine, mut root) = start();
    let updatable = |root: &mut Client| {
        let list = "SELECT GROUP_CONCAT(TABLE_NAME, ' ', IS_UPDATABLE ORDER BY TABLE_NAME) FROM \
                    information_schema.VIEWS WHERE TABLE_SCHEMA = 'd'";
        one(root, list)
    };
    all(
        &mut root,
        &["CREATE VIEW d.b AS SELECT 1 AS id, 1 AS n", "CREATE VIEW d.a AS SELECT id, n * 2 AS m FROM d.b"],
    );
    assert_eq!(updatable(&mut root), "a NO,b NO");
    all(&mut root, &["DROP VIEW d.b", "CREATE VIEW d.b AS SELECT id, n FROM d.t"]);
    assert_eq!(updatable(&mut root), "a YES,b YES");
    all(&mut root, &["DELETE FROM d.a WHERE id = 1", "ALTER VIEW d.b AS SELECT DISTINCT id, n FROM d.t"]);
    assert_eq!(updatable(&mut root), "a NO,b NO");
    // One that cannot be used is what it was when it was made.
    all(&mut root, &["DROP VIEW d.b"]);
    assert_eq!(updatable(&mut root), "a NO");
    engine.finish();
}
