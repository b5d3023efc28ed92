//! Serves a database through the crate `opensrv-mysql`, on 127.0.0.1 and one thread.
//!
//! `cargo run --features opensrv --example opensrv_server -- --datadir=DIR --port=3308 [any other option of
//! untorn]`, then for instance `mariadb -h127.0.0.1 -P3308 -uroot`, or sysbench with `--db-ps-mode=disable`.
//! SIGINT and SIGTERM close the database cleanly. What this way in cannot do is in the text of the module
//! `sql_shim::opensrv`.
#![recursion_limit = "256"]

use std::error::Error;
use std::net::Ipv4Addr;
use std::process::ExitCode;
use std::sync::Arc;

use sql_shim::auth::accounts::Accounts;
use sql_shim::opensrv::OpensrvServer;
use sql_shim::options::{self, arguments};
use sql_shim::server::shared::Server;
use sql_shim::session::Sessions;
use sql_shim::variables::GlobalVariables;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use untorn::asynchronous::Database;

fn main() -> ExitCode {
    sql_shim::log::start();
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let variables = GlobalVariables::default();
    let options = options::load(&arguments::parse(std::env::args().skip(1))?, &variables)?;
    let database = untorn::engine::block_on(Database::open(options.database))?;
    let accounts = Accounts::open(&options.datadir)?;
    accounts.upgrade_file()?;
    let server = Server::new(accounts, variables);
    server.open_files()?;
    let sessions = Arc::new(Sessions::new(Arc::clone(&server), database.clone()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let served: Result<(), Box<dyn Error>> = tokio::task::LocalSet::new().block_on(&runtime, async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.listen.port)).await?;
        println!("listening on {} by way of opensrv-mysql", listener.local_addr()?);
        let (mut terminate, mut interrupt) =
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let asked = Arc::clone(&server);
        tokio::task::spawn_local(async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            asked.shutdown.request();
        });
        OpensrvServer::new(Arc::clone(&server), Arc::clone(&sessions)).listen(listener).await;
        Ok(())
    });
    drop(sessions);
    untorn::engine::block_on(database.close())?;
    served
}
