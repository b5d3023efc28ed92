//! The `untorn` program as a supervisor sees it: signals, a second server, what it prints and where.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};

fn directory(name: &str) -> PathBuf {
    let directory = std::env::temp_dir().join(format!("untorn-program-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).unwrap();
    directory
}

fn untorn(data: &Path) -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_untorn"));
    program.arg(format!("--datadir={}", data.display())).args([
        "--port=0",
        "--innodb-buffer-pool-size=16M",
        "--innodb-redo-log-capacity=8M",
    ]);
    program
}

/// A server that is ready.
struct Running {
    program: Child,
    said: BufReader<ChildStderr>,
}

impl Running {
    fn start(data: &Path) -> Running {
        let mut program = untorn(data).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(program.stderr.take().unwrap());
        let mut line = String::new();
        while line != "ready for connections\n" {
            line.clear();
            assert_ne!(said.read_line(&mut line).unwrap(), 0, "it ended");
        }
        Running { program, said }
    }

    fn signal(&self, names: &[&str]) {
        let id = self.program.id();
        let kills: Vec<String> = names.iter().map(|name| format!("kill -{name} {id}")).collect();
        assert!(Command::new("sh").args(["-c", &kills.join("; ")]).status().unwrap().success());
    }

    /// What it says until it ends, and whether it ended well.
    fn end(mut self) -> (String, bool) {
        let mut rest = String::new();
        self.said.read_to_string(&mut rest).unwrap();
        (rest, self.program.wait().unwrap().success())
    }
}

/// `timeout` signals the child, and the group that it is in. Two kinds: of one the system keeps only one.
#[test]
fn signals_that_come_together_are_one_request_to_stop() {
    let data = directory("signals");
    let server = Running::start(&data);
    server.signal(&["TERM", "INT"]);
    let (said, well) = server.end();
    assert!(well && said.ends_with("stopped\n"), "{said}");
    assert!(said.contains("a signal asks to stop (another one after 3 s ends at once"), "{said}");
    std::fs::remove_dir_all(&data).unwrap();
}

/// Both would listen on the same socket: that says less than who has the directory.
#[test]
fn a_second_server_hears_who_has_the_directory() {
    let data = directory("second");
    let server = Running::start(&data);
    let output = untorn(&data).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    let holder = format!("process {} (", server.program.id());
    assert!(!output.status.success() && said.contains(&holder) && !said.contains("socket="), "{said}");
    server.signal(&["TERM"]);
    assert!(server.end().1);
    std::fs::remove_dir_all(&data).unwrap();
}

#[test]
fn defaults_are_printed_and_nothing_is_started() {
    let data = directory("print");
    let file = data.join("my.cnf");
    std::fs::write(&file, "[untorn]\nmax_connections = 7\n").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_untorn"))
        .args([format!("--defaults-file={}", file.display()), "--print-defaults".to_owned()])
        .current_dir(&data)
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && output.stderr.is_empty());
    assert!(printed.ends_with("arguments:\n--max_connections=7 \n"), "{printed}");
    assert_eq!(std::fs::read_dir(&data).unwrap().count(), 1);
    std::fs::remove_dir_all(&data).unwrap();
}

#[test]
fn a_file_of_tls_that_is_missing_is_said_with_its_setting_and_its_line() {
    let data = directory("tls-files");
    let file = data.join("my.cnf");
    std::fs::write(data.join("there.pem"), "no certificate").unwrap();
    for (settings, expected) in [
        ("ssl_ca=/no/ca.pem", ":2: ssl-ca=/no/ca.pem: "),
        ("ssl_cert=/no/c.pem\nssl_key=there.pem", ":3: ssl-key=there.pem: "),
        ("ssl_key=/no/k.pem\nssl_cert=there.pem", ":2: ssl-key=/no/k.pem: "),
        ("ssl_cert=/no/c.pem", ":2: ssl-cert=/no/c.pem: give both of ssl-cert and ssl-key"),
    ] {
        std::fs::write(&file, format!("[mysqld]\n{settings}\n")).unwrap();
        let mut program = untorn(&data);
        let output = program.arg(format!("--defaults-file={}", file.display())).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        let expected = format!("error: {}{expected}", file.display());
        assert!(!output.status.success() && said.contains(&expected), "{expected}: {said}");
    }
    std::fs::remove_dir_all(&data).unwrap();
}
