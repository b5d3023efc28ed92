//! Verifying a tree.

use pagestore::Interrupt;

use crate::tree::Tree;

/// What a check found.
#[derive(Debug, Clone, Default)]
pub struct CheckReport {
    /// What is wrong, one sentence each, at most a hundred.
    pub problems: Vec<String>,
    /// Pages of the leaf segment that were reached (leaves and off-page chains).
    pub leaf_segment_pages: Vec<u32>,
    /// Pages of the other segment that were reached (the root and the levels above the leaves).
    pub top_segment_pages: Vec<u32>,
    /// Leaf records, delete-marked ones included.
    pub records: u64,
    /// Delete-marked leaf records.
    pub deleted_records: u64,
}

/// A check in progress.
pub struct Checker<'t> {
    #[allow(dead_code)]
    tree: &'t Tree,
    report: CheckReport,
}

#[allow(unused_variables, clippy::todo)]
impl<'t> Checker<'t> {
    /// Starts a check. Changes in between make it start over; exclude writers for a sure result.
    pub fn new(tree: &'t Tree) -> Checker<'t> {
        Checker { tree, report: CheckReport::default() }
    }

    /// Checks some pages; `true` when done. On an interrupt await and call again.
    pub fn step(&mut self) -> Result<bool, Interrupt> {
        todo!()
    }

    /// What was found.
    pub fn into_report(self) -> CheckReport {
        self.report
    }
}
