//! Where LOAD DATA reads: a file of this machine, or one of the client's. The bytes are taken apart into
//! lines and fields in `exec/load.rs` of `crates/sql`.

use std::fs::File;
use std::io::{self, Read};

use sql::errors::{self, error};
use sql::exec::Executor;
use sql::exec::insert::Changed;
use sql::exec::load::Pieces;
use sql::failure::Failure;
use sql::plan::load::LoadPlan;
use sql::result::ResultSink;

use crate::server::files::{self, FileDirectory};

/// Bytes read at once: each read is on another thread.
const PIECE_BYTES: usize = 256 * 1024;

pub(super) async fn run<S: ResultSink>(
    executor: &mut Executor<'_>,
    plan: &LoadPlan,
    directory: Option<&FileDirectory>,
    out: &mut S,
) -> Result<Changed, Failure> {
    if !plan.local {
        let file = files::named(directory)?.open_to_read(&plan.file)?;
        return executor.load(plan, &mut ServerFile(Some(file))).await;
    }
    if !out.ask_for_file(&plan.file).await? {
        return Err(error(errors::LOCAL_FILES_DISABLED, &[]).into());
    }
    executor.load(plan, &mut ClientFile(out)).await
}

struct ClientFile<'s, S>(&'s mut S);

impl<S: ResultSink> Pieces for ClientFile<'_, S> {
    async fn next(&mut self, into: &mut Vec<u8>) -> Result<bool, Failure> {
        Ok(self.0.file_piece(into).await?)
    }
}

/// `None` while a read is under way.
struct ServerFile(Option<File>);

impl Pieces for ServerFile {
    async fn next(&mut self, into: &mut Vec<u8>) -> Result<bool, Failure> {
        let Some(mut file) = self.0.take() else { return Ok(false) };
        // The disk may take its time, and others run on this thread.
        let read = tokio::task::spawn_blocking(move || {
            let mut piece = Vec::new();
            let outcome = (&mut file).take(PIECE_BYTES as u64).read_to_end(&mut piece);
            (file, piece, outcome)
        });
        let (file, piece, outcome) = read.await.map_err(io::Error::other)?;
        outcome.map_err(|failed| error(errors::ERROR_ON_READ, &[&"file", &failed]))?;
        self.0 = Some(file);
        into.extend_from_slice(&piece);
        Ok(!piece.is_empty())
    }
}
