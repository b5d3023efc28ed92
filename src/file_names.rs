//! Names of databases and tables as names of files and directories, in MySQL's encoding.

use std::path::PathBuf;

/// The path of a table's file, relative to the data directory, as in MySQL: `<database>/<table>.ibd`.
/// Characters that a file name should not have are written as `@` and four hexadecimal digits.
pub fn table_file(database: &str, name: &str) -> PathBuf {
    PathBuf::from(file_name(database)).join(format!("{}.ibd", file_name(name)))
}

/// A database's or table's name as a file name (MySQL's filename encoding for what is not a letter, digit or
/// underscore).
pub fn file_name(name: &str) -> String {
    let mut encoded = String::with_capacity(name.len());
    for c in name.chars() {
        if c.is_ascii_alphanumeric() || c == '_' {
            encoded.push(c);
        } else {
            let mut units = [0u16; 2];
            for unit in c.encode_utf16(&mut units) {
                encoded.push_str(&format!("@{unit:04x}"));
            }
        }
    }
    encoded
}

/// The inverse of [`file_name`].
pub fn name_of_file(file_name: &str) -> String {
    let mut units = Vec::with_capacity(file_name.len());
    let mut rest = file_name;
    while let Some(c) = rest.chars().next() {
        let code =
            (c == '@').then(|| rest.get(1..5)).flatten().and_then(|hex| u16::from_str_radix(hex, 16).ok());
        let taken = match code {
            Some(unit) => {
                units.push(unit);
                5
            }
            None => {
                units.extend_from_slice(c.encode_utf16(&mut [0; 2]));
                c.len_utf8()
            }
        };
        rest = rest.get(taken..).unwrap_or_default();
    }
    String::from_utf16_lossy(&units)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_stand_for_names() {
        for name in ["plain_1", "with space", "a.b@c", "caf\u{e9}", "\u{1f980}", "@00", ""] {
            assert_eq!(name_of_file(&file_name(name)), name);
        }
    }
}
