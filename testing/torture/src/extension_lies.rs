//! Does the buffer pool extension account for every lie of the disk under it?
//!
//! The disk knows which reads of the tier's file were [false](FalseRead); the tier says what it found wrong.
//! The two know nothing of each other, and have to agree:
//!
//! - A read of a slot by someone who wants its page: the file was asked for exactly what had been stored
//!   there, so it is false if and only if the comparison fails, and then the buffer pool goes to the data
//!   file. Those are equal, to the one: false reads of slots, and the buffer pool's fallbacks without those
//!   for reads that failed.
//! - Of these the tier counts a mismatch of its kind, unless the entry went while its slot was read
//!   ("overtaken"): what came back is then nobody's loss, and no kind is counted.
//! - A region that is cleaned is read as a whole, and of its slots only those are compared that were hit and
//!   fit into what may be saved. What is wrong in the others nobody looks at, so here the false slots are an
//!   upper bound.

use crate::history::{History, Plan};
use disk::FalseRead;

/// Pages by what was wrong with them.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Kinds {
    /// Another page.
    pub misdirected: u64,
    /// Another version.
    pub stale: u64,
    /// Damaged.
    pub corrupt: u64,
}

impl Kinds {
    /// All of them.
    pub fn sum(&self) -> u64 {
        self.misdirected + self.stale + self.corrupt
    }

    /// Counts a page that should have been `honest`.
    fn add(&mut self, honest: &[u8], returned: &[u8]) {
        let whole = page::verify(returned).is_ok() && returned.iter().any(|byte| *byte != 0);
        let kind = match (whole, page::identity(honest) == page::identity(returned)) {
            (true, false) => &mut self.misdirected,
            (true, true) if page::lsn(honest) != page::lsn(returned) => &mut self.stale,
            _ => &mut self.corrupt,
        };
        *kind += 1;
    }

    /// By kind, with names.
    fn each(&self) -> [(&'static str, u64); 3] {
        [("misdirected", self.misdirected), ("stale", self.stale), ("corrupt", self.corrupt)]
    }
}

/// What the disk did, and what the tier counted.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Account {
    /// False reads of one slot, as the disk knows them.
    pub slots: Kinds,
    /// False slots in reads of whole regions.
    pub in_regions: Kinds,
    /// What the tier counted.
    pub counted: Kinds,
    /// Reads that the tier says were overtaken.
    pub overtaken: u64,
    /// Reads with which the buffer pool went on to the data file.
    pub fallbacks: u64,
    /// Pages served.
    pub served: u64,
}

impl Account {
    /// Draws up the account of a history whose disk was watched.
    pub fn of(plan: &Plan, history: &History) -> Option<Account> {
        let tier = history.tier.as_ref()?;
        let mut account = Account {
            counted: Kinds {
                misdirected: tier.mismatches_misdirected,
                stale: tier.mismatches_stale,
                corrupt: tier.mismatches_corrupt,
            },
            overtaken: tier.overtaken,
            fallbacks: history.figure("Untorn_bpe_fallbacks") - tier.read_errors,
            served: tier.hits,
            ..Account::default()
        };
        let page_bytes = plan.options().page_size? as usize;
        for read in history.false_reads.iter().filter(|read| is_of_pages(read)) {
            let kinds =
                if read.honest.len() == page_bytes { &mut account.slots } else { &mut account.in_regions };
            for (honest, returned) in read.honest.chunks(page_bytes).zip(read.returned.chunks(page_bytes)) {
                if honest != returned {
                    kinds.add(honest, returned);
                }
            }
        }
        Some(account)
    }

    /// Whether every false page is accounted for.
    ///
    /// # Errors
    /// What does not add up.
    pub fn settle(&self) -> Result<(), String> {
        if self.slots.sum() != self.fallbacks {
            return Err(format!("the pool fell back {} times, not once for each: {self:?}", self.fallbacks));
        }
        let by_kind = self.slots.each().into_iter().zip(self.in_regions.each()).zip(self.counted.each());
        for (((kind, slots), (_, in_regions)), (_, counted)) in by_kind {
            if counted + self.overtaken < slots || counted > slots + in_regions {
                return Err(format!("the {kind} pages counted are too few or too many: {self:?}"));
            }
        }
        // Without those found in regions, which are few enough.
        let found_reading = self.fallbacks.checked_sub(self.overtaken);
        match found_reading.and_then(|found| self.counted.sum().checked_sub(found)) {
            Some(found_cleaning) if found_cleaning <= self.in_regions.sum() => Ok(()),
            _ => Err(format!("the pages counted do not add up: {self:?}")),
        }
    }

    /// Takes another one in.
    pub fn add(&mut self, other: &Account) {
        for (mine, others) in [
            (&mut self.slots, &other.slots),
            (&mut self.in_regions, &other.in_regions),
            (&mut self.counted, &other.counted),
        ] {
            mine.misdirected += others.misdirected;
            mine.stale += others.stale;
            mine.corrupt += others.corrupt;
        }
        self.overtaken += other.overtaken;
        self.fallbacks += other.fallbacks;
        self.served += other.served;
    }
}

/// Not the header of the file, nor its map.
fn is_of_pages(read: &FalseRead) -> bool {
    let is_map = read.path.extension().is_some_and(|suffix| suffix == "map0" || suffix == "map1");
    read.offset > 0 && !is_map
}
