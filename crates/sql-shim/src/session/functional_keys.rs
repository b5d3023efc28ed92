//! Functional key parts in definitions: each has a hidden VIRTUAL column of its own, behind all others, and
//! the key has a part of that.
//!
//! The column is defined again whenever the table's columns change: its type follows those that its
//! expression reads, and its name the key's. The name gives way to that of a column that somebody names.

use sql::ast::{self, KeySource};
use sql::errors;
use sql::plan::functional_keys::key_part_text;
use sql::result::SqlError;
use untorn::Table;
use untorn::schema::{ColumnDef, KeyDef, TableDef};

use super::Session;

/// A table by the names of its database and itself.
pub(super) type Named<'n> = (&'n str, &'n str);

fn is_functional(key: &ast::KeyDef) -> bool {
    key.parts.iter().any(|part| matches!(part.source, KeySource::Expression(_)))
}

/// Gives names to functional keys without one, that neither the table's keys nor others of the statement
/// have.
pub(super) fn name_functional_keys<'k>(def: &TableDef, keys: impl Iterator<Item = &'k mut ast::KeyDef>) {
    let mut keys: Vec<&mut ast::KeyDef> = keys.collect();
    let said: Vec<String> = keys.iter().filter_map(|key| key.name.clone()).collect();
    let mut taken: Vec<String> = def.keys.iter().map(|key| key.name.clone()).chain(said).collect();
    let unnamed = |key: &&mut ast::KeyDef| {
        key.name.is_none() && key.kind != ast::KeyKind::Primary && is_functional(key)
    };
    for key in keys.iter_mut().filter(|key| unnamed(key)) {
        let is_free = |name: &String| !taken.iter().any(|taken| taken.eq_ignore_ascii_case(name));
        let numbered = (2..).map(|number: u32| format!("functional_index_{number}"));
        let name = std::iter::once("functional_index".to_owned()).chain(numbered).find(is_free);
        taken.extend(name.clone());
        key.name = name;
    }
}

/// Refuses what is not made of expressions, by MySQL's own errors.
pub(super) fn check_functional_kind(key: &ast::KeyDef) -> Result<(), SqlError> {
    match key.kind {
        _ if !is_functional(key) => Ok(()),
        ast::KeyKind::Primary => Err(errors::error(errors::FUNCTIONAL_INDEX_PRIMARY_KEY, &[])),
        ast::KeyKind::Fulltext => Err(errors::error(errors::FULLTEXT_FUNCTIONAL_INDEX, &[])),
        ast::KeyKind::Spatial => Err(errors::error(errors::SPATIAL_FUNCTIONAL_INDEX, &[])),
        ast::KeyKind::Unique | ast::KeyKind::Plain => Ok(()),
    }
}

impl Session {
    /// Adds the hidden column of a part of a key to a definition whose other columns are complete; its
    /// number.
    pub(super) fn add_functional_part(
        &self,
        (database, table): Named<'_>,
        def: &mut TableDef,
        key: &str,
        part: usize,
        expr: &ast::Expr,
    ) -> Result<u16, SqlError> {
        let text = key_part_text(expr, key)?;
        let column = self.planner().functional_column(database, table, def, key, &text)?;
        let name = def.hidden_name(key, part);
        def.columns.push(ColumnDef { name, ..column });
        Ok((def.columns.len() - 1) as u16)
    }

    /// Puts the hidden columns of kept keys behind the new columns of a table, in the order that they had.
    pub(super) fn keep_hidden_columns(
        &self,
        table: &Table,
        keys: &[KeyDef],
        def: &mut TableDef,
        origins: &mut Vec<Option<u16>>,
    ) -> Result<(), SqlError> {
        let old = &table.def;
        for (at, hidden) in old.columns.iter().enumerate().skip(old.visible_columns().len()) {
            let number = at as u16;
            let part_of = |key: &KeyDef| key.parts.iter().position(|part| part.column == number);
            let Some((key, part)) = keys.iter().find_map(|key| Some((key, part_of(key)?))) else { continue };
            let text = hidden.generated.as_deref().unwrap_or_default();
            let column =
                self.planner().functional_column(&table.database, &table.name, def, &key.name, text)?;
            let name = def.hidden_name(&key.name, part);
            def.columns.push(ColumnDef { name, ..column });
            origins.push(Some(number));
        }
        Ok(())
    }
}
