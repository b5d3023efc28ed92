//! The lab: real servers, real disks and loads, and the experiments made of them.
//!
//! The first half is machinery, which the campaigns use too: a server of its own for each test
//! ([`server_process`]), file systems on loop devices ([`file_system`]), disks with the limits of a cloud
//! volume ([`capped_disk`]), sysbench. The second half measures (`experiment` has what most of it
//! shares): nothing here fails because a figure is low.
//! What must hold is in `testing/campaigns`.

pub mod background_load;
pub mod block_device;
pub mod capped_disk;
pub mod collation_weights;
pub mod command;
pub mod file_system;
mod ink;
mod leftover;
mod processor_speed;
pub mod release_build;
pub mod scratch;
pub mod server_process;
pub mod statistics;
pub mod sysbench;
pub mod system_packages;
pub mod time_chart;

pub mod bench;
pub mod doublewrite;
mod experiment;
pub mod extension;
pub mod io_capacity;
pub mod ladder;
pub mod latency;
pub mod many_tables;
pub mod read_ahead;
pub mod restart;
pub mod tuning;
pub mod volumes;
pub mod waves;
