//! The packets every reply is made of: OK, ERR, EOF, column definitions.

use sql::result::{ColumnMeta, Completion, EncodedColumns, SqlError, charset, status_flag};
use untorn::types::Charset;

use super::capability;
use super::output::{PacketOutput, put_length_encoded};

/// Writes an OK packet with the given first byte (0x00; 0xFE where it ends rows under DEPRECATE_EOF).
pub fn put_ok(output: &mut PacketOutput, header: u8, completion: &Completion<'_>) {
    output.begin();
    output.u8(header);
    output.length_encoded(completion.affected);
    output.length_encoded(completion.last_insert_id);
    output.u16(completion_status(completion));
    output.u16(completion.warnings);
    let changes = completion.session_changes.as_deref();
    if !completion.info.is_empty() || changes.is_some() {
        output.length_encoded_bytes(completion.info.as_bytes());
    }
    if let Some(changes) = changes {
        output.length_encoded_bytes(changes);
    }
    output.end();
}

/// Status flags with the bits of "more results" and of changes where they belong.
fn completion_status(completion: &Completion<'_>) -> u16 {
    let mut status = completion.status;
    if completion.more_results {
        status |= status_flag::MORE_RESULTS_EXISTS;
    }
    if completion.session_changes.is_some() {
        status |= status_flag::SESSION_STATE_CHANGED;
    }
    status
}

/// Writes an EOF packet.
pub fn put_eof(output: &mut PacketOutput, warnings: u16, status: u16) {
    output.begin();
    output.u8(0xfe);
    output.u16(warnings);
    output.u16(status);
    output.end();
}

/// Ends rows or definitions: EOF, or an OK that looks like it when the client asked for that.
pub fn put_rows_end(output: &mut PacketOutput, capabilities: u32, completion: &Completion<'_>) {
    if capabilities & capability::DEPRECATE_EOF != 0 {
        put_ok(output, 0xfe, completion);
    } else {
        put_eof(output, completion.warnings, completion_status(completion));
    }
}

/// Writes an ERR packet. Before the capabilities are known (`protocol_41` false) there is no SQLSTATE in it.
pub fn put_error(output: &mut PacketOutput, protocol_41: bool, error: &SqlError) {
    put_error_in(output, protocol_41, error, Charset::Utf8mb4);
}

/// An error to a client that wants texts in this character set.
pub fn put_error_in(output: &mut PacketOutput, protocol_41: bool, error: &SqlError, charset: Charset) {
    output.begin();
    output.u8(0xff);
    output.u16(error.code);
    if protocol_41 {
        output.u8(b'#');
        output.put(&error.sqlstate);
    }
    // MySQL cuts messages at 512 bytes; clients have buffers of that size.
    let message = charset.from_utf8_lossy(error.message.as_bytes());
    output.put(message.get(..message.len().min(511)).unwrap_or_default());
    output.end();
}

fn put_definition(bytes: &mut Vec<u8>, meta: &ColumnMeta, with_default: bool, charset: Charset) {
    let mut text = |text: &str| {
        let text = charset.from_utf8_lossy(text.as_bytes());
        put_length_encoded(bytes, text.len() as u64);
        bytes.extend_from_slice(&text);
    };
    text("def");
    text(&meta.schema);
    text(&meta.table);
    text(&meta.org_table);
    text(&meta.name);
    text(&meta.org_name);
    bytes.push(0x0c);
    bytes.extend_from_slice(&meta.charset.to_le_bytes());
    bytes.extend_from_slice(&meta.length.to_le_bytes());
    bytes.push(meta.kind);
    bytes.extend_from_slice(&meta.flags.to_le_bytes());
    bytes.push(meta.decimals);
    bytes.extend_from_slice(&[0, 0]);
    if with_default {
        match &meta.default {
            Some(default) => {
                put_length_encoded(bytes, default.len() as u64);
                bytes.extend_from_slice(default);
            }
            None => bytes.push(0xfb),
        }
    }
}

/// Sequence id that the encoded definitions of a result set start with: they follow the column count, which
/// follows the command.
pub const DEFINITIONS_SEQUENCE: u8 = 2;

/// Column definition packets, headers included, numbered from [`DEFINITIONS_SEQUENCE`].
pub fn encode_definitions(metas: &[ColumnMeta]) -> EncodedColumns {
    encode(metas, false, Charset::Utf8mb4)
}

/// The same for a client that wants texts in `latin1`, where a character is a byte.
pub fn encode_definitions_in_latin1(metas: &[ColumnMeta]) -> EncodedColumns {
    let in_latin1 = |meta: &ColumnMeta| match meta.charset {
        charset::BINARY => meta.clone(),
        _ => ColumnMeta { charset: charset::LATIN1_SWEDISH_CI, length: meta.length / 4, ..meta.clone() },
    };
    encode(&metas.iter().map(in_latin1).collect::<Vec<_>>(), false, Charset::Latin1)
}

/// The same for a client that wants nothing converted: columns that are kept in `latin1` are sent in it.
pub fn encode_definitions_as_kept(metas: &[ColumnMeta]) -> EncodedColumns {
    let as_kept = |meta: &ColumnMeta| {
        let mut meta = meta.clone();
        if meta.latin1 {
            meta.charset = charset::LATIN1_SWEDISH_CI;
            meta.length /= 4;
        }
        meta
    };
    encode(&metas.iter().map(as_kept).collect::<Vec<_>>(), false, Charset::Utf8mb4)
}

/// The same with default values, for COM_FIELD_LIST.
pub fn encode_field_list(metas: &[ColumnMeta]) -> EncodedColumns {
    encode(metas, true, Charset::Utf8mb4)
}

fn encode(metas: &[ColumnMeta], with_default: bool, charset: Charset) -> EncodedColumns {
    let mut encoded = EncodedColumns::default();
    let mut sequence = DEFINITIONS_SEQUENCE;
    for meta in metas {
        let start = encoded.bytes.len();
        encoded.bytes.extend_from_slice(&[0; 4]);
        put_definition(&mut encoded.bytes, meta, with_default, charset);
        let [a, b, c, _] = ((encoded.bytes.len() - start - 4) as u32).to_le_bytes();
        if let Some(header) = encoded.bytes.get_mut(start..start + 4) {
            header.copy_from_slice(&[a, b, c, sequence]);
        }
        sequence = sequence.wrapping_add(1);
        encoded.ends.push(encoded.bytes.len() as u32);
    }
    encoded
}

/// The protocol errors of the wire itself.
pub mod error {
    use super::SqlError;

    /// 1047, a command byte the server does not know.
    pub fn unknown_command() -> SqlError {
        SqlError::new(1047, b"08S01", "Unknown command")
    }
    /// 1835, a packet that does not hold what its layout promises.
    pub fn malformed_packet() -> SqlError {
        SqlError::new(1835, b"HY000", "Malformed communication packet.")
    }
    /// 1043.
    pub fn bad_handshake() -> SqlError {
        SqlError::new(1043, b"08S01", "Bad handshake")
    }
    /// 1153.
    pub fn packet_too_large() -> SqlError {
        SqlError::new(1153, b"08S01", "Got a packet bigger than 'max_allowed_packet' bytes")
    }
    /// 1156.
    pub fn out_of_order() -> SqlError {
        SqlError::new(1156, b"08S01", "Got packets out of order")
    }
    /// 1157.
    pub fn corrupt_packet() -> SqlError {
        SqlError::new(1157, b"08S01", "Couldn't uncompress communication packet")
    }
    /// 3922.
    pub fn wrong_compression(algorithm: &str) -> SqlError {
        SqlError::new(3922, b"HY000", format!("Invalid compression algorithm '{algorithm}'."))
    }
    /// 3923.
    pub fn wrong_compression_level() -> SqlError {
        SqlError::new(3923, b"HY000", "Invalid zstd compression level for algorithm 'zstd'.")
    }
    /// 1040.
    pub fn too_many_connections() -> SqlError {
        SqlError::new(1040, b"08004", "Too many connections")
    }
    /// 1053.
    pub fn server_shutdown() -> SqlError {
        SqlError::new(1053, b"08S01", "Server shutdown in progress")
    }
    /// 1210.
    pub fn wrong_arguments() -> SqlError {
        SqlError::new(1210, b"HY000", "Incorrect arguments to mysqld_stmt_execute")
    }
    /// 1210.
    pub fn too_few_arguments() -> SqlError {
        SqlError::new(1210, b"HY000", "Incorrect arguments to COM_STMT_EXECUTE")
    }
    /// 1105, as MySQL words it.
    pub fn long_data_too_long() -> SqlError {
        let text = "Parameter of prepared statement which is set through mysql_send_long_data() is longer than \
                    'max_allowed_packet' bytes";
        SqlError::new(1105, b"HY000", text)
    }
    /// 1243.
    pub fn unknown_statement(id: u32, command: &str) -> SqlError {
        SqlError::new(1243, b"HY000", format!("Unknown prepared statement handler ({id}) given to {command}"))
    }
    /// 1094.
    pub fn no_such_thread(id: u32) -> SqlError {
        SqlError::new(1094, b"HY000", format!("Unknown thread id: {id}"))
    }
    /// 1105: a connection whose TLS keys have encrypted as much as they may.
    pub fn keys_used_up() -> SqlError {
        let message =
            "The keys of this TLS connection are used up; the command was not executed. Connect again";
        SqlError::new(1105, b"HY000", message)
    }
    /// 4031.
    pub fn idle_too_long() -> SqlError {
        SqlError::new(
            4031,
            b"HY000",
            "The client was disconnected by the server because of inactivity. See wait_timeout and \
             interactive_timeout for configuring this behavior.",
        )
    }
}
