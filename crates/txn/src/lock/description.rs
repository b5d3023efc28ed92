//! What a lock is on, in words: for the text about a deadlock and for lists of locks.
//!
//! A leaf is latched when a wait begins, so only bytes are copied then; the words are made when somebody
//! reads them.

use std::fmt;

use smallvec::SmallVec;

/// Bytes of a field that are shown.
const SHOWN: usize = 32;

/// An index entry, or the end of an index: what a lock is on.
#[derive(Debug, Clone, Default)]
pub struct LockDescription {
    index: Box<str>,
    id: u64,
    /// `None`: the supremum.
    key: Option<SmallVec<[Shown; 2]>>,
}

/// The first bytes of a field; `None` is NULL.
type Shown = Option<SmallVec<[u8; SHOWN]>>;

impl LockDescription {
    /// The end of an index.
    pub(crate) fn end(index: &str, id: u64) -> LockDescription {
        LockDescription { index: index.into(), id, key: None }
    }

    /// The index's name.
    pub fn index(&self) -> &str {
        &self.index
    }

    /// Whether it is the end of the index.
    pub fn is_end(&self) -> bool {
        self.key.is_none()
    }

    /// The index's number.
    pub fn index_id(&self) -> u64 {
        self.id
    }

    /// The fields of the key; `None` for the end of an index, and where they may have been cut.
    pub fn whole_key(&self) -> Option<impl Iterator<Item = Option<&[u8]>>> {
        let whole = |field: &Shown| field.as_ref().is_none_or(|bytes| bytes.len() < SHOWN);
        let key = self.key.as_ref().filter(|key| key.iter().all(whole))?;
        Some(key.iter().map(Option::as_deref))
    }

    /// The fields of the key, each cut where it is long.
    pub fn key(&self) -> impl Iterator<Item = Option<&[u8]>> {
        self.key.iter().flatten().map(|field| field.as_deref())
    }

    /// An entry with this key.
    pub(crate) fn entry<'a>(
        index: &str,
        id: u64,
        key: impl Iterator<Item = Option<&'a [u8]>>,
    ) -> LockDescription {
        let shown = |field: Option<&[u8]>| field.map(|bytes| bytes.iter().copied().take(SHOWN).collect());
        LockDescription { index: index.into(), id, key: Some(key.map(shown).collect()) }
    }
}

impl fmt::Display for LockDescription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "index {} (id {}), ", self.index, self.id)?;
        let Some(key) = &self.key else { return f.write_str("supremum") };
        f.write_str("key")?;
        for field in key {
            match field {
                None => f.write_str(" NULL")?,
                Some(bytes) => {
                    f.write_str(" 0x")?;
                    bytes.iter().try_for_each(|byte| write!(f, "{byte:02X}"))?;
                }
            }
        }
        Ok(())
    }
}
