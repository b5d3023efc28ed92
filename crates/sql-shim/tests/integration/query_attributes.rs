//! Query attributes: read over, whatever they hold, and clients that do not keep to their layout.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::support::engine::Engine;
use crate::support::{CAPABILITIES, Client, TestServer, error_code};
use sql_shim::auth::native;
use sql_shim::server::runtime::RuntimeKind;

const QUERY_ATTRIBUTES: u32 = 1 << 27;

fn login(server: &TestServer) -> Client {
    let mut client = server.connect();
    let reply = client.log_in("root", b"", native::PLUGIN, CAPABILITIES | QUERY_ATTRIBUTES, None);
    assert_eq!(reply.first(), Some(&0), "{reply:?}");
    client
}

/// What is answered is MySQL 9.7's.
#[test]
fn a_statement_is_what_follows_its_attributes() {
    let server = TestServer::root(RuntimeKind::Uring);
    let mut client = login(&server);
    let mut text = |attributes: &[u8]| {
        let first = client.command(&[&b"\x03"[..], attributes, b"echo it"].concat());
        let rows = client.rows(&first);
        assert_eq!(rows, [b"\x07echo it"]);
    };
    text(b"\0\x01");
    text(b"\x01\x01\0\x01\x08\0\x01n\x05\0\0\0\0\0\0\0");
    text(b"\x02\x01\0\x01\xfd\0\x01n\x03\0\x01n\x03abc\x05\0\0\0");
    text(b"\x01\x01\x01\x01\xfd\0\0");
    text(&[&b"\x01\x01\0\x01\xfd\0\x01n\xfd\x70\x11\x01"[..], &[b'a'; 70_000]].concat());
    text(&[&b"\x01\x01\0\x01\xfd\0\xfd\x70\x11\x01"[..], &[b'n'; 70_000], b"\x01a"].concat());
    let many =
        [&b"\xfc\x2c\x01\x01"[..], &[0; 38], b"\x01", &b"\xfd\0\x01n".repeat(300), &b"\x01a".repeat(300)];
    text(&many.concat());
    for wrong in
        [&b"\x03"[..], b"\x03\0", b"\x03\0\x02echo", b"\x03\xff\x01echo", b"\x03\xfc\xff\xff\x01echo"]
    {
        assert_eq!(error_code(&client.command(wrong)), 1835, "{wrong:?}");
    }
    assert_eq!(client.command(&[0x0e])[0], 0, "the connection lives on");
    // A client without them has its statement in the first byte.
    assert_eq!(server.login().text("echo it"), "echo it");
}

#[test]
fn a_prepared_statement_has_them_behind_its_parameters() {
    let server = TestServer::root(RuntimeKind::Uring);
    let mut client = login(&server);
    client.command(b"\x16select ?");
    (0..4).for_each(|_| drop(client.receive().unwrap()));
    let mut run = |tail: &[u8]| {
        let first = client.command(&[&[0x17, 1, 0, 0, 0, 8, 1, 0, 0, 0], tail].concat());
        if first[0] == 0xff {
            return Err(error_code(&first));
        }
        let rows = client.rows(&first);
        Ok(String::from_utf8_lossy(&rows[0][3..]).into_owned())
    };
    assert_eq!(run(b"\x01\0\x01\x08\0\0\x07\0\0\0\0\0\0\0").unwrap(), "[Int(7)]");
    assert_eq!(run(b"\x02\0\x01\x08\0\0\xfd\0\x01n\x08\0\0\0\0\0\0\0\x03abc").unwrap(), "[Int(8)]");
    assert_eq!(run(b"\x02\x02\x01\x08\0\0\xfd\0\x01n\x09\0\0\0\0\0\0\0").unwrap(), "[Int(9)]");
    assert_eq!(run(b"\x01\0\0\x0a\0\0\0\0\0\0\0").unwrap(), "[Int(10)]");
    assert_eq!(
        run(b"\x02\0\0\x0a\0\0\0\0\0\0\0\x0b\0\0\0\0\0\0\0"),
        Err(1835),
        "types of attributes are new"
    );
    assert_eq!(run(b"\0"), Err(1210));
    assert_eq!(run(b""), Err(1835));
    assert_eq!(run(b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\0\0"), Err(1835));
    assert_eq!(run(b"\x01\0\0\x0a\0\0\0\0\0\0\0").unwrap(), "[Int(10)]", "the connection lives on");
}

/// The function is a component's, which is not there: errors as MySQL has without it.
#[test]
fn nobody_asks_for_them() {
    let engine = Engine::start();
    let mut client = login(&engine.server);
    let mut run = |sql: &str| {
        let first = client.command(&[&b"\x03\0\x01"[..], sql.as_bytes()].concat());
        match first[0] {
            0xff => (error_code(&first), String::from_utf8_lossy(&first[9..]).into_owned()),
            0 => (0, String::new()),
            _ => {
                client.rows(&first);
                (0, String::new())
            }
        }
    };
    assert_eq!(run("SELECT mysql_query_attribute_string('n')"), (1046, "No database selected".into()));
    run("CREATE DATABASE d");
    run("USE d");
    for call in ["mysql_query_attribute_string('n')", "mysql_query_attribute_string()"] {
        let expected = "FUNCTION d.mysql_query_attribute_string does not exist";
        assert_eq!(run(&format!("SELECT {call}")), (1305, expected.into()));
    }
    engine.finish();
}
