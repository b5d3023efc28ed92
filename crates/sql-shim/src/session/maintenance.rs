//! CHECK, ANALYZE, OPTIMIZE and REPAIR TABLE: a few rows of answer for each table. CHECKSUM TABLE reads all
//! rows as a SELECT does.
//!
//! CHECK walks the table (`src/check.rs` of the engine), OPTIMIZE makes it again ([`Session::recreate`]).
//! ANALYZE counts the rows and keys of its tables again. REPAIR, CACHE INDEX and LOAD INDEX answer and do
//! nothing.

use std::sync::Arc;

use sql::ast::{Maintenance, Query, Statement, TableName};
use sql::catalog_views::declared::nullable;
use sql::failure::Failure;
use sql::result::ResultSink;
use sql::table_checksum::TableChecksum;
use sql::value::Value;
use untorn::Table;

use super::show::Answer;
use super::{Outcome, Session};

impl Session {
    pub(super) async fn maintain<S: ResultSink>(
        &mut self,
        what: Maintenance,
        tables: &[TableName],
        out: &mut S,
        more: bool,
    ) -> Result<Outcome, Failure> {
        let operation = match what {
            Maintenance::Analyze => "analyze",
            Maintenance::Check => "check",
            Maintenance::Optimize => "optimize",
            Maintenance::Repair => "repair",
            Maintenance::AssignToKeyCache => "assign_to_keycache",
            Maintenance::PreloadKeys => "preload_keys",
            Maintenance::Checksum => return self.checksums(tables, true, out).await,
            Maintenance::KeptChecksum => return self.checksums(tables, false, out).await,
        };
        self.implicit_commit().await?;
        let engine = self.state.database.clone();
        let mut rows: Vec<[String; 4]> = Vec::new();
        for name in tables {
            let shown = self.shown(name)?;
            let mut push = |kind: &str, text: &str| {
                rows.push([shown.clone(), operation.to_owned(), kind.to_owned(), text.to_owned()]);
            };
            if what == Maintenance::Check
                && let Some(view) = self.planner().view_named(name)?
            {
                match self.planner().view_columns(&view) {
                    Ok(_) => push("status", "OK"),
                    Err(error) => {
                        push("Error", &error.message);
                        push("error", "Corrupt");
                    }
                }
                continue;
            }
            let table = match self.refuse_view(name).and_then(|()| self.planner().engine_table(name)) {
                Ok(table) => table,
                Err(error) => {
                    push("Error", &error.message);
                    push("status", "Operation failed");
                    continue;
                }
            };
            match what {
                Maintenance::Check => {
                    let timeout = self.lock_wait_timeout();
                    let checked = engine
                        .definitions()
                        .session(&self.transaction)
                        .timeout(timeout)
                        .check_table(&table.database, &table.name)
                        .await;
                    let report = match checked {
                        Err(discarded @ untorn::Error::TablespaceDiscarded(..)) => {
                            push("Error", &sql::failure::engine(&discarded).message);
                            push("error", "Corrupt");
                            continue;
                        }
                        checked => checked?,
                    };
                    report.problems.iter().for_each(|problem| push("error", problem));
                    push("status", if report.is_sound() { "OK" } else { "Corrupt" });
                }
                Maintenance::Optimize => {
                    push("note", "Table does not support optimize, doing recreate + analyze instead");
                    match self.recreate(name).await {
                        Ok(()) => push("status", "OK"),
                        Err(Failure::Sql(error)) => {
                            push("error", &error.message);
                            push("status", "Operation failed");
                        }
                        Err(failure) => return Err(failure),
                    }
                }
                Maintenance::Repair | Maintenance::AssignToKeyCache | Maintenance::PreloadKeys => {
                    push("note", &format!("The storage engine for the table doesn't support {operation}"))
                }
                Maintenance::Analyze => match engine.analyze_table(&table).await {
                    Ok(_) => push("status", "OK"),
                    Err(error) => {
                        push("Error", &sql::failure::engine(&error).message);
                        push("status", "Operation failed");
                    }
                },
                _ => push("status", "OK"),
            }
        }
        let columns = [("Table", 128), ("Op", 10), ("Msg_type", 10), ("Msg_text", 131_072)];
        let rows = rows.into_iter().map(|row| row.into_iter().map(Value::text).collect()).collect();
        self.send_texts(&columns, rows, out, more).await
    }

    /// CHECKSUM TABLE; without `reads`, QUICK, what tables keep, which is nothing.
    async fn checksums<S: ResultSink>(
        &mut self,
        tables: &[TableName],
        reads: bool,
        out: &mut S,
    ) -> Result<Outcome, Failure> {
        let mut rows = Vec::new();
        for name in tables {
            let sum = match self.refuse_view(name).and_then(|()| self.planner().engine_table(name)) {
                Ok(table) if reads => Value::UInt(u64::from(self.checksum(&table).await?)),
                Ok(_) => Value::Null,
                Err(error) => {
                    self.state.warn_of_error(error);
                    Value::Null
                }
            };
            rows.push(vec![Value::text(self.shown(name)?), sum]);
        }
        let answer = Answer::texts(&[("Table", 128), ("Checksum", 21)], rows);
        self.send(answer.typed(&[(1, nullable("bigint"))]), out).await?;
        Ok(Outcome::Rows)
    }

    async fn checksum(&mut self, table: &Arc<Table>) -> Result<u32, Failure> {
        let name = TableName { database: Some(table.database.clone()), name: table.name.clone() };
        let query = Statement::Select(Box::new(Query::of_table(name)));
        let plan = self.planned(move |planner| planner.data(&query)).await?;
        let mut sums = TableChecksum::new(&table.def, self.state.time_zone_offset());
        if let Some(plan) = &*plan {
            self.run_data(plan, &[], &mut sums).await?;
        }
        Ok(sums.sum())
    }
}
