//! Query attributes: named values that a client sends with a statement.
//!
//! Nobody here asks for them: what does so in MySQL, the function `mysql_query_attribute_string`, belongs to
//! a component that it starts without. They are read to the end, because the statement comes behind them.

use smallvec::SmallVec;

use super::params::{BoundType, is_null, read_type, read_value};
use super::payload_reader::{Malformed, PayloadReader};

/// Types of the attributes of one statement.
type Types = SmallVec<[BoundType; 8]>;

/// Least bytes of an attribute in a packet: a type, and the length of a name.
const ATTRIBUTE_BYTES_MIN: usize = 3;

/// How many attributes, or parameters with them, follow. No memory is taken for more than the packet has
/// room for.
pub(super) fn read_count(cursor: &mut PayloadReader<'_>) -> Result<usize, Malformed> {
    let count = usize::try_from(cursor.length_encoded()?).map_err(|_| Malformed)?;
    if count.div_ceil(8) > cursor.rest().len() { Err(Malformed) } else { Ok(count) }
}

/// Skips the attributes of COM_QUERY.
pub(super) fn skip(cursor: &mut PayloadReader<'_>) -> Result<(), Malformed> {
    let count = read_count(cursor)?;
    // Sets of values: there is one, whether or not it is empty.
    if cursor.length_encoded()? != 1 {
        return Err(Malformed);
    }
    if count == 0 {
        return Ok(());
    }
    if count.saturating_mul(ATTRIBUTE_BYTES_MIN) > cursor.rest().len() {
        return Err(Malformed);
    }
    let nulls = cursor.take(count.div_ceil(8))?;
    if cursor.u8()? == 0 {
        // Their types are new with every statement.
        return Err(Malformed);
    }
    let mut types = Types::new();
    for _ in 0..count {
        types.push(read_type(cursor)?);
        cursor.length_encoded_bytes()?;
    }
    skip_values(types.iter().enumerate(), nulls, cursor)
}

/// Skips the values of attributes with their places in the list.
pub(super) fn skip_values<'t>(
    types: impl Iterator<Item = (usize, &'t BoundType)>,
    nulls: &[u8],
    cursor: &mut PayloadReader<'_>,
) -> Result<(), Malformed> {
    for (index, bound) in types {
        if !is_null(nulls, index) {
            read_value(*bound, cursor).map_err(|_| Malformed)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn statement(attributes: &[u8]) -> Result<Vec<u8>, Malformed> {
        let mut cursor = PayloadReader::new(attributes);
        skip(&mut cursor)?;
        Ok(cursor.rest().to_vec())
    }

    #[test]
    fn the_statement_is_what_follows() {
        assert_eq!(statement(b"\0\x01select 1").unwrap(), b"select 1");
        let one = b"\x01\x01\0\x01\x08\0\x01n\x05\0\0\0\0\0\0\0select 2";
        assert_eq!(statement(one).unwrap(), b"select 2");
        let two = b"\x02\x01\0\x01\xfd\0\x01n\x03\x80\x01n\x03abc\x05\0\0\0select 2";
        assert_eq!(statement(two).unwrap(), b"select 2");
        // NULL, without a name.
        assert_eq!(statement(b"\x01\x01\x01\x01\xfd\0\0select 2").unwrap(), b"select 2");
        assert_eq!(statement(b"\0\x01").unwrap(), b"");
    }

    #[test]
    fn what_is_cut_or_impossible_is_malformed() {
        for wrong in [
            &b""[..],
            b"\0",
            b"\0\x02select 1",
            b"\0\0select 1",
            b"\xff\x01select 1",
            b"\xfb\x01select 1",
            b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01x",
            b"\xfc\xff\xff\x01\0\x01select 1",
            // No types, half a type, half a name, half a value.
            b"\x01\x01\0\0select 1",
            b"\x01\x01\0\x01\x08",
            b"\x01\x01\0\x01\x08\0\xfa",
            b"\x01\x01\0\x01\x08\0\x01n",
            b"\x01\x01\0\x01\xfd\0\x01n\xfe\xff\xff\xff\xff\xff\xff\xff\xffselect 1",
            // A type that nobody knows.
            b"\x01\x01\0\x01\xc8\0\x01n\x01select 1",
        ] {
            assert_eq!(statement(wrong), Err(Malformed), "{wrong:?}");
        }
    }

    #[test]
    fn memory_is_taken_for_what_is_there() {
        let mut many = vec![0xfd, 0xff, 0xff, 0x7f, 1];
        many.resize(1 << 20, 0);
        assert_eq!(statement(&many), Err(Malformed));
    }
}
