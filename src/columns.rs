//! Columns that are added, dropped and renamed by a program without SQL.
//!
//! These are the simplest of what a [`crate::TableChange`] can do. A table whose definition has
//! SQL expressions is left to SQL: they may speak of the column.

use btree::Field;
use smallvec::SmallVec;

use crate::definitions::Definitions;
use crate::error::{Error, Result};
use crate::rebuild::Rebuild;
use crate::schema::{ColumnDef, Default, SchemaError, TableDef};
use crate::table::Table;
use crate::table_change::TableChange;
use crate::types::{self, Value};

/// Refuses a table with expressions.
fn without_expressions(table: &Table) -> Result<()> {
    let def = &table.def;
    let computed = |column: &ColumnDef| matches!(column.default, Some(Default::Expression(_)));
    if def.evaluates_rows() || !def.checks.is_empty() || def.columns.iter().any(computed) {
        return Err(Error::NeedsSql(table.database.clone(), table.name.clone()));
    }
    Ok(())
}

fn column_of(def: &TableDef, name: &str) -> Result<u16> {
    def.column_number(name).ok_or_else(|| Error::Schema(SchemaError::NoSuchColumn(name.to_owned())))
}

impl Definitions<'_> {
    /// Adds a column behind the others. The rows that are there get `value` in it.
    ///
    /// # Errors
    /// As [`TableChange::rebuild`]; a value that the column does not take; [`Error::NeedsSql`] for a table
    /// with SQL expressions.
    pub async fn add_column(
        self,
        database: &str,
        name: &str,
        column: ColumnDef,
        value: &Value<'_>,
    ) -> Result<()> {
        let change = self.change_table(database, name).await?;
        without_expressions(change.table())?;
        let mut stored = None;
        if *value != Value::Null {
            let mut bytes = Vec::new();
            types::encode(value, &column.kind, &mut bytes)
                .map_err(|why| Error::Value { column: column.name.clone(), why })?;
            stored = Some(bytes);
        }
        let mut def = change.table().def.clone();
        let mut copied: Vec<Option<u16>> = (0..def.columns.len() as u16).map(Some).collect();
        def.columns.push(column);
        copied.push(None);
        rebuild(change, def, copied, stored.as_deref()).await
    }

    /// Drops a column. Keys are left with their other columns, and a key of this column alone goes too.
    ///
    /// # Errors
    /// As [`TableChange::rebuild`]: a unique key that is left with fewer columns may not be unique any more.
    /// [`Error::NeedsSql`] for a table with SQL expressions.
    pub async fn drop_column(self, database: &str, name: &str, column: &str) -> Result<()> {
        let change = self.change_table(database, name).await?;
        without_expressions(change.table())?;
        let mut def = change.table().def.clone();
        let gone = column_of(&def, column)?;
        def.columns.remove(usize::from(gone));
        for key in &mut def.keys {
            key.parts.retain(|part| part.column != gone);
            for part in key.parts.iter_mut().filter(|part| part.column > gone) {
                part.column -= 1;
            }
        }
        def.keys.retain(|key| !key.parts.is_empty());
        let columns = 0..=def.columns.len() as u16;
        let copied = columns.filter(|column| *column != gone).map(Some).collect();
        rebuild(change, def, copied, None).await
    }

    /// Gives a column another name, at once.
    ///
    /// # Errors
    /// As [`TableChange::redefine`]; no such column; [`Error::NeedsSql`] for a table with SQL expressions.
    pub async fn rename_column(self, database: &str, name: &str, from: &str, to: &str) -> Result<()> {
        let change = self.change_table(database, name).await?;
        without_expressions(change.table())?;
        let mut def = change.table().def.clone();
        let column = column_of(&def, from)?;
        to.clone_into(&mut def.columns[usize::from(column)].name);
        change.redefine(def, None).await
    }
}

/// Rebuilds a table whose columns keep their bytes; a new one gets `added`.
async fn rebuild(
    change: TableChange<'_>,
    def: TableDef,
    copied: Vec<Option<u16>>,
    added: Field<'_>,
) -> Result<()> {
    let next_number = change.next_number().await?;
    let plan = Rebuild { def, origins: copied.clone(), copied: copied.clone(), next_number };
    let rebuilt = change.rebuild(plan, |row, new| {
        let fields: SmallVec<[Field<'_>; 16]> =
            copied.iter().map(|column| column.map_or(added, |column| row[usize::from(column)])).collect();
        for field in fields {
            match field {
                Some(bytes) => new.push_bytes(bytes),
                None => new.push_null(),
            }
        }
        Ok::<(), Error>(())
    });
    rebuilt.await.map(|_| ())
}
