//! Builds packets in one reusable buffer.

use super::compression::Algorithm;
use super::input::FRAGMENT_BYTES_MAX;
use super::packed_output::PackedOutput;

const HEADER_BYTES: usize = 4;
/// A reply longer than this goes to the socket before the command is complete.
pub const FLUSH_BYTES: usize = 64 * 1024;
/// Capacity kept between commands.
const BUFFER_BYTES_KEPT: usize = 128 * 1024;

/// The outgoing half of a connection: packets gathered for one write.
#[derive(Debug, Default)]
pub struct PacketOutput {
    bytes: Vec<u8>,
    packet_start: usize,
    /// Between [`begin`](Self::begin) and [`end`](Self::end).
    unfinished: bool,
    sequence: u8,
    /// Bytes given away to be written, since somebody asked.
    sent: u64,
    /// A buffer is away.
    lent: bool,
    packing: Option<Box<PackedOutput>>,
}

impl PacketOutput {
    /// An empty output.
    pub fn new() -> Self {
        Self::default()
    }

    /// The next packet carries this sequence id, and the compressed one around it.
    pub fn set_sequence(&mut self, sequence: u8) {
        self.sequence = sequence;
        if let Some(packing) = &mut self.packing {
            packing.sequence = sequence;
        }
    }

    /// Sequence id of what comes next; if that is compressed, when all so far is written.
    pub fn sequence(&self) -> u8 {
        self.packing.as_ref().map_or(self.sequence, |packing| packing.sequence)
    }

    /// From here on packets go out compressed; all so far must have been written.
    pub fn pack(&mut self, algorithm: Algorithm) {
        debug_assert!(self.is_empty(), "packets in clear would be compressed");
        self.packing = Some(Box::new(PackedOutput::new(algorithm, self.sequence)));
    }

    /// Whether packets have to be compressed before they are written.
    #[inline]
    pub fn is_packing(&self) -> bool {
        self.packing.is_some()
    }

    /// Compresses a piece of what has gathered; whether there is more.
    pub fn pack_piece(&mut self) -> bool {
        let Some(packing) = &mut self.packing else { return false };
        if packing.step(&self.bytes) {
            return true;
        }
        emptied(&mut self.bytes);
        false
    }

    /// Whether enough has gathered to be written early.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.bytes.len() >= FLUSH_BYTES
    }

    /// Whether nothing is waiting to be written.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.packing.as_ref().is_none_or(|packing| packing.packed.is_empty())
    }

    /// Bytes given away to be written since the last call.
    pub fn take_sent(&mut self) -> u64 {
        std::mem::take(&mut self.sent)
    }

    /// What has gathered.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Gives the buffer away to be written; only between packets.
    pub fn lend(&mut self) -> Vec<u8> {
        while self.pack_piece() {}
        let bytes = match &mut self.packing {
            None => std::mem::take(&mut self.bytes),
            Some(packing) => std::mem::take(&mut packing.packed),
        };
        self.sent += bytes.len() as u64;
        self.lent = true;
        bytes
    }

    /// Whether a buffer was given away to be written and has not come back: nobody knows then how much of it
    /// is gone.
    pub fn is_lent(&self) -> bool {
        self.lent
    }

    /// Gives away what is compressed already, if that is worth a write; there is more then.
    pub fn lend_part(&mut self) -> Option<Vec<u8>> {
        let packing = self.packing.as_mut().filter(|packing| packing.has_part())?;
        let bytes = std::mem::take(&mut packing.packed);
        self.sent += bytes.len() as u64;
        self.lent = true;
        Some(bytes)
    }

    /// Takes the buffer back after the write.
    pub fn restore(&mut self, mut buffer: Vec<u8>) {
        emptied(&mut buffer);
        self.lent = false;
        match &mut self.packing {
            None => self.bytes = buffer,
            Some(packing) => packing.packed = buffer,
        }
    }

    /// Starts a packet.
    #[inline]
    pub fn begin(&mut self) {
        self.packet_start = self.bytes.len();
        self.unfinished = true;
        self.bytes.extend_from_slice(&[0; HEADER_BYTES]);
    }

    /// Withdraws the packet in progress, if there is one: for the cleanup after a panic.
    pub fn abandon_unfinished(&mut self) {
        if std::mem::take(&mut self.unfinished) {
            self.bytes.truncate(self.packet_start);
        }
    }

    /// Withdraws the packet that was begun.
    pub fn abandon(&mut self) {
        self.unfinished = false;
        self.bytes.truncate(self.packet_start);
    }

    /// Payload bytes of the packet in progress.
    #[inline]
    pub fn payload_mut(&mut self) -> &mut [u8] {
        self.bytes.get_mut(self.packet_start + HEADER_BYTES..).unwrap_or_default()
    }

    /// Ends the packet: fills in its header, and cuts it when it is longer than one fragment.
    #[inline]
    pub fn end(&mut self) {
        self.unfinished = false;
        let length = self.bytes.len() - self.packet_start - HEADER_BYTES;
        if length >= FRAGMENT_BYTES_MAX {
            return self.end_in_fragments();
        }
        self.write_header(self.packet_start, length);
    }

    #[inline]
    fn write_header(&mut self, at: usize, length: usize) {
        let [a, b, c, _] = (length as u32).to_le_bytes();
        if let Some(header) = self.bytes.get_mut(at..at + HEADER_BYTES) {
            header.copy_from_slice(&[a, b, c, self.sequence]);
        }
        self.sequence = self.sequence.wrapping_add(1);
    }

    #[cold]
    fn end_in_fragments(&mut self) {
        let payload = self.bytes.split_off(self.packet_start + HEADER_BYTES);
        self.bytes.truncate(self.packet_start);
        let mut rest = payload.as_slice();
        loop {
            let (fragment, after) = rest.split_at(rest.len().min(FRAGMENT_BYTES_MAX));
            let at = self.bytes.len();
            self.bytes.extend_from_slice(&[0; HEADER_BYTES]);
            self.bytes.extend_from_slice(fragment);
            self.write_header(at, fragment.len());
            rest = after;
            if fragment.len() < FRAGMENT_BYTES_MAX {
                return;
            }
        }
    }

    /// Appends packets that carry headers already, giving them the sequence ids that follow. `ends` are the
    /// ends of the packets in `packets`, whose ids start with `first`.
    pub fn put_packets(&mut self, packets: &[u8], ends: &[u32], first: u8) {
        let base = self.bytes.len();
        self.bytes.extend_from_slice(packets);
        if self.sequence != first {
            let mut start = 0;
            let mut sequence = self.sequence;
            for end in ends {
                if let Some(id) = self.bytes.get_mut(base + start + 3) {
                    *id = sequence;
                }
                sequence = sequence.wrapping_add(1);
                start = *end as usize;
            }
        }
        self.sequence = self.sequence.wrapping_add(ends.len() as u8);
    }

    /// One byte.
    #[inline]
    pub fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    /// Two bytes, little-endian.
    #[inline]
    pub fn u16(&mut self, value: u16) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Four bytes, little-endian.
    #[inline]
    pub fn u32(&mut self, value: u32) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Eight bytes, little-endian.
    #[inline]
    pub fn u64(&mut self, value: u64) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Bytes as they are.
    #[inline]
    pub fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// A length-encoded integer.
    #[inline]
    pub fn length_encoded(&mut self, value: u64) {
        put_length_encoded(&mut self.bytes, value);
    }

    /// A length-encoded string.
    #[inline]
    pub fn length_encoded_bytes(&mut self, bytes: &[u8]) {
        put_length_encoded(&mut self.bytes, bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    /// Text of less than 251 bytes written by `write`, with its length before it.
    #[inline]
    pub fn short_text(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let at = self.bytes.len();
        self.bytes.push(0);
        write(&mut self.bytes);
        let length = self.bytes.len() - at - 1;
        debug_assert!(length <= 250, "short text is short");
        if let Some(prefix) = self.bytes.get_mut(at) {
            *prefix = length as u8;
        }
    }
}

fn emptied(buffer: &mut Vec<u8>) {
    if buffer.capacity() > BUFFER_BYTES_KEPT {
        *buffer = Vec::new();
    }
    buffer.clear();
}

/// Appends a length-encoded integer.
#[inline]
pub fn put_length_encoded(bytes: &mut Vec<u8>, value: u64) {
    match value {
        0..=250 => bytes.push(value as u8),
        251..=0xffff => {
            bytes.push(0xfc);
            bytes.extend_from_slice(&(value as u16).to_le_bytes());
        }
        0x1_0000..=0xff_ffff => {
            let [a, b, c, ..] = value.to_le_bytes();
            bytes.extend_from_slice(&[0xfd, a, b, c]);
        }
        _ => {
            bytes.push(0xfe);
            bytes.extend_from_slice(&value.to_le_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::input::PacketInput;
    use super::super::packed_output::PIECE_BYTES;
    use super::*;

    #[test]
    fn what_is_written_is_what_the_other_side_reads() {
        for length in [
            0,
            1,
            250,
            FRAGMENT_BYTES_MAX - 1,
            FRAGMENT_BYTES_MAX,
            FRAGMENT_BYTES_MAX + 5,
            2 * FRAGMENT_BYTES_MAX,
        ] {
            let mut output = PacketOutput::new();
            output.begin();
            output.put(&vec![9; length]);
            output.end();
            let mut input = PacketInput::new();
            input.feed(output.as_bytes());
            assert_eq!(input.advance(usize::MAX), Ok(true), "{length}");
            assert_eq!(input.payload().len(), length);
            assert_eq!(input.reply_sequence(), output.sequence());
        }
    }

    #[test]
    fn what_is_compressed_is_what_the_other_side_opens() {
        for algorithm in [Algorithm::Zlib, Algorithm::Zstd { level: 1 }] {
            for length in [0, 40, 60, 3 * PIECE_BYTES, FRAGMENT_BYTES_MAX + 5] {
                let (mut output, mut input) = (PacketOutput::new(), PacketInput::new());
                output.pack(algorithm);
                input.unpack(algorithm);
                output.set_sequence(250);
                input.expect_sequence(250);
                for _ in 0..2 {
                    output.begin();
                    output.put(&vec![9; length]);
                    output.end();
                }
                assert!(!output.is_empty());
                let sent = output.lend();
                assert!(sent.len() <= length / 50 + 200, "{length}: {}", sent.len());
                assert_eq!(output.take_sent(), sent.len() as u64);
                input.feed(&sent);
                output.restore(sent);
                assert!(output.is_empty());
                for _ in 0..2 {
                    let mut found = input.advance(usize::MAX);
                    while found == Ok(false) && input.is_unpacking() {
                        found = input.advance(usize::MAX);
                    }
                    assert_eq!(found, Ok(true), "{length}");
                    assert_eq!(input.payload(), vec![9; length]);
                    input.release();
                }
                assert_eq!(input.reply_sequence(), output.sequence());
            }
        }
    }

    /// Who is given up while its reply is being compressed is still told why.
    #[test]
    fn more_may_gather_between_pieces() {
        let (mut output, mut input) = (PacketOutput::new(), PacketInput::new());
        output.pack(Algorithm::Zlib);
        input.unpack(Algorithm::Zlib);
        output.begin();
        output.put(&[1; 2 * PIECE_BYTES]);
        output.end();
        assert!(output.pack_piece());
        output.begin();
        output.u8(2);
        output.end();
        input.feed(&output.lend());
        assert_eq!(input.advance(usize::MAX), Ok(true));
        input.release();
        assert_eq!((input.advance(usize::MAX), input.payload()), (Ok(true), &[2][..]));
    }

    #[test]
    fn abandoning_leaves_earlier_packets() {
        let mut output = PacketOutput::new();
        output.begin();
        output.u8(1);
        output.end();
        output.begin();
        output.put(b"half a row");
        output.abandon();
        assert_eq!(output.as_bytes(), [1, 0, 0, 0, 1]);
    }
}
