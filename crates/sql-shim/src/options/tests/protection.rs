//! What protects data and accounts is not taken away, weakened or left out without a word.

use super::*;

fn warnings(words: &[&str]) -> Vec<String> {
    given(words).unwrap().0.warnings
}

fn directory(name: &str) -> PathBuf {
    let directory = std::env::temp_dir().join(format!("untorn-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).unwrap();
    directory
}

#[test]
fn a_start_may_leave_out_what_was_persisted() {
    let root = directory("persisted-off");
    persisted::keep(&root, "max_connections", "77").unwrap();
    let datadir = format!("--datadir={}", root.display());
    let connections = |words: &[&str]| given(words).unwrap().1.number("max_connections");
    assert_eq!(connections(&[&datadir]), 77);
    assert_eq!(connections(&[&datadir, "--persisted-globals-load=ON", "--max-connections=5"]), 77);
    assert_eq!(connections(&[&datadir, "--max-connections=5", "--persisted-globals-load=OFF"]), 5);
    assert_eq!(connections(&[&datadir, "--skip-persisted-globals-load"]), 4096);
    assert!(message(&["--persisted-globals-load=perhaps"]).contains("give ON or OFF"));
    // A value that stops the start, and a file that is damaged, say how to start.
    persisted::keep(&root, "port", "99999").unwrap();
    let said = message(&[&datadir]);
    assert!(
        said.contains("mysqld-auto.cnf: --port=99999") && said.contains("--persisted-globals-load=OFF"),
        "{said}"
    );
    assert_eq!(message(&[&datadir, "--persisted-globals-load=0"]), "");
    std::fs::write(persisted::path(&root), "{").unwrap();
    assert!(message(&[&datadir]).contains("--persisted-globals-load=OFF"));
    assert_eq!(message(&[&datadir, "--persisted-globals-load=0"]), "");
    std::fs::remove_dir_all(&root).unwrap();
}

#[test]
fn too_much_memory_is_said_with_where_it_was_asked_for_and_what_to_do() {
    let root = directory("too-much-memory");
    let datadir = format!("--datadir={}", root.display());
    let said = |words: &[&str]| {
        let (options, variables) = given(words).unwrap();
        crate::preflight::check(&options, &variables).unwrap_err()
    };
    let line = said(&[&datadir, "--innodb-buffer-pool-size=100T"]);
    assert!(
        line.starts_with("command line: innodb-buffer-pool-size=109951162777600: more than the"),
        "{line}"
    );
    assert!(line.contains("give less") && !line.contains("persisted"), "{line}");
    let file = root.join("my.cnf");
    std::fs::write(&file, "[mysqld]\n\ninnodb-buffer-pool-size=100T\n").unwrap();
    let line = said(&[&format!("--defaults-file={}", file.display()), &datadir]);
    assert!(line.starts_with(&format!("{}:3: innodb-buffer-pool-size", file.display())), "{line}");
    persisted::keep(&root, "innodb_buffer_pool_size", "109951162777600").unwrap();
    let line = said(&[&datadir, "--innodb-buffer-pool-size=64M"]);
    assert!(line.starts_with(&persisted::path(&root).display().to_string()), "{line}");
    assert!(line.contains("--persisted-globals-load=OFF"), "{line}");
    std::fs::remove_dir_all(&root).unwrap();
}

#[test]
fn protection_that_stays_on_is_said_where_off_was_asked_for() {
    for (word, stays) in [
        ("--mysql-native-password=OFF", "accounts with it log in"),
        ("--skip-mysql-native-password", "accounts with it log in"),
        ("--check-constraint-checks=0", "CHECK constraints are always enforced"),
    ] {
        let said = warnings(&[word]);
        assert!(
            said.len() == 1 && said[0].contains(" has no effect: ") && said[0].contains(stays),
            "{said:?}"
        );
    }
    for word in ["--mysql-native-password=ON", "--mysql-native-password", "--check-constraint-checks=1"] {
        assert!(warnings(&[word]).is_empty(), "{word}: {:?}", warnings(&[word]));
    }
    assert_eq!(
        given(&["--auto-generate-certs=OFF"]).unwrap().1.value("auto_generate_certs"),
        Value::Bool(false)
    );
}
