//! Any bytes as a page: verifying never panics, a sealed page is valid, and any flipped bit that the checksum
//! covers is seen.
#![no_main]

use libfuzzer_sys::fuzz_target;

const PAGE: usize = 4096;

fuzz_target!(|data: &[u8]| {
    let mut image = vec![0; PAGE];
    let len = data.len().min(PAGE);
    image[..len].copy_from_slice(&data[..len]);
    let _ = page::verify(&image);
    let _ = page::verify_identity(&image, page::identity(&image));
    let lsn = page::Lsn(page::lsn(&image));
    page::seal(&mut image, lsn);
    assert_eq!(page::verify(&image), Ok(()));
    let position = data.iter().take(2).fold(0, |sum, byte| sum << 8 | usize::from(*byte)) % PAGE;
    let covered = !(page::FLUSH_LSN..page::HEADER_LEN).contains(&position);
    image[position] ^= 1 << (data.len() % 8);
    assert!(!covered || page::verify(&image).is_err(), "byte {position}");
});
