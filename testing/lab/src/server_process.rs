//! A server of its own for a test: its directory, port and socket, started, stopped cleanly, killed.

use crate::command::captured;
use crate::scratch::last_lines;
use anyhow::{Context, Result, bail, ensure};
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
    /// A shell command that becomes a server: the path of its [`Program`], with $DATA, $PORT, $SOCKET and
    /// $SETTINGS.
    #[value(skip)]
    Command,
}

/// A server program.
#[derive(Clone, Debug)]
pub struct Program {
    /// Which server it is.
    pub kind: Kind,
    /// The program, or the text of a [`Kind::Command`].
    pub path: PathBuf,
    /// Off: connections over epoll and files by threads, as where the kernel refuses io_uring.
    pub io_uring: bool,
}

impl Program {
    /// A program that may use what the kernel has.
    pub fn new(kind: Kind, path: PathBuf) -> Program {
        Program { kind, path, io_uring: true }
    }

    /// The same program without io_uring.
    pub fn without_io_uring(&self) -> Program {
        Program { io_uring: false, ..self.clone() }
    }

    /// The MariaDB installed on this machine.
    pub fn mariadb() -> Result<Program> {
        let known = ["/usr/sbin/mariadbd", "/usr/sbin/mysqld", "/usr/libexec/mariadbd"].map(PathBuf::from);
        let path = known.into_iter().find(|path| path.exists());
        let path = path.context("no mariadbd found: install the package mariadb-server")?;
        Ok(Program::new(Kind::MariaDb, path))
    }
}

/// A running server.
pub struct ServerProcess {
    child: Child,
    kind: Kind,
    /// TCP port, on 127.0.0.1.
    pub port: u16,
    /// Unix socket.
    pub socket: PathBuf,
    /// Data directory.
    pub data: PathBuf,
    log: PathBuf,
    /// From the start of the process to its first answer.
    pub started_in: Duration,
}

impl ServerProcess {
    /// Starts a server on `place/data` (made when missing) and waits until it answers.
    pub fn start(program: &Program, place: &Path, settings: &[&str]) -> Result<ServerProcess> {
        ServerProcess::start_on(program, place, &place.join("data"), settings)
    }

    /// Starts a server on a data directory that may be elsewhere, and waits until it answers.
    pub fn start_on(
        program: &Program,
        place: &Path,
        data: &Path,
        settings: &[&str],
    ) -> Result<ServerProcess> {
        let mut server = ServerProcess::spawn_on(program, place, data, settings)?;
        let begin = Instant::now();
        match server.wait_until_it_answers() {
            Ok(()) => {
                server.started_in = begin.elapsed();
                for told in ["over epoll", "I/O by threads"].iter().filter(|_| !program.io_uring) {
                    ensure!(server.log().contains(told), "{told:?} is not in the log:\n{}", server.log());
                }
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
        ServerProcess::spawn_on(program, place, &place.join("data"), settings)
    }

    /// Starts a server on a data directory that may be elsewhere, and does not wait.
    pub fn spawn_on(
        program: &Program,
        place: &Path,
        data: &Path,
        settings: &[&str],
    ) -> Result<ServerProcess> {
        let data = data.to_path_buf();
        let socket = place.join("server.sock");
        let log = place.join("server.log");
        if program.kind == Kind::MariaDb && !data.exists() {
            install_mariadb(&data, place, settings)?;
        }
        let port = free_port()?;
        let output = File::options().create(true).append(true).open(&log)?;
        if program.kind == Kind::Command {
            let mut command = Command::new("sh");
            command.arg("-c").arg(&program.path).env("DATA", &data).env("PORT", port.to_string());
            command.env("SOCKET", &socket).env("SETTINGS", settings.join(" "));
            let child = command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output).spawn()?;
            return Ok(ServerProcess {
                child,
                kind: program.kind,
                port,
                socket,
                data,
                log,
                started_in: Duration::ZERO,
            });
        }
        let mut command = Command::new(&program.path);
        if program.kind == Kind::MariaDb {
            command.args(["--no-defaults", "--user=root", "--bind-address=127.0.0.1", "--skip-name-resolve"]);
            command.arg(format!("--tmpdir={}", place.display()));
        }
        command
            .arg(format!("--datadir={}", data.display()))
            .arg(format!("--port={port}"))
            .arg(format!("--socket={}", socket.display()))
            // Several servers run beside each other on the machine; a later setting takes precedence.
            .arg("--innodb-buffer-pool-size=256M")
            .args(settings)
            .envs(
                [("UNTORN_RUNTIME", "epoll"), ("UNTORN_IO", "threads")]
                    .iter()
                    .filter(|_| !program.io_uring)
                    .copied(),
            )
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

    /// What its terminal would say when it is closed.
    pub fn hang_up(&self) -> Result<()> {
        Ok(kill(self.pid()?, Signal::SIGHUP)?)
    }

    /// Stops the server cleanly, which must succeed.
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
                ensure!(!self.log().contains("panicked at"), "the server panicked");
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

    /// Waits until the server has ended by itself.
    pub fn wait_for_end(&mut self) -> Result<ExitStatus> {
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        bail!("the server does not end within {PATIENCE:?}")
    }

    /// Waits until the server answers (`true`) or has ended by itself; neither is an error.
    pub fn answers_or_ends(&mut self) -> Result<bool> {
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE {
            if self.child.try_wait()?.is_some() {
                return Ok(false);
            }
            if self.connect(None).is_ok() {
                return Ok(true);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        bail!("the server neither answers nor ends within {PATIENCE:?}")
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
        command.args([
            "--no-defaults",
            "--skip-ssl",
            "--protocol=tcp",
            "--host=127.0.0.1",
            "--user=root",
            "--batch",
            // Not what the locale says in which this runs.
            "--default-character-set=utf8mb4",
        ]);
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
        command.arg("--binary-mode");
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
        command.args(["--no-defaults", "--skip-ssl", "--protocol=tcp", "--host=127.0.0.1", "--user=root"]);
        command.args(["--single-transaction", &format!("--port={}", self.port), database]);
        captured(&mut command)
    }

    /// The last lines of what the server wrote.
    pub fn log_tail(&self) -> String {
        last_lines(&self.log)
    }

    /// Everything the server wrote to its log so far.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// The most memory the process ever had resident, in bytes.
    pub fn peak_memory(&self) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB")).context("no VmHWM in /proc")?;
        Ok(kib.trim().parse::<u64>()? * 1024)
    }
}

impl ServerProcess {
    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The processor time a process took so far, in user and kernel mode.
pub fn processor_time(process: u32) -> Result<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The program's name, in parentheses, may hold spaces; utime and stime are the 12th and 13th field after
    // it.
    let fields: Vec<&str> =
        stat.rsplit_once(')').context("no name in /proc/*/stat")?.1.split_ascii_whitespace().collect();
    let ticks = |at: usize| -> Result<u64> { Ok(fields.get(at).context("a short /proc/*/stat")?.parse()?) };
    // Linux counts in hundredths of a second towards programs, whatever its own clock tick is.
    Ok(Duration::from_millis((ticks(11)? + ticks(12)?) * 10))
}

/// The bytes a process gave to the block layer so far, or to the page cache where it writes through that.
pub fn bytes_written(process: u32) -> Result<u64> {
    let io = std::fs::read_to_string(format!("/proc/{process}/io"))?;
    let bytes = io.lines().find_map(|line| line.strip_prefix("write_bytes:"));
    Ok(bytes.context("no write_bytes in /proc/*/io")?.trim().parse()?)
}

/// The value of a status variable that is a number.
pub fn status_number(connection: &mut Conn, name: &str) -> Result<u64> {
    let row: Option<(String, String)> =
        connection.query_first(format!("SHOW GLOBAL STATUS LIKE '{name}'"))?;
    let (_, value) = row.with_context(|| format!("no status variable {name}"))?;
    value.parse().with_context(|| format!("{name} is {value}"))
}

/// The value of a system variable that is a number.
pub fn variable_number(connection: &mut Conn, name: &str) -> Result<u64> {
    connection.query_first(format!("SELECT @@{name}"))?.with_context(|| format!("no variable {name}"))
}

fn install_mariadb(data: &Path, place: &Path, settings: &[&str]) -> Result<()> {
    // What a data directory keeps for good.
    let lasting = settings.iter().filter(|setting| setting.starts_with("--innodb-page-size"));
    captured(
        Command::new("mariadb-install-db")
            .args([
                "--no-defaults",
                "--user=root",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
                &format!("--datadir={}", data.display()),
                // A MariaDB that starts removes others' temporary tables from a directory they share.
                &format!("--tmpdir={}", place.display()),
            ])
            .args(lasting),
    )?;
    Ok(())
}

/// A TCP port of 127.0.0.1 that nobody listened on a moment ago.
pub fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

#[cfg(test)]
mod tests {
    use super::{bytes_written, processor_time};

    #[test]
    fn the_figures_of_a_process_are_read() {
        let process = std::process::id();
        assert!(processor_time(process).is_ok());
        assert!(bytes_written(process).is_ok());
    }

    #[test]
    fn a_process_that_is_gone_has_no_figures() {
        // Beyond the greatest process id of Linux.
        assert!(processor_time(1 << 23).is_err() && bytes_written(1 << 23).is_err());
    }
}
