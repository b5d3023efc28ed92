//! Everything that must hold on one page, checked: what `CHECK TABLE` does per page, and what MySQL does on
//! import.

use std::cmp::Ordering;

use super::header::{self, HEAP, INFIMUM, SUPREMUM};
use super::{directory, next_record};
use crate::compare::compare_keys;
use crate::definition::IndexDef;
use crate::field::Field;
use crate::record::{RecordRef, Status, header as record_header};

type Key<'a> = smallvec::SmallVec<[Field<'a>; 16]>;

/// The fields of `record` that order it on its page.
pub fn key_of(record: RecordRef<'_>) -> Key<'_> {
    record.fields().take(record.def().n_unique).map(|field| field.inline()).collect()
}

/// Checks one INDEX page and returns what is wrong with it.
pub fn validate(page: &[u8], def: &IndexDef) -> Vec<String> {
    let mut check = PageCheck {
        page,
        def,
        problems: Vec::new(),
        covered: vec![false; page.len()],
        heap_numbers: vec![false; header::n_heap(page)],
    };
    if check.header() {
        check.chain_and_directory();
        check.free_list();
        let unused = check.heap_numbers.iter().skip(2).filter(|used| !**used).count();
        if unused != 0 {
            check.report(format!(
                "{unused} of N_HEAP={} heap numbers belong to no record",
                header::n_heap(page)
            ));
        }
    }
    check.problems
}

struct PageCheck<'a> {
    page: &'a [u8],
    def: &'a IndexDef,
    problems: Vec<String>,
    covered: Vec<bool>,
    heap_numbers: Vec<bool>,
}

impl PageCheck<'_> {
    fn report(&mut self, problem: impl Into<String>) {
        self.problems.push(problem.into());
    }

    /// Whether the header makes enough sense to look further.
    fn header(&mut self) -> bool {
        let page = self.page;
        let slots = header::n_dir_slots(page);
        if !header::is_compact(page) {
            self.report("the page is in REDUNDANT row format");
            return false;
        }
        if slots < 2 || slots > (page.len() - HEAP) / 2 {
            self.report(format!("N_DIR_SLOTS is {slots}"));
            return false;
        }
        let lowest = directory::slot_address(page.len(), slots - 1);
        if header::heap_top(page) < HEAP || header::heap_top(page) > lowest {
            self.report(format!("HEAP_TOP is {}, the directory starts at {lowest}", header::heap_top(page)));
            return false;
        }
        for (slot, wanted) in [(0, INFIMUM), (slots - 1, SUPREMUM)] {
            if directory::slot(page, slot) != wanted {
                self.report(format!(
                    "directory slot {slot} is {}, not {wanted}",
                    directory::slot(page, slot)
                ));
            }
        }
        if page[INFIMUM..INFIMUM + 8] != *b"infimum\0" || page[SUPREMUM..SUPREMUM + 8] != *b"supremum" {
            self.report("infimum or supremum is overwritten");
        }
        if record_header::n_owned(page, INFIMUM) != 1 {
            self.report("infimum does not own exactly itself");
        }
        true
    }

    fn chain_and_directory(&mut self) {
        let (page, def) = (self.page, self.def);
        let (mut at, mut group, mut slot, mut count, mut size) = (INFIMUM, 0u8, 1, 0, 0);
        let mut previous: Option<usize> = None;
        loop {
            at = match next_record(page, at) {
                Ok(next) if count <= page.len() => next,
                Ok(_) => return self.report("the record chain has a loop"),
                Err(error) => return self.report(format!("after record {at}: {}", error.0)),
            };
            group = group.saturating_add(1);
            let n_owned = record_header::n_owned(page, at);
            if n_owned != 0 || at == SUPREMUM {
                let least = if at == SUPREMUM { 1 } else { directory::OWNED_MIN };
                if n_owned != group || !(least..=directory::OWNED_MAX).contains(&group) {
                    self.report(format!("record {at} owns {n_owned}, its group has {group} records"));
                }
                if directory::slot(page, slot) != at {
                    self.report(format!(
                        "directory slot {slot} is {}, not {at}",
                        directory::slot(page, slot)
                    ));
                }
                (group, slot) = (0, slot + 1);
            }
            if at == SUPREMUM {
                break;
            }
            size += self.record(at, "record");
            count += 1;
            if let Some(previous) = previous {
                self.order(RecordRef::new(page, previous, def), RecordRef::new(page, at, def));
            }
            previous = Some(at);
        }
        if slot != header::n_dir_slots(page) {
            self.report(format!(
                "N_DIR_SLOTS is {}, the records have {slot} groups",
                header::n_dir_slots(page)
            ));
        }
        if count != header::n_recs(page) {
            self.report(format!("N_RECS is {}, {count} records are linked", header::n_recs(page)));
        }
        if size != header::data_size(page) {
            self.report(format!("records take {size} bytes, the header says {}", header::data_size(page)));
        }
    }

    fn order(&mut self, lower: RecordRef<'_>, upper: RecordRef<'_>) {
        if !lower.is_min_rec() && compare_keys(self.def, &key_of(lower), &key_of(upper)) != Ordering::Less {
            self.report(format!("record {} is not below record {}", lower.origin(), upper.origin()));
        }
    }

    /// Checks what one record, live or freed, must have; returns its size.
    fn record(&mut self, origin: usize, what: &str) -> usize {
        let record = RecordRef::new(self.page, origin, self.def);
        let (start, end) = record.bounds();
        if start < HEAP || end > header::heap_top(self.page) || start >= end {
            self.report(format!("{what} {origin} is outside the heap"));
            return 0;
        }
        let status = if header::level(self.page) == 0 { Status::Ordinary } else { Status::NodePointer };
        if record.is_instant() || record_header::status(self.page, origin) != status as u8 {
            self.report(format!(
                "{what} {origin} has status bits of another kind of page or of an instantly altered table"
            ));
        }
        if self.covered[start..end].iter().any(|covered| *covered) {
            self.report(format!("{what} {origin} overlaps another"));
        }
        self.covered[start..end].fill(true);
        match self.heap_numbers.get_mut(usize::from(record.heap_no())) {
            Some(seen) if !*seen && record.heap_no() >= 2 => *seen = true,
            _ => self.report(format!("{what} {origin} has heap number {}", record.heap_no())),
        }
        end - start
    }

    fn free_list(&mut self) {
        let mut at = header::free(self.page);
        let (mut count, mut size) = (0, 0);
        while let Some(origin) = at {
            if count > header::n_heap(self.page) || origin < HEAP || origin >= self.page.len() {
                return self.report("the free list has a loop or leaves the heap");
            }
            size += self.record(origin, "freed record");
            count += 1;
            at = record_header::next(self.page, origin);
        }
        if size > header::garbage(self.page) {
            self.report(format!(
                "GARBAGE is {}, freed records take {size} bytes",
                header::garbage(self.page)
            ));
        }
    }
}
