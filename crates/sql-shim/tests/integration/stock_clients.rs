//! Stock programs log in and talk: needs the packages `mariadb-client` and `sysbench`.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::PathBuf;
use std::process::{Command, Output};

use crate::support::TestServer;
use sql_shim::auth::accounts::{Accounts, Identification};
use sql_shim::auth::{native, sha2_password};
use sql_shim::server::runtime::RuntimeKind;

fn server(runtime: RuntimeKind, name: &str) -> (TestServer, PathBuf) {
    let accounts = Accounts::in_memory();
    for (user, plugin) in [("native", native::PLUGIN), ("sha2", sha2_password::PLUGIN)] {
        let password = Some(b"secret".to_vec());
        let by = Identification { plugin: Some(plugin.into()), password, ..Identification::default() };
        accounts.create(user, "%", &by, false).unwrap();
    }
    let socket = std::env::temp_dir().join(format!("untorn-{name}-{}.sock", std::process::id()));
    (TestServer::start(runtime, accounts, Some(socket.clone())), socket)
}

fn mariadb(arguments: &[&str]) -> Output {
    let program = Command::new("mariadb").arg("--no-defaults").args(arguments).output();
    program.expect("the program `mariadb` (package mariadb-client) is needed for this test")
}

fn printed(arguments: &[&str]) -> String {
    let output = mariadb(arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[test]
fn the_mariadb_client_logs_in_every_way() {
    for (runtime, name) in [(RuntimeKind::Uring, "uring"), (RuntimeKind::Epoll, "epoll")] {
        let (server, socket) = server(runtime, name);
        let port = server.port.to_string();
        let tcp = ["-h127.0.0.1", "-P", &port, "-N", "-e", "echo it"];
        let local = ["-S", socket.to_str().unwrap(), "-N", "-e", "echo it"];
        for way in [tcp.as_slice(), &local] {
            for (user, password) in [("-uroot", "-p"), ("-unative", "-psecret"), ("-usha2", "-psecret")] {
                let password = if user == "-uroot" { "--skip-password" } else { password };
                // Twice: the second login of sha2 takes the fast path.
                for _ in 0..2 {
                    assert_eq!(printed(&[&[user, password], way].concat()), "echo it", "{user} {way:?}");
                }
            }
        }
        let refused = mariadb(&["-h127.0.0.1", "-P", &port, "-unative", "-pwrong", "-e", "echo"]);
        let errors = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(
            errors.contains("ERROR 1045 (28000): Access denied for user 'native'@'localhost'"),
            "{errors}"
        );
    }
}

#[test]
fn the_mariadb_client_is_compressed() {
    let (server, _) = server(RuntimeKind::Uring, "compressed");
    let port = server.port.to_string();
    let rows = printed(&["-h127.0.0.1", "-P", &port, "-uroot", "-C", "-N", "-e", "rows 2000 1000"]);
    assert_eq!(rows.lines().count(), 2000);
    let sent = server.server.status.sum(sql_shim::status::Counter::BytesSent);
    assert!(sent < 100_000, "{sent} bytes for 2 MB");
}

#[test]
fn columns_arrive_with_their_types() {
    let (server, _) = server(RuntimeKind::Uring, "types");
    let port = server.port.to_string();
    let text = printed(&["-h127.0.0.1", "-P", &port, "-uroot", "-t", "--column-type-info", "-e", "types"]);
    for expected in ["LONGLONG", "FLOAT", "NEWDECIMAL", "DATETIME", "18446744073709551615", "-30:01:02"] {
        assert!(text.contains(expected), "{expected} in {text}");
    }
}

#[test]
fn sysbench_runs_prepared_and_plain() {
    let (server, _) = server(RuntimeKind::Uring, "sysbench");
    for mode in ["auto", "disable"] {
        let output = Command::new("sysbench")
            .args([
                "oltp_point_select",
                "--mysql-host=127.0.0.1",
                "--mysql-user=native",
                "--mysql-password=secret",
            ])
            .args(["--tables=3", "--threads=8", "--events=2000", "--time=0", "--mysql-db=sbtest"])
            .arg(format!("--mysql-port={}", server.port))
            .arg(format!("--db-ps-mode={mode}"))
            .arg("run")
            .output()
            .expect("the program `sysbench` is needed for this test");
        let text = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && text.contains("ignored errors:                      0"),
            "{text}{errors}"
        );
    }
}
