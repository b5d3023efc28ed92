//! One round: tables, rows, then queries and changes, each judged.

use super::Settings;
use super::change::MODES;
use super::expression::Generator;
use super::listed::reason;
use super::query::Statement;
use super::schema::{Table, pick, tables};
use super::servers::{Contents, Oracle, Outcome, Servers};
use super::shrink::{Case, Shrinker};
use super::tree::Style;
use crate::peers::{Address, Answer, shown};
use crate::suites::judge::Verdict;
use anyhow::Result;
use disk::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// What all rounds came to.
#[derive(Default)]
pub struct Counts {
    pub statements: u64,
    refused: u64,
    verdicts: BTreeMap<Verdict, u64>,
    listed: BTreeMap<&'static str, u64>,
    warnings: u64,
    /// Forms of what was found, each once.
    pub findings: BTreeSet<String>,
}

impl Counts {
    pub fn summary(&self) -> String {
        let mut text = format!("{} statements, {} of them refused\n", self.statements, self.refused);
        for (verdict, count) in &self.verdicts {
            let _ = writeln!(text, "{count:>8}  {verdict:?}");
        }
        for (reason, count) in &self.listed {
            let _ = writeln!(text, "{count:>8}  listed: {reason}");
        }
        let _ = writeln!(text, "{:>8}  other numbers of warnings", self.warnings);
        let _ = write!(text, "{:>8}  findings", self.findings.len());
        text
    }
}

pub struct Round<'a> {
    addresses: &'a [Address],
    database: &'a str,
    settings: &'a Settings,
    number: u64,
    servers: Servers,
    tables: Vec<Table>,
    contents: Vec<Contents>,
    mode: &'static str,
    /// Another server is gone: some statements end it.
    ended: bool,
    counts: &'a mut Counts,
}

impl<'a> Round<'a> {
    pub fn play(
        addresses: &'a [Address],
        database: &'a str,
        settings: &'a Settings,
        seed: u64,
        number: u64,
        counts: &'a mut Counts,
    ) -> Result<()> {
        let mut random = Random::new(seed ^ number.wrapping_mul(0x9E37_79B9));
        random.next_u64();
        let servers = Servers::new(addresses, database)?;
        let mode = MODES[0];
        let mut round = Round {
            addresses,
            database,
            settings,
            number,
            servers,
            tables: Vec::new(),
            contents: Vec::new(),
            mode,
            ended: false,
            counts,
        };
        round.prepare(&mut random)?;
        if round.tables.is_empty() {
            return Ok(());
        }
        for _ in 0..settings.round {
            if round.ended || round.counts.findings.len() >= settings.findings {
                break;
            }
            round.step(&mut random)?;
        }
        Ok(())
    }

    fn prepare(&mut self, random: &mut Random) -> Result<()> {
        for table in tables(random) {
            let definition = table.definition();
            let answers = self.servers.all(&definition);
            self.counts.statements += 1;
            let failed: Vec<bool> =
                answers.iter().map(|answer| matches!(answer, Answer::Error(..))).collect();
            if failed.iter().any(|one| *one != failed[0]) {
                let texts: Vec<String> = answers.iter().map(shown).collect();
                println!("-- definition\n{definition};\n-- {}\n", texts.join("\n-- "));
                self.counts.findings.insert(definition);
            }
            if failed.contains(&true) {
                self.servers.all(&format!("DROP TABLE IF EXISTS {}", table.name));
                continue;
            }
            self.tables.push(table);
        }
        self.contents = vec![Vec::new(); self.tables.len()];
        for table in self.tables.clone() {
            let rows = 3 + random.below(18);
            let statement = Generator::new(random, &self.tables).first_rows(&table, rows);
            self.judge(&statement, Oracle::Peers)?;
        }
        Ok(())
    }

    fn step(&mut self, random: &mut Random) -> Result<()> {
        if random.one_in(40) {
            self.mode = pick(random, &MODES);
            self.servers.all(&format!("SET sql_mode = '{}'", self.mode));
        }
        if random.one_in(4) {
            let statement = Generator::new(random, &self.tables).change();
            return self.judge(&statement, Oracle::Peers);
        }
        let statement = Generator::new(random, &self.tables).query_statement();
        self.judge(&statement, Oracle::Peers)?;
        let alone = self.servers.others() == 0;
        if alone || random.one_in(4) {
            self.judge(&statement, Oracle::Indexes)?;
            if statement.partition {
                self.judge(&statement, Oracle::Partition)?;
            }
        }
        Ok(())
    }

    fn judge(&mut self, statement: &Statement, oracle: Oracle) -> Result<()> {
        let outcome = self.servers.outcome(statement, oracle, &self.tables);
        self.counts.statements += 1;
        let refused = matches!(outcome.answers.first(), Some((_, Answer::Error(..))));
        self.counts.refused += u64::from(refused);
        if outcome.verdict == Verdict::Lost {
            // It took too long, or the server is gone: then the next round cannot begin.
            let text = statement.sql.written(Style::Plain);
            println!("-- round {} ends: ours gives no answer\n{text};\n", self.number);
            *self.counts.verdicts.entry(outcome.verdict).or_default() += 1;
            self.counts.findings.insert(text);
            self.servers.end(self.addresses);
            self.ended = true;
            return Ok(());
        }
        if outcome.warnings.windows(2).any(|pair| pair[0] != pair[1]) {
            self.counts.warnings += 1;
            if self.settings.warnings {
                println!("-- warnings {:?}\n{};", outcome.warnings, statement.sql.written(Style::Plain));
            }
        }
        let counts = [Verdict::Same, Verdict::Excluded, Verdict::Unsettled];
        if counts.contains(&outcome.verdict) {
            *self.counts.verdicts.entry(outcome.verdict).or_default() += 1;
        } else if let Some(reason) = self.known(statement, oracle, &outcome) {
            *self.counts.listed.entry(reason).or_default() += 1;
        } else {
            *self.counts.verdicts.entry(outcome.verdict).or_default() += 1;
            if outcome.verdict >= Verdict::WrongOrder || !self.settings.rows {
                self.found(statement, oracle, &outcome)?;
            }
        }
        if outcome.answers.iter().any(|(_, answer)| matches!(answer, Answer::Lost(_))) {
            self.servers.end(self.addresses);
            println!(
                "-- round {} ends: another server is gone\n{};\n",
                self.number,
                statement.sql.written(Style::Plain)
            );
            self.ended = true;
            return Ok(());
        }
        if statement.changes {
            self.contents = self.servers.contents(&self.tables)?;
            if outcome.verdict != Verdict::Same {
                self.servers.fill(&self.tables, &self.contents, self.mode);
            }
        }
        Ok(())
    }

    /// The reason for which a difference does not count.
    fn known(&mut self, statement: &Statement, oracle: Oracle, outcome: &Outcome) -> Option<&'static str> {
        let contradicted = |servers: &mut Servers| match oracle {
            Oracle::Peers => servers.contradiction(statement, outcome),
            Oracle::Indexes | Oracle::Partition => None,
        };
        reason(statement, outcome).or_else(|| contradicted(&mut self.servers))
    }

    /// Makes a difference small and prints it, if nothing like it was printed before.
    fn found(&mut self, statement: &Statement, oracle: Oracle, outcome: &Outcome) -> Result<()> {
        // A smaller statement may have groups whose columns are any row's: refused then.
        let grouped = !statement.changes && statement.sql.written(Style::Plain).contains(" GROUP BY ");
        let case = Case {
            tables: self.tables.clone(),
            contents: self.contents.clone(),
            mode: if grouped { format!("{},ONLY_FULL_GROUP_BY", self.mode) } else { self.mode.to_owned() },
            statement: statement.clone(),
            oracle,
        };
        let mut servers = Servers::new(self.addresses, &format!("{}_small", self.database))?;
        let (case, small) = Shrinker::new(&mut servers, case, outcome).shrunk();
        let contradicted = match (&small, oracle) {
            (Some(small), Oracle::Peers) => servers.contradiction(&case.statement, small),
            _ => None,
        };
        servers.end(self.addresses);
        let shows = if small.is_some() { "" } else { "\n-- Not shown by tables made again." };
        let small = small.as_ref().unwrap_or(outcome);
        let known = reason(&case.statement, small).or(contradicted);
        if known.is_none() && self.counts.findings.insert(case.form()) {
            println!("-- round {}{shows}\n{}", self.number, case.script(small));
        }
        Ok(())
    }
}
