//! AES_ENCRYPT and AES_DECRYPT, in the mode that `block_encryption_mode` names.
//!
//! The cipher is a crate's; a mode is how its blocks hang together, which is a line for each. The key is
//! folded into the length that the cipher has: bytes beyond it are XORed to those before.

use aes::cipher::{Block, BlockDecrypt, BlockEncrypt, KeyInit};
use aes::{Aes128, Aes192, Aes256};
use untorn::types::Collation;

use super::{Function, any_null, function, owned_text, text_fits};
use crate::errors;
use crate::expr::types::Type;
use crate::expr::{Context, Evaluated};
use crate::result::SqlError;
use crate::value::Value;

/// Bytes of a block.
const BLOCK: usize = 16;

/// Most arguments: text, key, initialization vector, and three of a key derivation function.
const ARGUMENTS_MAX: usize = 6;

/// The functions.
pub(super) static FUNCTIONS: &[Function] = &[
    function!("AES_ENCRYPT", 2..=ARGUMENTS_MAX, |t| Type::bytes(padded(t[0].bytes_max())), |v, cx| {
        crypt(v, "aes_encrypt", cx, encrypted)
    }),
    function!("AES_DECRYPT", 2..=ARGUMENTS_MAX, |t| Type::bytes(t[0].length), |v, cx| {
        crypt(v, "aes_decrypt", cx, decrypted)
    }),
];

fn padded(bytes: u32) -> u32 {
    (bytes / BLOCK as u32).saturating_add(1).saturating_mul(BLOCK as u32)
}

/// How blocks hang together.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Ecb,
    Cbc,
    Cfb1,
    Cfb8,
    Cfb128,
    Ofb,
}

impl Mode {
    fn of_name(name: &str) -> Option<Mode> {
        Some(match name {
            "ecb" => Mode::Ecb,
            "cbc" => Mode::Cbc,
            "cfb1" => Mode::Cfb1,
            "cfb8" => Mode::Cfb8,
            "cfb128" => Mode::Cfb128,
            "ofb" => Mode::Ofb,
            _ => return None,
        })
    }

    /// Whether texts are filled up to whole blocks.
    fn pads(self) -> bool {
        matches!(self, Mode::Ecb | Mode::Cbc)
    }

    /// Blocks that the cipher makes of one of the text.
    fn steps(self) -> usize {
        match self {
            Mode::Cfb1 => 8 * BLOCK,
            Mode::Cfb8 => BLOCK,
            _ => 1,
        }
    }
}

enum Cipher {
    Key128(Box<Aes128>),
    Key192(Box<Aes192>),
    Key256(Box<Aes256>),
}

impl Cipher {
    /// With a key of this many bytes made of another one.
    fn new(key: &[u8], bytes: usize) -> Option<Cipher> {
        let mut folded = [0u8; 32];
        for (at, byte) in key.iter().enumerate() {
            folded[at % bytes] ^= byte;
        }
        let folded = folded.get(..bytes)?;
        Some(match bytes {
            16 => Cipher::Key128(Box::new(Aes128::new_from_slice(folded).ok()?)),
            24 => Cipher::Key192(Box::new(Aes192::new_from_slice(folded).ok()?)),
            _ => Cipher::Key256(Box::new(Aes256::new_from_slice(folded).ok()?)),
        })
    }

    fn encrypt(&self, block: &mut [u8; BLOCK]) {
        let block = Block::<Aes128>::from_mut_slice(block);
        match self {
            Cipher::Key128(aes) => aes.encrypt_block(block),
            Cipher::Key192(aes) => aes.encrypt_block(block),
            Cipher::Key256(aes) => aes.encrypt_block(block),
        }
    }

    fn decrypt(&self, block: &mut [u8; BLOCK]) {
        let block = Block::<Aes128>::from_mut_slice(block);
        match self {
            Cipher::Key128(aes) => aes.decrypt_block(block),
            Cipher::Key192(aes) => aes.decrypt_block(block),
            Cipher::Key256(aes) => aes.decrypt_block(block),
        }
    }
}

/// What goes through blocks one after the other.
struct Chain<'c> {
    cipher: Cipher,
    mode: Mode,
    /// What the next block depends on: the vector, then what the mode keeps of the one before.
    register: [u8; BLOCK],
    work: &'c dyn Fn(usize) -> Result<(), SqlError>,
}

fn xor(block: &mut [u8; BLOCK], with: &[u8]) {
    block.iter_mut().zip(with).for_each(|(byte, other)| *byte ^= other);
}

impl Chain<'_> {
    /// A mode that makes a stream of the cipher: text and result are as long as each other.
    fn stream(&mut self, text: &[u8], encrypts: bool) -> Result<Vec<u8>, SqlError> {
        let mut made = Vec::with_capacity(text.len());
        for piece in text.chunks(BLOCK) {
            (self.work)(BLOCK * self.mode.steps())?;
            match self.mode {
                Mode::Cfb1 => piece.iter().for_each(|byte| made.push(self.bits(*byte, encrypts))),
                Mode::Cfb8 => {
                    for byte in piece {
                        let mut block = self.register;
                        self.cipher.encrypt(&mut block);
                        let result = byte ^ block[0];
                        self.register.rotate_left(1);
                        self.register[BLOCK - 1] = if encrypts { result } else { *byte };
                        made.push(result);
                    }
                }
                mode => {
                    let mut block = self.register;
                    self.cipher.encrypt(&mut block);
                    self.register = block;
                    xor(&mut block, piece);
                    if mode == Mode::Cfb128 {
                        let coded = if encrypts { &block[..piece.len()] } else { piece };
                        self.register[..piece.len()].copy_from_slice(coded);
                    }
                    made.extend_from_slice(&block[..piece.len()]);
                }
            }
        }
        Ok(made)
    }

    /// A byte bit by bit.
    fn bits(&mut self, byte: u8, encrypts: bool) -> u8 {
        let mut made = 0;
        for bit in (0..8).rev() {
            let mut block = self.register;
            self.cipher.encrypt(&mut block);
            let (given, key) = (byte >> bit & 1, block[0] >> 7);
            let result = given ^ key;
            let coded = if encrypts { result } else { given };
            self.register = (u128::from_be_bytes(self.register) << 1 | u128::from(coded)).to_be_bytes();
            made |= result << bit;
        }
        made
    }
}

fn encrypted(chain: &mut Chain<'_>, text: &[u8]) -> Result<Option<Vec<u8>>, SqlError> {
    if !chain.mode.pads() {
        return chain.stream(text, true).map(Some);
    }
    let mut made = Vec::with_capacity(text.len() + BLOCK);
    let (whole, rest) = text.as_chunks::<BLOCK>();
    let missing = (BLOCK - rest.len()) as u8;
    let mut last = [missing; BLOCK];
    last[..rest.len()].copy_from_slice(rest);
    for block in whole.iter().chain([&last]) {
        (chain.work)(BLOCK)?;
        let mut block = *block;
        if chain.mode == Mode::Cbc {
            xor(&mut block, &chain.register);
        }
        chain.cipher.encrypt(&mut block);
        chain.register = block;
        made.extend_from_slice(&block);
    }
    Ok(Some(made))
}

/// `None` where the text is not what this key and mode make.
fn decrypted(chain: &mut Chain<'_>, text: &[u8]) -> Result<Option<Vec<u8>>, SqlError> {
    if !chain.mode.pads() {
        return chain.stream(text, false).map(Some);
    }
    let (whole, rest) = text.as_chunks::<BLOCK>();
    if !rest.is_empty() {
        return Ok(None);
    }
    let mut made = Vec::with_capacity(text.len());
    for coded in whole {
        (chain.work)(BLOCK)?;
        let mut block = *coded;
        chain.cipher.decrypt(&mut block);
        if chain.mode == Mode::Cbc {
            xor(&mut block, &chain.register);
        }
        chain.register = *coded;
        made.extend_from_slice(&block);
    }
    let padding = usize::from(made.last().copied().unwrap_or(0));
    let Some(kept) = made.len().checked_sub(padding).filter(|_| (1..=BLOCK).contains(&padding)) else {
        return Ok(None);
    };
    if made[kept..].iter().any(|byte| usize::from(*byte) != padding) {
        return Ok(None);
    }
    made.truncate(kept);
    Ok(Some(made))
}

fn crypt<'a>(
    values: &[Value<'_>],
    function: &str,
    cx: &Context<'_>,
    apply: fn(&mut Chain<'_>, &[u8]) -> Result<Option<Vec<u8>>, SqlError>,
) -> Evaluated<'a> {
    if values.len() > 3 {
        return Err(errors::unsupported("a key derivation function"));
    }
    let named = cx.state.system_variable("block_encryption_mode", None)?.to_string_lossy();
    // `aes-128-ecb`
    let mut parts = named.split('-').skip(1);
    let bits = parts.next().and_then(|bits| bits.parse::<usize>().ok());
    let mode = parts.next().and_then(Mode::of_name);
    let Some((bits, mode)) = bits.zip(mode) else {
        return Err(errors::error(errors::INTERNAL_ERROR, &[&"block_encryption_mode"]));
    };
    let register = match (mode, values.get(2)) {
        (Mode::Ecb, vector) => {
            if vector.is_some() {
                cx.state.warn(errors::error(errors::OPTION_IGNORED, &[&"IV"]));
            }
            [0; BLOCK]
        }
        (_, None) => return Err(errors::error(errors::WRONG_PARAMCOUNT_TO_NATIVE_FCT, &[&function])),
        (_, Some(vector)) => {
            let bytes = vector.to_text();
            let vector = bytes.first_chunk::<BLOCK>().filter(|_| !vector.is_null());
            *vector.ok_or_else(|| errors::error(errors::AES_INVALID_IV, &[&function, &BLOCK]))?
        }
    };
    if any_null(&values[..2]) {
        return Ok(Value::Null);
    }
    let (text, key) = (values[0].to_text(), values[1].to_text());
    let length = text.len().saturating_add(BLOCK);
    if !text_fits(length, function, cx.state) {
        return Ok(Value::Null);
    }
    cx.state.hold(length)?;
    let work = |bytes| cx.state.work(bytes);
    let Some(cipher) = Cipher::new(&key, bits / 8) else {
        return Err(errors::error(errors::INTERNAL_ERROR, &[&"block_encryption_mode"]));
    };
    if key.len() > bits / 8 {
        cx.state.warn(errors::error(errors::AES_INVALID_KEY_SIZE, &[&(bits / 8)]));
    }
    let mut chain = Chain { cipher, mode, register, work: &work };
    Ok(apply(&mut chain, &text)?.map_or(Value::Null, |made| owned_text(made, Collation::Binary)))
}
