//! What the server is started with: command line, option file, and defaults that follow from the machine.
//!
//! Every system variable can be given at start, as mysqld takes it: `--name=value`, `--name value`, dashes or
//! underscores, sizes with K, M or G. Later settings win: machine defaults, then the option file, then the
//! command line. An unknown name is an error that names the nearest known one. The outcome is a
//! [`ServerOptions`]: typed settings for the engine and the listener, each with the reason for its value.

pub mod arguments;
pub mod file;
pub mod machine;
mod redo_log;
mod relied_on;
mod without_effect;

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use crate::server::runtime::{ListenOptions, RuntimeKind};
use crate::variables::table::{self, Effect, Kind, find, nearest_of};
use crate::variables::value::parse_size;
use crate::variables::{GlobalVariables, Value, persisted};
use arguments::{Arguments, Setting};
use redo_log::LogFiles;

/// Why the server cannot start with these settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionError(pub String);

impl fmt::Display for OptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for OptionError {}

/// mysqld options that ask for what is so here anyway, or are answered elsewhere.
const IGNORED: &[&str] = &["user", "console", "verbose"];

/// What variables are called at start in MySQL or MariaDB, and by no statement here.
const NAMES_AT_START: &[(&str, &str)] = &[
    ("default_time_zone", "time_zone"),
    ("log_slow_min_examined_row_limit", "min_examined_row_limit"),
    ("log_slow_query", "slow_query_log"),
    ("log_slow_query_file", "slow_query_log_file"),
    ("log_slow_query_time", "long_query_time"),
];

/// Everything decided before the database is opened.
pub struct ServerOptions {
    /// The data directory.
    pub datadir: PathBuf,
    /// Where to listen, with how many threads, by which runtime.
    pub listen: ListenOptions,
    /// Settings of the engine.
    pub database: untorn::Options,
    /// Decisions and reasons, one line each, for the start-up log.
    pub decisions: Vec<(&'static str, String)>,
    /// What was asked for and has no effect, one line each, for the log.
    pub warnings: Vec<String>,
    /// Whether clients are offered TLS.
    pub tls: bool,
    /// Where settings were given.
    pub origins: Origins,
    /// The file of slow statements that the command line or the option file names.
    pub slow_log: Option<PathBuf>,
    /// What is asked for, with reasons, and settled by the opening of the database.
    pub asked: Vec<(&'static str, String)>,
}

/// Names of variables, and where the value that holds was given.
#[derive(Clone, Debug, Default)]
pub struct Origins(BTreeMap<&'static str, String>);

impl Origins {
    /// Where that variable got its value; `None`: it has its default.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The same as the beginning of a message, which ends in `: `.
    pub fn before(&self, name: &str) -> String {
        self.get(name).map_or_else(String::new, |origin| format!("{origin}: "))
    }
}

/// What somebody gave a value.
#[derive(Default)]
struct Given {
    names: Origins,
    log_files: LogFiles,
    /// What is to be warned of, by the name of the setting: once each, of the last that was given.
    warnings: Vec<(String, String)>,
    /// What was asked for where the least value is more.
    raised: BTreeMap<&'static str, u64>,
    /// `--skip-ssl`, `--ssl=0`.
    without_tls: bool,
}

impl Given {
    fn contains(&self, name: &str) -> bool {
        self.names.get(name).is_some()
    }

    fn warn(&mut self, name: &str, warning: Option<String>) {
        self.warnings.retain(|(known, _)| known != name);
        self.warnings.extend(warning.map(|warning| (name.to_owned(), warning)));
    }
}

/// Reads arguments and option file into the variables.
pub fn load(arguments: &Arguments, variables: &GlobalVariables) -> Result<ServerOptions, OptionError> {
    let mut given = Given::default();
    let file::Contents { settings, groups_of_others } = read_files(arguments)?;
    for (origin, group) in groups_of_others {
        let why = "Untorn reads [mysqld], [server] and [untorn]";
        given.warn(&origin, Some(format!("{origin}: group [{group}] is not read; {why}")));
    }
    for setting in settings.iter().chain(&arguments.settings) {
        apply(setting, variables, &mut given)?;
    }
    let tier_file = variables.text("untorn_bpe_file");
    let slow_log =
        given.contains("slow_query_log_file").then(|| variables.text("slow_query_log_file").into());
    if variables.number("persisted_globals_load") == 1 {
        apply_persisted(variables, &mut given)
            .map_err(|OptionError(why)| OptionError(format!("{why}; {WITHOUT_PERSISTED}")))?;
    }
    warn_at_the_end(variables, &mut given);
    let options = ServerOptions { slow_log, ..decide(variables, &given)? };
    crate::extension::settle(variables, &tier_file).map_err(OptionError)?;
    Ok(options)
}

/// What the option files hold, in the order in which they are read.
fn read_files(arguments: &Arguments) -> Result<file::Contents, OptionError> {
    let mut all = file::Contents::default();
    for path in [&arguments.defaults_file, &arguments.defaults_extra_file].into_iter().flatten() {
        let contents = file::read(path)?;
        all.settings.extend(contents.settings);
        all.groups_of_others.extend(contents.groups_of_others);
    }
    Ok(all)
}

/// The text of `--print-defaults`: what the option files and the command line come to, as MySQL's programs
/// print it.
///
/// # Errors
/// What is wrong with an option file.
pub fn print_defaults(arguments: &Arguments) -> Result<String, OptionError> {
    let mut text = "untorn would have been started with the following arguments:\n".to_owned();
    for setting in read_files(arguments)?.settings.iter().chain(&arguments.settings) {
        let name = setting.name.strip_prefix("loose_").unwrap_or(&setting.name);
        let value = setting.value.as_deref().map(|value| match without_effect::is_secret(name) {
            true => "=*****".to_owned(),
            false => format!("={value}"),
        });
        text.push_str(&format!("--{}{} ", setting.name, value.unwrap_or_default()));
    }
    text.push('\n');
    Ok(text)
}

/// What has no effect because of other settings.
fn warn_at_the_end(variables: &GlobalVariables, given: &mut Given) {
    for (name, warning) in given.log_files.warnings(given.contains("innodb_redo_log_capacity")) {
        given.warn(name, Some(warning));
    }
    // With a directory SQL may name a file later.
    if variables.text("untorn_bpe_file").is_empty() && variables.text("untorn_bpe_dir").is_empty() {
        for name in ["untorn_bpe_size", "untorn_bpe_write_budget"] {
            let value = variables.value(name).show();
            let warning =
                given.names.get(name).filter(|_| value != "0").map(|origin| {
                    format!("{origin}: {name}={value} has no effect: no untorn_bpe_file is given")
                });
            if warning.is_some() {
                given.warn(name, warning);
            }
        }
    }
}

/// The way out where a value that was persisted stops the start.
pub(crate) const WITHOUT_PERSISTED: &str =
    "--persisted-globals-load=OFF starts without the values that SET PERSIST kept";

/// Values of SET PERSIST, which win over all others.
fn apply_persisted(variables: &GlobalVariables, given: &mut Given) -> Result<(), OptionError> {
    let datadir = absolute(Path::new(&variables.text("datadir")))?;
    let origin = persisted::path(&datadir).display().to_string();
    let values = persisted::read(&datadir).map_err(|error| OptionError(format!("{origin}: {error}")))?;
    for (name, value) in values {
        apply(&Setting { name, value: Some(value), origin: origin.clone() }, variables, given)?;
    }
    Ok(())
}

fn apply(setting: &Setting, variables: &GlobalVariables, given: &mut Given) -> Result<(), OptionError> {
    let name = setting.name.as_str();
    let (name, loose) = name.strip_prefix("loose_").map_or((name, false), |name| (name, true));
    if IGNORED.contains(&name) {
        let user = setting.value.as_deref().filter(|_| name == "user");
        let warning = user.and_then(|user| user_warning(user, nix::unistd::geteuid().is_root()));
        given.warn(name, warning);
        return Ok(());
    }
    if let Some(negated) = ssl_switch(name) {
        let on = match setting.value.as_deref().map(str::to_ascii_uppercase).as_deref() {
            None | Some("1" | "ON" | "TRUE") => true,
            Some("0" | "OFF" | "FALSE") => false,
            Some(other) => return Err(OptionError(format!("{}: --ssl={other}: ON or OFF", setting.origin))),
        };
        given.without_tls = on == negated;
        return Ok(());
    }
    if given.log_files.take(setting, name)? {
        return Ok(());
    }
    if let Some(refusal) = relied_on_here(setting, name).filter(|_| !loose) {
        return Err(OptionError(refusal));
    }
    let (index, negated) = variable(name);
    let Some(definition) = index.and_then(|index| table::DEFINITIONS.get(index)) else {
        return match without_effect::warning_of_other(setting, name) {
            Some(warning) => {
                given.warn(name, warning);
                Ok(())
            }
            // As mysqld does.
            None if loose => {
                let shown = without_effect::shown(setting);
                given.warn(name, Some(format!("{}: unknown option {shown} is passed over", setting.origin)));
                Ok(())
            }
            None => Err(unknown(setting)),
        };
    };
    let switch = matches!(definition.kind, Kind::Bool)
        || matches!(definition.kind, Kind::Enum(words) if words.contains(&"ON"));
    let text = match (&setting.value, negated) {
        (None, true) => "OFF",
        (None, false) if switch => "ON",
        (Some(value), false) => value,
        (None, false) => {
            return Err(OptionError(format!("{}: option --{name} needs a value", setting.origin)));
        }
        (Some(_), true) => {
            return Err(OptionError(format!("{}: option --{name} takes no value", setting.origin)));
        }
    };
    let (text, adjusted) = within_limits(setting, definition, text)?;
    let in_vain = match variables.set_at_start(definition.name, text) {
        Ok(warning) => warning.is_some(),
        // Servers that do what it says know more values than this one has a use for.
        Err(_) if !definition.effect.is_followed() => true,
        Err(error) => {
            let accepted = accepted(definition);
            return Err(OptionError(format!("{}: {}{accepted}", setting.origin, error.message)));
        }
    };
    note_raised(definition, text, given);
    given.names.0.insert(definition.name, setting.origin.clone());
    let stays = (definition.effect == Effect::Constant).then(|| variables.value(definition.name).show());
    let warning = || without_effect::warning(setting, definition.name, stays.as_deref());
    given.warn(definition.name, if in_vain { Some(warning()) } else { adjusted });
    Ok(())
}

/// Why a setting that has no effect stops the start.
fn relied_on_here(setting: &Setting, name: &str) -> Option<String> {
    let definition = |index: usize| table::DEFINITIONS.get(index);
    match variable(name) {
        (Some(_), true) => None,
        (Some(index), false) => {
            let definition = definition(index).filter(|definition| !definition.effect.is_followed())?;
            let off = setting.value.as_deref().is_some_and(without_effect::is_off);
            if off { None } else { relied_on::refusal(setting, definition.name) }
        }
        (None, _) => {
            let positive = without_effect::asked_for(setting, name)?;
            relied_on::refusal(setting, positive)
        }
    }
}

/// What a variable takes, to stand behind a refusal.
fn accepted(definition: &table::Definition) -> String {
    match definition.kind {
        Kind::UInt(..) => "; give a whole number, for sizes also with K, M or G".to_owned(),
        Kind::Int(..) | Kind::Double(..) => "; give a number".to_owned(),
        Kind::Bool => "; give ON or OFF".to_owned(),
        Kind::Enum(words) => format!("; give one of {}", words.join(", ")),
        Kind::TimeZone => {
            "; give SYSTEM, UTC or an offset such as +02:00 (zones with names are not known)".to_owned()
        }
        Kind::TimeNames => "; give a locale such as en_US, de_DE or fr_FR".to_owned(),
        Kind::SqlMode => {
            format!("; give modes with commas between them, of {}", sql::sql_mode::text(u64::MAX))
        }
        Kind::Charset(_) => "; give utf8mb4, utf8mb3, ascii or binary".to_owned(),
        Kind::Collation => "; `SHOW COLLATION` lists them".to_owned(),
        Kind::TrackedNames => "; give names of variables with commas between them, or *".to_owned(),
        Kind::Compressions => "; give some of zlib, zstd and uncompressed".to_owned(),
        Kind::Text(_) | Kind::Switches => String::new(),
    }
}

/// The value that is taken, and what is said if it is not the one given. A number beyond its limits is
/// brought within them, as in MySQL; where that would mean less safety or another thing than was asked for it
/// is refused.
fn within_limits<'t>(
    setting: &Setting,
    definition: &table::Definition,
    text: &'t str,
) -> Result<(&'t str, Option<String>), OptionError> {
    let number = parse_size(text);
    let (origin, name) = (&setting.origin, definition.name);
    let refused =
        |why: &str| Err(OptionError(format!("{origin}: --{}={text}: {why}", name.replace('_', "-"))));
    match (name, number) {
        ("port", Some(65_536..)) => refused("the greatest port is 65535"),
        ("innodb_page_size", Some(bytes)) => page_size(bytes).map(|_| (text, None)),
        ("innodb_force_recovery", Some(7..)) => refused("give a level of 0 to 6"),
        // In MariaDB it syncs more often on the way to the binary log. MySQL would make it 2, which is less
        // than was asked for.
        ("innodb_flush_log_at_trx_commit", Some(3)) => {
            let why = "there is no binary log, so that 1 is as durable";
            Ok(("1", Some(format!("{origin}: {name} adjusted from 3 to 1: {why}"))))
        }
        ("innodb_flush_log_at_trx_commit", Some(4..)) => refused("give 0, 1 or 2"),
        _ => {
            let to = adjusted(definition.kind, text).filter(|_| definition.effect.is_followed());
            Ok((text, to.map(|to| format!("{origin}: {name} adjusted from {text} to {to}"))))
        }
    }
}

/// What a number beyond its limits becomes.
fn adjusted(kind: Kind, text: &str) -> Option<String> {
    match kind {
        Kind::UInt(min, max) => {
            let number = parse_size(text)?;
            let within = number.clamp(min, max);
            (within != number).then(|| within.to_string())
        }
        Kind::Int(min, max) => {
            let number = text.parse::<i64>().ok()?;
            let within = number.clamp(min, max);
            (within != number).then(|| within.to_string())
        }
        Kind::Double(min, max) => {
            let number = text.parse::<f64>().ok()?;
            let within = number.clamp(min, max);
            (within != number && !number.is_nan()).then(|| within.to_string())
        }
        _ => None,
    }
}

/// Keeps what was asked for where the least value is more.
fn note_raised(definition: &table::Definition, text: &str, given: &mut Given) {
    let (Kind::UInt(min, _), Some(number)) = (definition.kind, parse_size(text)) else { return };
    if number < min {
        given.raised.insert(definition.name, number);
    } else {
        given.raised.remove(definition.name);
    }
}

/// That `--user` changes nothing, where somebody relies on it: for root.
fn user_warning(user: &str, is_root: bool) -> Option<String> {
    (is_root && !matches!(user, "root" | "0")).then(|| {
        format!(
            "--user={user} has no effect: the server goes on as root. Start it as that user, with su or by \
             systemd's User="
        )
    })
}

/// mysqld's switch of TLS has no variable: what came of it is in `have_ssl`. True: the name negates it.
fn ssl_switch(name: &str) -> Option<bool> {
    match name {
        "ssl" | "enable_ssl" => Some(false),
        "skip_ssl" | "disable_ssl" => Some(true),
        _ => None,
    }
}

/// The variable that an option sets, and whether the name negates it.
fn variable(name: &str) -> (Option<usize>, bool) {
    let known = NAMES_AT_START.iter().find(|(other, _)| *other == name);
    if let Some(index) = find(known.map_or(name, |(_, name)| *name)) {
        return (Some(index), false);
    }
    match name.strip_prefix("skip_").or_else(|| name.strip_prefix("disable_")) {
        Some(positive) => (find(positive), true),
        None => (name.strip_prefix("enable_").and_then(find), false),
    }
}

/// Whether there is no such option.
fn is_unknown(name: &str) -> bool {
    !name.starts_with("loose_")
        && !IGNORED.contains(&name)
        && ssl_switch(name).is_none()
        && variable(name).0.is_none()
        && !is_of_others(name)
}

/// Whether other servers have such an option, without effect here.
fn is_of_others(name: &str) -> bool {
    let setting = Setting { name: name.to_owned(), value: None, origin: String::new() };
    without_effect::warning_of_other(&setting, name).is_some()
}

/// mysqld's options that are not taken, and what to do instead.
const NOT_TAKEN: &[(&str, &str)] = &[
    ("initialize", "not needed: an empty directory becomes a data directory at the first start"),
    ("initialize_insecure", "not needed: an empty directory becomes a data directory at the first start"),
    (
        "skip_grant_tables",
        "the server never runs without accounts; --untorn-init-accounts recreates root@localhost when the \
         accounts file is lost",
    ),
    (
        "daemonize",
        "the server stays in the foreground; let systemd or the shell (`untorn … &`) run it behind",
    ),
];

fn unknown(setting: &Setting) -> OptionError {
    if let Some((name, instead)) = NOT_TAKEN.iter().find(|(name, _)| *name == setting.name) {
        return OptionError(format!("{}: option --{}: {instead}", setting.origin, name.replace('_', "-")));
    }
    let known = table::names().chain(NAMES_AT_START.iter().map(|(name, _)| *name));
    let hint = match nearest_of(&setting.name, known.chain(without_effect::names())) {
        Some(known) => format!("; did you mean --{}?", known.replace('_', "-")),
        None => "; `untorn --help` lists the options".to_owned(),
    };
    OptionError(format!("{}: unknown option --{}{hint}", setting.origin, setting.name.replace('_', "-")))
}

const MIB: u64 = 1 << 20;

fn decide(variables: &GlobalVariables, given: &Given) -> Result<ServerOptions, OptionError> {
    let mut decisions = Vec::new();
    let datadir = absolute(Path::new(&variables.text("datadir")))?;
    put(variables, "datadir", &format!("{}/", datadir.display()))?;
    settle_file_directory(variables, &datadir)?;
    let (pool, why) = decide_size(variables, given, "innodb_buffer_pool_size", machine::buffer_pool_bytes)?;
    decisions.push(("buffer pool", format!("{} MiB ({why})", pool / MIB)));
    let (redo, why) = decide_redo(variables, given, pool, &datadir)?;
    // A log that recovery is to read keeps the capacity it has until an orderly stop.
    let asked = vec![("redo log", format!("{} MiB ({why})", redo / MIB))];

    let (runtime, why) = RuntimeKind::choose();
    let threads = decide_threads(variables, given)?;
    let name = if runtime == RuntimeKind::Uring { "io_uring" } else { "epoll" };
    decisions.push(("connections", format!("{threads} threads over {name} ({why})")));
    let listen = listen_options(variables, given, &datadir, threads, runtime)?;

    let mut database = untorn::Options::new(&datadir).buffer_pool_bytes(pool).redo_capacity_bytes(redo);
    if !given.contains("innodb_redo_log_capacity") && given.log_files.capacity().is_none() {
        database.redo_capacity_default = Some(redo);
    }
    database.log_buffer_bytes = variables.number("innodb_log_buffer_size");
    database.lock_wait_timeout = Duration::from_secs(variables.number("innodb_lock_wait_timeout"));
    database.purge_threads = variables.number("innodb_purge_threads") as usize;
    database.direct_io = variables.text("innodb_flush_method").starts_with("O_DIRECT");
    database.io_uring = variables.number("innodb_use_native_aio") == 1;
    set_doublewrite(&mut database, variables)?;
    if given.contains("innodb_log_write_ahead_size") {
        // The log knows units of 512 and 4096 bytes; anything above 512 means the larger one.
        let bytes = variables.number("innodb_log_write_ahead_size");
        database.redo_block_bytes = Some(if bytes > 512 { 4096 } else { 512 });
    }
    if given.contains("innodb_page_size") {
        database.page_size = Some(page_size(variables.number("innodb_page_size"))?);
    }
    database.extension = crate::extension::options(variables);
    describe_the_machine(variables);
    let warnings = given.warnings.iter().map(|(_, warning)| warning.clone()).collect();
    let tls = !given.without_tls;
    let origins = given.names.clone();
    Ok(ServerOptions { datadir, listen, database, decisions, warnings, tls, origins, slow_log: None, asked })
}

fn set_doublewrite(database: &mut untorn::Options, variables: &GlobalVariables) -> Result<(), OptionError> {
    let mode = variables.text("innodb_doublewrite");
    database.doublewrite = mode.parse().map_err(|error| OptionError(format!("{error}")))?;
    let directory = variables.text("innodb_doublewrite_dir");
    database.doublewrite_dir = Some(PathBuf::from(directory)).filter(|path| !path.as_os_str().is_empty());
    // 0 asks for the default, as in MySQL.
    database.doublewrite_files = match variables.number("innodb_doublewrite_files") as usize {
        0 => database.doublewrite_files,
        files => files,
    };
    database.open_files = variables.number("innodb_open_files") as usize;
    database.doublewrite_pages = variables.number("innodb_doublewrite_pages") as usize;
    database.force_recovery = variables.number("innodb_force_recovery") as u8;
    Ok(())
}

/// `secure_file_priv` as the directory that it is, or NULL. It cannot be all of the machine, and the files of
/// the database are not reached by way of it.
fn settle_file_directory(variables: &GlobalVariables, datadir: &Path) -> Result<(), OptionError> {
    let name = "secure_file_priv";
    let Value::Text(text) = variables.value(name) else { return Ok(()) };
    if text.eq_ignore_ascii_case("NULL") {
        return put(variables, name, table::NULL);
    }
    let shown = |why: &dyn fmt::Display| OptionError(format!("secure-file-priv={text}: {why}"));
    if text.is_empty() {
        return Err(shown(&"name a directory; files anywhere are not served"));
    }
    let directory = std::fs::canonicalize(&*text).map_err(|error| shown(&error))?;
    if !directory.is_dir() {
        return Err(shown(&"it is not a directory"));
    }
    let data = settled(datadir).map_err(|error| shown(&error))?;
    if directory.parent().is_none() || directory.starts_with(&data) || data.starts_with(&directory) {
        return Err(shown(&"it must be neither / nor the data directory, nor above or inside that"));
    }
    put(variables, name, &format!("{}/", directory.display()))
}

/// Where a directory is, or will be once it is made: what is not there yet has no links.
fn settled(path: &Path) -> std::io::Result<PathBuf> {
    let mut settled = std::env::current_dir()?;
    for part in path.components() {
        match part {
            Component::ParentDir => {
                settled.pop();
            }
            part => settled.push(part),
        }
        settled = std::fs::canonicalize(&settled).unwrap_or(settled);
    }
    Ok(settled)
}

fn put(variables: &GlobalVariables, name: &str, text: &str) -> Result<(), OptionError> {
    variables.set_at_start(name, text).map(drop).map_err(|error| OptionError(error.message.into_owned()))
}

fn decide_size(
    variables: &GlobalVariables,
    given: &Given,
    name: &'static str,
    default: impl FnOnce() -> (u64, String),
) -> Result<(u64, String), OptionError> {
    if given.contains(name) {
        let why = match given.raised.get(name) {
            Some(asked) => format!("the minimum; raised from {}", size(*asked)),
            None => format!("set by {name}"),
        };
        return Ok((variables.number(name), why));
    }
    let (bytes, why) = default();
    put(variables, name, &bytes.to_string())?;
    Ok((bytes, why))
}

fn decide_redo(
    variables: &GlobalVariables,
    given: &Given,
    pool: u64,
    datadir: &Path,
) -> Result<(u64, String), OptionError> {
    const NAME: &str = "innodb_redo_log_capacity";
    let Some((asked, why)) = given.log_files.capacity().filter(|_| !given.contains(NAME)) else {
        return decide_size(variables, given, NAME, || machine::redo_capacity_bytes(pool, datadir));
    };
    put(variables, NAME, &asked.to_string())?;
    let capacity = variables.number(NAME);
    let beyond = if capacity == asked { "" } else { ", brought within the limits" };
    Ok((capacity, format!("{why}{beyond}")))
}

fn size(bytes: u64) -> String {
    if bytes.is_multiple_of(MIB) { format!("{} MiB", bytes / MIB) } else { format!("{bytes} bytes") }
}

fn decide_threads(variables: &GlobalVariables, given: &Given) -> Result<usize, OptionError> {
    if !given.contains("untorn_threads") {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        put(variables, "untorn_threads", &cores.to_string())?;
    }
    Ok(variables.number("untorn_threads") as usize)
}

fn page_size(bytes: u64) -> Result<u32, OptionError> {
    match bytes {
        4096 | 8192 | 16_384 | 32_768 | 65_536 => Ok(bytes as u32),
        _ => Err(OptionError(format!("innodb_page_size={bytes}: must be 4K, 8K, 16K, 32K or 64K"))),
    }
}

fn listen_options(
    variables: &GlobalVariables,
    given: &Given,
    datadir: &Path,
    threads: usize,
    runtime: RuntimeKind,
) -> Result<ListenOptions, OptionError> {
    if !given.contains("socket") {
        put(variables, "socket", &datadir.join("untorn.sock").display().to_string())?;
    }
    if !given.contains("pid_file") {
        put(variables, "pid_file", &datadir.join("untorn.pid").display().to_string())?;
    }
    let socket = Some(variables.text("socket")).filter(|path| !path.is_empty()).map(PathBuf::from);
    let networking = variables.value("skip_networking") != Value::Bool(true);
    let addresses = if networking { addresses(&variables.text("bind_address"))? } else { Vec::new() };
    let port = variables.number("port") as u16;
    Ok(ListenOptions { addresses, port, socket, threads, runtime })
}

fn addresses(text: &str) -> Result<Vec<IpAddr>, OptionError> {
    let mut addresses = Vec::new();
    for item in text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
        addresses.push(match item {
            "*" | "::" => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
            "localhost" => IpAddr::V4(Ipv4Addr::LOCALHOST),
            address => address.parse().map_err(|_| {
                OptionError(format!(
                    "bind-address={address}: give an IP address, `localhost`, or `*` for all"
                ))
            })?,
        });
    }
    // Without IPv6 in the kernel `*` means all of IPv4.
    if addresses.contains(&IpAddr::V6(Ipv6Addr::UNSPECIFIED))
        && std::net::TcpListener::bind("[::1]:0").is_err()
    {
        addresses.retain(|address| !address.is_ipv6());
        addresses.push(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    }
    Ok(addresses)
}

fn absolute(path: &Path) -> Result<PathBuf, OptionError> {
    let absolute = std::path::absolute(path);
    absolute.map_err(|error| OptionError(format!("datadir={}: {error}", path.display())))
}

fn describe_the_machine(variables: &GlobalVariables) {
    let hostname = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    if !hostname.trim().is_empty() {
        // Any text is a valid value.
        let _ = variables.set_at_start("hostname", hostname.trim());
    }
}

impl ServerOptions {
    /// Addresses other machines can reach.
    pub fn open_addresses(&self) -> Vec<IpAddr> {
        self.listen.addresses.iter().copied().filter(|address| !address.is_loopback()).collect()
    }
}

#[cfg(test)]
mod tests;
