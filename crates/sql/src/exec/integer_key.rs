//! The whole key of a row out of integers that are at hand: `WHERE id = ?`, and a join by such a key. What
//! `keys.rs` makes of any condition, without its detours.

use untorn::engine::OwnedKey;
use untorn::schema::ColumnDef;

use crate::expr::{Context, Expr};
use crate::plan::access_path::{Alternative, Path};
use crate::value::Value;

/// The key that the path names, if it is one of integers that all its columns can have. `None` says nothing:
/// then the ranges are made.
pub(super) fn integer_key(path: &Path, columns: &[ColumnDef], cx: &Context<'_>) -> Option<OwnedKey> {
    if !path.unique || !path.last.is_empty() {
        return None;
    }
    let mut key = OwnedKey::new();
    for (one, number) in path.equal.iter().zip(&path.columns) {
        let Alternative::Equal(expr) = one else { return None };
        // Asked twice, each of these answers the same.
        let at_hand =
            matches!(expr, Expr::Literal(_) | Expr::Parameter(_) | Expr::Column { .. } | Expr::Outer(_));
        let value = if at_hand { expr.eval(cx).ok()? } else { return None };
        let (width, unsigned) = columns.get(usize::from(*number))?.kind.integer()?;
        key.push(Some(&stored(&value, width, unsigned)?[8 - width..]));
    }
    Some(key)
}

/// An integer in the last bytes of what is stored of it.
fn stored(value: &Value<'_>, width: usize, unsigned: bool) -> Option<[u8; 8]> {
    let beyond = 8 * (8 - width as u32);
    let (bits, above, below) = match *value {
        Value::Int(v) => (v as u64, false, v < 0),
        Value::UInt(v) => (v, v > i64::MAX as u64, false),
        _ => return None,
    };
    if if unsigned { below } else { above } {
        return None;
    }
    let shortened =
        if unsigned { bits << beyond >> beyond } else { ((bits << beyond) as i64 >> beyond) as u64 };
    let sign = if unsigned { 0 } else { 1 << (8 * width - 1) };
    (shortened == bits).then(|| (bits ^ sign).to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the storage makes of it, if the column can have it.
    fn by_the_storage(value: i128, width: usize, unsigned: bool) -> Option<Vec<u8>> {
        let bits = 8 * width as u32;
        let least = if unsigned { 0 } else { -(1i128 << (bits - 1)) };
        let most = if unsigned { (1i128 << bits) - 1 } else { (1i128 << (bits - 1)) - 1 };
        let mut bytes = Vec::new();
        untorn::types::encode_int(value as u64, width, unsigned, &mut bytes);
        (least..=most).contains(&value).then_some(bytes)
    }

    #[test]
    fn integers_are_stored_as_the_storage_does_it() {
        let edges = [0, 1, 7, 8, 15, 16, 23, 24, 31, 32, 63, 64].map(|bits| 1i128 << bits);
        let values = edges.iter().flat_map(|edge| [-edge - 1, -edge, -edge + 1, edge - 1, *edge, edge + 1]);
        for value in values {
            for (width, unsigned) in
                [1, 2, 3, 4, 8].iter().flat_map(|width| [(*width, false), (*width, true)])
            {
                let signed = i64::try_from(value).ok().map(Value::Int);
                let forms = [signed, u64::try_from(value).ok().map(Value::UInt)];
                for form in forms.into_iter().flatten() {
                    let made = stored(&form, width, unsigned).map(|bytes| bytes[8 - width..].to_vec());
                    assert_eq!(
                        made,
                        by_the_storage(value, width, unsigned),
                        "{form:?} in {width} bytes, {}",
                        if unsigned { "unsigned" } else { "signed" }
                    );
                }
            }
        }
    }
}
