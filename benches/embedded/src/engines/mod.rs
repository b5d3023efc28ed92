//! The engines, each with the settings in which a commit is on the disk when it returns. Each is a feature of
//! the package, so that a binary with one of them shows what that one weighs.

#[cfg(feature = "canopydb")]
pub mod canopydb;
#[cfg(feature = "fjall")]
pub mod fjall;
#[cfg(feature = "lmdb")]
pub mod lmdb;
#[cfg(feature = "redb")]
pub mod redb;
#[cfg(feature = "rocksdb")]
pub mod rocksdb;
#[cfg(feature = "sqlite")]
pub mod sqlite;
#[cfg(feature = "untorn")]
pub mod untorn;
