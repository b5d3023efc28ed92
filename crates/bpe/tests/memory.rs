//! What a tier costs in memory, measured on the process: all of it, write buffers and ghosts included.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::{Path, PathBuf};

use disk::{SimulatedEnvironment, Storage};
use page::extension::{BufferPoolExtension, History};
use page::{Lsn, PageId, PageSize};
use untorn_bpe::{Options, Tier, memory_bytes};

/// Bytes of private writable memory that the process has asked for, whether or not it was touched.
fn data_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmData:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

/// One test in this program: nothing else allocates meanwhile.
#[test]
fn at_most_32_bytes_per_cached_page_everything_included() {
    let size = 16 << 30;
    let env = SimulatedEnvironment::new(1);
    env.disk().create_dir_all(Path::new("fast")).unwrap();
    let page_size = PageSize::DEFAULT;
    let mut image = vec![0; page_size.bytes()];
    image[page::PAGE_NUMBER..page::PAGE_NUMBER + 4].copy_from_slice(&5_u32.to_be_bytes());
    image[page::SPACE_ID..page::SPACE_ID + 4].copy_from_slice(&4_u32.to_be_bytes());
    let before = data_bytes();
    let tier = Tier::open(
        env.clone(),
        Options {
            file: Some(PathBuf::from("fast/tier")),
            size,
            enabled: true,
            ..Options::new(page_size, [1; 16])
        },
    );
    tier.recovered(Lsn(1), Lsn(1), 1);
    tier.offer(PageId::new(4, 5), Lsn(7), &image, History { touched_again: true, ..History::default() });
    let taken = data_bytes() - before;
    let status = tier.status();
    assert_eq!((status.pages, status.size_bytes), (1, size));
    // Of the four buffers of a region only the one that is being filled is there yet.
    let all = taken + 3 * (1 << 20);
    let per_page = all as f64 / status.pages_max as f64;
    println!("{all} bytes for {} pages: {per_page:.2} for each", status.pages_max);
    assert!(per_page <= 32.0, "{per_page} bytes per page");
    // And what it says of itself is true, within the allocator's rounding.
    assert_eq!(status.memory_bytes, memory_bytes(size, page_size) as u64);
    let said = status.memory_bytes as f64;
    assert!((all as f64) < said * 1.03 && said < 32.0 * status.pages_max as f64, "{all} against {said}");
}
