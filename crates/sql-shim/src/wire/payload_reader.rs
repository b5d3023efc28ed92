//! A checked reader of the fields within one packet. The packets are cut out of the stream, and fragments of
//! 16 MiB joined, in `input.rs`.

/// The packet does not hold what its layout promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("malformed communication packet")
    }
}

impl std::error::Error for Malformed {}

/// Reads a packet front to back; every step fails rather than run past the end.
#[derive(Debug, Clone, Copy)]
pub struct PayloadReader<'a> {
    rest: &'a [u8],
}

impl<'a> PayloadReader<'a> {
    /// Reads from the start of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// What is left.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether everything has been read.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next `count` bytes.
    #[inline]
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(Malformed)?;
        self.rest = rest;
        Ok(taken)
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(Malformed)?;
        self.rest = rest;
        Ok(*taken)
    }

    /// One byte.
    #[inline]
    pub fn u8(&mut self) -> Result<u8, Malformed> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// Two bytes, little-endian.
    #[inline]
    pub fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_le_bytes)
    }

    /// Three bytes, little-endian.
    #[inline]
    fn u24(&mut self) -> Result<u32, Malformed> {
        self.array::<3>().map(|[a, b, c]| u32::from_le_bytes([a, b, c, 0]))
    }

    /// Four bytes, little-endian.
    #[inline]
    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_le_bytes)
    }

    /// Eight bytes, little-endian.
    #[inline]
    pub fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_le_bytes)
    }

    /// A length-encoded integer. 0xFB (NULL) and 0xFF are malformed here.
    #[inline]
    pub fn length_encoded(&mut self) -> Result<u64, Malformed> {
        match self.u8()? {
            small @ 0..=0xfa => Ok(u64::from(small)),
            0xfc => self.u16().map(u64::from),
            0xfd => self.u24().map(u64::from),
            0xfe => self.u64(),
            0xfb | 0xff => Err(Malformed),
        }
    }

    /// A length-encoded string.
    #[inline]
    pub fn length_encoded_bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.length_encoded()?;
        self.take(usize::try_from(length).map_err(|_| Malformed)?)
    }

    /// A string up to its NUL, which is skipped.
    pub fn nul_terminated(&mut self) -> Result<&'a [u8], Malformed> {
        let end = self.rest.iter().position(|byte| *byte == 0).ok_or(Malformed)?;
        let text = self.take(end)?;
        self.take(1)?;
        Ok(text)
    }

    /// A string up to its NUL or the end of the packet (some clients leave out the last NUL).
    pub fn nul_or_end(&mut self) -> &'a [u8] {
        match self.nul_terminated() {
            Ok(text) => text,
            Err(Malformed) => std::mem::take(&mut self.rest),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn length_encoded_integers_of_every_width() {
        let bytes = [0xfa, 0xfc, 1, 2, 0xfd, 1, 2, 3, 0xfe, 1, 2, 3, 4, 5, 6, 7, 8, 0xfb];
        let mut cursor = PayloadReader::new(&bytes);
        assert_eq!(cursor.length_encoded(), Ok(250));
        assert_eq!(cursor.length_encoded(), Ok(0x0201));
        assert_eq!(cursor.length_encoded(), Ok(0x03_0201));
        assert_eq!(cursor.length_encoded(), Ok(0x0807_0605_0403_0201));
        assert_eq!(cursor.length_encoded(), Err(Malformed));
        assert_eq!(cursor.length_encoded(), Err(Malformed));
    }

    #[test]
    fn a_length_beyond_the_packet_is_malformed() {
        let bytes = [0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
        assert_eq!(PayloadReader::new(&bytes).length_encoded_bytes(), Err(Malformed));
        assert_eq!(PayloadReader::new(&[5, 1]).length_encoded_bytes(), Err(Malformed));
        assert_eq!(PayloadReader::new(&[1, 2]).nul_terminated(), Err(Malformed));
        assert_eq!(PayloadReader::new(&[1, 2]).nul_or_end(), &[1, 2]);
    }
}
