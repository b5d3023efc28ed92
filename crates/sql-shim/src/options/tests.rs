#![allow(clippy::unwrap_used)]
use super::*;

fn given(words: &[&str]) -> Result<(ServerOptions, GlobalVariables), OptionError> {
    let variables = GlobalVariables::default();
    let arguments = arguments::parse(words.iter().map(|word| (*word).to_owned()))?;
    load(&arguments, &variables).map(|options| (options, variables))
}

fn message(words: &[&str]) -> String {
    given(words).map(|_| String::new()).unwrap_or_else(|error| error.0)
}

#[test]
fn both_spellings_and_sizes() {
    let (options, variables) = given(&[
        "--innodb-buffer-pool-size=256M",
        "--innodb_redo_log_capacity",
        "64m",
        "--bind",
        "127.0.0.1",
        "-P",
        "3399",
        "--autocommit",
        "OFF",
        "--skip-innodb-strict-mode",
        "--innodb-page-size=8K",
    ])
    .unwrap();
    assert_eq!(options.database.buffer_pool_bytes, 256 * MIB);
    assert_eq!(options.database.redo_capacity_bytes, 64 * MIB);
    assert_eq!(options.database.page_size, Some(8192));
    assert_eq!(options.listen.port, 3399);
    assert_eq!(options.listen.addresses, [IpAddr::V4(Ipv4Addr::LOCALHOST)]);
    assert_eq!(variables.value("autocommit"), Value::Bool(false));
    assert_eq!(variables.value("innodb_strict_mode"), Value::Bool(false));
    assert!(!variables.session().settings().autocommit);
}

#[test]
fn tls_has_a_switch_that_is_no_variable() {
    let offered = |words: &[&str]| given(words).map(|(options, _)| options.tls).unwrap();
    assert!(offered(&[]) && offered(&["--ssl"]) && offered(&["--skip-ssl", "--ssl=1"]));
    for words in [["--skip-ssl"], ["--ssl=0"], ["--ssl=OFF"], ["--disable-ssl"], ["--loose-skip-ssl"]] {
        assert!(!offered(&words), "{words:?}");
    }
    assert!(message(&["--ssl=what"]).contains("ON or OFF"));
}

#[test]
fn statements_reach_no_files_of_the_database() {
    let root = std::env::temp_dir().join(format!("untorn-files-{}", std::process::id()));
    for name in ["data/inside", "files"] {
        std::fs::create_dir_all(root.join(name)).unwrap();
    }
    let root = std::fs::canonicalize(root).unwrap();
    std::os::unix::fs::symlink(root.join("data"), root.join("link")).unwrap();
    let with = |datadir: &str, directory: &Path| {
        let datadir = format!("--datadir={}", root.join(datadir).display());
        message(&[&datadir, &format!("--secure-file-priv={}", directory.display())])
    };
    assert_eq!(with("data", &root.join("files")), "");
    for directory in ["data", "data/inside", "link", ""] {
        assert!(with("data", &root.join(directory)).contains("neither"), "{directory}");
    }
    assert!(with("data", Path::new("/")).contains("neither"));
    assert!(with("link", &root.join("data")).contains("neither"));
    assert!(with("not-made-yet", &root).contains("neither"));
    // The way to a directory that is to be made is followed as far as it goes.
    assert!(with("made/../files/data", &root.join("files")).contains("neither"));
    assert!(with("link/../files/data", &root.join("files")).contains("neither"));
    assert_eq!(with("link/../made/data", &root.join("files")), "");
    std::fs::remove_dir_all(&root).unwrap();
}

#[test]
fn who_starts_the_server_names_the_directory_of_the_slow_log_and_no_statement_does() {
    let root = std::env::temp_dir().join(format!("untorn-slow-named-{}", std::process::id()));
    std::fs::create_dir_all(&root).unwrap();
    persisted::keep(&root, "slow_query_log_file", "/elsewhere/slow.log").unwrap();
    let datadir = format!("--datadir={}", root.display());
    let (options, variables) = given(&[&datadir]).unwrap();
    assert_eq!(variables.text("slow_query_log_file"), "/elsewhere/slow.log");
    assert_eq!(options.slow_log, None);
    let (options, _) = given(&[&datadir, "--slow-query-log-file=/named/slow.log"]).unwrap();
    assert_eq!(options.slow_log.as_deref(), Some(Path::new("/named/slow.log")));
    std::fs::remove_dir_all(&root).unwrap();
}

#[test]
fn messages_say_what_to_do() {
    assert_eq!(
        message(&["--inodb-buffer-pool-size=1G"]),
        "command line: unknown option --inodb-buffer-pool-size; did you mean --innodb-buffer-pool-size?"
    );
    assert_eq!(message(&["--loose-what-is-this=1"]), "");
    assert!(message(&["--port"]).contains("needs a value"));
    assert!(message(&["--port=many"]).contains("can't be set to the value of 'many'; give a whole number"));
    assert!(message(&["--innodb-buffer-pool-size=2X"]).contains("also with K, M or G"));
    assert!(message(&["--innodb-strict-mode=perhaps"]).contains("give ON or OFF"));
    assert_eq!(message(&["--port=99999"]), "command line: --port=99999: the greatest port is 65535");
    assert!(message(&["--innodb-page-size=3000"]).contains("must be 4K, 8K"));
    assert!(message(&["--innodb-page-size=1M"]).contains("must be 4K, 8K"));
    assert_eq!(
        message(&["--prot", "4398"]),
        "command line: unknown option --prot; did you mean --port?",
        "the value of an option that does not exist is not what is wrong"
    );
    assert!(message(&["--skip-networking", "4398"]).contains("unexpected argument `4398`"));
    assert!(message(&["frobnicate"]).contains("serve, probe, restore and inspect"));
    assert!(!message(&["--query-cache-size=0"]).contains("did you mean"));
    assert!(message(&["--innodb-page-size=5000"]).contains("4K, 8K, 16K"));
    assert!(message(&["--bind-address=here"]).contains("IP address"));
    assert!(message(&["serve me"]).contains("unexpected argument"));
}

#[test]
fn a_pool_below_the_minimum_is_said_to_be_raised() {
    let pool = |words: &[&str]| {
        let (options, _) = given(words).unwrap();
        options.decisions.into_iter().find(|(what, _)| *what == "buffer pool").unwrap().1
    };
    assert_eq!(pool(&["--innodb-buffer-pool-size=1M"]), "5 MiB (the minimum; raised from 1 MiB)");
    let twice = ["--innodb-buffer-pool-size=1M", "--innodb-buffer-pool-size=64M"];
    assert_eq!(pool(&twice), "64 MiB (set by innodb_buffer_pool_size)");
}

#[test]
fn root_is_told_that_another_user_is_not_taken() {
    assert!(user_warning("nobody", true).unwrap().contains("--user=nobody has no effect"));
    assert_eq!(user_warning("root", true), None);
    assert_eq!(user_warning("nobody", false), None);
}

#[test]
fn option_file_then_command_line() {
    let directory = std::env::temp_dir().join(format!("untorn-options-{}", std::process::id()));
    std::fs::create_dir_all(directory.join("conf.d")).unwrap();
    let main = directory.join("my.cnf");
    std::fs::write(
        &main,
        "[client]\nport=1\n\n[mysqld]\n# comment\nport = 3500 # trailing\nskip-networking\n\
         innodb_buffer_pool_size=\"64M\"\n!includedir conf.d\n[mysqldump]\nquick\n",
    )
    .unwrap();
    std::fs::write(directory.join("conf.d/a.cnf"), "[untorn]\nmax-connections=77\nuser=mysql\n").unwrap();
    let file = format!("--defaults-file={}", main.display());
    let (options, variables) = given(&[&file, "--port=3501"]).unwrap();
    assert_eq!(options.listen.port, 3501);
    assert!(options.listen.addresses.is_empty());
    assert_eq!(options.database.buffer_pool_bytes, 64 * MIB);
    assert_eq!(variables.max_connections(), 77);
    std::fs::write(directory.join("conf.d/a.cnf"), "[untorn]\nmax-connektions=77\n").unwrap();
    assert!(
        message(&[&file])
            .contains("a.cnf:2: unknown option --max-connektions; did you mean --max-connections?")
    );
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn defaults_fit_the_machine() {
    let (options, variables) = given(&["--datadir=/tmp"]).unwrap();
    assert!(options.database.buffer_pool_bytes >= 128 * MIB);
    assert!(options.database.buffer_pool_bytes <= machine::memory_bytes().0.max(128 * MIB));
    assert_eq!(variables.number("innodb_buffer_pool_size"), options.database.buffer_pool_bytes);
    assert_eq!(variables.text("socket"), "/tmp/untorn.sock");
}
