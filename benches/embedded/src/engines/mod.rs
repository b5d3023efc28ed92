//! The engines, each with the settings in which a commit is on the disk when it returns.

pub mod fjall;
pub mod lmdb;
pub mod redb;
pub mod sqlite;
pub mod untorn;
