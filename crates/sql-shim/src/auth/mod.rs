//! Authentication: accounts and the two password exchanges.

pub mod accounts;
