//! Authentication: accounts and the password exchanges, without I/O.
//!
//! Two methods are served: `caching_sha2_password` (the default) and `mysql_native_password`; what passes
//! between client and server is [`exchange::Exchange`]'s. What an outsider may not learn: whether an account
//! exists (unknown users go through the same exchange against a hash nobody knows), and how much of a
//! password was right (digests are compared in constant time). A password in clear is accepted under TLS and
//! from this machine; over a network without TLS it must come encrypted with the server's RSA key.

mod account_change;
mod account_file;
pub mod accounts;
pub mod exchange;
mod host;
pub mod native;
pub mod password_rules;
mod renaming;
pub mod roles;
pub mod sha2_password;
pub mod shown;
pub mod shown_password;
pub mod usage;

use std::net::IpAddr;

use rsa::rand_core::{OsRng, RngCore};
use serde::{Deserialize, Serialize};

use crate::wire::handshake::SALT_BYTES;

/// The method named in the greeting and given to accounts created without one.
pub const DEFAULT_PLUGIN: &str = sha2_password::PLUGIN;

/// Fresh salt for one exchange: no NUL (it ends strings) and no `$` (it separates fields of stored hashes).
pub fn fresh_salt() -> [u8; SALT_BYTES] {
    let mut salt = [0u8; SALT_BYTES];
    OsRng.fill_bytes(&mut salt);
    for byte in &mut salt {
        *byte &= 0x7f;
        if matches!(*byte, 0 | b'$') {
            *byte += 1;
        }
    }
    salt
}

/// How well a connection is secured, and how well an account wants it to be (`REQUIRE`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Security {
    /// Not by TLS.
    #[default]
    None,
    /// By TLS (`REQUIRE SSL`).
    #[serde(rename = "ssl")]
    Encrypted,
    /// By TLS, and the client has shown a certificate that `ssl_ca` vouches for (`REQUIRE X509`).
    #[serde(rename = "x509")]
    Certificate,
}

impl Security {
    /// The least there is.
    pub fn is_none(&self) -> bool {
        *self == Security::None
    }
}

/// Where the client sits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// Address without port, or `localhost`.
    pub host: String,
    /// Its address; none over the local socket.
    pub address: Option<IpAddr>,
    /// Over the local socket or the loopback interface.
    pub local: bool,
    /// Nobody on a network can listen in: the local socket, and the loopback interface (libmariadb sends the
    /// password in clear over both).
    pub private: bool,
    /// By TLS.
    pub security: Security,
}

impl Peer {
    /// A client of the local socket.
    pub fn over_socket() -> Peer {
        let security = Security::None;
        Peer { host: "localhost".into(), address: None, local: true, private: true, security }
    }

    /// A client at an address.
    pub fn over_network(address: IpAddr) -> Peer {
        let address = address.to_canonical();
        let local = address.is_loopback();
        let host = if local { "localhost".to_owned() } else { address.to_string() };
        Peer { host, address: Some(address), local, private: local, security: Security::None }
    }
}

/// Who the client turned out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Account name.
    pub user: String,
    /// Host part of the account that matched.
    pub account_host: String,
}

#[cfg(test)]
mod tests;
