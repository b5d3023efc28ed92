//! The command-line clients people have: `mariadb` and `mariadb-dump`, over TCP, the socket, and in a
//! terminal.

use lab::command::captured;
use lab::scratch::Scratch;
use lab::server_process::{Program, ServerProcess};
pub mod applications;
mod terminal;

use anyhow::{Result, ensure};
use std::path::Path;
use std::process::Command;

const SCHEMA: &str = "
CREATE DATABASE shop;
USE shop;
CREATE TABLE customer (
  id INT UNSIGNED NOT NULL AUTO_INCREMENT, name VARCHAR(80) NOT NULL, note TEXT, born DATE,
  PRIMARY KEY (id), UNIQUE KEY by_name (name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
CREATE TABLE purchase (
  customer INT UNSIGNED NOT NULL, number INT NOT NULL, amount DECIMAL(12,2) NOT NULL, at DATETIME NOT NULL,
  PRIMARY KEY (customer, number), KEY by_time (at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
";

/// What the settings ask for.
pub fn all(program: Option<&Program>, settings: &applications::Settings) -> Result<()> {
    match program {
        Some(program) if settings.command_line() => run(program)?,
        _ => {}
    }
    if settings.applications() { applications::run(program, settings) } else { Ok(()) }
}

/// Runs a script through the client, dumps, restores the dump into another database, restarts, compares.
pub fn run(program: &Program) -> Result<()> {
    Scratch::with("clients", |place| run_in(program, place))
}

fn run_in(program: &Program, place: &Path) -> Result<()> {
    let server = ServerProcess::start(program, place, &[])?;
    println!("first start in {:.2} s", server.started_in.as_secs_f64());
    server.feed("", &(SCHEMA.to_owned() + &rows()))?;
    let before = contents(&server, "shop")?;
    ensure!(before.contains("O'Connor \\ 7"), "quotes and backslashes survive:\n{before}");
    let sums = server.ask("shop", "SELECT COUNT(*), SUM(amount), MIN(at), MAX(at) FROM purchase")?;
    ensure!(sums == "600\t180600.00\t2024-01-01 00:00:00\t2024-02-19 23:59:59", "{sums}");
    let joined = server.ask(
        "shop",
        "SELECT c.name, COUNT(*), SUM(p.amount) FROM customer c JOIN purchase p ON p.customer = c.id WHERE c.id = 5 GROUP BY c.name",
    )?;
    ensure!(joined == "Müller 5\t12\t3558.00", "{joined}");
    socket_answers(&server)?;
    encrypted_answers(&server)?;
    files_are_loaded(&server, place)?;
    errors_are_mysql_errors(&server)?;
    terminal::check(&server)?;

    let dump = server.dump("shop")?;
    server.feed("", "CREATE DATABASE copy;")?;
    server.feed("copy", &dump)?;
    ensure!(contents(&server, "copy")? == before, "the restored dump differs");
    // Which ends nothing: the stop is a clean one.
    server.hang_up()?;
    server.stop()?;
    let server = ServerProcess::start(program, place, &[])?;
    println!("restart after an orderly stop in {:.2} s", server.started_in.as_secs_f64());
    for database in ["shop", "copy"] {
        ensure!(contents(&server, database)? == before, "{database} differs after a restart");
    }
    server.feed("", "DROP DATABASE copy;")?;
    server.stop()?;
    backups_are_restored(program, place, &before)
}

/// The commands `backup` and `restore`: a whole copy of the stopped server's directory, and one of what has
/// changed since.
fn backups_are_restored(program: &Program, place: &Path, before: &str) -> Result<()> {
    let untorn = std::path::absolute(&program.path)?;
    let command = |words: &[&str]| {
        let mut command = Command::new(&untorn);
        command.current_dir(place).args(words);
        captured(&mut command)
    };
    command(&["backup", "monday", "--datadir=data"])?;
    let server = ServerProcess::start(program, place, &[])?;
    ensure!(command(&["backup", "meanwhile", "--datadir=data"]).is_err(), "a server has it open");
    server.feed("shop", "DELETE FROM purchase WHERE customer > 25;")?;
    let after = contents(&server, "shop")?;
    server.stop()?;
    command(&["backup", "tuesday", "--since=monday", "--datadir=data"])?;
    ensure!(command(&["backup", "nothing", "--datadir=missing"]).is_err(), "there is nothing to copy");
    for (backup, expected) in [("monday", before), ("tuesday", &*after)] {
        let directory = format!("{backup}-restored");
        command(&["restore", backup, &directory])?;
        let server = ServerProcess::start_on(program, place, &place.join(directory), &[])?;
        ensure!(contents(&server, "shop")? == expected, "{backup} is another state");
        server.stop()?;
    }
    Ok(())
}

/// 50 customers with 12 purchases each.
fn rows() -> String {
    let mut sql = String::from("START TRANSACTION;\n");
    for id in 1..=50 {
        let name = if id == 7 { "O\\'Connor \\\\ 7".to_owned() } else { format!("Müller {id}") };
        let note =
            if id % 3 == 0 { "NULL".to_owned() } else { format!("'{}'", "long note ".repeat(id * 20)) };
        sql += &format!(
            "INSERT INTO customer VALUES ({id}, '{name}', {note}, '19{:02}-03-{:02}');\n",
            id + 40,
            id % 28 + 1
        );
        let values = (1..=12).map(|number| {
            let day = (id - 1) % 50;
            let (month, day) = if day < 31 { (1, day + 1) } else { (2, day - 30) };
            let time = if number == 12 { "23:59:59" } else { "00:00:00" };
            format!(
                "({id}, {number}, {}.00, '2024-{month:02}-{day:02} {time}')",
                290 + number + if id > 5 { 5 } else { 0 }
            )
        });
        sql += &format!("INSERT INTO purchase VALUES {};\n", values.collect::<Vec<_>>().join(", "));
    }
    sql + "COMMIT;\n"
}

fn contents(server: &ServerProcess, database: &str) -> Result<String> {
    let customers = "SELECT id, name, LENGTH(note), note, born FROM customer ORDER BY id";
    let output = captured(server.client().args([
        "--default-character-set=utf8mb4",
        "--raw",
        "-e",
        &format!("{customers}; SELECT * FROM purchase ORDER BY customer, number"),
        database,
    ]))?;
    Ok(output)
}

fn socket_answers(server: &ServerProcess) -> Result<()> {
    let mut command = Command::new("mariadb");
    command.args(["--no-defaults", "--protocol=socket", "--user=root", "--batch", "--skip-column-names"]);
    command
        .arg(format!("--socket={}", server.socket.display()))
        .args(["-e", "SELECT COUNT(*) FROM shop.customer"]);
    let answer = captured(&mut command)?;
    ensure!(answer.trim() == "50", "over the socket: {answer}");
    Ok(())
}

/// Over TLS, with a client that verifies the certificate that the server made for itself.
fn encrypted_answers(server: &ServerProcess) -> Result<()> {
    let mut command = Command::new("mariadb");
    command.args(["--no-defaults", "--protocol=tcp", "--host=127.0.0.1", "--user=root", "--ssl"]);
    command.arg(format!("--port={}", server.port)).arg("--ssl-verify-server-cert");
    command.arg(format!("--ssl-ca={}", server.data.join("server-cert.pem").display()));
    let answer = captured(command.args(["-e", "\\s"]))?;
    ensure!(answer.contains("Cipher in use is TLS_"), "over TLS: {answer}");
    Ok(())
}

/// A file of the client by LOAD DATA LOCAL, in clear and over TLS.
fn files_are_loaded(server: &ServerProcess, place: &Path) -> Result<()> {
    server
        .feed("shop", "SET GLOBAL local_infile = ON; CREATE TABLE stock (id INT PRIMARY KEY, name TEXT);")?;
    let rows: String = (0..20_000).map(|id| format!("{id}\titem {id}\\\t\\N\n")).collect();
    let file = place.join("stock.txt");
    std::fs::write(&file, rows)?;
    let load = format!("LOAD DATA LOCAL INFILE '{}' REPLACE INTO TABLE stock", file.display());
    for encryption in ["--skip-ssl", "--ssl"] {
        captured(server.client().args([encryption, "--local-infile=1", "-e", &load, "shop"]))?;
        let found = server.ask("shop", "SELECT COUNT(*), SUM(id), MAX(LENGTH(name)) FROM stock")?;
        ensure!(found == "20000\t199990000\t12", "{encryption}: {found}");
    }
    server.feed("shop", "DROP TABLE stock; SET GLOBAL local_infile = OFF;")?;
    Ok(())
}

/// The codes that programs look at.
fn errors_are_mysql_errors(server: &ServerProcess) -> Result<()> {
    for (sql, code, state) in [
        ("INSERT INTO customer (id, name) VALUES (1, 'x')", 1062, "23000"),
        ("SELECT * FROM nothing", 1146, "42S02"),
        ("SELECT nothing FROM customer", 1054, "42S22"),
        ("SELEC 1", 1064, "42000"),
        ("USE nowhere", 1049, "42000"),
        ("CREATE TABLE customer (id INT)", 1050, "42S01"),
    ] {
        let output = server.client().args(["-e", sql, "shop"]).output()?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(
            !output.status.success() && errors.contains(&format!("ERROR {code} ({state})")),
            "{sql}: {errors}"
        );
    }
    Ok(())
}
