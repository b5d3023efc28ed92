//! The space check on files that stock servers wrote: they are clean, and every small damage is noticed.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::convert::Infallible;
use std::io::Read;

use untorn_pagestore::PageSize;
use untorn_pagestore::fsp::{self, Owner, Report, SegmentHeader};

const PAGE: usize = 16384;

fn sample(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/fixtures/{name}.ibd.gz", env!("CARGO_MANIFEST_DIR"));
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_end(&mut bytes).unwrap();
    bytes
}

fn check(file: &[u8]) -> Report {
    let pages = u32::try_from(file.len() / PAGE).unwrap();
    let read = |number: u32| Ok::<_, Infallible>(file[number as usize * PAGE..][..PAGE].to_vec());
    let Ok(report) = fsp::check_pages(pages, PageSize::DEFAULT, read);
    report
}

fn page_at(file: &[u8], number: u32) -> &[u8] {
    &file[number as usize * PAGE..][..PAGE]
}

#[test]
fn files_of_stock_servers_are_clean() {
    for (name, segments) in [("mariadb-crc32", 8), ("mariadb-full_crc32", 8), ("mysql-9.7", 10)] {
        let report = check(&sample(name));
        assert!(report.is_clean(), "{name}: {report}");
        assert_eq!((report.segments.len(), report.size, report.free_limit), (segments, 576, 128), "{name}");
    }
}

#[test]
fn every_used_index_page_is_owned_by_a_segment_of_its_index() {
    let file = sample("mariadb-crc32");
    let report = check(&file);
    let mut index_pages = 0;
    for root in (3..7).map(|number| page_at(&file, number)) {
        let index_id = page::u64_at(root, 66);
        let [leaf, top] = [74, 84].map(|offset| report.segment(SegmentHeader::read(root, offset)).unwrap());
        for (segment, level_is_leaf) in [(leaf, true), (top, false)] {
            for number in report.pages_of(segment) {
                let bytes = page_at(&file, number);
                if page::page_type(bytes) == page::kind::INDEX {
                    assert_eq!(page::u64_at(bytes, 66), index_id, "page {number}");
                    // The root belongs to the upper segment even while it is a leaf.
                    let is_root = page::page_number(root) == number;
                    assert!(is_root || (page::u16_at(bytes, 64) == 0) == level_is_leaf, "page {number}");
                    index_pages += 1;
                }
            }
            assert_eq!(report.pages_of(segment).count() as u64, report.segments[segment].usage.used);
        }
    }
    assert!(index_pages > 20, "{index_pages}");
    assert_eq!([0, 1, 2].map(|page| report.owner(page)), [Some(Owner::Structure); 3]);
}

/// Damages at places that all carry meaning; each alone must be reported.
#[test]
fn every_damage_is_noticed() {
    let file = sample("mariadb-crc32");
    let header = 38;
    let second_extent = 150 + 40;
    let inode = 2 * PAGE + 50;
    let mut places = vec![
        ("space id", header + 3),
        ("size", header + 8 + 2),
        ("free limit", header + 12 + 3),
        ("FRAG_N_USED", header + 20 + 3),
        ("length of FREE", header + 24 + 3),
        ("first of FREE_FRAG", header + 40 + 9),
        ("last of FREE_FRAG", header + 40 + 15),
        ("next segment id", header + 72 + 7), // 9 becomes 1
        ("length of INODES_FREE", header + 96 + 3),
        ("first of INODES_FREE", header + 96 + 7),
        ("bitmap of extent 0", 150 + 24 + 2),
        ("state of extent 1", second_extent + 23),
        ("owner of extent 1", second_extent + 7),
        ("previous of extent 1", second_extent + 8 + 3),
        ("next of extent 1", second_extent + 8 + 6 + 3),
        ("bitmap of extent 1", second_extent + 24),
        ("state of an extent above the limit", 150 + 2 * 40 + 23),
        ("type of the bitmap page", PAGE + 25),
        ("type of the inode page", 2 * PAGE + 25),
        ("previous of the inode page", 2 * PAGE + 38 + 3),
    ];
    for (what, offset) in
        [("id", 7), ("NOT_FULL_N_USED", 11), ("length of NOT_FULL", 31), ("magic", 63), ("fragment", 67)]
    {
        // The segment in slot 1 owns the extent.
        places.push((what, inode + 192 + offset));
    }
    for (what, offset) in places {
        let mut damaged = file.clone();
        damaged[offset] ^= if what == "next segment id" { 8 } else { 4 };
        let report = check(&damaged);
        assert!(!report.is_clean(), "{what} (offset {offset}): not noticed");
    }
}

#[test]
fn a_truncated_file_is_noticed_and_nothing_panics() {
    let file = sample("mariadb-crc32");
    for pages in 0..8 {
        assert!(!check(&file[..pages * PAGE]).is_clean(), "{pages} pages");
    }
}
