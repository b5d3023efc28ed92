//! RENAME TABLE: one table or several, all at once.
//!
//! The pairs are taken from left to right, as in MySQL, so that names may be swapped (`a TO t, b TO a, t TO
//! b`); what counts is where each table is in the end. First every file is renamed, under entries of the DDL
//! log that a start takes back: to its new name, or, where that is still the name of another table of the
//! statement, to a name for the time being in the same directory. Whatever fails so far is undone. Then one
//! record of the catalog renames the tables: that is the moment it happens. Then the names for the time being
//! are replaced, which a start does too.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::catalog::DdlLogEntry;
use crate::database::Database;
use crate::definitions::Definitions;
use crate::error::{Error, Result};
use crate::file_names::table_file;
use crate::foreign_key::{self, Moved};
use crate::name_locks::{NAME_CHARS_MAX, WantedName, check_table_name};
use crate::private::is_private;
use crate::schema::{ForeignKeyRefusal, TableDef};
use crate::table::Table;
use crate::truncate::temporary_file;

/// Database and table.
type Name = (String, String);

/// Database and table, as a caller names them.
pub type NamedTable<'a> = (&'a str, &'a str);

/// One table's way.
struct Move {
    table: Arc<Table>,
    /// The table's definition under its new name.
    def: TableDef,
    from: Name,
    to: Name,
    /// Where its file is before, and after the first step.
    old_path: PathBuf,
    path: PathBuf,
}

impl Move {
    fn space(&self) -> u32 {
        self.table.def.space
    }

    fn final_path(&self) -> PathBuf {
        table_file(&self.to.0, &self.to.1)
    }
}

/// A view's way: from one name to another.
struct ViewMove {
    from: Name,
    to: Name,
}

/// What a statement moves.
struct Moves {
    tables: Vec<Move>,
    views: Vec<ViewMove>,
}

impl Definitions<'_> {
    /// Renames a table, given as database and name, also into another database. Handles of it stay good.
    ///
    /// # Errors
    /// As [`Definitions::rename_tables`].
    pub async fn rename_table(self, from: NamedTable<'_>, to: NamedTable<'_>) -> Result<()> {
        self.rename_tables(&[(from, to)]).await
    }

    /// Renames tables and views from left to right, all of them or none. Names may be swapped by way of a
    /// third one.
    ///
    /// # Errors
    /// No such table or database, a name that is taken or cannot be one, a file in the way, a timeout, a
    /// deadlock, a file system that refuses.
    pub async fn rename_tables(self, pairs: &[(NamedTable<'_>, NamedTable<'_>)]) -> Result<()> {
        let engine = self.database;
        let own = |(database, table): NamedTable<'_>| (database.to_owned(), table.to_owned());
        let pairs: Vec<(Name, Name)> = pairs.iter().map(|(from, to)| (own(*from), own(*to))).collect();
        let mut names = Vec::new();
        for (from, to) in &pairs {
            check_table_name(&to.1)?;
            for name in [from, to] {
                names.push(WantedName::database(&name.0, false));
                names.push(WantedName::table(&name.0, &name.1));
            }
        }
        // What is wrong now need not wait for anybody.
        engine.plan_moves(&pairs)?;
        // Tables that refer to those that move learn their new names; those that refer to a name that had no
        // table find one.
        let relatives = || engine.relatives_of(pairs.iter().flat_map(|(from, to)| [from, to]));
        let locks = loop {
            let known = relatives();
            let children = known.iter().map(|(database, table)| WantedName::table(database, table));
            let locks = self.lock_names(names.iter().cloned().chain(children).collect()).await?;
            // Else one has come while others were waited for. No more will, as the names are locked.
            if relatives().is_subset(&known) {
                break locks;
            }
        };
        let moves = engine.plan_moves(&pairs)?;
        let database = engine.clone();
        engine
            .run_to_the_end(async move {
                let _locks = locks;
                database.rename_locked(moves).await
            })
            .await
    }
}

/// The moves by their names.
fn moved(moves: &[Move]) -> Vec<Moved<'_>> {
    moves
        .iter()
        .map(|step| Moved { from: (&step.from.0, &step.from.1), to: (&step.to.0, &step.to.1) })
        .collect()
}

impl Database {
    /// Where each table goes in the end.
    fn plan_moves(&self, pairs: &[(Name, Name)]) -> Result<Moves> {
        let data = self.0.catalog.snapshot();
        // Names that differ from the catalog: whose table is there now, if any.
        let mut now: BTreeMap<Name, Option<Name>> = BTreeMap::new();
        let at = |now: &BTreeMap<Name, Option<Name>>, name: &Name| match now.get(name) {
            Some(origin) => origin.clone(),
            None => {
                let known = data.table(&name.0, &name.1).is_some() || data.view(&name.0, &name.1).is_some();
                known.then(|| name.clone())
            }
        };
        for (from, to) in pairs {
            if let Some(missing) = [from, to].into_iter().find(|name| !data.databases.contains_key(&name.0)) {
                return Err(Error::NoSuchDatabase(missing.0.clone()));
            }
            let Some(origin) = at(&now, from) else {
                return Err(Error::NoSuchTable(from.0.clone(), from.1.clone()));
            };
            if at(&now, to).is_some() {
                return Err(Error::TableExists(to.0.clone(), to.1.clone()));
            }
            now.insert(from.clone(), None);
            now.insert(to.clone(), Some(origin));
        }
        let (mut moves, mut views) = (Vec::new(), Vec::new());
        for (to, origin) in &now {
            let Some(from) = origin.clone().filter(|from| from != to) else { continue };
            if data.view(&from.0, &from.1).is_some() {
                views.push(ViewMove { from, to: to.clone() });
                continue;
            }
            let table = self.table(&from.0, &from.1)?;
            if table.def.discarded {
                return Err(table.discarded_error());
            }
            let path = match now.contains_key(to) && data.table(&to.0, &to.1).is_some() {
                true => temporary_file(&to.0, table.def.space),
                false => table_file(&to.0, &to.1),
            };
            let old_path = self.present_file(&table);
            let def = table.def.renamed(&from.1, &to.1);
            moves.push(Move { table, def, from, to: to.clone(), old_path, path });
        }
        self.refuse_taken_checks(&moves)?;
        self.check_foreign_keys(&moves)?;
        Ok(Moves { tables: moves, views })
    }

    /// Names of foreign keys are unique in a database, too, and follow the table's name; and the tables that
    /// refer to a name without a table must fit the one that gets it.
    fn check_foreign_keys(&self, moves: &[Move]) -> Result<()> {
        let data = self.0.catalog.snapshot();
        let moved = moved(moves);
        let mut seen: BTreeSet<(&str, String)> = BTreeSet::new();
        for step in moves {
            let renamed = step.def.foreign_keys_renamed((&step.from.0, &step.from.1), &moved);
            for key in &renamed.as_ref().unwrap_or(&step.def).foreign_keys {
                if key.name.chars().count() > NAME_CHARS_MAX {
                    return Err(Error::NameTooLong(key.name.clone()));
                }
                if !seen.insert((&step.to.0, key.name.to_lowercase())) {
                    return Err(ForeignKeyRefusal::Exists(key.name.clone()).into());
                }
            }
            // The children of a table that makes way go with it.
            if data.table(&step.to.0, &step.to.1).is_none() {
                foreign_key::check_moved(&data, (&step.to.0, &step.to.1), &step.def)?;
            }
        }
        if seen.is_empty() {
            return Ok(());
        }
        for (database, name, def) in data.tables() {
            if moves.iter().any(|step| step.from.0 == database && step.from.1 == name) {
                continue;
            }
            for key in &def.foreign_keys {
                if seen.contains(&(database, key.name.to_lowercase())) {
                    return Err(ForeignKeyRefusal::Exists(key.name.clone()).into());
                }
            }
        }
        Ok(())
    }

    /// Names of CHECK constraints are unique in a database, and those that were made of the table's name
    /// follow it.
    fn refuse_taken_checks(&self, moves: &[Move]) -> Result<()> {
        let mut seen: BTreeSet<(&str, String)> = BTreeSet::new();
        for step in moves {
            for check in &step.def.checks {
                if check.name.chars().count() > NAME_CHARS_MAX {
                    return Err(Error::NameTooLong(check.name.clone()));
                }
                if !seen.insert((&step.to.0, check.name.to_lowercase())) {
                    return Err(Error::CheckExists(check.name.clone()));
                }
            }
        }
        if seen.is_empty() {
            return Ok(());
        }
        let data = self.0.catalog.snapshot();
        for (database, name, def) in data.tables() {
            if moves.iter().any(|step| step.from.0 == database && step.from.1 == name) {
                continue;
            }
            for check in &def.checks {
                if seen.contains(&(database, check.name.to_lowercase())) {
                    return Err(Error::CheckExists(check.name.clone()));
                }
            }
        }
        Ok(())
    }

    /// The tables that refer to one of these.
    fn relatives_of<'n>(&self, names: impl Iterator<Item = &'n Name>) -> BTreeSet<Name> {
        let data = self.0.catalog.snapshot();
        names.flat_map(|(database, table)| BTreeSet::clone(&data.children_of(database, table))).collect()
    }

    /// The tables that stay where they are and whose foreign keys change with these moves.
    fn changed_children(&self, moves: &[Move]) -> Result<Vec<(Arc<Table>, TableDef)>> {
        let moved = moved(moves);
        let mut changed = Vec::new();
        for (database, name) in self.relatives_of(moves.iter().map(|step| &step.from)) {
            if moves.iter().any(|step| (&step.from.0, &step.from.1) == (&database, &name)) {
                continue;
            }
            let table = self.table(&database, &name)?;
            if let Some(def) = table.def.foreign_keys_renamed((&database, &name), &moved) {
                changed.push((table, def));
            }
        }
        Ok(changed)
    }

    async fn rename_locked(&self, Moves { tables: mut moves, views }: Moves) -> Result<()> {
        let children = self.changed_children(&moves)?;
        let defs: Vec<Option<TableDef>> = {
            let moved = moved(&moves);
            moves
                .iter()
                .map(|step| step.def.foreign_keys_renamed((&step.from.0, &step.from.1), &moved))
                .collect()
        };
        for (step, def) in moves.iter_mut().zip(defs) {
            step.def = def.unwrap_or_else(|| step.def.clone());
        }
        // A table that nobody knew begins now: a view from before must not take it for an empty one.
        for step in moves.iter_mut().filter(|step| is_private(&step.from.0)) {
            step.def.born = self.0.system.birth_number().await?;
        }
        // All that may fail comes before the moment: so does opening the tables under their new names.
        let mut fresh = Vec::new();
        for step in &moves {
            self.store_counter(&step.table).await?;
            let table = self.assemble_table(&step.to.0, &step.to.1, step.def.clone()).await?;
            table.continue_counts(&step.table);
            fresh.push(table);
        }
        for (child, def) in &children {
            self.store_counter(child).await?;
            let table = self.assemble_table(&child.database, &child.name, def.clone()).await?;
            table.continue_counts(child);
            fresh.push(table);
        }
        self.0.catalog.change(|change| {
            for step in &moves {
                if step.path == step.final_path() {
                    self.refuse_stray_file(change, &step.to.0, &step.to.1)?;
                }
                let (from, to) = (step.old_path.clone(), step.path.clone());
                change.begin(DdlLogEntry::Rename { space: step.space(), from, to })?;
            }
            Ok(())
        })?;
        if let Err(error) = self.rename_files(&moves, &children, &views) {
            self.take_files_back(&moves);
            return Err(error);
        }
        // First the new ones: there is no moment at which purge would find no table of that id and give up
        // its work.
        for table in &fresh {
            self.publish_table(table);
        }
        for step in &moves {
            self.forget_table(&step.table);
        }
        for table in &fresh {
            self.note_references(&table.def.foreign_keys);
        }
        self.definitions_changed();
        for step in moves.iter().filter(|step| step.path != step.final_path()) {
            // A start does it otherwise.
            let _ = self.take_name(step.space(), &step.final_path(), None);
        }
        Ok(())
    }

    /// Renames the files, and then the tables.
    fn rename_files(
        &self,
        moves: &[Move],
        children: &[(Arc<Table>, TableDef)],
        views: &[ViewMove],
    ) -> Result<()> {
        for step in moves {
            self.0.store.rename_space(step.space(), &self.0.directory.join(&step.path))?;
        }
        self.0.catalog.change(|change| {
            for step in moves {
                change.finish(|work| work.moves() && work.space() == Some(step.space()))?;
                change.remove_table(&step.from.0, &step.from.1)?;
            }
            for step in moves {
                let space = step.space();
                if step.path != step.final_path() {
                    let (from, to) = (step.path.clone(), step.final_path());
                    change.begin(DdlLogEntry::Replace { space, from, to, replaced: 0, imported: false })?;
                }
                change.put_table(&step.to.0, &step.to.1, Arc::new(step.def.clone()))?;
            }
            for (child, def) in children {
                change.put_table(&child.database, &child.name, Arc::new(def.clone()))?;
            }
            // First all old names go: views may swap theirs.
            let mut defs = Vec::with_capacity(views.len());
            for step in views {
                defs.push(change.drop_view(&step.from.0, &step.from.1)?);
            }
            views.iter().zip(defs).try_for_each(|(step, def)| change.put_view(&step.to.0, &step.to.1, def))
        })
    }

    /// Gives the files their old names again. Where that fails too the table goes on with its file under
    /// another name, and the next start gives it back.
    fn take_files_back(&self, moves: &[Move]) {
        if self.0.catalog.is_uncertain() {
            // After a crash the tables may have either name.
            return;
        }
        for step in moves.iter().rev() {
            self.take_file_back(&step.table, &step.old_path);
        }
    }

    /// Gives a table's file the name again that it had before a statement failed. Where that is the table's
    /// own, nothing is left to be done; elsewhere an earlier statement left it there, and its entry says
    /// where the file is.
    pub(crate) fn take_file_back(&self, table: &Table, old_path: &Path) {
        let space = table.def.space;
        // Also where it has that name: whether that is durable is not known.
        match self.0.store.rename_space(space, &self.0.directory.join(old_path)) {
            Ok(()) if *old_path == table.file() => {
                self.finish_pending(|work| work.moves() && work.space() == Some(space));
            }
            Ok(()) => {}
            Err(error) => {
                tracing::error!("{} will get its name back at the next start: {error}", old_path.display());
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use txn::TableSource;

    use super::*;
    use crate::Options;
    use crate::schema::ColumnDef;
    use crate::types::{Collation, ColumnType};

    /// Purge looks tables up by their ids and takes one it does not find for dropped: what it should have
    /// removed stays for ever.
    #[test]
    fn a_table_is_there_for_purge_while_it_is_renamed() {
        let place = std::env::temp_dir().join(format!("untorn-rename-{}", std::process::id()));
        let mut options = Options::new(&place).buffer_pool_bytes(8 << 20);
        options.redo_capacity_bytes = 8 << 20;
        let db = disk::block_on(Database::open(options)).unwrap();
        disk::block_on(db.create_database("d", Collation::Utf8mb4Bin)).unwrap();
        let def = TableDef::new(vec![ColumnDef::new("id", ColumnType::bigint())]).primary_key(&["id"]);
        disk::block_on(db.create_table("d", "a", def)).unwrap();
        let id = db.table("d", "a").unwrap().def.id;
        let over = AtomicBool::new(false);
        let found_always = std::thread::scope(|scope| {
            let looks = scope.spawn(|| {
                let mut found = true;
                while !over.load(Ordering::Acquire) {
                    found &= db.0.tables.table(id).is_some();
                }
                found
            });
            for round in 0..150 {
                let (from, to) = if round % 2 == 0 { ("a", "b") } else { ("b", "a") };
                disk::block_on(db.rename_table(("d", from), ("d", to))).unwrap();
            }
            over.store(true, Ordering::Release);
            looks.join().unwrap()
        });
        assert!(found_always);
        disk::block_on(db.close()).unwrap();
        drop(db);
        std::fs::remove_dir_all(place).unwrap();
    }
}
