//! Starts of the `untorn` program that are refused before anything is made.
#![allow(clippy::unwrap_used)]

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// What a start with these settings says that is refused and makes nothing in its directory.
fn refused(data: &Path, settings: &[String]) -> String {
    refused_by(&mut Command::new(env!("CARGO_BIN_EXE_untorn")), data, settings)
}

fn refused_by(program: &mut Command, data: &Path, settings: &[String]) -> String {
    let before = std::fs::read_dir(data).unwrap().count();
    let output = program
        .arg(format!("--datadir={}", data.display()))
        .args(["--port=0", "--innodb-buffer-pool-size=16M"])
        .args(settings)
        .output()
        .unwrap();
    assert!(!output.status.success(), "{settings:?}");
    let left: Vec<_> = std::fs::read_dir(data).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(left.len(), before, "{settings:?}: {left:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// An open address and an account without a password: a new directory would get one, so it is not made.
#[test]
fn an_open_address_without_passwords_makes_nothing() {
    let directory = std::env::temp_dir().join(format!("untorn-refused-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir(&directory).unwrap();
    let said = refused(&directory, &["--bind-address=0.0.0.0".to_owned()]);
    assert!(said.contains("reachable from other machines") && said.contains("'root'@'localhost'"), "{said}");
    std::fs::remove_dir_all(&directory).unwrap();
}

/// Each setting that cannot be, with what is said of it. None may leave a file behind.
#[test]
fn a_bad_setting_is_found_before_anything_is_made() {
    let root = std::env::temp_dir().join(format!("untorn-bad-settings-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&root);
    let (data, file) = (root.join("data"), root.join("file"));
    std::fs::create_dir_all(&data).unwrap();
    std::fs::write(&file, "no certificate").unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (pipe, link, directory) = (root.join("pipe.log"), root.join("link.log"), root.join("directory.log"));
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    std::fs::create_dir(&directory).unwrap();
    let (pipe, link) = (pipe.display(), link.display());
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (file, missing) = (file.display(), root.join("missing").display().to_string());
    let taken = taken.local_addr().unwrap();
    let cases: Vec<(Vec<String>, &str)> = [
        ("--innodb-page-size=5000".to_owned(), "must be 4K, 8K, 16K, 32K or 64K"),
        ("--innodb-buffer-pool-size=100T".to_owned(), "more than the"),
        ("--no-such-setting=1".to_owned(), "unknown option --no-such-setting"),
        ("--max-conections=7".to_owned(), "did you mean --max-connections?"),
        ("--sql-mode=NO_SUCH_MODE".to_owned(), "sql_mode"),
        ("--bind-address=nowhere".to_owned(), "bind-address=nowhere"),
        (format!("--port={}", taken.port()), "cannot listen on"),
        (format!("--socket={missing}/s"), "socket="),
        (format!("--socket={file}"), "there is a file that is no socket"),
        ("--metrics-address=here".to_owned(), "metrics-address=here"),
        (format!("--metrics-address={taken}"), "metrics-address="),
        ("--dashboard-address=0.0.0.0:0".to_owned(), "dashboard-address=0.0.0.0:0"),
        ("--tls-version=SSLv3".to_owned(), "tls-version=SSLv3"),
        ("--tls-version= --require-secure-transport".to_owned(), "require-secure-transport: there is no TLS"),
        (format!("--ssl-cert={file}"), "give both of ssl-cert and ssl-key"),
        (format!("--ssl-cert={file} --ssl-key={file}"), "file"),
        (format!("--ssl-ca={missing}"), "missing"),
        (format!("--secure-file-priv={missing}"), "secure-file-priv="),
        (format!("--slow-query-log-file={missing}/slow.log"), "slow_query_log_file"),
        ("--slow-query-log-file=slow.txt".to_owned(), "has to end in .log"),
        (format!("--tmpdir={missing}"), "tmpdir="),
        (format!("--innodb-doublewrite-dir={file}"), "innodb-doublewrite-dir="),
        (format!("--untorn-backup-dir={file}"), "untorn-backup-dir="),
        (
            format!("--metrics-address={free} --dashboard-address={free}"),
            "the same address as metrics-address",
        ),
        (
            format!("--metrics-address=0.0.0.0:{0} --dashboard-address={free}", free.port()),
            "the same address as",
        ),
        (format!("--port={} --metrics-address={free}", free.port()), "the same address as the server's port"),
        (
            format!("--port={0} --bind-address=* --metrics-address=127.0.0.1:{0}", free.port()),
            "the server's port",
        ),
        (format!("--slow-query-log-file={pipe}"), "anything but a regular file"),
        (format!("--slow-query-log-file={link}"), "anything but a regular file"),
        (format!("--slow-query-log-file={}", directory.display()), "anything but a regular file"),
        ("--read-only=ON".to_owned(), "the server does not start with it"),
        ("--innodb-force-recovery=9".to_owned(), "give a level of 0 to 6"),
        ("--untorn-bpe-file=/dev/null".to_owned(), "untorn_bpe_file=/dev/null"),
    ]
    .into_iter()
    .map(|(words, said)| (words.split(' ').map(str::to_owned).collect(), said))
    .collect();
    for (words, expected) in cases {
        let said = refused(&data, &words);
        assert!(said.contains(expected), "{words:?}: {said}");
    }
    std::fs::remove_dir_all(&root).unwrap();
}

/// The socket was made last, behind the database.
#[test]
fn a_directory_where_no_socket_can_be_made_is_found_before_anything_is_made() {
    let root = std::env::temp_dir().join(format!("untorn-no-socket-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&root);
    let (data, locked) = (root.join("data"), root.join("locked"));
    std::fs::create_dir_all(&data).unwrap();
    std::fs::create_dir(&locked).unwrap();
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o555)).unwrap();
    let mut program = Command::new(env!("CARGO_BIN_EXE_untorn"));
    if nix::unistd::geteuid().is_root() {
        // Root may write everywhere; somebody else may not even reach the program where it was built.
        let copy = root.join("untorn");
        std::fs::copy(env!("CARGO_BIN_EXE_untorn"), &copy).unwrap();
        std::os::unix::fs::chown(&data, Some(65_534), Some(65_534)).unwrap();
        program = Command::new(&copy);
        program.uid(65_534).gid(65_534);
    }
    let socket = format!("--socket={}/s", locked.display());
    let said = refused_by(program.current_dir(&root), &data, &[socket]);
    assert!(said.contains("no files can be made in"), "{said}");
    std::fs::remove_dir_all(&root).unwrap();
}

/// Accounts were put beside the tables of MySQL before the engine refused its directory.
#[test]
fn nothing_is_made_in_the_directory_of_another_server() {
    let data = std::env::temp_dir().join(format!("untorn-foreign-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&data);
    std::fs::create_dir_all(&data).unwrap();
    std::fs::write(data.join("ibdata1"), "tables").unwrap();
    let said = refused(&data, &[]);
    assert!(said.contains("data directory of another server"), "{said}");
    std::fs::remove_dir_all(&data).unwrap();
}
