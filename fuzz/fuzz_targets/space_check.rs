//! Any bytes as the header, descriptor and inode pages of a tablespace: the check ends, and its answers are
//! consistent.
//!
//! Input: pages 0 and 2 as far as it reaches; the rest of the file is zero. Fields that would only make every
//! input fail at once are set right.
#![no_main]

use std::convert::Infallible;

use libfuzzer_sys::fuzz_target;
use pagestore::PageSize;
use pagestore::fsp::{self, Layout, layout};

const PAGE: usize = 4096;
const PAGES: u32 = 4096 + 512;

fuzz_target!(|data: &[u8]| {
    let Some(size) = PageSize::new(PAGE) else { return };
    let mut pages = [vec![0; PAGE], vec![0; PAGE]];
    for (copy, bytes) in pages.iter_mut().zip(data.chunks(PAGE)) {
        copy[..bytes.len()].copy_from_slice(bytes);
    }
    let [header, inodes] = &mut pages;
    header[page::TYPE..page::TYPE + 2].copy_from_slice(&page::kind::FSP_HDR.to_be_bytes());
    inodes[page::TYPE..page::TYPE + 2].copy_from_slice(&page::kind::INODE.to_be_bytes());
    let flags = Layout::new(size).flags().to_be_bytes();
    header[layout::HEADER_FLAGS..layout::HEADER_FLAGS + 4].copy_from_slice(&flags);
    let read = |number: u32| {
        Ok::<_, Infallible>(match number {
            0 => header.clone(),
            2 => inodes.clone(),
            _ => vec![0; PAGE],
        })
    };
    let Ok(report) = fsp::check_pages(PAGES, size, read);
    assert_eq!(report.is_clean(), report.problems.is_empty());
    let listed: u64 = (0..PAGES).filter(|number| report.owner(*number).is_some()).count() as u64;
    assert_eq!(report.used_pages(), listed);
    for segment in 0..report.segments.len() {
        for number in report.pages_of(segment) {
            assert_eq!(report.owner(number), Some(fsp::Owner::Segment(segment)));
        }
    }
});
