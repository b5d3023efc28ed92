#![allow(clippy::unwrap_used)]
use super::*;

fn session() -> (GlobalVariables, SessionVariables) {
    let globals = GlobalVariables::default();
    let session = globals.session();
    (globals, session)
}

fn code(result: Result<(), SqlError>) -> u16 {
    result.map_or_else(|error| error.code, |()| 0)
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
    assert_eq!(session.settings().time_zone_offset_seconds, Some(19_800));
    let switch = Some(Value::text("semijoin=off"));
    session.set(&globals, "optimizer_switch", Scope::Session, switch).unwrap();
    session.set(&globals, "optimizer_switch", Scope::Session, Some(Value::text("mrr=off"))).unwrap();
    let Ok(Value::Text(switches)) = session.get(&globals, "optimizer_switch", Scope::Session) else {
        unreachable!()
    };
    assert!(
        switches.contains("semijoin=off")
            && switches.contains("mrr=off")
            && switches.contains("loosescan=on")
    );
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

/// All sources of the server but the table of variables, the lists of those without effect, and tests.
fn sources(directory: &std::path::Path, text: &mut String) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && name != "tests" {
            sources(&path, text);
        } else if name.ends_with(".rs") && !["table.rs", "without_effect.rs", "tests.rs"].contains(&&*name) {
            text.push_str(&std::fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn what_nobody_reads_is_listed_as_without_effect_and_nothing_else() {
    let mut text = String::new();
    sources(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut text);
    let words: std::collections::HashSet<&str> =
        text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).collect();
    let listed: Vec<&str> = without_effect::WITHOUT_EFFECT
        .iter()
        .chain(without_effect::QUIETLY_WITHOUT_EFFECT)
        .copied()
        .collect();
    for definition in DEFINITIONS.iter().filter(|definition| definition.dynamic) {
        let (read, listed) = (words.contains(definition.name), listed.contains(&definition.name));
        assert!(
            read != listed,
            "{}: read by the server: {read}, listed as without effect: {listed}",
            definition.name
        );
    }
    assert!(listed.iter().all(|name| DEFINITIONS.iter().any(|definition| definition.name == *name)));
}

/// Binary log, replication, full-text search, stored programs, statistics, performance schema, query cache: none exists.
#[test]
fn nothing_that_does_not_exist_is_on() {
    let absent = [
        "log_bin",
        "sql_log_bin",
        "log_replica_updates",
        "log_slave_updates",
        "gtid_mode",
        "event_scheduler",
        "automatic_sp_privileges",
        "innodb_ft_enable_stopword",
        "innodb_stats_auto_recalc",
        "innodb_stats_persistent",
        "innodb_adaptive_hash_index",
        "performance_schema",
        "general_log",
        "slow_query_log",
        "session_track_schema",
        "have_query_cache",
        "have_profiling",
        "have_geometry",
        "have_compress",
        "have_dynamic_loading",
    ];
    let globals = GlobalVariables::default();
    for name in absent {
        let Some(index) = find(name) else { continue };
        let value = globals.snapshot.read().get(index);
        let text = value.as_str().map_or_else(|| format!("{value:?}"), str::to_owned);
        assert!(
            !text.eq_ignore_ascii_case("ON")
                && !text.eq_ignore_ascii_case("YES")
                && value != Value::Bool(true),
            "{name} is {text}"
        );
    }
}
