//! What somebody finds who comes from mysqld and starts the server for the first time: option files, options
//! that are not here, values that are refused, and what each message says of them.

use super::*;

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

