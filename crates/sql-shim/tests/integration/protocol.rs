//! The protocol over real sockets, on both runtimes.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use crate::support::{CAPABILITIES, Client, DEPRECATE_EOF, TestServer, error_code, packet};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use sql_shim::auth::accounts::{Accounts, Identification};
use sql_shim::auth::{native, sha2_password};
use sql_shim::server::runtime::RuntimeKind;

const RUNTIMES: [RuntimeKind; 2] = [RuntimeKind::Uring, RuntimeKind::Epoll];

#[test]
fn greeting_offers_what_clients_need() {
    let server = TestServer::root(RuntimeKind::Epoll);
    let (one, two) = (server.connect(), server.connect());
    assert_eq!(one.greeting[0], 10);
    assert!(one.greeting[1..].starts_with(b"8.0.36-untorn-"));
    assert_ne!(one.salt(), two.salt());
    assert_ne!(one.connection_id(), two.connection_id());
    let after_salt = one.greeting.iter().position(|byte| *byte == 0).unwrap() + 5 + 9;
    let low = u16::from_le_bytes([one.greeting[after_salt], one.greeting[after_salt + 1]]);
    let status = u16::from_le_bytes([one.greeting[after_salt + 3], one.greeting[after_salt + 4]]);
    assert_eq!(low & 1, 1, "LONG_PASSWORD, or libmariadb takes us for MariaDB");
    assert_eq!(low & (1 << 11), 0, "no TLS yet");
    assert_eq!((one.greeting[after_salt + 2], status), (45, 2));
}

#[test]
fn text_and_binary_rows() {
    for runtime in RUNTIMES {
        let server = TestServer::root(runtime);
        let mut client = server.login();
        let first = client.query("types");
        let rows = client.rows(&first);
        let mut expected = Vec::new();
        for text in ["-5", "65535", "-100000", "18446744073709551615", "0.5", "1e20", "12.50"] {
            expected.push(text.len() as u8);
            expected.extend_from_slice(text.as_bytes());
        }
        expected.push(0xfb);
        for text in ["2024-02-29", "2024-02-29 01:02:03.450", "-30:01:02", "caf\u{e9}"] {
            expected.push(text.len() as u8);
            expected.extend_from_slice(text.as_bytes());
        }
        assert_eq!(rows, [expected]);

        let prepared = client.command(b"\x16types");
        assert_eq!(prepared[..], [0, 1, 0, 0, 0, 12, 0, 0, 0, 0, 0, 0]);
        for _ in 0..13 {
            client.receive().unwrap();
        }
        let first = client.command(&[0x17, 1, 0, 0, 0, 0, 1, 0, 0, 0]);
        let rows = client.rows(&first);
        let mut expected = vec![0, 0, 0x02, 0xfb, 0xff, 0xff];
        expected.extend_from_slice(&(-100_000i32).to_le_bytes());
        expected.extend_from_slice(&[0xff; 8]);
        expected.extend_from_slice(&0.5f32.to_le_bytes());
        expected.extend_from_slice(&1e20f64.to_le_bytes());
        expected.extend_from_slice(b"\x0512.50");
        expected.extend_from_slice(&[4, 0xe8, 7, 2, 29]);
        expected.extend_from_slice(&[11, 0xe8, 7, 2, 29, 1, 2, 3, 0xd0, 0xdd, 6, 0]);
        expected.extend_from_slice(&[8, 1, 1, 0, 0, 0, 6, 1, 2]);
        expected.extend_from_slice(b"\x05caf\xc3\xa9");
        assert_eq!(rows, [expected]);
    }
}

#[test]
fn digits_are_those_of_their_own_column() {
    let server = TestServer::root(RuntimeKind::Uring);
    let mut client = server.login();
    let first = client.query("digits");
    let rows = client.rows(&first);
    let mut expected = Vec::new();
    for text in ["1.50", "1.23456", "7", "", "2024-02-29", "1.500", "0000", "0"] {
        match text {
            "" => expected.push(0xfb),
            text => {
                expected.push(text.len() as u8);
                expected.extend_from_slice(text.as_bytes());
            }
        }
    }
    assert_eq!(rows, [expected]);
}

#[test]
fn ok_and_ends_of_rows_carry_status() {
    let server = TestServer::root(RuntimeKind::Uring);
    let mut client = server.login();
    assert_eq!(client.query("insert"), [0, 1, 7, 2, 0, 2, 0]);
    let first = client.query("two");
    assert_eq!(first, b"\x00\x03\x00\x0a\x00\x00\x00\x0aRecords: 3");
    let second = client.receive().unwrap();
    assert_eq!(client.rows(&second), [b"\x06second"]);

    let mut client = server.connect();
    client.log_in("root", b"", native::PLUGIN, CAPABILITIES | DEPRECATE_EOF, None);
    assert_eq!(client.query("echo"), [1]);
    client.receive().unwrap();
    assert_eq!(client.receive().unwrap(), b"\x04echo");
    assert_eq!(client.receive().unwrap(), [0xfe, 0, 0, 2, 0, 0, 0]);
}

#[test]
fn an_error_in_the_middle_of_a_row_withdraws_the_row() {
    let server = TestServer::root(RuntimeKind::Uring);
    let mut client = server.login();
    let first = client.query("fail");
    assert_eq!(client.rows(&first), Vec::<Vec<u8>>::new());
    assert_eq!(client.command(&[0x0e])[0], 0);
}

#[test]
fn prepared_statements() {
    for runtime in RUNTIMES {
        let server = TestServer::root(runtime);
        let mut client = server.login();
        assert_eq!(error_code(&client.command(b"\x16bad")), 1064);
        let prepared = client.command(b"\x16select ?");
        assert_eq!(prepared[..9], [0, 1, 0, 0, 0, 1, 0, 1, 0]);
        for _ in 0..4 {
            client.receive().unwrap();
        }
        let mut run = |tail: &[u8]| {
            let first = client.command(&[&[0x17, 1, 0, 0, 0, 0, 1, 0, 0, 0], tail].concat());
            if first[0] == 0xff {
                return Err(error_code(&first));
            }
            let rows = client.rows(&first);
            Ok(String::from_utf8_lossy(&rows[0][3..]).into_owned())
        };
        assert_eq!(run(&[0, 0, 5]), Err(1210), "no types were ever bound");
        assert_eq!(run(&[0, 1, 8, 0, 5, 0, 0, 0, 0, 0, 0, 0]).unwrap(), "[Int(5)]");
        assert_eq!(run(&[0, 0, 6, 0, 0, 0, 0, 0, 0, 0]).unwrap(), "[Int(6)]", "as sysbench re-executes");
        assert_eq!(run(&[1, 0]).unwrap(), "[Null]");
        assert_eq!(run(&[0, 1, 99, 0, 5]), Err(1210));
        assert_eq!(run(&[0]), Err(1835), "cut off");
        // Long data has no answer, then it takes the parameter's place; reset forgets it.
        client.sequence = 0;
        client.send(b"\x18\x01\0\0\0\0\0long");
        client.sequence = 0;
        client.send(b"\x18\x01\0\0\0\0\0 data");
        assert_eq!(client.command(&[0x1a, 1, 0, 0, 0])[0], 0);
        let first = client.command(&[0x17, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 1, 0, 9]);
        assert_eq!(client.rows(&first)[0][3..], b"[Int(9)]"[..]);
        client.sequence = 0;
        client.send(b"\x19\x01\0\0\0");
        let gone = client.command(&[0x17, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0]);
        assert_eq!(error_code(&gone), 1243);
        assert_eq!(error_code(&client.command(&[0x1a, 9, 0, 0, 0])), 1243);
        assert_eq!(error_code(&client.command(&[0x1c, 9, 0, 0, 0, 1, 0, 0, 0])), 1243);
    }
}

#[test]
fn the_other_commands() {
    let server = TestServer::root(RuntimeKind::Uring);
    let mut client = server.login();
    assert_eq!(client.command(&[0x0e])[0], 0);
    assert_eq!(client.command(b"\x02shop")[0], 0);
    assert_eq!(client.text("database"), "shop");
    assert_eq!(error_code(&client.command(b"\x02missing")), 1049);
    assert!(client.command(&[0x09]).starts_with(b"Uptime: "));
    assert_eq!(client.command(&[0x1b, 1, 0])[0], 0xfe);
    assert_eq!(error_code(&client.command(&[0x1b, 9, 0])), 1047);
    assert_eq!(client.command(&[0x1f])[0], 0);
    assert_eq!(client.text("resets"), "1");
    assert_eq!(client.text("database"), "");
    // COM_DEBUG, which writes nothing.
    assert_eq!(client.command(&[0x0d])[0], 0);
    for unknown in [0x0bu8, 0x12, 0x15, 0x20, 0xff] {
        assert_eq!(error_code(&client.command(&[unknown])), 1047);
    }
    assert_eq!(error_code(&client.command(&[])), 1835);
    let definition = client.command(b"\x04t1\0");
    assert!(definition.ends_with(&[0xfb]), "default NULL is part of a field list");
    assert_eq!(client.receive().unwrap()[0], 0xfe);
    assert_eq!(error_code(&client.command(&[0x0c, 99, 99, 0, 0])), 1094);
    client.sequence = 0;
    client.send(&[1]);
    assert!(client.is_closed());
}

#[test]
fn change_user_authenticates() {
    let accounts = Accounts::in_memory();
    let by = Identification {
        plugin: Some(native::PLUGIN.into()),
        password: Some(b"pw".to_vec()),
        ..Identification::default()
    };
    accounts.create("app", "%", &by, false).unwrap();
    let server = TestServer::start(RuntimeKind::Uring, accounts, None);
    let mut client = server.login();
    let change = |client: &mut Client, password: &[u8]| {
        client.sequence = 0;
        client.send(b"\x11app\0\0shop\0\x2d\0mysql_native_password\0");
        client.finish_login(password)
    };
    assert_eq!(change(&mut client, b"pw")[0], 0);
    assert_eq!(client.text("database"), "shop");
    assert_eq!(client.text("resets"), "1");
    let user = server.server.connections.get(client.connection_id()).unwrap().activity().user;
    assert_eq!(&*user, "app");
    assert_eq!(error_code(&change(&mut client, b"wrong")), 1045);
    assert!(client.is_closed());
}

#[test]
fn login_failures() {
    let accounts = Accounts::in_memory();
    for plugin in [native::PLUGIN, sha2_password::PLUGIN] {
        let by = Identification {
            plugin: Some(plugin.into()),
            password: Some(b"pw".to_vec()),
            ..Identification::default()
        };
        accounts.create(plugin, "localhost", &by, false).unwrap();
    }
    let server = TestServer::start(RuntimeKind::Uring, accounts, None);
    let try_login = |user: &str, password: &[u8], database: Option<&str>| {
        let mut client = server.connect();
        client.log_in(user, password, native::PLUGIN, CAPABILITIES, database)
    };
    assert_eq!(try_login(native::PLUGIN, b"pw", Some("shop"))[0], 0);
    assert_eq!(error_code(&try_login(native::PLUGIN, b"no", None)), 1045);
    assert_eq!(error_code(&try_login(native::PLUGIN, b"", None)), 1045);
    assert_eq!(error_code(&try_login("root", b"", Some("missing"))), 1049);
    // An account without a password, and nobody of that name: as a known name without a remembered password,
    // whichever of the two methods the name seems to have.
    assert_eq!(try_login("root", b"pw", None), [1, 4]);
    assert_eq!(try_login(sha2_password::PLUGIN, b"pw", None), [1, 4]);
    let nobody = try_login("nobody", b"pw", None);
    assert!(nobody == [1, 4] || error_code(&nobody) == 1045, "{nobody:?}");
    let mut old = server.connect();
    old.send(&[0x85, 0xa6, 0, 0, 0, b'r', 0]);
    assert_eq!(error_code(&old.receive().unwrap()), 1043);
}

#[test]
fn streams_out_of_order_and_packets_too_large() {
    for runtime in RUNTIMES {
        let server = TestServer::root(runtime);
        let mut client = server.login();
        client.send_raw(&packet(5, &[0x0e]));
        client.sequence = 0;
        assert_eq!(error_code(&client.receive().unwrap()), 1156);
        assert!(client.is_closed());

        let mut client = server.connect();
        client.send_raw(&[0, 0, 1, 1]);
        client.sequence = 1;
        assert_eq!(error_code(&client.receive().unwrap()), 1153, "64 KiB before login");
        assert!(client.is_closed());
    }
}

#[test]
fn pipelined_commands_are_answered_in_order() {
    for runtime in RUNTIMES {
        let server = TestServer::root(runtime);
        let mut client = server.login();
        let mut burst = Vec::new();
        for number in 0..100 {
            burst.extend(packet(0, format!("\x03echo {number}").as_bytes()));
        }
        // In pieces that fall anywhere.
        for piece in burst.chunks(7) {
            client.send_raw(piece);
        }
        for number in 0..100 {
            client.sequence = 1;
            let first = client.receive().unwrap();
            let text = format!("echo {number}");
            assert_eq!(client.rows(&first)[0][1..], *text.as_bytes());
        }
    }
}

#[test]
fn large_replies_and_large_packets() {
    for runtime in RUNTIMES {
        let server = TestServer::root(runtime);
        let mut client = server.login();
        let first = client.query("rows 20000 1000");
        assert_eq!(client.rows(&first).len(), 20_000);
        // A command of 17 MiB comes in two fragments, and so does its echo.
        let mut sql = b"\x03echo ".to_vec();
        sql.resize(17 << 20, b'a');
        let (head, tail) = sql.split_at(0xff_ffff);
        client.send_raw(&packet(0, head));
        client.send_raw(&packet(1, tail));
        client.sequence = 2;
        let first = client.receive().unwrap();
        for _ in 0..first[0] + 1 {
            client.receive().unwrap();
        }
        let (one, two) = (client.receive().unwrap(), client.receive().unwrap());
        assert_eq!(one.len(), 0xff_ffff);
        // The row is the statement after its length (a lead byte and eight of length, for more than 16 MiB).
        assert_eq!(one.len() + two.len(), sql.len() - 1 + 9);
        client.receive().unwrap();
        assert_eq!(client.command(&[0x0e])[0], 0);
    }
}

#[test]
fn kill_query_and_kill_connection() {
    for runtime in RUNTIMES {
        let server = TestServer::root(runtime);
        let (mut victim, mut other) = (server.login(), server.login());
        victim.sequence = 0;
        victim.send(b"\x03wait");
        let id = victim.connection_id();
        let entry = server.server.connections.get(id).unwrap();
        while entry.activity().command != "Query" {
            std::thread::yield_now();
        }
        assert_eq!(*entry.activity().statement(), *b"wait");
        entry.kill(sql::kill_switch::Kill::Query);
        assert_eq!(error_code(&victim.receive().unwrap()), 1317);
        assert_eq!(victim.command(&[0x0e])[0], 0, "the connection lives on");
        assert_eq!(other.command(&[&[0x0c], &id.to_le_bytes()[..]].concat())[0], 0);
        assert!(victim.is_closed());
    }
}

#[test]
fn too_many_connections_and_silent_clients() {
    let accounts = Accounts::in_memory();
    let by = Identification { plugin: Some(native::PLUGIN.into()), ..Identification::default() };
    accounts.create("ordinary", "localhost", &by, false).unwrap();
    let server = TestServer::start(RuntimeKind::Uring, accounts, None);
    server.server.variables.set_at_start("max_connections", "2").unwrap();
    let (one, two) = (server.login(), server.login());
    // One more comes as far as its login, and stays if it can end others.
    let mut ordinary = server.connect();
    let reply = ordinary.log_in("ordinary", b"", native::PLUGIN, CAPABILITIES, None);
    assert_eq!(error_code(&reply), 1040);
    assert!(ordinary.is_closed());
    while server.server.connections.len() > 2 {
        std::thread::yield_now();
    }
    let administrator = server.login();
    let fourth = server.connect();
    assert_eq!(error_code(&fourth.greeting), 1040);
    drop((one, two, administrator));
    server.server.variables.set_at_start("connect_timeout", "2").unwrap();
    while !server.server.connections.is_empty() {
        std::thread::yield_now();
    }
    let mut silent = server.connect();
    assert!(silent.is_closed(), "a client that does not log in is given up");
}

#[test]
fn a_killed_connection_is_told() {
    for runtime in RUNTIMES {
        let server = TestServer::root(runtime);
        let mut client = server.login();
        let entry = server.server.connections.get(client.connection_id()).unwrap();
        entry.kill(sql::kill_switch::Kill::Connection);
        client.sequence = 0;
        assert_eq!(error_code(&client.receive().unwrap()), 1053);
        assert!(client.is_closed());
    }
}

#[test]
fn many_idle_connections_and_a_stop() {
    for runtime in RUNTIMES {
        let server = TestServer::root(runtime);
        let mut clients: Vec<Client> = (0..300).map(|_| server.login()).collect();
        for client in &mut clients {
            assert_eq!(client.command(&[0x0e])[0], 0);
        }
        assert_eq!(server.server.connections.len(), 300);
        server.stop();
        assert!(clients.iter_mut().all(Client::is_closed));
    }
}

#[test]
fn garbage_ends_a_connection_and_nothing_else() {
    let server = TestServer::root(RuntimeKind::Uring);
    let mut runner = TestRunner::new(ProptestConfig { cases: 60, ..ProptestConfig::default() });
    let strategy = (any::<bool>(), prop::collection::vec(any::<u8>(), 0..400));
    runner
        .run(&strategy, |(logged_in, garbage)| {
            let mut stream = if logged_in {
                server.login().stream
            } else {
                TcpStream::connect(("127.0.0.1", server.port)).unwrap()
            };
            stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            let _ = stream.write_all(&garbage);
            let _ = stream.shutdown(Shutdown::Write);
            std::io::copy(&mut stream, &mut std::io::sink()).ok();
            Ok(())
        })
        .unwrap();
    let mut client = server.login();
    assert_eq!(client.command(&[0x0e])[0], 0);
}

proptest! {
    #[test]
    fn decoders_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), count in 0usize..20) {
        use sql_shim::wire::compression::Algorithm;
        use sql_shim::wire::{command, handshake, input::PacketInput, params::ParamState};
        for capabilities in [0, u32::MAX] {
            let _ = command::decode(&bytes, capabilities);
            let _ = command::decode(&[&[3], &bytes[..]].concat(), capabilities);
            let _ = handshake::decode_response(&bytes, capabilities);
            let _ = ParamState::default().decode(count, &bytes, capabilities != 0);
        }
        let _ = handshake::decode_change_user(u32::MAX, &bytes);
        for algorithm in [None, Some(Algorithm::Zlib), Some(Algorithm::Zstd { level: 3 })] {
            let mut input = PacketInput::new();
            if let Some(algorithm) = algorithm {
                input.unpack(algorithm);
                // A header that may be true.
                input.feed(&[bytes.len() as u8, 0, 0, 0, count as u8, 0, 0]);
            }
            input.feed(&bytes);
            loop {
                match input.advance(1 << 20) {
                    Ok(true) => {
                        input.release();
                        input.expect_command();
                    }
                    Ok(false) if input.is_unpacking() => {}
                    _ => break,
                }
            }
        }
    }
}
