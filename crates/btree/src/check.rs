//! Verifying a tree: what `CHECK TABLE` does for each index, and what our own tests do after everything.
//!
//! The tree is walked level by level from the root. Each page is checked by itself
//! ([`crate::page::validate`]); then that its siblings, the order across pages, the node pointers that lead
//! to it and MIN_REC agree; then every chain of off-page bytes that a leaf record owns. The pages reached are
//! reported by segment, so that the caller can compare them with what the tablespace thinks is in use.
//!
//! A check works in steps and latches one page at a time. A structure change in between makes it start over.

use std::cmp::Ordering;
use std::sync::atomic::Ordering::Relaxed;

use pagestore::page::{self as fil, NULL_PAGE};
use pagestore::{Error, Interrupt};

use crate::compare::compare_keys;
use crate::external::{Reference, part_of};
use crate::field::FieldRef;
use crate::key::OwnedKey;
use crate::page::validate::{key_of, validate};
use crate::page::{header, records};
use crate::record::RecordRef;
use crate::tree::Tree;
use crate::without_pin;

/// Problems kept; more than that help nobody.
const PROBLEMS_MAX: usize = 100;
/// Pages looked at in one step.
const PAGES_PER_STEP: usize = 16;
/// How often a check starts over because of structure changes before it gives up.
const RESTARTS_MAX: u32 = 100;

/// What a check found.
#[derive(Debug, Clone, Default)]
pub struct CheckReport {
    /// What is wrong, one sentence each, at most a hundred.
    pub problems: Vec<String>,
    /// Pages of the leaf segment that were reached (leaves other than the root, and off-page chains).
    pub leaf_segment_pages: Vec<u32>,
    /// Pages of the other segment that were reached (the root and the levels above the leaves).
    pub top_segment_pages: Vec<u32>,
    /// Leaf records, delete-marked ones included.
    pub records: u64,
    /// Delete-marked leaf records.
    pub deleted_records: u64,
    /// Levels of the tree.
    pub levels: u32,
    /// Levels below the root that have only one page. Legal, but a file without `.cfg` is not imported
    /// rightly then.
    pub single_page_levels: u32,
}

/// A page that the level above says must exist.
struct Expected {
    page: u32,
    /// Key of the node pointer; `None` where it counts as minus infinity.
    key: Option<OwnedKey>,
}

/// A chain of off-page bytes being followed.
struct Chain {
    next: u32,
    left: u64,
    owner: String,
    /// Its record is delete-marked: purge may have cut pages out behind the first one
    /// ([`Tree::free_chain_step`]) when a crash, or an error, came.
    is_dying: bool,
}

/// A check in progress.
pub struct Checker<'t> {
    tree: &'t Tree,
    report: CheckReport,
    version: u64,
    restarts: u32,
    level: Option<u16>,
    expected: Vec<Expected>,
    at: usize,
    below: Vec<Expected>,
    chains: Vec<Chain>,
    last_key: Option<OwnedKey>,
}

impl<'t> Checker<'t> {
    /// Starts a check. Changes in between make it start over; exclude writers for a sure result.
    pub fn new(tree: &'t Tree) -> Checker<'t> {
        let mut checker = Checker {
            tree,
            report: CheckReport::default(),
            version: 0,
            restarts: 0,
            level: None,
            expected: Vec::new(),
            at: 0,
            below: Vec::new(),
            chains: Vec::new(),
            last_key: None,
        };
        checker.restart();
        checker
    }

    fn restart(&mut self) {
        self.version = self.tree.structure_version.load(Relaxed);
        self.report = CheckReport::default();
        self.level = None;
        self.expected = vec![Expected { page: self.tree.root, key: None }];
        (self.at, self.last_key) = (0, None);
        self.below.clear();
        self.chains.clear();
    }

    fn problem(&mut self, page: u32, what: impl std::fmt::Display) {
        if self.report.problems.len() < PROBLEMS_MAX {
            self.report.problems.push(format!("index {}, page {page}: {what}", self.tree.def.name));
        }
    }

    /// Checks some pages; `true` when done. On an interrupt await and call again.
    ///
    /// # Errors
    /// [`Interrupt::Wait`] for a page; errors other than of single pages.
    pub fn step(&mut self) -> Result<bool, Interrupt> {
        for _ in 0..PAGES_PER_STEP {
            if self.version != self.tree.structure_version.load(Relaxed) {
                self.restarts += 1;
                if self.restarts > RESTARTS_MAX {
                    self.problem(
                        self.tree.root,
                        "not checked completely, because the index kept being split and merged",
                    );
                    return Ok(true);
                }
                self.restart();
            }
            if let Some(chain) = self.chains.pop() {
                self.follow(chain)?;
            } else if self.at < self.expected.len() {
                self.check_page()?;
            } else if self.below.is_empty() {
                return Ok(true);
            } else {
                self.next_level();
            }
        }
        Ok(false)
    }

    fn next_level(&mut self) {
        self.expected = std::mem::take(&mut self.below);
        self.report.single_page_levels += u32::from(self.expected.len() == 1);
        (self.at, self.last_key) = (0, None);
        self.level = self.level.and_then(|level| level.checked_sub(1));
    }

    /// Reads a page; one that cannot be read is a problem, not the end of the check.
    fn read(&mut self, number: u32) -> Result<Option<pagestore::PageRead>, Interrupt> {
        match self.tree.store.read(self.tree.page_id(number)) {
            Ok(page) => Ok(Some(page)),
            Err(Interrupt::Error(error @ (Error::Corrupt { .. } | Error::Io(_)))) => {
                self.problem(number, error);
                Ok(None)
            }
            Err(interrupt) => Err(without_pin(interrupt)),
        }
    }

    fn check_page(&mut self) -> Result<(), Interrupt> {
        let number = self.expected[self.at].page;
        let Some(page) = self.read(number)? else {
            self.at += 1;
            self.last_key = None;
            return Ok(());
        };
        let level = *self.level.get_or_insert_with(|| header::level(&page));
        if number == self.tree.root {
            self.report.levels = u32::from(level) + 1;
        }
        if level == 0 && number != self.tree.root {
            self.report.leaf_segment_pages.push(number);
        } else {
            self.report.top_segment_pages.push(number);
        }
        if self.tree.check_child(&page, number, level).is_err() {
            self.problem(number, "not a page of this level of this index");
        } else {
            let problems = validate(&page, &self.tree.def);
            for problem in &problems {
                self.problem(number, problem);
            }
            self.neighbours(&page, number);
            if problems.is_empty() {
                self.contents(&page, number, level);
            }
        }
        self.at += 1;
        Ok(())
    }

    fn neighbours(&mut self, page: &[u8], number: u32) {
        let left = self.at.checked_sub(1).map_or(NULL_PAGE, |before| self.expected[before].page);
        let right = self.expected.get(self.at + 1).map_or(NULL_PAGE, |after| after.page);
        if fil::previous(page) != left {
            self.problem(number, format!("previous page is {}, not {left}", fil::previous(page) as i32));
        }
        if fil::next(page) != right {
            self.problem(number, format!("next page is {}, not {right}", fil::next(page) as i32));
        }
    }

    fn contents(&mut self, page: &[u8], number: u32, level: u16) {
        let tree = self.tree;
        let def = &tree.def;
        let mut last = None;
        for (index, origin) in records(page).map_while(Result::ok).enumerate() {
            let record = RecordRef::new(page, origin, def);
            let may_be_lowest = level > 0 && self.at == 0 && index == 0;
            if record.is_min_rec() != may_be_lowest {
                self.problem(number, format!("record {origin} has MIN_REC set wrongly"));
            }
            if index == 0 {
                self.first_record(record, number, level);
            }
            if level == 0 {
                self.leaf_record(record, number);
            } else {
                let key = (!record.is_min_rec()).then(|| OwnedKey::from_record(record));
                self.below.push(Expected { page: record.child(), key });
            }
            last = Some(origin);
        }
        match last {
            Some(origin) => {
                // The key of a MIN_REC pointer means nothing: it is below all others whatever it says.
                let record = RecordRef::new(page, origin, def);
                self.last_key = (!record.is_min_rec()).then(|| OwnedKey::from_record(record));
            }
            None if level == 0 && number == tree.root => {}
            None => self.problem(number, "no records, though it is not an empty root"),
        }
    }

    fn first_record(&mut self, record: RecordRef<'_>, number: u32, level: u16) {
        let def = &self.tree.def;
        let first = key_of(record);
        if self
            .last_key
            .as_ref()
            .is_some_and(|last| compare_keys(def, &last.fields(), &first) != Ordering::Less)
        {
            self.problem(number, "its first record is not above the last one of the page before");
        }
        let order = self.expected[self.at].key.as_ref().map(|key| compare_keys(def, &key.fields(), &first));
        let fits = match order {
            None => true,
            Some(order) if level == 0 => order != Ordering::Greater,
            Some(order) => order == Ordering::Equal,
        };
        if !fits {
            self.problem(number, "its first record does not agree with the node pointer to it");
        }
    }

    fn leaf_record(&mut self, record: RecordRef<'_>, number: u32) {
        self.report.records += 1;
        self.report.deleted_records += u64::from(record.is_deleted());
        if !record.has_external() {
            return;
        }
        for (index, field) in record.fields().enumerate() {
            let FieldRef::External { reference, .. } = field else { continue };
            let reference = Reference::read(reference);
            let owner = format!(
                "field {} of record {} of page {number}",
                self.tree.def.fields[index].name,
                record.origin()
            );
            if reference.owner && reference.page != 0 {
                self.chains.push(Chain {
                    next: reference.page,
                    left: u64::from(reference.len),
                    owner,
                    is_dying: record.is_deleted(),
                });
            }
        }
    }

    /// Looks at one page of a chain.
    fn follow(&mut self, mut chain: Chain) -> Result<(), Interrupt> {
        if chain.next == NULL_PAGE || chain.left == 0 {
            let is_whole = chain.next == NULL_PAGE && chain.left == 0;
            let is_cut = chain.next == NULL_PAGE && chain.is_dying;
            if !is_whole && !is_cut {
                self.problem(
                    self.tree.root,
                    format!("the off-page value of {} is not as long as its reference says", chain.owner),
                );
            }
            return Ok(());
        }
        let number = chain.next;
        let page = match self.read(number) {
            Ok(Some(page)) => page,
            Ok(None) => return Ok(()),
            Err(interrupt) => {
                self.chains.push(chain);
                return Err(interrupt);
            }
        };
        self.report.leaf_segment_pages.push(number);
        match part_of(&page) {
            Ok((part, next)) => {
                chain.left = chain.left.saturating_sub(part.len() as u64);
                chain.next = next;
                self.chains.push(chain);
            }
            Err(why) => self.problem(number, format!("{why}, in the value of {}", chain.owner)),
        }
        Ok(())
    }

    /// What was found.
    pub fn into_report(self) -> CheckReport {
        self.report
    }
}
