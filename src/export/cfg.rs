//! The `.cfg` file: what MySQL and MariaDB compare with their own definition of a table before they
//! import its tablespace, and what we compare with ours. Version 1 is written:
//!
//! ```text
//! u32 version = 1 | string host | string "database/table" | u64 next AUTO_INCREMENT value | u32 page size
//! u32 table flags | u32 columns  | per column: u32 prtype, mtype, len, mbminmaxlen, ind, ord_part,
//!               max_prefix, string name
//! u32 indexes | per index: u64 id, u32 space, root page, type, trx_id offset, user columns,
//!               unique fields, nullable fields, fields, string name |
//!               per field: u32 prefix length, fixed length, string name
//! ```
//!
//! Integers are big-endian; a string is a u32 length that counts the NUL, the bytes, and the NUL. Every
//! server version that can import at all reads version 1, and the same file serves both. This module only
//! knows the file; [`super::describe`] knows what stands in it.
//!
//! MySQL 8.0 and later write versions up to 8, which say more; they are read as far as an Untorn table can be
//! like that:
//!
//! | since | where | what |
//! |---|---|---|
//! | 2 | after the number of columns | u32 tablespace flags |
//! | 3 | after a column's name | u8: has a default for rows written before it was added instantly |
//! | 4 | before a field's name | u32: ascending |
//! | 5 | after the number of columns | u32 nullable columns before the first instantly added one |
//! | 6 | after the tablespace flags | u8 compression |
//! | 7 | after that u32 of version 5 | 5 u32: columns at first, now, total; dropped instantly; row version |
//! | 7 | after a column's name | u8, u8 (u16, u16 in version 8) row versions that added and dropped it, none if all bits are set; u32 position |

/// The version written.
const VERSION: u32 = 1;
/// The newest version read.
const VERSION_MAX: u32 = 8;
/// No string of a `.cfg` file is longer: host names are below 256 bytes, names below 64 characters.
const STRING_BYTES_MAX: usize = 4096;

/// All that a `.cfg` file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// Where the file was made. Not compared on import.
    pub host: String,
    /// `database/table`. Not compared on import.
    pub table: String,
    /// The next AUTO_INCREMENT value; 0 without such a column.
    pub auto_increment: u64,
    /// Page size in bytes.
    pub page_size: u32,
    /// Table flags; 0x21 for ROW_FORMAT=DYNAMIC.
    pub table_flags: u32,
    /// The user's columns in table order, then DB_ROW_ID, DB_TRX_ID and DB_ROLL_PTR.
    pub columns: Vec<Column>,
    /// The indexes, clustered first.
    pub indexes: Vec<Index>,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Precise type: MySQL's type code, flags and collation.
    pub prtype: u32,
    /// Main type.
    pub mtype: u32,
    /// Length in bytes.
    pub len: u32,
    /// `mbmaxlen * 5 + mbminlen` of the character set; 0 for what is not a string type.
    pub mbminmaxlen: u32,
    /// Position in the table.
    pub ind: u32,
    /// 1 if the column orders an index.
    pub ord_part: u32,
    /// Longest prefix of it that orders an index; 0 if the whole column does, or none.
    pub max_prefix: u32,
    /// Name.
    pub name: String,
}

/// An index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    /// Id, as on the pages of the index.
    pub id: u64,
    /// Tablespace id. Not compared on import.
    pub space: u32,
    /// Page number of the root.
    pub root: u32,
    /// 1 clustered, 2 unique; both for a primary key.
    pub kind: u32,
    /// Where DB_TRX_ID stands in a record, if that is a constant; else 0. Not compared on import.
    pub trx_id_offset: u32,
    /// Columns the user declared.
    pub n_user_columns: u32,
    /// Leading fields that are unique.
    pub n_unique: u32,
    /// Fields that may be NULL.
    pub n_nullable: u32,
    /// Name.
    pub name: String,
    /// All fields in storage order.
    pub fields: Vec<IndexField>,
}

/// A field of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexField {
    /// Bytes of the column in the index, 0 for all.
    pub prefix_len: u32,
    /// Bytes of every value, 0 if they vary.
    pub fixed_len: u32,
    /// Name of the column.
    pub name: String,
}

/// Why bytes are not a `.cfg` file that can be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CfgError {
    /// A version that is not known.
    #[error("version {0} of the .cfg format is unknown; versions 1 to 8 are supported")]
    Version(u32),
    /// The table has been altered in a way that rows cannot be read without the other server's dictionary.
    #[error("{0}: rebuild the table there (ALTER TABLE … FORCE) before exporting it")]
    Unsupported(&'static str),
    /// The bytes end too early.
    #[error("the .cfg file ends at byte {0}, in the middle of a value")]
    Truncated(usize),
    /// A string without NUL, not UTF-8, or of an impossible length.
    #[error("byte {0} of the .cfg file: not a string")]
    String(usize),
}

impl Description {
    /// The bytes of the file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Writer(Vec::with_capacity(4096));
        out.u32(VERSION);
        out.string(&self.host);
        out.string(&self.table);
        out.u64(self.auto_increment);
        out.u32(self.page_size);
        out.u32(self.table_flags);
        out.count(self.columns.len());
        for column in &self.columns {
            let Column { prtype, mtype, len, mbminmaxlen, ind, ord_part, max_prefix, name } = column;
            for value in [prtype, mtype, len, mbminmaxlen, ind, ord_part, max_prefix] {
                out.u32(*value);
            }
            out.string(name);
        }
        out.count(self.indexes.len());
        for index in &self.indexes {
            let Index { space, root, kind, trx_id_offset, n_user_columns, n_unique, n_nullable, .. } = index;
            out.u64(index.id);
            for value in [space, root, kind, trx_id_offset, n_user_columns, n_unique, n_nullable] {
                out.u32(*value);
            }
            out.count(index.fields.len());
            out.string(&index.name);
            for field in &index.fields {
                out.u32(field.prefix_len);
                out.u32(field.fixed_len);
                out.string(&field.name);
            }
        }
        out.0
    }

    /// Reads a `.cfg` file.
    ///
    /// # Errors
    /// See [`CfgError`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, CfgError> {
        let mut input = Reader { bytes, at: 0, version: VERSION };
        let version = input.u32()?;
        if !(VERSION..=VERSION_MAX).contains(&version) {
            return Err(CfgError::Version(version));
        }
        input.version = version;
        let mut description = Description {
            host: input.string()?,
            table: input.string()?,
            auto_increment: input.u64()?,
            page_size: input.u32()?,
            table_flags: input.u32()?,
            columns: Vec::new(),
            indexes: Vec::new(),
        };
        let columns = input.u32()?;
        input.instant_columns()?;
        for _ in 0..columns {
            description.columns.push(input.column()?);
        }
        for _ in 0..input.u32()? {
            description.indexes.push(input.index()?);
        }
        // MySQL's copy of the dictionary is a tree in the file, but no index of the table.
        description.indexes.retain(|index| index.name != "CLUST_IND_SDI");
        Ok(description)
    }
}

struct Writer(Vec<u8>);

impl Writer {
    fn u32(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_be_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_be_bytes());
    }

    fn count(&mut self, count: usize) {
        // A table has at most 1017 columns and 64 indexes.
        self.u32(count as u32);
    }

    fn string(&mut self, text: &str) {
        self.count(text.len() + 1);
        self.0.extend_from_slice(text.as_bytes());
        self.0.push(0);
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    version: u32,
}

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], CfgError> {
        let taken = self
            .bytes
            .get(self.at..self.at.saturating_add(len))
            .ok_or(CfgError::Truncated(self.bytes.len()))?;
        self.at += len;
        Ok(taken)
    }

    fn u32(&mut self) -> Result<u32, CfgError> {
        Ok(self.take(4)?.iter().fold(0, |value, byte| value << 8 | u32::from(*byte)))
    }

    fn u64(&mut self) -> Result<u64, CfgError> {
        Ok(u64::from(self.u32()?) << 32 | u64::from(self.u32()?))
    }

    /// What versions 2, 5, 6 and 7 say between the number of columns and the columns.
    fn instant_columns(&mut self) -> Result<(), CfgError> {
        if self.version >= 5 {
            let _nullable = self.u32()?;
        }
        if self.version >= 7 {
            let [first, now, total, dropped, row_version] = self.u32s()?;
            if first != now || now != total || dropped != 0 || row_version != 0 {
                return Err(CfgError::Unsupported("columns were added or dropped instantly"));
            }
        }
        if self.version >= 2 {
            let _flags = self.u32()?;
        }
        if self.version >= 6 && self.take(1)? != [0] {
            return Err(CfgError::Unsupported("the pages are compressed"));
        }
        Ok(())
    }

    /// What versions 3 and 7 say after a column's name.
    fn instant_column(&mut self) -> Result<(), CfgError> {
        const INSTANT: CfgError = CfgError::Unsupported("a column was added or dropped instantly");
        if self.version >= 7 {
            let versions = self.take(if self.version >= 8 { 4 } else { 2 })?;
            if versions.iter().any(|byte| *byte != 0xFF) {
                return Err(INSTANT);
            }
            let _position = self.u32()?;
        }
        if self.version >= 3 && self.take(1)? != [0] {
            return Err(INSTANT);
        }
        Ok(())
    }

    fn index_field(&mut self) -> Result<IndexField, CfgError> {
        let [prefix_len, fixed_len] = self.u32s()?;
        if self.version >= 4 && self.u32()? == 0 {
            return Err(CfgError::Unsupported("an index has a descending column"));
        }
        Ok(IndexField { prefix_len, fixed_len, name: self.string()? })
    }

    fn string(&mut self) -> Result<String, CfgError> {
        let start = self.at;
        let len = self.u32()? as usize;
        if len == 0 || len > STRING_BYTES_MAX {
            return Err(CfgError::String(start));
        }
        match self.take(len)?.split_last() {
            Some((0, text)) => String::from_utf8(text.to_vec()).map_err(|_| CfgError::String(start)),
            _ => Err(CfgError::String(start)),
        }
    }

    fn column(&mut self) -> Result<Column, CfgError> {
        let [prtype, mtype, len, mbminmaxlen, ind, ord_part, max_prefix] = self.u32s()?;
        let name = self.string()?;
        self.instant_column()?;
        Ok(Column { prtype, mtype, len, mbminmaxlen, ind, ord_part, max_prefix, name })
    }

    fn index(&mut self) -> Result<Index, CfgError> {
        let id = self.u64()?;
        let [space, root, kind, trx_id_offset, n_user_columns, n_unique, n_nullable, n_fields] =
            self.u32s::<8>()?;
        let name = self.string()?;
        let mut fields = Vec::new();
        for _ in 0..n_fields {
            fields.push(self.index_field()?);
        }
        Ok(Index { id, space, root, kind, trx_id_offset, n_user_columns, n_unique, n_nullable, name, fields })
    }

    fn u32s<const N: usize>(&mut self) -> Result<[u32; N], CfgError> {
        let mut values = [0; N];
        for value in &mut values {
            *value = self.u32()?;
        }
        Ok(values)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const SAMPLE: &[u8] = include_bytes!("../../tests/fixtures/mariadb-crc32.cfg");

    #[test]
    fn a_file_of_mariadb_comes_out_as_it_went_in() {
        let description = Description::from_bytes(SAMPLE).unwrap();
        assert_eq!((description.table.as_str(), description.auto_increment), ("smp/sample", 701));
        assert_eq!((description.columns.len(), description.indexes.len()), (20, 4));
        assert_eq!(description.to_bytes(), SAMPLE);
    }

    #[test]
    fn a_file_of_mysql_says_the_same_of_the_same_table() {
        let theirs = include_bytes!("../../tests/fixtures/mysql-9.7.cfg");
        let theirs = Description::from_bytes(theirs).unwrap();
        let ours = Description::from_bytes(SAMPLE).unwrap();
        let columns = |description: &Description| -> Vec<_> {
            description
                .columns
                .iter()
                .map(|c| (c.mtype, c.len, c.mbminmaxlen, c.ind, c.name.clone()))
                .collect()
        };
        assert_eq!(columns(&theirs), columns(&ours));
        assert_eq!(theirs.auto_increment, 701);
        let fields = |description: &Description| -> Vec<_> {
            description.indexes.iter().map(|index| (index.name.clone(), index.fields.clone())).collect()
        };
        assert_eq!(fields(&theirs), fields(&ours));
    }

    /// Files of newer versions are written as version 1, and say the same. (The fuzzer expected the bytes to
    /// be the same, which they are for version 1 only.)
    #[test]
    fn newer_versions_are_written_as_version_1() {
        let theirs: &[u8] = include_bytes!("../../tests/fixtures/mysql-9.7.cfg");
        let description = Description::from_bytes(theirs).unwrap();
        let bytes = description.to_bytes();
        assert_ne!(bytes[..4], theirs[..4]);
        assert_eq!(Description::from_bytes(&bytes), Ok(description));
    }

    #[test]
    fn every_truncation_is_an_error() {
        for len in 0..SAMPLE.len() {
            assert!(Description::from_bytes(&SAMPLE[..len]).is_err(), "{len} bytes");
        }
        assert_eq!(Description::from_bytes(&[0, 0, 0, 9]), Err(CfgError::Version(9)));
        assert_eq!(Description::from_bytes(&[0, 0, 0, 1, 255, 255, 255, 255]), Err(CfgError::String(4)));
    }
}
