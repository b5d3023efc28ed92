//! The state of one encrypted connection, without I/O: bytes of the socket on one side, bytes of the protocol
//! on the other.
//!
//! The handshake is part of reading: until it is complete, [`TlsStream::open`] has nothing to give, and what
//! is [`sealed`](TlsStream::seal) waits in memory, never to leave in clear. What the peer sends is taken in
//! small pieces, each with its plain text taken out at once, so nothing piles up here.

use std::io::{self, Read, Write};
use std::sync::Arc;

use rustls::{CipherSuite, ProtocolVersion, ServerConfig, ServerConnection};

use crate::auth::Security;

/// Bytes of room for what the socket gives at once: a record of TLS, more or less.
const INCOMING_BYTES: usize = 17 * 1024;

/// One connection's keys and half-read records.
pub struct TlsStream {
    connection: ServerConnection,
    /// Between reads, kept.
    incoming: Vec<u8>,
    /// Between writes, kept.
    outgoing: Vec<u8>,
}

/// How a connection is encrypted, in the words of OpenSSL, which clients know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TlsFacts {
    /// `Ssl_version`.
    pub version: &'static str,
    /// `Ssl_cipher`.
    pub cipher: &'static str,
    /// Whether the client has shown a certificate.
    pub security: Security,
}

/// What was read.
pub struct Opened {
    /// Bytes appended.
    pub count: usize,
    /// The peer has said that nothing follows.
    pub closed: bool,
}

impl TlsStream {
    /// A connection whose handshake is to come.
    pub fn new(config: Arc<ServerConfig>) -> io::Result<Self> {
        let mut connection = ServerConnection::new(config).map_err(io::Error::other)?;
        // What is written is bounded by who writes.
        connection.set_buffer_limit(None);
        Ok(Self { connection, incoming: Vec::new(), outgoing: Vec::new() })
    }

    /// Gives the buffer away for a read that appends to it.
    pub fn lend(&mut self) -> Vec<u8> {
        let mut buffer = std::mem::take(&mut self.incoming);
        buffer.clear();
        buffer.reserve(INCOMING_BYTES);
        buffer
    }

    /// Decrypts what the socket gave, and takes its buffer back. The plain text is appended to `plain`.
    pub fn open(&mut self, sealed: Vec<u8>, plain: &mut Vec<u8>) -> io::Result<Opened> {
        let before = plain.len();
        let mut closed = false;
        let mut rest = sealed.as_slice();
        while !rest.is_empty() && !closed {
            self.connection.read_tls(&mut rest)?;
            let state = self
                .connection
                .process_new_packets()
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            let count = state.plaintext_bytes_to_read();
            self.connection.reader().take(count as u64).read_to_end(plain)?;
            closed = state.peer_has_closed();
        }
        self.incoming = sealed;
        Ok(Opened { count: plain.len() - before, closed })
    }

    /// Encrypts.
    pub fn seal(&mut self, plain: &[u8]) -> io::Result<()> {
        self.connection.writer().write_all(plain)
    }

    /// Says that nothing follows.
    pub fn seal_end(&mut self) {
        self.connection.send_close_notify();
    }

    /// What is to be sent now: of the handshake, alerts, and what was sealed. Empty: nothing.
    pub fn take_outgoing(&mut self) -> io::Result<Vec<u8>> {
        let mut outgoing = std::mem::take(&mut self.outgoing);
        outgoing.clear();
        while self.connection.wants_write() {
            self.connection.write_tls(&mut outgoing)?;
        }
        Ok(outgoing)
    }

    /// Takes the buffer back after the write.
    pub fn restore_outgoing(&mut self, buffer: Vec<u8>) {
        self.outgoing = buffer;
    }

    /// Once the handshake is complete.
    pub fn facts(&self) -> Option<TlsFacts> {
        if self.connection.is_handshaking() {
            return None;
        }
        let shown = self.connection.peer_certificates().is_some();
        Some(TlsFacts {
            version: match self.connection.protocol_version()? {
                ProtocolVersion::TLSv1_3 => "TLSv1.3",
                _ => "TLSv1.2",
            },
            cipher: cipher_name(self.connection.negotiated_cipher_suite()?.suite()),
            security: if shown { Security::Certificate } else { Security::Encrypted },
        })
    }
}

fn cipher_name(suite: CipherSuite) -> &'static str {
    match suite {
        CipherSuite::TLS13_AES_128_GCM_SHA256 => "TLS_AES_128_GCM_SHA256",
        CipherSuite::TLS13_AES_256_GCM_SHA384 => "TLS_AES_256_GCM_SHA384",
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => "TLS_CHACHA20_POLY1305_SHA256",
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 => "ECDHE-ECDSA-AES128-GCM-SHA256",
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 => "ECDHE-ECDSA-AES256-GCM-SHA384",
        CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256 => "ECDHE-ECDSA-CHACHA20-POLY1305",
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 => "ECDHE-RSA-AES128-GCM-SHA256",
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 => "ECDHE-RSA-AES256-GCM-SHA384",
        CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256 => "ECDHE-RSA-CHACHA20-POLY1305",
        other => other.as_str().unwrap_or("unknown"),
    }
}
