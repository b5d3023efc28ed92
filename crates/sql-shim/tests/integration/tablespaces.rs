//! `FLUSH TABLES … FOR EXPORT`, `DISCARD TABLESPACE` and `IMPORT TABLESPACE` as a client sees them.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::support::engine::Engine;
use crate::support::{Client, code};
use std::fs;

fn column(client: &mut Client, sql: &str) -> Vec<Option<String>> {
    client.run(sql).unwrap().into_iter().map(|row| row[0].clone()).collect()
}

#[test]
fn a_table_is_carried_over_by_its_files() {
    let engine = Engine::start();
    let mut root = engine.root();
    let definition = "(id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(40), pad TEXT, KEY (name))";
    root.run("CREATE DATABASE d").unwrap();
    root.run(&format!("CREATE TABLE d.a {definition}")).unwrap();
    root.run(&format!("CREATE TABLE d.b {definition}")).unwrap();
    for id in 0..300 {
        let sql =
            format!("INSERT INTO d.a (name, pad) VALUES ('name {}', REPEAT('x', {}))", id % 17, id * 100);
        root.run(&sql).unwrap();
    }
    root.run("DELETE FROM d.a WHERE id % 3 = 0").unwrap();
    let sum = "SELECT CONCAT(COUNT(*), ' ', SUM(id), ' ', SUM(LENGTH(pad))) FROM d.";
    let expected = column(&mut root, &format!("{sum}a"));

    let place = engine.directory.join("d");
    let copies = ["ibd", "cfg"].map(|kind| engine.directory.join(format!("kept.{kind}")));
    let mut exporting = engine.root();
    exporting.run("FLUSH TABLES d.a FOR EXPORT").unwrap();
    for (kind, copy) in ["ibd", "cfg"].iter().zip(&copies) {
        fs::copy(place.join(format!("a.{kind}")), copy).unwrap();
    }
    assert_eq!(code(&mut exporting, "FLUSH TABLES d.b FOR EXPORT"), 1192);
    exporting.run("UNLOCK TABLES").unwrap();
    exporting.run("LOCK TABLES d.a WRITE").unwrap();
    assert_eq!(code(&mut exporting, "FLUSH TABLES d.a FOR EXPORT"), 1192);
    exporting.run("UNLOCK TABLES").unwrap();

    root.run("ALTER TABLE d.b DISCARD TABLESPACE").unwrap();
    assert_eq!(code(&mut root, "SELECT * FROM d.b"), 1814);
    assert_eq!(code(&mut root, "INSERT INTO d.b (name) VALUES ('x')"), 1814);
    // Nothing there to import yet.
    let missing = code(&mut root, "ALTER TABLE d.b IMPORT TABLESPACE");
    assert!([1812, 1815].contains(&missing), "{missing}");
    // A damaged file is refused, and the table stays as it is.
    let mut bytes = fs::read(&copies[0]).unwrap();
    let at = bytes.len() / 2 + 100;
    bytes[at] ^= 0xFF;
    fs::write(place.join("b.ibd"), &bytes).unwrap();
    fs::copy(&copies[1], place.join("b.cfg")).unwrap();
    code(&mut root, "ALTER TABLE d.b IMPORT TABLESPACE");
    assert_eq!(fs::read(place.join("b.ibd")).unwrap(), bytes, "the file is left as it was");
    assert_eq!(code(&mut root, "SELECT * FROM d.b"), 1814);
    // So is one of another table.
    root.run("CREATE TABLE d.c (id INT PRIMARY KEY, other BIGINT)").unwrap();
    root.run("ALTER TABLE d.c DISCARD TABLESPACE").unwrap();
    fs::copy(&copies[0], place.join("c.ibd")).unwrap();
    fs::copy(&copies[1], place.join("c.cfg")).unwrap();
    assert_eq!(code(&mut root, "ALTER TABLE d.c IMPORT TABLESPACE"), 1808);

    fs::copy(&copies[0], place.join("b.ibd")).unwrap();
    root.run("ALTER TABLE d.b IMPORT TABLESPACE").unwrap();
    assert_eq!(column(&mut root, &format!("{sum}b")), expected);
    let by_index = "SELECT COUNT(*) FROM d.b FORCE INDEX (name) WHERE name = 'name 5'";
    assert_eq!(column(&mut root, by_index), column(&mut root, &by_index.replace("d.b", "d.a")));
    let checked = root.run("CHECK TABLE d.b").unwrap();
    assert_eq!(checked.last().unwrap().last().unwrap().as_deref(), Some("OK"), "{checked:?}");
    // The counter goes on where it was in the first table, whose last row was deleted.
    root.run("INSERT INTO d.b (name) VALUES ('new')").unwrap();
    assert_eq!(column(&mut root, "SELECT MAX(id) FROM d.b"), [Some("301".to_owned())]);
    engine.finish();
}
