//! Encrypted connections, on both runtimes, and clients that do not keep to the protocol: whatever they send
//! in place of a handshake is never a command.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;

use crate::support::{CAPABILITIES, Client, TestServer, error_code, packet, scramble};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    CipherSuiteCommon, ClientConfig, ClientConnection, DigitallySignedStruct, HandshakeKind, ServerConfig,
    SignatureScheme, StreamOwned, SupportedCipherSuite, SupportedProtocolVersion, Tls12CipherSuite, version,
};
use sql_shim::auth::accounts::{AccountChange, Accounts, Identification};
use sql_shim::auth::{Security, native, sha2_password};
use sql_shim::server::runtime::RuntimeKind;
use sql_shim::tls;

const RUNTIMES: [RuntimeKind; 2] = [RuntimeKind::Uring, RuntimeKind::Epoll];
const SSL: u32 = 1 << 11;

/// A server with a certificate of its own, which it also takes for a client's.
struct Encrypted {
    server: TestServer,
    directory: PathBuf,
}

impl Encrypted {
    fn start(runtime: RuntimeKind, name: &str) -> Encrypted {
        let encrypted = Self::prepare(runtime, name);
        let variables = &encrypted.server.server.variables;
        variables.set_at_start("ssl_ca", "server-cert.pem").unwrap();
        let established = tls::establish(&encrypted.directory, variables).unwrap().unwrap();
        assert!(encrypted.server.server.tls.set(established.config).is_ok());
        encrypted
    }

    fn start_with(
        runtime: RuntimeKind,
        name: &str,
        config: impl FnOnce(&Encrypted) -> ServerConfig,
    ) -> Encrypted {
        let encrypted = Self::prepare(runtime, name);
        assert!(encrypted.server.server.tls.set(Arc::new(config(&encrypted))).is_ok());
        encrypted
    }

    /// With a certificate that is not in use yet.
    fn prepare(runtime: RuntimeKind, name: &str) -> Encrypted {
        let accounts = Accounts::in_memory();
        let by = |plugin: &str| Identification {
            plugin: Some(plugin.into()),
            password: Some(b"secret".to_vec()),
            ..Identification::default()
        };
        let account = |user: &str, plugin: &str, requires| AccountChange {
            user: user.into(),
            host: "%".into(),
            by: Some(by(plugin)),
            requires: Some(requires),
            ..AccountChange::default()
        };
        let list = [
            account("sha2", sha2_password::PLUGIN, Security::None),
            account("encrypted", native::PLUGIN, Security::Encrypted),
            account("certified", native::PLUGIN, Security::Certificate),
        ];
        accounts.create_all(&list, false).unwrap();
        let directory = std::env::temp_dir().join(format!("untorn-tls-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(&directory).unwrap();
        let socket = directory.join("socket");
        let server = TestServer::start(runtime, accounts, Some(socket));
        tls::establish(&directory, &server.server.variables).unwrap();
        Encrypted { server, directory }
    }

    /// After SSLRequest.
    fn asked(&self, behind: &[u8]) -> Client {
        let mut client = self.server.connect();
        client.send_raw(&[&packet(1, &request()), behind].concat());
        client.sequence = 2;
        client
    }

    fn encrypted(&self) -> TlsClient {
        self.encrypted_by(client_config(None))
    }

    fn encrypted_by(&self, config: ClientConfig) -> TlsClient {
        self.encrypted_by_shared(&Arc::new(config))
    }

    fn encrypted_by_shared(&self, config: &Arc<ClientConfig>) -> TlsClient {
        let plain = self.asked(b"");
        let name = ServerName::try_from("localhost").unwrap();
        let salt = plain.salt();
        let connection = ClientConnection::new(Arc::clone(config), name).unwrap();
        TlsClient { stream: StreamOwned::new(connection, plain.stream), sequence: 2, salt }
    }

    fn certificate(&self) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
        let chain = CertificateDer::pem_file_iter(self.directory.join("server-cert.pem")).unwrap();
        let key = PrivateKeyDer::from_pem_file(self.directory.join("server-key.pem")).unwrap();
        (chain.map(Result::unwrap).collect(), key)
    }

    /// Everybody is gone while that client still has its socket, and the next one is served.
    fn finish_with(self, client: TlsClient) {
        while !self.server.server.connections.is_empty() {
            std::thread::yield_now();
        }
        drop(client);
        self.finish();
    }

    /// Everybody is gone, and the next one is served.
    fn finish(self) {
        while !self.server.server.connections.is_empty() {
            std::thread::yield_now();
        }
        self.server.login();
        self.server.stop();
        std::fs::remove_dir_all(self.directory).unwrap();
    }
}

fn request() -> Vec<u8> {
    let mut payload = (CAPABILITIES | SSL).to_le_bytes().to_vec();
    payload.extend_from_slice(&[0, 0, 0, 1, 45]);
    payload.extend_from_slice(&[0; 23]);
    payload
}

fn response(user: &str, password: &[u8], plugin: &str, salt: &[u8]) -> Vec<u8> {
    let mut payload = request();
    payload.extend_from_slice(user.as_bytes());
    payload.push(0);
    let scrambled = scramble(plugin, password, salt);
    payload.push(scrambled.len() as u8);
    payload.extend_from_slice(&scrambled);
    payload.extend_from_slice(plugin.as_bytes());
    payload.push(0);
    payload
}

struct TlsClient {
    stream: StreamOwned<ClientConnection, TcpStream>,
    sequence: u8,
    salt: Vec<u8>,
}

impl TlsClient {
    fn send(&mut self, payload: &[u8]) {
        let packet = packet(self.sequence, payload);
        self.stream.write_all(&packet).unwrap();
        self.sequence = self.sequence.wrapping_add(1);
    }

    fn receive(&mut self) -> Vec<u8> {
        let expected = self.sequence;
        let payload = self.any();
        assert_eq!(self.sequence, expected.wrapping_add(1));
        payload
    }

    /// A packet of whatever number.
    fn any(&mut self) -> Vec<u8> {
        let mut header = [0; 4];
        self.stream.read_exact(&mut header).unwrap();
        let [a, b, c, sequence] = header;
        self.sequence = sequence.wrapping_add(1);
        let mut payload = vec![0; u32::from_le_bytes([a, b, c, 0]) as usize];
        self.stream.read_exact(&mut payload).unwrap();
        payload
    }

    /// The packets before OK or ERR, and that one.
    fn log_in(&mut self, user: &str, password: &[u8], plugin: &str) -> (Vec<Vec<u8>>, Vec<u8>) {
        let salt = self.salt.clone();
        self.send(&response(user, password, plugin, &salt));
        let mut before = Vec::new();
        loop {
            let reply = self.receive();
            match reply.first() {
                Some(0 | 0xff) => return (before, reply),
                // Full authentication: the password itself, which TLS hides.
                Some(1) if reply == [1, 4] => self.send(&[password, b"\0"].concat()),
                // Another method.
                Some(0xfe) => {
                    let end = reply.iter().position(|byte| *byte == 0).unwrap();
                    let plugin = String::from_utf8(reply[1..end].to_vec()).unwrap();
                    let salt = &reply[end + 1..reply.len() - 1];
                    self.send(&scramble(&plugin, password, salt));
                }
                _ => {}
            }
            before.push(reply);
        }
    }

    fn query(&mut self, sql: &str) -> Vec<u8> {
        self.sequence = 0;
        self.send(&[&[3], sql.as_bytes()].concat());
        self.receive()
    }

    /// The one value of a one-column answer.
    fn value(&mut self, sql: &str) -> Vec<u8> {
        let first = self.query(sql);
        assert_eq!(first, [1], "{first:?}");
        self.receive();
        self.receive();
        let row = self.receive();
        assert_eq!(self.receive()[0], 0xfe);
        row
    }
}

/// Verifies nothing: these tests are about the server.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

type Certificate = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn client_config(certificate: Option<Certificate>) -> ClientConfig {
    client_config_of(certificate, rustls::ALL_VERSIONS)
}

fn client_config_of(
    certificate: Option<Certificate>,
    versions: &[&'static SupportedProtocolVersion],
) -> ClientConfig {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(versions)
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anybody(provider)));
    match certificate {
        Some((chain, key)) => builder.with_client_auth_cert(chain, key).unwrap(),
        None => builder.with_no_client_auth(),
    }
}

#[test]
fn logins_commands_and_large_packets() {
    for runtime in RUNTIMES {
        let server = Encrypted::start(runtime, "talk");
        for fast in [false, true] {
            let mut client = server.encrypted();
            let (before, reply) = client.log_in("sha2", b"secret", sha2_password::PLUGIN);
            assert_eq!(reply[0], 0, "{reply:?}");
            assert_eq!(before, [vec![1, if fast { 3 } else { 4 }]]);
            assert_eq!(client.value("echo it"), b"\x07echo it");
        }
        let mut client = server.encrypted();
        assert_eq!(client.log_in("root", b"", native::PLUGIN).1[0], 0);
        // Larger than what is read, and what is encrypted, at once.
        let long = "x".repeat(1 << 20);
        let row = client.value(&format!("echo {long}"));
        assert!(row.ends_with(long.as_bytes()) && row.len() > long.len());
        let facts = server.server.server.connections.all().iter().find_map(|c| c.tls.get().copied());
        assert_eq!(facts.map(|facts| facts.version), Some("TLSv1.3"));
        // Two commands at once, one of them cut in the middle by what the socket gives.
        let command = packet(0, b"\x03echo a");
        client.stream.write_all(&[&command[..], &command[..5]].concat()).unwrap();
        client.stream.write_all(&command[5..]).unwrap();
        for _ in 0..2 {
            client.sequence = 1;
            let answer: Vec<_> = (0..5).map(|_| client.receive()).collect();
            assert_eq!(answer[3], b"\x06echo a");
        }
        client.sequence = 0;
        client.send(&[1]);
        // A clean end: without it `read` would be an error.
        assert_eq!(client.stream.read(&mut [0]).unwrap(), 0);
        drop(client);
        server.finish();
    }
}

#[test]
fn what_an_account_requires() {
    let server = Encrypted::start(RuntimeKind::Epoll, "require");
    let with_certificate = || server.encrypted_by(client_config(Some(server.certificate())));
    let code = |reply: &[u8]| if reply[0] == 0 { 0 } else { error_code(reply) };
    for (user, plain, encrypted, certified) in [("encrypted", 1045, 0, 0), ("certified", 1045, 1045, 0)] {
        let mut client = server.server.connect();
        let reply = client.log_in(user, b"secret", native::PLUGIN, CAPABILITIES, None);
        assert_eq!(code(&reply), plain, "{user}");
        let mut client = server.encrypted();
        assert_eq!(code(&client.log_in(user, b"secret", native::PLUGIN).1), encrypted, "{user}");
        let mut client = with_certificate();
        assert_eq!(code(&client.log_in(user, b"secret", native::PLUGIN).1), certified, "{user}");
    }
    // A certificate that nobody vouches for ends the handshake.
    let other = Encrypted::start(RuntimeKind::Epoll, "stranger");
    let mut client = server.encrypted_by(client_config(Some(other.certificate())));
    let refused = client.stream.write_all(b"").and_then(|()| client.stream.read_exact(&mut [0]));
    assert!(refused.is_err());
    drop(client);
    other.finish();
    server.finish();
}

#[test]
fn connections_in_clear_can_be_refused() {
    let server = Encrypted::start(RuntimeKind::Uring, "secure");
    let variables = &server.server.server.variables;
    variables.set_at_start("require_secure_transport", "ON").unwrap();
    let mut client = server.server.connect();
    let reply = client.log_in("root", b"", native::PLUGIN, CAPABILITIES, None);
    assert_eq!(error_code(&reply), 3159);
    assert!(client.is_closed());
    let mut client = server.encrypted();
    assert_eq!(client.log_in("root", b"", native::PLUGIN).1[0], 0);
    drop(client);
    // The local socket is secure as it is.
    let mut socket = std::os::unix::net::UnixStream::connect(server.directory.join("socket")).unwrap();
    let mut greeting = [0; 4];
    socket.read_exact(&mut greeting).unwrap();
    socket.read_exact(&mut vec![0; usize::from(greeting[0])]).unwrap();
    let mut plain = response("root", b"", sha2_password::PLUGIN, b"");
    plain[1] &= !((SSL >> 8) as u8);
    socket.write_all(&packet(1, &plain)).unwrap();
    let mut reply = [0; 5];
    socket.read_exact(&mut reply).unwrap();
    assert_eq!(reply[4], 0);
    drop(socket);
    variables.set_at_start("require_secure_transport", "OFF").unwrap();
    server.finish();
}

#[test]
fn keys_of_many_records_are_preferred_and_sessions_are_not_resumed() {
    let server = Encrypted::start(RuntimeKind::Epoll, "suites");
    for versions in [&[&version::TLS12], &[&version::TLS13]] {
        // One configuration, which remembers sessions.
        let config = Arc::new(client_config_of(Some(server.certificate()), versions));
        for _ in 0..2 {
            let mut client = server.encrypted_by_shared(&config);
            assert_eq!(client.log_in("certified", b"secret", native::PLUGIN).1[0], 0);
            assert_eq!(client.value("echo it"), b"\x07echo it");
            let connection = &client.stream.conn;
            assert_eq!(connection.handshake_kind(), Some(HandshakeKind::Full));
            let suite = connection.negotiated_cipher_suite().unwrap();
            if let SupportedCipherSuite::Tls12(suite) = suite {
                assert_eq!(suite.common.confidentiality_limit, u64::MAX, "{suite:?}");
            }
        }
    }
    server.finish();
}

/// What the server is configured with, but for keys that wear out soon.
fn short_lived(server: &Encrypted, limit: u64) -> ServerConfig {
    let SupportedCipherSuite::Tls12(suite) = ring::cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256
    else {
        unreachable!()
    };
    let common = CipherSuiteCommon { confidentiality_limit: limit, ..suite_common(suite) };
    let suite = Tls12CipherSuite {
        common,
        prf_provider: suite.prf_provider,
        kx: suite.kx,
        sign: suite.sign,
        aead_alg: suite.aead_alg,
    };
    let suite: &'static Tls12CipherSuite = Box::leak(Box::new(suite));
    let cipher_suites = vec![SupportedCipherSuite::Tls12(suite)];
    let provider = CryptoProvider { cipher_suites, ..ring::default_provider() };
    let (chain, key) = server.certificate();
    ServerConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&version::TLS12])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap()
}

fn suite_common(suite: &Tls12CipherSuite) -> CipherSuiteCommon {
    let CipherSuiteCommon { suite, hash_provider, confidentiality_limit } = suite.common;
    CipherSuiteCommon { suite, hash_provider, confidentiality_limit }
}

#[test]
fn a_command_is_not_executed_when_its_answer_might_be_lost() {
    for runtime in RUNTIMES {
        let server = Encrypted::start_with(runtime, "worn", |server| short_lived(server, 64));
        let questions = || server.server.server.status.sum(sql_shim::status::Counter::Questions);
        let mut client = server.encrypted();
        assert_eq!(client.log_in("root", b"", native::PLUGIN).1[0], 0);
        let mut answered = 0;
        let refusal = loop {
            let first = client.query("insert");
            if first[0] == 0xff {
                break first;
            }
            answered += 1;
            assert!(answered < 64, "rustls has dropped an answer");
        };
        assert!(String::from_utf8_lossy(&refusal).contains("used up"), "{refusal:?}");
        assert_eq!(questions(), answered);
        // A clean end: without it `read` would be an error.
        assert_eq!(client.stream.read(&mut [0]).unwrap(), 0);
        // An answer that the keys do not last for is cut off, and not followed by a clean OK.
        let mut client = server.encrypted();
        assert_eq!(client.log_in("root", b"", native::PLUGIN).1[0], 0);
        client.sequence = 0;
        client.send(b"\x03rows 200 16384");
        let mut all = Vec::new();
        let _ = client.stream.read_to_end(&mut all);
        assert!(all.len() < 64 << 14, "{}", all.len());
        drop(client);
        server.finish();
    }
}

#[test]
fn a_client_that_says_its_end_behind_a_command() {
    for runtime in RUNTIMES {
        let server = Encrypted::start(runtime, "last");
        let mut client = server.encrypted();
        assert_eq!(client.log_in("root", b"", native::PLUGIN).1[0], 0);
        client.stream.write_all(&packet(0, b"\x03echo a")).unwrap();
        client.stream.conn.send_close_notify();
        client.stream.flush().unwrap();
        client.sequence = 1;
        let answer: Vec<_> = (0..5).map(|_| client.receive()).collect();
        assert_eq!(answer[3], b"\x06echo a");
        // The server ends it although the socket stays open on this side.
        assert_eq!(client.stream.read(&mut [0]).unwrap(), 0);
        server.finish_with(client);
    }
}

#[test]
fn tls_1_2_and_packets_of_several_parts() {
    for (runtime, versions) in
        [(RuntimeKind::Uring, [&version::TLS12]), (RuntimeKind::Epoll, [&version::TLS13])]
    {
        let server = Encrypted::start(runtime, "parts");
        let mut client = server.encrypted_by(client_config_of(None, &versions));
        assert_eq!(client.log_in("root", b"", native::PLUGIN).1[0], 0);
        // Larger than one packet of the protocol, both ways.
        let long = vec![b'x'; 17 << 20];
        let text = [b"\x03echo ", long.as_slice()].concat();
        let (whole, rest) = text.split_at(0xff_ffff);
        client.sequence = 0;
        client.send(whole);
        client.send(rest);
        assert_eq!(client.receive(), [1]);
        client.receive();
        client.receive();
        let mut row = client.receive();
        assert_eq!(row.len(), 0xff_ffff);
        row.extend(client.receive());
        assert!(row.ends_with(&long));
        assert_eq!(client.receive()[0], 0xfe);
        assert_eq!(client.value("echo it"), b"\x07echo it");
        drop(client);
        server.finish();
    }
}

#[test]
fn a_killed_connection_is_told_so_under_tls() {
    for runtime in RUNTIMES {
        let server = Encrypted::start(runtime, "kill");
        let mut client = server.encrypted();
        assert_eq!(client.log_in("root", b"", native::PLUGIN).1[0], 0);
        assert_eq!(client.value("echo it"), b"\x07echo it");
        let shared = &server.server.server;
        let connection = shared.connections.all().remove(0);
        // The time for its reply is over: the server knows that it was taken.
        while connection.deadline() <= shared.clock.now_ms() + shared.variables.net_write_timeout_ms() {
            std::thread::yield_now();
        }
        connection.kill(sql::kill_switch::Kill::Connection);
        let goodbye = client.any();
        assert_eq!(error_code(&goodbye), 1053);
        assert_eq!(client.stream.read(&mut [0]).unwrap(), 0);
        drop(client);
        server.finish();
    }
}

#[test]
fn another_user_in_clear_is_refused_what_wants_tls() {
    let server = Encrypted::start(RuntimeKind::Epoll, "change");
    let change = |client: &mut Client, user: &str, password: &[u8]| {
        client.sequence = 0;
        let mut payload = [b"\x11", user.as_bytes(), b"\0\0\0"].concat();
        payload.extend_from_slice(&[45, 0]);
        payload.extend_from_slice(native::PLUGIN.as_bytes());
        payload.push(0);
        client.send(&payload);
        client.finish_login(password)
    };
    let mut client = server.server.login();
    assert_eq!(error_code(&change(&mut client, "encrypted", b"secret")), 1045);
    let mut older = server.server.login();
    assert_eq!(change(&mut older, "root", b"")[0], 0);
    let variables = &server.server.server.variables;
    variables.set_at_start("require_secure_transport", "ON").unwrap();
    assert_eq!(error_code(&change(&mut older, "root", b"")), 3159);
    variables.set_at_start("require_secure_transport", "OFF").unwrap();
    drop((client, older));
    server.finish();
}

/// What the server sends until it closes.
fn until_closed(client: &mut Client) -> Vec<u8> {
    let mut all = Vec::new();
    // A reset comes when the server closes before it has read everything.
    let _ = client.stream.read_to_end(&mut all);
    all
}

/// Records of TLS that are alerts.
fn are_alerts(mut bytes: &[u8]) -> bool {
    while let [0x15, 3, _, high, low, rest @ ..] = bytes {
        bytes = rest.get(usize::from(u16::from_be_bytes([*high, *low]))..).unwrap_or_default();
    }
    bytes.is_empty()
}

#[test]
fn nothing_in_clear_behind_the_request_is_a_command() {
    for runtime in RUNTIMES {
        let server = Encrypted::start(runtime, "inject");
        let questions = || server.server.server.status.sum(sql_shim::status::Counter::Questions);
        let before = questions();
        let plain = |client: &Client| {
            let login = packet(2, &response("root", b"", native::PLUGIN, &client.salt()));
            [login, packet(0, b"\x03insert")].concat()
        };
        // In the same write as the request, and after it.
        let salted = server.server.connect();
        let mut together = server.asked(&plain(&salted));
        let mut apart = server.asked(b"");
        apart.send_raw(&plain(&salted));
        // In front of a real handshake, which is not reached.
        let mut ahead = server.asked(&plain(&salted));
        let name = ServerName::try_from("localhost").unwrap();
        let mut hello = ClientConnection::new(Arc::new(client_config(None)), name).unwrap();
        let mut bytes = Vec::new();
        hello.write_tls(&mut bytes).unwrap();
        // It may be closed already.
        let _ = ahead.stream.write_all(&bytes);
        let mut garbage = server.asked(&[0xff; 3000]);
        for client in [&mut together, &mut apart, &mut ahead, &mut garbage] {
            let answer = until_closed(client);
            assert!(are_alerts(&answer), "{answer:?}");
        }
        assert_eq!(questions(), before);
        drop((salted, together, apart, ahead, garbage));
        server.finish();
    }
}

#[test]
fn handshakes_that_do_not_end() {
    for runtime in RUNTIMES {
        let server = Encrypted::start(runtime, "half");
        let name = ServerName::try_from("localhost").unwrap();
        let mut connection = ClientConnection::new(Arc::new(client_config(None)), name).unwrap();
        let mut hello = Vec::new();
        connection.write_tls(&mut hello).unwrap();
        // Gone before, in, and behind the first flight.
        for length in [0, hello.len() / 2, hello.len()] {
            let mut client = server.asked(&hello[..length]);
            client.stream.shutdown(Shutdown::Write).unwrap();
            until_closed(&mut client);
        }
        server.server.server.variables.set_at_start("connect_timeout", "2").unwrap();
        for length in [0, hello.len() / 2, hello.len()] {
            let mut silent = server.asked(&hello[..length]);
            let answer = until_closed(&mut silent);
            // What it is told, if it could be told, would be encrypted; in clear there is only the handshake.
            assert!(answer.first().is_none_or(|kind| matches!(kind, 0x14..=0x17)), "{answer:?}");
        }
        server.finish();
    }
}

#[test]
fn a_server_without_certificate_offers_nothing() {
    let server = TestServer::root(RuntimeKind::Uring);
    let mut client = server.connect();
    client.send(&request());
    assert_eq!(error_code(&client.receive().unwrap()), 1043);
    assert!(client.is_closed());
    let server = Encrypted::start(RuntimeKind::Uring, "flag");
    let mut client = server.server.connect();
    let salt = client.salt();
    client.send(&response("root", b"", native::PLUGIN, &salt));
    assert_eq!(error_code(&client.receive().unwrap()), 1043, "asks for TLS and goes on in clear");
    assert!(client.is_closed());
    server.finish();
}
