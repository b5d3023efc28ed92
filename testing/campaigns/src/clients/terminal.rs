//! The stock client as a person uses it: in a terminal, with completion, and Ctrl-C on a query that takes too
//! long.
//!
//! The client runs as the leader of a session whose controlling terminal is a pseudo-terminal that we own;
//! what is "typed" is written to the master side, so that Ctrl-C becomes SIGINT by way of the terminal as it
//! does for people.

use anyhow::{Context, Result, bail, ensure};
use lab::server_process::ServerProcess;
use mysql::prelude::Queryable;
use nix::pty::{Winsize, openpty};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How long the client may take to show something.
const PATIENCE: Duration = Duration::from_secs(30);
/// Longer than [`PATIENCE`]: a query that is not interrupted fails the check.
const LONG_QUERY: &str = "SELECT SLEEP(120);";
const DATABASE: &str = "terminal";

/// A client in a terminal.
struct Terminal {
    client: Child,
    keyboard: File,
    screen: Receiver<Vec<u8>>,
    /// What the client showed and nobody has asked for yet.
    shown: String,
}

impl Terminal {
    fn open(server: &ServerProcess) -> Result<Terminal> {
        let size = Winsize { ws_row: 50, ws_col: 200, ws_xpixel: 0, ws_ypixel: 0 };
        let pair = openpty(Some(&size), None).context("no pseudo-terminal")?;
        let (input, output) = (pair.slave.try_clone()?, pair.slave.try_clone()?);
        // setsid makes the terminal on standard input the controlling one, which takes a system call between
        // fork and exec.
        let mut command = Command::new("setsid");
        command.args(["--ctty", "--wait", "mariadb", "--no-defaults", "--skip-ssl", "--protocol=tcp"]);
        command.args(["--host=127.0.0.1", "--user=root", &format!("--port={}", server.port)]);
        command.env("TERM", "dumb").env("HOME", server.data.as_os_str());
        let client = command
            .stdin(Stdio::from(input))
            .stdout(Stdio::from(output))
            .stderr(Stdio::from(pair.slave))
            .spawn()
            .context("cannot run setsid mariadb")?;
        let keyboard = File::from(pair.master.try_clone()?);
        Ok(Terminal { client, keyboard, screen: watch(pair.master), shown: String::new() })
    }

    fn press(&mut self, keys: &str) -> Result<()> {
        Ok(self.keyboard.write_all(keys.as_bytes())?)
    }

    /// Waits until the client has shown `text` and returns what it showed up to its end.
    fn expect(&mut self, text: &str) -> Result<String> {
        let begin = Instant::now();
        loop {
            if let Some(at) = self.shown.find(text) {
                let rest = self.shown.split_off(at + text.len());
                return Ok(std::mem::replace(&mut self.shown, rest));
            }
            match self.screen.recv_timeout(PATIENCE.saturating_sub(begin.elapsed())) {
                Ok(bytes) => self.shown += &String::from_utf8_lossy(&bytes),
                Err(RecvTimeoutError::Timeout) => {
                    bail!("the client does not show {text:?}, but:\n{}", self.shown)
                }
                Err(RecvTimeoutError::Disconnected) => bail!("the client ended; it showed:\n{}", self.shown),
            }
        }
    }

    /// A whole line: typed, and what the client shows up to its next prompt.
    fn line(&mut self, line: &str) -> Result<String> {
        self.press(&format!("{line}\n"))?;
        self.expect("]> ")
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Only fails when it has ended already.
        let _ = self.client.kill();
        let _ = self.client.wait();
    }
}

/// Reads the master side until the client is gone.
fn watch(master: OwnedFd) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    let mut screen = File::from(master);
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = screen.read(&mut buffer) {
            if sender.send(buffer[..count].to_vec()).is_err() {
                return;
            }
        }
    });
    receiver
}

/// Status, the queries for completion at `use`, a completion, an interrupted query, and that the session goes
/// on.
pub fn check(server: &ServerProcess) -> Result<()> {
    server.feed(
        "",
        &format!(
            "CREATE DATABASE {DATABASE}; CREATE TABLE {DATABASE}.warehouse_stock (article INT PRIMARY KEY, pieces INT);
             INSERT INTO {DATABASE}.warehouse_stock VALUES (1, 10), (2, 32);"
        ),
    )?;
    let mut terminal = Terminal::open(server)?;
    let greeting = terminal.expect("]> ")?;
    ensure!(greeting.contains("Server version:"), "{greeting}");

    let status = terminal.line("\\s")?;
    for part in
        ["Server version:", "Protocol version:\t10", "characterset:", &server.port.to_string(), "Uptime:"]
    {
        ensure!(status.contains(part), "no {part:?} in the status:\n{status}");
    }
    // Without -A the client asks for all tables and columns.
    let used = terminal.line(&format!("use {DATABASE}"))?;
    ensure!(
        used.contains("Reading table information") && used.contains("Database changed"),
        "use {DATABASE}:\n{used}"
    );
    terminal.press("SELECT SUM(pie\t")?;
    terminal.expect("pieces")?;
    terminal.press(") FROM wareh\t")?;
    terminal.expect("warehouse_stock")?;
    let sum = terminal.line(";")?;
    ensure!(sum.contains("| ") && sum.contains("42"), "the completed query:\n{sum}");

    terminal.press(&format!("{LONG_QUERY}\n"))?;
    wait_until_it_runs(server)?;
    terminal.press("\x03")?;
    let interrupted = terminal.expect("]> ")?;
    // A SLEEP that KILL QUERY ends answers 1, as in MySQL.
    let is_over = ["query killed", "1 row in set"].iter().all(|part| interrupted.contains(part));
    ensure!(is_over, "after Ctrl-C:\n{interrupted}");
    let answer = terminal.line("SELECT CONCAT('still', 'here');")?;
    ensure!(answer.contains("stillhere"), "after the interrupted query:\n{answer}");

    // Ctrl-C at the prompt only takes back the line.
    terminal.press("SELECT nonsense \x03")?;
    terminal.expect("]> ")?;
    terminal.press("quit\n")?;
    terminal.expect("Bye")?;
    println!("in a terminal: status, completion, Ctrl-C");
    Ok(())
}

/// The process list shows the query.
fn wait_until_it_runs(server: &ServerProcess) -> Result<()> {
    let mut watcher = server.connect(None)?;
    let begin = Instant::now();
    loop {
        let list: Vec<mysql::Row> = watcher.query("SHOW FULL PROCESSLIST")?;
        let wanted = LONG_QUERY.trim_end_matches(';');
        let running = list.iter().any(|row| {
            row.get_opt::<String, _>("Info").is_some_and(|info| info.is_ok_and(|info| info == wanted))
        });
        if running {
            return Ok(());
        }
        ensure!(begin.elapsed() < PATIENCE, "the process list does not show {wanted}: {list:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
