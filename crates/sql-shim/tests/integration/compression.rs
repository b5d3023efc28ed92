//! The compressed protocol over real sockets, and clients that do not keep to it.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::io::Write;

use crate::support::engine::Engine;
use crate::support::{
    CAPABILITIES, COMPRESS, Client, TestServer, ZSTD, all, error_code, one, packed_header, packet,
};
use sql_shim::auth::accounts::Accounts;
use sql_shim::auth::native;
use sql_shim::server::runtime::RuntimeKind;

const RUNTIMES: [RuntimeKind; 2] = [RuntimeKind::Uring, RuntimeKind::Epoll];
const ALGORITHMS: [u32; 2] = [COMPRESS, ZSTD];
const LOCAL_FILES: u32 = 1 << 7;

fn login(server: &TestServer, capabilities: u32) -> Client {
    let mut client = server.connect();
    let reply = client.log_in("root", b"", native::PLUGIN, CAPABILITIES | capabilities, None);
    assert_eq!(reply.first(), Some(&0), "{reply:?}");
    client
}

fn seen(client: &mut Client) -> Vec<(usize, u8, usize)> {
    std::mem::take(&mut client.packed.as_mut().unwrap().seen)
}

#[test]
fn what_is_small_is_stored_and_what_is_large_is_compressed() {
    for runtime in RUNTIMES {
        for algorithm in ALGORITHMS {
            let server = TestServer::root(runtime);
            let mut client = login(&server, algorithm);
            assert_eq!(client.command(&[0x0e]), [0, 0, 0, 2, 0, 0, 0]);
            assert_eq!(seen(&mut client), [(11, 1, 0)]);
            let first = client.query("rows 20000 1000");
            let rows = client.rows(&first);
            assert!(rows.len() == 20_000 && rows.iter().all(|row| row.len() == 1003));
            let packets = seen(&mut client);
            assert!(packets.len() > 200, "a large reply leaves in pieces, whose numbers begin again");
            let sent: usize = packets.iter().map(|(length, ..)| length + 7).sum();
            assert!(sent < 400_000, "{sent} bytes for 20 MB");
            // A command of 17 MiB, and a row that is as long.
            let text = format!("echo {}", "a".repeat(17 << 20));
            let first = client.query(&text);
            for _ in 0..first[0] + 1 {
                client.receive().unwrap();
            }
            let (one, two) = (client.receive().unwrap(), client.receive().unwrap());
            assert_eq!(one.len() + two.len(), text.len() + 9);
            client.receive().unwrap();
            assert_eq!(client.text("echo after"), "echo after");
            let counters = &server.server.status;
            let received = counters.sum(sql_shim::status::Counter::BytesReceived);
            let sent = counters.sum(sql_shim::status::Counter::BytesSent);
            assert!(received < 1 << 20 && sent < 2 << 20, "{received} and {sent}: as they went");
        }
    }
}

#[test]
fn pipelined_commands_and_several_results() {
    for algorithm in ALGORITHMS {
        let server = TestServer::root(RuntimeKind::Uring);
        let mut client = login(&server, algorithm);
        // In packets of their own, in pieces that fall anywhere.
        let mut burst = Vec::new();
        for number in 0..100 {
            let packed = client.packed.as_mut().unwrap();
            packed.sequence = 0;
            burst.extend(packed.pack(&packet(0, format!("\x03echo {number:080}").as_bytes())));
        }
        for piece in burst.chunks(7) {
            client.send_raw(piece);
        }
        let expect = |client: &mut Client, text: &str| {
            client.sequence = 1;
            client.packed.as_mut().unwrap().sequence = 1;
            let first = client.receive().unwrap();
            assert_eq!(client.rows(&first)[0][1..], *text.as_bytes());
        };
        for number in 0..100 {
            expect(&mut client, &format!("echo {number:080}"));
        }
        // Two in one packet.
        let both = [packet(0, b"\x03echo one"), packet(0, b"\x03echo two")].concat();
        let packed = client.packed.as_mut().unwrap();
        packed.sequence = 0;
        let both = packed.pack(&both);
        client.send_raw(&both);
        expect(&mut client, "echo one");
        expect(&mut client, "echo two");
        let first = client.query("two");
        assert_eq!(first, b"\x00\x03\x00\x0a\x00\x00\x00\x0aRecords: 3");
        let second = client.receive().unwrap();
        assert_eq!(client.rows(&second), [b"\x06second"]);
    }
}

#[test]
fn the_session_says_how_it_is_compressed() {
    let engine = Engine::start();
    let status = |client: &mut Client| {
        let rows = client.run("SHOW SESSION STATUS LIKE 'Compression%'").unwrap();
        rows.into_iter().map(|row| row[1].clone().unwrap()).collect::<Vec<_>>()
    };
    for (algorithm, shown) in [
        (0, ["OFF", "", "0"]),
        (COMPRESS, ["ON", "zlib", "6"]),
        (ZSTD, ["ON", "zstd", "3"]),
        (COMPRESS | ZSTD, ["ON", "zlib", "6"]),
    ] {
        let mut client = login(&engine.server, algorithm);
        assert_eq!(status(&mut client), shown);
        // There is none of the server.
        assert_eq!(client.run("SHOW GLOBAL STATUS LIKE 'Compression%'").unwrap().len(), 0);
    }
    engine.finish();
}

/// What the greeting offers, of the two.
fn offered(client: &Client) -> u32 {
    let end = client.greeting.iter().position(|byte| *byte == 0).unwrap();
    let at = |offset: usize| u32::from(client.greeting[end + offset]);
    let capabilities = at(14) | at(15) << 8 | at(19) << 16 | at(20) << 24;
    capabilities & (COMPRESS | ZSTD)
}

#[test]
fn the_setting_says_what_is_offered() {
    let engine = Engine::start();
    let mut client = engine.root();
    let set = "SET GLOBAL protocol_compression_algorithms = ";
    for (list, expected) in [
        ("'zlib,zstd,uncompressed'", COMPRESS | ZSTD),
        ("'ZSTD,uncompressed,'", ZSTD),
        ("'uncompressed'", 0),
        ("'zlib'", COMPRESS),
    ] {
        all(&mut client, &[&format!("{set}{list}")]);
        assert_eq!(offered(&engine.server.connect()), expected, "{list}");
    }
    // Who would not be compressed does not come in, whatever its password.
    let mut refused = engine.server.connect();
    let reply = refused.log_in("root", b"", native::PLUGIN, CAPABILITIES, None);
    assert_eq!(error_code(&reply), 3922);
    assert!(refused.is_closed());
    login(&engine.server, COMPRESS);
    for wrong in ["''", "'lz4'", "'zlib, zstd'", "'zlib,zlib,zstd,uncompressed'", "NULL"] {
        assert_eq!(client.run(&format!("{set}{wrong}")).unwrap_err().0, 1231, "{wrong}");
    }
    assert_eq!(client.run(&format!("{set}7")).unwrap_err().0, 1232);
    assert_eq!(client.run("SET protocol_compression_algorithms = 'zlib'").unwrap_err().0, 1229);
    assert_eq!(one(&mut client, "SELECT @@protocol_compression_algorithms"), "zlib");
    all(&mut client, &[&format!("{set}DEFAULT")]);
    assert_eq!(one(&mut client, "SELECT @@protocol_compression_algorithms"), "zlib,zstd,uncompressed");
    engine.finish();
}

#[test]
fn a_level_that_zstd_does_not_have_is_refused() {
    let server = TestServer::root(RuntimeKind::Uring);
    for level in [0u8, 1, 22, 23, 255] {
        let mut client = server.connect();
        let mut response = (CAPABILITIES | ZSTD).to_le_bytes().to_vec();
        response.extend_from_slice(&[0, 0, 0, 1, 45]);
        response.extend_from_slice(&[0; 23]);
        response.extend_from_slice(b"root\0\0mysql_native_password\0");
        response.push(level);
        client.send(&response);
        let reply = client.finish_login(b"");
        if (1..=22).contains(&level) {
            assert_eq!(reply[0], 0, "{level}");
        } else {
            assert_eq!(error_code(&reply), 3923, "{level}");
            assert!(client.is_closed());
        }
    }
}

/// Each ends the connection with an error, and nothing of it is executed.
#[test]
fn packets_that_are_not_what_they_say() {
    for runtime in RUNTIMES {
        for algorithm in ALGORITHMS {
            let server = TestServer::root(runtime);
            let compressed = |bytes: &[u8]| match algorithm {
                COMPRESS => {
                    let mut stream = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
                    stream.write_all(bytes).unwrap();
                    stream.finish().unwrap()
                }
                _ => zstd::bulk::compress(bytes, 3).unwrap(),
            };
            let command = packet(0, &[b"\x03echo ", &[b'x'; 100][..]].concat());
            let good = compressed(&command);
            let bomb = compressed(&vec![0; 100 << 20]);
            let is = |length: usize, unpacked: usize, bytes: &[u8]| {
                [packed_header(length, 0, unpacked), bytes.to_vec()].concat()
            };
            let cut = &good[..good.len() - 2];
            for (number, (bytes, code)) in [
                (is(good.len(), command.len() + 1, &good), 1157),
                (is(good.len(), command.len() - 1, &good), 1157),
                (is(good.len(), 0xff_ffff, &good), 1157),
                (is(good.len() + 1, command.len(), &[&good[..], &[0]].concat()), 1157),
                (is(cut.len(), command.len(), cut), 1157),
                (is(bomb.len(), 0xff_ffff, &bomb), 1157),
                (is(bomb.len(), 100, &bomb), 1157),
                (is(5, 100, b"wrong"), 1157),
                ([packed_header(5, 1, 0), packet(0, &[0x0e])].concat(), 1156),
            ]
            .into_iter()
            .enumerate()
            {
                let mut client = login(&server, algorithm);
                client.send_raw(&bytes);
                client.packed.as_mut().unwrap().sequence = u8::from(code == 1157);
                client.sequence = client.packed.as_ref().unwrap().sequence;
                let reply = client.receive().unwrap();
                assert_eq!(error_code(&reply), code, "{number}");
                assert!(client.is_closed());
            }
            // Too long, by its header alone.
            server.server.variables.set_at_start("max_allowed_packet", "1M").unwrap();
            let mut client = login(&server, algorithm);
            client.send_raw(&packed_header(100, 0, 0xff_ffff));
            client.sequence = 1;
            client.packed.as_mut().unwrap().sequence = 1;
            assert_eq!(error_code(&client.receive().unwrap()), 1153);
            // Cut off: the client is gone.
            let client = login(&server, algorithm);
            (&client.stream).write_all(&is(1000, 2000, &good)).unwrap();
            drop(client);
            assert_eq!(login(&server, algorithm).text("echo others"), "echo others");
        }
    }
}

#[test]
fn exchanges_go_on_compressed() {
    for algorithm in ALGORITHMS {
        let engine = Engine::start();
        engine.server.server.variables.set_at_start("local_infile", "ON").unwrap();
        let mut client = login(&engine.server, algorithm | LOCAL_FILES);
        all(&mut client, &["CREATE DATABASE d", "USE d", "CREATE TABLE t (a INT PRIMARY KEY, b LONGBLOB)"]);
        // A file of the client, in packets of all lengths.
        let file: String = (0..5000).map(|number| format!("{number}\tvalue {number}\n")).collect();
        assert_eq!(client.query("LOAD DATA LOCAL INFILE 'file' INTO TABLE t"), b"\xfbfile");
        for piece in file.as_bytes().chunks(7001) {
            client.send(piece);
        }
        client.send(b"");
        let reply = client.receive().unwrap();
        assert!(reply.starts_with(&[0, 0xfc, 0x88, 0x13]), "{reply:?}");
        assert_eq!(one(&mut client, "SELECT COUNT(*) FROM t"), "5000");
        // All of it in one packet, as MySQL's client sends it.
        all(&mut client, &["TRUNCATE t"]);
        assert_eq!(client.query("LOAD DATA LOCAL INFILE 'file' INTO TABLE t"), b"\xfbfile");
        let whole = [packet(2, b"1\tone\n"), packet(3, &file.as_bytes()[20..]), packet(4, b"")].concat();
        let packed = client.packed.as_mut().unwrap().pack(&whole);
        client.send_raw(&packed);
        client.sequence = client.packed.as_ref().unwrap().sequence;
        assert_eq!(client.receive().unwrap()[0], 0);
        assert_eq!(one(&mut client, "SELECT b FROM t WHERE a = 1"), "one");
        // One that ends amid it.
        assert_eq!(client.query("LOAD DATA LOCAL INFILE 'file' REPLACE INTO TABLE t"), b"\xfbfile");
        client.send_raw(&[packed_header(3, 9, 100), b"abc".to_vec()].concat());
        assert!(client.is_closed());
        let mut client = login(&engine.server, algorithm);
        all(&mut client, &["USE d", "CREATE USER u IDENTIFIED WITH mysql_native_password BY 'pw'"]);
        // A value of 20 MiB there and back.
        all(&mut client, &["SET GLOBAL max_allowed_packet = 64 << 20"]);
        let mut client = login(&engine.server, algorithm);
        all(&mut client, &["USE d"]);
        let value: String =
            (0..20u32 << 17).map(|number| format!("{:08x}", number.wrapping_mul(40_503))).collect();
        all(&mut client, &[&format!("REPLACE INTO t VALUES (1, '{value}')")]);
        let sum = "SELECT COUNT(*), LENGTH(MAX(b)) FROM t WHERE a = 1";
        assert_eq!(client.run(sum).unwrap()[0][1].as_deref(), Some("20971520"));
        let first = client.query("SELECT b FROM t WHERE a = 1");
        client.receive().unwrap();
        assert_eq!((first, client.receive().unwrap()[0]), (vec![1], 0xfe));
        let (one, two) = (client.receive().unwrap(), client.receive().unwrap());
        assert!([&one[9..], &two[..]].concat() == value.as_bytes());
        client.receive().unwrap();
        // Prepared statements and their rows; cursors are not opened.
        let prepared = client.command(b"\x16SELECT REPEAT('x', 300) WHERE ? = 5");
        assert_eq!(prepared[..5], [0, 1, 0, 0, 0]);
        (0..4).for_each(|_| drop(client.receive().unwrap()));
        let first = client.command(&[0x17, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0, 1, 8, 0, 5, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(client.rows(&first)[0].len(), 2 + 3 + 300);
        assert_eq!(error_code(&client.command(&[0x1c, 1, 0, 0, 0, 1, 0, 0, 0])), 1421);
        // Another user.
        client.sequence = 0;
        client.send(b"\x11u\0\0\0\x2d\0mysql_native_password\0");
        assert_eq!(client.finish_login(b"pw")[0], 0);
        assert_eq!(self::one(&mut client, "SELECT REPEAT(USER(), 1)"), "u@localhost");
        client.sequence = 0;
        client.send(b"\x11u\0\0\0\x2d\0mysql_native_password\0");
        assert_eq!(error_code(&client.finish_login(b"wrong")), 1045);
        assert!(client.is_closed());
        engine.finish();
    }
}

/// Killed while its reply is compressed and written: it ends, and its thread serves others.
#[test]
fn a_client_that_does_not_read() {
    for algorithm in ALGORITHMS {
        let engine = Engine::start();
        let mut client = login(&engine.server, algorithm);
        all(&mut client, &["SET cte_max_recursion_depth = 1000000"]);
        client.sequence = 0;
        client.send(
            b"\x03WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 100000) \
              SELECT i, RANDOM_BYTES(1000) FROM n",
        );
        let mut other = engine.root();
        let id = client.connection_id();
        // Amid a reply of 100 MB, which cannot end: nobody reads it.
        while engine.server.server.status.sum(sql_shim::status::Counter::BytesSent) < 100_000 {
            std::thread::yield_now();
        }
        all(&mut other, &[&format!("KILL {id}")]);
        while engine.server.server.connections.get(id).is_some() {
            std::thread::yield_now();
        }
        assert_eq!(login(&engine.server, algorithm).run("SELECT 1").unwrap().len(), 1);
        engine.finish();
    }
}

#[test]
fn over_a_local_socket_and_other_accounts_too() {
    let accounts = Accounts::in_memory();
    let server = TestServer::start(RuntimeKind::Uring, accounts, None);
    // Nothing is compressed before the login is done: the error is in clear.
    let mut client = server.connect();
    let reply = client.log_in("root", b"", native::PLUGIN, CAPABILITIES | COMPRESS, Some("missing"));
    assert_eq!(error_code(&reply), 1049);
    assert!(client.is_closed());
}
