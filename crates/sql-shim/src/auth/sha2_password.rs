//! `caching_sha2_password`.
//!
//! Stored: `$A$005$` + 20 bytes of salt + 43 characters of SHA-256-crypt with 5,000 rounds (the scheme of U.
//! Drepper's "Unix crypt using SHA-256", here with a 20-byte salt). Fast path: the client sends
//! SHA256(password) XOR SHA256(SHA256(SHA256(password)) ‖ salt), which the server checks against
//! SHA256(SHA256(password)) remembered in memory from an earlier full authentication. Which of the two is
//! asked for is decided in `exchange.rs`.

use std::sync::OnceLock;

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq;

use crate::wire::handshake::SALT_BYTES;

/// Its name.
pub const PLUGIN: &str = "caching_sha2_password";
/// Tells the client that its scramble was right.
pub const FAST_OK: u8 = 3;
/// Tells the client to send its password.
pub const FULL_AUTHENTICATION: u8 = 4;
/// Longer passwords are refused: hashing time grows with the square of it.
pub const PASSWORD_BYTES_MAX: usize = 256;

const ROUNDS: u32 = 5000;
const PREFIX: &str = "$A$005$";
const HASH_CHARS: usize = 43;

/// SHA256(SHA256(password)).
pub type Digest = [u8; 32];

/// The stored form of a clear password; empty for none.
pub fn stored(password: &[u8]) -> String {
    if password.is_empty() {
        return String::new();
    }
    with_salt(password, &super::fresh_salt())
}

fn with_salt(password: &[u8], salt: &[u8]) -> String {
    // The salt has seven-bit characters only, so it is text.
    format!("{PREFIX}{}{}", String::from_utf8_lossy(salt), crypt(password, salt, ROUNDS))
}

/// A stored form that no password fits, for users that do not exist.
pub fn nobody() -> &'static str {
    static NOBODY: OnceLock<String> = OnceLock::new();
    NOBODY.get_or_init(|| with_salt(&super::fresh_salt(), &super::fresh_salt()))
}

fn split(stored: &str) -> Option<(&[u8], &[u8])> {
    let rest = stored.as_bytes().strip_prefix(PREFIX.as_bytes())?;
    let (salt, hash) = rest.split_at_checked(SALT_BYTES)?;
    (hash.len() == HASH_CHARS).then_some((salt, hash))
}

/// Whether `text` is a stored form.
pub fn is_stored(text: &str) -> bool {
    split(text).is_some() || text.is_empty()
}

/// Full authentication of a password that ends with NUL as the client sends it: milliseconds of hashing. The
/// digest to remember when it is right.
pub fn verify_slow(stored: &str, password: &[u8]) -> Option<Digest> {
    let (0, password) = password.split_last()? else { return None };
    if password.len() > PASSWORD_BYTES_MAX {
        return None;
    }
    let (salt, hash) = split(stored)?;
    let computed = crypt(password, salt, ROUNDS);
    let right: bool = computed.as_bytes().ct_eq(hash).into();
    right.then(|| Sha256::digest(Sha256::digest(password)).into())
}

/// Whether `response` was made from the password behind `digest`.
pub fn verify_fast(digest: &Digest, salt: &[u8; SALT_BYTES], response: &[u8]) -> bool {
    let Ok(mut once) = <[u8; 32]>::try_from(response) else { return false };
    let mask = Sha256::new().chain_update(digest).chain_update(salt).finalize();
    for (byte, mask) in once.iter_mut().zip(mask) {
        *byte ^= mask;
    }
    Sha256::digest(once).as_slice().ct_eq(digest).into()
}

/// What a client sends on the fast path (tests and tools).
pub fn scramble(password: &[u8], salt: &[u8]) -> Vec<u8> {
    let once = Sha256::digest(password);
    let mask = Sha256::new().chain_update(Sha256::digest(once)).chain_update(salt).finalize();
    once.iter().zip(mask).map(|(byte, mask)| byte ^ mask).collect()
}

/// SHA-256-crypt: the 43 characters after the last `$`.
fn crypt(password: &[u8], salt: &[u8], rounds: u32) -> String {
    let alternate = Sha256::new().chain_update(password).chain_update(salt).chain_update(password).finalize();
    let mut first = Sha256::new().chain_update(password).chain_update(salt);
    first.update(stretched(&alternate, password.len()));
    let mut bits = password.len();
    while bits > 0 {
        if bits & 1 == 1 {
            first.update(alternate);
        } else {
            first.update(password);
        }
        bits >>= 1;
    }
    let mut digest: [u8; 32] = first.finalize().into();

    let mut sum = Sha256::new();
    for _ in 0..password.len() {
        sum.update(password);
    }
    let password_sequence = stretched(&sum.finalize(), password.len());
    let mut sum = Sha256::new();
    let [lead, ..] = digest;
    for _ in 0..16 + usize::from(lead) {
        sum.update(salt);
    }
    let salt_sequence = stretched(&sum.finalize(), salt.len());

    for round in 0..rounds {
        let mut next = Sha256::new();
        let odd = round & 1 == 1;
        next.update(if odd { password_sequence.as_slice() } else { &digest });
        if round % 3 != 0 {
            next.update(&salt_sequence);
        }
        if round % 7 != 0 {
            next.update(&password_sequence);
        }
        next.update(if odd { &digest[..] } else { password_sequence.as_slice() });
        digest = next.finalize().into();
    }
    encode(&digest)
}

fn stretched(digest: &[u8], length: usize) -> Vec<u8> {
    digest.iter().copied().cycle().take(length).collect()
}

/// crypt(3)'s base 64 over the scheme's order of bytes.
fn encode(digest: &[u8; 32]) -> String {
    const ALPHABET: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    const ORDER: [[usize; 3]; 10] = [
        [0, 10, 20],
        [21, 1, 11],
        [12, 22, 2],
        [3, 13, 23],
        [24, 4, 14],
        [15, 25, 5],
        [6, 16, 26],
        [27, 7, 17],
        [18, 28, 8],
        [9, 19, 29],
    ];
    let mut text = String::with_capacity(HASH_CHARS);
    let mut put = |value: u32, chars: u32| {
        for position in 0..chars {
            let index = (value >> (6 * position)) & 63;
            text.push(char::from(ALPHABET[index as usize]));
        }
    };
    for [high, middle, low] in ORDER {
        put(u32::from(digest[high]) << 16 | u32::from(digest[middle]) << 8 | u32::from(digest[low]), 4);
    }
    put(u32::from(digest[31]) << 8 | u32::from(digest[30]), 3);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crypt_gives_what_openssl_gives() {
        // Made by `openssl passwd -5`.
        assert_eq!(
            crypt(b"Hello world!", b"saltstring", 5000),
            "5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5"
        );
        let long = b"a much longer password than the digest is, to stretch it";
        assert_eq!(crypt(long, b"abcdefghijklmnop", 5000), "iS5Ye20oUoVc6GIlZmvyiAdH5QRYhfd6ijhrEKsZeJ1");
    }

    #[test]
    fn full_then_fast() {
        let hash = stored(b"secret");
        assert!(is_stored(&hash) && hash.len() == 70);
        assert_eq!(verify_slow(&hash, b"wrong\0"), None);
        assert_eq!(verify_slow(&hash, b"secret"), None, "the NUL is part of the packet");
        let digest = verify_slow(&hash, b"secret\0").unwrap_or_default();
        let salt = [9; SALT_BYTES];
        assert!(verify_fast(&digest, &salt, &scramble(b"secret", &salt)));
        assert!(!verify_fast(&digest, &salt, &scramble(b"secret2", &salt)));
        assert!(!verify_fast(&digest, &salt, b""));
    }

    #[test]
    fn nobody_has_no_password() {
        assert_eq!(verify_slow(nobody(), b"\0"), None);
    }
}
