//! Bytes as text and back, and bytes made shorter: base64, zlib.

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::{ZlibDecoder, ZlibEncoder};
use untorn::types::Collation;

use super::{Function, chunks, function, owned_text, text_fits};
use crate::errors;
use crate::expr::types::Type;
use crate::expr::{Context, Evaluated};
use crate::result::{SqlError, kind};
use crate::value::Value;

/// Characters of a line of TO_BASE64, and the bytes that they stand for.
const LINE: (usize, usize) = (76, 57);

/// Bytes in front of what COMPRESS makes: the length of the text.
const LENGTH_BYTES: usize = 4;

/// The functions.
pub(super) static FUNCTIONS: &[Function] = &[
    function!("TO_BASE64", 1..=1, |t| Type::text(base64_length(t[0].bytes_max())), |v, cx| {
        to_base64(&v[0], cx)
    }),
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
        if padded || STANDARD.decode_vec(&line, &mut made).is_err() {
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
    if !text_fits(most, "compress", cx.state) {
        return Ok(Value::Null);
    }
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

/// Bytes that a decoder has put out, no more than were declared.
struct Room<'c> {
    made: Vec<u8>,
    most: usize,
    cx: &'c Context<'c>,
    stopped: Option<SqlError>,
}

impl std::io::Write for Room<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if let Err(error) = self.cx.state.work(bytes.len()) {
            self.stopped = Some(error);
        }
        if self.stopped.is_some() || bytes.len() > self.most - self.made.len() {
            return Err(std::io::ErrorKind::WriteZero.into());
        }
        self.made.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
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
    let room = Room { made: Vec::new(), most: length, cx, stopped: None };
    let mut decoder = ZlibDecoder::new(room);
    let read = packed.chunks(chunks::BYTES_AT_ONCE).try_for_each(|piece| decoder.write_all(piece));
    let read = read.and_then(|()| decoder.try_finish());
    let Room { made, stopped, .. } =
        std::mem::replace(decoder.get_mut(), Room { made: Vec::new(), most: 0, cx, stopped: None });
    match (stopped, read) {
        (Some(error), _) => Err(error),
        (None, Ok(())) => Ok(owned_text(made, Collation::Binary)),
        (None, Err(error)) if error.kind() == std::io::ErrorKind::WriteZero => {
            warned(errors::error(errors::ZLIB_Z_BUF_ERROR, &[]))
        }
        (None, Err(_)) => warned(errors::error(errors::ZLIB_Z_DATA_ERROR, &[])),
    }
}
