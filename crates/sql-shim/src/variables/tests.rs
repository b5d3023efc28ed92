#![allow(clippy::unwrap_used)]
use sql::errors::OPTION_IGNORED;

use super::table::{Kind, SET_BY_CLIENTS};
use super::*;

fn session() -> (GlobalVariables, SessionVariables) {
    let globals = GlobalVariables::default();
    let session = globals.session();
    (globals, session)
}

fn code<T>(result: Result<T, SqlError>) -> u16 {
    result.map_or_else(|error| error.code, |_| 0)
}

#[test]
fn every_default_is_a_value_of_its_type() {
    for definition in DEFINITIONS {
        let value = value::from_text(definition, definition.default);
        assert!(value.is_ok(), "{}: {value:?}", definition.name);
    }
}

#[test]
fn a_session_copies_on_its_first_set() {
    let (globals, mut session) = session();
    let other = globals.session();
    session.set(&globals, "AUTOCOMMIT", Scope::Session, Some(Value::Int(0))).unwrap();
    assert!(!session.settings().autocommit);
    assert!(other.settings().autocommit && globals.session().settings().autocommit);
    session.set(&globals, "autocommit", Scope::Either, None).unwrap();
    assert!(session.settings().autocommit);
}

#[test]
fn set_global_reaches_new_sessions_only() {
    let (globals, mut session) = session();
    let level = Some(Value::text("read-committed"));
    session.set(&globals, "tx_isolation", Scope::Global, level).unwrap();
    assert_eq!(session.settings().isolation, Isolation::RepeatableRead);
    assert_eq!(globals.session().settings().isolation, Isolation::ReadCommitted);
    assert_eq!(
        session.get(&globals, "transaction_isolation", Scope::Global),
        Ok(Value::text("READ-COMMITTED"))
    );
}

#[test]
fn what_is_kept_decoded_follows_set_global() {
    let (globals, mut session) = session();
    assert_eq!(globals.packet_bytes_max(), 64 << 20);
    session.set(&globals, "max_allowed_packet", Scope::Global, Some(Value::Int(4096))).unwrap();
    assert_eq!(globals.packet_bytes_max(), 4096);
}

#[test]
fn errors_have_mysqls_numbers() {
    let (globals, mut session) = session();
    let mut set = |name: &str, scope, value| code(session.set(&globals, name, scope, Some(value)));
    assert_eq!(set("no_such_variable", Scope::Session, Value::Int(1)), 1193);
    assert_eq!(set("version", Scope::Global, Value::text("x")), 1238);
    assert_eq!(set("max_connections", Scope::Session, Value::Int(1)), 1229);
    assert_eq!(set("sql_log_bin", Scope::Global, Value::Int(1)), 1228);
    assert_eq!(set("autocommit", Scope::Session, Value::Int(2)), 1231);
    assert_eq!(set("transaction_isolation", Scope::Session, Value::text("SNAPSHOT")), 1231);
    assert_eq!(set("sql_mode", Scope::Session, Value::text("NO_SUCH_MODE")), 1231);
    assert_eq!(set("wait_timeout", Scope::Session, Value::text("ten")), 1232);
    assert_eq!(set("character_set_client", Scope::Session, Value::text("klingon")), 1115);
    assert_eq!(set("collation_connection", Scope::Session, Value::text("klingon_ci")), 1273);
    assert_eq!(set("time_zone", Scope::Session, Value::text("+15:00")), 1298);
    assert_eq!(set("max_allowed_packet", Scope::Session, Value::Int(1024)), 1621);
    assert_eq!(set("max_user_connections", Scope::Session, Value::Int(1)), 1621);
    assert_eq!(set("wait_timeout", Scope::Session, Value::Int(60)), 0);
    let read = |name: &str, scope| session.get(&globals, name, scope).map_or_else(|error| error.code, |_| 0);
    assert_eq!(read("max_connections", Scope::Session), 1238);
    assert_eq!(read("max_connections", Scope::Either), 0);
}

#[test]
fn names_of_tools_mean_what_they_meant() {
    let (globals, mut session) = session();
    session.set(&globals, "character_set_results", Scope::Session, Some(Value::Null)).unwrap();
    assert_eq!(session.get(&globals, "character_set_results", Scope::Session), Ok(Value::Null));
    session.set(&globals, "collation_connection", Scope::Session, Some(Value::text("latin1_bin"))).unwrap();
    assert_eq!(session.get(&globals, "character_set_connection", Scope::Either), Ok(Value::text("latin1")));
    session.set(&globals, "time_zone", Scope::Session, Some(Value::text("+05:30"))).unwrap();
    assert_eq!(session.settings().sql.time_zone_offset_seconds, Some(19_800));
    for (switch, warns) in [("semijoin=off", false), ("DEFAULT", false), ("semijoin=on", true)] {
        let warning = session.set(&globals, "optimizer_switch", Scope::Session, Some(Value::text(switch)));
        assert_eq!(warning.unwrap().is_some(), warns, "{switch}");
    }
    let Ok(Value::Text(switches)) = session.get(&globals, "optimizer_switch", Scope::Session) else {
        unreachable!()
    };
    assert!(switches.contains("semijoin=off") && switches.contains("materialization=on"));
    let rows = session.show(&globals, Scope::Session);
    let first = rows.iter().find(|(name, _)| name.starts_with('t') && name.ends_with("_isolation"));
    assert_eq!(first.map(|(name, _)| *name), Some("transaction_isolation"));
}

#[test]
fn a_hook_may_refuse() {
    let (globals, mut session) = session();
    globals.on_change(
        "innodb_io_capacity_max",
        Box::new(|value| match value.as_u64() {
            Some(5000) => Err(SqlError::new(1231, b"42000", "no")),
            _ => Ok(()),
        }),
    );
    let mut set =
        |value| code(session.set(&globals, "innodb_io_capacity_max", Scope::Global, Some(Value::Int(value))));
    assert_eq!((set(4000), set(5000)), (0, 1231));
    assert_eq!(globals.number("innodb_io_capacity_max"), 4000);
}

#[test]
fn sizes_as_in_option_files() {
    assert_eq!(value::parse_size("16M"), Some(16 << 20));
    assert_eq!(value::parse_size("2g"), Some(2 << 30));
    assert_eq!(value::parse_size("100"), Some(100));
    assert_eq!(value::parse_size("99999999E"), None);
    assert_eq!(value::parse_size(""), None);
    assert_eq!(value::parse_size("M"), None);
}

/// A value of that variable which is not its default, where it takes another.
fn another_value(definition: &Definition) -> Option<Value> {
    let default = value::from_text(definition, definition.default).unwrap();
    let candidates = match definition.kind {
        Kind::Bool => vec![Value::Bool(true), Value::Bool(false)],
        Kind::UInt(min, max) => vec![Value::UInt(min), Value::UInt(max)],
        Kind::Int(min, max) => vec![Value::Int(min), Value::Int(max)],
        Kind::Double(min, max) => vec![Value::Double(min), Value::Double(max)],
        Kind::Enum(words) => words.iter().map(|word| Value::text(word)).collect(),
        Kind::Charset(_) => vec![Value::text("latin1")],
        Kind::Collation => vec![Value::text("latin1_bin")],
        Kind::TimeZone => vec![Value::text("+01:00")],
        Kind::TimeNames => vec![Value::text("de_DE")],
        Kind::SqlMode => vec![Value::text("ANSI_QUOTES")],
        Kind::Switches => {
            let (name, is_on) = definition.default.split(',').next().unwrap().split_once('=').unwrap();
            vec![Value::text(&format!("{name}={}", if is_on == "on" { "off" } else { "on" }))]
        }
        Kind::TrackedNames => vec![Value::text("sql_mode")],
        Kind::Compressions => vec![Value::text("zlib")],
        Kind::Text(_) => vec![Value::text("something")],
    };
    candidates.into_iter().find(|candidate| *candidate != default)
}

#[test]
fn who_sets_a_variable_without_effect_is_told() {
    for definition in DEFINITIONS.iter().filter(|definition| definition.dynamic) {
        let name = definition.name;
        let (globals, mut session) = session();
        let scope = match definition.reach {
            Reach::Session => Scope::Session,
            Reach::Global | Reach::Both => Scope::Global,
        };
        let Some(other) = another_value(definition) else { continue };
        let (before, quiet) =
            (session.get(&globals, name, scope), SET_BY_CLIENTS.iter().any(|(client, _)| *client == name));
        let warning = session.set(&globals, name, scope, Some(other)).unwrap();
        let told = warning.map(|warning| (warning.code, warning.message.contains(name)));
        let silent = quiet || definition.effect.is_followed();
        let expected = (!silent).then_some((OPTION_IGNORED, true));
        assert_eq!(told, expected, "{name}");
        let kept = session.get(&globals, name, scope) == before;
        let stays = matches!(definition.effect, Effect::Constant | Effect::Triggers);
        assert_eq!(kept, stays, "{name} is a constant, a trigger, or takes what is set");
    }
}

#[test]
fn a_constant_set_to_what_it_is_warns_nobody() {
    let (globals, mut session) = session();
    let set = |session: &mut SessionVariables, value| {
        session.set(&globals, "sql_log_bin", Scope::Session, value).unwrap().map(|warning| warning.message)
    };
    assert_eq!(set(&mut session, Some(Value::Int(0))), None);
    assert_eq!(set(&mut session, None), None);
    assert_eq!(
        set(&mut session, Some(Value::Int(1))).as_deref(),
        Some("'sql_log_bin' is accepted for compatibility and has no effect: it stays 'OFF'")
    );
}

#[test]
fn constants_stay_at_start_too() {
    let globals = GlobalVariables::default();
    for (name, text, warns, shown) in [
        ("general_log", "ON", true, "OFF"),
        ("log_bin", "OFF", false, "OFF"),
        ("innodb_io_capacity", "2000", true, "2000"),
        ("max_connections", "7", false, "7"),
    ] {
        assert_eq!(globals.set_at_start(name, text).unwrap().is_some(), warns, "{name}");
        assert_eq!(globals.value(name).show(), shown, "{name}");
    }
}

/// What is ON although nothing sets it: how this server always works.
const ALWAYS: &[&str] = &[
    "explicit_defaults_for_timestamp",
    "have_compress",
    "innodb_adaptive_flushing",
    "innodb_file_per_table",
    "innodb_flush_sync",
    "innodb_log_checksums",
    "innodb_table_locks",
    "skip_external_locking",
    "skip_name_resolve",
    "sql_quote_show_create",
    "unique_checks",
    "xa_detach_on_prepare",
];

#[test]
fn nothing_that_does_not_exist_is_on() {
    let globals = GlobalVariables::default();
    for definition in DEFINITIONS.iter().filter(|definition| !definition.effect.is_followed()) {
        let (name, shown) = (definition.name, globals.value(definition.name).show());
        assert_eq!(matches!(&*shown, "ON" | "YES"), ALWAYS.contains(&name), "{name} is {shown}");
        // A switch that takes what is set would read ON and do nothing.
        let switch = matches!(definition.kind, Kind::Bool | Kind::Switches);
        assert!(!switch || definition.effect == Effect::Constant, "{name}");
    }
}

#[test]
fn what_clients_set_by_themselves_has_no_effect() {
    for (name, who) in SET_BY_CLIENTS {
        let definition = &DEFINITIONS[find(name).unwrap()];
        assert!(definition.effect != Effect::Acts && definition.dynamic && !who.is_empty(), "{name}");
    }
}

/// The sources of a crate but tests, the table of variables and the lists of those without effect.
fn sources(directory: &std::path::Path, text: &mut String) {
    const PASSED_OVER: [&str; 4] = ["table.rs", "tests.rs", "without_effect.rs", "relied_on.rs"];
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && name != "tests" {
            sources(&path, text);
        } else if name.ends_with(".rs") && !PASSED_OVER.contains(&&*name) {
            let source = std::fs::read_to_string(&path).unwrap();
            text.push_str(source.split("#[cfg(test)]\nmod tests {").next().unwrap());
        }
    }
}

/// As far as a test can tell: who reads a variable names it.
#[test]
fn what_acts_is_named_in_the_sources_and_nothing_else_is() {
    // Named for another reason: `--version`, VERSION(), error 1621, a column of mysql.user, and what is read
    // of the current database.
    const NAMED: &[&str] =
        &["version", "net_buffer_length", "ssl_cipher", "character_set_database", "collation_database"];
    let mut text = String::new();
    for sources_in in ["src", "../sql/src"] {
        sources(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(sources_in), &mut text);
    }
    for definition in DEFINITIONS {
        let named = text.contains(&format!("\"{}\"", definition.name)) && !NAMED.contains(&definition.name);
        assert_eq!(named, definition.effect.is_followed(), "{} is named: {named}", definition.name);
    }
}

/// Where the server decides a default, DEFAULT asks it, what it puts there stays, and no value is kept for
/// later starts.
#[test]
fn a_default_may_be_the_servers_to_decide() {
    const NAME: &str = "innodb_redo_log_capacity";
    let directory = std::env::temp_dir().join(format!("untorn-default-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let globals = Arc::new(GlobalVariables::default());
    globals.set_at_start("datadir", directory.to_str().unwrap()).unwrap();
    let given = Arc::new(AtomicBool::new(false));
    let (hook, decides) = (given.clone(), globals.clone());
    globals.on_change(
        NAME,
        Box::new(move |_| {
            hook.store(true, Ordering::Relaxed);
            Ok(())
        }),
    );
    globals.on_default(NAME, Box::new(move || decides.set_at_start(NAME, "134217728").map(drop)));
    let set = |value| {
        let change = Change::check(NAME, Scope::Global, value).unwrap().persisting();
        globals.apply(change).unwrap();
        (
            given.swap(false, Ordering::Relaxed),
            globals.number(NAME),
            persisted::read(&directory).unwrap().len(),
        )
    };
    assert_eq!(set(Some(Value::UInt(64 << 20))), (true, 64 << 20, 1));
    assert_eq!(set(None), (false, 128 << 20, 0));
    std::fs::remove_dir_all(&directory).unwrap();
}

/// The engine's call behind a variable takes its time. Who sets it meanwhile must not be overtaken: nobody
/// can while the value is being acted upon, and it is the one that is shown.
#[test]
fn nobody_sets_a_variable_while_another_value_of_it_is_acted_upon() {
    let globals = Arc::new(GlobalVariables::default());
    let acted = Arc::new(AtomicBool::new(false));
    let (seen, inside) = (globals.clone(), acted.clone());
    globals.on_change(
        "innodb_doublewrite",
        Box::new(move |value| {
            assert!(seen.changing.try_lock().is_none(), "another one may set it now");
            assert_eq!(value.as_str(), Some(&*seen.text("innodb_doublewrite")));
            inside.store(true, Ordering::Relaxed);
            Ok(())
        }),
    );
    let mut session = globals.session();
    session.set(&globals, "innodb_doublewrite", Scope::Global, Some(Value::text("ON"))).unwrap();
    assert!(acted.load(Ordering::Relaxed));
    assert!(globals.changing.try_lock().is_some(), "and afterwards again");
}
