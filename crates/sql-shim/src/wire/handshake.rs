//! The packets before the first command: greeting, the client's response, switches of the authentication
//! method.

use super::capability;
use super::output::PacketOutput;
use super::payload_reader::{Malformed, PayloadReader};

/// Largest packet taken from a client that has not logged in, bytes.
pub const LOGIN_PACKET_BYTES_MAX: usize = 16 * 1024;
/// Bytes of the random salt that scrambles passwords.
pub const SALT_BYTES: usize = 20;

/// What the server says first.
#[derive(Debug, Clone)]
pub struct Greeting<'a> {
    /// `8.0.36-untorn-…`.
    pub server_version: &'a str,
    /// Number of the connection.
    pub connection_id: u32,
    /// Fresh random bytes, none of them NUL or `$`.
    pub salt: [u8; SALT_BYTES],
    /// Offered capabilities.
    pub capabilities: u32,
    /// Collation id.
    pub charset: u8,
    /// Status flags.
    pub status: u16,
    /// Authentication method the salt is meant for.
    pub plugin: &'a str,
}

/// Writes the greeting (protocol 10).
pub fn put_greeting(output: &mut PacketOutput, greeting: &Greeting<'_>) {
    let (salt_begin, salt_end) = greeting.salt.split_at(8);
    let [a, b, c, d] = greeting.capabilities.to_le_bytes();
    output.begin();
    output.u8(10);
    output.put(greeting.server_version.as_bytes());
    output.u8(0);
    output.u32(greeting.connection_id);
    output.put(salt_begin);
    output.u8(0);
    output.put(&[a, b]);
    output.u8(greeting.charset);
    output.u16(greeting.status);
    output.put(&[c, d]);
    output.u8(SALT_BYTES as u8 + 1);
    output.put(&[0; 10]);
    output.put(salt_end);
    output.u8(0);
    output.put(greeting.plugin.as_bytes());
    output.u8(0);
    output.end();
}

/// The client's answer to the greeting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HandshakeResponse<'a> {
    /// Capabilities both sides have.
    pub capabilities: u32,
    /// Collation id.
    pub charset: u8,
    /// Account name.
    pub user: &'a [u8],
    /// Scrambled password, empty for none.
    pub auth_response: &'a [u8],
    /// Database to start with.
    pub database: Option<&'a [u8]>,
    /// Method that made `auth_response`.
    pub plugin: Option<&'a [u8]>,
    /// Level of zstd; 0 where none was sent.
    pub zstd_level: u8,
}

/// Bytes of a request for TLS: the beginning of a response, up to the user.
const TLS_REQUEST_BYTES: usize = 32;

/// Whether the client asks for TLS instead of answering. Who does and says more in the same packet has said
/// in clear what was to be encrypted: malformed.
pub fn is_tls_request(packet: &[u8]) -> Result<bool, Malformed> {
    let capabilities = PayloadReader::new(packet).u32()?;
    match capabilities & capability::SSL {
        0 => Ok(false),
        _ if packet.len() == TLS_REQUEST_BYTES => Ok(true),
        _ => Err(Malformed),
    }
}

/// Decodes the client's answer to a greeting that `offered` these capabilities. Only protocol 41 is served;
/// anything older, and a request for TLS that was not offered, is malformed.
pub fn decode_response(packet: &[u8], offered: u32) -> Result<HandshakeResponse<'_>, Malformed> {
    let mut cursor = PayloadReader::new(packet);
    let capabilities = cursor.u32()? & offered;
    if capabilities & capability::PROTOCOL_41 == 0 || capabilities & capability::SECURE_CONNECTION == 0 {
        return Err(Malformed);
    }
    let _packet_bytes_max = cursor.u32()?;
    let charset = cursor.u8()?;
    cursor.take(23)?;
    let user = cursor.nul_terminated()?;
    let auth_response = read_auth_response(capabilities, &mut cursor)?;
    let database = read_database(capabilities, &mut cursor);
    let plugin = read_plugin(capabilities, &mut cursor);
    if capabilities & capability::CONNECT_ATTRS != 0 && !cursor.is_empty() {
        cursor.length_encoded_bytes()?;
    }
    let zstd_level = cursor.u8().unwrap_or_default();
    Ok(HandshakeResponse { capabilities, charset, user, auth_response, database, plugin, zstd_level })
}

/// Decodes COM_CHANGE_USER after its command byte.
pub fn decode_change_user(capabilities: u32, arguments: &[u8]) -> Result<HandshakeResponse<'_>, Malformed> {
    let mut cursor = PayloadReader::new(arguments);
    let user = cursor.nul_terminated()?;
    let length = cursor.u8()?;
    let auth_response = cursor.take(usize::from(length))?;
    let database = Some(cursor.nul_or_end()).filter(|name| !name.is_empty());
    // Clients may end here; the charset is two bytes in this packet.
    let charset = cursor.u16().map_or(0, |id| id as u8);
    let plugin = read_plugin(capabilities, &mut cursor);
    Ok(HandshakeResponse { capabilities, charset, user, auth_response, database, plugin, zstd_level: 0 })
}

fn read_auth_response<'a>(capabilities: u32, cursor: &mut PayloadReader<'a>) -> Result<&'a [u8], Malformed> {
    if capabilities & capability::PLUGIN_AUTH_LENENC != 0 {
        cursor.length_encoded_bytes()
    } else {
        let length = cursor.u8()?;
        cursor.take(usize::from(length))
    }
}

fn read_database<'a>(capabilities: u32, cursor: &mut PayloadReader<'a>) -> Option<&'a [u8]> {
    if capabilities & capability::CONNECT_WITH_DB == 0 {
        return None;
    }
    Some(cursor.nul_or_end()).filter(|name| !name.is_empty())
}

fn read_plugin<'a>(capabilities: u32, cursor: &mut PayloadReader<'a>) -> Option<&'a [u8]> {
    if capabilities & capability::PLUGIN_AUTH == 0 {
        return None;
    }
    Some(cursor.nul_or_end()).filter(|name| !name.is_empty())
}

/// Payload that asks the client to authenticate by another method.
pub fn auth_switch(plugin: &str, salt: &[u8; SALT_BYTES]) -> Vec<u8> {
    let mut payload = vec![0xfe];
    payload.extend_from_slice(plugin.as_bytes());
    payload.push(0);
    payload.extend_from_slice(salt);
    payload.push(0);
    payload
}

/// Payload with more data of an authentication method.
pub fn auth_more(data: &[u8]) -> Vec<u8> {
    let mut payload = vec![0x01];
    payload.extend_from_slice(data);
    payload
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn response(capabilities: u32, tail: &[u8]) -> Vec<u8> {
        let mut bytes = capabilities.to_le_bytes().to_vec();
        bytes.extend_from_slice(&[0, 0, 0, 1, 45]);
        bytes.extend_from_slice(&[0; 23]);
        bytes.extend_from_slice(tail);
        bytes
    }

    #[test]
    fn a_complete_response() {
        let bytes = response(capability::OFFERED, b"root\0\x02ab\x05sbtest\0mysql_native_password\0\x00");
        // CONNECT_WITH_DB is NUL-terminated, so the length-like byte belongs to the name.
        let got = decode_response(&bytes, capability::OFFERED).unwrap();
        assert_eq!(got.user, b"root");
        assert_eq!(got.auth_response, b"ab");
        assert_eq!(got.database, Some(&b"\x05sbtest"[..]));
        assert_eq!(got.plugin, Some(&b"mysql_native_password"[..]));
    }

    #[test]
    fn the_level_is_behind_the_attributes() {
        let offered = capability::OFFERED | capability::ZSTD_COMPRESSION;
        let level = |capabilities: u32, tail: &[u8]| {
            let bytes = response(capabilities, &[&b"root\0\0db\0caching_sha2_password\0"[..], tail].concat());
            decode_response(&bytes, offered).map(|response| response.zstd_level)
        };
        assert_eq!(level(offered, b"\x04\x01a\x01b\x07"), Ok(7));
        assert_eq!(level(offered, b"\x04\x01a\x01b"), Ok(0));
        assert_eq!(level(offered, b""), Ok(0));
        assert_eq!(level(offered, b"\x09\x01a\x01b\x07"), Err(Malformed));
        assert_eq!(level(offered & !capability::CONNECT_ATTRS, b"\x07"), Ok(7));
    }

    #[test]
    fn old_protocols_and_long_password_lengths_are_refused() {
        assert!(decode_response(&response(0, b"root\0\0"), capability::OFFERED).is_err());
        let capabilities = capability::PROTOCOL_41 | capability::SECURE_CONNECTION;
        assert!(decode_response(&response(capabilities, b"root\0\xfbxx"), capability::OFFERED).is_err());
        let lenenc = capabilities | capability::PLUGIN_AUTH_LENENC;
        assert!(
            decode_response(
                &response(lenenc, b"root\0\xfe\xff\xff\xff\xff\xff\xff\xff\xffxx"),
                capability::OFFERED
            )
            .is_err()
        );
        assert!(decode_response(&response(capabilities, b"root"), capability::OFFERED).is_err());
    }

    #[test]
    fn a_request_for_tls_is_that_and_nothing_more() {
        assert_eq!(is_tls_request(&response(capability::SSL, b"")), Ok(true));
        assert_eq!(is_tls_request(&response(0, b"")), Ok(false));
        assert_eq!(is_tls_request(&response(capability::SSL, b"root\0\0")), Err(Malformed));
        assert_eq!(is_tls_request(b"\0\x08"), Err(Malformed));
    }

    #[test]
    fn change_user_with_and_without_its_tail() {
        let capabilities = capability::OFFERED;
        let got = decode_change_user(capabilities, b"u\0\x00db\0\x2d\x00caching_sha2_password\0").unwrap();
        assert_eq!((got.database, got.charset), (Some(&b"db"[..]), 45));
        assert_eq!(got.plugin, Some(&b"caching_sha2_password"[..]));
        let got = decode_change_user(capabilities, b"u\0\x00").unwrap();
        assert_eq!((got.database, got.plugin), (None, None));
        assert!(decode_change_user(capabilities, b"u\0\x05ab").is_err());
    }
}
