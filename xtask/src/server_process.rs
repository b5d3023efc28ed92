//! A server of its own for a test: its directory, port and socket, started, stopped in order, killed.

use crate::steps::captured;
use anyhow::{Context, Result, bail};
use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::File;
use std::io::Write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How long a start (with recovery) or a stop may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// Which server.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Kind {
    /// This project's.
    Untorn,
    /// A stock MariaDB.
    #[value(name = "mariadb")]
    MariaDb,
}

/// A server program.
#[derive(Clone, Debug)]
pub struct Program {
    pub kind: Kind,
    pub path: PathBuf,
}

impl Program {
    /// The MariaDB installed on this machine.
    pub fn mariadb() -> Result<Program> {
        let known = ["/usr/sbin/mariadbd", "/usr/sbin/mysqld", "/usr/libexec/mariadbd"].map(PathBuf::from);
        let path = known.into_iter().find(|path| path.exists());
        let path = path.context("no mariadbd found: install the package mariadb-server")?;
        Ok(Program { kind: Kind::MariaDb, path })
    }
}

/// A directory that is removed at the end, unless the thread panics or `KEEP_TEST_DIRECTORIES` is set.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// An empty directory below the system's directory for temporary files.
    pub fn new(name: &str) -> Result<Scratch> {
        let path = std::env::temp_dir().join(format!("untorn-{name}-{}", std::process::id()));
        if path.exists() {
            std::fs::remove_dir_all(&path)?;
        }
        std::fs::create_dir_all(&path).with_context(|| format!("cannot create {}", path.display()))?;
        Ok(Scratch(path))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Leaves the directory where it is, for looking into a failure.
    pub fn keep(self) -> PathBuf {
        let path = self.0.clone();
        std::mem::forget(self);
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if std::env::var_os("KEEP_TEST_DIRECTORIES").is_none() && !std::thread::panicking() {
            // Nothing depends on it; the next run of the same name clears it too.
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}

/// A running server.
pub struct ServerProcess {
    child: Child,
    kind: Kind,
    pub port: u16,
    pub socket: PathBuf,
    pub data: PathBuf,
    log: PathBuf,
    /// From the start of the process to its first answer.
    pub started_in: Duration,
}

impl ServerProcess {
    /// Starts a server on `place/data` (made when missing) and waits until it answers.
    pub fn start(program: &Program, place: &Path, settings: &[&str]) -> Result<ServerProcess> {
        let mut server = ServerProcess::spawn(program, place, settings)?;
        let begin = Instant::now();
        match server.wait_until_it_answers() {
            Ok(()) => {
                server.started_in = begin.elapsed();
                Ok(server)
            }
            Err(error) => {
                let log = server.log_tail();
                server.kill();
                Err(error.context(format!("the server did not start; its log ends with:\n{log}")))
            }
        }
    }

    /// Starts a server and does not wait.
    pub fn spawn(program: &Program, place: &Path, settings: &[&str]) -> Result<ServerProcess> {
        let data = place.join("data");
        let socket = place.join("server.sock");
        let log = place.join("server.log");
        if program.kind == Kind::MariaDb && !data.exists() {
            install_mariadb(&data)?;
        }
        let port = free_port()?;
        let output = File::options().create(true).append(true).open(&log)?;
        let mut command = Command::new(&program.path);
        if program.kind == Kind::MariaDb {
            command.args(["--no-defaults", "--user=root", "--bind-address=127.0.0.1", "--skip-name-resolve"]);
        }
        command
            .arg(format!("--datadir={}", data.display()))
            .arg(format!("--port={port}"))
            .arg(format!("--socket={}", socket.display()))
            // Several servers run beside each other on the machine; a later setting takes precedence.
            .arg("--innodb-buffer-pool-size=256M")
            .args(settings)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output);
        let child = command.spawn().with_context(|| format!("cannot run {}", program.path.display()))?;
        let started_in = Duration::ZERO;
        Ok(ServerProcess { child, kind: program.kind, port, socket, data, log, started_in })
    }

    fn wait_until_it_answers(&mut self) -> Result<()> {
        let begin = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait()? {
                bail!("it ended with {status}");
            }
            match self.connect(None).and_then(|mut connection| {
                let one: Option<u8> = connection.query_first("SELECT 1")?;
                Ok(one)
            }) {
                Ok(Some(1)) => return Ok(()),
                Ok(other) => bail!("SELECT 1 gave {other:?}"),
                Err(error) if begin.elapsed() > PATIENCE => return Err(error),
                Err(_) => std::thread::sleep(Duration::from_millis(5)),
            }
        }
    }

    /// A new connection as root over TCP.
    pub fn connect(&self, database: Option<&str>) -> Result<Conn> {
        let options = OptsBuilder::new()
            .ip_or_hostname(Some("127.0.0.1"))
            .tcp_port(self.port)
            .user(Some("root"))
            .prefer_socket(false)
            .db_name(database)
            .tcp_connect_timeout(Some(Duration::from_secs(5)))
            .read_timeout(Some(Duration::from_secs(60)))
            .write_timeout(Some(Duration::from_secs(60)));
        Ok(Conn::new(options)?)
    }

    /// Stops the server in order, which must succeed.
    pub fn stop(mut self) -> Result<Duration> {
        let begin = Instant::now();
        kill(self.pid()?, Signal::SIGTERM)?;
        while begin.elapsed() < PATIENCE {
            if let Some(status) = self.child.try_wait()? {
                if !status.success() {
                    bail!(
                        "after SIGTERM the server ended with {status}; its log ends with:\n{}",
                        self.log_tail()
                    );
                }
                return Ok(begin.elapsed());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let log = self.log_tail();
        self.kill();
        bail!("the server did not stop within {PATIENCE:?} of SIGTERM; its log ends with:\n{log}")
    }

    /// Ends the server with SIGKILL.
    pub fn kill(&mut self) {
        // Both only fail when the process is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// The exit status when the server has ended by itself.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    fn pid(&self) -> Result<Pid> {
        Ok(Pid::from_raw(i32::try_from(self.child.id())?))
    }

    /// The command-line client (`mariadb`), connected to this server.
    pub fn client(&self) -> Command {
        let mut command = Command::new("mariadb");
        command.args(["--no-defaults", "--protocol=tcp", "--host=127.0.0.1", "--user=root", "--batch"]);
        command.arg(format!("--port={}", self.port));
        command
    }

    /// What a statement prints in the command-line client, without column names.
    pub fn ask(&self, database: &str, sql: &str) -> Result<String> {
        let output = captured(self.client().args(["--skip-column-names", "-e", sql, database]));
        Ok(output.with_context(|| format!("{:?}: {sql}", self.kind))?.trim_end().to_owned())
    }

    /// Feeds SQL to the standard input of the command-line client.
    pub fn feed(&self, database: &str, sql: &str) -> Result<()> {
        let mut command = self.client();
        command.args(["--default-character-set=utf8mb4", "--binary-mode"]);
        if !database.is_empty() {
            command.arg(database);
        }
        let mut client =
            command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        if let Some(mut input) = client.stdin.take() {
            // An early end of the client shows in its status.
            let _ = input.write_all(sql.as_bytes());
        }
        let output = client.wait_with_output()?;
        if !output.status.success() {
            bail!("mariadb {database}: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(())
    }

    /// A database as `mariadb-dump` writes it.
    pub fn dump(&self, database: &str) -> Result<String> {
        let mut command = Command::new("mariadb-dump");
        command.args(["--no-defaults", "--protocol=tcp", "--host=127.0.0.1", "--user=root"]);
        command.args(["--single-transaction", &format!("--port={}", self.port), database]);
        captured(&mut command)
    }

    /// The last lines of what the server wrote.
    pub fn log_tail(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(25)..].join("\n")
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

fn install_mariadb(data: &Path) -> Result<()> {
    captured(Command::new("mariadb-install-db").args([
        "--no-defaults",
        "--user=root",
        "--auth-root-authentication-method=normal",
        "--skip-test-db",
        &format!("--datadir={}", data.display()),
    ]))?;
    Ok(())
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
