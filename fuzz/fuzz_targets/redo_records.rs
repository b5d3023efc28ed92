//! Any bytes as the records of a mini-transaction: decoding ends, and what decodes well is written back
//! alike.
#![no_main]

use libfuzzer_sys::fuzz_target;
use redo::{Record, RecordWriter};

fuzz_target!(|data: &[u8]| {
    let decoded: Result<Vec<Record<'_>>, _> = redo::records(data).collect();
    let Ok(decoded) = decoded else { return };
    let mut writer = RecordWriter::new();
    for record in &decoded {
        match *record {
            Record::Write { page, offset, bytes } => writer.write(page, offset.into(), bytes),
            Record::Fill { page, offset, length, byte } => {
                writer.fill(page, offset.into(), length as usize, byte)
            }
            Record::Move { page, to, from, length } => {
                writer.move_bytes(page, to.into(), from.into(), length as usize)
            }
            Record::Init { page } => writer.init(page),
            Record::Free { page } => writer.free(page),
            Record::SpaceSize { space, pages } => writer.space_size(space, pages),
        }
    }
    // The writer joins adjacent writes, so only the effect is compared: it must decode, to no more records.
    let again =
        redo::records(writer.as_bytes()).collect::<Result<Vec<_>, _>>().expect("what was written decodes");
    assert!(again.len() <= decoded.len());
});
