//! Any bytes as a `.cfg` file: reading never panics, and what was read is written back byte for byte.
#![no_main]

use libfuzzer_sys::fuzz_target;
use untorn::export::cfg::Description;

fuzz_target!(|data: &[u8]| {
    let Ok(description) = Description::from_bytes(data) else { return };
    let bytes = description.to_bytes();
    assert_eq!(bytes, data[..bytes.len()]);
});
