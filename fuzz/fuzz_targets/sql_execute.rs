//! Any bytes as SQL, planned and executed by a real session over a real database: a result or an error, never
//! a panic, a stack that overflows or a statement that cannot be killed.
#![no_main]

use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use sql::kill_switch::Kill;
use sql::parser::STACK_BYTES;
use sql_shim::auth::accounts::Accounts;
use sql_shim::server::registry::Connection;
use sql_shim::server::shared::Server;
use sql_shim::session_interface::{SessionFactory, SessionService};
use sql_shim::session::Sessions;
use sql_shim::variables::GlobalVariables;
use sql_shim::wire::output::PacketOutput;
use sql_shim::wire::reply::{Encoding, Flush, Reply, ReplyScratch};
use untorn::Options;
use untorn::asynchronous::Database;
use untorn::engine::block_on;

/// A client that takes everything at once.
struct Taken;

impl Flush for Taken {
    async fn flush(&mut self, output: &mut PacketOutput) -> io::Result<()> {
        let bytes = output.lend();
        output.restore(bytes);
        Ok(())
    }

    fn has_files(&self) -> bool {
        false
    }

    async fn receive(&mut self, _: &mut PacketOutput, _: &mut Vec<u8>) -> io::Result<usize> {
        Ok(0)
    }
}

/// The thread that has the session.
struct Worker {
    statements: Sender<Vec<u8>>,
    done: Receiver<()>,
    connection: Arc<Connection>,
}

const SETUP: &[&str] = &[
    "CREATE DATABASE d",
    "USE d",
    "CREATE TABLE t (id INT PRIMARY KEY, n BIGINT, d DECIMAL(20,5), s VARCHAR(40), b BLOB, w DATETIME(3), KEY (n), KEY (s))",
    "INSERT INTO t VALUES (1, 2, 3.5, 'four', x'05', NOW()), (2, NULL, NULL, NULL, NULL, NULL), (3, -1, -0.5, 'b', '', '2000-01-01')",
    "SET GLOBAL max_allowed_packet = 1048576",
];

/// Waiting is not what is looked for, and neither is the end of the server.
const LEFT_OUT: &[&str] = &["sleep", "lock", "shutdown", "persist", "buffer_pool", "for update", "for share"];

fn worker() -> Worker {
    let (statements, todo) = channel::<Vec<u8>>();
    let (said, done) = channel();
    let (give, take) = channel();
    let run = move || {
        let directory =
            PathBuf::from(std::env::temp_dir()).join(format!("untorn-fuzz-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&directory);
        let options = Options::new(&directory).buffer_pool_bytes(16 << 20).redo_capacity_bytes(16 << 20);
        let database = untorn::engine::block_on(Database::open(options)).expect("a fresh directory opens");
        let server = Server::new(Accounts::in_memory(), GlobalVariables::default());
        let counters = server.status.thread();
        let connection = server.connections.enter(10, "localhost", 0, counters).expect("there is room");
        connection.update(|activity| {
            activity.user = Arc::from("root");
            activity.account_host = Arc::from("localhost");
        });
        let mut session = Sessions::new(server, database).open(&connection);
        give.send(connection.clone()).expect("somebody waits for it");
        let setup = SETUP.iter().map(|sql| sql.as_bytes().to_vec()).collect::<Vec<_>>();
        for sql in setup.into_iter().chain(todo) {
            let (mut output, mut scratch, mut taken) = (PacketOutput::new(), ReplyScratch::default(), Taken);
            let mut reply = Reply::new(&mut output, &mut scratch, &mut taken, 0, Encoding::Text, 0);
            connection.clear_query_kill();
            let _ = block_on(session.query(&sql, &mut reply));
            connection.clear_query_kill();
            if let Ok(mut prepared) = block_on(session.prepare(&sql))
                && prepared.params.is_empty()
            {
                let mut reply = Reply::new(&mut output, &mut scratch, &mut taken, 0, Encoding::Binary, 0);
                connection.clear_query_kill();
                let _ = block_on(session.execute(&mut prepared, &[], &mut reply));
            }
            block_on(session.reset());
            block_on(session.change_database(b"d")).ok();
            let _ = said.send(());
        }
    };
    std::thread::Builder::new().stack_size(STACK_BYTES).spawn(run).expect("a thread starts");
    let connection = take.recv().expect("the worker has begun");
    for _ in SETUP {
        done.recv().expect("the worker is there");
    }
    Worker { statements, done, connection }
}

fuzz_target!(|data: &[u8]| {
    static WORKER: OnceLock<Mutex<Worker>> = OnceLock::new();
    let lower = data.to_ascii_lowercase();
    if LEFT_OUT.iter().any(|word| lower.windows(word.len()).any(|window| window == word.as_bytes())) {
        return;
    }
    let worker = WORKER.get_or_init(|| Mutex::new(worker())).lock().expect("the fuzzer has one thread");
    worker.statements.send(data.get(1..).unwrap_or_default().to_vec()).expect("the worker is there");
    for patience in [2, 5] {
        match worker.done.recv_timeout(Duration::from_secs(patience)) {
            Ok(()) => return,
            Err(RecvTimeoutError::Timeout) => worker.connection.kill(Kill::Query),
            Err(RecvTimeoutError::Disconnected) => panic!("the worker ended"),
        }
    }
    panic!("a statement was killed and goes on");
});
