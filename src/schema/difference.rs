//! Whether a table is what a program asks for, and the first thing in which it is not.

use super::{ColumnDef, KeyDef, KeyKind, TableDef};
use crate::foreign_key::ForeignKey;

impl TableDef {
    /// What `there`, the definition of a table, lacks of this one or has otherwise; `None`: rows are written
    /// and read as this one says. The columns must be the same, because rows have a value for each. Indexes,
    /// foreign keys and CHECK constraints that were added since are no difference, and comments are none.
    pub(crate) fn difference_in(&self, there: &TableDef) -> Option<String> {
        self.difference_of_columns(there)
            .or_else(|| self.difference_of_primary_key(there))
            .or_else(|| self.keys.iter().find_map(|key| self.difference_of_key(key, there)))
            .or_else(|| self.missing_foreign_key(there))
            .or_else(|| self.missing_check(there))
    }

    fn difference_of_columns(&self, there: &TableDef) -> Option<String> {
        for (number, asked) in self.columns.iter().enumerate() {
            let Some(found) = there.columns.get(number) else {
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
        let more = there.columns.get(self.columns.len())?;
        Some(format!("it has a column '{}' more", more.name))
    }

    fn difference_of_primary_key(&self, there: &TableDef) -> Option<String> {
        let shown = |def: &TableDef, key: Option<&KeyDef>| match key {
            Some(key) => format!("({})", def.columns_of(key)),
            None => "none".to_owned(),
        };
        let (asked, found) = (self.primary(), there.primary());
        let same = asked.map(|key| &key.parts) == found.map(|key| &key.parts);
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
        (found.parts != asked.parts).then(|| {
            let (there, here) = (there.columns_of(found), self.columns_of(asked));
            format!("its index '{}' is on ({there}), not on ({here})", found.name)
        })
    }

    /// Names are no part of the question: a key without one gets one when its table is made.
    fn missing_foreign_key(&self, there: &TableDef) -> Option<String> {
        let is_same = |a: &ForeignKey, b: &ForeignKey| {
            ForeignKey { name: String::new(), index: String::new(), ..a.clone() }
                == ForeignKey { name: String::new(), index: String::new(), ..b.clone() }
        };
        let missing = self
            .foreign_keys
            .iter()
            .find(|asked| !there.foreign_keys.iter().any(|found| is_same(asked, found)))?;
        Some(format!(
            "it has no such foreign key from ({}) to '{}.{}'",
            missing.columns.join(", "),
            missing.database,
            missing.table
        ))
    }

    fn missing_check(&self, there: &TableDef) -> Option<String> {
        let missing = self.checks.iter().find(|asked| {
            !there
                .checks
                .iter()
                .any(|found| found.expression == asked.expression && found.enforced == asked.enforced)
        })?;
        Some(format!("it has no CHECK ({})", missing.expression))
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
    fn difference_in(&self, there: &ColumnDef) -> Option<String> {
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
            .or_else(|| (there.default != self.default).then(|| "has another default".to_owned()))
            .or_else(|| (there.generated != self.generated).then(|| "is generated otherwise".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Check, Default, KeyPart};
    use super::*;
    use crate::types::ColumnType;

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
            let check = Check { name: "c".into(), expression: "id > 0".into(), enforced: true, column: None };
            def.checks.push(check);
        };
        assert_eq!(difference(there), "");
    }

    #[test]
    fn the_first_difference_is_named() {
        type Change = fn(&mut TableDef);
        let cases: [(&str, Change); 16] = [
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
            ("its primary key is (name), not (id)", |def| def.keys[0].parts[0].column = 1),
            ("its primary key is none, not (id)", |def| drop(def.keys.remove(0))),
            ("it has no index 'by_name'", |def| drop(def.keys.pop())),
            ("its index 'by_name' is not unique", |def| def.keys[1].kind = KeyKind::Secondary),
            ("its index 'by_name' is on (name(9)), not on (name)", |def| {
                def.keys[1].parts = vec![KeyPart { column: 1, prefix_chars: Some(9) }];
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
}
