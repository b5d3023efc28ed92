//! Which index of the file is which index of the table.
//!
//! A `.cfg` file, once it agrees with the definition (`cfg_comparison.rs`), names the indexes. Without one
//! the definition is trusted: as in MySQL, the roots in the order of their page numbers are the table's
//! indexes in their order. If that is not so, the check of the finished copy finds entries that do not belong
//! to the rows.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use btree::IndexDef;

use super::survey::Survey;
use crate::error::{Error, Result};
use crate::export::cfg::Description;
use crate::layout;
use crate::schema::TableDef;

/// What becomes of a file.
pub(super) struct Plan {
    /// The table's definition with its new ids and the roots of the file.
    pub def: TableDef,
    /// The indexes, by the file's index ids.
    pub indexes: HashMap<u64, Arc<IndexDef>>,
    /// Their roots, and that of MySQL's copy of the dictionary.
    pub roots: BTreeSet<u32>,
    /// That copy: its root, and the index id that it gets until it is removed.
    pub sdi: Option<(u32, u64)>,
    /// Greatest AUTO_INCREMENT value that the `.cfg` file knows of; 0 without.
    pub auto_increment: u64,
}

impl Plan {
    /// Finds the table's indexes among the file's. `def` has its new ids already.
    ///
    /// # Errors
    /// [`Error::SchemaMismatch`]: the file has other indexes.
    pub fn new(path: &Path, survey: &Survey, mut def: TableDef, cfg: Option<&Description>) -> Result<Plan> {
        let mismatch = |why: String| Error::SchemaMismatch { file: path.to_owned(), why };
        let wanted = def.keys.len() + usize::from(def.hidden_clustered.is_some());
        if survey.roots.len() != wanted {
            let found: Vec<_> =
                survey.roots.iter().map(|(id, (root, _))| format!("{id} at page {root}")).collect();
            return Err(mismatch(format!(
                "it has {} indexes ({}), the table's definition {wanted}",
                found.len(),
                found.join(", ")
            )));
        }
        let mut by_page: Vec<(u32, u64)> = survey.roots.iter().map(|(id, (root, _))| (*root, *id)).collect();
        by_page.sort_unstable();
        let mut in_order = by_page.into_iter();
        let mut find = |name: &str| -> Result<(u32, u64)> {
            let Some(cfg) = cfg else {
                return in_order.next().ok_or_else(|| mismatch(format!("there is no root for index {name}")));
            };
            let said = cfg.indexes.iter().find(|index| index.name.eq_ignore_ascii_case(name));
            let said = said.ok_or_else(|| mismatch(format!("the .cfg file has no index {name}")))?;
            match survey.roots.get(&said.id) {
                Some((root, _)) if *root == said.root => Ok((*root, said.id)),
                found => Err(mismatch(format!(
                    "the .cfg file says that index {name} has id {} and root {}, but the root of that id is {:?}",
                    said.id,
                    said.root,
                    found.map(|(root, _)| root)
                ))),
            }
        };
        let mut indexes = HashMap::new();
        if let Some((id, _)) = def.hidden_clustered {
            let (root, theirs) = find(layout::HIDDEN_CLUSTERED)?;
            def.hidden_clustered = Some((id, root));
            indexes.insert(theirs, Arc::new(layout::clustered(&def).def));
        }
        for at in 0..def.keys.len() {
            let (root, theirs) = find(&def.keys[at].name)?;
            def.keys[at].root = root;
            let clustered = at == 0 && def.clustered_key().is_some();
            let index = if clustered {
                layout::clustered(&def).def
            } else {
                layout::secondary(&def, &def.keys[at]).def
            };
            indexes.insert(theirs, Arc::new(index));
        }
        let roots = survey.roots.values().map(|(root, _)| *root).collect();
        let auto_increment = cfg.map_or(0, |cfg| cfg.auto_increment.saturating_sub(1));
        Ok(Plan { def, indexes, roots, sdi: None, auto_increment })
    }
}
