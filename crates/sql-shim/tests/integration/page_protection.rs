//! Page protection, page sizes, forced recovery and signals through the `untorn` program and its protocol.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::support::{Client, error_code};

/// The program on a data directory. Killed when dropped.
struct Program {
    child: Child,
    port: u16,
    lines: Vec<String>,
}

impl Program {
    /// Starts it and waits until it is ready.
    // Dropping the value waits for the process; a failed start fails the test, and the process with it.
    #[allow(clippy::zombie_processes)]
    fn start(datadir: &Path, options: &[&str]) -> Program {
        let mut child = Command::new(env!("CARGO_BIN_EXE_untorn"))
            .arg(format!("--datadir={}", datadir.display()))
            .args(["--port=0", "--bind-address=127.0.0.1", "--innodb-buffer-pool-size=16M"])
            .arg("--innodb-redo-log-capacity=16M")
            .args(options)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stderr.take().unwrap());
        let (mut lines, mut port) = (Vec::new(), 0);
        loop {
            let mut line = String::new();
            let length = output.read_line(&mut line).unwrap();
            assert!(length > 0, "the program ended: {lines:#?}");
            if let Some(address) = line.strip_prefix("listening on") {
                port = address.trim().rsplit(':').next().and_then(|port| port.parse().ok()).unwrap_or(port);
            }
            let is_ready = line.starts_with("ready for connections");
            lines.push(line);
            if is_ready {
                // What comes later must not fill the pipe.
                std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
                return Program { child, port, lines };
            }
        }
    }

    fn client(&self) -> Client {
        let mut client = Client::connect(self.port);
        let reply = client.log_in("root", b"", "caching_sha2_password", crate::support::CAPABILITIES, None);
        assert_eq!(reply[0], 0, "{reply:?}");
        client
    }

    /// As a power cut would, but for the page cache.
    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn stop(mut self) {
        self.client().query("shutdown");
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn directory(name: &str) -> PathBuf {
    let directory = std::env::temp_dir().join(format!("untorn-protection-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).unwrap();
    directory
}

fn ok(client: &mut Client, sql: &str) {
    let reply = client.query(sql);
    assert_eq!(reply[0], 0, "{sql}: {}", String::from_utf8_lossy(&reply));
}

fn insert_rows(client: &mut Client, rows: u32, long: usize) {
    ok(client, "create database d");
    ok(client, "create table d.t (id int primary key, k int, c longtext, key k (k))");
    for first in (0..rows).step_by(500) {
        let values: Vec<String> = (first..first + 500)
            .map(|id| format!("({id}, {}, repeat('x', {}))", id % 97, id % 180))
            .collect();
        ok(client, &format!("insert into d.t values {}", values.join(",")));
    }
    ok(client, &format!("update d.t set c = repeat('y', {long}) where id % 500 = 7"));
}

#[test]
fn the_mode_changes_online_is_shown_and_kept_across_a_restart() {
    let datadir = directory("mode");
    let program = Program::start(&datadir, &[]);
    assert!(program.lines.iter().any(|line| line.starts_with("torn pages")), "{:#?}", program.lines);
    let mut client = program.client();
    assert_eq!(client.text("select @@global.innodb_doublewrite"), "AUTO");
    assert_eq!(error_code(&client.query("set global innodb_doublewrite = 'SOMETIMES'")), 1231);
    ok(&mut client, "set persist innodb_doublewrite = 'ON'");
    insert_rows(&mut client, 1000, 100_000);
    let modes = "select group_concat(distinct mode) from information_schema.untorn_page_protection";
    assert_eq!(client.text(modes), "doublewrite");
    let files = "select count(*) from information_schema.untorn_page_protection \
                 where file like '%t.ibd' and reason <> '' and verdict in ('none', 'atomic-hw', 'atomic-fs')";
    assert_eq!(client.text(files), "1");
    program.stop();
    let program = Program::start(&datadir, &[]);
    let mut client = program.client();
    assert_eq!(client.text("select @@global.innodb_doublewrite"), "ON");
    ok(&mut client, "update d.t set k = k + 1");
    for (value, mode) in
        [("OFF", "unprotected"), ("DETECT_ONLY", "detect only"), ("DETECT_AND_RECOVER", "doublewrite")]
    {
        ok(&mut client, &format!("set global innodb_doublewrite = '{value}'"));
        assert_eq!(client.text(modes), mode);
        ok(&mut client, "update d.t set k = k + 1");
    }
    let status = client.text("show global status like 'Untorn_page_protection'");
    assert!(status.contains("doublewrite"), "{status}");
    program.stop();
    // Not persisted: the next start has ON again.
    let program = Program::start(&datadir, &["--innodb-doublewrite=OFF"]);
    assert_eq!(program.client().text("select @@global.innodb_doublewrite"), "ON");
    program.stop();
    std::fs::remove_dir_all(&datadir).unwrap();
}

/// The signal of a file that has come to `ulimit -f`: its write fails, and the program goes on.
#[test]
fn a_file_at_its_limit_does_not_kill() {
    let datadir = directory("limit");
    let program = Program::start(&datadir, &[]);
    let sent = Command::new("kill").args(["-XFSZ", &program.child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    assert_eq!(program.client().text("select 1"), "1");
    program.stop();
    std::fs::remove_dir_all(&datadir).unwrap();
}

#[test]
fn pages_of_4_16_and_64_kib_live_through_a_kill() {
    for (size, bytes) in [("4K", "4096"), ("16K", "16384"), ("64K", "65536")] {
        let datadir = directory(size);
        let program = Program::start(&datadir, &[&format!("--innodb-page-size={size}")]);
        let mut client = program.client();
        assert_eq!(client.text("select @@innodb_page_size"), bytes);
        insert_rows(&mut client, 6000, 300_000);
        ok(&mut client, "delete from d.t where id % 3 = 0");
        program.kill();
        let program = Program::start(&datadir, &[]);
        let mut client = program.client();
        assert_eq!(client.text("select @@innodb_page_size"), bytes);
        assert_eq!(client.text("select count(*) from d.t"), "4000");
        assert_eq!(client.text("select count(*) from d.t force index (k) where k >= 0"), "4000");
        assert_eq!(client.text("select sum(length(c) = 300000) from d.t"), "8");
        let check = client.text("check table d.t");
        assert!(check.ends_with("OK"), "{size}: {check}");
        program.stop();
        std::fs::remove_dir_all(&datadir).unwrap();
    }
}

#[test]
fn forced_recovery_reads_and_refuses_changes() {
    let datadir = directory("forced");
    let program = Program::start(&datadir, &[]);
    insert_rows(&mut program.client(), 500, 1000);
    program.kill();
    for level in [1, 3, 4, 6] {
        let program = Program::start(&datadir, &[&format!("--innodb-force-recovery={level}")]);
        let mut client = program.client();
        assert_eq!(client.text("select @@innodb_force_recovery"), level.to_string());
        if level < 6 {
            assert_eq!(client.text("select count(*) from d.t"), "500");
        }
        assert_eq!(error_code(&client.query("update d.t set k = 1 where id = 3")), 1881, "level {level}");
        assert_eq!(error_code(&client.query("insert into d.t values (9999, 1, '')")), 1881, "level {level}");
        let created = client.query("create table d.u (id int primary key)");
        if level < 4 {
            assert_eq!(created[0], 0);
            ok(&mut client, "drop table d.u");
        } else {
            assert_eq!(error_code(&created), 1881);
        }
        program.stop();
    }
    std::fs::remove_dir_all(&datadir).unwrap();
}
