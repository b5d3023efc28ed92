//! Privileges on single columns: what an account holds of a table where it does not hold it on the whole.
//!
//! Names of columns are one whatever their letters' case, and are shown as the first GRANT wrote them. (In
//! MySQL a GRANT of `B` and a REVOKE of `b` miss each other.)

use std::collections::BTreeMap;

use super::{Object, Privileges, Rights};

/// Columns of a table by their names in lower case: the name as it was granted, and what is held on it.
pub type ColumnRights = BTreeMap<String, (String, Privileges)>;

/// Privileges, each with the columns that a GRANT or REVOKE names for it.
pub type OnColumns = [(Privileges, Vec<String>)];

/// What columns are held by: database, table.
pub(super) type Columns = BTreeMap<(String, String), ColumnRights>;

impl Privileges {
    /// Those that are held on columns too.
    pub fn of_columns() -> Privileges {
        Privileges::SELECT | Privileges::INSERT | Privileges::UPDATE | Privileges::REFERENCES
    }
}

impl Rights {
    /// What is held on columns of a table and not on the table.
    pub fn columns_of(&self, database: &str, table: &str) -> Option<&ColumnRights> {
        if self.columns.is_empty() {
            return None;
        }
        self.columns.get(&(database.to_owned(), table.to_owned()))
    }

    /// The tables of which columns are held, in the order of their names.
    pub fn all_columns(&self) -> impl Iterator<Item = (&str, &str, &ColumnRights)> {
        self.columns.iter().map(|((database, table), columns)| (&**database, &**table, columns))
    }

    /// On a column, by itself or with its table.
    pub fn on_column(&self, database: &str, table: &str, column: &str) -> Privileges {
        let own = self.columns_of(database, table).and_then(|columns| columns.get(&column.to_lowercase()));
        self.on_table(database, table) | own.map_or(Privileges::NONE, |(_, what)| *what)
    }

    /// On a table or any column of it.
    pub fn on_any_column(&self, database: &str, table: &str) -> Privileges {
        let columns = self.columns_of(database, table).into_iter().flat_map(BTreeMap::values);
        columns.fold(self.on_table(database, table), |all, (_, what)| all | *what)
    }

    /// Adds privileges on columns of a table.
    pub fn grant_columns(&mut self, database: &str, table: &str, what: &OnColumns) {
        for (privileges, names) in what {
            for name in names.iter().filter(|_| !privileges.is_empty()) {
                let columns = self.columns.entry((database.to_owned(), table.to_owned())).or_default();
                let held = columns.entry(name.to_lowercase());
                held.or_insert_with(|| (name.clone(), Privileges::NONE)).1 |= *privileges;
            }
        }
    }

    /// Takes privileges on columns back; false when one of them is not held.
    pub fn revoke_columns(&mut self, database: &str, table: &str, what: &OnColumns) -> bool {
        for (privileges, names) in what {
            for name in names {
                let columns = self.columns.get_mut(&(database.to_owned(), table.to_owned()));
                let held = columns.and_then(|columns| columns.get_mut(&name.to_lowercase()));
                match held {
                    Some((_, held)) if held.has(*privileges) => *held = held.without(*privileges),
                    _ => return false,
                }
            }
        }
        self.forget_empty_columns();
        true
    }

    /// What is taken from a table is taken from its columns; whether anything was held on them.
    pub(super) fn revoke_from_columns(&mut self, object: &Object, what: Privileges) -> bool {
        let Object::Table(database, table) = object else { return false };
        let Some(columns) = self.columns.get_mut(&(database.clone(), table.clone())) else { return false };
        columns.values_mut().for_each(|(_, held)| *held = held.without(what));
        self.forget_empty_columns();
        true
    }

    /// Adds what others hold on columns.
    pub(super) fn add_columns(&mut self, other: &Rights) {
        for (table, columns) in &other.columns {
            let own = self.columns.entry(table.clone()).or_default();
            for (key, (name, what)) in columns {
                own.entry(key.clone()).or_insert_with(|| (name.clone(), Privileges::NONE)).1 |= *what;
            }
        }
    }

    fn forget_empty_columns(&mut self) {
        self.columns.values_mut().for_each(|columns| columns.retain(|_, (_, what)| !what.is_empty()));
        self.columns.retain(|_, columns| !columns.is_empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(what: Privileges, names: &[&str]) -> Vec<(Privileges, Vec<String>)> {
        vec![(what, names.iter().map(|name| (*name).to_owned()).collect())]
    }

    #[test]
    fn a_column_has_its_own_and_what_its_table_has() {
        let mut rights = Rights::default();
        rights.grant_columns("shop", "cart", &on(Privileges::SELECT, &["A", "b"]));
        rights.grant_columns("shop", "cart", &on(Privileges::UPDATE, &["a"]));
        assert_eq!(rights.on_column("shop", "cart", "a"), Privileges::SELECT | Privileges::UPDATE);
        assert_eq!(rights.on_column("shop", "cart", "c"), Privileges::NONE);
        assert_eq!(rights.on_table("shop", "cart"), Privileges::NONE);
        assert!(rights.on_any_column("shop", "cart").has(Privileges::UPDATE));
        assert!(rights.sees_database("shop"), "by a column");
        assert!(!rights.revoke_columns("shop", "cart", &on(Privileges::UPDATE, &["b"])), "not held");
        assert!(rights.revoke_columns("shop", "cart", &on(Privileges::UPDATE, &["A"])));
        rights.grant(&Object::Table("shop".into(), "cart".into()), Privileges::INSERT);
        assert_eq!(rights.on_column("shop", "cart", "B"), Privileges::SELECT | Privileges::INSERT);
        assert!(rights.revoke(&Object::Table("shop".into(), "cart".into()), Privileges::SELECT));
        assert_eq!(rights.on_any_column("shop", "cart"), Privileges::INSERT, "the columns' too");
        assert!(rights.columns_of("shop", "cart").is_none());
    }
}
