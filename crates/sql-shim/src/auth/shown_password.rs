//! A login with the password itself, as HTTP's Basic authentication has it.
//!
//! It goes through the same [`Exchange`] as a login over MySQL's protocol, played for both sides: so an
//! account that is locked, that wants TLS or that has another method is treated alike.

use super::accounts::{Account, Accounts};
use super::exchange::{Exchange, Step};
use super::{Identity, Peer, fresh_salt, native, sha2_password};

/// Who that is; `None` for nobody. Milliseconds of work, unless the password was shown before. An account
/// without a password is nobody's here.
pub fn log_in(accounts: &Accounts, peer: &Peer, user: &str, password: &str) -> Option<Identity> {
    if password.is_empty() {
        return None;
    }
    // The password has come already: between the two sides played here nobody listens in.
    let peer = Peer { private: true, ..peer.clone() };
    let account = accounts.find(user, &peer);
    let plugin = account.as_ref().map_or_else(|| accounts.plugin_of_nobody(user), Account::plugin);
    let salt = fresh_salt();
    let scrambled = match plugin {
        native::PLUGIN => native::scramble(password.as_bytes(), &salt),
        _ => sha2_password::scramble(password.as_bytes(), &salt),
    };
    let mut clear = password.as_bytes().to_vec();
    clear.push(0);
    let method = Some(plugin.as_bytes());
    let (mut exchange, mut step) =
        Exchange::begin(accounts, &peer, salt, user.as_bytes(), method, Some(&scrambled));
    // Asked for the password once, and hashed once.
    for _ in 0..4 {
        step = match step {
            // Nobody can be asked for another password here.
            Step::Accept { identity, expired, .. } => return (!expired).then_some(identity),
            Step::Deny(_) => return None,
            Step::Slow(work) => exchange.done(accounts, work.run()),
            Step::Send(_) => exchange.answer(accounts, &clear),
        };
    }
    None
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::net::IpAddr;

    use super::*;
    use crate::auth::accounts::Identification;

    #[test]
    fn only_the_password_of_an_account_for_this_place_is_taken() {
        let accounts = Accounts::in_memory();
        let create = |user: &str, host: &str, plugin: &str, password: &[u8]| {
            let (plugin, password) = (Some(plugin.to_owned()), Some(password.to_vec()));
            accounts.create(user, host, &Identification { plugin, password, hash: None }, false).unwrap();
        };
        create("viewer", "192.0.2.%", sha2_password::PLUGIN, b"right");
        create("old", "%", native::PLUGIN, b"right");
        create("open", "%", sha2_password::PLUGIN, b"");
        let inside = Peer::over_network(IpAddr::from([192, 0, 2, 7]));
        let outside = Peer::over_network(IpAddr::from([198, 51, 100, 7]));
        let user = |peer: &Peer, user: &str, password: &str| {
            log_in(&accounts, peer, user, password).map(|identity| identity.user)
        };
        // The second time by the digest that is remembered.
        for _ in 0..2 {
            assert_eq!(user(&inside, "viewer", "right").as_deref(), Some("viewer"));
        }
        assert_eq!(user(&outside, "old", "right").as_deref(), Some("old"));
        for (peer, name, password) in [
            (&inside, "viewer", "wrong"),
            (&outside, "viewer", "right"),
            (&inside, "old", "wrong"),
            (&inside, "open", ""),
            (&inside, "open", "x"),
            (&inside, "nobody", "right"),
        ] {
            assert_eq!(user(peer, name, password), None, "{name} {password}");
        }
    }
}
