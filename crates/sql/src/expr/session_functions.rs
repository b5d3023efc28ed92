//! Functions that read the context: the clock, names, counters.
//!
//! The clock is read once in a statement (`now_utc` of [`crate::context`]): so NOW() is the same for all
//! rows.

use super::super::value::{Value, temporal};
use super::functions::{Function, TextOf, function};
use super::types::Type;
use super::{Context, Evaluated};
use crate::errors;
use crate::result::kind;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};
use untorn::types::{Charset, Collation};

fn now<'a>(values: &[Value<'a>], cx: &Context<'a>, utc: bool) -> Evaluated<'a> {
    let digits = values.first().map_or(0, Value::to_i64).clamp(0, 6) as u8;
    let mut moment = if utc { cx.state.now_utc() } else { cx.state.now_local() };
    let unit = 10u32.pow(6 - u32::from(digits));
    moment.micros = moment.micros / unit * unit;
    Ok(Value::DateTime(moment, digits))
}

fn time_now<'a>(values: &[Value<'a>], cx: &Context<'a>, utc: bool) -> Evaluated<'a> {
    Ok(match now(values, cx, utc)? {
        Value::DateTime(moment, digits) => Value::Time(temporal::time_of_day(moment), digits),
        other => other,
    })
}

fn user<'a>(cx: &Context<'a>, account: bool) -> Evaluated<'a> {
    let client = cx.state.facts.client();
    let host = if account { &*client.account_host } else { &*client.host };
    Ok(Value::text(format!("{}@{host}", client.user)))
}

fn roles<'a>(cx: &Context<'a>) -> Evaluated<'a> {
    let shown: Vec<String> = cx.state.facts.active_roles().iter().map(ToString::to_string).collect();
    Ok(Value::text(if shown.is_empty() { "NONE".to_owned() } else { shown.join(",") }))
}

fn database<'a>(cx: &Context<'a>) -> Evaluated<'a> {
    Ok(cx.state.current_database().map_or(Value::Null, |name| Value::text(name.to_string())))
}

fn uuid(cx: &Context<'_>) -> String {
    let (high, low) = (cx.state.random(), cx.state.random());
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        high >> 16 & 0xffff,
        (high & 0x0fff) | 0x1000,
        (low >> 48 & 0x3fff) | 0x8000,
        low & 0xffff_ffff_ffff
    )
}

/// The next number of this server: 1, which `server_id` is, in the highest byte, then the second of the first
/// call, then a counter.
fn uuid_short() -> u64 {
    static NEXT: OnceLock<AtomicU64> = OnceLock::new();
    let next = NEXT.get_or_init(|| {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        AtomicU64::new((since_epoch & 0xffff_ffff) << 24)
    });
    1 << 56 | next.fetch_add(1, Relaxed) & 0x00ff_ffff_ffff_ffff
}

macro_rules! volatile {
    ($name:literal, $least:literal..=$most:literal, $result:expr, $eval:expr) => {
        Function { volatile: true, ..function!($name, $least..=$most, $result, $eval) }
    };
}

fn fraction(types: &[Type]) -> u8 {
    if types.is_empty() { 0 } else { 6 }
}

/// Whether the value of this (upper-case) function depends on who calls it, and when. CHARSET and COLLATION
/// stand here for their company only.
pub fn is_of_session(name: &str) -> bool {
    !["CHARSET", "COLLATION"].contains(&name) && FUNCTIONS.iter().any(|function| function.name == name)
}

/// The table.
pub static FUNCTIONS: &[Function] = &[
    function!("NOW", 0..=1, |t| Type::datetime(fraction(t)).not_null(), |v, cx| now(v, cx, false)),
    function!("CURRENT_TIMESTAMP", 0..=1, |t| Type::datetime(fraction(t)).not_null(), |v, cx| now(
        v, cx, false
    )),
    function!("LOCALTIME", 0..=1, |t| Type::datetime(fraction(t)).not_null(), |v, cx| now(v, cx, false)),
    function!("LOCALTIMESTAMP", 0..=1, |t| Type::datetime(fraction(t)).not_null(), |v, cx| now(v, cx, false)),
    function!("SYSDATE", 0..=1, |t| Type::datetime(fraction(t)).not_null(), |v, cx| now(v, cx, false)),
    function!("UTC_TIMESTAMP", 0..=1, |t| Type::datetime(fraction(t)).not_null(), |v, cx| now(v, cx, true)),
    function!("CURDATE", 0..=0, |_| Type::DATE.not_null(), |_, cx| Ok(Value::Date(
        cx.state.now_local().date
    ))),
    function!("CURRENT_DATE", 0..=0, |_| Type::DATE.not_null(), |_, cx| Ok(Value::Date(
        cx.state.now_local().date
    ))),
    function!("UTC_DATE", 0..=0, |_| Type::DATE.not_null(), |_, cx| Ok(Value::Date(cx.state.now_utc().date))),
    function!("CURTIME", 0..=1, |t| Type::time(fraction(t)).not_null(), |v, cx| time_now(v, cx, false)),
    function!("CURRENT_TIME", 0..=1, |t| Type::time(fraction(t)).not_null(), |v, cx| time_now(v, cx, false)),
    function!("UTC_TIME", 0..=1, |t| Type::time(fraction(t)).not_null(), |v, cx| time_now(v, cx, true)),
    function!("DATABASE", 0..=0, |_| Type::text(64), |_, cx| database(cx)),
    function!("SCHEMA", 0..=0, |_| Type::text(64), |_, cx| database(cx)),
    function!("USER", 0..=0, |_| Type::text(288), |_, cx| user(cx, false)),
    function!("SESSION_USER", 0..=0, |_| Type::text(288), |_, cx| user(cx, false)),
    function!("SYSTEM_USER", 0..=0, |_| Type::text(288), |_, cx| user(cx, false)),
    function!("CURRENT_USER", 0..=0, |_| Type::text(288), |_, cx| user(cx, true)),
    function!("CURRENT_ROLE", 0..=0, |_| Type::text(8192), |_, cx| roles(cx)),
    function!("CONNECTION_ID", 0..=0, |_| Type::UINT.not_null(), |_, cx| {
        Ok(Value::UInt(u64::from(cx.state.connection_id)))
    }),
    // Threads of the server are not numbered apart from its connections.
    function!("PS_CURRENT_THREAD_ID", 0..=0, |_| Type::UINT, |_, cx| {
        Ok(Value::UInt(u64::from(cx.state.connection_id)))
    }),
    volatile!("PS_THREAD_ID", 1..=1, |_| Type::UINT, |v, cx| {
        let wanted = v[0].to_integer();
        let mut known = cx.state.facts.processes();
        let known = !v[0].is_null() && known.any(|process| i128::from(process.id) == wanted);
        Ok(if known { Value::UInt(wanted as u64) } else { Value::Null })
    }),
    // Of the library whose patterns MySQL's server has; they are followed here.
    function!("ICU_VERSION", 0..=0, |_| Type::text(4).not_null(), |_, _| Ok(Value::text("78.3"))),
    // What rates passwords is a component that is not there: MySQL, too, answers 0 without it.
    function!("VALIDATE_PASSWORD_STRENGTH", 1..=1, |_| Type { kind: kind::LONG, ..Type::INT }, |v, _| {
        Ok(if v[0].is_null() { Value::Null } else { Value::Int(0) })
    }),
    function!("VERSION", 0..=0, |_| Type::text(60), |_, cx| cx.state.system_variable("version", None)),
    volatile!("LAST_INSERT_ID", 0..=1, |t| Type { nullable: !t.is_empty(), ..Type::UINT }, |v, cx| match v
        .first()
    {
        Some(value) => {
            let id = value.to_bits();
            cx.state.last_insert_id.set(id);
            cx.state.said_insert_id.set(Some(id));
            Ok(if value.is_null() { Value::Null } else { Value::UInt(id) })
        }
        None => Ok(Value::UInt(cx.state.last_insert_id.get())),
    }),
    volatile!("ROW_COUNT", 0..=0, |_| Type::INT.not_null(), |_, cx| Ok(Value::Int(cx.state.row_count.get()))),
    volatile!("FOUND_ROWS", 0..=0, |_| Type::INT.not_null(), |_, cx| Ok(Value::UInt(
        cx.state.found_rows.get()
    ))),
    volatile!("RAND", 0..=1, |_| Type::DOUBLE.not_null(), |_, cx| {
        let any = || (cx.state.random() >> 11) as f64 / (1u64 << 53) as f64;
        Ok(Value::Double(cx.state.seeded_numbers.next().unwrap_or_else(any)))
    }),
    volatile!("UUID", 0..=0, |_| Type::text(36).not_null(), |_, cx| Ok(Value::text(uuid(cx)))),
    volatile!("UUID_SHORT", 0..=0, |_| Type::UINT.not_null(), |_, _| Ok(Value::UInt(uuid_short()))),
    // The executor sleeps before it evaluates the row.
    volatile!("SLEEP", 1..=1, |_| Type::INT.not_null(), |v, cx| {
        if v[0].is_null() || v[0].to_double() < 0.0 {
            let error = errors::error(errors::WRONG_ARGUMENTS, &[&"sleep."]);
            if cx.state.is_strict() {
                return Err(error);
            }
            cx.state.warn(error);
        }
        Ok(Value::Int(i64::from(cx.state.was_sleep_cut())))
    }),
    // The executor waits for it before it evaluates the row of a SELECT without tables.
    volatile!("GET_LOCK", 2..=2, |_| Type::INT, |v, cx| Ok(Value::truth_value(cx.state.get_lock(&v[0])?))),
    volatile!("RELEASE_LOCK", 1..=1, |_| Type::INT, |v, cx| {
        Ok(cx.state.release_lock(&v[0])?.map_or(Value::Null, Value::truth_value))
    }),
    volatile!("RELEASE_ALL_LOCKS", 0..=0, |_| Type::UINT.not_null(), |_, cx| {
        Ok(Value::UInt(cx.state.release_all_locks()))
    }),
    volatile!("IS_FREE_LOCK", 1..=1, |_| Type::INT, |v, cx| {
        Ok(Value::truth_value(cx.state.lock_owner(&v[0])?.is_none()))
    }),
    volatile!("IS_USED_LOCK", 1..=1, |_| Type::UINT, |v, cx| {
        Ok(cx.state.lock_owner(&v[0])?.map_or(Value::Null, |owner| Value::UInt(u64::from(owner))))
    }),
    volatile!("BENCHMARK", 2..=2, |_| Type::INT, |v, _| {
        Ok(if v[0].is_null() || v[0].to_integer() < 0 { Value::Null } else { Value::Int(0) })
    }),
    function!("CHARSET", 1..=1, |_| Type::text(64), |v, _| {
        Ok(Value::text(match &v[0] {
            Value::Text(_, rule) => rule.charset().name(),
            Value::Json(_) => Charset::Utf8mb4.name(),
            _ => "binary",
        }))
    })
    .with_text_of(TextOf::Connection),
    // How much a collation is meant is known before there is a value ([`crate::expr::bind`]).
    function!("COERCIBILITY", 1..=1, |_| Type::INT.not_null(), |_, _| Ok(Value::Null)),
    function!("COLLATION", 1..=1, |_| Type::text(64), |v, _| {
        Ok(Value::text(match &v[0] {
            Value::Text(_, rule) => rule.name(),
            Value::Json(_) => Collation::Utf8mb4Bin.name(),
            _ => "binary",
        }))
    })
    .with_text_of(TextOf::Connection),
];
