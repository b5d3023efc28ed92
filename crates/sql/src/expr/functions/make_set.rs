//! MAKE_SET, EXPORT_SET: texts that name the bits of a number.

use super::{Function, any_null, function, index, text_fits, text_sum};
use crate::expr::types::Type;
use crate::value::Value;

/// The place of a member among all of a SET, with commas between them, if the number of a value has it.
/// Members are found by their letters, whatever the collation: A to Z in any case. Not of SQL's.
pub static PLACE_OF_MEMBER: Function = function!("PLACE_OF_MEMBER", 3..=3, |_| Type::INT, |v, cx| {
    if any_null(v) {
        return Ok(Value::Null);
    }
    let (wanted, all, bits) = (v[0].to_text(), v[1].to_text(), v[2].to_bits());
    cx.state.work(all.len())?;
    let place = all.split(|byte| *byte == b',').position(|member| member.eq_ignore_ascii_case(&wanted));
    let has = |place: &usize| bits.checked_shr(*place as u32).is_some_and(|bits| bits & 1 == 1);
    Ok(Value::Int(place.filter(has).map_or(0, |place| place as i64 + 1)))
});

/// The functions.
pub(super) static FUNCTIONS: &[Function] = &[
    function!("MAKE_SET", 2.., |t| text_sum(&t[1..]), |v, cx| {
        if v[0].is_null() {
            return Ok(Value::Null);
        }
        let bits = v[0].to_bits();
        let named = v[1..].iter().take(64).enumerate();
        let named = named.filter(|(bit, text)| bits >> bit & 1 == 1 && !text.is_null());
        let texts: Vec<_> = named.map(|(_, text)| text.to_text()).collect();
        cx.state.hold(texts.iter().map(|text| text.len() + 1).sum())?;
        Ok(super::owned_text(texts.join(&b","[..]), v[1..].iter().fold(v[1].collation(), common)))
    }),
    function!("EXPORT_SET", 3..=5, |t| text_sum(&t[1..]), |v, cx| {
        if any_null(v) {
            return Ok(Value::Null);
        }
        let bits = v[0].to_bits();
        let separator = v.get(3).map_or_else(|| b","[..].into(), Value::to_text);
        let count = v.get(4).map_or(64, |_| index(v, 4));
        let count = if (0..=64).contains(&count) { count } else { 64 };
        let (on, off) = (v[1].to_text(), v[2].to_text());
        // A separator less than there are bits.
        let between = separator.len().saturating_mul((count - 1).max(0) as usize);
        let bytes = on.len().max(off.len()).saturating_mul(count as usize).saturating_add(between);
        if !text_fits(bytes, "export_set", cx.state) {
            return Ok(Value::Null);
        }
        cx.state.hold(bytes)?;
        let texts: Vec<_> =
            (0..count).map(|bit| if bits >> bit & 1 == 1 { &on[..] } else { &off[..] }).collect();
        Ok(super::owned_text(texts.join(&separator[..]), common(v[1].collation(), &v[2])))
    }),
];

fn common(rule: untorn::types::Collation, other: &Value<'_>) -> untorn::types::Collation {
    crate::value::collation::common(rule, other.collation())
}
