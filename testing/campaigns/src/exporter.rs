//! The stock `mysqld_exporter` with all its collectors on: what it asks for is there and has the form that it
//! reads. It is the client that reads most of the tables by which a server speaks of itself.
//!
//! An error in its log, or a collector that has failed by its own count, proves the server wrong; so does a
//! figure that must be there after a little work and is not.

use anyhow::{Context, Result, ensure};
use lab::command::Background;
use lab::scratch::Scratch;
use lab::server_process::{Program, ServerProcess, free_port};
use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const EXPORTER: &str = "prometheus-mysqld-exporter";

/// Collectors, and options of collectors, that are left off: what they read is not part of a server (a table
/// that pt-heartbeat makes, engines of others, the `sys` schema).
const LEFT_OFF: [&str; 4] = ["heartbeat", "engine_tokudb_status", "info_schema.rocksdb_perf_context", "sys."];

/// How long it may take until it listens.
const PATIENCE: Duration = Duration::from_secs(30);

const WORK: &str = "
CREATE DATABASE shop;
CREATE TABLE shop.cart (id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY, n INT, KEY (n));
INSERT INTO shop.cart (n) VALUES (1), (2), (3);
UPDATE shop.cart SET n = n + 1 WHERE id = 2;
SELECT COUNT(*) FROM shop.cart;
CREATE USER exporter@localhost IDENTIFIED BY 'secret';
GRANT PROCESS, REPLICATION CLIENT, SELECT ON *.* TO exporter@localhost;
";

/// What it has to tell after that work: the beginnings of lines whose value is above 0.
const FIGURES: [&str; 9] = [
    "mysql_up ",
    "mysql_global_status_questions ",
    "mysql_info_schema_innodb_tablespace_file_size_bytes{tablespace_name=\"shop/cart\"}",
    "mysql_info_schema_auto_increment_column{column=\"id\",schema=\"shop\",table=\"cart\"}",
    "mysql_perf_schema_file_events_bytes_total{event_name=\"wait/io/file/innodb/innodb_log_file\",mode=\"write\"}",
    "mysql_perf_schema_file_events_seconds_total{event_name=\"wait/io/file/innodb/innodb_log_file\",mode=\"write\"}",
    "mysql_perf_schema_events_statements_sum_total ",
    "mysql_mysql_create_user_priv{hostmask=\"localhost\",mysql_user=\"root\"}",
    "mysql_exporter_collector_duration_seconds{collector=\"collect.perf_schema.tablelocks\"}",
];

/// Lets it read a server twice, with the account that its documentation asks for.
pub fn run(program: &Program) -> Result<()> {
    Scratch::with("exporter", |place| run_in(program, place))
}

fn run_in(program: &Program, place: &Path) -> Result<()> {
    let server = ServerProcess::start(program, place, &[])?;
    let exporter = Exporter::beside(&server, place)?;
    // The second time it reads what was counted about the first.
    for _ in 0..2 {
        let text = exporter.scrape()?;
        judge(&text, &exporter.log()?).with_context(|| format!("{EXPORTER} said:\n{text}"))?;
    }
    println!("{} collectors and options, no error", exporter.collectors);
    drop(exporter);
    server.stop()?;
    Ok(())
}

/// The options that switch a collector on, from what `--help` says: those without a value.
fn collectors(help: &str) -> Vec<&str> {
    let words = help.lines().filter_map(|line| line.split_whitespace().next());
    // A version that can switch one off says so in its name.
    let options = words.filter_map(|word| {
        let name = word.strip_prefix("--[no-]").or_else(|| word.strip_prefix("--"))?;
        (name.starts_with("collect.") && !name.contains('=')).then_some(name)
    });
    let left_off = |option: &&str| {
        let name = option.strip_prefix("collect.").unwrap_or(option);
        LEFT_OFF.iter().any(|left| name.starts_with(left))
    };
    options.filter(|option| !left_off(option)).collect()
}

/// Whether it could read everything.
fn judge(text: &str, log: &str) -> Result<()> {
    for line in log.lines() {
        ensure!(!line.to_ascii_lowercase().contains("level=error"), "in its log: {line}");
    }
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let Some((name, value)) = line.rsplit_once(' ') else { continue };
        let failed = if name.starts_with("mysql_exporter_collector_success") {
            value == "0"
        } else {
            let counts_errors = name.starts_with("mysql_exporter_scrape_errors_total")
                || name == "mysql_exporter_last_scrape_error";
            counts_errors && value != "0"
        };
        ensure!(!failed, "{line}");
    }
    for figure in FIGURES {
        let line =
            text.lines().find(|line| line.starts_with(figure)).with_context(|| format!("no {figure}"))?;
        let value = line.rsplit(' ').next().and_then(|value| value.parse::<f64>().ok());
        ensure!(value.is_some_and(|value| value > 0.0), "{line}");
    }
    Ok(())
}

/// One at work.
pub(crate) struct Exporter {
    process: Background,
    address: String,
    log: PathBuf,
    /// Collectors and options that are on.
    collectors: usize,
}

impl Exporter {
    /// Has the server do a little work and starts one that reads it, with an account of its own.
    pub(crate) fn beside(server: &ServerProcess, place: &Path) -> Result<Exporter> {
        server.feed("", WORK)?;
        let port = server.port;
        let settings = place.join("exporter.cnf");
        let account = format!("[client]\nuser=exporter\npassword=secret\nhost=127.0.0.1\nport={port}\n");
        std::fs::write(&settings, account)?;
        // It says it on standard error.
        let help = Command::new(EXPORTER)
            .arg("--help")
            .output()
            .with_context(|| format!("cannot run {EXPORTER}"))?;
        let help = String::from_utf8_lossy(&[help.stdout, help.stderr].concat()).into_owned();
        let collectors = collectors(&help);
        ensure!(collectors.len() > 30, "{EXPORTER} --help names {} collectors", collectors.len());
        Exporter::start(place, &settings, &collectors)
    }

    fn start(place: &Path, settings: &Path, collectors: &[&str]) -> Result<Exporter> {
        let address = format!("127.0.0.1:{}", free_port()?);
        let log = place.join("exporter.log");
        let mut command = Command::new(EXPORTER);
        command.arg(format!("--web.listen-address={address}"));
        command.arg(format!("--config.my-cnf={}", settings.display()));
        command.args(collectors.iter().map(|name| format!("--{name}")));
        command.stdout(Stdio::null()).stderr(File::create(&log)?);
        let process = command.spawn().with_context(|| format!("cannot run {EXPORTER}"))?;
        let process = Background(process);
        let mut exporter = Exporter { process, address, log, collectors: collectors.len() };
        let begin = Instant::now();
        while TcpStream::connect(&exporter.address).is_err() {
            let ended = exporter.process.0.try_wait()?;
            ensure!(
                ended.is_none() && begin.elapsed() < PATIENCE,
                "it does not listen:\n{}",
                exporter.log()?
            );
            thread::sleep(Duration::from_millis(20));
        }
        Ok(exporter)
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// What it answers to Prometheus.
    fn scrape(&self) -> Result<String> {
        let mut stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        ensure!(text.split("\r\n").next().is_some_and(|line| line.contains(" 200 ")), "{text}");
        Ok(text)
    }

    fn log(&self) -> Result<String> {
        Ok(std::fs::read_to_string(&self.log)?)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn collectors_are_the_options_without_a_value() {
        let help = "Flags:\n      --collect.heartbeat.utc  Use UTC\n      --collect.mysql.user     Collect\n      \
                    --collect.perf_schema.x=250\n      --[no-]collect.binlog_size  \n      --web.listen-address=:9104\n";
        assert_eq!(collectors(help), ["collect.mysql.user", "collect.binlog_size"]);
    }

    #[test]
    fn a_collector_that_failed_is_noticed() {
        let good: String = FIGURES.iter().map(|figure| format!("{} 1\n", figure.trim_end())).collect();
        judge(&good, "level=info msg=x\n").unwrap();
        for line in [
            "mysql_exporter_scrape_errors_total{collector=\"collect.mysql.user\"} 1",
            "mysql_exporter_collector_success{collector=\"collect.mysql.user\"} 0",
            "mysql_exporter_last_scrape_error 1",
        ] {
            assert_eq!(judge(&format!("{good}{line}\n"), "").unwrap_err().to_string(), line);
        }
        assert!(judge(&good, "ts=1 level=error msg=\"Error from scraper\"").is_err());
        assert!(judge(&good.replace("mysql_up 1", "mysql_up 0"), "").is_err());
        assert!(judge(&good.replace("shop/cart", "shop"), "").is_err());
    }
}
