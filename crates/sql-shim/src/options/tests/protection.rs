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
    let said = warnings(&["--mysql-native-password=OFF"]);
    assert!(said[0].starts_with("command line: mysql_native_password=OFF has no effect: "), "{said:?}");
    for word in ["--mysql-native-password=ON", "--mysql-native-password", "--check-constraint-checks=1"] {
        assert!(warnings(&[word]).is_empty(), "{word}: {:?}", warnings(&[word]));
    }
    assert_eq!(
        given(&["--auto-generate-certs=OFF"]).unwrap().1.value("auto_generate_certs"),
        Value::Bool(false)
    );
}

#[test]
fn what_is_beyond_the_limits_is_adjusted_with_a_warning_or_refused() {
    let strictest = ["--innodb-flush-log-at-trx-commit=3"];
    assert_eq!(given(&strictest).unwrap().1.flush_log_at_trx_commit(), 1);
    assert!(
        warnings(&strictest)[0]
            .starts_with("command line: innodb_flush_log_at_trx_commit adjusted from 3 to 1")
    );
    assert!(message(&["--innodb-flush-log-at-trx-commit=4"]).contains("give 0, 1 or 2"));
    for level in ["7", "9", "100"] {
        let said = message(&[&format!("--innodb-force-recovery={level}")]);
        assert!(said.contains(&format!("--innodb-force-recovery={level}: give a level of 0 to 6")), "{said}");
    }
    assert_eq!(given(&["--innodb-force-recovery=6"]).unwrap().0.database.force_recovery, 6);
    for (word, said) in [
        ("--max-connections=0", "max_connections adjusted from 0 to 1"),
        ("--max-connections=1M", "max_connections adjusted from 1M to 100000"),
        ("--wait-timeout=0", "wait_timeout adjusted from 0 to 1"),
        ("--long-query-time=-1", "long_query_time adjusted from -1 to 0"),
        ("--innodb-buffer-pool-size=1M", "innodb_buffer_pool_size adjusted from 1M to 5242880"),
    ] {
        assert_eq!(warnings(&[word]), [format!("command line: {said}")], "{word}");
    }
    assert!(warnings(&["--max-connections=0", "--max-connections=7"]).is_empty());
    assert!(message(&["--long-query-time=nan"]).contains("give a number"));
}

#[test]
fn a_group_of_another_server_is_named_and_not_read() {
    let root = directory("groups");
    let file = root.join("my.cnf");
    let text = "[mariadb]\nskip-networking\nssl_ca=a.pem\n[client]\nport=1\n[mysqld-8.4]\nrequire_secure_transport\n\
                [mariadb-10.11]\n# nothing\n[mysqldump]\nquick\n[mysqld]\nport=3500\n[mariadb]\nport=1\n\
                [client-server]\nsocket=/a\n[mysqld2]\nport=5\n[mysqld_safe]\nlog-error=a\n";
    std::fs::write(&file, text).unwrap();
    let (options, _) = given(&[&format!("--defaults-file={}", file.display())]).unwrap();
    assert_eq!((options.listen.port, options.listen.addresses.len()), (3500, 1));
    let of = |group: &str, line: u32| {
        format!(
            "{}:{line}: group [{group}] is not read; Untorn reads [mysqld], [server] and [untorn]",
            file.display()
        )
    };
    let expected = [
        of("mariadb", 1),
        of("mysqld-8.4", 6),
        of("mariadb", 14),
        of("client-server", 16),
        of("mysqld2", 18),
    ];
    assert_eq!(options.warnings, expected);
    std::fs::remove_dir_all(&root).unwrap();
}

#[test]
fn what_somebody_relies_on_stops_the_start_and_loose_does_not() {
    for word in [
        "read-only",
        "read-only=NO_LOCK",
        "enable-read-only",
        "super_read_only=1",
        "innodb_read_only=ON",
        "offline_mode=ON",
        "audit_log=FORCE_PLUS_PERMANENT",
        "server_audit=force",
        "default_table_encryption=ON",
        "innodb_encrypt_tables=FORCE",
        "innodb-encrypt-log=1",
        "innodb_redo_log_encrypt",
        "early-plugin-load=keyring_file.so",
        "keyring_file_data=/var/lib/keyring",
        "ssl_crl=crl.pem",
        "ssl_crlpath=/crl",
        "ssl_capath=/ca",
        "ssl_cipher=AES128-SHA",
        "tls_ciphersuites=TLS_AES_128_GCM_SHA256",
        "ssl_fips_mode=STRICT",
        "chroot=/srv",
        "init_file=/srv/init.sql",
    ] {
        let said = message(&[&format!("--{word}")]);
        assert!(said.contains("the server does not start with it"), "{word}: {said}");
        assert!(said.contains("loose_"), "{word}: {said}");
        let loose = warnings(&[&format!("--loose-{word}")]);
        assert!(loose.len() == 1 && loose[0].contains("has no effect"), "{word}: {loose:?}");
    }
    for word in [
        "read-only=OFF",
        "skip-read-only",
        "super_read_only=0",
        "offline_mode=0",
        "audit_log=OFF",
        "default_table_encryption=OFF",
        "innodb_encrypt_tables=OFF",
        "early-plugin-load=",
        "ssl_crl=",
        "tls_ciphersuites=",
        "ssl_fips_mode=OFF",
        "mysql_native_password=FORCE",
        "transaction_read_only=ON",
    ] {
        assert_eq!(message(&[&format!("--{word}")]), "", "{word}");
        assert!(warnings(&[&format!("--{word}")]).is_empty(), "{word}");
    }
}

#[test]
fn no_password_is_printed() {
    for name in [
        "wsrep_sst_auth",
        "report_password",
        "master_password",
        "wsrep_provider_options",
        "keyring_secret_id",
    ] {
        let said = warnings(&[&format!("--loose-{name}=geheim")]);
        assert!(said.len() == 1 && !said[0].contains("geheim"), "{said:?}");
        assert!(said[0].contains(&format!("{name} (its value is not shown)")), "{said:?}");
    }
    assert!(!message(&["--keyring_secret_id=geheim"]).contains("geheim"));
    assert!(!message(&["--no-such-password=geheim"]).contains("geheim"));
}
