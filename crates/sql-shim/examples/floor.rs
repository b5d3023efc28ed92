//! The floor of the server: every statement is answered with the same row, so what is measured is sockets,
//! protocol and runtime alone.
//!
//! `cargo run --release --example floor -- [port] [threads] [socket]`, then for instance
//! `sysbench oltp_point_select --mysql-host=127.0.0.1 --mysql-port=… --mysql-user=root --tables=1 run`.
#![recursion_limit = "256"]

use std::io;
use std::sync::Arc;

use sql::result::{ColumnMeta, Completion, ResultColumns, ResultSink, SqlError, kind, status_flag};
use sql_shim::auth::accounts::Accounts;
use sql_shim::server::registry::Connection;
use sql_shim::server::runtime::{ListenOptions, RuntimeKind, start};
use sql_shim::server::shared::Server;
use sql_shim::session_interface::{Param, Prepared};
use sql_shim::session_interface::{SessionFactory, SessionService};
use sql_shim::variables::GlobalVariables;

const ROW: &[u8; 119] =
    b"68487932199-96439406143-93774651418-41631865787-96406072701-20604855487-25459966574-\
28203206787-41238978918-19503783441";

struct Canned {
    columns: Arc<ResultColumns>,
}

struct CannedSession {
    columns: Arc<ResultColumns>,
}

impl SessionFactory for Canned {
    type Session = CannedSession;
    fn open(&self, _: &Arc<Connection>) -> CannedSession {
        CannedSession { columns: Arc::clone(&self.columns) }
    }
}

impl CannedSession {
    fn answer(&self, out: &mut impl ResultSink) {
        let completion = Completion { status: status_flag::AUTOCOMMIT, ..Completion::default() };
        out.columns(&self.columns);
        out.row_begin();
        out.bytes(ROW);
        out.row_end();
        out.rows_end(&completion);
    }
}

impl SessionService for CannedSession {
    type Plan = ();

    async fn query(&mut self, _sql: &[u8], out: &mut impl ResultSink) -> io::Result<()> {
        self.answer(out);
        Ok(())
    }

    async fn prepare(&mut self, sql: &[u8]) -> Result<Prepared<()>, SqlError> {
        let params = sql.iter().filter(|byte| **byte == b'?').map(|_| ColumnMeta::bigint("?")).collect();
        Ok(Prepared {
            sql: Arc::from(sql),
            params: ResultColumns::new(params),
            columns: Arc::clone(&self.columns),
            plan: (),
        })
    }

    async fn execute(
        &mut self,
        _statement: &mut Prepared<()>,
        _params: &[Param<'_>],
        out: &mut impl ResultSink,
    ) -> io::Result<()> {
        self.answer(out);
        Ok(())
    }

    async fn change_database(&mut self, _name: &[u8]) -> Result<(), SqlError> {
        Ok(())
    }

    async fn field_list(&mut self, _table: &[u8], _pattern: &[u8]) -> Result<Arc<ResultColumns>, SqlError> {
        Ok(Arc::clone(&self.columns))
    }

    async fn reset(&mut self) {}

    async fn close(&mut self) {}

    fn status_flags(&self) -> u16 {
        status_flag::AUTOCOMMIT
    }
}

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let port = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(3307);
    let threads = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(2);
    let socket = arguments.next().map(Into::into);
    let mut column = ColumnMeta::text("c", 120);
    column.kind = kind::STRING;
    let factory = Arc::new(Canned { columns: ResultColumns::new(vec![column]) });
    let server = Server::new(Accounts::in_memory(), GlobalVariables::default());
    let (runtime, why) = RuntimeKind::choose();
    println!("runtime {runtime:?}: {why}");
    let options = ListenOptions { addresses: vec![[127, 0, 0, 1].into()], port, socket, threads, runtime };
    let running = start(&options, &server, &factory)?;
    println!("listening on {:?}", running.addresses);
    running.wait()
}
