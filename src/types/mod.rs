//! Column types, their values, and the bytes InnoDB stores for them.
//!
//! A [`ColumnType`] is what a column was declared as; a [`Value`] is what a person or a program means by a
//! value of it; the storage encoding is the byte string that stands in the record. [`encode`] and [`decode`]
//! go between the last two. The encodings are InnoDB's: big-endian integers with the sign bit flipped, packed
//! decimals, packed dates, so that most keys compare as plain bytes. FLOAT and DOUBLE (little-endian
//! IEEE 754) and strings (by collation) are the exceptions, see [`ColumnType::comparison`].

mod codec;
mod collation;
mod column_type;
pub mod decimal;
mod temporal;
mod value;

pub(crate) use codec::decode_int;
pub use codec::{EncodeError, decode, encode, encode_int};
pub use collation::{Charset, Collation};
pub use column_type::{ColumnType, SizeClass};
pub use temporal::{Date, DateTime, Time};
pub use value::Value;
