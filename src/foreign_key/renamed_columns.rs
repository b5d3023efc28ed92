//! What becomes of a table's columns when its definition changes, as foreign keys see it: they name columns,
//! on both sides, and follow one that gets another name.

use super::ForeignKey;
use crate::schema::{ColumnDef, TableDef};

/// A definition that becomes another one.
#[derive(Clone, Copy)]
pub(crate) struct ColumnChange<'d> {
    pub before: &'d TableDef,
    pub after: &'d TableDef,
    /// For each new column the old one that it was.
    pub origins: &'d [Option<u16>],
}

impl<'d> ColumnChange<'d> {
    /// A column of the old definition, as it was and as it is.
    pub fn column(&self, name: &str) -> Option<(&'d ColumnDef, &'d ColumnDef)> {
        let old = self.before.column_number(name)?;
        let at = self.origins.iter().position(|origin| *origin == Some(old))?;
        Some((&self.before.columns[usize::from(old)], self.after.columns.get(at)?))
    }

    fn follow(&self, names: &mut [String]) {
        for name in names {
            if let Some((was, is)) = self.column(name)
                && !was.name.eq_ignore_ascii_case(&is.name)
            {
                name.clone_from(&is.name);
            }
        }
    }

    /// A foreign key of the table, with the names that its columns have now.
    fn followed_own(&self, (database, table): (&str, &str), key: &ForeignKey) -> ForeignKey {
        let mut key = key.clone();
        self.follow(&mut key.columns);
        if key.refers_to(database, table) {
            self.follow(&mut key.referenced);
        }
        key
    }

    /// A foreign key of another table to this one, with the names that its columns have now.
    pub fn followed(&self, key: &ForeignKey) -> ForeignKey {
        let mut key = key.clone();
        self.follow(&mut key.referenced);
        key
    }

    /// Whether a foreign key of the old definition is one of the new, too.
    pub fn keeps(&self, table: (&str, &str), key: &ForeignKey) -> bool {
        self.after.foreign_keys.contains(&self.followed_own(table, key))
    }

    /// The foreign keys of the new definition, of which those that stay have followed their columns.
    pub fn foreign_keys(&self, table: (&str, &str)) -> Vec<ForeignKey> {
        let stays = |key: &ForeignKey| self.before.foreign_keys.contains(key);
        let keys = self.after.foreign_keys.iter();
        keys.map(|key| if stays(key) { self.followed_own(table, key) } else { key.clone() }).collect()
    }

    /// The foreign keys that come, and those that go.
    pub fn exchanged(&self, table: (&str, &str)) -> (Vec<ForeignKey>, Vec<ForeignKey>) {
        let kept: Vec<_> = self.before.foreign_keys.iter().map(|key| self.followed_own(table, key)).collect();
        let added = self.after.foreign_keys.iter().filter(|key| !kept.contains(key)).cloned().collect();
        let gone = self.before.foreign_keys.iter().filter(|key| !self.keeps(table, key)).cloned().collect();
        (added, gone)
    }
}
