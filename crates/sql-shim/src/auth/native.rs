//! `mysql_native_password`: the client sends SHA1(password) XOR SHA1(salt ‖ SHA1(SHA1(password))), the server
//! stores SHA1(SHA1(password)) as `*` and 40 hex digits.

use sha1::{Digest, Sha1};
use subtle::ConstantTimeEq;

use crate::wire::handshake::SALT_BYTES;

/// Its name.
pub const PLUGIN: &str = "mysql_native_password";

/// The stored form of a clear password; empty for none.
pub fn stored(password: &[u8]) -> String {
    if password.is_empty() {
        return String::new();
    }
    let twice = Sha1::digest(Sha1::digest(password));
    let mut text = String::from("*");
    for byte in twice {
        text.push_str(&format!("{byte:02X}"));
    }
    text
}

/// Whether `text` is a stored form.
pub fn is_stored(text: &str) -> bool {
    parse(text).is_some() || text.is_empty()
}

fn parse(text: &str) -> Option<[u8; 20]> {
    let hex = text.strip_prefix('*')?.as_bytes();
    let mut digest = [0u8; 20];
    if hex.len() != 40 {
        return None;
    }
    for (byte, pair) in digest.iter_mut().zip(hex.chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(digest)
}

/// Whether `response` was made from the password behind `stored`.
pub fn verify(stored: &str, salt: &[u8; SALT_BYTES], response: &[u8]) -> bool {
    let (Some(twice), Ok(mut once)) = (parse(stored), <[u8; 20]>::try_from(response)) else { return false };
    let mask = Sha1::new().chain_update(salt).chain_update(twice).finalize();
    for (byte, mask) in once.iter_mut().zip(mask) {
        *byte ^= mask;
    }
    Sha1::digest(once).as_slice().ct_eq(&twice).into()
}

/// What a client sends (tests and tools).
pub fn scramble(password: &[u8], salt: &[u8]) -> Vec<u8> {
    let once = Sha1::digest(password);
    let mask = Sha1::new().chain_update(salt).chain_update(Sha1::digest(once)).finalize();
    once.iter().zip(mask).map(|(byte, mask)| byte ^ mask).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_form_is_that_of_mysql() {
        // SELECT PASSWORD('password') of MySQL 5.7
        assert_eq!(stored(b"password"), "*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19");
        assert_eq!(stored(b""), "");
    }

    #[test]
    fn right_wrong_and_misshapen_responses() {
        let salt = [7; SALT_BYTES];
        let hash = stored(b"secret");
        assert!(verify(&hash, &salt, &scramble(b"secret", &salt)));
        assert!(!verify(&hash, &salt, &scramble(b"Secret", &salt)));
        assert!(!verify(&hash, &[8; SALT_BYTES], &scramble(b"secret", &salt)));
        assert!(!verify(&hash, &salt, b"short"));
        assert!(!verify("*no hash", &salt, &scramble(b"secret", &salt)));
    }
}
