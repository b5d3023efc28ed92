//! Statements as others may read them: without the passwords that they name.

use std::borrow::Cow;

use sql::digest::Shape;
use sql::lexer::LexicalModes;

use crate::server::registry::INFO_BYTES_MAX;

/// Words behind which a password may follow.
const SECRET: [&[u8]; 2] = [b"identified", b"password"];

fn may_name_secrets(sql: &[u8]) -> bool {
    let names = |word: &[u8]| sql.windows(word.len()).any(|bytes| bytes.eq_ignore_ascii_case(word));
    SECRET.into_iter().any(names)
}

/// A statement without its values where it may name a password. Its bytes are looked at, and not its digest:
/// the text of a PREPARE is a value there, and a statement that failed stands with those behind it.
pub fn without_secrets<'s>(sql: &'s [u8], digest: Option<&str>) -> Cow<'s, [u8]> {
    match digest {
        Some(text) if may_name_secrets(sql) => Cow::Owned(text.as_bytes().to_vec()),
        // What is counted together has no text to show, and what is no statement might be a password.
        None => Cow::Borrowed(b""),
        Some(_) => Cow::Borrowed(sql),
    }
}

/// The same of a statement that another session runs now.
pub fn readable(sql: &[u8]) -> Cow<'_, [u8]> {
    match may_name_secrets(sql) {
        true => Cow::Owned(without_values(sql).into_bytes()),
        false => Cow::Borrowed(sql),
    }
}

/// A statement of another session without its values: up to the first backslash, because its session's
/// sql_mode says what that is, and with it where the value ends that it stands in. A value that was cut is
/// not shown.
pub fn without_values(sql: &[u8]) -> String {
    let known = sql.iter().position(|byte| *byte == b'\\').and_then(|end| sql.get(..end));
    let mut text = sql::digest::text(known.unwrap_or(sql), LexicalModes::default(), Shape::Whole);
    if known.is_some() || sql.len() >= INFO_BYTES_MAX {
        text.push_str(" ...");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_shown() {
        let shown = |sql: &'static str| {
            let text = sql::digest::text(sql.as_bytes(), LexicalModes::default(), Shape::Whole);
            String::from_utf8_lossy(&without_secrets(sql.as_bytes(), Some(&text))).into_owned()
        };
        let running = |sql: &str| String::from_utf8_lossy(&readable(sql.as_bytes())).into_owned();
        for sql in [
            "CREATE USER a IDENTIFIED BY 'secret'",
            "ALTER USER a IDENTIFIED BY 'secret'",
            "set password = 'secret'",
            "SET PASSWORD FOR a = 'secret'",
            "PREPARE s FROM 'ALTER USER a IDENTIFIED BY \"secret\"'",
            "ALTER USER a IDENTIFIED BY secret",
            "SET PASSWORD = secret",
            "SELECT nothing; SET PASSWORD = 'secret'",
            "SET PASSWORD = 'secret'; SELECT SLEEP(600)",
        ] {
            assert!(!shown(sql).contains("secret"), "{}", shown(sql));
            assert!(!running(sql).contains("secret"), "{}", running(sql));
        }
        // Under NO_BACKSLASH_ESCAPES the first text ends with the backslash.
        let unclear = running("SET @p = 'a\\', PASSWORD = 'secret'");
        assert!(!unclear.contains("secret"), "{unclear}");
        let cut = format!("SET PASSWORD = 'secret'; SELECT '{}", "x".repeat(INFO_BYTES_MAX));
        assert!(!running(&cut[..INFO_BYTES_MAX]).contains("secret"));
        assert_eq!((shown("SELECT 'x'"), running("SELECT 'x'")), ("SELECT 'x'".into(), "SELECT 'x'".into()));
        let innocent = "UPDATE users SET password_set = NOW() WHERE name LIKE 'a\\_b' AND id = 7";
        assert_eq!(running(innocent), "UPDATE `users` SET `password_set` = NOW ( ) WHERE NAME LIKE ...");
    }
}
