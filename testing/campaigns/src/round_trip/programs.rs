//! The programs that make dumps, and those that load them, with the options that people give them.

use super::{Arguments, Kind, Server};
use anyhow::{Context, Result, bail};
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

/// Who makes the database that a dump is loaded into.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Load {
    /// It must be there.
    IntoDatabase,
    /// The dump, or who loads it.
    WithDatabase,
}

/// Whose programs they are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Family {
    MariaDb,
    MySql,
    Mydumper,
}

/// A way to make a dump and to load it.
pub struct DumpProgram {
    family: Family,
    /// How they are called, words with spaces between.
    dump: String,
    load: String,
    options: &'static str,
    load_options: &'static str,
}

/// Options of mariadb-dump; the first are for a dump as a backup.
const MARIADB: [&str; 3] = [
    "--single-transaction --routines --triggers --events --hex-blob",
    "--skip-extended-insert --order-by-primary --complete-insert --skip-tz-utc --no-tablespaces",
    "--databases --add-drop-database --tz-utc --insert-ignore --skip-comments",
];

/// Options of MySQL's mysqldump.
const MYSQL: [&str; 4] = [
    "--single-transaction --routines --triggers --events --hex-blob --set-gtid-purged=OFF",
    "--skip-extended-insert --order-by-primary --column-statistics=1 --set-gtid-purged=AUTO --no-tablespaces",
    "--databases --add-drop-database --column-statistics=0 --set-gtid-purged=OFF --replace",
    "--skip-opt --create-options --quick --complete-insert --set-gtid-purged=OFF --skip-generated-invisible-primary-key",
];

/// Options of mydumper and of myloader. The first are what every version has.
const MYDUMPER: [(&str, &str); 3] = [
    ("--triggers --events --routines --threads 4", "--threads 4"),
    (
        "--triggers --events --routines --threads 2 --rows 100 --compress",
        "--threads 4 --queries-per-transaction 10",
    ),
    ("--threads 1 --no-backup-locks --statement-size 2000", "--threads 1"),
];

/// What dumps a MariaDB.
pub fn of_mariadb() -> DumpProgram {
    let (dump, load) = ("mariadb-dump".to_owned(), "mariadb".to_owned());
    DumpProgram { family: Family::MariaDb, dump, load, options: MARIADB[0], load_options: "" }
}

/// All ways that this machine and the arguments allow.
pub fn all(arguments: &Arguments) -> Vec<DumpProgram> {
    let mut all: Vec<DumpProgram> = MARIADB.map(|options| DumpProgram { options, ..of_mariadb() }).into();
    if let (Some(dump), Some(load)) = (&arguments.mysqldump, &arguments.mysql_client) {
        for options in MYSQL {
            let (dump, load) = (dump.clone(), load.clone());
            all.push(DumpProgram { family: Family::MySql, dump, load, options, load_options: "" });
        }
    }
    let mydumper = match (&arguments.mydumper, &arguments.myloader) {
        (Some(dump), Some(load)) => Some((dump.clone(), load.clone())),
        // The one in Debian 12 and 13 leaves out columns whose default is an expression, with their values.
        _ if version("mydumper").is_some_and(|version| !version.contains("mydumper 0.10.")) => {
            Some(("mydumper".to_owned(), "myloader".to_owned()))
        }
        _ => None,
    };
    if let Some((dump, load)) = mydumper {
        for (options, load_options) in MYDUMPER {
            let (dump, load) = (dump.clone(), load.clone());
            all.push(DumpProgram { family: Family::Mydumper, dump, load, options, load_options });
        }
    }
    all
}

fn version(program: &str) -> Option<String> {
    let output = Command::new(program).arg("--version").output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Removes a dump, a file or a directory.
pub fn remove(dump: &Path) -> Result<()> {
    if dump.is_dir() {
        std::fs::remove_dir_all(dump)?;
    } else if dump.exists() {
        std::fs::remove_file(dump)?;
    }
    Ok(())
}

impl DumpProgram {
    /// How it is named in the table, with its options.
    pub fn name(&self) -> String {
        let program = match self.family {
            Family::MariaDb => "mariadb-dump",
            Family::MySql => "mysqldump",
            Family::Mydumper => "mydumper",
        };
        format!("{program} {}", self.options)
    }

    pub fn is_mydumper(&self) -> bool {
        self.family == Family::Mydumper
    }

    /// Whether it dumps such a server: MySQL's mysqldump no MariaDB, whose tables of information_schema it
    /// does not know; and mydumper no MySQL of today, where SHOW MASTER STATUS is gone.
    pub fn reads(&self, kind: Kind) -> bool {
        match self.family {
            Family::MySql => kind != Kind::MariaDb,
            Family::Mydumper => kind != Kind::MySql,
            Family::MariaDb => true,
        }
    }

    /// Whether such a server takes its dumps: mariadb-dump writes values of generated columns, which MySQL
    /// refuses (3105).
    pub fn loads_into(&self, kind: Kind) -> bool {
        self.family != Family::MariaDb || kind != Kind::MySql
    }

    /// Who makes the database.
    pub fn load_makes_database(&self) -> Load {
        match self.options.contains("--databases") || self.family == Family::Mydumper {
            true => Load::WithDatabase,
            false => Load::IntoDatabase,
        }
    }

    /// Dumps a database into a file, or a directory.
    pub fn dump(&self, from: &Server, database: &str, dump: &Path) -> Result<()> {
        let mut command = self.command(&self.dump, from)?;
        command.args(self.options.split_whitespace());
        if self.family == Family::Mydumper {
            command.args(["--database", database, "--outputdir"]).arg(dump);
            return finished(command);
        }
        command.arg(database).stdout(File::create(dump)?);
        finished(command)
    }

    /// Loads it.
    pub fn load(&self, to: &Server, database: &str, dump: &Path) -> Result<()> {
        let mut command = self.command(&self.load, to)?;
        command.args(self.load_options.split_whitespace());
        match self.family {
            Family::Mydumper => {
                command.args(["--database", database, "--directory"]).arg(dump);
            }
            Family::MariaDb | Family::MySql => {
                command.args(["--default-character-set=utf8mb4", "--binary-mode"]).stdin(File::open(dump)?);
                if self.load_makes_database() == Load::IntoDatabase {
                    command.arg(database);
                }
            }
        }
        finished(command)
    }

    fn command(&self, called: &str, server: &Server) -> Result<Command> {
        let mut words = called.split_whitespace();
        let mut command = Command::new(words.next().context("no program is named")?);
        command.args(words).stdin(Stdio::null());
        match self.family {
            Family::MariaDb => drop(command.args(["--no-defaults", "--skip-ssl", "--protocol=tcp"])),
            Family::MySql => drop(command.args(["--no-defaults", "--protocol=tcp"])),
            Family::Mydumper => {}
        }
        let address = &server.address;
        command.args(["--host", "127.0.0.1", "--port", &address.port.to_string(), "--user", &address.user]);
        match self.family {
            _ if address.password.is_empty() => {}
            Family::Mydumper => drop(command.args(["--password", &address.password])),
            _ => drop(command.arg(format!("--password={}", address.password))),
        }
        Ok(command)
    }
}

/// Runs a command that must succeed and complain of nothing: mydumper goes on after an error, and says so.
fn finished(mut command: Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stderr(Stdio::piped()).spawn().and_then(|child| child.wait_with_output());
    let output = output.with_context(|| format!("cannot run {name}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let complaints: Vec<&str> = said
        .lines()
        .filter(|line| !line.contains("GLib-CRITICAL"))
        .filter(|line| ["CRITICAL", "ERROR", "rror:", "Couldn't"].iter().any(|word| line.contains(word)))
        .collect();
    if !output.status.success() || !complaints.is_empty() {
        let said = if complaints.is_empty() { said.into_owned() } else { complaints.join("\n") };
        bail!("{name}: {}: {}", output.status, said.trim_end());
    }
    Ok(())
}
