//! The servers of an experiment: ours, the MariaDB of this machine, and any other that a command starts.

use crate::server_process::{Kind, Program, ServerProcess};
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Longer is no load under way.
const LOADED_WITHIN: Duration = Duration::from_secs(300);

/// What is measured beside ours.
#[derive(clap::Args, Clone, Debug)]
pub struct Peers {
    /// Without the MariaDB of this machine.
    #[arg(long)]
    without_mariadb: bool,
    /// Another stock server: a name, and a shell command that becomes the server (`exec`), on the directory
    /// $DATA (to be filled when it is empty, with the page size among $SETTINGS if there is one), the port
    /// $PORT and the socket $SOCKET, with the options $SETTINGS and a root user without password.
    #[arg(long, value_name = "NAME=COMMAND")]
    peer: Vec<String>,
}

/// A server that takes part.
#[derive(Clone, Debug)]
pub struct Server {
    /// For tables.
    pub name: String,
    /// How it is started.
    pub program: Program,
}

/// A server with settings, on a data directory.
#[derive(Clone, Debug)]
pub struct Contestant {
    /// For tables.
    pub name: String,
    /// How it is started.
    pub program: Program,
    /// Its data directory on the disk; variants of a server can share one.
    pub directory: String,
    /// Options of its command line.
    pub settings: Vec<String>,
}

impl Peers {
    /// Ours first.
    pub fn beside(&self, ours: &Program) -> Result<Vec<Server>> {
        let mut servers = vec![Server { name: "Untorn".to_owned(), program: ours.clone() }];
        if !self.without_mariadb {
            servers.push(Server { name: "MariaDB".to_owned(), program: Program::mariadb()? });
        }
        for peer in &self.peer {
            let (name, command) = peer
                .split_once('=')
                .with_context(|| format!("--peer {peer:?}: give it as NAME=COMMAND, see --help"))?;
            let plain = |letter: char| letter.is_ascii_alphanumeric() || " ._-".contains(letter);
            ensure!(
                !name.trim().is_empty() && name.chars().all(plain),
                "--peer {peer:?}: a name has letters, digits, spaces and . _ - only"
            );
            ensure!(
                servers.iter().all(|server| !server.name.eq_ignore_ascii_case(name)),
                "--peer {peer:?}: there is a server of this name already, give it another"
            );
            let program = Program::new(Kind::Command, PathBuf::from(command));
            servers.push(Server { name: name.to_owned(), program });
        }
        Ok(servers)
    }
}

impl Server {
    /// Ours, not a stock one.
    pub fn is_ours(&self) -> bool {
        self.program.kind == Kind::Untorn
    }

    /// The option for the size of the redo log.
    pub fn redo(&self, mib: u64) -> String {
        let name = if self.program.kind == Kind::MariaDb { "log-file-size" } else { "redo-log-capacity" };
        format!("--innodb-{name}={mib}M")
    }

    /// With settings, on its usual directory.
    pub fn with(&self, settings: Vec<String>) -> Contestant {
        let directory = self.name.to_lowercase().replace(' ', "-");
        Contestant { name: self.name.clone(), program: self.program.clone(), directory, settings }
    }
}

impl Contestant {
    /// Starts it; `place` has socket and log.
    pub fn start(&self, place: &Path, disk: &Path) -> Result<ServerProcess> {
        let mut settings = vec!["--max-connections=200"];
        settings.extend(self.settings.iter().map(String::as_str));
        ServerProcess::start_on(&self.program, place, &disk.join(&self.directory), &settings)
    }
}

/// Waits until a server has loaded what was in its buffer pool before it was stopped.
pub fn wait_until_loaded(server: &ServerProcess) -> Result<()> {
    let begin = Instant::now();
    loop {
        let said = server.ask("", "SHOW GLOBAL STATUS LIKE 'Innodb_buffer_pool_load_status'")?;
        if ["completed", "Cannot", "is full"].iter().any(|end| said.contains(end)) {
            return Ok(());
        }
        ensure!(begin.elapsed() < LOADED_WITHIN, "the buffer pool is not loaded after all this time: {said}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// What a stock server gets so that it does what ours does by itself, with what its page cleaner may write.
pub fn stock(io_capacity: u32) -> Vec<String> {
    let mut settings: Vec<String> = [
        "--innodb-flush-method=O_DIRECT",
        "--innodb-flush-log-at-trx-commit=1",
        "--innodb-flush-neighbors=0",
        "--skip-log-bin",
    ]
    .map(str::to_owned)
    .to_vec();
    settings.push(format!("--innodb-io-capacity={io_capacity}"));
    settings.push(format!("--innodb-io-capacity-max={}", 2 * io_capacity));
    settings
}

#[cfg(test)]
#[allow(clippy::expect_used)]
pub mod tests {
    use super::{Peers, Server};
    use crate::server_process::{Kind, Program};

    /// Ours, of no program.
    pub fn ours() -> Server {
        Server { name: "Untorn".to_owned(), program: Program::new(Kind::Untorn, "untorn".into()) }
    }

    fn names(peer: &[&str]) -> anyhow::Result<Vec<String>> {
        let peer = peer.iter().map(|&peer| peer.to_owned()).collect();
        let servers = Peers { without_mariadb: true, peer }.beside(&ours().program)?;
        Ok(servers.into_iter().map(|server| server.name).collect())
    }

    #[test]
    fn ours_is_the_first() {
        let named = names(&["MySQL 9=exec mysqld --a=b"]).expect("servers");
        assert_eq!(named, ["Untorn", "MySQL 9"]);
    }

    #[test]
    fn a_peer_that_would_spoil_the_table_is_refused_with_what_to_do() {
        for (peer, told) in
            [("MySQL", "NAME=COMMAND"), ("=exec x", "letters"), ("A,B=x", "letters"), ("untorn=x", "another")]
        {
            let error = names(&[peer]).expect_err("refused").to_string();
            assert!(error.contains(told), "{error}");
        }
    }

    #[test]
    fn a_directory_is_a_plain_name() {
        let server = Server { name: "MySQL 9".to_owned(), ..ours() };
        assert_eq!(server.with(Vec::new()).directory, "mysql-9");
    }
}
