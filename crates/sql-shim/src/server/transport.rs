//! One socket type over io_uring and epoll, TCP and local sockets.
//!
//! Buffers are handed over and come back, as io_uring wants it; the epoll side does the same so that the
//! connection is written once. An enumeration and not a generic: everything above it, the SQL executor
//! included, is compiled once.

use std::future::Future;
use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_uring::buf::BoundedBuf;

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
pub enum Socket {
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
        Ok(match accepted {
            Accepted::Tcp(stream) => {
                stream.set_nodelay(true)?;
                // A client whose machine has gone says nothing more: its transaction and its locks must not
                // stay.
                nix::sys::socket::setsockopt(&stream, nix::sys::socket::sockopt::KeepAlive, &true)
                    .map_err(io::Error::from)?;
                // io_uring waits by itself; with O_NONBLOCK it would answer EAGAIN instead.
                stream.set_nonblocking(!uring)?;
                if uring {
                    Socket::UringTcp(tokio_uring::net::TcpStream::from_std(stream))
                } else {
                    Socket::Tcp(tokio::net::TcpStream::from_std(stream)?)
                }
            }
            Accepted::Unix(stream) => {
                stream.set_nonblocking(!uring)?;
                if uring {
                    Socket::UringUnix(tokio_uring::net::UnixStream::from_std(stream))
                } else {
                    Socket::Unix(tokio::net::UnixStream::from_std(stream)?)
                }
            }
        })
    }

    /// Writes all of `output` and waits for what the client sends next, which is appended to `input`. An
    /// io_uring gets both requests in one submission. `written` is called when the client has taken all of
    /// `output`.
    pub async fn exchange(&mut self, output: Vec<u8>, input: Vec<u8>, written: impl FnOnce()) -> Exchanged {
        let begin = input.len();
        match self {
            Socket::UringTcp(stream) => {
                let (write, read) = (stream.write_all(output), stream.read(input.slice(begin..)));
                let write = then(write, written);
                let ((written, output), (count, input)) = tokio::join!(biased; write, read);
                Exchanged { written, output, count, input: input.into_inner() }
            }
            Socket::UringUnix(stream) => {
                let (write, read) = (stream.write_all(output), stream.read(input.slice(begin..)));
                let write = then(write, written);
                let ((written, output), (count, input)) = tokio::join!(biased; write, read);
                Exchanged { written, output, count, input: input.into_inner() }
            }
            Socket::Tcp(_) | Socket::Unix(_) => {
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
    pub async fn read(&mut self, mut buffer: Vec<u8>) -> (io::Result<usize>, Vec<u8>) {
        let begin = buffer.len();
        match self {
            Socket::UringTcp(stream) => {
                let (result, slice) = stream.read(buffer.slice(begin..)).await;
                (result, slice.into_inner())
            }
            Socket::UringUnix(stream) => {
                let (result, slice) = stream.read(buffer.slice(begin..)).await;
                (result, slice.into_inner())
            }
            Socket::Tcp(stream) => (stream.read_buf(&mut buffer).await, buffer),
            Socket::Unix(stream) => (stream.read_buf(&mut buffer).await, buffer),
        }
    }

    /// Ends the connection in both directions. Dropping alone is not enough: a read that io_uring still holds
    /// keeps the socket open.
    pub fn shut_down(&self) {
        // A socket the client has closed already cannot be shut down, and need not be.
        let _ = match self {
            Socket::UringTcp(stream) => stream.shutdown(Shutdown::Both),
            Socket::UringUnix(stream) => stream.shutdown(Shutdown::Both),
            Socket::Tcp(_) | Socket::Unix(_) => Ok(()),
        };
    }

    /// Writes all of `buffer`.
    pub async fn write_all(&mut self, buffer: Vec<u8>) -> (io::Result<()>, Vec<u8>) {
        match self {
            Socket::UringTcp(stream) => stream.write_all(buffer).await,
            Socket::UringUnix(stream) => stream.write_all(buffer).await,
            Socket::Tcp(stream) => (stream.write_all(&buffer).await, buffer),
            Socket::Unix(stream) => (stream.write_all(&buffer).await, buffer),
        }
    }
}

impl Socket {
    /// Writes what has gathered. It waits as long as the client likes: only [`super::connection`]'s outlet,
    /// which does not, calls it.
    pub(super) async fn flush(&mut self, output: &mut PacketOutput) -> io::Result<()> {
        if output.is_empty() {
            return Ok(());
        }
        let (result, buffer) = self.write_all(output.lend()).await;
        output.restore(buffer);
        result
    }
}

async fn then<T>(work: impl Future<Output = T>, done: impl FnOnce()) -> T {
    let outcome = work.await;
    done();
    outcome
}
