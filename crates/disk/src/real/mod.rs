//! The real machine: kernel files, io_uring or a thread pool, real threads and clocks.

mod backend;
mod copy_on_write_extent;
mod descriptors;
mod direct_io;
mod directory_lock;
mod environment;
mod file;
mod file_limit;
mod network;
mod request;
mod ring;
mod room;
mod storage;
mod threads;
mod transfer;

pub use backend::Backend;
pub use directory_lock::lock_holder;
pub use environment::{RealEnvironment, RealOptions};
pub use file_limit::raise_file_limit;
pub use network::network_file_system;
pub use room::room_at;
pub use storage::RealStorage;
