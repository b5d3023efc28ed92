//! Writing into a page: one range, or much of it at once.
//!
//! A structure change is worked out on a copy of the page; then only the bytes that differ are written (and
//! so logged). Left alone are what the page store stamps (checksum, LSN, trailer), the page's identity, and
//! the unused bytes between heap and directory.

use std::ops::Range;

use pagestore::page::{NEXT, PREVIOUS, TYPE};

use super::{PageEditor, directory, header};

/// Equal bytes between two differences that are cheaper to log again than to start another record for.
const GAP: usize = 8;

/// Makes the page equal to `target` where it matters.
pub fn write_image(editor: &mut impl PageEditor, target: &[u8]) {
    let len = target.len();
    let directory = directory::slot_address(len, header::n_dir_slots(target).saturating_sub(1));
    let parts = [
        PREVIOUS..NEXT + 4,
        TYPE..TYPE + 2,
        header::N_DIR_SLOTS..header::heap_top(target),
        directory..len - header::TRAILER_SIZE,
    ];
    for part in parts {
        write_differences(editor, target, part);
    }
}

/// Makes the bytes from `at` on equal to `bytes`, writing only what differs.
pub fn write_range(editor: &mut impl PageEditor, at: usize, bytes: &[u8]) {
    let mut from = 0;
    while let Some(run) = next_difference(&editor.bytes()[at..at + bytes.len()], bytes, from..bytes.len()) {
        from = run.end;
        editor.write(at + run.start, &bytes[run]);
    }
}

fn write_differences(editor: &mut impl PageEditor, target: &[u8], part: Range<usize>) {
    let mut at = part.start;
    while let Some(run) = next_difference(editor.bytes(), target, at..part.end) {
        at = run.end;
        editor.write(run.start, &target[run]);
    }
}

/// The next range of bytes that differ, short equal stretches included.
fn next_difference(old: &[u8], new: &[u8], part: Range<usize>) -> Option<Range<usize>> {
    let mut start = part.start;
    // Whole words first: most of two images is usually equal.
    while start + 8 <= part.end && old[start..start + 8] == new[start..start + 8] {
        start += 8;
    }
    start += (start..part.end).position(|at| old[at] != new[at])?;
    let mut end = start + 1;
    let mut at = end;
    while at < part.end && at - end <= GAP {
        if old[at] != new[at] {
            end = at + 1;
        }
        at += 1;
    }
    Some(start..end)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn differences_are_exactly_what_must_be_written(
            old in proptest::collection::vec(0u8..3, 100),
            new in proptest::collection::vec(0u8..3, 100),
            start in 0usize..50,
            end in 50usize..100,
        ) {
            let mut page = old.clone();
            write_differences(&mut page, &new, start..end);
            prop_assert_eq!(&page[start..end], &new[start..end]);
            prop_assert_eq!(&page[..start], &old[..start]);
            prop_assert_eq!(&page[end..], &old[end..]);
        }
    }

    #[test]
    fn near_differences_are_one_write_and_far_ones_are_not() {
        let old = vec![0u8; 64];
        let mut new = old.clone();
        new[10] = 1;
        new[15] = 1;
        new[40] = 1;
        assert_eq!(next_difference(&old, &new, 0..64), Some(10..16));
        assert_eq!(next_difference(&old, &new, 16..64), Some(40..41));
        assert_eq!(next_difference(&old, &new, 41..64), None);
    }
}
