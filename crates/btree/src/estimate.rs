//! How many records a range of keys has, and how many different keys a tree has, without reading all of
//! it.
//!
//! A range is estimated by two descents, one to each end. While both are on the same page the ends are as
//! far apart as their records there; from the page on where they part, what lies between them is counted
//! on each level: the records behind the one end on its page, those in front of the other, and for each
//! page between the mean of these two pages. Of leaves between, the first few are looked at, too. So a
//! range of few leaves is counted, and any other costs a few pages more than its two descents.
//!
//! Keys are counted by a sample: on each level some pages of those that the level above names, chosen
//! evenly, which also says how many leaves there are. Of a sorted sequence the number of different values
//! is one more than the number of places where two neighbours differ; so the share of such places on the
//! leaves that were looked at is that of the tree. Where a value fills several pages, a leaf with such a
//! place is found by chance: there the node pointers above the leaves are counted the same way.

use std::ops::Bound as Limit;

use pagestore::page as fil;
use pagestore::{Interrupt, PageRead};

use crate::compare::{SearchKey, compare_fields};
use crate::descend::Target;
use crate::key::OwnedKey;
use crate::page::search::{Bound, search};
use crate::page::{Malformed, header, records};
use crate::record::RecordRef;
use crate::tree::Tree;

/// Leaves that a sample looks at, as `innodb_stats_persistent_sample_pages` has it.
pub const SAMPLED_LEAVES: usize = 20;

/// Pages of each other level that it looks at.
const SAMPLED_ABOVE: usize = 64;

/// Leaves behind the first that are looked at on the way to the last one of a range. (InnoDB: ten in all.)
const LEAVES_BETWEEN: usize = 8;

/// How often two descents are made again when the tree has grown between them.
const TRIES: usize = 3;

/// Where a descent was on a page.
struct Turn {
    page: u32,
    /// Records up to the one taken.
    rank: usize,
    /// Records of the page.
    records: usize,
}

/// From the root to a leaf.
type Way = smallvec::SmallVec<[Turn; 6]>;

/// Which record an end of a range is just behind.
enum EndOf<'k> {
    First,
    Last,
    Key(SearchKey<'k>, Bound),
}

/// How many records a page has up to the one at `origin`.
fn rank(page: &[u8], origin: usize) -> Result<usize, Malformed> {
    if origin == header::INFIMUM {
        return Ok(0);
    }
    for (at, record) in records(page).enumerate() {
        if record? == origin {
            return Ok(at + 1);
        }
    }
    Err(Malformed("a record is not in its page's list"))
}

/// How many leading fields of two records are equal, of the first `wanted`.
fn equal_fields(left: &OwnedKey, right: RecordRef<'_>, wanted: usize) -> usize {
    let def = right.def();
    let pairs = left.fields().into_iter().zip(right.fields()).zip(&def.fields).take(wanted);
    for (at, ((left, right), field)) in pairs.enumerate() {
        if compare_fields(field.compare, left, right.inline()).is_ne() {
            return at;
        }
    }
    wanted
}

impl Tree {
    /// About how many records lie between two ends, delete-marked ones included. An end with fewer fields
    /// than the key stands for all records that begin so.
    ///
    /// # Errors
    /// [`Interrupt`] of the page store: await and call again.
    pub fn estimate_range(&self, lower: &Limit<OwnedKey>, upper: &Limit<OwnedKey>) -> Result<u64, Interrupt> {
        let fields_of = |limit: &Limit<OwnedKey>| match limit {
            Limit::Included(key) | Limit::Excluded(key) => key.clone(),
            Limit::Unbounded => OwnedKey::new(),
        };
        let (low, high) = (fields_of(lower), fields_of(upper));
        let (low, high) = (low.fields(), high.fields());
        let low = match lower {
            Limit::Unbounded => EndOf::First,
            Limit::Included(_) => EndOf::Key(SearchKey::new(&self.def, &low), Bound::Less),
            Limit::Excluded(_) => EndOf::Key(SearchKey::new(&self.def, &low), Bound::LessOrEqual),
        };
        let high = match upper {
            Limit::Unbounded => EndOf::Last,
            Limit::Included(_) => EndOf::Key(SearchKey::new(&self.def, &high), Bound::LessOrEqual),
            Limit::Excluded(_) => EndOf::Key(SearchKey::new(&self.def, &high), Bound::Less),
        };
        let mut tries = 0;
        loop {
            let (from, to) = (self.way(&low)?, self.way(&high)?);
            tries += 1;
            if from.len() == to.len() || tries >= TRIES {
                let leaves = match (from.last(), to.last()) {
                    (Some(from), Some(to)) if from.page != to.page => self.leaves_between(from, to)?,
                    _ => Leaves::default(),
                };
                return Ok(between(&from, &to, &leaves));
            }
        }
    }

    /// Looks at the leaves behind the first one of a range.
    fn leaves_between(&self, from: &Turn, to: &Turn) -> Result<Leaves, Interrupt> {
        let mut found = Leaves::default();
        let mut page = self.store.read(self.page_id(from.page))?;
        while found.pages <= LEAVES_BETWEEN && self.check_child(&page, from.page, 0).is_ok() {
            let next = fil::next(&page);
            if next == to.page {
                found.all = true;
                break;
            }
            if next == fil::NULL_PAGE || found.pages == LEAVES_BETWEEN {
                break;
            }
            // Left before right, as all who read along the leaves.
            page = self.store.read(self.page_id(next))?;
            found.pages += 1;
            found.records += header::n_recs(&page);
        }
        Ok(found)
    }

    fn way(&self, end: &EndOf<'_>) -> Result<Way, Interrupt> {
        let target = match end {
            EndOf::First => Target::Leftmost,
            EndOf::Last => Target::Rightmost,
            EndOf::Key(key, bound) => Target::Key(key, *bound),
        };
        let mut way = Way::new();
        let mut number = self.root;
        let mut page = self.store.read(self.page_id(number))?;
        self.check_page(&page, number)?;
        loop {
            let damaged = |what| self.malformed(number, what);
            let level = header::level(&page);
            let count = header::n_recs(&page);
            if level == 0 {
                let rank = match end {
                    EndOf::First => 0,
                    EndOf::Last => count,
                    EndOf::Key(key, bound) => {
                        let found = search(&page, &self.def, key, *bound).map_err(damaged)?;
                        rank(&page, found.offset).map_err(damaged)?
                    }
                };
                way.push(Turn { page: number, rank, records: count });
                return Ok(way);
            }
            let origin = self.pointer(&page, target).map_err(damaged)?;
            let rank = rank(&page, origin).map_err(damaged)?;
            way.push(Turn { page: number, rank, records: count });
            number = RecordRef::new(&page, origin, &self.def).child();
            // As a reader does: the parent is held until the child is there.
            let child = self.store.read(self.page_id(number))?;
            self.check_child(&child, number, level - 1)?;
            page = child;
        }
    }

    /// Begins a sample.
    pub fn sample(&self) -> Sample {
        Sample {
            pages: vec![self.root],
            at: 0,
            level: None,
            scale: 1.0,
            below: Vec::new(),
            all: true,
            above: vec![0; self.def.n_unique],
            differing: vec![0; self.def.n_unique],
            neighbours: 0,
            records: 0,
            seen: 0,
            last: None,
            leaves: 0.0,
            pages_above: 0.0,
        }
    }

    /// Looks at one page more; `true` when the sample is complete.
    ///
    /// # Errors
    /// [`Interrupt`] of the page store: await and call again.
    pub fn sample_step(&self, sample: &mut Sample) -> Result<bool, Interrupt> {
        let Some(number) = sample.pages.get(sample.at).copied() else {
            return Ok(sample.descend());
        };
        let page = self.store.read(self.page_id(number))?;
        if sample.level.is_none() {
            // The root has neither moved nor become another tree's.
            self.check_page(&page, number)?;
        }
        sample.at += 1;
        // The page may have been freed since its parent was read, and be another's now.
        let own = fil::page_type(&page) == fil::kind::INDEX
            && header::is_compact(&page)
            && header::index_id(&page) == self.def.id
            && sample.level.is_none_or(|level| level == header::level(&page));
        if own {
            sample.level = Some(header::level(&page));
            self.count(&page, sample).map_err(|what| self.malformed(number, what))?;
        } else {
            sample.all = false;
            sample.last = None;
        }
        Ok(false)
    }

    /// Counts what is on a page of the level that the sample is on.
    fn count(&self, page: &PageRead, sample: &mut Sample) -> Result<(), Malformed> {
        let leaf = header::level(page) == 0;
        let counted = if leaf { self.def.n_unique } else { self.def.n_unique.min(sample.above.len()) };
        // Neighbours on two pages are neighbours in the tree only if no page was left out.
        let mut last = sample.last.take().filter(|_| sample.all);
        sample.seen += 1;
        for origin in records(page) {
            let record = RecordRef::new(page, origin?, &self.def);
            if !leaf {
                sample.below.push(record.child());
            }
            if record.is_deleted() || record.is_instant() {
                continue;
            }
            if leaf {
                sample.records += 1;
            }
            if let Some(last) = &last
                && !record.is_min_rec()
            {
                let equal = equal_fields(last, record, counted);
                let differing = if leaf { &mut sample.differing } else { &mut sample.above };
                differing.iter_mut().skip(equal).for_each(|count| *count += 1);
                sample.neighbours += u64::from(leaf);
            }
            let key = last.get_or_insert_default();
            key.set_from_record(record, counted);
        }
        sample.last = last;
        Ok(())
    }
}

/// Leaves between two others.
#[derive(Default)]
struct Leaves {
    pages: usize,
    records: usize,
    /// There are no more.
    all: bool,
}

/// How many records lie between two ways through the tree.
fn between(from: &Way, to: &Way, leaves: &Leaves) -> u64 {
    // Pages between the two on the level at hand, once they have parted.
    let mut apart: Option<f64> = None;
    let deepest = from.len().min(to.len()) - 1;
    for (level, (from, to)) in from.iter().zip(to).enumerate() {
        let leaf = level == deepest;
        if from.page == to.page {
            // An end that comes before the other way round leaves nothing between.
            let Some(distance) = to.rank.checked_sub(from.rank) else { return 0 };
            if leaf {
                return distance as u64;
            }
            apart = distance.checked_sub(1).map(|pages| pages as f64);
            continue;
        }
        let behind = from.records.saturating_sub(from.rank) as f64;
        let before = if leaf { to.rank } else { to.rank.saturating_sub(1) } as f64;
        if leaf && leaves.all {
            return (behind + before) as u64 + leaves.records as u64;
        }
        let mean = match leaf {
            true => (from.records + to.records + leaves.records) as f64 / (2 + leaves.pages) as f64,
            // The first and the last page of a level are often nearly empty.
            false => from.records.max(to.records) as f64,
        };
        apart = Some(behind + before + apart.unwrap_or(0.0) * mean);
    }
    apart.unwrap_or(0.0) as u64
}

/// A sample of a tree's pages, from the root to the leaves.
pub struct Sample {
    /// Pages of the level at hand that are looked at.
    pages: Vec<u32>,
    at: usize,
    level: Option<u16>,
    /// Pages of the level for each that is looked at.
    scale: f64,
    /// Pages that they name.
    below: Vec<u32>,
    /// No page was left out so far.
    all: bool,
    /// Differing neighbours among the node pointers above the leaves, for each number of fields.
    above: Vec<u64>,
    /// And among the records of the leaves.
    differing: Vec<u64>,
    /// Neighbouring records of leaves.
    neighbours: u64,
    records: u64,
    /// Pages of the level that were looked at.
    seen: usize,
    last: Option<OwnedKey>,
    leaves: f64,
    /// Pages above the leaves.
    pages_above: f64,
}

/// What a sample says of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Estimate {
    /// Records that are not delete-marked.
    pub records: u64,
    /// Pages of leaves.
    pub leaf_pages: u64,
    /// All pages.
    pub pages: u64,
    /// Different values of the first field, of the first two, and so on.
    pub distinct: Vec<u64>,
    /// Leaves that were looked at.
    pub sampled: u64,
}

impl Sample {
    /// Goes to the level below; `true` when there is none.
    fn descend(&mut self) -> bool {
        let level = self.level.unwrap_or(0);
        let of_level = self.pages.len() as f64 * self.scale;
        if level == 0 {
            self.leaves = of_level;
            return true;
        }
        self.pages_above += of_level;
        if level > 1 {
            // Only the pointers just above the leaves say anything of values that fill pages.
            self.above.iter_mut().for_each(|count| *count = 0);
        } else {
            let scale = self.scale;
            self.above.iter_mut().for_each(|count| *count = (*count as f64 * scale) as u64);
        }
        let most = if level == 1 { SAMPLED_LEAVES } else { SAMPLED_ABOVE };
        let named = std::mem::take(&mut self.below);
        let chosen = evenly(&named, most);
        self.scale *= named.len() as f64 / chosen.len().max(1) as f64;
        self.all &= chosen.len() == named.len();
        self.pages = chosen;
        (self.at, self.seen, self.last) = (0, 0, None);
        self.level = Some(level - 1);
        false
    }

    /// What the sample says.
    pub fn estimate(&self) -> Estimate {
        let seen = self.seen.max(1) as f64;
        let records = (self.records as f64 * self.leaves / seen).round();
        let share = |differing: u64| match self.neighbours {
            0 => 0.0,
            neighbours => differing as f64 / neighbours as f64,
        };
        let of_prefix = |(differing, above): (&u64, &u64)| {
            if records < 1.0 {
                return 0;
            }
            let on_leaves = (1.0 + (records - 1.0) * share(*differing)).round() as u64;
            let above = (*above + 1).min(records as u64);
            // Values that fill several pages: hardly two of them end on one.
            let fills_pages = !self.all && above as f64 * 3.0 < self.leaves;
            if fills_pages { above } else { on_leaves.max(above) }
        };
        Estimate {
            records: records as u64,
            leaf_pages: self.leaves.round() as u64,
            pages: (self.leaves + self.pages_above).round() as u64,
            distinct: self.differing.iter().zip(&self.above).map(of_prefix).collect(),
            sampled: self.seen as u64,
        }
    }
}

/// `most` of the pages, one out of each stretch of the same length: which, the numbers decide.
fn evenly(pages: &[u32], most: usize) -> Vec<u32> {
    if pages.len() <= most {
        return pages.to_vec();
    }
    let mut random = pages.len() as u64 ^ u64::from(pages[0]) << 32;
    let stretch = |at: usize| {
        let (from, to) = (at * pages.len() / most, (at + 1) * pages.len() / most);
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        pages[from + (random >> 33) as usize % (to - from)]
    };
    (0..most).map(stretch).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(turns: &[(u32, usize, usize)]) -> Way {
        turns
            .iter()
            .map(|(page, rank, records)| Turn { page: *page, rank: *rank, records: *records })
            .collect()
    }

    #[test]
    fn what_lies_between_two_ways() {
        let none = Leaves::default();
        let between = |from: &Way, to: &Way| between(from, to, &none);
        assert_eq!(between(&way(&[(3, 2, 9)]), &way(&[(3, 7, 9)])), 5, "one leaf");
        assert_eq!(between(&way(&[(3, 7, 9)]), &way(&[(3, 2, 9)])), 0, "the wrong way round");
        let (from, to) = (way(&[(3, 1, 4), (5, 90, 100)]), way(&[(3, 2, 4), (6, 10, 100)]));
        assert_eq!(between(&from, &to), 20, "two neighbours are counted");
        let (from, to) = (way(&[(3, 1, 4), (5, 90, 100)]), way(&[(3, 4, 4), (8, 10, 100)]));
        assert_eq!(between(&from, &to), 220, "the two between have as many as these");
        let from = way(&[(3, 1, 2), (4, 10, 10), (20, 0, 100)]);
        let to = way(&[(3, 2, 2), (5, 1, 10), (30, 100, 100)]);
        assert_eq!(between(&from, &to), 200, "neighbours under two parents");
    }

    #[test]
    fn pages_are_chosen_evenly() {
        let pages: Vec<u32> = (0..1000).collect();
        let chosen = evenly(&pages, 20);
        assert_eq!(chosen.len(), 20);
        for (at, page) in chosen.iter().enumerate() {
            assert_eq!(*page as usize / 50, at);
        }
        assert_eq!(evenly(&pages[..7], 20), &pages[..7]);
    }
}
