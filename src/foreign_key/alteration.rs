//! ADD FOREIGN KEY and DROP FOREIGN KEY, for a table that is there.

use super::ForeignKey;
use crate::definitions::Definitions;
use crate::error::Result;
use crate::schema::KeyDef;

impl Definitions<'_> {
    /// Adds foreign keys to a table, after those named in `dropped` are gone, all at once or not at all; an
    /// index that a key needs comes with it. The rows that are there must obey them, unless the session does
    /// not check foreign keys.
    ///
    /// # Errors
    /// [`Error::ForeignKeyRefused`](crate::Error::ForeignKeyRefused),
    /// [`Error::ForeignKeyParentMissing`](crate::Error::ForeignKeyParentMissing) for a row without a parent;
    /// no such table, a timeout, a deadlock; the table is as it was.
    pub async fn change_foreign_keys(
        self,
        database: &str,
        name: &str,
        added: Vec<ForeignKey>,
        dropped: &[&str],
    ) -> Result<()> {
        let change = self.change_table(database, name).await?;
        let mut def = change.table().def.clone();
        def.change_foreign_keys((database, name), added, dropped)?;
        let made: Vec<KeyDef> = def.keys.iter().filter(|key| key.id == 0).cloned().collect();
        if made.is_empty() {
            return change.redefine(def, None).await;
        }
        let table = change.table().clone();
        let gone = table.def.keys.iter().filter(|key| def.keys.iter().all(|other| other.id != key.id));
        let gone: Vec<&str> = gone.map(|key| key.name.as_str()).collect();
        change.change_indexes(made, &gone, Some(def.foreign_keys)).await
    }
}
