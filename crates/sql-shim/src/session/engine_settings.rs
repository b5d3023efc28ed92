//! System variables that the engine itself follows, from the start and whenever SET GLOBAL changes them.

use std::sync::Arc;
use std::time::Duration;

use sql::result::SqlError;
use untorn::asynchronous::Database;

use crate::options::machine;
use crate::server::shared::Server;
use crate::variables::Value;

/// As `innodb_io_capacity_max`: the cleaner decides by itself.
const NO_LIMIT: u64 = u32::MAX as u64;

type Apply = fn(&Database, u64);
type Act = Box<dyn Fn(&Database, &Server, &Value) + Send + Sync>;

/// Name, and what a value does.
const SETTINGS: &[(&str, Apply)] = &[
    ("innodb_deadlock_detect", |database, on| database.transaction_system().set_deadlock_detect(on != 0)),
    ("innodb_io_capacity_max", |database, pages| {
        let max = u32::try_from(pages).ok().filter(|pages| u64::from(*pages) < NO_LIMIT);
        database.store().set_io_capacity_max(max);
    }),
    ("innodb_random_read_ahead", |database, on| database.store().set_random_read_ahead(on != 0)),
    ("innodb_read_ahead_threshold", |database, pages| {
        database.store().set_read_ahead_threshold(u32::try_from(pages).unwrap_or(u32::MAX));
    }),
    ("innodb_undo_log_truncate", |database, on| database.transaction_system().set_undo_log_truncate(on != 0)),
    ("innodb_max_undo_log_size", |database, bytes| {
        database.transaction_system().set_max_undo_log_size(bytes);
    }),
    ("untorn_recovery_target", |database, seconds| {
        let target = (seconds > 0).then(|| Duration::from_secs(seconds));
        database.store().set_recovery_target(target);
    }),
    ("untorn_lock_memory", |database, bytes| {
        let bytes = if bytes == 0 { untorn::default_lock_memory(machine::memory_bytes().0) } else { bytes };
        database.transaction_system().set_lock_memory_max(usize::try_from(bytes).unwrap_or(usize::MAX));
    }),
];

/// Applies the values as they are and those that come.
pub(super) fn connect(server: &Arc<Server>, database: &Database) {
    for (name, apply) in SETTINGS {
        apply(database, server.variables.number(name));
        let database = database.clone();
        let hook = move |value: &Value| {
            apply(&database, value.as_u64().unwrap_or_default());
            Ok(())
        };
        server.variables.on_change(name, Box::new(hook));
    }
    connect_pool_size(server, database);
    connect_redo_capacity(server, database);
    connect_warm_up(server, database);
    const MEMORY: &str = "untorn_memory_limit";
    let memory = server.memory.clone();
    memory.set_limit(server.variables.number(MEMORY));
    let hook = move |value: &Value| {
        memory.set_limit(value.as_u64().unwrap_or_default());
        Ok(())
    };
    server.variables.on_change(MEMORY, Box::new(hook));
    let memory = server.memory.clone();
    server.status.add_source(Box::new(move |rows| {
        rows.push(("Untorn_memory_used".into(), memory.used().to_string()));
        rows.push(("Untorn_memory_limit".into(), memory.limit().to_string()));
    }));
}

/// `innodb_buffer_pool_size`: a change is begun, and `Innodb_buffer_pool_resize_status` says how far it is.
fn connect_pool_size(server: &Arc<Server>, database: &Database) {
    const NAME: &str = "innodb_buffer_pool_size";
    // What the database was opened with, no matter by whom.
    let _ = server.variables.set_at_start(NAME, &database.buffer_pool_bytes().to_string());
    let resized = database.clone();
    let hook = move |value: &Value| {
        let bytes = value.as_u64().unwrap_or_default();
        let refused = |why: String| {
            SqlError::new(
                1231,
                b"42000",
                format!("Variable '{NAME}' can't be set to the value of '{bytes}': {why}"),
            )
        };
        let (memory, of) = machine::memory_bytes();
        if bytes > memory {
            return Err(refused(format!("the memory of {of} is {memory} bytes")));
        }
        resized.start_buffer_pool_resize(bytes).map(drop).map_err(|error| refused(error.to_string()))
    };
    server.variables.on_change(NAME, Box::new(hook));
    let database = database.clone();
    server.status.add_source(Box::new(move |rows| {
        rows.push(("Innodb_buffer_pool_resize_status".into(), database.buffer_pool_resize_status()));
    }));
}

/// `innodb_redo_log_capacity`: a change is begun; two status variables say how far it is.
fn connect_redo_capacity(server: &Arc<Server>, database: &Database) {
    const NAME: &str = "innodb_redo_log_capacity";
    let _ = server.variables.set_at_start(NAME, &database.redo_capacity_bytes().to_string());
    let shown = {
        let server = Arc::downgrade(server);
        move |bytes: u64| {
            if let Some(server) = server.upgrade() {
                let _ = server.variables.set_at_start(NAME, &bytes.to_string());
            }
        }
    };
    let (resized, set) = (database.clone(), shown.clone());
    let turn = Arc::new(parking_lot::Mutex::new(()));
    let change = move |bytes: u64, by: fn(&Database, u64) -> untorn::Result<()>| {
        let outcome = by(&resized, bytes).map_err(|error| {
            let why = format!("Variable '{NAME}' can't be set to the value of '{bytes}': {error}");
            SqlError::new(1231, b"42000", why)
        });
        // Refused or not, a step by itself may have come between. Read and shown in one turn: of several
        // sessions the last one to come here shows what the last change has left.
        let _turn = turn.lock();
        set(resized.redo_capacity_bytes());
        outcome
    };
    let (hook, sized) = (change.clone(), database.clone());
    let hook = move |value: &Value| hook(value.as_u64().unwrap_or_default(), Database::set_redo_capacity);
    server.variables.on_change(NAME, Box::new(hook));
    // As at a start that is given none.
    let default = move || {
        let (bytes, _) = machine::redo_capacity_bytes(sized.buffer_pool_bytes(), sized.directory());
        change(bytes, Database::redo_capacity_by_itself)
    };
    server.variables.on_default(NAME, Box::new(default));
    database.when_redo_capacity_rose(Box::new(shown));
    let database = database.clone();
    server.status.add_source(Box::new(move |rows| {
        let (wanted, reached) = (database.redo_capacity_bytes(), database.redo_capacity_reached());
        let status = if wanted < reached { "Resizing down" } else { "OK" };
        rows.push(("Innodb_redo_log_capacity_resized".into(), reached.to_string()));
        rows.push(("Innodb_redo_log_resize_status".into(), status.into()));
        rows.push(("Untorn_redo_log_rose".into(), database.redo_capacity_rose()));
    }));
}

fn on(value: &Value) -> bool {
    value.as_u64().unwrap_or_default() != 0
}

fn percent(value: u64) -> u8 {
    u8::try_from(value).unwrap_or(100)
}

fn at_close(wanted: bool, of: u64) -> u8 {
    if wanted { percent(of) } else { 0 }
}

/// `innodb_buffer_pool_dump_*` and `…_load_*`: what was in the pool before a restart.
fn connect_warm_up(server: &Arc<Server>, database: &Database) {
    let status = database.clone();
    server.status.add_source(Box::new(move |rows| {
        rows.push(("Innodb_buffer_pool_dump_status".into(), status.buffer_pool_dump_status()));
        rows.push(("Innodb_buffer_pool_load_status".into(), status.buffer_pool_load_status()));
    }));
    const AT_SHUTDOWN: &str = "innodb_buffer_pool_dump_at_shutdown";
    const PERCENT: &str = "innodb_buffer_pool_dump_pct";
    let variables = &server.variables;
    database
        .dump_buffer_pool_at_close(at_close(variables.number(AT_SHUTDOWN) != 0, variables.number(PERCENT)));
    if variables.number("innodb_buffer_pool_load_at_startup") != 0 {
        drop(database.load_buffer_pool());
    }
    let hook = |name: &'static str, act: Act| {
        let (database, server) = (database.clone(), Arc::downgrade(server));
        let hook = move |value: &Value| {
            if let Some(server) = server.upgrade() {
                act(&database, &server, value);
            }
            Ok(())
        };
        variables.on_change(name, Box::new(hook));
    };
    hook(
        AT_SHUTDOWN,
        Box::new(move |database, server, value| {
            database.dump_buffer_pool_at_close(at_close(on(value), server.variables.number(PERCENT)));
        }),
    );
    hook(
        PERCENT,
        Box::new(move |database, server, value| {
            let wanted = server.variables.number(AT_SHUTDOWN) != 0;
            database.dump_buffer_pool_at_close(at_close(wanted, value.as_u64().unwrap_or_default()));
        }),
    );
    hook(
        "innodb_buffer_pool_dump_now",
        Box::new(move |database, server, value| {
            if on(value) {
                let (database, of) = (database.clone(), percent(server.variables.number(PERCENT)));
                // The file is written and synced: not on a thread of connections.
                let environment = database.environment().clone();
                environment.spawn_blocking(
                    "buffer pool dump",
                    // How it ended is in the status.
                    Box::pin(async move { drop(database.dump_buffer_pool(of)) }),
                );
            }
        }),
    );
    hook(
        "innodb_buffer_pool_load_now",
        Box::new(move |database, _, value| {
            if on(value) {
                drop(database.load_buffer_pool());
            }
        }),
    );
    hook(
        "innodb_buffer_pool_load_abort",
        Box::new(move |database, _, value| {
            if on(value) {
                database.abort_buffer_pool_load();
            }
        }),
    );
}
