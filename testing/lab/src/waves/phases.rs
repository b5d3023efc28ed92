//! The load: the same for the whole time, or another each minute.

use super::Setup;
use crate::experiment::seconds::Phase;

/// Seconds of a phase of a load that changes.
const PHASE: u32 = 60;

/// The phases of the load.
pub fn phases(setup: &Setup) -> Vec<Phase> {
    let phase = |script, threads, distribution, time| Phase { script, threads, distribution, time };
    if !setup.changing {
        return vec![phase("oltp_write_only", setup.threads, "uniform", setup.time)];
    }
    let turns = [
        phase("oltp_write_only", 4, "uniform", PHASE),
        phase("oltp_write_only", 64, "uniform", PHASE),
        phase("oltp_write_only", 16, "uniform", PHASE),
        phase("oltp_write_only", 4, "special", PHASE),
        phase("oltp_write_only", 64, "special", PHASE),
        phase("oltp_write_only", 16, "special", PHASE),
        phase("oltp_read_write", 4, "uniform", PHASE),
        phase("oltp_read_write", 64, "uniform", PHASE),
        phase("oltp_read_write", 16, "uniform", PHASE),
    ];
    turns.iter().cycle().take((setup.time / PHASE).max(1) as usize).cloned().collect()
}

#[cfg(test)]
mod tests {
    use crate::sysbench::SCRIPTS;

    #[test]
    fn all_scripts_are_known() {
        let known = SCRIPTS.map(|(script, _)| script);
        for script in ["oltp_write_only", "oltp_read_write"] {
            assert!(known.contains(&script));
        }
    }
}
