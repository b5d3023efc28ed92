//! Clients that do not speak the protocol: before the login and after it. Other clients are served
//! meanwhile, and none of it leaks memory.

use anyhow::{Context, Result, bail, ensure};
use disk::Random;
use lab::server_process::{Program, ServerProcess};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

/// Not garbage: root may do that.
const COM_SHUTDOWN: u8 = 8;
const CONNECTIONS: usize = 400;
/// What the server may take more at most after all of it.
const MEMORY: u64 = 200 << 20;
/// CLIENT_PROTOCOL_41, CLIENT_SECURE_CONNECTION, CLIENT_PLUGIN_AUTH, CLIENT_TRANSACTIONS.
const CAPABILITIES: u32 = 0x0000_0200 | 0x0000_8000 | 0x0008_0000 | 0x0000_2000;

/// A connection that speaks packets, right ones and others.
struct Raw {
    stream: TcpStream,
}

impl Raw {
    fn open(server: &ServerProcess) -> Result<Raw> {
        let stream = TcpStream::connect(("127.0.0.1", server.port))?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        stream.set_nodelay(true)?;
        let mut raw = Raw { stream };
        let greeting = raw.read()?.context("no greeting")?;
        ensure!(greeting.1.first() == Some(&10), "the greeting is {greeting:?}");
        Ok(raw)
    }

    /// Logs in as root without a password.
    fn logged_in(server: &ServerProcess) -> Result<Raw> {
        let mut raw = Raw::open(server)?;
        let mut login = CAPABILITIES.to_le_bytes().to_vec();
        login.extend((16_u32 << 20).to_le_bytes());
        login.push(45);
        login.extend([0; 23]);
        login.extend(b"root\0");
        login.push(0);
        login.extend(b"mysql_native_password\0");
        raw.write(1, &login)?;
        loop {
            let (sequence, packet) = raw.read()?.context("closed at the login")?;
            match packet.first() {
                Some(0) => return Ok(raw),
                // Another plugin, or more of it: an empty password is an empty answer for all of them.
                Some(0xfe) => raw.write(sequence + 1, &[])?,
                Some(1) => {}
                _ => bail!("the login is answered with {packet:?}"),
            }
        }
    }

    fn write(&mut self, sequence: u8, payload: &[u8]) -> Result<()> {
        let mut packet = (payload.len() as u32).to_le_bytes()[..3].to_vec();
        packet.push(sequence);
        packet.extend(payload);
        Ok(self.stream.write_all(&packet)?)
    }

    /// The next packet with its sequence number; `None` when the server closed the connection.
    fn read(&mut self) -> Result<Option<(u8, Vec<u8>)>> {
        let mut header = [0; 4];
        if !read_or_closed(&mut self.stream, &mut header)? {
            return Ok(None);
        }
        let length = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
        let mut payload = vec![0; length];
        Ok(read_or_closed(&mut self.stream, &mut payload)?.then_some((header[3], payload)))
    }

    /// Reads what comes until the server closes; a server that says nothing for the read timeout is an error.
    fn read_to_close(&mut self) -> Result<()> {
        while self.read()?.is_some() {}
        Ok(())
    }

    /// The number of the error that answers a command.
    fn error_of(&mut self, command: &[u8]) -> Result<u16> {
        self.write(0, command)?;
        self.error()
    }

    fn error(&mut self) -> Result<u16> {
        match self.read()? {
            Some((_, packet)) if packet.first() == Some(&0xff) && packet.len() > 3 => {
                Ok(u16::from_le_bytes([packet[1], packet[2]]))
            }
            other => bail!("not an error: {other:?}"),
        }
    }

    fn works(&mut self) -> Result<()> {
        self.write(0, &[0x0e])?;
        let answer = self.read()?;
        ensure!(
            answer.as_ref().is_some_and(|(_, packet)| packet.first() == Some(&0)),
            "ping gives {answer:?}"
        );
        Ok(())
    }
}

/// `false`: closed or reset before the first byte, or in the middle.
fn read_or_closed(stream: &mut TcpStream, into: &mut [u8]) -> Result<bool> {
    match stream.read_exact(into) {
        Ok(()) => Ok(true),
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe
            ) =>
        {
            Ok(false)
        }
        Err(error) => Err(error).context("the server neither answers nor closes"),
    }
}

pub fn check(program: &Program, place: &Path, seed: u64) -> Result<()> {
    let server = ServerProcess::start(program, place, &["--max-connections=600", "--connect-timeout=5"])?;
    server.feed("", "CREATE DATABASE shop; CREATE TABLE shop.item (id INT PRIMARY KEY); INSERT INTO shop.item VALUES (1);")?;
    let memory = server.peak_memory()?;
    known_mistakes(&server).context("known mistakes")?;
    let mut random = Random::new(seed);
    // All open at once, so that those that wait for more do not keep others out.
    let mut open = Vec::new();
    for number in 0..CONNECTIONS {
        let raw = if number % 2 == 0 { Raw::open(&server) } else { Raw::logged_in(&server) };
        let mut raw = raw.with_context(|| format!("connection {number}"))?;
        let garbage = garbage(&mut random);
        // The server may close in the middle of it.
        let _ = raw.stream.write_all(&garbage);
        if random.one_in(2) {
            let _ = raw.stream.shutdown(std::net::Shutdown::Write);
        }
        open.push(raw);
        if number % 50 == 0 {
            ensure!(server.ask("shop", "SELECT COUNT(*) FROM item")? == "1", "another client");
        }
    }
    drop(open);
    ensure!(server.ask("shop", "SELECT COUNT(*) FROM item")? == "1", "another client, afterwards");
    let grown = server.peak_memory()?.saturating_sub(memory);
    ensure!(grown < MEMORY, "{grown} bytes more memory");
    println!("packets: {CONNECTIONS} connections with garbage, {} KiB more memory", grown >> 10);
    server.stop()?;
    Ok(())
}

/// Mistakes with one right answer each.
fn known_mistakes(server: &ServerProcess) -> Result<()> {
    let mut raw = Raw::logged_in(server)?;
    for (what, command, code) in [
        ("an unknown command", &[0xc8][..], 1047),
        ("a statement that does not parse", b"\x03SELEC 1", 1064),
        ("a statement that is not UTF-8", b"\x03SELECT \xff\xfe FROM nowhere \xc3\x28", 1064),
        ("an empty statement", b"\x03", 1065),
        ("executing a statement that is not there", b"\x17\x63\0\0\0\0\x01\0\0\0", 1243),
        ("an unknown database", b"\x02nowhere", 1049),
    ] {
        let answer = raw.error_of(command).with_context(|| what.to_owned())?;
        // A byte that is no letter may as well be part of a name that is unknown.
        let fits = answer == code || (what.contains("UTF-8") && [1054, 1146, 1046, 1300].contains(&answer));
        ensure!(fits, "{what}: error {answer} instead of {code}");
        raw.works().with_context(|| format!("after {what}"))?;
    }
    // A parameter of an unknown type: prepare `SELECT ?`, bind type 0x42.
    raw.write(0, b"\x16SELECT ?")?;
    let (_, prepared) = raw.read()?.context("closed at a prepare")?;
    ensure!(prepared.first() == Some(&0), "prepare: {prepared:?}");
    let id = prepared.get(1..5).context("a short answer to prepare")?.to_vec();
    for _ in 0..4 {
        raw.read()?;
    }
    let execute = [&[0x17][..], &id, &[0, 1, 0, 0, 0, 0, 1, 0x42, 0, 1, 2, 3]].concat();
    let answer = raw.error_of(&execute).context("an unknown parameter type")?;
    ensure!(answer != 0, "an unknown parameter type");
    raw.works().context("after an unknown parameter type")?;

    let mut raw = Raw::logged_in(server)?;
    raw.write(7, b"\x03SELECT 1")?;
    let answer = raw.error().context("a wrong sequence number")?;
    ensure!(answer == 1156, "a wrong sequence number: error {answer} instead of 1156");
    raw.read_to_close()?;

    // More than max_allowed_packet (64 MiB by default), in parts of 16 MiB.
    let mut raw = Raw::logged_in(server)?;
    let part = vec![b'x'; 0xff_ffff];
    for sequence in 0..5 {
        // The server may have had enough before the last part.
        if raw.write(sequence, &part).is_err() {
            break;
        }
    }
    let answer = raw.error();
    if let Ok(code) = answer {
        ensure!(code == 1153, "a packet over the limit: error {code} instead of 1153");
    }
    Ok(())
}

/// What a broken client may send: noise, a header that promises more than comes, random commands, cut-off
/// ones.
fn garbage(random: &mut Random) -> Vec<u8> {
    let mut noise =
        |most: usize| -> Vec<u8> { (0..1 + random.below(most)).map(|_| random.below(256) as u8).collect() };
    let body = noise(300);
    let kind = noise(1)[0] % 4;
    match kind {
        0 => body,
        1 => [&[0xff, 0xff, 0xff, 0][..], &body].concat(),
        2 if body[0] != COM_SHUTDOWN => [&(body.len() as u32).to_le_bytes()[..3], &[0], &body].concat(),
        _ => {
            let mut all = Vec::new();
            for _ in 0..20 {
                let mut packet = noise(40);
                packet[0] %= 0x20;
                if packet[0] == COM_SHUTDOWN {
                    continue;
                }
                all.extend(&(packet.len() as u32).to_le_bytes()[..3]);
                all.push(0);
                all.extend(packet);
            }
            all
        }
    }
}
