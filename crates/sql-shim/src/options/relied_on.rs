//! Settings without effect here that somebody relies on: a server that went on without them would write where
//! it was told not to, leave plain what was to be encrypted, or let in whom it was to keep out. They stop the
//! start. `loose_` says that they are not relied on: then there is a warning.

use super::arguments::Setting;
use super::without_effect::{is_named, shown};

/// Why not, the names, and what to do.
type Group = (&'static str, &'static str, &'static str);

const GROUPS: &[Group] = &[
    (
        "changes are not refused for all accounts",
        "read_only super_read_only innodb_read_only",
        "revoke from the accounts what they must not do (transaction_read_only=ON acts, but sessions may undo it)",
    ),
    (
        "accounts are not kept out",
        "offline_mode",
        "give skip_networking, or lock the accounts (ALTER USER … ACCOUNT LOCK)",
    ),
    (
        "nothing is encrypted at rest",
        "default_table_encryption innodb_encrypt_tables innodb_encrypt_log innodb_encrypt_temporary_tables \
         innodb_redo_log_encrypt innodb_undo_log_encrypt keyring_*",
        "put the data directory on an encrypted file system",
    ),
    ("there are no plugins", "early_plugin_load", "leave it out"),
    (
        "certificates are not looked up in lists of revoked ones",
        "ssl_crl ssl_crlpath",
        "lock the accounts whose certificates are revoked, or have the others signed by another ssl_ca",
    ),
    (
        "authorities are read from one file",
        "ssl_capath",
        "put the certificates into one file, and name it ssl_ca",
    ),
    (
        "the cipher suites are fixed: those of TLS 1.3 and those of 1.2 with forward secrecy and AEAD",
        "ssl_cipher tls_ciphersuites",
        "leave it out; tls_version chooses the versions",
    ),
    ("the cryptography has no FIPS mode", "ssl_fips_mode", "leave it out"),
    (
        "the root directory stays",
        "chroot",
        "start the server in a container, or with systemd's RootDirectory",
    ),
    ("no statements are run at start", "init_file", "run them with a client once the server is ready"),
];

/// Why a setting of these has no effect.
pub fn why(name: &str) -> Option<&'static str> {
    GROUPS.iter().find(|(_, names, _)| is_named(names, name)).map(|(why, ..)| *why)
}

/// What stops the start, of a setting of that name (without `skip_` and the like) that is `on`.
pub fn refusal(setting: &Setting, name: &str) -> Option<String> {
    let value = setting.value.as_deref().unwrap_or_default();
    let forced = ["FORCE", "FORCE_PLUS_PERMANENT"].iter().any(|word| value.eq_ignore_ascii_case(word));
    let group = GROUPS.iter().find(|(_, names, _)| is_named(names, name));
    let (why, way_out) = match group {
        Some((why, _, way_out)) => (*why, *way_out),
        None if forced => ("there are no plugins", "leave it out"),
        None => return None,
    };
    Some(format!(
        "{}: {}: {why}, and the server does not start with it as if it had an effect; {way_out}, or give \
         loose_{name} if nobody relies on it",
        setting.origin,
        shown(setting),
    ))
}
