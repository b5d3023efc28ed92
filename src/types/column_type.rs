//! What a column can be declared as, and what follows from it for the record format.

use btree::Comparison;
use serde::{Deserialize, Serialize};

use super::collation::Collation;

/// The four sizes of TEXT and BLOB, by the bytes of their length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SizeClass {
    /// Up to 255 bytes.
    Tiny,
    /// Up to 64 KiB - 1.
    Normal,
    /// Up to 16 MiB - 1.
    Medium,
    /// Up to 4 GiB - 1.
    Long,
}

impl SizeClass {
    /// Bytes of the length in MySQL's own row format (1 to 4); `.cfg` files need it.
    pub fn length_bytes(self) -> u32 {
        match self {
            SizeClass::Tiny => 1,
            SizeClass::Normal => 2,
            SizeClass::Medium => 3,
            SizeClass::Long => 4,
        }
    }

    /// Longest value, in bytes.
    pub fn bytes_max(self) -> u64 {
        (1u64 << (8 * self.length_bytes())) - 1
    }
}

/// The declared type of a column.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ColumnType {
    /// 1 byte.
    TinyInt {
        /// UNSIGNED.
        unsigned: bool,
    },
    /// 2 bytes.
    SmallInt {
        /// UNSIGNED.
        unsigned: bool,
    },
    /// 3 bytes.
    MediumInt {
        /// UNSIGNED.
        unsigned: bool,
    },
    /// 4 bytes.
    Int {
        /// UNSIGNED.
        unsigned: bool,
    },
    /// 8 bytes.
    BigInt {
        /// UNSIGNED.
        unsigned: bool,
    },
    /// 4 bytes, IEEE 754.
    Float,
    /// 8 bytes, IEEE 754.
    Double,
    /// Exact decimal: `precision` digits (1 to 65), `scale` of them after the point (0 to 30).
    Decimal {
        /// Total number of digits.
        precision: u8,
        /// Digits behind the point.
        scale: u8,
    },
    /// Calendar day.
    Date,
    /// Day and time without a zone, `fraction` digits of a second (0 to 6).
    DateTime {
        /// Digits of a second.
        fraction: u8,
    },
    /// A moment (seconds since 1970 UTC), `fraction` digits of a second (0 to 6).
    Timestamp {
        /// Digits of a second.
        fraction: u8,
    },
    /// A span of up to 838:59:59, signed, `fraction` digits of a second (0 to 6).
    Time {
        /// Digits of a second.
        fraction: u8,
    },
    /// 1901 to 2155, and 0.
    Year,
    /// Fixed number of characters, padded with spaces.
    Char {
        /// Declared characters.
        chars: u32,
        /// Character set and order.
        collation: Collation,
    },
    /// Up to a number of characters.
    VarChar {
        /// Declared characters.
        chars: u32,
        /// Character set and order.
        collation: Collation,
    },
    /// Fixed number of bytes, padded with zeros.
    Binary {
        /// Declared bytes.
        bytes: u32,
    },
    /// Up to a number of bytes.
    VarBinary {
        /// Declared bytes.
        bytes: u32,
    },
    /// Long text.
    Text {
        /// Size class.
        size: SizeClass,
        /// Character set and order.
        collation: Collation,
    },
    /// Long bytes.
    Blob {
        /// Size class.
        size: SizeClass,
    },
    /// A JSON document, in MySQL's binary form, with a length as LONGBLOB has.
    Json,
    /// One of a list of names.
    Enum {
        /// The names, in the order of their numbers (from 1).
        members: Vec<String>,
        /// Character set and order of the names.
        collation: Collation,
    },
    /// Any of a list of names.
    Set {
        /// The names, in the order of their bits.
        members: Vec<String>,
        /// Character set and order of the names.
        collation: Collation,
    },
    /// Up to 64 bits.
    Bit {
        /// Declared bits (1 to 64).
        bits: u8,
    },
}

/// Bytes that `digits` fractional digits of a second take.
fn fraction_bytes(digits: u8) -> u16 {
    u16::from(digits).div_ceil(2)
}

impl ColumnType {
    /// Whether every value of this type lies on pages as the same value of `wider`, in the same order: the
    /// type itself, a longer one of variable length, ENUM and SET with more members behind.
    pub fn stores_alike(&self, wider: &ColumnType) -> bool {
        use ColumnType::{Enum, Set, VarBinary, VarChar};
        match (self, wider) {
            (VarChar { chars, collation }, VarChar { chars: more, collation: same }) => {
                chars <= more && collation == same
            }
            (VarBinary { bytes }, VarBinary { bytes: more }) => bytes <= more,
            (Enum { members, collation }, Enum { members: more, collation: same })
            | (Set { members, collation }, Set { members: more, collation: same }) => {
                collation == same && more.starts_with(members) && self.fixed_len() == wider.fixed_len()
            }
            _ => self == wider,
        }
    }

    /// A signed 4-byte integer, INT.
    pub fn int() -> ColumnType {
        ColumnType::Int { unsigned: false }
    }

    /// A signed 8-byte integer, BIGINT.
    pub fn bigint() -> ColumnType {
        ColumnType::BigInt { unsigned: false }
    }

    /// VARCHAR in `utf8mb4_bin`, the order Rust strings have.
    pub fn varchar(chars: u32) -> ColumnType {
        ColumnType::VarChar { chars, collation: Collation::Utf8mb4Bin }
    }

    /// Width in bytes and signedness, if this is an integer type.
    pub fn integer(&self) -> Option<(usize, bool)> {
        match *self {
            ColumnType::TinyInt { unsigned } => Some((1, unsigned)),
            ColumnType::SmallInt { unsigned } => Some((2, unsigned)),
            ColumnType::MediumInt { unsigned } => Some((3, unsigned)),
            ColumnType::Int { unsigned } => Some((4, unsigned)),
            ColumnType::BigInt { unsigned } => Some((8, unsigned)),
            _ => None,
        }
    }

    /// Greatest value, if this is an integer type.
    pub fn integer_max(&self) -> Option<u64> {
        let (width, unsigned) = self.integer()?;
        Some(u64::MAX >> (64 - 8 * width + usize::from(!unsigned)))
    }

    /// Bytes of a value in the record where all values take the same, `None` where they vary. CHAR in a
    /// multi-byte character set varies.
    pub fn fixed_len(&self) -> Option<u16> {
        if let Some((width, _)) = self.integer() {
            return Some(width as u16);
        }
        match self {
            ColumnType::Float => Some(4),
            ColumnType::Double => Some(8),
            ColumnType::Decimal { precision, scale } => {
                Some(super::decimal::packed_len(*precision, *scale) as u16)
            }
            ColumnType::Date => Some(3),
            ColumnType::DateTime { fraction } => Some(5 + fraction_bytes(*fraction)),
            ColumnType::Timestamp { fraction } => Some(4 + fraction_bytes(*fraction)),
            ColumnType::Time { fraction } => Some(3 + fraction_bytes(*fraction)),
            ColumnType::Year => Some(1),
            ColumnType::Char { chars, collation } if collation.bytes_per_char_max() == 1 => {
                Some(*chars as u16)
            }
            ColumnType::Binary { bytes } => Some(*bytes as u16),
            ColumnType::Enum { members, .. } => Some(if members.len() > 255 { 2 } else { 1 }),
            ColumnType::Set { members, .. } => Some(match members.len() {
                0..=8 => 1,
                9..=16 => 2,
                17..=24 => 3,
                25..=32 => 4,
                _ => 8,
            }),
            ColumnType::Bit { bits } => Some(u16::from(*bits).div_ceil(8)),
            _ => None,
        }
    }

    /// Most bytes a value can take in the record; `u32::MAX` for LONGTEXT and LONGBLOB.
    pub fn bytes_max(&self) -> u32 {
        if let Some(len) = self.fixed_len() {
            return u32::from(len);
        }
        match self {
            ColumnType::Char { chars, collation } | ColumnType::VarChar { chars, collation } => {
                chars * collation.bytes_per_char_max()
            }
            ColumnType::VarBinary { bytes } => *bytes,
            ColumnType::Text { size, .. } | ColumnType::Blob { size } => {
                u32::try_from(size.bytes_max()).unwrap_or(u32::MAX)
            }
            ColumnType::Json => u32::MAX,
            _ => 0,
        }
    }

    /// TEXT or BLOB of any size, or JSON.
    pub fn is_blob(&self) -> bool {
        matches!(self, ColumnType::Text { .. } | ColumnType::Blob { .. } | ColumnType::Json)
    }

    /// Holds dates, times, or both; a YEAR is a number.
    pub fn is_temporal(&self) -> bool {
        matches!(
            self,
            ColumnType::Date
                | ColumnType::DateTime { .. }
                | ColumnType::Timestamp { .. }
                | ColumnType::Time { .. }
        )
    }

    /// Holds characters or bytes rather than numbers or times.
    pub fn is_string(&self) -> bool {
        matches!(
            self,
            ColumnType::Char { .. }
                | ColumnType::VarChar { .. }
                | ColumnType::Binary { .. }
                | ColumnType::VarBinary { .. }
                | ColumnType::Text { .. }
                | ColumnType::Blob { .. }
        )
    }

    /// Character set and order; [`Collation::Binary`] for all that is not text.
    pub fn collation(&self) -> Collation {
        match self {
            ColumnType::Char { collation, .. }
            | ColumnType::VarChar { collation, .. }
            | ColumnType::Text { collation, .. }
            | ColumnType::Enum { collation, .. }
            | ColumnType::Set { collation, .. } => *collation,
            _ => Collation::Binary,
        }
    }

    /// How stored values of this type are ordered.
    pub fn comparison(&self) -> Comparison {
        match self {
            ColumnType::Float => Comparison::Float,
            ColumnType::Double => Comparison::Double,
            ColumnType::Char { collation, .. } => collation.comparison_of_char(),
            ColumnType::VarChar { collation, .. } | ColumnType::Text { collation, .. } => {
                collation.stored_comparison()
            }
            _ => Comparison::Binary,
        }
    }
}
