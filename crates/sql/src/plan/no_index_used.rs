//! Full scans and joins without an index in a plan, for `log_queries_not_using_indexes` and the digests.

use super::change::Target;
use super::source::SourceKind;
use super::{Plan, SelectPlan, Step};

/// Tables that are read without help of an index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnindexedReads {
    /// Queries whose first table is read whole.
    pub scans: u64,
    /// Joined tables that are read whole for the rows before them.
    pub full_joins: u64,
    /// Queries whose first table is read by ranges of an index.
    pub ranges: u64,
}

impl UnindexedReads {
    /// Any table was.
    pub fn no_index_used(&self) -> bool {
        self.scans + self.full_joins > 0
    }

    fn target(&mut self, target: &Target) {
        self.scans += u64::from(target.path.is_full_scan());
        target.subqueries.iter().for_each(|query| self.query(query));
    }

    fn query(&mut self, plan: &SelectPlan) {
        let whole = |step: &Step| {
            step.path.is_full_scan()
                && plan.sources.get(step.source).is_some_and(|of| matches!(of.kind, SourceKind::Table(_)))
        };
        let ranges = |step: &Step| !step.path.last.is_empty() || !step.path.merged.is_empty();
        let mut steps = plan.steps.iter();
        let first = steps.next();
        self.ranges += u64::from(first.is_some_and(ranges));
        self.scans += u64::from(first.is_some_and(whole));
        self.full_joins += steps.filter(|step| whole(step)).count() as u64;
        for source in &plan.sources {
            if let SourceKind::Derived(plan) = &source.kind {
                self.query(plan);
            }
        }
        plan.recursion.iter().flat_map(|recursion| &recursion.parts).for_each(|plan| self.query(plan));
        plan.subqueries.iter().for_each(|plan| self.query(plan));
        plan.windowed.iter().for_each(|windowed| self.query(&windowed.input));
        plan.unions.iter().for_each(|(_, plan)| self.query(plan));
    }
}

impl Plan {
    /// What it reads without an index.
    pub fn unindexed_reads(&self) -> UnindexedReads {
        let mut reads = UnindexedReads::default();
        match self {
            Plan::Select(plan) => reads.query(plan),
            Plan::Insert(plan) => {
                plan.query.iter().for_each(|query| reads.query(query));
                plan.subqueries.iter().for_each(|query| reads.query(query));
            }
            Plan::Update(plan) => reads.target(&plan.target),
            Plan::Delete(plan) => reads.target(&plan.target),
            Plan::MultiTableChange(plan) => reads.query(&plan.query),
            Plan::Load(_) | Plan::Command(_) => {}
        }
        reads
    }
}
