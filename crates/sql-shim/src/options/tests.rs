#![allow(clippy::unwrap_used)]
use super::*;

mod first_start;
mod protection;

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
fn a_redo_log_that_is_not_given_may_change_by_itself() {
    let by_itself = |words: &[&str]| {
        let (options, variables) = given(words).unwrap();
        let capacity = options.database.redo_capacity_bytes;
        assert_eq!(variables.number("innodb_redo_log_capacity"), capacity);
        options.database.redo_capacity_default == Some(capacity)
    };
    assert!(by_itself(&[]) && by_itself(&["--innodb-log-files-in-group=3"]));
    assert!(!by_itself(&["--innodb-redo-log-capacity=64M"]));
    assert!(!by_itself(&["--innodb-log-file-size=48M"]));
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
    assert!(message(&["--port"]).contains("needs a value"));
    assert!(message(&["--port=many"]).contains("can't be set to the value of 'many'; give a whole number"));
    assert!(message(&["--innodb-buffer-pool-size=2X"]).contains("also with K, M or G"));
    assert!(message(&["--foreign-key-checks=perhaps"]).contains("give ON or OFF"));
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
    assert!(message(&["--lc-mesages-dir=/usr"]).contains("did you mean --lc-messages-dir?"));
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

/// What the packages of MariaDB and MySQL install, and what tutorials add.
const STOCK: &str = "
[mysqld]
user                    = mysql
pid-file                = /run/mysqld/mysqld.pid
basedir                 = /usr
tmpdir                  = /tmp
lc-messages-dir         = /usr/share/mysql
lc-messages             = en_US
skip-external-locking
skip-name-resolve
skip-host-cache
symbolic-links          = 0
bind-address            = 127.0.0.1
mysqlx-bind-address     = 127.0.0.1
key_buffer_size         = 128M
myisam-recover-options  = BACKUP
max_allowed_packet      = 16M
thread_stack            = 192K
thread_cache_size       = 8
max_connections         = 100
table_cache             = 64
query_cache_limit       = 1M
query_cache_size        = 16M
query_cache_type        = 0
general_log_file        = /var/log/mysql/mysql.log
general_log             = 1
log_error               = /var/log/mysql/error.log
slow_query_log          = 1
slow_query_log_file     = /tmp/slow.log
log_slow_query_time     = 3
log_slow_verbosity      = query_plan,explain
log-queries-not-using-indexes
server-id               = 1
log_bin                 = /var/log/mysql/mysql-bin.log
expire_logs_days        = 10.5
binlog_expire_logs_seconds = 2592000
max_binlog_size         = 100M
binlog_format           = mixed
binlog_do_db            = include_database_name
sync_binlog             = 1
gtid_mode               = ON
enforce-gtid-consistency = ON
character-set-server    = utf8
collation-server        = utf8_unicode_ci
init-connect            = 'SET NAMES utf8'
default-time-zone       = '+03:00'
default-storage-engine  = MyISAM
default-authentication-plugin = mysql_native_password
optimizer_switch        = 'mrr=on,extended_keys=on'
innodb_buffer_pool_size = 64M
innodb_log_file_size    = 64M
innodb_file_per_table   = 1
innodb_file_format      = Barracuda
innodb_flush_method     = O_DIRECT
innodb_flush_log_at_trx_commit = 2
innodb_io_capacity      = 2000
performance-schema-instrument = 'wait/lock/metadata/sql/mdl=ON'
event_scheduler         = ON
local-infile            = 0
[mariadb]
plugin_load_add         = auth_socket
";

#[test]
fn a_stock_option_file_starts_the_server_and_each_setting_in_vain_is_said() {
    let file = std::env::temp_dir().join(format!("untorn-stock-{}.cnf", std::process::id()));
    std::fs::write(&file, STOCK).unwrap();
    let (options, variables) = given(&[&format!("--defaults-file={}", file.display())]).unwrap();
    // Who runs the tests may be root.
    let warnings: Vec<_> =
        options.warnings.iter().filter(|warning| !warning.contains("--user=mysql")).collect();
    let of = |name: &str| {
        let said: Vec<&str> = warnings
            .iter()
            .filter_map(|warning| warning.split_once(": "))
            .map(|(_, warning)| warning)
            .filter(|warning| warning.split(['=', ' ']).next() == Some(name))
            .collect();
        assert!(said.len() <= 1, "{name}: {said:?}");
        said.first().copied().unwrap_or_default()
    };
    let log = "log_bin=/var/log/mysql/mysql-bin.log has no effect: there is no binary log; it stays OFF";
    assert_eq!(of("log_bin"), log);
    assert_eq!(of("query_cache_size"), "query_cache_size=16M has no effect: there is no query cache");
    assert_eq!(
        of("expire_logs_days"),
        "expire_logs_days=10.5 has no effect: there is no binary log; it stays 0"
    );
    assert_eq!(of("sync_binlog"), "sync_binlog=1 has no effect: there is no binary log");
    assert_eq!(of("myisam_recover_options").split(" has").next(), Some("myisam_recover_options=BACKUP"));
    for in_vain in [
        "basedir",
        "lc_messages_dir",
        "mysqlx_bind_address",
        "key_buffer_size",
        "thread_stack",
        "thread_cache_size",
        "table_cache",
        "query_cache_limit",
        "general_log",
        "general_log_file",
        "log_error",
        "log_slow_verbosity",
        "server_id",
        "binlog_expire_logs_seconds",
        "max_binlog_size",
        "binlog_format",
        "binlog_do_db",
        "gtid_mode",
        "enforce_gtid_consistency",
        "init_connect",
        "default_storage_engine",
        "default_authentication_plugin",
        "optimizer_switch",
        "innodb_file_format",
        "innodb_io_capacity",
        "performance_schema_instrument",
        "event_scheduler",
    ] {
        assert!(of(in_vain).contains(" has no effect"), "{in_vain}: {warnings:?}");
    }
    assert!(warnings.iter().any(|warning| warning.contains("group [mariadb] is not read")));
    assert_eq!(warnings.len(), 33, "{warnings:#?}");
    // A feature that does not exist is never ON.
    for (name, value) in [
        ("log_bin", "OFF"),
        ("general_log", "OFF"),
        ("gtid_mode", "OFF"),
        ("event_scheduler", "OFF"),
        ("default_storage_engine", "InnoDB"),
        ("character_set_server", "utf8mb3"),
        ("slow_query_log", "ON"),
        ("long_query_time", "3.000000"),
        ("time_zone", "+03:00"),
    ] {
        assert_eq!(variables.value(name).show(), value, "{name}");
    }
    assert_eq!(options.database.buffer_pool_bytes, 64 * MIB);
    std::fs::remove_file(&file).unwrap();
}

#[test]
fn a_setting_in_vain_is_warned_of_once_and_not_where_it_asks_for_what_is() {
    let warnings = |words: &[&str]| given(words).unwrap().0.warnings;
    for words in [
        &["--skip-log-bin"][..],
        &["--log-bin=OFF"],
        &["--skip-host-cache"],
        &["--mysqlx=0"],
        &["--skip-mysqlx"],
        &["--symbolic-links=0"],
        &["--query-cache-size", "0"],
        &["--character-set-server=utf8mb4"],
        &["--log-bin", "--skip-log-bin"],
    ] {
        assert!(warnings(words).is_empty(), "{words:?}: {:?}", warnings(words));
    }
    assert_eq!(warnings(&["--log-bin=a", "--log-bin=b"]).len(), 1);
    assert_eq!(
        warnings(&["--lc-messages-dir", "/usr/share/mysql"]),
        [
            "command line: lc_messages_dir=/usr/share/mysql has no effect: texts of errors are built in, in English"
        ]
    );
}

#[test]
fn defaults_fit_the_machine() {
    let (options, variables) = given(&["--datadir=/tmp"]).unwrap();
    assert!(options.database.buffer_pool_bytes >= 128 * MIB);
    assert!(options.database.buffer_pool_bytes <= machine::memory_bytes().0.max(128 * MIB));
    assert_eq!(variables.number("innodb_buffer_pool_size"), options.database.buffer_pool_bytes);
    assert_eq!(variables.text("socket"), "/tmp/untorn.sock");
}
