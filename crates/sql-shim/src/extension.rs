//! The buffer pool extension as the server shows it: settings, SET GLOBAL, status rows. The view is
//! `information_schema.UNTORN_BPE`.
//!
//! The right to SET GLOBAL does not make a client the owner of the machine, so `untorn_bpe_file` leads SQL
//! only into the directories that the command line or the option file named: `untorn_bpe_dir` (several with
//! `;` between them), or where their `untorn_bpe_file` lies. Nowhere else, and in the data directory under
//! one name only. The tier itself checks that the file there is its own.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use sql::errors;
use sql::result::SqlError;
use untorn::asynchronous::Database;
use untorn::{ExtensionOptions, ExtensionRestart, ExtensionStatus};

use crate::server::shared::Server;
use crate::variables::GlobalVariables;

/// What the variables say at start.
pub fn options(variables: &GlobalVariables) -> ExtensionOptions {
    let restart = match variables.text("untorn_bpe_restart").as_str() {
        "discard" => ExtensionRestart::Discard,
        _ => ExtensionRestart::Keep,
    };
    ExtensionOptions {
        file: file(&variables.text("untorn_bpe_file")),
        size_bytes: variables.number("untorn_bpe_size"),
        enabled: variables.number("untorn_bpe") != 0,
        restart,
        write_budget: variables.number("untorn_bpe_write_budget"),
    }
}

fn file(text: &str) -> Option<PathBuf> {
    Some(text).filter(|text| !text.is_empty()).map(PathBuf::from)
}

/// The only name of a tier's file in the data directory.
pub const NAME_IN_DATADIR: &str = "untorn-buffer-pool-extension";

/// Where the file of the tier may lie.
#[derive(Clone, Debug)]
pub struct Place {
    datadir: PathBuf,
    /// Named at start; none: SQL may not move the tier.
    directories: Vec<PathBuf>,
}

impl Place {
    /// What the variables say.
    pub fn of(variables: &GlobalVariables) -> Place {
        let datadir = PathBuf::from(variables.text("datadir"));
        let named = variables.text("untorn_bpe_dir");
        let named = named.split(';').map(str::trim).filter(|name| !name.is_empty());
        let directories = named.map(|name| datadir.join(name)).collect();
        Place { datadir, directories }
    }

    /// Whether the file may be used at all: a regular file under one name, or none yet, and not among the
    /// tables. A directory that is not there (a disk that is not mounted) is found out by opening.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self, named: &Path) -> Result<(), String> {
        let named = self.datadir.join(named);
        let (Some(parent), Some(name)) = (named.parent(), named.file_name()) else {
            return Err("it names no file".into());
        };
        let parent = match fs::canonicalize(parent) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            parent => parent.map_err(|error| format!("{}: {error}", parent_of(&named).display()))?,
        };
        let datadir = fs::canonicalize(&self.datadir).unwrap_or_else(|_| self.datadir.clone());
        if parent.starts_with(&datadir) && (parent != datadir || name != NAME_IN_DATADIR) {
            return Err(format!("in the data directory it can only be {NAME_IN_DATADIR}"));
        }
        match fs::symlink_metadata(parent.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error.to_string()),
            Ok(metadata) if !metadata.is_file() => {
                Err("it is not a regular file (symbolic links are not followed)".into())
            }
            Ok(metadata) if metadata.nlink() > 1 => Err("the file has more than one name".into()),
            Ok(_) => Ok(()),
        }
    }

    /// [`check`](Self::check), and whether SQL may name it.
    ///
    /// # Errors
    /// Why not.
    fn check_from_sql(&self, named: &Path) -> Result<(), String> {
        if self.directories.is_empty() {
            return Err("no directory for it was given at startup (--untorn-bpe-dir)".into());
        }
        let named = self.datadir.join(named);
        let parent = fs::canonicalize(parent_of(&named)).map_err(|error| error.to_string())?;
        // One that is not there now has nothing to be moved to.
        if !self.directories.iter().flat_map(fs::canonicalize).any(|directory| directory == parent) {
            let shown: Vec<_> =
                self.directories.iter().map(|directory| directory.display().to_string()).collect();
            return Err(format!("it is outside untorn_bpe_dir ({})", shown.join("; ")));
        }
        self.check(&named)
    }
}

fn parent_of(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}

/// Checks what was given at start, and names the directory for SQL if that was not done. `given_file` is what
/// the command line and the option file say; another value was left by SET PERSIST.
///
/// # Errors
/// Why the server cannot start with it.
pub fn settle(variables: &GlobalVariables, given_file: &str) -> Result<(), String> {
    if variables.text("untorn_bpe_dir").is_empty() && !given_file.is_empty() {
        let directory = PathBuf::from(variables.text("datadir")).join(given_file);
        let directory = parent_of(&directory).display().to_string();
        variables.set_at_start("untorn_bpe_dir", &directory).map_err(|error| error.message.into_owned())?;
    }
    let now = variables.text("untorn_bpe_file");
    let Some(path) = file(&now) else { return Ok(()) };
    let place = Place::of(variables);
    let outcome = if now == given_file { place.check(&path) } else { place.check_from_sql(&path) };
    outcome.map_err(|why| format!("untorn_bpe_file={now}: {why}"))
}

/// Lets SET GLOBAL act on the tier. The work is done in the background, and what came of it is in
/// `Untorn_bpe_state`.
pub fn connect(server: &Server, database: &Database) {
    let on = |name: &str, act: fn(&Database, &crate::variables::Value)| {
        let database = database.clone();
        server.variables.on_change(
            name,
            Box::new(move |value| {
                act(&database, value);
                Ok(())
            }),
        );
    };
    on("untorn_bpe", |database, value| drop(database.switch_extension(value.as_u64() == Some(1))));
    let (place, moved) = (Place::of(&server.variables), database.clone());
    server.variables.on_change(
        "untorn_bpe_file",
        Box::new(move |value| {
            let text = value.as_str().unwrap_or_default();
            let file = file(text);
            if let Some(file) = &file {
                place.check_from_sql(file).map_err(|why| {
                    let said = "Variable 'untorn_bpe_file' can't be set to the value of";
                    SqlError::new(errors::WRONG_VALUE_FOR_VAR, b"42000", format!("{said} '{text}': {why}"))
                })?;
            }
            drop(moved.set_extension_file(file.as_deref()));
            Ok(())
        }),
    );
    on("untorn_bpe_size", |database, value| {
        drop(database.resize_extension(value.as_u64().unwrap_or_default()));
    });
    on("untorn_bpe_write_budget", |database, value| {
        database.set_extension_write_budget(value.as_u64().unwrap_or_default());
    });
    let database = database.clone();
    server.status.add_source(Box::new(move |rows| rows.extend(status_rows(&database.extension()))));
}

/// What is not a number among the status rows.
fn status_rows(status: &ExtensionStatus) -> Vec<(String, String)> {
    let estimate = &status.estimate;
    [
        ("Untorn_bpe_state", status.state.name().to_owned()),
        ("Untorn_bpe_drive_writes_per_day", format!("{:.3}", status.drive_writes_per_day)),
        ("Untorn_bpe_hit_ratio", format!("{:.4}", estimate.same)),
        ("Untorn_bpe_hit_ratio_half_size", format!("{:.4}", estimate.half)),
        ("Untorn_bpe_hit_ratio_twice_size", format!("{:.4}", estimate.twice)),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn sql_reaches_one_directory_and_no_file_of_somebody_else() {
        let root = std::env::temp_dir().join(format!("untorn-tier-place-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        for directory in ["data/shop", "fast/deeper", "elsewhere"] {
            fs::create_dir_all(root.join(directory)).unwrap();
        }
        fs::write(root.join("elsewhere/keys"), b"secret").unwrap();
        fs::write(root.join("data/shop/item.ibd"), b"rows").unwrap();
        std::os::unix::fs::symlink(root.join("elsewhere/keys"), root.join("fast/link")).unwrap();
        std::os::unix::fs::symlink(root.join("elsewhere"), root.join("fast/way")).unwrap();
        fs::hard_link(root.join("elsewhere/keys"), root.join("fast/hard")).unwrap();
        nix::sys::stat::mknod(
            &root.join("fast/pipe"),
            nix::sys::stat::SFlag::S_IFIFO,
            nix::sys::stat::Mode::S_IRWXU,
            0,
        )
        .unwrap();
        let variables = GlobalVariables::default();
        variables.set_at_start("datadir", root.join("data").to_str().unwrap()).unwrap();
        let given = root.join("fast/tier").display().to_string();
        variables.set_at_start("untorn_bpe_file", &given).unwrap();
        settle(&variables, &given).unwrap();
        let place = Place::of(&variables);
        let allowed = |name: &str| place.check_from_sql(Path::new(name)).is_ok();
        let at = |name: &str| root.join(name).display().to_string();
        assert!(allowed(&given) && allowed(&at("fast/other")) && allowed(&at("fast/../fast/other")));
        for refused in [
            "shop/item.ibd",
            "untorn-accounts.json",
            "../elsewhere/keys",
            "../fast/link",
            "../fast/way/keys",
            "../fast/hard",
            "../fast/pipe",
            "../fast/deeper",
            "../fast/deeper/tier",
            "/dev/null",
            "/",
            "..",
        ] {
            assert!(!allowed(refused), "{refused}");
        }
        // Named at start, the data directory has one name for it; and what SET PERSIST left is no name given
        // at start.
        assert!(place.check(Path::new(NAME_IN_DATADIR)).is_ok());
        assert!(place.check(Path::new("shop/item.ibd")).is_err());
        assert!(place.check(Path::new("/dev/null")).is_err());
        variables.set_at_start("untorn_bpe_file", &at("elsewhere/tier")).unwrap();
        assert!(settle(&variables, &given).is_err());
        // Nothing was named: SQL cannot name anything.
        let variables = GlobalVariables::default();
        variables.set_at_start("datadir", root.join("data").to_str().unwrap()).unwrap();
        settle(&variables, "").unwrap();
        assert!(Place::of(&variables).check_from_sql(Path::new(&at("fast/tier"))).is_err());
        fs::remove_dir_all(&root).unwrap();
    }
}
