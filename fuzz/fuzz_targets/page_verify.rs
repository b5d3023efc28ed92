//! Any bytes as a page: verifying never panics, a stamped page is valid, and any flipped bit that the checksum covers is seen.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagestore::{checksum, page};

const PAGE: usize = 4096;

fuzz_target!(|data: &[u8]| {
    let mut image = vec![0; PAGE];
    let len = data.len().min(PAGE);
    image[..len].copy_from_slice(&data[..len]);
    let _ = checksum::verify(&image);
    let _ = checksum::verify_identity(&image, page::identity(&image));
    checksum::stamp(&mut image);
    assert_eq!(checksum::verify(&image), Ok(()));
    let position = data.iter().take(2).fold(0, |sum, byte| sum << 8 | usize::from(*byte)) % PAGE;
    let covered = !(page::FLUSH_LSN..page::HEADER_LEN).contains(&position);
    image[position] ^= 1 << (data.len() % 8);
    assert!(!covered || checksum::verify(&image).is_err(), "byte {position}");
});
