//! The password exchange of a login, without I/O.
//!
//! [`Exchange`] is a state machine: packets of the client go in, [`Step`]s come out, the connection does the
//! sending. This file decides what a client must show: the fast answer of `caching_sha2_password` against a
//! remembered digest, else the password itself, in clear or encrypted with the server's RSA key; how each
//! method hashes is in [`super::sha2_password`] and [`super::native`]. An exchange lasts as long as the
//! client likes, so the account is looked up again before anybody is let in.
//!
//! Each wrong password is counted where the account is blocked after some ([`super::usage`]), once in an
//! exchange, and also where the client goes away when it has learnt that its fast answer was wrong.

use std::sync::OnceLock;

use rsa::pkcs8::{EncodePublicKey, LineEnding};
use rsa::rand_core::OsRng;
use rsa::{Oaep, RsaPrivateKey};
use sql::errors::{self, error};
use sql::result::SqlError;

use super::accounts::{Account, Accounts};
use super::password_rules::now_unix_s;
use super::{Identity, Peer, fresh_salt, native, sha2_password};
use crate::wire::handshake::{SALT_BYTES, auth_more, auth_switch};

/// What to do next.
pub enum Step {
    /// Send this payload and give the client's answer to [`Exchange::answer`].
    Send(Vec<u8>),
    /// Run this away from the connections' thread and give the outcome to [`Exchange::done`].
    Slow(SlowWork),
    /// Logged in; `before_ok` is sent ahead of the OK.
    Accept {
        /// Who.
        identity: Identity,
        /// The password has expired: nothing may be done but to set another.
        expired: bool,
        /// A payload that comes before the OK.
        before_ok: Option<Vec<u8>>,
    },
    /// Refused.
    Deny(SqlError),
}

/// Work of milliseconds.
pub enum SlowWork {
    /// Make sure the RSA key exists.
    PublicKey,
    /// Hash the password thousands of times and compare.
    Password {
        /// Stored form.
        stored: String,
        /// As the client sent it.
        password: Secret,
    },
}

/// A password or its encrypted form.
pub enum Secret {
    /// Clear and ended by NUL, from a private peer or under TLS.
    Clear(Vec<u8>),
    /// RSA-OAEP over the password XOR the salt.
    Encrypted(Vec<u8>, [u8; SALT_BYTES]),
}

/// Outcome of [`SlowWork`].
pub enum SlowDone {
    /// The public key in PEM.
    PublicKey(Result<String, SqlError>),
    /// The digest to remember when the password was right.
    Password(Option<sha2_password::Digest>),
}

impl SlowWork {
    /// Does the work.
    pub fn run(self) -> SlowDone {
        match self {
            SlowWork::PublicKey => SlowDone::PublicKey(public_key_pem()),
            SlowWork::Password { stored, password } => {
                let clear = match password {
                    Secret::Clear(bytes) => Some(bytes),
                    Secret::Encrypted(bytes, salt) => decrypt(&bytes, &salt),
                };
                SlowDone::Password(clear.and_then(|clear| sha2_password::verify_slow(&stored, &clear)))
            }
        }
    }
}

/// Bytes of a message encrypted with the server's key.
const RSA_BYTES: usize = 256;

fn server_key() -> Result<&'static RsaPrivateKey, SqlError> {
    static KEY: OnceLock<Option<RsaPrivateKey>> = OnceLock::new();
    KEY.get_or_init(|| RsaPrivateKey::new(&mut OsRng, RSA_BYTES * 8).ok())
        .as_ref()
        .ok_or_else(|| SqlError::new(1105, b"HY000", "The server could not make its RSA key"))
}

fn public_key_pem() -> Result<String, SqlError> {
    server_key()?
        .to_public_key()
        .to_public_key_pem(LineEnding::LF)
        .map_err(|_| SqlError::new(1105, b"HY000", "The server could not encode its RSA key"))
}

fn decrypt(bytes: &[u8], salt: &[u8; SALT_BYTES]) -> Option<Vec<u8>> {
    let key = server_key().ok()?;
    let mut clear = key.decrypt_blinded(&mut OsRng, Oaep::new::<sha1::Sha1>(), bytes).ok()?;
    for (byte, mask) in clear.iter_mut().zip(salt.iter().cycle()) {
        *byte ^= mask;
    }
    Some(clear)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Awaiting {
    Scramble,
    FullAuthentication,
    EncryptedPassword,
}

/// One authentication.
pub struct Exchange {
    peer: Peer,
    user: String,
    account: Option<Account>,
    /// The method in use; an unknown user's is one that an account has.
    plugin: &'static str,
    pub(super) salt: [u8; SALT_BYTES],
    awaiting: Awaiting,
    used_password: bool,
    /// The client was told that its password is wrong, and nobody has counted that yet.
    wrong: bool,
}

impl Exchange {
    /// Starts with what the client sent in its handshake response (or COM_CHANGE_USER): its method, if it
    /// named one, and the response made with `salt`. `None` for the response: nothing usable was sent.
    pub fn begin(
        accounts: &Accounts,
        peer: &Peer,
        salt: [u8; SALT_BYTES],
        user: &[u8],
        plugin: Option<&[u8]>,
        response: Option<&[u8]>,
    ) -> (Self, Step) {
        let user = String::from_utf8_lossy(user).into_owned();
        let account = accounts.find(&user, peer);
        let wanted = account.as_ref().map_or_else(|| accounts.plugin_of_nobody(&user), Account::plugin);
        let mut exchange = Self {
            peer: peer.clone(),
            user,
            account,
            plugin: wanted,
            salt,
            awaiting: Awaiting::Scramble,
            used_password: response.is_some_and(|bytes| !bytes.is_empty()),
            wrong: false,
        };
        // A client without PLUGIN_AUTH speaks the native method only.
        let named = plugin.unwrap_or(native::PLUGIN.as_bytes());
        let step = match response {
            Some(response) if named == wanted.as_bytes() => exchange.scramble(accounts, response),
            _ => {
                exchange.salt = fresh_salt();
                Step::Send(auth_switch(wanted, &exchange.salt))
            }
        };
        (exchange, step)
    }

    /// The client's answer to [`Step::Send`].
    pub fn answer(&mut self, accounts: &Accounts, payload: &[u8]) -> Step {
        match self.awaiting {
            Awaiting::Scramble => self.scramble(accounts, payload),
            // Under TLS a password comes in clear and by no other way.
            Awaiting::FullAuthentication if !self.peer.security.is_none() => {
                self.check_slowly(Secret::Clear(payload.to_vec()))
            }
            Awaiting::FullAuthentication if payload == [2] => Step::Slow(SlowWork::PublicKey),
            Awaiting::FullAuthentication if self.peer.private && payload.len() != RSA_BYTES => {
                self.check_slowly(Secret::Clear(payload.to_vec()))
            }
            Awaiting::FullAuthentication | Awaiting::EncryptedPassword => {
                self.check_slowly(Secret::Encrypted(payload.to_vec(), self.salt))
            }
        }
    }

    /// The outcome of [`Step::Slow`].
    pub fn done(&mut self, accounts: &Accounts, outcome: SlowDone) -> Step {
        match outcome {
            SlowDone::PublicKey(Ok(pem)) => {
                self.awaiting = Awaiting::EncryptedPassword;
                Step::Send(auth_more(pem.as_bytes()))
            }
            SlowDone::PublicKey(Err(error)) => Step::Deny(error),
            SlowDone::Password(Some(digest)) => match self.still_the_same(accounts) {
                Some(account) => {
                    accounts.remember(&account, digest);
                    self.accept(accounts, None)
                }
                None => self.deny(),
            },
            SlowDone::Password(None) => self.wrong_password(accounts),
        }
    }

    /// The client went away in the middle.
    pub fn abandoned(&mut self, accounts: &Accounts) {
        if self.wrong {
            self.wrong_password(accounts);
        }
    }

    fn scramble(&mut self, accounts: &Accounts, response: &[u8]) -> Step {
        let empty = response.is_empty() || response == [0];
        self.used_password = !empty;
        let stored = self.account.as_ref().map(|account| account.authentication_string.clone());
        let has_password = stored.as_deref() != Some("");
        if empty {
            let open = !has_password && self.may_be_without_password(accounts);
            return if open { self.accept(accounts, None) } else { self.wrong_password(accounts) };
        }
        // A password for an account that has none goes the long way like a wrong one, so that nobody learns
        // of it.
        if self.plugin == native::PLUGIN {
            let right =
                has_password && stored.is_some_and(|stored| native::verify(&stored, &self.salt, response));
            return if right { self.accept(accounts, None) } else { self.wrong_password(accounts) };
        }
        let remembered = self.account.as_ref().and_then(|account| accounts.remembered(account));
        if remembered.is_some_and(|digest| sha2_password::verify_fast(&digest, &self.salt, response)) {
            return self.accept(accounts, Some(auth_more(&[sha2_password::FAST_OK])));
        }
        self.wrong = remembered.is_some();
        self.awaiting = Awaiting::FullAuthentication;
        Step::Send(auth_more(&[sha2_password::FULL_AUTHENTICATION]))
    }

    /// An account without a password serves this machine only: its local socket, and the loopback interface
    /// unless that is switched off.
    fn may_be_without_password(&self, accounts: &Accounts) -> bool {
        self.peer.local && (self.peer.address.is_none() || !accounts.socket_only_without_password())
    }

    fn check_slowly(&self, password: Secret) -> Step {
        let stored = match &self.account {
            Some(account) if !account.authentication_string.is_empty() => {
                account.authentication_string.clone()
            }
            _ => sha2_password::nobody().to_owned(),
        };
        Step::Slow(SlowWork::Password { stored, password })
    }

    /// The account as it is now, if the client has shown the password that is valid now. An exchange lasts as
    /// long as the client likes, up to `connect_timeout`, and the account may be dropped, locked or altered
    /// meanwhile.
    fn still_the_same(&self, accounts: &Accounts) -> Option<Account> {
        let shown = self.account.as_ref()?;
        let now = accounts.find(&self.user, &self.peer)?;
        let same = now.user == shown.user
            && now.host == shown.host
            && now.plugin() == shown.plugin()
            && now.authentication_string == shown.authentication_string;
        same.then_some(now)
    }

    fn accept(&self, accounts: &Accounts, before_ok: Option<Vec<u8>>) -> Step {
        match self.still_the_same(accounts) {
            // As if there were no such account.
            Some(account) if self.peer.security < account.requires => self.deny(),
            Some(account) => self.accept_account(accounts, account, before_ok),
            None => self.deny(),
        }
    }

    /// What is said here is for those who know the password, but that the account is blocked.
    fn accept_account(&self, accounts: &Accounts, account: Account, before_ok: Option<Vec<u8>>) -> Step {
        let now = now_unix_s();
        if let Some(blocked) = accounts.login_succeeded(&account, &self.peer.host, now) {
            return Step::Deny(blocked);
        }
        if account.locked {
            return Step::Deny(error(errors::ACCOUNT_HAS_BEEN_LOCKED, &[&account.user, &self.peer.host]));
        }
        // A role that was unlocked is not for who comes first.
        if account.closed {
            return Step::Deny(error(errors::MUST_CHANGE_PASSWORD_LOGIN, &[]));
        }
        let expired = account.has_expired(&accounts.defaults, now);
        let identity = Identity { user: account.user, account_host: account.host };
        Step::Accept { identity, expired, before_ok }
    }

    fn wrong_password(&mut self, accounts: &Accounts) -> Step {
        self.wrong = false;
        let counted = self.account.as_ref();
        let blocked =
            counted.and_then(|account| accounts.login_failed(account, &self.peer.host, now_unix_s()));
        blocked.map_or_else(|| self.deny(), Step::Deny)
    }

    fn deny(&self) -> Step {
        Step::Deny(access_denied(&self.user, &self.peer.host, self.used_password))
    }
}

/// Error 1045.
fn access_denied(user: &str, host: &str, used_password: bool) -> SqlError {
    let answer = if used_password { "YES" } else { "NO" };
    let user: String = user.chars().take(32).collect();
    SqlError::new(
        1045,
        b"28000",
        format!("Access denied for user '{user}'@'{host}' (using password: {answer})"),
    )
}
