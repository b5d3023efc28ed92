//! Removing delete-marked records that no undo log knows of: those of a tablespace that comes from elsewhere.

use btree::{OwnedKey, Reference, Seek, Tree};
use pagestore::page::NULL_PAGE;
use smallvec::SmallVec;

use crate::error::{Error, Interrupt};
use crate::retry::retry;
use crate::row::external::{external_references, free_chain_tails};
use crate::row::remove::remove_record;
use crate::system::System;

/// Records looked at between two removals.
const RECORDS_PER_STEP: usize = 512;

/// Removes every delete-marked record of a tree that nobody uses, with the off-page values that it owns.
/// Returns how many there were.
pub(crate) async fn remove_delete_marked(system: &System, tree: &Tree) -> Result<u64, Error> {
    let mut removed = 0;
    let mut last: Option<OwnedKey> = None;
    loop {
        let (marked, end) = retry(|| gather(tree, last.as_ref())).await?;
        for (key, chains) in &marked {
            let fields = key.fields();
            free_chain_tails(tree, chains).await?;
            let is_marked = |record: btree::RecordRef<'_>| Ok(record.is_deleted());
            removed += u64::from(remove_record(system, tree, &fields, is_marked, chains).await?);
        }
        match end {
            Some(key) => last = Some(key),
            None => return Ok(removed),
        }
    }
}

type Marked = Vec<(OwnedKey, SmallVec<[Reference; 2]>)>;

/// The delete-marked ones among the records after `last`, and where to go on.
fn gather(tree: &Tree, last: Option<&OwnedKey>) -> Result<(Marked, Option<OwnedKey>), Interrupt> {
    let mut marked = Marked::new();
    let mut cursor = match last {
        None => tree.seek(&[], Seek::First)?,
        Some(key) => tree.seek(&key.fields(), Seek::After)?,
    };
    let mut key = OwnedKey::new();
    for _ in 0..RECORDS_PER_STEP {
        if !cursor.is_valid() {
            return Ok((marked, None));
        }
        let record = cursor.record();
        key.set_from_record(record, tree.def().n_unique);
        if record.is_deleted() {
            let mut chains = external_references(record);
            // A value that an update took over belongs to the newer record.
            chains.retain(|chain| chain.owner && chain.page != NULL_PAGE && chain.page != 0);
            let mut owned = OwnedKey::new();
            owned.set_from_record(record, tree.def().n_unique);
            marked.push((owned, chains));
        }
        if !cursor.next()? {
            return Ok((marked, None));
        }
    }
    Ok((marked, Some(key)))
}
