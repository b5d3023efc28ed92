//! The files are InnoDB's: tables exported here are imported by a stock MariaDB, and the other way round.
//!
//! `FLUSH TABLES … FOR EXPORT`, copy `.ibd` and `.cfg`, `ALTER TABLE … IMPORT TABLESPACE`, `CHECK TABLE …
//! EXTENDED`, and every row compared. After an orderly stop `innochecksum` reads every `.ibd`.

use anyhow::{Context, Result, bail, ensure};
use disk::Random;
use lab::command::{captured, root};
use lab::scratch::Scratch;
use lab::server_process::{Program, ServerProcess};
use mysql::prelude::Queryable;
use mysql::{Conn, Row};
use std::path::{Path, PathBuf};
use std::process::Command;

const DATABASE: &str = "carry";

/// A table and how its rows are ordered for comparing.
struct Table {
    name: &'static str,
    columns: &'static str,
    order: &'static str,
}

const TABLES: [Table; 6] = [
    Table {
        name: "plain",
        columns: "id INT NOT NULL AUTO_INCREMENT, k INT NOT NULL DEFAULT 0, c CHAR(120) NOT NULL DEFAULT '', pad CHAR(60) NOT NULL DEFAULT '', PRIMARY KEY (id), KEY k_1 (k)",
        order: "id",
    },
    Table {
        name: "typed",
        columns: "a BIGINT UNSIGNED NOT NULL, b SMALLINT, c DECIMAL(20,6), d DATE, e DATETIME(3), f DOUBLE, g VARCHAR(300), h VARBINARY(40), i TINYINT NOT NULL, PRIMARY KEY (a), UNIQUE KEY by_h (h), KEY by_g (g(20), b), KEY by_d (d)",
        order: "a",
    },
    Table {
        name: "composite",
        columns: "x VARCHAR(40) NOT NULL, y INT NOT NULL, z INT, PRIMARY KEY (x, y), KEY by_z (z, x)",
        order: "x, y",
    },
    Table {
        name: "long_values",
        columns: "id INT NOT NULL, body LONGTEXT, raw MEDIUMBLOB, PRIMARY KEY (id)",
        order: "id",
    },
    // Of the collations by Unicode's algorithm, MariaDB has these.
    Table {
        name: "words",
        columns: "id INT NOT NULL, word VARCHAR(60) COLLATE utf8mb4_unicode_520_ci NOT NULL, older VARCHAR(60) COLLATE utf8mb4_unicode_ci, filled CHAR(12) COLLATE utf8mb4_unicode_520_ci, small CHAR(8) CHARACTER SET ascii, three VARCHAR(20) CHARACTER SET utf8mb3, PRIMARY KEY (word, id), KEY by_older (older), KEY by_filled (filled, id), KEY by_small (small), KEY by_three (three)",
        order: "word, id",
    },
    // A byte for each character, MariaDB's default.
    Table {
        name: "western",
        columns: "id INT NOT NULL, word VARCHAR(60) CHARACTER SET latin1 NOT NULL, german VARCHAR(60) CHARACTER SET latin1 COLLATE latin1_german1_ci, filled CHAR(12) CHARACTER SET latin1 COLLATE latin1_general_cs, swedish CHAR(9) CHARACTER SET latin1, body TEXT CHARACTER SET latin1 COLLATE latin1_danish_ci, bytes VARCHAR(20) CHARACTER SET latin1 COLLATE latin1_bin, PRIMARY KEY (word, id), KEY by_german (german), KEY by_filled (filled, id), KEY by_swedish (swedish), KEY by_body (body(3)), KEY by_bytes (bytes)",
        order: "word, id",
    },
];

/// Characters of `latin1`, which is code page 1252.
const WESTERN: [&str; 16] = ["a", "A", "á", "Ä", "å", "ß", "s", "æ", "ø", "z", "-", "€", "š", "ÿ", " ", "\t"];

/// What words are made of: accents, expansions, ignorable characters, spaces, Hangul, Han.
const PIECES: [&str; 24] = [
    "a", "A", "á", "Ä", "b", "ß", "s", "æ", "É", "z", "Z", "-", "1", "и", "Й", "가", "각", "一", "龥", "😀",
    " ", "\t", "\u{ad}", "\u{301}",
];

/// Carries tables to MariaDB and back again and checks the files.
pub fn check(program: &Program) -> Result<()> {
    Scratch::with("import", |place| check_in(program, place))
}

fn check_in(program: &Program, place: &Path) -> Result<()> {
    let ours = ServerProcess::start(program, &made(place, "ours")?, &[])?;
    let theirs = ServerProcess::start(&Program::mariadb()?, &made(place, "theirs")?, &[])?;
    let result = (|| {
        fill(&ours)?;
        theirs.feed("", &format!("CREATE DATABASE {DATABASE};"))?;
        let mut failures = Vec::new();
        for table in &TABLES {
            let outcome = carry(&ours, &theirs, table);
            report("to MariaDB", table, outcome, &mut failures);
        }
        // Back again, changed there: dropped here first.
        for table in &TABLES {
            let outcome = change_there(&theirs, table).and_then(|()| {
                ours.ask(DATABASE, &format!("DROP TABLE {}", table.name))?;
                carry(&theirs, &ours, table)
            });
            report("from MariaDB", table, outcome, &mut failures);
        }
        ensure!(failures.is_empty(), "{}", failures.join("\n"));
        by_script(&ours, &theirs)
    })();
    let (data, stopped) = (ours.data.clone(), ours.stop());
    result.and(stopped.map(drop)).and_then(|()| checksums(&data))
}

/// The script people use, with its sysbench table and its customer table.
fn by_script(ours: &ServerProcess, theirs: &ServerProcess) -> Result<()> {
    let client = |server: &ServerProcess| {
        format!(
            "mariadb --no-defaults --skip-ssl --protocol=tcp --host=127.0.0.1 --user=root --port={}",
            server.port
        )
    };
    let output = captured(
        Command::new("bash")
            .arg(root().join("scripts/import-into-mysql"))
            .env("OUR_CLIENT", client(ours))
            .env("OUR_DATA", &ours.data)
            .env("THEIR_CLIENT", client(theirs))
            .env("THEIR_DATA", &theirs.data),
    )?;
    print!("{output}");
    Ok(())
}

fn made(place: &Path, name: &str) -> Result<PathBuf> {
    let path = place.join(name);
    std::fs::create_dir_all(&path)?;
    Ok(path)
}

fn report(direction: &str, table: &Table, outcome: Result<usize>, failures: &mut Vec<String>) {
    match outcome {
        Ok(rows) => println!("{} {direction}: {rows} rows equal, CHECK TABLE EXTENDED OK", table.name),
        Err(error) => {
            println!("{} {direction}: FAILED: {error:#}", table.name);
            failures.push(format!("{} {direction}: {error:#}", table.name));
        }
    }
}

fn definition(table: &Table) -> String {
    format!(
        "CREATE TABLE {} ({}) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci",
        table.name, table.columns
    )
}

/// Tables with a past: inserts, updates that move rows, deletes.
fn fill(server: &ServerProcess) -> Result<()> {
    let mut connection = server.connect(None)?;
    connection.query_drop(format!("CREATE DATABASE {DATABASE}"))?;
    connection.query_drop(format!("USE {DATABASE}"))?;
    for table in &TABLES {
        connection.query_drop(definition(table)).with_context(|| definition(table))?;
        connection.query_drop("BEGIN")?;
        let mut random = Random::new(table.name.len() as u64);
        for number in 0..if table.name == "long_values" { 60 } else { 3000 } {
            let sql = format!("INSERT INTO {} VALUES ({})", table.name, values(table, number, &mut random));
            connection.query_drop(&sql).with_context(|| sql.chars().take(200).collect::<String>())?;
        }
        connection.query_drop("COMMIT")?;
    }
    for sql in [
        "UPDATE plain SET k = k + 1000 WHERE id % 3 = 0",
        "DELETE FROM plain WHERE id % 7 = 0",
        "UPDATE typed SET g = REPEAT('grown ', 40), b = NULL WHERE a % 5 = 0",
        "DELETE FROM typed WHERE a % 11 = 0",
        "UPDATE composite SET y = y + 100000 WHERE z < 300",
        "DELETE FROM composite WHERE z > 900",
        "UPDATE long_values SET body = REPEAT('z', 50000) WHERE id % 6 = 0",
        "UPDATE long_values SET raw = NULL WHERE id % 9 = 0",
        "DELETE FROM long_values WHERE id % 10 = 0",
        "UPDATE words SET word = UPPER(word), filled = 'É' WHERE id % 3 = 0",
        "DELETE FROM words WHERE id % 7 = 0",
        "UPDATE western SET word = UPPER(word), filled = 'É', body = REPEAT('ö€', 5000) WHERE id % 3 = 0",
        "DELETE FROM western WHERE id % 7 = 0",
    ] {
        connection.query_drop(sql).with_context(|| sql)?;
    }
    Ok(())
}

fn values(table: &Table, number: usize, random: &mut Random) -> String {
    let word = |random: &mut Random, length: usize| -> String {
        (0..length).map(|_| char::from(b'a' + random.below(26) as u8)).collect()
    };
    match table.name {
        "plain" => {
            let (k, c, pad) = (random.below(5000), word(random, 119), word(random, 59));
            format!("{}, {k}, '{c}', '{pad}'", number + 1)
        }
        "typed" => {
            let b = if random.one_in(4) {
                "NULL".to_owned()
            } else {
                (random.below(60000) as i32 - 30000).to_string()
            };
            let length = random.below(80);
            let g =
                if random.one_in(5) { "NULL".to_owned() } else { format!("'ü{}'", word(random, length)) };
            format!(
                "{}, {b}, {}.{:06}, '20{:02}-{:02}-{:02}', '2024-05-06 07:08:{:02}.{:03}', {}.5, {g}, X'{:08x}ff', {}",
                (number as u64) * 1_000_000_007 % 4_000_000_000_000,
                random.below(2_000_000) as i64 - 1_000_000,
                random.below(1_000_000),
                random.below(100),
                1 + random.below(12),
                1 + random.below(28),
                random.below(60),
                random.below(1000),
                random.below(1000) as i32 - 500,
                number,
                random.below(256) as i32 - 128,
            )
        }
        "words" => {
            let made: String = (0..random.below(7)).map(|_| PIECES[random.below(PIECES.len())]).collect();
            let three = made.replace('😀', "");
            format!("{number}, '{made}', '{made}', '{made}', '{}', '{three}'", word(random, 5))
        }
        "western" => {
            let made: String = (0..random.below(7)).map(|_| WESTERN[random.below(WESTERN.len())]).collect();
            format!("{number}, '{made}', '{made}', '{made}', '{made}', '{made}', '{made}'")
        }
        "composite" => format!("'{}', {number}, {}", word(random, 3), random.below(1000)),
        _ => {
            let (body, raw) = (random.below(60_000), random.below(30_000));
            format!(
                "{number}, REPEAT('{}', {body} DIV 10), REPEAT(X'00ff{:02x}', {raw})",
                word(random, 10),
                random.below(256)
            )
        }
    }
}

/// Exports a table on one server, imports it on the other, compares. Returns the number of rows.
fn carry(from: &ServerProcess, to: &ServerProcess, table: &Table) -> Result<usize> {
    let name = table.name;
    to.ask(DATABASE, &definition(table))?;
    to.ask(DATABASE, &format!("ALTER TABLE {name} DISCARD TABLESPACE"))?;
    let mut exporting = from.connect(Some(DATABASE))?;
    exporting.query_drop(format!("FLUSH TABLES {name} FOR EXPORT")).context("FLUSH TABLES … FOR EXPORT")?;
    for suffix in ["ibd", "cfg"] {
        let file = format!("{DATABASE}/{name}.{suffix}");
        std::fs::copy(from.data.join(&file), to.data.join(&file))
            .with_context(|| format!("copying {file}"))?;
    }
    exporting.query_drop("UNLOCK TABLES")?;
    to.ask(DATABASE, &format!("ALTER TABLE {name} IMPORT TABLESPACE"))?;
    let verdict = to.ask(DATABASE, &format!("CHECK TABLE {name} EXTENDED"))?;
    ensure!(
        verdict.lines().last().is_some_and(|line| line.ends_with("OK")),
        "CHECK TABLE EXTENDED: {verdict}"
    );
    let (sent, arrived) = (rows(&mut exporting, table)?, rows(&mut to.connect(Some(DATABASE))?, table)?);
    if let Some(at) = (0..sent.len().max(arrived.len())).find(|at| sent.get(*at) != arrived.get(*at)) {
        let cut = |row: Option<&String>| row.map(|row| row.chars().take(300).collect::<String>());
        bail!("row {at} differs: {:?} became {:?}", cut(sent.get(at)), cut(arrived.get(at)));
    }
    // It is a living table there: it takes a change and keeps its indexes.
    to.ask(DATABASE, &format!("DELETE FROM {name} ORDER BY {} LIMIT 1", table.order))?;
    ensure!(
        rows(&mut to.connect(Some(DATABASE))?, table)?.len() + 1 == sent.len(),
        "a DELETE after the import"
    );
    Ok(sent.len())
}

fn rows(connection: &mut Conn, table: &Table) -> Result<Vec<String>> {
    let rows: Vec<Row> =
        connection.query(format!("SELECT * FROM {} ORDER BY {}", table.name, table.order))?;
    Ok(rows.into_iter().map(|row| format!("{:?}", row.unwrap())).collect())
}

fn change_there(server: &ServerProcess, table: &Table) -> Result<()> {
    let sql = match table.name {
        "plain" => "UPDATE plain SET c = CONCAT('there ', id), k = k - 1 WHERE id % 4 = 0",
        "typed" => "UPDATE typed SET f = f * 2, g = NULL WHERE a % 2 = 0",
        "composite" => "DELETE FROM composite WHERE y % 13 = 0",
        "western" => "UPDATE western SET word = CONCAT('Ä', LEFT(word, 50)), german = NULL WHERE id % 4 = 0",
        "words" => "UPDATE words SET word = CONCAT('Ä', LEFT(word, 50)), older = NULL WHERE id % 4 = 0",
        _ => "UPDATE long_values SET body = REPEAT('there', 9000) WHERE id % 4 = 1",
    };
    server.ask(DATABASE, sql).map(drop)
}

/// innochecksum over every tablespace below `data`.
fn checksums(data: &Path) -> Result<()> {
    let mut files = Vec::new();
    let mut directories = vec![data.to_path_buf()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory)? {
            let path = entry?.path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "ibd") {
                files.push(path);
            }
        }
    }
    ensure!(!files.is_empty(), "no .ibd below {}", data.display());
    for file in &files {
        captured(Command::new("innochecksum").arg(file))?;
    }
    println!("innochecksum: {} tablespaces are sound", files.len());
    Ok(())
}
