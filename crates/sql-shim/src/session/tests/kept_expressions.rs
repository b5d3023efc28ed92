//! What a catalog keeps is read as it was taken, also where the same text would be refused now.

use super::*;

/// Gives `name` the definition of `model`, in whose expressions every `2001-01-01` has a time behind it: the
/// rule for literals of DATE was once less strict.
fn make_older_table(fixture: &Fixture, model: &str, name: &str) {
    let engine = fixture.session.state.database.clone();
    let mut def = engine.table("d", model).unwrap().def.clone();
    let older = |text: &str| text.replace("2001-01-01", "2001-01-01 00:00:00");
    (def.id, def.space, def.hidden_clustered) = (0, 0, None);
    def.keys.iter_mut().for_each(|key| (key.id, key.root) = (0, 0));
    for column in &mut def.columns {
        column.generated = column.generated.as_deref().map(older);
        if let Some(untorn::schema::Default::Expression(text)) = &mut column.default {
            *text = older(text);
        }
    }
    for check in &mut def.checks {
        check.expression = older(&check.expression);
        check.name.push_str("_older");
    }
    untorn::engine::block_on(engine.create_table("d", name, def)).unwrap();
}

#[test]
fn literals_of_an_older_rule_are_read_where_they_are_kept() {
    let mut fixture = Fixture::new("kept-literals");
    fixture.good(
        "CREATE TABLE model (id INT PRIMARY KEY, day DATE DEFAULT (DATE'2001-01-01'),
         later INT AS (day > DATE'2001-01-01') STORED, CHECK (day >= DATE'2001-01-01'))",
    );
    fixture.good("CREATE VIEW v AS SELECT id, DATE'2001-01-01' AS first FROM model");
    make_older_table(&fixture, "model", "older");
    let engine = fixture.session.state.database.clone();
    let view = engine.view("d", "v").unwrap();
    let query = view.query.replace("2001-01-01", "2001-01-01 00:00:00").replace("model", "older");
    assert_ne!(query, view.query);
    let older = untorn::view::ViewDef { query, ..(*view).clone() };
    untorn::engine::block_on(engine.definitions().create_view("d", "v", older, true)).unwrap();

    assert_eq!(fixture.run("SELECT DATE'2001-01-01 00:00:00'").error, Some(1525));
    fixture.good("INSERT INTO older (id) VALUES (1)");
    fixture.good("INSERT INTO older (id, day) VALUES (2, '2001-01-02')");
    assert_eq!(fixture.run("INSERT INTO older (id, day) VALUES (3, '2000-12-31')").error, Some(3819));
    let rows = fixture.good("SELECT id, later FROM older ORDER BY id").rows;
    assert_eq!(rows, ["1|0|", "2|1|"]);
    assert_eq!(fixture.good("SELECT id FROM v WHERE first = '2001-01-01'").rows.len(), 2);
    fixture.good("SHOW CREATE VIEW v");
    fixture.good("SHOW COLUMNS FROM v");
    // A change of something else must not fail at them either.
    fixture.good("ALTER TABLE older ADD note INT");
    fixture.good("ALTER TABLE older ADD other INT, ALGORITHM=COPY");
    assert_eq!(fixture.good("SELECT COUNT(*) FROM older WHERE later = 1").rows, ["1|"]);
}
