//! Whether a table is what a program asks for, and the first thing in which it is not.

use super::Default;
use super::{Check, ColumnDef, KeyDef, KeyKind, TableDef};
use crate::foreign_key::{ForeignKey, ReferentialAction};
use crate::types::ColumnType;

impl TableDef {
    /// What `there`, the definition of a table, lacks of this one or has otherwise; `None`: rows are written
    /// and read as this one says. The columns must be the same, because rows have a value for each. Indexes,
    /// foreign keys and CHECK constraints that were added since are no difference, and neither are
    /// comments and INVISIBLE.
    pub(crate) fn difference_in(&self, there: &TableDef) -> Option<String> {
        self.difference_of_columns(there)
            .or_else(|| self.difference_of_primary_key(there))
            .or_else(|| self.keys.iter().find_map(|key| self.difference_of_key(key, there)))
            .or_else(|| self.missing_foreign_key(there))
            .or_else(|| self.difference_of_checks(there))
    }

    fn difference_of_columns(&self, there: &TableDef) -> Option<String> {
        let (own, there_visible) = (self.visible_columns(), there.visible_columns());
        for (number, asked) in own.iter().enumerate() {
            let Some(found) = there_visible.get(number) else {
                return Some(format!("it has no column '{}'", asked.name));
            };
            if !found.name.eq_ignore_ascii_case(&asked.name) {
                return Some(match there.column_number(&asked.name) {
                    None => format!("it has no column '{}'", asked.name),
                    Some(_) => format!("its column {} is '{}', not '{}'", number + 1, found.name, asked.name),
                });
            }
            if let Some(difference) = asked.difference_in(found) {
                return Some(format!("its column '{}' {difference}", found.name));
            }
        }
        if let Some(more) = there_visible.get(own.len()) {
            return Some(format!("it has a column '{}' more", more.name));
        }
        // As with a CHECK: the first write should not be the first to say that only SQL can.
        let is_asked = |found: &ColumnDef| {
            self.columns.iter().any(|asked| asked.hidden && asked.generated == found.generated)
        };
        let key = there.columns.iter().filter(|found| !is_asked(found)).find_map(ColumnDef::hidden_for)?;
        Some(format!("it has the functional index '{key}', so that only SQL can write its rows"))
    }

    fn difference_of_primary_key(&self, there: &TableDef) -> Option<String> {
        let shown = |def: &TableDef, key: Option<&KeyDef>| match key {
            Some(key) => format!("({})", def.columns_of(key)),
            None => "none".to_owned(),
        };
        let (asked, found) = (self.primary(), there.primary());
        let parts = |key: Option<&KeyDef>| key.map(|key| key.as_stored().parts);
        let same = parts(asked) == parts(found);
        (!same).then(|| format!("its primary key is {}, not {}", shown(there, found), shown(self, asked)))
    }

    fn difference_of_key(&self, asked: &KeyDef, there: &TableDef) -> Option<String> {
        if asked.kind == KeyKind::Primary {
            return None;
        }
        let Some(found) = there.key_named(&asked.name) else {
            return Some(format!("it has no index '{}'", asked.name));
        };
        let unique = |key: &KeyDef| if key.kind == KeyKind::Unique { "unique" } else { "not unique" };
        if found.kind != asked.kind {
            return Some(format!("its index '{}' is {}", found.name, unique(found)));
        }
        (found.as_stored().parts != asked.as_stored().parts).then(|| {
            let (there, here) = (there.columns_of(found), self.columns_of(asked));
            format!("its index '{}' is on ({there}), not on ({here})", found.name)
        })
    }

    /// Names are no part of the question: a key without one gets one when its table is made.
    fn missing_foreign_key(&self, there: &TableDef) -> Option<String> {
        let missing = self
            .foreign_keys
            .iter()
            .find(|asked| !there.foreign_keys.iter().any(|found| demands_the_same(asked, found)))?;
        Some(format!(
            "it has no such foreign key from ({}) to '{}.{}'",
            missing.columns.join(", "),
            missing.database,
            missing.table
        ))
    }

    /// One that is enforced must have been asked for: rows of the table cannot be written without SQL then,
    /// which the first write should not be the first to say.
    fn difference_of_checks(&self, there: &TableDef) -> Option<String> {
        let is_in = |check: &Check, def: &TableDef| {
            def.checks
                .iter()
                .any(|other| other.expression == check.expression && other.enforced == check.enforced)
        };
        if let Some(missing) = self.checks.iter().find(|asked| !is_in(asked, there)) {
            return Some(format!("it has no CHECK ({})", missing.expression));
        }
        let added = there.checks.iter().find(|found| found.enforced && !is_in(found, self))?;
        Some(format!("it has CHECK ({}), so that only SQL can write its rows", added.expression))
    }

    /// The columns of a key, as people write them.
    fn columns_of(&self, key: &KeyDef) -> String {
        let shown = key.parts.iter().map(|part| {
            let name = self.columns.get(usize::from(part.column)).map_or("?", |column| column.name.as_str());
            part.prefix_chars.map_or_else(|| name.to_owned(), |chars| format!("{name}({chars})"))
        });
        shown.collect::<Vec<_>>().join(", ")
    }
}

impl ColumnDef {
    /// What is otherwise in `there`, behind the column's name; the digits that are shown are none of it.
    pub(crate) fn difference_in(&self, there: &ColumnDef) -> Option<String> {
        if there.kind != self.kind || there.unsigned != self.unsigned {
            let sign = |column: &ColumnDef| if column.unsigned { " unsigned" } else { "" };
            return Some(format!("is {:?}{}, not {:?}{}", there.kind, sign(there), self.kind, sign(self)));
        }
        let differs = |is_there: bool, is_asked: bool, what: &str| {
            (is_there != is_asked).then(|| format!("is {}{what}", if is_there { "" } else { "not " }))
        };
        differs(there.nullable, self.nullable, "nullable")
            .or_else(|| differs(there.auto_increment, self.auto_increment, "AUTO_INCREMENT"))
            .or_else(|| differs(there.on_update_now, self.on_update_now, "ON UPDATE CURRENT_TIMESTAMP"))
            .or_else(|| (!self.has_default_of(there)).then(|| "has another default".to_owned()))
            .or_else(|| (there.generated != self.generated).then(|| "is generated otherwise".to_owned()))
            .or_else(|| differs(there.is_virtual, self.is_virtual, "VIRTUAL"))
    }

    /// Whether a row without a value gets the same one from both, which are of one type: SQL keeps `0.00`
    /// where a program may have written `0`.
    fn has_default_of(&self, there: &ColumnDef) -> bool {
        match (&self.default, &there.default) {
            (Some(Default::Literal(a)), Some(Default::Literal(b))) if a != b => {
                match (plain(&self.kind, a), plain(&self.kind, b)) {
                    (Some(a), Some(b)) => a == b,
                    _ => false,
                }
            }
            (a, b) => a == b,
        }
    }
}

/// A constant of a number's or a time's type, without what does not change its value; `None` for other types,
/// and for what is written in another way than SQL keeps it.
fn plain(kind: &ColumnType, constant: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(constant).ok()?.trim();
    match kind {
        ColumnType::Float => return Some(format!("{:?}", text.parse::<f32>().ok()? + 0.0)),
        ColumnType::Double => return Some(format!("{:?}", text.parse::<f64>().ok()? + 0.0)),
        ColumnType::Date | ColumnType::DateTime { .. } | ColumnType::Timestamp { .. } => {
            let (text, fraction) = text.split_once('.').unwrap_or((text, ""));
            let (date, time) = text.split_once([' ', 'T']).unwrap_or((text, "00:00:00"));
            return Some(format!("{date} {time}.{}", fraction.trim_end_matches('0')));
        }
        ColumnType::Time { .. } => {
            let (text, fraction) = text.split_once('.').unwrap_or((text, ""));
            return Some(format!("{text}.{}", fraction.trim_end_matches('0')));
        }
        ColumnType::TinyInt { .. }
        | ColumnType::SmallInt { .. }
        | ColumnType::MediumInt { .. }
        | ColumnType::Int { .. }
        | ColumnType::BigInt { .. }
        | ColumnType::Decimal { .. } => {}
        _ => return None,
    }
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.len() + fraction.len() == 0 || !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
    let sign = if whole.is_empty() && fraction.is_empty() { "" } else { sign };
    Some(format!("{sign}{whole}.{fraction}"))
}

/// Whether two foreign keys refuse and do the same, whatever they are called.
fn demands_the_same(a: &ForeignKey, b: &ForeignKey) -> bool {
    let are_same = |a: &[String], b: &[String]| {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.eq_ignore_ascii_case(b))
    };
    // Two names of one thing.
    let action = |action| match action {
        ReferentialAction::Restrict => ReferentialAction::NoAction,
        other => other,
    };
    a.refers_to(&b.database, &b.table)
        && are_same(&a.columns, &b.columns)
        && are_same(&a.referenced, &b.referenced)
        && action(a.on_delete) == action(b.on_delete)
        && action(a.on_update) == action(b.on_update)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::KeyPart;
    use super::*;
    use crate::Options;
    use crate::database::Database;
    use disk::block_on;

    fn item() -> TableDef {
        let columns = vec![
            ColumnDef::new("id", ColumnType::bigint()).auto_increment(),
            ColumnDef::new("name", ColumnType::varchar(80)),
            ColumnDef::new("maker", ColumnType::int()).nullable(),
        ];
        let mut def = TableDef::new(columns).primary_key(&["id"]).key("by_name", KeyKind::Unique, &["name"]);
        let to = ForeignKey { database: "shop".into(), ..ForeignKey::new(&["maker"], "maker", &["id"]) };
        def.foreign_keys.push(to);
        def
    }

    fn difference(change: impl FnOnce(&mut TableDef)) -> String {
        let mut there = item();
        change(&mut there);
        item().difference_in(&there).unwrap_or_default()
    }

    #[test]
    fn what_was_numbered_or_added_since_is_no_difference() {
        let there = |def: &mut TableDef| {
            (def.id, def.space, def.born, def.created_unix_s) = (7, 8, 9, 10);
            def.comment = "goods".into();
            for key in &mut def.keys {
                (key.id, key.root) = (11, 12);
            }
            def.columns[1].comment = "as printed".into();
            def.columns[1].name = "NAME".into();
            def.foreign_keys[0].name = "item_ibfk_1".into();
            let added = def.clone().key("by_maker", KeyKind::Secondary, &["maker", "name"]);
            *def = added;
            def.foreign_keys[0].referenced = vec!["ID".into()];
            def.foreign_keys[0].on_delete = ReferentialAction::Restrict;
            let check =
                Check { name: "c".into(), expression: "id > 0".into(), enforced: false, column: None };
            def.checks.push(check);
        };
        assert_eq!(difference(there), "");
    }

    #[test]
    fn the_first_difference_is_named() {
        type Change = fn(&mut TableDef);
        let cases: [(&str, Change); 19] = [
            ("it has no column 'maker'", |def| drop(def.columns.pop())),
            ("it has a column 'size' more", |def| {
                def.columns.push(ColumnDef::new("size", ColumnType::int()));
            }),
            ("it has no column 'name'", |def| def.columns[1].name = "title".into()),
            ("its column 2 is 'maker', not 'name'", |def| def.columns.swap(1, 2)),
            ("its column 'id' is Int { unsigned: false }, not BigInt { unsigned: false }", |def| {
                def.columns[0].kind = ColumnType::int();
            }),
            ("its column 'maker' is not nullable", |def| def.columns[2].nullable = false),
            ("its column 'id' is not AUTO_INCREMENT", |def| def.columns[0].auto_increment = false),
            ("its column 'name' has another default", |def| {
                def.columns[1].default = Some(Default::Literal(b"?".to_vec()));
            }),
            ("its column 'name' is generated otherwise", |def| {
                def.columns[1].generated = Some("upper(maker)".into());
            }),
            ("its column 'name' is VIRTUAL", |def| def.columns[1].is_virtual = true),
            ("its primary key is (name), not (id)", |def| def.keys[0].parts[0].column = 1),
            ("its primary key is none, not (id)", |def| drop(def.keys.remove(0))),
            ("it has no index 'by_name'", |def| drop(def.keys.pop())),
            ("its index 'by_name' is not unique", |def| def.keys[1].kind = KeyKind::Secondary),
            ("its index 'by_name' is on (name(9)), not on (name)", |def| {
                def.keys[1].parts = vec![KeyPart::prefix(1, 9)];
            }),
            ("it has CHECK (id > 0), so that only SQL can write its rows", |def| {
                let expression = "id > 0".to_owned();
                def.checks.push(Check { name: "c".into(), expression, enforced: true, column: None });
            }),
            ("it has no such foreign key from (maker) to 'shop.maker'", |def| {
                def.foreign_keys[0].on_delete = ReferentialAction::Cascade;
            }),
            ("it has no such foreign key from (maker) to 'shop.maker'", |def| def.foreign_keys.clear()),
            ("it has no such foreign key from (maker) to 'shop.maker'", |def| {
                def.foreign_keys[0].table = "firm".into();
            }),
        ];
        for (expected, change) in cases {
            assert_eq!(difference(change), expected);
        }
    }

    #[test]
    fn constants_are_compared_by_value() {
        let money = ColumnType::Decimal { precision: 10, scale: 2 };
        let time = ColumnType::DateTime { fraction: 3 };
        let cases = [
            (money.clone(), "0", "0.00", true),
            (money.clone(), "-0", "0.00", true),
            (money.clone(), "+1.5", "01.50", true),
            (money, "1.5", "-1.50", false),
            (ColumnType::int(), "10", "1", false),
            (ColumnType::Double, "1e2", "100", true),
            (time.clone(), "2024-01-02", "2024-01-02 00:00:00.000", true),
            (time, "2024-01-02", "2024-01-02 00:00:00.001", false),
            (ColumnType::varchar(9), "0", "0.00", false),
        ];
        for (kind, asked, there, same) in cases {
            let column = |text: &str| ColumnDef {
                default: Some(Default::Literal(text.into())),
                ..ColumnDef::new("c", kind.clone())
            };
            let difference = column(asked).difference_in(&column(there));
            assert_eq!(difference.is_none(), same, "{kind:?}: {asked} and {there}");
        }
    }

    /// As SQL makes it: an index of a name of its own, which serves the foreign key too.
    #[test]
    fn the_index_of_a_foreign_key_may_have_any_name() {
        let place = std::env::temp_dir().join(format!("untorn-difference-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&place);
        let options = Options::new(&place).buffer_pool_bytes(8 << 20).redo_capacity_bytes(8 << 20);
        let db = block_on(Database::open(options)).unwrap();
        let id = || ColumnDef::new("id", ColumnType::bigint());
        let maker = TableDef::new(vec![id()]).primary_key(&["id"]);
        block_on(db.create_table_if_missing("shop", "maker", maker)).unwrap();
        let item = TableDef::new(vec![id(), ColumnDef::new("maker", ColumnType::bigint())]);
        let asked = item.primary_key(&["id"]).foreign_key(ForeignKey::new(&["maker"], "maker", &["id"]));
        let by_sql = asked.clone().key("by_maker", KeyKind::Secondary, &["maker"]);
        block_on(db.create_table("shop", "item", by_sql)).unwrap();
        for _ in 0..2 {
            let table = block_on(db.create_table_if_missing("shop", "item", asked.clone())).unwrap();
            assert!(table.def.key_named("maker").is_none());
        }
        let commented = |comment: &str| {
            let mut columns =
                vec![ColumnDef::new("k", ColumnType::bigint()), ColumnDef::new("v", ColumnType::bigint())];
            columns[1].comment = comment.to_owned();
            TableDef::new(columns).primary_key(&["k"])
        };
        block_on(db.create_table_if_missing("untorn", "numbers", commented("as counted"))).unwrap();
        block_on(db.key_value::<i64, i64>("numbers")).unwrap();
        block_on(db.close()).unwrap();
        std::fs::remove_dir_all(&place).unwrap();
    }
}
