//! What somebody finds who comes from mysqld and starts the server for the first time: option files, options
//! that are not here, values that are refused, and what each message says of them.

use super::*;

fn warnings(words: &[&str]) -> Vec<String> {
    given(words).unwrap().0.warnings
}

fn file(name: &str, text: &str) -> (PathBuf, String) {
    let path = std::env::temp_dir().join(format!("untorn-first-{name}-{}.cnf", std::process::id()));
    std::fs::write(&path, text).unwrap();
    let word = format!("--defaults-file={}", path.display());
    (path, word)
}

#[test]
fn a_setting_before_the_first_group_is_refused() {
    let (path, word) = file("outside", "# mine\nport = 3500\n[mysqld]\nsocket=/tmp/s\n");
    let said = message(&[&word]);
    assert!(said.starts_with(&format!("{}:2: setting before the first group", path.display())), "{said}");
    assert!(said.contains("`port`"), "{said}");
    // An included file begins without a group, as in MySQL.
    let (main, word) = file("including", &format!("[mysqld]\n!include {}\n", path.display()));
    assert!(message(&[&word]).starts_with(&format!("{}:2: setting before", path.display())));
    std::fs::remove_file(path).unwrap();
    std::fs::remove_file(main).unwrap();
}

#[test]
fn what_cannot_be_included_is_said_with_the_line_that_asks_for_it() {
    for (line, what) in
        [("!includedir /no/such", "cannot read directory"), ("!include /no/such", "cannot read option file")]
    {
        let (path, word) = file("include", &format!("[mysqld]\n\n{line}\n"));
        let said = message(&[&word]);
        assert!(said.starts_with(&format!("{}:3: {what} /no/such: ", path.display())), "{said}");
        std::fs::remove_file(path).unwrap();
    }
    assert!(message(&["--defaults-file=/no/such"]).starts_with("cannot read option file /no/such: "));
}

#[test]
fn a_method_of_authentication_is_no_secret() {
    assert_eq!(
        warnings(&["--default-authentication-plugin=mysql_native_password"]),
        [
            "command line: default_authentication_plugin=mysql_native_password has no effect: an account whose \
             method is not named has caching_sha2_password; IDENTIFIED WITH names another; it stays \
             caching_sha2_password"
        ]
    );
    assert!(warnings(&["--default-password-lifetime=90"])[0].contains("default_password_lifetime=90 has no"));
}

#[test]
fn what_has_no_effect_has_a_reason() {
    for (word, said) in [
        ("--lower-case-table-names=1", "keep their case, and are told apart by it; it stays 0"),
        ("--basedir=/usr/local", "needs no other files"),
        ("--table-open-cache=100", "innodb_open_files"),
        ("--join-buffer-size=1M", "untorn_statement_memory_limit"),
        ("--loose-read-only", "changes are not refused for all accounts"),
        ("--sql-require-primary-key", "tables need no primary key"),
    ] {
        let warnings = warnings(&[word]);
        let [line] = &warnings[..] else { panic!("{word}: {warnings:?}") };
        assert!(line.contains(" has no effect: ") && line.contains(said), "{line}");
    }
}

