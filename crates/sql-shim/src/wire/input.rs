//! Cuts the byte stream of a client into packets.
//!
//! The buffer holds whatever the socket gave: half a packet, or several pipelined commands. A packet is
//! handed out as a slice of that buffer; only what spans several 16 MiB fragments is put together in a second
//! buffer. Lengths are checked against the limit before memory is taken for them, and memory grows with the
//! bytes that really came.

use std::ops::Range;

use super::compression::Algorithm;
use super::packed_input::{PackedInput, Step};

/// Largest payload of one fragment; a fragment of this length is followed by another.
pub const FRAGMENT_BYTES_MAX: usize = 0xff_ffff;
const HEADER_BYTES: usize = 4;
/// Capacity an idle connection keeps.
pub const BUFFER_BYTES_IDLE: usize = 4096;
/// Capacity kept between packets.
pub(super) const BUFFER_BYTES_KEPT: usize = 64 * 1024;

/// Why the stream cannot be cut further; the connection has to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputError {
    /// Longer than the limit in force (error 1153).
    TooLong,
    /// Sequence id not the next one (error 1156).
    OutOfOrder,
    /// A compressed packet that cannot be opened, or is not what its header says (error 1157).
    Corrupt,
}

/// Where a complete packet lies.
#[derive(Debug, Clone)]
enum Found {
    InBuffer(Range<usize>),
    Assembled,
}

/// The incoming half of a connection.
#[derive(Debug, Default)]
pub struct PacketInput {
    buffer: Vec<u8>,
    /// First byte not yet consumed.
    start: usize,
    assembled: Vec<u8>,
    in_fragments: bool,
    sequence: u8,
    found: Option<Found>,
    received: u64,
    /// Where the bytes come from, if they are compressed.
    packed: Option<Box<PackedInput>>,
}

impl PacketInput {
    /// An empty input.
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives the buffer away for a read that appends to it, with room for at least the bytes still missing
    /// (within reason).
    pub fn lend(&mut self) -> Vec<u8> {
        debug_assert!(self.found.is_none(), "a read while a packet is being looked at");
        if let Some(packed) = &mut self.packed {
            return packed.lend();
        }
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        if buffer.is_empty() && buffer.capacity() > BUFFER_BYTES_KEPT {
            buffer = Vec::new();
        }
        let wanted = match buffer.first_chunk::<3>() {
            Some([a, b, c]) => u32::from_le_bytes([*a, *b, *c, 0]) as usize + HEADER_BYTES,
            None => BUFFER_BYTES_IDLE,
        };
        // Memory follows what has come, so that a mere header cannot make us take 16 MiB.
        let reachable = wanted.clamp(BUFFER_BYTES_IDLE, (buffer.len() * 2).max(BUFFER_BYTES_KEPT));
        if buffer.capacity() < reachable.max(buffer.len() + 1) {
            buffer.reserve(reachable.max(buffer.len() + BUFFER_BYTES_IDLE) - buffer.len());
        }
        buffer
    }

    /// Takes the buffer back after a read that appended `count` bytes.
    pub fn restore(&mut self, buffer: Vec<u8>, count: usize) {
        match &mut self.packed {
            None => self.buffer = buffer,
            Some(packed) => packed.restore(buffer),
        }
        self.received += count as u64;
    }

    /// Appends bytes (tests, fuzzing).
    pub fn feed(&mut self, bytes: &[u8]) {
        match &mut self.packed {
            None => self.buffer.extend_from_slice(bytes),
            Some(packed) => packed.feed(bytes),
        }
        self.received += bytes.len() as u64;
    }

    /// Bytes received since the last call.
    pub fn take_received(&mut self) -> u64 {
        std::mem::take(&mut self.received)
    }

    /// A new command begins: its first packet has sequence id 0.
    pub fn expect_command(&mut self) {
        self.expect_sequence(0);
    }

    /// The next packet of the client carries this sequence id (answers within an exchange).
    pub fn expect_sequence(&mut self, sequence: u8) {
        self.sequence = sequence;
        if let Some(packed) = &mut self.packed {
            packed.expect_sequence(sequence);
        }
    }

    /// Sequence id for the reply: one after the client's last.
    pub fn reply_sequence(&self) -> u8 {
        self.packed.as_ref().map_or(self.sequence, |packed| packed.reply_sequence())
    }

    /// From here on the client's packets are compressed: what has come behind the last one too.
    pub fn unpack(&mut self, algorithm: Algorithm) {
        let rest = self.take_rest();
        self.packed = Some(Box::new(PackedInput::new(algorithm, rest)));
    }

    /// Whether [`advance`](Self::advance) has something to go on with before more bytes come.
    pub fn is_unpacking(&self) -> bool {
        self.packed.as_ref().is_some_and(|packed| packed.is_working())
    }

    /// Looks for a whole packet of at most `limit` payload bytes. True: [`payload`](Self::payload) has it;
    /// false: more bytes are needed, or time ([`is_unpacking`](Self::is_unpacking)).
    pub fn advance(&mut self, limit: usize) -> Result<bool, InputError> {
        match self.packed.take() {
            None => self.cut(limit, true),
            Some(mut packed) => {
                let advanced = self.advance_packed(&mut packed, limit);
                self.packed = Some(packed);
                advanced
            }
        }
    }

    fn advance_packed(&mut self, packed: &mut PackedInput, limit: usize) -> Result<bool, InputError> {
        loop {
            // Inside compressed packets clients number as they like: some go on, some begin with the number
            // of the compressed one.
            if !packed.is_working() && self.cut(limit, false)? {
                return Ok(true);
            }
            self.buffer.drain(..std::mem::take(&mut self.start));
            if self.buffer.is_empty() && self.buffer.capacity() > BUFFER_BYTES_KEPT {
                self.buffer = Vec::new();
            }
            if packed.step(limit, &mut self.buffer)? != Step::Opened {
                return Ok(false);
            }
        }
    }

    fn cut(&mut self, limit: usize, numbered: bool) -> Result<bool, InputError> {
        debug_assert!(self.found.is_none(), "the last packet has not been released");
        loop {
            let available = self.buffer.get(self.start..).unwrap_or_default();
            let Some([a, b, c, sequence]) = available.first_chunk::<HEADER_BYTES>() else { return Ok(false) };
            let length = u32::from_le_bytes([*a, *b, *c, 0]) as usize;
            if *sequence != self.sequence && numbered {
                return Err(InputError::OutOfOrder);
            }
            if self.assembled.len() + length > limit {
                return Err(InputError::TooLong);
            }
            let begin = self.start + HEADER_BYTES;
            let Some(fragment) = self.buffer.get(begin..begin + length) else { return Ok(false) };
            self.sequence = self.sequence.wrapping_add(1);
            let last = length < FRAGMENT_BYTES_MAX;
            self.start = begin + length;
            if last && !self.in_fragments {
                self.found = Some(Found::InBuffer(begin..begin + length));
                return Ok(true);
            }
            self.assembled.extend_from_slice(fragment);
            self.in_fragments = !last;
            if last {
                self.found = Some(Found::Assembled);
                return Ok(true);
            }
        }
    }

    /// The packet found by [`advance`](Self::advance).
    pub fn payload(&self) -> &[u8] {
        match &self.found {
            Some(Found::InBuffer(range)) => self.buffer.get(range.clone()).unwrap_or_default(),
            Some(Found::Assembled) => &self.assembled,
            None => &[],
        }
    }

    /// Bytes of memory that wait for packets.
    #[cfg(test)]
    pub(super) fn buffer_capacity(&self) -> usize {
        self.buffer.capacity()
    }

    /// Takes away what came behind the last packet: the bytes are not packets any more.
    pub fn take_rest(&mut self) -> Vec<u8> {
        let rest = self.buffer.split_off(self.start);
        self.buffer.clear();
        self.start = 0;
        rest
    }

    /// The packet has been dealt with.
    pub fn release(&mut self) {
        if let Some(Found::Assembled) = self.found.take() {
            self.assembled = Vec::new();
        }
        if self.start == self.buffer.len() {
            self.buffer.clear();
            self.start = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
        let mut bytes = (payload.len() as u32).to_le_bytes()[..3].to_vec();
        bytes.push(sequence);
        bytes.extend_from_slice(payload);
        bytes
    }

    #[test]
    fn pipelined_commands_byte_by_byte() {
        let mut stream = packet(0, b"one");
        stream.extend(packet(0, b""));
        stream.extend(packet(0, b"three"));
        let mut input = PacketInput::new();
        let mut got = Vec::new();
        for byte in stream {
            input.feed(&[byte]);
            input.expect_command();
            if input.advance(100).unwrap() {
                got.push(input.payload().to_vec());
                input.release();
            }
        }
        assert_eq!(got, [b"one".to_vec(), b"".to_vec(), b"three".to_vec()]);
    }

    #[test]
    fn commands_in_one_read_are_kept() {
        let mut input = PacketInput::new();
        let mut both = packet(0, b"one");
        both.extend(packet(0, b"two"));
        input.feed(&both);
        for expected in [b"one", b"two"] {
            input.expect_command();
            assert!(input.advance(10).unwrap());
            assert_eq!(input.payload(), expected);
            input.release();
        }
        input.expect_command();
        assert!(!input.advance(10).unwrap());
        assert!(input.lend().is_empty());
    }

    #[test]
    fn a_partial_packet_survives_lending() {
        let mut input = PacketInput::new();
        let mut bytes = packet(0, b"one");
        bytes.extend(&packet(0, b"second")[..6]);
        input.feed(&bytes);
        assert!(input.advance(10).unwrap());
        input.release();
        let mut buffer = input.lend();
        assert_eq!(buffer, &packet(0, b"second")[..6]);
        buffer.extend_from_slice(&packet(0, b"second")[6..]);
        input.restore(buffer, 4);
        input.expect_command();
        assert!(input.advance(10).unwrap());
        assert_eq!(input.payload(), b"second");
    }

    #[test]
    fn fragments_join_and_an_exact_multiple_ends_with_an_empty_one() {
        let whole = vec![7u8; FRAGMENT_BYTES_MAX];
        for tail in [&b""[..], b"tail"] {
            let mut input = PacketInput::new();
            input.feed(&packet(0, &whole));
            assert!(!input.advance(usize::MAX).unwrap());
            input.feed(&packet(1, tail));
            assert!(input.advance(usize::MAX).unwrap());
            assert_eq!(input.payload().len(), FRAGMENT_BYTES_MAX + tail.len());
            assert_eq!(input.reply_sequence(), 2);
        }
    }

    #[test]
    fn limits_and_order() {
        let mut input = PacketInput::new();
        input.feed(&[0xff, 0xff, 0xff, 0]);
        assert_eq!(input.advance(1 << 20), Err(InputError::TooLong));
        let mut input = PacketInput::new();
        input.feed(&packet(3, b"x"));
        assert_eq!(input.advance(10), Err(InputError::OutOfOrder));
        let mut input = PacketInput::new();
        input.feed(&[0xf0, 0xff, 0xff, 0]);
        assert!(!input.advance(1 << 24).unwrap());
        assert!(input.lend().capacity() <= 2 * BUFFER_BYTES_KEPT, "a header alone takes no large buffer");
    }
}
