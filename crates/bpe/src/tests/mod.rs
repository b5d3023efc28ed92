//! Histories against a model: a world of page versions, a log, checkpoints and crashes around a real tier on
//! a simulated disk. Whatever the tier gives back and verifies must be the current version of the page.

mod damage;
mod names;
mod online;
mod policy;
mod restart;
mod rules;
mod table;
mod world;
