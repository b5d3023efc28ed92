//! Unmodified programs against a database served by way of `opensrv-mysql`: needs the packages
//! `mariadb-client` and `sysbench`.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::Arc;
use std::thread::JoinHandle;

use sql_shim::auth::accounts::{Accounts, Identification};
use sql_shim::auth::native;
use sql_shim::opensrv::OpensrvServer;
use sql_shim::options::{self, arguments};
use sql_shim::server::shared::Server;
use sql_shim::session::Sessions;
use sql_shim::variables::GlobalVariables;
use tokio::net::TcpListener;
use untorn::asynchronous::Database;

/// A server over a database of its own; stopped, closed and deleted when dropped.
struct Serving {
    server: Arc<Server>,
    port: String,
    thread: Option<JoinHandle<()>>,
    directory: PathBuf,
}

impl Serving {
    fn start(name: &str) -> Self {
        let directory = std::env::temp_dir().join(format!("untorn-opensrv-{name}-{}", std::process::id()));
        let words = [format!("--datadir={}", directory.display()), "--innodb-buffer-pool-size=64M".into()];
        let variables = GlobalVariables::default();
        let options = options::load(&arguments::parse(words).unwrap(), &variables).unwrap();
        let database = untorn::engine::block_on(Database::open(options.database)).unwrap();
        let accounts = Accounts::in_memory();
        let by = Identification {
            plugin: Some(native::PLUGIN.into()),
            password: Some(b"secret".to_vec()),
            ..Identification::default()
        };
        accounts.create("native", "%", &by, false).unwrap();
        let server = Server::new(accounts, variables);
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port().to_string();
        let shared = Arc::clone(&server);
        let thread = std::thread::spawn(move || {
            let sessions = Arc::new(Sessions::new(Arc::clone(&shared), database.clone()));
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            tokio::task::LocalSet::new().block_on(&runtime, async {
                let listener = TcpListener::from_std(listener).unwrap();
                OpensrvServer::new(shared, Arc::clone(&sessions)).listen(listener).await;
            });
            drop(sessions);
            untorn::engine::block_on(database.close()).unwrap();
        });
        Self { server, port, thread: Some(thread), directory }
    }

    fn client(&self, login: &[&str], sql: &str) -> Output {
        Command::new("mariadb")
            .args(["--no-defaults", "-h127.0.0.1", "-P", &self.port, "-N"])
            .args(login)
            .args(["-e", sql])
            .output()
            .expect("the program `mariadb` (package mariadb-client) is needed for this test")
    }

    fn query(&self, sql: &str) -> String {
        let output = self.client(&["-uroot", "--skip-password"], sql);
        assert!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// What sysbench says, and whether it ended well.
    fn sysbench(&self, workload: &str, command: &str, more: &[&str]) -> (bool, String) {
        let output = Command::new("sysbench")
            .args([workload, "--db-driver=mysql", "--mysql-host=127.0.0.1", "--mysql-user=root"])
            .args(["--mysql-db=sbtest", "--tables=2", "--table-size=500", "--threads=2", "--time=0"])
            .arg(format!("--mysql-port={}", self.port))
            .args(more)
            .arg(command)
            .output()
            .expect("the program `sysbench` is needed for this test");
        let said = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&said).into_owned())
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.server.shutdown.request();
        let ended = self.thread.take().map(JoinHandle::join);
        let _ = std::fs::remove_dir_all(&self.directory);
        if !std::thread::panicking() {
            ended.unwrap().unwrap();
            assert!(self.server.connections.is_empty(), "every connection has left the register");
        }
    }
}

#[test]
fn sysbench_reads_and_writes_in_text_mode() {
    let serving = Serving::start("sysbench");
    serving.query("CREATE DATABASE sbtest");
    let text = ["--db-ps-mode=disable", "--events=200"];
    for command in ["prepare", "run"] {
        let (well, said) = serving.sysbench("oltp_read_write", command, &text);
        assert!(well, "{command}: {said}");
        if command == "run" {
            let transactions = said.lines().find_map(|line| line.trim().strip_prefix("transactions:"));
            let count = transactions.and_then(|rest| rest.split_whitespace().next());
            assert_eq!(count, Some("200"), "{said}");
        }
        // Each transaction of the run deletes a row and inserts it again.
        for table in ["sbtest1", "sbtest2"] {
            let counted =
                serving.query(&format!("SELECT COUNT(*), COUNT(DISTINCT id), MAX(id) FROM sbtest.{table}"));
            assert_eq!(counted, "500\t500\t500", "{table} after {command}");
        }
    }
    // The crate would hand over wrong parameters from the second execution on, so that one is refused.
    let (well, said) = serving.sysbench("oltp_point_select", "run", &["--events=20"]);
    assert!(!well && said.contains("1295"), "{said}");
    let (well, said) = serving.sysbench("oltp_read_write", "cleanup", &text);
    assert!(well, "{said}");
    assert_eq!(serving.query("SHOW TABLES FROM sbtest"), "");
}

#[test]
fn logins_values_and_errors_get_through() {
    let serving = Serving::start("logins");
    let login = ["-unative", "-psecret"];
    let told = serving.client(&login, "SELECT CURRENT_USER()");
    assert_eq!(String::from_utf8_lossy(&told.stdout).trim(), "native@%", "{told:?}");
    for refused in [["-unative", "-pwrong"], ["-unative", "--skip-password"], ["-unobody", "-psecret"]] {
        let told = serving.client(&refused, "SELECT 1");
        assert!(!told.status.success() && told.stdout.is_empty(), "{told:?}");
    }
    serving.query(
        "CREATE DATABASE d; USE d; CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(20), c DATETIME(3), e DOUBLE);
         INSERT INTO t VALUES (-1, 'caf\u{e9}', '2024-02-29 01:02:03.450', 0.5), (2, NULL, NULL, NULL)",
    );
    let rows = serving.query("SELECT * FROM d.t ORDER BY a");
    assert_eq!(rows, "-1\tcaf\u{e9}\t2024-02-29 01:02:03.450\t0.5\n2\tNULL\tNULL\tNULL");
    let told = serving.client(&["-uroot", "--skip-password"], "INSERT INTO d.t (a) VALUES (2)");
    let errors = String::from_utf8_lossy(&told.stderr).into_owned();
    assert!(errors.contains("ERROR 1062 (23000)"), "{errors}");
    let told = serving.client(&["-uroot", "--skip-password", "-Dmissing"], "SELECT 1");
    let errors = String::from_utf8_lossy(&told.stderr).into_owned();
    assert!(errors.contains("ERROR 1049"), "{errors}");
}

/// Logins of this way are an account's like others.
#[test]
fn connections_count() {
    let serving = Serving::start("limits");
    serving.query("ALTER USER native WITH MAX_CONNECTIONS_PER_HOUR 1");
    let login = ["-unative", "-psecret"];
    assert!(serving.client(&login, "SELECT 1").status.success());
    assert!(!serving.client(&login, "SELECT 1").status.success());
    serving.query("ALTER USER native WITH MAX_CONNECTIONS_PER_HOUR 0");
    assert!(serving.client(&login, "SELECT 1").status.success());
}
