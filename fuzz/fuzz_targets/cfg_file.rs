//! Any bytes as a `.cfg` file: reading never panics, what was read is written so that it reads the same
//! again, and the version that is written comes out as it went in.
#![no_main]

use libfuzzer_sys::fuzz_target;
use untorn::export::cfg::Description;

/// MySQL's copy of its dictionary, which is read and left out.
const LEFT_OUT: &[u8] = b"CLUST_IND_SDI";

fuzz_target!(|data: &[u8]| {
    let Ok(description) = Description::from_bytes(data) else { return };
    let bytes = description.to_bytes();
    assert_eq!(Description::from_bytes(&bytes), Ok(description));
    // Versions 2 to 8 say more than version 1, which is written.
    let written_version = data.starts_with(&[0, 0, 0, 1]);
    if written_version && !data.windows(LEFT_OUT.len()).any(|window| window == LEFT_OUT) {
        assert_eq!(bytes, data[..bytes.len()]);
    }
});
