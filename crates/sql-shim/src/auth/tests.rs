#![allow(clippy::unwrap_used, clippy::panic)]
use super::accounts::{Accounts, Identification};
use super::exchange::{Exchange, Step};
use super::*;

fn peer(local: bool, private: bool) -> Peer {
    let peer = if local { Peer::over_socket() } else { Peer::over_network([10, 0, 0, 9].into()) };
    Peer { private, ..peer }
}

fn accounts(plugin: &str) -> Accounts {
    let accounts = Accounts::default();
    let by = Identification {
        plugin: Some(plugin.into()),
        password: Some(b"secret".to_vec()),
        ..Identification::default()
    };
    accounts.create("app", "%", &by, false).unwrap();
    accounts.create("bare", "%", &Identification::default(), false).unwrap();
    accounts
}

fn run(step: Step, exchange: &mut Exchange, accounts: &Accounts) -> Step {
    match step {
        Step::Slow(work) => exchange.done(accounts, work.run()),
        other => other,
    }
}

fn accepted(step: &Step) -> bool {
    matches!(step, Step::Accept { .. })
}

#[test]
fn native_password_in_one_round_and_after_a_switch() {
    let accounts = accounts(native::PLUGIN);
    let salt = fresh_salt();
    for (password, right) in [(&b"secret"[..], true), (b"wrong", false)] {
        let response = native::scramble(password, &salt);
        let (_, step) = Exchange::begin(
            &accounts,
            &peer(false, false),
            salt,
            b"app",
            Some(native::PLUGIN.as_bytes()),
            Some(&response),
        );
        assert_eq!(accepted(&step), right);
    }
    let (mut exchange, step) = Exchange::begin(
        &accounts,
        &peer(false, false),
        salt,
        b"app",
        Some(DEFAULT_PLUGIN.as_bytes()),
        Some(b"x"),
    );
    let Step::Send(payload) = step else { panic!("expected a switch") };
    assert!(payload.starts_with(b"\xfemysql_native_password\0"));
    let fresh = payload.get(payload.len() - 21..payload.len() - 1).unwrap();
    assert_ne!(fresh, salt);
    assert!(accepted(&exchange.answer(&accounts, &native::scramble(b"secret", fresh))));
}

#[test]
fn sha2_full_over_the_socket_then_fast() {
    let accounts = accounts(sha2_password::PLUGIN);
    let begin = |password: &[u8]| {
        let salt = fresh_salt();
        let response = sha2_password::scramble(password, &salt);
        Exchange::begin(
            &accounts,
            &peer(true, true),
            salt,
            b"app",
            Some(DEFAULT_PLUGIN.as_bytes()),
            Some(&response),
        )
    };
    let (mut exchange, step) = begin(b"secret");
    assert!(matches!(step, Step::Send(payload) if payload == [1, 4]));
    let step = exchange.answer(&accounts, b"secret\0");
    assert!(accepted(&run(step, &mut exchange, &accounts)));
    let (_, step) = begin(b"secret");
    assert!(matches!(step, Step::Accept { before_ok: Some(payload), .. } if payload == [1, 3]));
    let (mut exchange, _) = begin(b"wrong");
    let step = exchange.answer(&accounts, b"wrong\0");
    assert!(!accepted(&run(step, &mut exchange, &accounts)));
}

#[test]
fn a_changed_password_is_not_remembered() {
    let accounts = accounts(sha2_password::PLUGIN);
    let account = accounts.find("app", &peer(true, true)).unwrap();
    accounts.remember(&account, [1; 32]);
    let by = Identification { password: Some(b"other".to_vec()), ..Identification::default() };
    let change =
        accounts::AccountChange { user: "app".into(), host: "%".into(), by: Some(by), ..Default::default() };
    accounts.alter_all(&[change], false, accounts::Authority::System).unwrap();
    let account = accounts.find("app", &peer(true, true)).unwrap();
    assert_eq!(accounts.remembered(&account), None);
}

/// The password is right as of the beginning; what became of the account since then decides.
#[test]
fn an_account_that_changed_during_the_exchange_is_not_let_in() {
    let here = peer(true, true);
    let name = || ("app".to_owned(), "%".to_owned());
    let alter = |accounts: &Accounts, by: Option<Identification>, locked: Option<bool>| {
        let change = accounts::AccountChange {
            user: "app".into(),
            host: "%".into(),
            by,
            locked,
            ..Default::default()
        };
        accounts.alter_all(&[change], false, accounts::Authority::System).unwrap();
    };
    let other = || Identification { password: Some(b"other".to_vec()), ..Identification::default() };
    type Change<'a> = &'a dyn Fn(&Accounts);
    let changes: [(Change<'_>, Option<u16>); 5] = [
        (&|_| {}, None),
        (&|accounts| alter(accounts, Some(other()), None), Some(1045)),
        (&|accounts| alter(accounts, None, Some(true)), Some(3118)),
        (
            &|accounts| {
                accounts.drop_all(&[name()], false, accounts::Authority::System).unwrap();
            },
            Some(1045),
        ),
        // A more specific account answers to this client now.
        (&|accounts| accounts.create("app", "localhost", &other(), false).unwrap(), Some(1045)),
    ];
    for (case, (change, refused)) in changes.into_iter().enumerate() {
        // The native method: between the switch and its answer.
        let native = accounts(native::PLUGIN);
        let (mut exchange, _) = Exchange::begin(&native, &here, fresh_salt(), b"app", None, None);
        let response = native::scramble(b"secret", &exchange.salt);
        change(&native);
        let step = exchange.answer(&native, &response);
        assert_eq!(denied(&step), refused, "native, case {case}");

        // The default method: while the password is hashed.
        let sha2 = accounts(sha2_password::PLUGIN);
        let plugin = Some(DEFAULT_PLUGIN.as_bytes());
        let (mut exchange, _) = Exchange::begin(&sha2, &here, fresh_salt(), b"app", plugin, Some(&[1; 32]));
        let Step::Slow(work) = exchange.answer(&sha2, b"secret\0") else { panic!("expected work") };
        let outcome = work.run();
        change(&sha2);
        let step = exchange.done(&sha2, outcome);
        assert_eq!(denied(&step), refused, "sha2, case {case}");
    }
}

fn denied(step: &Step) -> Option<u16> {
    match step {
        Step::Deny(error) => Some(error.code),
        step => (!accepted(step)).then_some(0),
    }
}

#[test]
fn over_tcp_the_password_travels_encrypted_only() {
    let accounts = accounts(sha2_password::PLUGIN);
    let salt = fresh_salt();
    let begin = || {
        Exchange::begin(
            &accounts,
            &peer(false, false),
            salt,
            b"app",
            Some(DEFAULT_PLUGIN.as_bytes()),
            Some(&[1; 32]),
        )
    };
    let (mut exchange, _) = begin();
    let step = exchange.answer(&accounts, b"secret\0");
    assert!(!accepted(&run(step, &mut exchange, &accounts)), "a clear password over TCP is refused");

    let (mut exchange, _) = begin();
    let step = exchange.answer(&accounts, &[2]);
    let Step::Send(payload) = run(step, &mut exchange, &accounts) else { panic!("expected the key") };
    let pem = std::str::from_utf8(payload.get(1..).unwrap()).unwrap();
    let key = <rsa::RsaPublicKey as rsa::pkcs8::DecodePublicKey>::from_public_key_pem(pem).unwrap();
    let masked: Vec<u8> =
        b"secret\0".iter().zip(salt.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect();
    let encrypted = key.encrypt(&mut OsRng, rsa::Oaep::new::<sha1::Sha1>(), &masked).unwrap();
    let step = exchange.answer(&accounts, &encrypted);
    assert!(accepted(&run(step, &mut exchange, &accounts)));
}

#[test]
fn under_tls_the_password_travels_as_it_is() {
    let accounts = accounts(sha2_password::PLUGIN);
    // 256 bytes with its NUL are as many as an encrypted password has.
    let long = vec![b'x'; 255];
    let by = Identification { password: Some(long.clone()), ..Identification::default() };
    accounts.create("long", "%", &by, false).unwrap();
    let far = Peer { security: Security::Encrypted, ..peer(false, false) };
    for (user, password) in [(&b"app"[..], &b"secret"[..]), (b"long", &long)] {
        let plugin = Some(DEFAULT_PLUGIN.as_bytes());
        let begun = Exchange::begin(&accounts, &far, fresh_salt(), user, plugin, Some(&[1; 32]));
        let (mut exchange, _) = begun;
        let step = exchange.answer(&accounts, &[password, b"\0"].concat());
        assert!(accepted(&run(step, &mut exchange, &accounts)));
    }
}

#[test]
fn unknown_users_go_through_the_same_exchange() {
    let accounts = accounts(sha2_password::PLUGIN);
    let shape = |user: &[u8]| {
        let (mut exchange, first) = Exchange::begin(
            &accounts,
            &peer(true, true),
            fresh_salt(),
            user,
            Some(DEFAULT_PLUGIN.as_bytes()),
            Some(&[1; 32]),
        );
        let Step::Send(first) = first else { panic!("expected to go on") };
        let step = exchange.answer(&accounts, b"guess\0");
        let Step::Deny(error) = run(step, &mut exchange, &accounts) else { panic!("expected a refusal") };
        (first, error.code)
    };
    assert_eq!(shape(b"app"), shape(b"nobody at all"));
}

#[test]
fn a_password_for_an_account_without_one_is_a_wrong_one_like_any_other() {
    let mut shapes = Vec::new();
    for (plugin, user) in [(sha2_password::PLUGIN, &b"bare"[..]), (sha2_password::PLUGIN, b"app")] {
        let accounts = accounts(plugin);
        let (mut exchange, first) = Exchange::begin(
            &accounts,
            &peer(true, true),
            fresh_salt(),
            user,
            Some(DEFAULT_PLUGIN.as_bytes()),
            Some(&[1; 32]),
        );
        let Step::Send(first) = first else { panic!("an answer that only accounts without a password give") };
        let step = exchange.answer(&accounts, b"guess\0");
        assert!(matches!(run(step, &mut exchange, &accounts), Step::Deny(_)));
        shapes.push(first);
    }
    assert_eq!(shapes[0], shapes[1]);
}

#[test]
fn methods_do_not_tell_who_exists() {
    let accounts = accounts(native::PLUGIN);
    let shown: std::collections::HashSet<&str> =
        (0..200).map(|number| accounts.plugin_of_nobody(&format!("user{number}"))).collect();
    assert_eq!(shown.len(), 2, "the accounts have both methods, so must those who do not exist");
    assert_eq!(accounts.plugin_of_nobody("x"), accounts.plugin_of_nobody("x"));
}

#[test]
fn without_a_password_over_the_socket_only() {
    let accounts = accounts(native::PLUGIN);
    let accepted_from = |peer: &Peer| {
        let plugin = Some(DEFAULT_PLUGIN.as_bytes());
        accepted(&Exchange::begin(&accounts, peer, fresh_salt(), b"bare", plugin, Some(b"")).1)
    };
    let loopback = Peer::over_network([127, 0, 0, 1].into());
    assert!(accepted_from(&loopback) && accepted_from(&Peer::over_socket()));
    accounts.set_socket_only_without_password(true);
    assert!(!accepted_from(&loopback) && accepted_from(&Peer::over_socket()));
}

#[test]
fn an_empty_password_serves_this_machine_only() {
    let accounts = accounts(sha2_password::PLUGIN);
    for (local, right) in [(true, true), (false, false)] {
        for plugin in [DEFAULT_PLUGIN, native::PLUGIN] {
            let (mut exchange, step) = Exchange::begin(
                &accounts,
                &peer(local, local),
                fresh_salt(),
                b"bare",
                Some(plugin.as_bytes()),
                Some(b""),
            );
            let step = match step {
                Step::Send(_) => exchange.answer(&accounts, &[0]),
                other => other,
            };
            assert_eq!(accepted(&step), right);
        }
    }
}

/// A directory with a file of accounts.
fn directory_with(name: &str, file: &str) -> std::path::PathBuf {
    let directory = std::env::temp_dir().join(format!("untorn-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join(accounts::FILE_NAME), file).unwrap();
    directory
}

/// A start reads the accounts before it has the directory's lock, and another server may have it.
#[test]
fn a_file_of_an_older_version_is_written_when_that_is_asked_for_only() {
    let text = r#"{"version":5,"accounts":[{"user":"r","host":"%","plugin":"caching_sha2_password",
        "authentication_string":"","expired":true,"grants":[]}]}"#;
    let directory = directory_with("older", text);
    let file = || std::fs::read_to_string(directory.join(accounts::FILE_NAME)).unwrap();
    for upgraded in [false, true] {
        let accounts = Accounts::open(&directory).unwrap();
        // A role of then, which somebody has unlocked: nobody gets in.
        let plugin = Some(DEFAULT_PLUGIN.as_bytes());
        let here = Peer::over_socket();
        let (_, step) = Exchange::begin(&accounts, &here, fresh_salt(), b"r", plugin, Some(b""));
        assert_eq!(denied(&step), Some(1862), "{upgraded}");
        assert_eq!(file() == text, !upgraded);
        accounts.upgrade_file().unwrap();
        assert!(file().contains("\"version\": 6"));
    }
    // A file of this version is left alone.
    let bare = file().replace(' ', "");
    std::fs::write(directory.join(accounts::FILE_NAME), &bare).unwrap();
    Accounts::open(&directory).unwrap().upgrade_file().unwrap();
    assert_eq!(file(), bare);
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn limits_count_from_the_opening_on() {
    let file = |limits: &str| {
        format!(
            r#"{{"version":6,"accounts":[{{"user":"u","host":"%","plugin":"x","authentication_string":"",
            "limits":{{{limits}}},"grants":[]}}]}}"#
        )
    };
    for (limits, counted) in
        [(r#""queries":5"#, true), (r#""updates":1"#, true), (r#""connections":1"#, false)]
    {
        let directory = directory_with("limits", &file(limits));
        let accounts = Accounts::open(&directory).unwrap();
        assert_eq!(accounts.limit_statements(), counted, "{limits}");
        std::fs::remove_dir_all(&directory).unwrap();
    }
}

/// Each exchange with a wrong password counts once, whichever of its steps shows that it is wrong, and
/// also if the client goes when it hears.
#[test]
fn failed_logins_count_under_caching_sha2_password() {
    let accounts = accounts(sha2_password::PLUGIN);
    let password =
        sql::ast::PasswordOptions { failed_attempts: Some(3), lock_days: Some(1), ..Default::default() };
    let (user, host) = ("app".to_owned(), "%".to_owned());
    let change = accounts::AccountChange { user, host, password, ..Default::default() };
    let begin = |password: &[u8]| {
        let salt = fresh_salt();
        let response = sha2_password::scramble(password, &salt);
        let plugin = Some(DEFAULT_PLUGIN.as_bytes());
        Exchange::begin(&accounts, &Peer::over_socket(), salt, b"app", plugin, Some(&response))
    };
    // Whole exchanges, by the long way as long as the account is not blocked: `None` for one that is let in.
    let long = |password: &[u8]| {
        let (mut exchange, mut step) = begin(password);
        if matches!(step, Step::Send(_)) {
            step = exchange.answer(&accounts, &[password, b"\0"].concat());
        }
        denied(&run(step, &mut exchange, &accounts))
    };
    let unblock =
        || accounts.alter_all(std::slice::from_ref(&change), false, accounts::Authority::System).unwrap();
    unblock();
    assert_eq!([long(b"x"), long(b"x"), long(b"x"), long(b"secret")], [1045, 1045, 3955, 3955].map(Some));
    unblock();
    assert_eq!(long(b"secret"), None);
    // From now on the short way says what is wrong.
    for _ in 0..2 {
        let (mut exchange, step) = begin(b"x");
        assert!(matches!(step, Step::Send(_)));
        exchange.abandoned(&accounts);
    }
    assert_eq!(long(b"x"), Some(3955));
    let (_, step) = begin(b"secret");
    assert_eq!(denied(&step), Some(3955));
}
