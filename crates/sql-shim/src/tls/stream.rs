//! The state of one encrypted connection, without I/O: bytes of the socket on one side, bytes of the protocol
//! on the other.
//!
//! The handshake is part of reading: until it is complete, [`TlsStream::open`] has nothing to give, and what
//! is [`sealed`](TlsStream::seal) waits in memory, never to leave in clear. What the peer sends is taken in
//! small pieces, each with its plain text taken out at once, so nothing piles up here.
//!
//! A record that was sent in part and given up leaves the stream where nobody can read on: from then on
//! nothing is sealed and nothing is sent, not even a goodbye.
//!
//! Under TLS 1.2 keys last for a number of records, and rustls drops what is written behind the last one. So
//! the records are counted here: a connection takes no new command when its keys are [nearly used
//! up](TlsStream::is_worn_out), and what does not fit is an error.

use std::io::{self, Read, Write};
use std::sync::Arc;

use rustls::{CipherSuite, ProtocolVersion, ServerConfig, ServerConnection, SupportedCipherSuite};

use crate::auth::Security;

/// Bytes of room for what the socket gives at once: a record of TLS, more or less.
const INCOMING_BYTES: usize = 17 * 1024;

/// Bytes of encrypted output that are kept between writes.
const OUTGOING_BYTES_KEPT: usize = 32 * 1024;

/// Most plain text in a record (RFC 5246, 6.2.1); rustls cuts what is longer.
const RECORD_BYTES: u64 = 1 << 14;

/// Records that are not ours to use: Finished of the handshake, and the alert at the end.
const RECORDS_SET_ASIDE: u64 = 2;

/// One connection's keys and half-read records.
pub struct TlsStream {
    connection: ServerConnection,
    /// Between reads, kept.
    incoming: Vec<u8>,
    /// Between writes, kept.
    outgoing: Vec<u8>,
    /// Records of plain text sealed so far.
    records: u64,
    /// What was taken to be sent has not been sent wholly.
    in_flight: bool,
    /// The peer has said that nothing follows.
    closed: bool,
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
        let (incoming, outgoing) = (Vec::new(), Vec::new());
        Ok(Self { connection, incoming, outgoing, records: 0, in_flight: false, closed: false })
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
        let mut rest = sealed.as_slice();
        while !rest.is_empty() && !self.closed {
            self.connection.read_tls(&mut rest)?;
            let state = self
                .connection
                .process_new_packets()
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            let count = state.plaintext_bytes_to_read();
            self.connection.reader().take(count as u64).read_to_end(plain)?;
            self.closed = state.peer_has_closed();
        }
        self.incoming = sealed;
        Ok(Opened { count: plain.len() - before, closed: self.closed })
    }

    /// Whether the peer has said that nothing follows; it may still listen.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Encrypts, or says that the keys do not last for that.
    pub fn seal(&mut self, plain: &[u8]) -> io::Result<()> {
        self.check_in_order()?;
        let records = self.records + (plain.len() as u64).div_ceil(RECORD_BYTES);
        if self.records_max().is_some_and(|max| records > max.saturating_sub(RECORDS_SET_ASIDE)) {
            return Err(io::Error::other("the keys of this TLS connection are used up"));
        }
        self.records = records;
        self.connection.writer().write_all(plain)
    }

    /// Whether the keys might not last for the answer to another command.
    pub fn is_worn_out(&self) -> bool {
        self.records_max().is_some_and(|max| self.records >= max - max / 16)
    }

    /// How many records one key may encrypt. TLS 1.3 changes keys before that, by rustls itself.
    fn records_max(&self) -> Option<u64> {
        match self.connection.negotiated_cipher_suite()? {
            SupportedCipherSuite::Tls12(suite) => Some(suite.common.confidentiality_limit),
            SupportedCipherSuite::Tls13(_) => None,
        }
    }

    fn check_in_order(&self) -> io::Result<()> {
        if self.in_flight { Err(io::ErrorKind::BrokenPipe.into()) } else { Ok(()) }
    }

    /// Says that nothing follows.
    pub fn seal_end(&mut self) {
        self.connection.send_close_notify();
    }

    /// What is to be sent now: of the handshake, alerts, and what was sealed. Empty: nothing.
    pub fn take_outgoing(&mut self) -> io::Result<Vec<u8>> {
        self.check_in_order()?;
        let mut outgoing = std::mem::take(&mut self.outgoing);
        outgoing.clear();
        while self.connection.wants_write() {
            self.connection.write_tls(&mut outgoing)?;
        }
        self.in_flight = !outgoing.is_empty();
        Ok(outgoing)
    }

    /// All that was taken has been sent. Who gives a write up does not say so.
    pub fn sent(&mut self) {
        self.in_flight = false;
    }

    /// Takes the buffer back after the write, unless it is large: most answers are not.
    pub fn restore_outgoing(&mut self, buffer: Vec<u8>) {
        if buffer.capacity() <= OUTGOING_BYTES_KEPT {
            self.outgoing = buffer;
        }
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use rustls::crypto::ring;
    use rustls::pki_types::ServerName;
    use rustls::{ClientConfig, ClientConnection, RootCertStore};

    use super::*;
    use crate::tls::establish;
    use crate::variables::GlobalVariables;

    /// Both ends after the handshake, whose bytes go through memory.
    fn pair(name: &str) -> (TlsStream, ClientConnection) {
        let directory = std::env::temp_dir().join(format!("untorn-stream-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let config = establish(&directory, &GlobalVariables::default()).unwrap().unwrap().config;
        let mut roots = RootCertStore::empty();
        for certificate in
            crate::tls::certificates(&crate::tls::PemFile::own(directory.join("server-cert.pem"))).unwrap()
        {
            roots.add(certificate).unwrap();
        }
        let client = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let mut client =
            ClientConnection::new(Arc::new(client), ServerName::try_from("localhost").unwrap()).unwrap();
        let mut server = TlsStream::new(config).unwrap();
        while server.facts().is_none() || client.is_handshaking() {
            to_server(&mut client, &mut server);
            let outgoing = server.take_outgoing().unwrap();
            client.read_tls(&mut outgoing.as_slice()).unwrap();
            client.process_new_packets().unwrap();
            server.restore_outgoing(outgoing);
            server.sent();
        }
        std::fs::remove_dir_all(&directory).unwrap();
        (server, client)
    }

    fn to_server(client: &mut ClientConnection, server: &mut TlsStream) -> Vec<u8> {
        let mut bytes = server.lend();
        while client.wants_write() {
            client.write_tls(&mut bytes).unwrap();
        }
        let mut plain = Vec::new();
        server.open(bytes, &mut plain).unwrap();
        plain
    }

    #[test]
    fn nothing_follows_half_a_record() {
        let (mut server, _client) = pair("half");
        server.seal(b"whole").unwrap();
        let outgoing = server.take_outgoing().unwrap();
        server.restore_outgoing(outgoing);
        server.sent();
        server.seal(b"half").unwrap();
        // Given up: nobody says that it was sent.
        drop(server.take_outgoing().unwrap());
        assert_eq!(server.seal(b"goodbye").unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        server.seal_end();
        assert_eq!(server.take_outgoing().unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }

    #[test]
    fn the_end_is_remembered_and_memory_is_given_back() {
        let (mut server, mut client) = pair("end");
        server.seal(&vec![0; 4 * OUTGOING_BYTES_KEPT]).unwrap();
        let outgoing = server.take_outgoing().unwrap();
        assert!(outgoing.len() > 4 * OUTGOING_BYTES_KEPT);
        server.sent();
        server.restore_outgoing(outgoing);
        assert!(server.outgoing.capacity() <= OUTGOING_BYTES_KEPT);
        client.writer().write_all(b"command").unwrap();
        client.send_close_notify();
        assert_eq!(to_server(&mut client, &mut server), b"command");
        assert!(server.is_closed());
    }
}
