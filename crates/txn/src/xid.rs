//! Names of distributed transactions, as X/Open's XA has them: a global transaction, and a branch of it.

use std::fmt;

/// Bytes of each part at most.
const PART_MAX: usize = 64;

/// Names a prepared transaction: its global transaction (`gtrid`), the branch (`bqual`), each up to 64 bytes,
/// and a number that says what they are made of.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Xid {
    gtrid: Box<[u8]>,
    bqual: Box<[u8]>,
    format_id: i64,
}

impl Xid {
    /// `None` when a part is longer than 64 bytes.
    ///
    /// ```
    /// # use untorn_txn as untorn;
    /// let xid = untorn::Xid::new(1, b"order 4711", b"stock").unwrap();
    /// assert_eq!(xid.to_string(), "'order 4711','stock',1");
    /// assert!(untorn::Xid::new(1, &[0; 65], b"").is_none());
    /// ```
    #[must_use]
    pub fn new(format_id: i64, gtrid: &[u8], bqual: &[u8]) -> Option<Xid> {
        let fits = gtrid.len() <= PART_MAX && bqual.len() <= PART_MAX;
        fits.then(|| Xid { gtrid: gtrid.into(), bqual: bqual.into(), format_id })
    }

    /// What the parts are made of; 1 where nobody said otherwise.
    pub fn format_id(&self) -> i64 {
        self.format_id
    }

    /// The global transaction.
    pub fn gtrid(&self) -> &[u8] {
        &self.gtrid
    }

    /// The branch.
    pub fn bqual(&self) -> &[u8] {
        &self.bqual
    }
}

/// As XA COMMIT takes it: text where the bytes are, else hexadecimal.
impl fmt::Display for Xid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_plain = |byte: &u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'\'' | b'\\');
        for part in [&self.gtrid, &self.bqual] {
            if part.iter().all(is_plain) {
                write!(f, "'{}',", String::from_utf8_lossy(part))?;
            } else {
                write!(f, "X'")?;
                part.iter().try_for_each(|byte| write!(f, "{byte:02X}"))?;
                write!(f, "',")?;
            }
        }
        write!(f, "{}", self.format_id)
    }
}

impl fmt::Debug for Xid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Xid({self})")
    }
}
