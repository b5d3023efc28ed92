//! Starts of the `untorn` program that are refused before anything is made.
#![allow(clippy::unwrap_used)]

use std::process::Command;

/// An open address and an account without a password: a new directory would get one, so it is not made.
#[test]
fn an_open_address_without_passwords_makes_nothing() {
    let directory = std::env::temp_dir().join(format!("untorn-refused-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir(&directory).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_untorn"))
        .arg(format!("--datadir={}", directory.display()))
        .args(["--bind-address=0.0.0.0", "--port=0", "--innodb-buffer-pool-size=16M"])
        .output()
        .unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("reachable from other machines") && said.contains("'root'@'localhost'"), "{said}");
    let made: Vec<_> = std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(made.is_empty(), "{made:?}");
    std::fs::remove_dir_all(&directory).unwrap();
}
