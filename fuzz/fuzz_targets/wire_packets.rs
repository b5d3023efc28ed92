//! Any bytes from a client: packets, the login, commands, and the parameters of a prepared statement.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sql_shim::wire::command::{self, Command};
use sql_shim::wire::compression::Algorithm;
use sql_shim::wire::handshake;
use sql_shim::wire::input::PacketInput;
use sql_shim::wire::params::ParamState;

const PACKET_LIMIT: usize = 1 << 20;

fuzz_target!(|data: &[u8]| {
    let Some((&choice, data)) = data.split_first() else { return };
    let _ = handshake::is_tls_request(data);
    let _ = handshake::decode_response(data, u32::MAX);
    let _ = handshake::decode_change_user(u32::from(choice) << 16 | 0xFFFF, data);

    // Query attributes, and packets that are compressed.
    let capabilities = if choice & 1 == 0 { 0 } else { u32::MAX };
    let mut input = PacketInput::new();
    match choice >> 6 {
        1 => input.unpack(Algorithm::Zlib),
        2 => input.unpack(Algorithm::Zstd { level: 3 }),
        _ => {}
    }
    let mut params = ParamState::default();
    input.feed(data);
    input.expect_command();
    loop {
        match input.advance(PACKET_LIMIT) {
            Ok(true) => {}
            Ok(false) if input.is_unpacking() => continue,
            _ => break,
        }
        match command::decode(input.payload(), capabilities) {
            Ok(Command::Execute { arguments, .. }) => {
                let _ = params.decode(usize::from(choice), arguments, capabilities != 0);
            }
            Ok(Command::SendLongData { parameter, data, .. }) => {
                params.append_long_data(choice.into(), parameter, data, PACKET_LIMIT);
            }
            Ok(Command::ResetStatement(_)) => params.clear_long_data(),
            Ok(other) => drop(other.name()),
            Err(_) => {}
        }
        input.release();
        input.expect_command();
    }
});
