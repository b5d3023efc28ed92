//! Commands of a logged-in client.

use super::payload_reader::{Malformed, PayloadReader};
use super::{capability, query_attributes};

/// A command as the client sent it; text is bytes, whatever its encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Command<'a> {
    Quit,
    InitDb(&'a [u8]),
    /// The statement, without the attributes before it.
    Query(&'a [u8]),
    FieldList {
        table: &'a [u8],
        pattern: &'a [u8],
    },
    CreateDb(&'a [u8]),
    DropDb(&'a [u8]),
    Refresh,
    Shutdown,
    Statistics,
    ProcessInfo,
    ProcessKill(u32),
    Debug,
    Ping,
    /// Everything after the command byte; decoded with the connection's capabilities.
    ChangeUser(&'a [u8]),
    Prepare(&'a [u8]),
    /// `arguments` follow the statement id and are decoded with the statement's parameters.
    Execute {
        statement: u32,
        arguments: &'a [u8],
    },
    SendLongData {
        statement: u32,
        parameter: u16,
        data: &'a [u8],
    },
    CloseStatement(u32),
    ResetStatement(u32),
    /// 0 switches multi-statements on, 1 off.
    SetOption(u16),
    Fetch {
        statement: u32,
    },
    ResetConnection,
    /// A command byte nobody serves here.
    Unknown(u8),
}

/// Decodes a command packet of a client with these capabilities.
pub fn decode(packet: &[u8], capabilities: u32) -> Result<Command<'_>, Malformed> {
    let mut cursor = PayloadReader::new(packet);
    let command = match cursor.u8()? {
        0x01 => Command::Quit,
        0x02 => Command::InitDb(cursor.rest()),
        0x03 => {
            if capabilities & capability::QUERY_ATTRIBUTES != 0 {
                query_attributes::skip(&mut cursor)?;
            }
            Command::Query(cursor.rest())
        }
        0x04 => Command::FieldList { table: cursor.nul_or_end(), pattern: cursor.nul_or_end() },
        0x05 => Command::CreateDb(cursor.rest()),
        0x06 => Command::DropDb(cursor.rest()),
        0x07 => Command::Refresh,
        0x08 => Command::Shutdown,
        0x09 => Command::Statistics,
        0x0a => Command::ProcessInfo,
        0x0c => Command::ProcessKill(cursor.u32()?),
        0x0d => Command::Debug,
        0x0e => Command::Ping,
        0x11 => Command::ChangeUser(cursor.rest()),
        0x16 => Command::Prepare(cursor.rest()),
        0x17 => Command::Execute { statement: cursor.u32()?, arguments: cursor.rest() },
        0x18 => {
            Command::SendLongData { statement: cursor.u32()?, parameter: cursor.u16()?, data: cursor.rest() }
        }
        0x19 => Command::CloseStatement(cursor.u32()?),
        0x1a => Command::ResetStatement(cursor.u32()?),
        0x1b => Command::SetOption(cursor.u16()?),
        0x1c => Command::Fetch { statement: cursor.u32()? },
        0x1f => Command::ResetConnection,
        other => Command::Unknown(other),
    };
    Ok(command)
}

impl Command<'_> {
    /// As SHOW PROCESSLIST names it.
    pub fn name(&self) -> &'static str {
        match self {
            Command::Quit => "Quit",
            Command::InitDb(_) => "Init DB",
            Command::Query(_) => "Query",
            Command::FieldList { .. } => "Field List",
            Command::CreateDb(_) => "Create DB",
            Command::DropDb(_) => "Drop DB",
            Command::Refresh => "Refresh",
            Command::Shutdown => "Shutdown",
            Command::Statistics => "Statistics",
            Command::ProcessInfo => "Processlist",
            Command::ProcessKill(_) => "Kill",
            Command::Debug => "Debug",
            Command::Ping => "Ping",
            Command::ChangeUser(_) => "Change user",
            Command::Prepare(_) => "Prepare",
            Command::Execute { .. } => "Execute",
            Command::SendLongData { .. } => "Long Data",
            Command::CloseStatement(_) => "Close stmt",
            Command::ResetStatement(_) => "Reset stmt",
            Command::SetOption(_) => "Set option",
            Command::Fetch { .. } => "Fetch",
            Command::ResetConnection => "Reset Connection",
            Command::Unknown(_) => "Error",
        }
    }
}
