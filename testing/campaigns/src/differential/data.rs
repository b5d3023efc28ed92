//! Values of chance: few, so that they meet, with the edges of each type among them.

use super::schema::{Class, Type, pick};
use disk::Random;
use mysql::Value;

/// Texts that collations see alike or not: case, accents, trailing blanks, numbers, patterns.
const TEXTS: [&str; 40] = [
    "",
    "a",
    "A",
    "á",
    "ä",
    "b",
    "B",
    "ab",
    "AB",
    "aB",
    "abc",
    "ABc",
    "a ",
    "a  ",
    "b ",
    " ",
    " a",
    "ß",
    "ss",
    "s",
    "z",
    "é",
    "e",
    "😀",
    "1",
    "10",
    "01",
    "-3",
    "1.5",
    "0",
    "1e1",
    "2020-01-01",
    "12:00:00",
    "%",
    "_",
    "a%b",
    "a_b",
    "c x",
    "x",
    "aaaaaaaa",
];

const DATES: [&str; 9] = [
    "2020-01-01",
    "2020-02-29",
    "2019-12-31",
    "2021-03-15",
    "1970-01-01",
    "1000-01-01",
    "9999-12-31",
    "2020-01-02",
    "2023-07-09",
];

const TIMES: [&str; 10] = [
    "00:00:00",
    "12:00:00",
    "23:59:59",
    "-01:30:00",
    "838:59:59",
    "00:00:01.5",
    "10:11:12.123456",
    "01:00:00",
    "-838:59:59",
    "100:00:00",
];

/// A text as a literal.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

/// Texts that look different and may be equal in a collation become the same: what stands for a group of
/// equal texts is any of them.
pub fn folded(text: &str) -> String {
    let mut folded = String::new();
    for letter in text.trim_end_matches(' ').chars() {
        match letter {
            'á' | 'ä' | 'Á' | 'Ä' => folded.push('a'),
            'é' | 'É' => folded.push('e'),
            'ß' => folded.push('s'),
            other => folded.extend(other.to_lowercase()),
        }
    }
    while folded.contains("ss") {
        folded = folded.replace("ss", "s");
    }
    // Blanks before a comma: members of GROUP_CONCAT.
    folded.replace(" ,", ",")
}

fn bounds(bits: u32, unsigned: bool) -> (i128, i128) {
    if unsigned { (0, (1 << bits) - 1) } else { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) }
}

/// A literal that a column of this type stores without complaint.
pub fn stored(random: &mut Random, kind: &Type) -> String {
    match kind {
        Type::Integer { bits, unsigned } => {
            let (least, most) = bounds(*bits, *unsigned);
            match random.below(12) {
                0 => least.to_string(),
                1 => most.to_string(),
                2 if !unsigned => "-1".to_owned(),
                3 => "100".to_owned(),
                _ => random.below(10).to_string(),
            }
        }
        Type::Decimal { digits, scale, unsigned } => {
            let whole = (digits - scale) as usize;
            let sign = if !unsigned && random.one_in(4) { "-" } else { "" };
            let fraction = |digits: String| if *scale == 0 { String::new() } else { format!(".{digits}") };
            if random.one_in(10) {
                let nines = "9".repeat(whole);
                return format!("{sign}{}{}", nines, fraction("9".repeat(*scale as usize)));
            }
            let number = if whole == 0 { 0 } else { random.below(10) };
            format!(
                "{sign}{number}{}",
                fraction((pick(random, &["0", "5", "25", "1"])).chars().take(*scale as usize).collect())
            )
        }
        Type::Double => {
            (pick(random, &["0", "1", "2", "-1.5", "0.1", "1e10", "3.25", "1e-3", "10", "7"])).to_owned()
        }
        Type::Char(length, _) | Type::VarChar(length, _) => fitting(random, *length as usize),
        Type::Text(_) => fitting(random, 100),
        Type::VarBinary(length) => {
            let bytes = random.below(1 + (*length as usize).min(4));
            let texts: String = (0..bytes).map(|_| pick(random, &["61", "41", "20", "7A"])).collect();
            format!("x'{texts}'")
        }
        Type::Date => quoted(pick(random, &DATES)),
        Type::DateTime(decimals) => {
            let day = pick(random, &DATES);
            let fraction = if *decimals > 0 && random.one_in(2) { ".5" } else { "" };
            let hour = pick(random, &["00:00:00", "12:00:00", "23:59:59", "01:02:03"]);
            quoted(&format!("{day} {hour}{fraction}"))
        }
        Type::Time(decimals) => {
            let time = pick(random, &TIMES);
            quoted(if *decimals == 6 { time } else { time.split('.').next().unwrap_or(time) })
        }
        Type::Year => (pick(random, &["1901", "2000", "2020", "2155", "1999", "2020"])).to_owned(),
        Type::Enum(_) => (pick(random, &["'a'", "'b'", "'c x'", "'B2'", "'é'"])).to_owned(),
        Type::Set(_) => {
            (pick(random, &["''", "'a'", "'a,b'", "'b,c x'", "'é'", "'a,b,c x,B2,é'"])).to_owned()
        }
        Type::Bit(length) => {
            let most = 1usize << length;
            format!("b'{:b}'", random.below(most))
        }
    }
}

fn fitting(random: &mut Random, length: usize) -> String {
    let text = pick(random, &TEXTS);
    quoted(&text.chars().take(length).collect::<String>())
}

/// A literal to compare a column of this type with: mostly one that it may hold.
pub fn compared(random: &mut Random, kind: &Type) -> String {
    if random.one_in(12) {
        return "NULL".to_owned();
    }
    if random.one_in(10) && !matches!(kind, Type::Year | Type::Bit(_)) {
        // What number is a moment among bounds and texts is a matter of its own.
        return match kind.class() {
            Class::Date | Class::DateTime | Class::Time => quoted(pick(random, &DATES)),
            _ => odd(random),
        };
    }
    match kind {
        Type::Enum(_) | Type::Set(_) if random.one_in(4) => random.below(6).to_string(),
        Type::Char(..) | Type::VarChar(..) | Type::Text(_) => fitting(random, 100),
        _ => stored(random, kind),
    }
}

/// A literal of any kind.
pub fn odd(random: &mut Random) -> String {
    match random.below(14) {
        0 => "0".to_owned(),
        1 => "-1".to_owned(),
        2 => "1.5".to_owned(),
        3 => "255".to_owned(),
        4 => "256".to_owned(),
        5 => "18446744073709551615".to_owned(),
        6 => "-9223372036854775808".to_owned(),
        7 => "1e2".to_owned(),
        8 => "2147483648".to_owned(),
        9 => "0.5".to_owned(),
        10 => quoted(pick(random, &DATES)),
        11 => quoted(pick(random, &TIMES)),
        _ => quoted(pick(random, &TEXTS)),
    }
}

/// A literal of a class.
pub fn literal(random: &mut Random, class: Class) -> String {
    if random.one_in(15) {
        return "NULL".to_owned();
    }
    match class {
        Class::Integer => (pick(random, &["0", "1", "2", "3", "-1", "7", "10", "255", "100"])).to_owned(),
        Class::Number => {
            (pick(random, &["0", "1", "2", "-3", "1.5", "0.25", "10", "2e0", "-0.5"])).to_owned()
        }
        Class::Text => quoted(pick(random, &TEXTS)),
        Class::Date => format!("DATE{}", quoted(pick(random, &DATES))),
        Class::DateTime => {
            format!("TIMESTAMP'{} {}'", pick(random, &DATES), pick(random, &["00:00:00", "12:30:00.25"]))
        }
        Class::Time => format!("TIME{}", quoted(pick(random, &TIMES))),
    }
}

/// A pattern for LIKE.
pub fn pattern(random: &mut Random) -> String {
    let patterns =
        ["%", "a%", "%a", "_", "a_", "%b%", "A%", "", "a", "a\\\\%b", "1%", "__%", "ä%", "s%", " %"];
    format!("'{}'", pick(random, &patterns))
}

/// What a server answered, as a literal that stores the same.
pub fn literal_of(value: &Value, kind: &Type) -> String {
    let Value::Bytes(bytes) = value else { return "NULL".to_owned() };
    match kind {
        Type::VarBinary(_) | Type::Bit(_) => {
            let hex: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
            format!("x'{hex}'")
        }
        Type::Integer { .. } | Type::Decimal { .. } | Type::Double | Type::Year => {
            String::from_utf8_lossy(bytes).into_owned()
        }
        _ => quoted(&String::from_utf8_lossy(bytes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folding_makes_equal_texts_the_same() {
        assert_eq!(folded("ÄSS "), folded("aß"));
        assert_ne!(folded("a b"), folded("ab"));
    }

    #[test]
    fn the_edges_of_integers() {
        assert_eq!(bounds(8, false), (-128, 127));
        assert_eq!(bounds(64, true), (0, i128::from(u64::MAX)));
    }

    #[test]
    fn what_was_answered_is_written_as_it_is_stored() {
        let value = Value::Bytes(b"a'\\".to_vec());
        assert_eq!(literal_of(&value, &Type::Text("utf8mb4_bin")), "'a''\\\\'");
        assert_eq!(literal_of(&value, &Type::VarBinary(4)), "x'61275C'");
        assert_eq!(literal_of(&Value::NULL, &Type::Year), "NULL");
    }
}
