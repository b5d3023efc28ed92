//! One socket type over io_uring and epoll, TCP and local sockets, in clear and encrypted.
//!
//! Buffers are handed over and come back, as io_uring wants it; the epoll side does the same so that the
//! connection is written once. An enumeration and not a generic: everything above it, the SQL executor
//! included, is compiled once.
//!
//! TLS lies between the plain socket and everybody else: once [`Socket::secure`] has been called, nothing
//! goes out in clear, and whatever comes in is a record of TLS or the end of the connection. A connection in
//! clear pays one comparison for it.

use std::future::Future;
use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_uring::buf::BoundedBuf;

use crate::tls::stream::{TlsFacts, TlsStream};
use crate::wire::output::PacketOutput;

/// An accepted socket on its way from the listener to a worker.
#[derive(Debug)]
pub enum Accepted {
    /// TCP.
    Tcp(std::net::TcpStream),
    /// Local socket.
    Unix(std::os::unix::net::UnixStream),
}

/// A connected socket.
pub struct Socket {
    plain: PlainSocket,
    tls: Option<Box<TlsStream>>,
}

/// Bytes encrypted at once.
const SEALED_PIECE_BYTES: usize = 128 * 1024;

/// A connected socket as the system has it.
enum PlainSocket {
    /// TCP through io_uring.
    UringTcp(tokio_uring::net::TcpStream),
    /// Local socket through io_uring.
    UringUnix(tokio_uring::net::UnixStream),
    /// TCP through epoll.
    Tcp(tokio::net::TcpStream),
    /// Local socket through epoll.
    Unix(tokio::net::UnixStream),
}

/// Outcome of [`Socket::exchange`], with the buffers given back.
pub struct Exchanged {
    /// Of the write.
    pub written: io::Result<()>,
    /// The buffer written.
    pub output: Vec<u8>,
    /// Of the read: bytes appended to `input`.
    pub count: io::Result<usize>,
    /// The buffer read into.
    pub input: Vec<u8>,
}

impl Accepted {
    /// Another handle of the socket.
    pub fn handle(&self) -> io::Result<OwnedFd> {
        match self {
            Accepted::Tcp(stream) => stream.as_fd().try_clone_to_owned(),
            Accepted::Unix(stream) => stream.as_fd().try_clone_to_owned(),
        }
    }
}

impl Socket {
    /// Takes the socket into the runtime of this thread.
    pub fn adopt(accepted: Accepted, uring: bool) -> io::Result<Self> {
        let plain = match accepted {
            Accepted::Tcp(stream) => {
                stream.set_nodelay(true)?;
                // A client whose machine has gone says nothing more: its transaction and its locks must not
                // stay.
                nix::sys::socket::setsockopt(&stream, nix::sys::socket::sockopt::KeepAlive, &true)
                    .map_err(io::Error::from)?;
                // io_uring waits by itself; with O_NONBLOCK it would answer EAGAIN instead.
                stream.set_nonblocking(!uring)?;
                if uring {
                    PlainSocket::UringTcp(tokio_uring::net::TcpStream::from_std(stream))
                } else {
                    PlainSocket::Tcp(tokio::net::TcpStream::from_std(stream)?)
                }
            }
            Accepted::Unix(stream) => {
                stream.set_nonblocking(!uring)?;
                if uring {
                    PlainSocket::UringUnix(tokio_uring::net::UnixStream::from_std(stream))
                } else {
                    PlainSocket::Unix(tokio::net::UnixStream::from_std(stream)?)
                }
            }
        };
        Ok(Socket { plain, tls: None })
    }

    /// From here on the connection is encrypted: `received` are bytes that came behind the request for it,
    /// which are the beginning of the handshake and nothing else.
    pub fn secure(&mut self, config: Arc<rustls::ServerConfig>, received: Vec<u8>) -> io::Result<()> {
        let tls = self.tls.insert(Box::new(TlsStream::new(config)?));
        // There are no keys yet, so this cannot give anything to read.
        tls.open(received, &mut Vec::new()).map(drop)
    }

    /// How the connection is encrypted, if it is.
    pub fn tls_facts(&self) -> Option<TlsFacts> {
        self.tls.as_ref()?.facts()
    }

    /// Writes all of `output` and waits for what the client sends next, which is appended to `input`. An
    /// io_uring gets both requests in one submission. `written` is called when the client has taken all of
    /// `output`.
    pub async fn exchange(&mut self, output: Vec<u8>, input: Vec<u8>, written: impl FnOnce()) -> Exchanged {
        match &mut self.tls {
            None => self.plain.exchange(output, input, written).await,
            // In a box, here and below: otherwise connections in clear would carry its state with them.
            Some(tls) => Box::pin(exchange_sealed(&mut self.plain, tls, output, input, written)).await,
        }
    }

    /// Appends what the client sent to `buffer`, whose spare capacity must not be empty. 0 bytes: the client
    /// is gone.
    pub async fn read(&mut self, mut buffer: Vec<u8>) -> (io::Result<usize>, Vec<u8>) {
        match &mut self.tls {
            None => self.plain.read(buffer).await,
            Some(tls) => (Box::pin(read_sealed(&mut self.plain, tls, &mut buffer)).await, buffer),
        }
    }

    /// Writes all of `buffer`.
    pub async fn write_all(&mut self, buffer: Vec<u8>) -> (io::Result<()>, Vec<u8>) {
        match &mut self.tls {
            None => self.plain.write_all(buffer).await,
            Some(tls) => (Box::pin(write_sealed(&mut self.plain, tls, &buffer)).await, buffer),
        }
    }

    /// Whether its keys might not last for the answer to another command.
    pub fn is_worn_out(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.is_worn_out())
    }

    /// Tells an encrypted client that nothing follows, so that it need not suspect that something was cut
    /// off.
    pub async fn say_end(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.seal_end();
            // Who is gone need not know.
            let _ = send_outgoing(&mut self.plain, tls).await;
        }
    }

    /// Ends the connection in both directions.
    pub fn shut_down(&self) {
        self.plain.shut_down();
    }
}

async fn send_outgoing(plain: &mut PlainSocket, tls: &mut TlsStream) -> io::Result<()> {
    let outgoing = tls.take_outgoing()?;
    if outgoing.is_empty() {
        tls.restore_outgoing(outgoing);
        return Ok(());
    }
    let (outcome, outgoing) = plain.write_all(outgoing).await;
    tls.restore_outgoing(outgoing);
    outcome.map(|()| tls.sent())
}

/// Reads until there is plain text; before the handshake is complete that is the handshake.
async fn read_sealed(
    plain: &mut PlainSocket,
    tls: &mut TlsStream,
    buffer: &mut Vec<u8>,
) -> io::Result<usize> {
    loop {
        send_outgoing(plain, tls).await?;
        if tls.is_closed() {
            return Ok(0);
        }
        let (count, sealed) = plain.read(tls.lend()).await;
        if count? == 0 {
            return Ok(0);
        }
        if let Some(count) = take_sealed(plain, tls, sealed, buffer).await? {
            return Ok(count);
        }
    }
}

/// Decrypts what was read; `None` when it was no plain text. A client that does not speak TLS is told so.
async fn take_sealed(
    plain: &mut PlainSocket,
    tls: &mut TlsStream,
    sealed: Vec<u8>,
    buffer: &mut Vec<u8>,
) -> io::Result<Option<usize>> {
    match tls.open(sealed, buffer) {
        Ok(opened) if opened.count > 0 || opened.closed => Ok(Some(opened.count)),
        Ok(_) => Ok(None),
        Err(error) => {
            // The reason for the end is `error`, whether the alert arrives or not.
            let _ = send_outgoing(plain, tls).await;
            Err(error)
        }
    }
}

async fn write_sealed(plain: &mut PlainSocket, tls: &mut TlsStream, bytes: &[u8]) -> io::Result<()> {
    for piece in bytes.chunks(SEALED_PIECE_BYTES) {
        tls.seal(piece)?;
        send_outgoing(plain, tls).await?;
    }
    Ok(())
}

async fn exchange_sealed(
    plain: &mut PlainSocket,
    tls: &mut TlsStream,
    output: Vec<u8>,
    mut input: Vec<u8>,
    written: impl FnOnce(),
) -> Exchanged {
    if tls.is_closed() {
        // Nothing will come, but the client may listen to the answer.
        let outcome = write_sealed(plain, tls, &output).await;
        let outcome = outcome.map(|()| written());
        return Exchanged { written: outcome, output, count: Ok(0), input };
    }
    let last = output.len().saturating_sub(1) / SEALED_PIECE_BYTES * SEALED_PIECE_BYTES;
    let (before, last) = output.split_at(last);
    let sealed = match write_sealed(plain, tls, before).await.and_then(|()| tls.seal(last)) {
        Ok(()) => tls.take_outgoing(),
        Err(error) => Err(error),
    };
    let sealed = match sealed {
        Ok(sealed) => sealed,
        Err(error) => return Exchanged { written: Err(error), output, count: Ok(0), input },
    };
    let incoming = tls.lend();
    let taken = || {
        tls.sent();
        written();
    };
    let done = plain.exchange(sealed, incoming, taken).await;
    tls.restore_outgoing(done.output);
    let count = match (&done.written, done.count) {
        (Ok(()), Ok(1..)) => match take_sealed(plain, tls, done.input, &mut input).await {
            Ok(Some(count)) => Ok(count),
            Ok(None) => read_sealed(plain, tls, &mut input).await,
            Err(error) => Err(error),
        },
        (_, count) => count,
    };
    Exchanged { written: done.written, output, count, input }
}

impl PlainSocket {
    /// Writes all of `output` and waits for what the client sends next, which is appended to `input`. An
    /// io_uring gets both requests in one submission. `written` is called when the client has taken all of
    /// `output`.
    async fn exchange(&mut self, output: Vec<u8>, input: Vec<u8>, written: impl FnOnce()) -> Exchanged {
        let begin = input.len();
        match self {
            PlainSocket::UringTcp(stream) => {
                let (write, read) = (stream.write_all(output), stream.read(input.slice(begin..)));
                let write = then(write, written);
                let ((written, output), (count, input)) = tokio::join!(biased; write, read);
                Exchanged { written, output, count, input: input.into_inner() }
            }
            PlainSocket::UringUnix(stream) => {
                let (write, read) = (stream.write_all(output), stream.read(input.slice(begin..)));
                let write = then(write, written);
                let ((written, output), (count, input)) = tokio::join!(biased; write, read);
                Exchanged { written, output, count, input: input.into_inner() }
            }
            PlainSocket::Tcp(_) | PlainSocket::Unix(_) => {
                let (outcome, output) = self.write_all(output).await;
                if outcome.is_err() {
                    return Exchanged { written: outcome, output, count: Ok(0), input };
                }
                written();
                let written = outcome;
                let (count, input) = self.read(input).await;
                Exchanged { written, output, count, input }
            }
        }
    }

    /// Appends what the client sent to `buffer`, whose spare capacity must not be empty. 0 bytes: the client
    /// is gone.
    async fn read(&mut self, mut buffer: Vec<u8>) -> (io::Result<usize>, Vec<u8>) {
        let begin = buffer.len();
        match self {
            PlainSocket::UringTcp(stream) => {
                let (result, slice) = stream.read(buffer.slice(begin..)).await;
                (result, slice.into_inner())
            }
            PlainSocket::UringUnix(stream) => {
                let (result, slice) = stream.read(buffer.slice(begin..)).await;
                (result, slice.into_inner())
            }
            PlainSocket::Tcp(stream) => (stream.read_buf(&mut buffer).await, buffer),
            PlainSocket::Unix(stream) => (stream.read_buf(&mut buffer).await, buffer),
        }
    }

    /// Ends the connection in both directions. Dropping alone is not enough: a read that io_uring still holds
    /// keeps the socket open.
    fn shut_down(&self) {
        // A socket the client has closed already cannot be shut down, and need not be.
        let _ = match self {
            PlainSocket::UringTcp(stream) => stream.shutdown(Shutdown::Both),
            PlainSocket::UringUnix(stream) => stream.shutdown(Shutdown::Both),
            PlainSocket::Tcp(_) | PlainSocket::Unix(_) => Ok(()),
        };
    }

    /// Writes all of `buffer`.
    async fn write_all(&mut self, buffer: Vec<u8>) -> (io::Result<()>, Vec<u8>) {
        match self {
            PlainSocket::UringTcp(stream) => stream.write_all(buffer).await,
            PlainSocket::UringUnix(stream) => stream.write_all(buffer).await,
            PlainSocket::Tcp(stream) => (stream.write_all(&buffer).await, buffer),
            PlainSocket::Unix(stream) => (stream.write_all(&buffer).await, buffer),
        }
    }
}

impl Socket {
    /// Writes what has gathered. It waits as long as the client likes: only [`super::client_stream`],
    /// which does not, calls it. `taken` is called when the client has taken a part that is not the last.
    pub(super) async fn flush(&mut self, output: &mut PacketOutput, taken: impl Fn()) -> io::Result<()> {
        if output.is_empty() {
            return Ok(());
        }
        while output.is_packing()
            && let Some(part) = packed(output).await
        {
            let (result, buffer) = self.write_all(part).await;
            output.restore(buffer);
            result?;
            taken();
        }
        let (result, buffer) = self.write_all(output.lend()).await;
        output.restore(buffer);
        result
    }
}

/// Compresses what has gathered, step by step: the thread's other connections have their turn in between. Of
/// much it is a part, to be written before the rest. Given up in the middle it can be gone on with.
async fn packed(output: &mut PacketOutput) -> Option<Vec<u8>> {
    while output.pack_piece() {
        if let Some(part) = output.lend_part() {
            return Some(part);
        }
        tokio::task::yield_now().await;
    }
    None
}

async fn then<T>(work: impl Future<Output = T>, done: impl FnOnce()) -> T {
    let outcome = work.await;
    done();
    outcome
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_connection_in_clear_does_not_carry_the_state_of_an_encrypted_one() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _entered = runtime.enter();
        let directory = std::env::temp_dir().join(format!("untorn-sizes-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let variables = crate::variables::GlobalVariables::default();
        let config = crate::tls::establish(&directory, &variables).unwrap().unwrap().config;
        std::fs::remove_dir_all(&directory).unwrap();
        let (one, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        let mut socket = Socket::adopt(Accepted::Unix(one), false).unwrap();
        let mut tls = TlsStream::new(config).unwrap();
        let plain = size_of_val(&socket.plain.exchange(Vec::new(), Vec::new(), || {}));
        let whole = size_of_val(&socket.exchange(Vec::new(), Vec::new(), || {}));
        let sealed =
            size_of_val(&exchange_sealed(&mut socket.plain, &mut tls, Vec::new(), Vec::new(), || {}));
        assert!(whole < sealed, "plain {plain}, either {whole}, sealed {sealed}");
    }
}
