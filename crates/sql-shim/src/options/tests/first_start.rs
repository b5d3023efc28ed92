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
fn the_extra_file_is_read_after_the_other() {
    let (one, word) = file("one", "[mysqld]\nport=3501\nmax_connections=7\n");
    let (two, _) = file("two", "[mysqld]\nport=3502\n");
    let extra = format!("--defaults-extra-file={}", two.display());
    let (options, variables) = given(&[&extra, &word]).unwrap();
    assert_eq!((options.listen.port, variables.max_connections()), (3502, 7));
    assert_eq!(given(&[&extra]).unwrap().0.listen.port, 3502);
    assert_eq!(given(&[&extra, "--port=3503"]).unwrap().0.listen.port, 3503);
    assert!(message(&["--defaults-extra-file"]).contains("--defaults-extra-file needs the path of a file"));
    std::fs::remove_file(one).unwrap();
    std::fs::remove_file(two).unwrap();
}

#[test]
fn defaults_are_printed_as_arguments() {
    let (path, word) =
        file("print", "[client]\nport=1\n[mysqld]\nport = 3501\nskip-networking\nreport_password=secret\n");
    let words = [word.as_str(), "--print-defaults", "--max-connections=7"];
    let arguments = arguments::parse(words.map(str::to_owned)).unwrap();
    assert!(arguments.print_defaults && !arguments.list_variables);
    assert_eq!(
        print_defaults(&arguments).unwrap(),
        "untorn would have been started with the following arguments:\n\
         --port=3501 --skip_networking --report_password=***** --max_connections=7 \n"
    );
    std::fs::remove_file(path).unwrap();
}

#[test]
fn options_of_mysqld_that_are_not_taken_say_what_to_do() {
    for (word, said) in [
        ("--initialize", "not needed: an empty directory becomes a data directory"),
        ("--initialize-insecure", "not needed: an empty directory becomes a data directory"),
        ("--skip-grant-tables", "--untorn-init-accounts"),
        ("--daemonize", "stays in the foreground"),
    ] {
        let line = message(&[word]);
        assert!(line.starts_with(&format!("command line: option {word}: ")) && line.contains(said), "{line}");
    }
}

#[test]
fn a_value_that_is_refused_is_answered_with_what_is_accepted() {
    let said = message(&["--default-time-zone=Europe/Berlin"]);
    assert!(said.contains("'Europe/Berlin'; give SYSTEM, UTC or an offset such as +02:00"), "{said}");
    let said = message(&["--sql-mode=STRICT"]);
    assert!(said.contains("; give modes with commas between them, of ") && said.contains(",ANSI,"), "{said}");
    let (options, variables) = given(&["--datadir=/tmp", "--slow-query-log-file=slow.txt"]).unwrap();
    let said = crate::preflight::check(&options, &variables).unwrap_err();
    assert!(said.starts_with("command line: slow_query_log_file \"slow.txt\": the name has to end in .log"));
    assert!(said.ends_with("without a directory it is in the data directory"), "{said}");
}

#[test]
fn a_loose_option_that_nobody_knows_is_passed_over_with_a_warning() {
    assert_eq!(
        warnings(&["--loose-no-such-thing=1"]),
        ["command line: unknown option loose_no_such_thing=1 is passed over"]
    );
    let said = warnings(&["--loose-some-password=geheim"]);
    assert!(said.len() == 1 && !said[0].contains("geheim"), "{said:?}");
}

#[test]
fn the_size_of_an_extension_that_is_not_there_is_in_vain() {
    let size = "--untorn-bpe-size=1G";
    assert_eq!(
        warnings(&[size]),
        ["command line: untorn_bpe_size=1073741824 has no effect: no untorn_bpe_file is given"]
    );
    assert!(warnings(&["--untorn-bpe-size=0"]).is_empty());
    // SQL may name a file there, and then it counts.
    assert!(warnings(&[size, "--untorn-bpe-dir=/tmp"]).is_empty());
    assert!(warnings(&[size, "--untorn-bpe-file=/tmp/untorn-no-such-tier"]).is_empty());
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
    assert!(warnings(&["--old-passwords=2"])[0].contains("old_passwords=2 has no"));
    assert!(warnings(&["--default-password-lifetime=90"]).is_empty());
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

/// MySQL's rule of 8.0.30: file size times files, where the capacity itself is not given.
#[test]
fn the_older_settings_of_the_redo_log_make_its_capacity() {
    let redo = |words: &[&str]| {
        let (options, variables) = given(words).unwrap();
        assert_eq!(variables.number("innodb_redo_log_capacity"), options.database.redo_capacity_bytes);
        let (_, line) = options.asked.into_iter().find(|(what, _)| *what == "redo log").unwrap();
        (options.database.redo_capacity_bytes / MIB, line, options.warnings)
    };
    let (size, files) = ("--innodb-log-file-size=512M", "--innodb-log-files-in-group=3");
    let (mib, line, warnings) = redo(&[size, files]);
    assert_eq!((mib, warnings.len()), (1536, 0));
    assert_eq!(line, "1536 MiB (innodb_log_file_size=512M × innodb_log_files_in_group=3)");
    assert_eq!(redo(&[files, size]).0, 1536);
    let (mib, line, _) = redo(&[size]);
    assert_eq!((mib, &*line), (1024, "1024 MiB (innodb_log_file_size=512M × 2 files, as in MySQL)"));
    let (mib, line, warnings) = redo(&[size, "--innodb-redo-log-capacity=64M", files]);
    assert_eq!((mib, &*line), (64, "64 MiB (set by innodb_redo_log_capacity)"));
    assert_eq!(
        warnings,
        [
            "command line: innodb_log_file_size=512M has no effect: innodb_redo_log_capacity is given",
            "command line: innodb_log_files_in_group=3 has no effect: innodb_redo_log_capacity is given"
        ]
    );
    let (_, line, warnings) = redo(&[files]);
    assert!(!line.contains("innodb_log"), "{line}");
    assert!(
        warnings.len() == 1 && warnings[0].contains("together with innodb_log_file_size"),
        "{warnings:?}"
    );
    let (mib, line, _) = redo(&["--innodb-log-file-size=1M", "--innodb-log-files-in-group=1"]);
    assert!(mib == 8 && line.contains("brought within the limits"), "{line}");
    assert!(message(&["--innodb-log-file-size=big"]).contains("value of 'big'; give a whole number"));
    assert!(message(&["--innodb-log-file-size"]).contains("needs a value"));
}
