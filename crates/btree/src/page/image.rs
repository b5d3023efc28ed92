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
    let (old, new) = (&old[part.clone()], &new[part.clone()]);
    let mut at = 0;
    let mut run: Option<Range<usize>> = None;
    while at < old.len() {
        // The first and the last byte of a word that differ, bytes counted from its beginning.
        let (first, last, word) = match (old[at..].first_chunk(), new[at..].first_chunk()) {
            (Some(old), Some(new)) => {
                let differs = u64::from_le_bytes(*old) ^ u64::from_le_bytes(*new);
                let (before, behind) = (differs.trailing_zeros() / 8, differs.leading_zeros() / 8);
                (before as usize, 8 - behind as usize, 8)
            }
            _ => (usize::from(old[at] == new[at]), usize::from(old[at] != new[at]), 1),
        };
        match &mut run {
            // What is equal to its end reaches into the words behind.
            Some(run) if at + first > run.end + GAP => break,
            Some(run) if last > 0 => run.end = at + last,
            None if last > 0 => run = Some(at + first..at + last),
            _ => {}
        }
        at += word;
    }
    run.map(|run| part.start + run.start..part.start + run.end)
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

    /// Byte by byte: a run ends where more than [`GAP`] bytes are equal.
    fn slow_difference(old: &[u8], new: &[u8], part: Range<usize>) -> Option<Range<usize>> {
        let mut run: Option<Range<usize>> = None;
        for at in part.filter(|at| old[*at] != new[*at]) {
            match &mut run {
                Some(run) if at - run.end > GAP => break,
                Some(run) => run.end = at + 1,
                None => run = Some(at..at + 1),
            }
        }
        run
    }

    proptest! {
        #[test]
        fn words_find_what_bytes_find(
            differs in proptest::collection::vec(proptest::bool::weighted(0.15), 100),
            start in 0usize..50,
            end in 50usize..100,
        ) {
            let new: Vec<u8> = differs.iter().map(|differs| u8::from(*differs)).collect();
            let run = next_difference(&[0; 100], &new, start..end);
            prop_assert_eq!(run, slow_difference(&[0; 100], &new, start..end));
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
