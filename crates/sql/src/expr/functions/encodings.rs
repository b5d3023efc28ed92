//! Bytes as text and back, and bytes made shorter: base64, zlib.

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use flate2::write::ZlibEncoder;
use flate2::{Compression, Decompress, FlushDecompress, Status};
use untorn::types::Collation;

use super::{Function, TextOf, chunks, function, owned_text, text_fits};
use crate::errors;
use crate::expr::types::Type;
use crate::expr::{Context, Evaluated};
use crate::result::{SqlError, kind};
use crate::value::Value;

/// Characters of a line of TO_BASE64, and the bytes that they stand for.
const LINE: (usize, usize) = (76, 57);

/// Bytes in front of what COMPRESS makes: the length of the text.
const LENGTH_BYTES: usize = 4;

/// What reads base64: bits behind the last byte may be anything.
const DECODER: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// The functions.
pub(super) static FUNCTIONS: &[Function] = &[
    function!("TO_BASE64", 1..=1, |t| Type::text(base64_length(t[0].bytes_max())), |v, cx| {
        to_base64(&v[0], cx)
    })
    .with_text_of(TextOf::Connection),
    function!(
        "FROM_BASE64",
        1..=1,
        |t| Type::bytes((u64::from(t[0].bytes_max()) * 3 / 4) as u32),
        |v, cx| { from_base64(&v[0], cx) }
    ),
    function!("COMPRESS", 1..=1, |t| Type::bytes(packed(t[0].bytes_max())), |v, cx| { compress(&v[0], cx) }),
    function!(
        "UNCOMPRESS",
        1..=1,
        |_| Type { kind: kind::BLOB, ..Type::bytes(1 << 24) },
        |v, cx| uncompress(&v[0], cx)
    ),
    function!("UNCOMPRESSED_LENGTH", 1..=1, |_| Type { length: 11, ..Type::INT }, |v, cx| {
        let text = v[0].to_text();
        match text.first_chunk::<LENGTH_BYTES>() {
            _ if v[0].is_null() => Ok(Value::Null),
            _ if text.is_empty() => Ok(Value::Int(0)),
            Some(length) if text.len() > LENGTH_BYTES => Ok(Value::Int(declared(*length) as i64)),
            _ => {
                cx.state.warn(errors::error(errors::ZLIB_Z_DATA_ERROR, &[]));
                Ok(Value::Int(0))
            }
        }
    }),
];

/// Bytes of the longest result of COMPRESS, as zlib says it.
fn packed(bytes: u32) -> u32 {
    [bytes >> 12, bytes >> 14, bytes >> 25, 18].into_iter().fold(bytes, u32::saturating_add)
}

/// Characters of this many bytes in lines of base64.
fn base64_length(bytes: u32) -> u32 {
    let characters = u64::from(bytes).div_ceil(3) * 4;
    let breaks = characters.saturating_sub(1) / LINE.0 as u64;
    u32::try_from(characters + breaks).unwrap_or(u32::MAX)
}

fn to_base64<'a>(value: &Value<'_>, cx: &Context<'_>) -> Evaluated<'a> {
    if value.is_null() {
        return Ok(Value::Null);
    }
    let text = value.to_text();
    let length = base64_length(u32::try_from(text.len()).unwrap_or(u32::MAX)) as usize;
    if !text_fits(length, "to_base64", cx.state) {
        return Ok(Value::Null);
    }
    cx.state.hold(length)?;
    let mut made = String::with_capacity(length);
    for line in text.chunks(LINE.1) {
        cx.state.work(LINE.0)?;
        if !made.is_empty() {
            made.push('\n');
        }
        STANDARD.encode_string(line, &mut made);
    }
    Ok(owned_text(made.into_bytes(), Collation::Utf8mb4GeneralCi))
}

/// Blanks and ends of lines may stand anywhere; anything else that is no digit makes NULL.
fn from_base64<'a>(value: &Value<'_>, cx: &Context<'_>) -> Evaluated<'a> {
    if value.is_null() {
        return Ok(Value::Null);
    }
    let text = value.to_text();
    let length = text.len().div_ceil(4).saturating_mul(3);
    if !text_fits(length, "from_base64", cx.state) {
        return Ok(Value::Null);
    }
    cx.state.hold(length)?;
    let mut made = Vec::with_capacity(length);
    let mut line = Vec::new();
    let mut at = 0;
    while at < text.len() || !line.is_empty() {
        // Digits of whole groups at a time.
        while at < text.len() && line.len() < LINE.0 {
            if !text[at].is_ascii_whitespace() {
                line.push(text[at]);
            }
            at += 1;
        }
        cx.state.work(LINE.0)?;
        // Nothing follows a padding.
        let padded = line.ends_with(b"=") && text[at..].iter().any(|byte| !byte.is_ascii_whitespace());
        if padded || DECODER.decode_vec(&line, &mut made).is_err() {
            return Ok(Value::Null);
        }
        line.clear();
    }
    Ok(owned_text(made, Collation::Binary))
}

fn declared(length: [u8; LENGTH_BYTES]) -> usize {
    (u32::from_le_bytes(length) & 0x3fff_ffff) as usize
}

/// The length, and the text in zlib's format. A space at the end has a point behind it, so that a CHAR column
/// does not lose it.
fn compress<'a>(value: &Value<'_>, cx: &Context<'_>) -> Evaluated<'a> {
    if value.is_null() {
        return Ok(Value::Null);
    }
    let text = value.to_text();
    if text.is_empty() {
        return Ok(owned_text(Vec::new(), Collation::Binary));
    }
    // What cannot be made shorter becomes a little longer.
    let most = text.len().saturating_add(text.len() / 512).saturating_add(128);
    cx.state.hold(most)?;
    let mut encoder = ZlibEncoder::new((text.len() as u32).to_le_bytes().to_vec(), Compression::default());
    let mut written = Ok(());
    chunks::each_chunk(&text, &|bytes| cx.state.work(bytes.saturating_mul(COMPRESSING)), |piece| {
        if written.is_ok() {
            written = encoder.write_all(piece);
        }
    })?;
    let made = written.and_then(|()| encoder.finish());
    let mut made = made.map_err(|error| errors::error(errors::INTERNAL_ERROR, &[&error]))?;
    if made.last() == Some(&b' ') {
        made.push(b'.');
    }
    Ok(owned_text(made, Collation::Binary))
}

/// How much longer a byte takes to be compressed than to be copied.
const COMPRESSING: usize = 16;

/// Why a stream has no text.
enum Unreadable {
    /// It has more than was declared.
    TooLong,
    /// It is no stream, or only the beginning of one.
    Damaged,
}

/// The text of a stream in zlib's format, no longer than was declared. What stands behind the end of the
/// stream does not count: COMPRESS itself may have put a point there.
fn inflated(
    packed: &[u8],
    most: usize,
    work: &dyn Fn(usize) -> Result<(), SqlError>,
) -> Result<Result<Vec<u8>, Unreadable>, SqlError> {
    let (mut stream, mut made) = (Decompress::new(true), Vec::new());
    let mut buffer = vec![0; chunks::BYTES_AT_ONCE.min(most + 1)];
    loop {
        let (read, put) = (stream.total_in(), stream.total_out());
        let rest = &packed[read as usize..];
        let piece = &rest[..rest.len().min(chunks::BYTES_AT_ONCE)];
        // One byte more than may come tells a text that is too long from one that ends here.
        let room = buffer.len().min(most + 1 - made.len());
        let Ok(status) = stream.decompress(piece, &mut buffer[..room], FlushDecompress::None) else {
            return Ok(Err(Unreadable::Damaged));
        };
        let (read, put) = (stream.total_in() - read, (stream.total_out() - put) as usize);
        work(put)?;
        made.extend_from_slice(&buffer[..put]);
        if made.len() > most {
            return Ok(Err(Unreadable::TooLong));
        }
        if status == Status::StreamEnd {
            return Ok(Ok(made));
        }
        if read == 0 && put == 0 {
            return Ok(Err(Unreadable::Damaged));
        }
    }
}

fn uncompress<'a>(value: &Value<'_>, cx: &Context<'_>) -> Evaluated<'a> {
    if value.is_null() {
        return Ok(Value::Null);
    }
    let text = value.to_text();
    if text.is_empty() {
        return Ok(owned_text(Vec::new(), Collation::Binary));
    }
    let warned = |error| {
        cx.state.warn(error);
        Ok(Value::Null)
    };
    let Some((length, packed)) =
        text.split_first_chunk::<LENGTH_BYTES>().filter(|(_, rest)| !rest.is_empty())
    else {
        return warned(errors::error(errors::ZLIB_Z_DATA_ERROR, &[]));
    };
    let (length, most) = (declared(*length), cx.state.terms().packet_bytes_max);
    if length > most {
        return warned(errors::error(errors::TOO_BIG_FOR_UNCOMPRESS, &[&most]));
    }
    cx.state.hold(length)?;
    match inflated(packed, length, &|bytes| cx.state.work(bytes))? {
        Ok(made) => Ok(owned_text(made, Collation::Binary)),
        Err(Unreadable::TooLong) => warned(errors::error(errors::ZLIB_Z_BUF_ERROR, &[])),
        Err(Unreadable::Damaged) => warned(errors::error(errors::ZLIB_Z_DATA_ERROR, &[])),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_read_whatever_byte_stands_at_its_end_and_behind_it() {
        let good = |_| Ok(());
        let mut last_bytes = std::collections::HashSet::new();
        for number in 0..512u16 {
            let text = [b"row ", &number.to_be_bytes()[..]].concat();
            let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(&text).unwrap();
            let packed = encoder.finish().unwrap();
            last_bytes.insert(packed[packed.len() - 1]);
            for behind in [&b""[..], b".", b"garbage"] {
                let stream = [&packed[..], behind].concat();
                let read = inflated(&stream, text.len(), &good).unwrap().ok();
                assert_eq!(read, Some(text.clone()));
            }
            for end in 0..packed.len() {
                let read = inflated(&packed[..end], text.len(), &good).unwrap();
                assert!(matches!(read, Err(Unreadable::Damaged)), "{number}: {end} of {}", packed.len());
            }
            let shorter = inflated(&packed, text.len() - 1, &good).unwrap();
            assert!(matches!(shorter, Err(Unreadable::TooLong)));
        }
        assert_eq!(last_bytes.len(), 256, "every byte has stood at the end");
    }
}
