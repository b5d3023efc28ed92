//! Several indexes for one OR: `a = 1 OR b > 5` is the rows of two ranges, each once.
//!
//! Each part of the OR chooses its path for itself. That costs what all of them cost, and remembering the
//! rows; where it is clearly less than the best single path, it is done. All conditions are checked on every
//! row, and must say the same of it each time.

use std::sync::Arc;

use untorn::engine::ScanIndex;

use super::Condition;
use super::access_path::{CLEARLY_CHEAPER, Choice, Path, PathChooser};
use super::estimate::{ROWS_FEW, cost, depends_on_parameters, rows_of};
use crate::expr::Expr;

/// An OR of more parts is not looked at: it would be copied for each.
const PARTS_MAX: usize = 16;
/// Rows whose keys are remembered while the other indexes are read, at most: some ten MiB of the statement's
/// memory. More of them are found by reading all rows, which takes none.
const REMEMBERED_MAX: f64 = 100_000.0;

impl PathChooser<'_> {
    /// The path over several indexes that costs clearly less than `best`, if there is one.
    pub(super) fn merged(&self, best: &mut Path) -> Option<Path> {
        let is_candidate = |condition: &Condition| matches!(&**condition, Expr::Or(_));
        if best.unique
            || !self.choice.by_cost
            || !self.conjuncts.iter().any(is_candidate)
            || rows_of(self.table) < ROWS_FEW
        {
            return None;
        }
        if self.conjuncts.iter().any(|condition| condition.has_volatile()) {
            return None;
        }
        let mut found: Option<Path> = None;
        for condition in self.conjuncts {
            let Expr::Or(parts) = &**condition else { continue };
            let Some(path) = self.merged_of(parts) else { continue };
            if found.as_ref().is_none_or(|found| cost(&path) < cost(found)) {
                found = Some(path);
            }
        }
        let merged = found?;
        self.planner.want_statistics(self.table);
        if merged.merged.iter().chain([&*best]).any(depends_on_parameters) {
            self.planner.value_dependent.set(true);
        }
        self.estimate(best);
        (cost(&merged) < CLEARLY_CHEAPER * cost(best)).then_some(merged)
    }

    /// The paths of all parts, if an index leads to each.
    fn merged_of(&self, parts: &[Expr]) -> Option<Path> {
        if parts.len() > PARTS_MAX {
            return None;
        }
        let mut merged = Vec::with_capacity(parts.len());
        for part in parts {
            let conjuncts: Vec<Condition> = match part {
                Expr::And(list) => list.iter().cloned().map(Arc::new).collect(),
                other => vec![Arc::new(other.clone())],
            };
            let choice = Choice { by_cost: true, whole_rows: true, ..Choice::default() };
            let chooser = PathChooser { conjuncts: &conjuncts, choice, ..*self };
            let mut path = chooser.best_of_one();
            if path.is_full_scan() || !self.planner.walk() {
                return None;
            }
            chooser.estimate(&mut path);
            merged.push(path);
        }
        let first: ScanIndex = merged.first()?.index;
        if merged.iter().all(|path| path.index == first) {
            // Its ranges are one path.
            return None;
        }
        let rows = merged.iter().map(|path| path.rows).sum::<f64>().min(rows_of(self.table));
        if rows > REMEMBERED_MAX {
            return None;
        }
        Some(Path { rows, merged, ..Path::everything() })
    }
}

/// Whether the rows of a path come in the order of their clustered keys: it is the clustered index, or one of
/// whose columns, this many, each has one value.
pub fn is_in_row_order(path: &Path, parts: usize) -> bool {
    path.index == ScanIndex::Clustered || (path.last.is_empty() && path.equal.len() == parts)
}
