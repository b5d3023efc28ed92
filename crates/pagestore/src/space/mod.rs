//! Tablespace files from the outside: which are open and how large they are, how they grow and give their end
//! back, and whose they are. What is inside is [`crate::fsp`].

pub(crate) mod file_identity;
pub(crate) mod first_page;
pub(crate) mod growth;
pub(crate) mod registry;
pub(crate) mod stamp;
pub(crate) mod truncation;
