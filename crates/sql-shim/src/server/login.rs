//! From the accepted socket to a logged-in client.

use std::pin::pin;
use std::sync::Arc;

use sql::errors::{self, error};
use sql::result::{SqlError, status_flag};

use super::connection::{End, Link};
use super::registry::ClientFlags;
use super::shared::Server;
use crate::auth::exchange::{Exchange, Step};
use crate::auth::usage::CountedConnection;
use crate::auth::{self, DEFAULT_PLUGIN, Identity, Peer};
use crate::wire::compression::{Algorithm, ZSTD_LEVELS};
use crate::wire::handshake::{self, Greeting, HandshakeResponse, LOGIN_PACKET_BYTES_MAX, SALT_BYTES};
use crate::wire::{capability, response_packets};

/// Version told to clients: the MySQL release whose dialect is spoken, and ours.
pub const SERVER_VERSION: &str = concat!("8.0.36-untorn-", env!("CARGO_PKG_VERSION"));

/// What the client wants once it is logged in.
pub struct LoginRequest {
    /// Who it is.
    pub identity: Identity,
    /// Its password has expired: it may do nothing but set another.
    pub expired: bool,
    /// Counts the connection as the account's.
    pub counted: CountedConnection,
    /// Its capabilities.
    pub capabilities: u32,
    /// Collation id.
    pub charset: u8,
    /// Database to start with.
    pub database: Option<Vec<u8>>,
    /// What comes behind the login's OK is compressed so.
    pub compression: Option<Algorithm>,
}

/// `protocol_compression_algorithms`, decoded.
struct Compressions {
    zlib: bool,
    zstd: bool,
    uncompressed: bool,
}

impl Compressions {
    fn of(server: &Server) -> Compressions {
        let list = server.variables.text("protocol_compression_algorithms");
        let has = |name: &str| list.split(',').any(|listed| listed.eq_ignore_ascii_case(name));
        Compressions { zlib: has("zlib"), zstd: has("zstd"), uncompressed: has("uncompressed") }
    }

    fn capabilities(&self) -> u32 {
        let zlib = if self.zlib { capability::COMPRESS } else { 0 };
        zlib | if self.zstd { capability::ZSTD_COMPRESSION } else { 0 }
    }

    /// What a client gets: of two that it offers, zlib, as from MySQL.
    fn chosen(&self, response: &HandshakeResponse<'_>) -> Result<Option<Algorithm>, SqlError> {
        if response.capabilities & capability::COMPRESS != 0 {
            return Ok(Some(Algorithm::Zlib));
        }
        let level = response.zstd_level;
        match response.capabilities & capability::ZSTD_COMPRESSION != 0 {
            true if ZSTD_LEVELS.contains(&level) => Ok(Some(Algorithm::Zstd { level })),
            true => Err(response_packets::error::wrong_compression_level()),
            false if self.uncompressed => Ok(None),
            false => Err(response_packets::error::wrong_compression("uncompressed")),
        }
    }
}

/// Greets the client and authenticates it. The final OK is left to the caller, who still has to open the
/// database.
///
/// What is said before a client's TLS is not believed: its response counts as it comes encrypted.
pub async fn log_in(link: &mut Link, server: &Server, peer: &mut Peer) -> Result<LoginRequest, End> {
    let tls = server.tls.get();
    let salt = auth::fresh_salt();
    let compressions = Compressions::of(server);
    let offered = capability::OFFERED | compressions.capabilities();
    link.output.set_sequence(0);
    handshake::put_greeting(
        &mut link.output,
        &Greeting {
            server_version: SERVER_VERSION,
            connection_id: link.connection.id,
            salt,
            capabilities: offered | if tls.is_some() { capability::SSL } else { 0 },
            charset: 45,
            status: status_flag::AUTOCOMMIT,
            plugin: DEFAULT_PLUGIN,
        },
    );
    link.flush().await?;
    link.input.expect_sequence(1);
    link.receive(LOGIN_PACKET_BYTES_MAX).await?;
    if let Some(config) = tls {
        encrypt_if_asked(link, server, config, peer).await?;
    }
    link.output.set_sequence(link.input.reply_sequence());
    if let Err(error) = server.admits(peer) {
        link.input.release();
        return Err(End::Denied(error));
    }
    let decoded = handshake::decode_response(link.input.payload(), offered);
    let Ok(response) = decoded else {
        link.input.release();
        return Err(End::Protocol(response_packets::error::bad_handshake()));
    };
    let capabilities = response.capabilities;
    let compression = match compressions.chosen(&response) {
        Ok(compression) => compression,
        Err(error) => {
            link.input.release();
            return Err(End::Denied(error));
        }
    };
    let request = parts(&response, capabilities, compression);
    let (exchange, step) = begin(server, peer, salt, &response);
    link.input.release();
    let accepted = finish(link, server, exchange, step).await?;
    Ok(request(admitted(server, capabilities, accepted)?))
}

/// After SSLRequest: the handshake of TLS, and the response behind it in place of the request.
async fn encrypt_if_asked(
    link: &mut Link,
    server: &Server,
    config: &Arc<rustls::ServerConfig>,
    peer: &mut Peer,
) -> Result<(), End> {
    match handshake::is_tls_request(link.input.payload()) {
        Ok(true) => {}
        Ok(false) => return Ok(()),
        Err(_) => {
            link.input.release();
            return Err(End::Protocol(response_packets::error::bad_handshake()));
        }
    }
    link.input.release();
    // Clients do not wait for an answer to the request: this may be the beginning of their handshake, and it
    // is read as nothing else.
    let received = link.input.take_rest();
    let mut outcome = link.socket.secure(Arc::clone(config), received).map_err(End::Io);
    if outcome.is_ok() {
        // The client's first words under TLS come when the handshake is complete.
        outcome = link.receive(LOGIN_PACKET_BYTES_MAX).await;
    }
    if let Err(End::Io(error)) = &outcome
        && link.socket.tls_facts().is_none()
        && server.failed_handshakes.allows(server.clock.now_ms())
    {
        tracing::warn!(client = peer.host, "a TLS handshake failed: {error}");
    }
    outcome?;
    if let Some(facts) = link.socket.tls_facts() {
        peer.security = facts.security;
        // Nobody has set it before.
        let _ = link.connection.tls.set(facts);
    }
    Ok(())
}

/// COM_CHANGE_USER: the same exchange, always with a fresh salt, so that a recorded response is worth
/// nothing.
pub async fn change_user(
    link: &mut Link,
    server: &Server,
    peer: &Peer,
    capabilities: u32,
    arguments: &[u8],
) -> Result<LoginRequest, End> {
    // The setting may be younger than the connection.
    server.admits(peer).map_err(End::Denied)?;
    let Ok(response) = handshake::decode_change_user(capabilities, arguments) else {
        return Err(End::Protocol(response_packets::error::malformed_packet()));
    };
    let request = parts(&response, capabilities, None);
    let (exchange, step) =
        Exchange::begin(&server.accounts, peer, auth::fresh_salt(), response.user, None, None);
    let accepted = finish(link, server, exchange, step).await?;
    Ok(request(admitted(server, capabilities, accepted)?))
}

/// Who knows the password, and whether that has expired.
struct Accepted {
    identity: Identity,
    expired: bool,
}

/// Who is let in.
struct Admitted {
    accepted: Accepted,
    counted: CountedConnection,
}

/// Lets the client in, unless the account has reached a limit (1226), or its password has expired and it does
/// not say that it knows what to do then (1862).
fn admitted(server: &Server, capabilities: u32, accepted: Accepted) -> Result<Admitted, End> {
    let knows = capabilities & capability::EXPIRED_PASSWORDS != 0;
    if accepted.expired && !knows && server.variables.number("disconnect_on_expired_password") == 1 {
        return Err(End::Denied(error(errors::MUST_CHANGE_PASSWORD_LOGIN, &[])));
    }
    let Identity { user, account_host } = &accepted.identity;
    let counted = server.accounts.count_connection(user, account_host).map_err(End::Denied)?;
    Ok(Admitted { accepted, counted })
}

fn begin(
    server: &Server,
    peer: &Peer,
    salt: [u8; SALT_BYTES],
    response: &HandshakeResponse<'_>,
) -> (Exchange, Step) {
    let accounts = &server.accounts;
    Exchange::begin(accounts, peer, salt, response.user, response.plugin, Some(response.auth_response))
}

fn parts(
    response: &HandshakeResponse<'_>,
    capabilities: u32,
    compression: Option<Algorithm>,
) -> impl FnOnce(Admitted) -> LoginRequest + use<> {
    let charset = response.charset;
    let database = response.database.map(<[u8]>::to_vec);
    move |Admitted { accepted: Accepted { identity, expired }, counted }| LoginRequest {
        identity,
        expired,
        counted,
        capabilities,
        charset,
        database,
        compression,
    }
}

async fn finish(
    link: &mut Link,
    server: &Server,
    mut exchange: Exchange,
    first: Step,
) -> Result<Accepted, End> {
    let mut step = first;
    loop {
        step = match step {
            Step::Send(payload) => {
                let sent = link.send_payload(&payload).await;
                link.input.expect_sequence(link.output.sequence());
                let answered = match sent {
                    Ok(()) => link.receive(LOGIN_PACKET_BYTES_MAX).await,
                    Err(end) => Err(end),
                };
                if answered.is_err() {
                    exchange.abandoned(&server.accounts);
                }
                answered?;
                let next = exchange.answer(&server.accounts, link.input.payload());
                link.input.release();
                link.output.set_sequence(link.input.reply_sequence());
                next
            }
            Step::Slow(work) => {
                // First come, first served, and given up with the login (`connect_timeout`).
                let permit = link.connection.unless_killed(pin!(server.password_work.acquire())).await;
                let Some(Ok(permit)) = permit else { return Err(End::Killed) };
                let done = tokio::task::spawn_blocking(move || work.run()).await;
                drop(permit);
                let done = done.map_err(|_| End::Protocol(internal_error()))?;
                exchange.done(&server.accounts, done)
            }
            Step::Accept { identity, expired, before_ok } => {
                if let Some(payload) = before_ok {
                    link.put_payload(&payload);
                }
                return Ok(Accepted { identity, expired });
            }
            Step::Deny(error) => return Err(End::Denied(error)),
        };
    }
}

fn internal_error() -> SqlError {
    SqlError::new(1105, b"HY000", "The server could not check the password")
}

/// The handshake's request as the session sees them.
pub fn client_flags(request: &LoginRequest) -> ClientFlags {
    ClientFlags {
        found_rows: request.capabilities & capability::FOUND_ROWS != 0,
        multi_statements: request.capabilities & capability::MULTI_STATEMENTS != 0,
        interactive: request.capabilities & capability::INTERACTIVE != 0,
        ignore_space: request.capabilities & capability::IGNORE_SPACE != 0,
        session_track: request.capabilities & capability::SESSION_TRACK != 0,
        deprecate_eof: request.capabilities & capability::DEPRECATE_EOF != 0,
        charset: u16::from(request.charset),
    }
}
