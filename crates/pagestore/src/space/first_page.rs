//! Page 0 of a file: whether it is a tablespace that this engine opens.
//!
//! Encrypted and compressed files are refused here, and so are those of another row format or page size and
//! MariaDB's full_crc32 files, each with what to do about it. Where the structures of a file lie is another
//! question, which [`crate::fsp::Layout::from_flags`] answers for more kinds of files.

use page::PageSize;

/// Offset of the tablespace id in the FSP header of page 0.
pub(crate) const FSP_SPACE_ID: usize = page::HEADER_LEN;
/// Offset of the size in pages in the FSP header of page 0.
pub(super) const FSP_SIZE: usize = 46;
/// Offset of the tablespace flags in page 0.
pub(crate) const FSP_FLAGS: usize = 54;

/// What page 0 of a tablespace says about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SpaceHeader {
    /// Tablespace id.
    pub space: u32,
    /// Tablespace flags.
    pub flags: u32,
}

/// Checks page 0 (`docs/internals/tablespace-files.md`). `None` when it is all zero.
pub(crate) fn check_first_page(bytes: &[u8], page_size: PageSize) -> Result<Option<SpaceHeader>, String> {
    if page::is_all_zero(bytes) {
        return Ok(None);
    }
    let flags = page::u32_at(bytes, FSP_FLAGS);
    let space = page::space_id(bytes);
    // Looked at before the checksum: these files have it elsewhere.
    if flags & 0x10 != 0 && page::page_type(bytes) == page::kind::FSP_HDR {
        return Err(format!(
            "it is in MariaDB's full_crc32 format (flags {flags:#x}); rebuild it there with \
             innodb_checksum_algorithm=crc32 before importing it"
        ));
    }
    page::verify(bytes).map_err(|why| format!("page 0: {why}"))?;
    if page::page_type(bytes) != page::kind::FSP_HDR || page::page_number(bytes) != 0 {
        return Err(format!(
            "page 0 has type {} and number {}, expected type {} and number 0",
            page::page_type(bytes),
            page::page_number(bytes),
            page::kind::FSP_HDR
        ));
    }
    if page::u32_at(bytes, FSP_SPACE_ID) != space {
        return Err(format!(
            "page 0 says tablespace {space} in its header and {} in its FSP header",
            page::u32_at(bytes, FSP_SPACE_ID)
        ));
    }
    check_flags(flags, page_size)?;
    Ok(Some(SpaceHeader { space, flags }))
}

/// Refuses a file that says it is another tablespace than the one expected.
pub(super) fn check_space_id(header: SpaceHeader, expected: u32) -> Result<(), String> {
    if header.space == expected {
        return Ok(());
    }
    Err(format!(
        "it says it is tablespace {}, expected {expected}: it belongs to another table or another data directory",
        header.space
    ))
}

/// Tablespace flags this engine opens: DYNAMIC, uncompressed, unencrypted, of our page size; the DATA_DIR bit
/// and MySQL 8.0's SDI bit are accepted.
pub(crate) fn check_flags(flags: u32, page_size: PageSize) -> Result<(), String> {
    const DYNAMIC: u32 = 0x21;
    const PAGE_SIZE: u32 = 0xF << 6;
    const DATA_DIR: u32 = 1 << 10;
    const SDI: u32 = 1 << 14;
    if flags & PAGE_SIZE != page_size.flag_bits() {
        return Err(format!(
            "its flags {flags:#x} say another page size than innodb_page_size={}",
            page_size.bytes()
        ));
    }
    if flags & 0x1E != 0 {
        return Err(format!(
            "ROW_FORMAT=COMPRESSED (flags {flags:#x}) is not supported; rebuild it as DYNAMIC"
        ));
    }
    if flags & DYNAMIC != DYNAMIC {
        return Err(format!(
            "ROW_FORMAT=COMPACT or REDUNDANT (flags {flags:#x}) is not supported; rebuild it as DYNAMIC"
        ));
    }
    let unknown = flags & !(DYNAMIC | PAGE_SIZE | DATA_DIR | SDI);
    if unknown != 0 {
        return Err(format!(
            "its flags {flags:#x} have bits this engine does not know ({unknown:#x}: encrypted, shared, temporary or \
             page-compressed)"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_dynamic_files_of_our_page_size_are_taken() {
        let size = PageSize::DEFAULT;
        for good in [0x21, 0x421, 0x4021] {
            assert_eq!(check_flags(good, size), Ok(()), "{good:#x}");
        }
        for bad in [0x0, 0x1, 0x20, 0x23, 0x2021, 0x1_0021, 0x821, 0x1021, 0xE1] {
            assert!(check_flags(bad, size).is_err(), "{bad:#x}");
        }
        for (bytes, flags) in
            [(4096, 0x21 | 3 << 6), (8192, 0x21 | 4 << 6), (32768, 0x21 | 6 << 6), (65536, 0x21 | 7 << 6)]
        {
            let size = PageSize::new(bytes).unwrap_or_default();
            assert_eq!(check_flags(flags, size), Ok(()), "{bytes}");
            assert!(check_flags(0x21, size).is_err());
        }
    }
}
