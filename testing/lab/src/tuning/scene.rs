//! The kinds of machine, and the settings that are swept on them.

use super::sweep::{Choice, Knob};
use crate::capped_disk::{Cap, Profile};
use crate::experiment::Sizes;
use crate::experiment::servers::Server;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

/// A kind of machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Machine {
    /// The data in memory, a disk without a cap.
    Cached,
    /// The data in memory, a disk of 4000 requests and 50 MB a second.
    ThinDisk,
    /// An eighth of the data in memory, a disk of 3000 requests and 160 MB a second that takes 2 ms to read.
    SlowReads,
    /// The same with a buffer pool extension, as large as the data, on a disk without a cap.
    Tier,
}

impl Machine {
    pub const ALL: [Machine; 4] = [Machine::Cached, Machine::ThinDisk, Machine::SlowReads, Machine::Tier];
}

/// One with its sizes.
pub struct Scene {
    pub name: &'static str,
    pub script: &'static str,
    pub disk: Profile,
    /// MiB for the buffer pool.
    memory: u64,
    /// MiB of the extension.
    extension: Option<u64>,
}

/// The least buffer pool in MiB: servers want some MiB whatever the data.
const LEAST_MEMORY: u64 = 16;

impl Scene {
    pub fn new(machine: Machine, sizes: &Sizes) -> Scene {
        let data = sizes.data_mib();
        let (all, eighth) = ((2 * data).max(128), (data / 8).max(LEAST_MEMORY));
        let capped = |operations, bytes| Profile::capped(Cap { operations, bytes });
        let slow = capped(3000, 160_000_000).answering_in(Duration::from_millis(2), Duration::ZERO);
        let scene = |name, script, disk, memory, extension| Scene { name, script, disk, memory, extension };
        match machine {
            Machine::Cached => scene("cached", "oltp_read_write", capped(0, 0), all, None),
            Machine::ThinDisk => scene("thin disk", "oltp_write_only", capped(4000, 50_000_000), all, None),
            Machine::SlowReads => scene("slow reads", "oltp_read_write", slow, eighth, None),
            Machine::Tier => scene("tier", "oltp_read_write", slow, eighth, Some(data.max(64))),
        }
    }

    /// What every run of the scene has. Settings that the sweep gives come later and take precedence.
    pub fn settings(&self, server: &Server, extension: &Path) -> Vec<String> {
        let mut settings = vec![pool(self.memory)];
        match (server.is_ours(), self.extension) {
            (true, Some(mib)) => {
                settings.push(format!("--untorn-bpe-file={}", extension.display()));
                settings.push(format!("--untorn-bpe-size={}", mib << 20));
            }
            (true, None) => {}
            (false, _) => settings.push("--skip-log-bin".to_owned()),
        }
        settings
    }

    pub fn record(&self) -> Value {
        json!({
            "name": self.name, "script": self.script, "pool_mib": self.memory,
            "extension_mib": self.extension, "disk": self.disk,
        })
    }
}

fn pool(mib: u64) -> String {
    format!("--innodb-buffer-pool-size={mib}M")
}

/// What is swept, in this order: what is likely to matter most comes first. The first choice of each is what
/// the server does by itself; in the short form there is one more.
pub fn knobs(server: &Server, scene: &Scene, short: bool) -> Vec<Knob> {
    let part = |percent: u64| {
        let mib = (scene.memory * percent / 100).max(LEAST_MEMORY / 2);
        Choice::new(format!("pool {mib} MiB"), [pool(mib)])
    };
    let redo = |mib: u64| Choice::new(format!("redo log {mib} MiB"), [server.redo(mib)]);
    let io_capacity = |usual: u64, most: u64| {
        let settings = [format!("--innodb-io-capacity={usual}"), format!("--innodb-io-capacity-max={most}")];
        Choice::new(format!("io_capacity {usual}/{most}"), settings)
    };
    let threads = |count: u64| {
        if server.is_ours() {
            return Choice::new(format!("{count} threads"), [format!("--untorn-threads={count}")]);
        }
        let settings = ["read", "write"].map(|way| format!("--innodb-{way}-io-threads={count}"));
        Choice::new(format!("{count} I/O threads"), settings)
    };
    let knob = |choices: Vec<Choice>| {
        let most = if short { 1 } else { choices.len() };
        Knob::new(choices.into_iter().take(most).collect())
    };
    vec![
        knob(vec![redo(1024), redo(256), redo(64)]),
        knob(vec![io_capacity(2000, 4000), io_capacity(500, 1000), io_capacity(10_000, 20_000)]),
        knob(if server.is_ours() {
            vec![threads(1), threads(2), threads(4)]
        } else {
            vec![threads(16), threads(64)]
        }),
        knob(vec![part(75), part(50)]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::servers::tests::ours;
    use crate::experiment::tests::sizes;
    use crate::tuning::sweep::Sweep;

    #[test]
    fn a_stock_server_has_no_extension_and_no_binary_log() {
        let scene = Scene::new(Machine::Tier, &sizes(&[]));
        let settings = |server: &Server| scene.settings(server, Path::new("/fast/extension")).join(" ");
        assert!(settings(&ours()).contains("--untorn-bpe-file=/fast/extension"), "{}", settings(&ours()));
        let mut peer = ours();
        peer.program.kind = crate::server_process::Kind::MariaDb;
        assert!(settings(&peer).ends_with("--skip-log-bin") && !settings(&peer).contains("bpe"));
    }

    #[test]
    fn the_short_form_tries_one_setting_of_each_kind() {
        let scene = Scene::new(Machine::Cached, &sizes(&["--short"]).settled());
        assert_eq!(Sweep::new(knobs(&ours(), &scene, true)).runs(), 1 + 4);
        assert_eq!(Sweep::new(knobs(&ours(), &scene, false)).runs(), 1 + 3 + 3 + 3 + 2);
    }

    #[test]
    fn what_is_swept_is_within_the_memory_of_the_scene() {
        let scene = Scene::new(Machine::SlowReads, &sizes(&[]));
        assert_eq!(scene.memory, sizes(&[]).data_mib() / 8);
        let choices = format!("{:?}", knobs(&ours(), &scene, false));
        assert!(choices.contains(&format!("pool {} MiB", scene.memory * 3 / 4)), "{choices}");
    }
}
