//! How large the buffer pool extension is: as large as was asked for, or by the pool and the room there is.

use std::path::Path;

/// The size of a tier without a set size, as a multiple of the buffer pool.
const POOLS: u64 = 8;
/// The part of the room that a tier without a set size takes at most: others write to that disk too, the data
/// directory perhaps, and a full one stops them.
const ROOM_SHARE: u64 = 2;
const MIB: u64 = 1 << 20;

/// Tells how many bytes a file there may come to have, if that is known. A simulated disk has no limit.
pub(crate) type Room = fn(&Path) -> Option<u64>;

/// The size of a tier, and how it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Planned {
    pub bytes: u64,
    pub why: String,
}

/// The size for a file with this much room. `asked` is 0 where nobody has set one.
pub(crate) fn plan(asked: u64, pool_bytes: u64, room: Option<u64>) -> Planned {
    let wanted = pool_bytes.saturating_mul(POOLS);
    let default = || Planned { bytes: wanted, why: format!("{POOLS} times the buffer pool") };
    let Some(room) = room else {
        return if asked == 0 { default() } else { Planned { bytes: asked, why: "as set".to_owned() } };
    };
    let free = room / MIB;
    if asked != 0 {
        let why = if asked <= room {
            "as set".to_owned()
        } else {
            format!("as set, but there is room for {free} MiB only: it stops when its disk is full")
        };
        return Planned { bytes: asked, why };
    }
    if wanted <= room / ROOM_SHARE {
        return default();
    }
    let why =
        format!("half of the {free} MiB free there; {POOLS} times the buffer pool is {} MiB", wanted / MIB);
    Planned { bytes: room / ROOM_SHARE, why }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn a_size_that_nobody_set_leaves_half_of_the_room() {
        let large = plan(0, GIB, Some(100 * GIB));
        assert_eq!(large, Planned { bytes: 8 * GIB, why: "8 times the buffer pool".into() });
        let small = plan(0, GIB, Some(6 * GIB));
        assert_eq!(small.bytes, 3 * GIB);
        assert_eq!(small.why, "half of the 6144 MiB free there; 8 times the buffer pool is 8192 MiB");
        assert_eq!(plan(0, GIB, Some(0)).bytes, 0);
        assert_eq!(plan(0, GIB, None).bytes, 8 * GIB);
        assert_eq!(plan(0, u64::MAX, None).bytes, u64::MAX);
    }

    #[test]
    fn a_size_that_was_set_is_kept_and_said_to_be_too_large() {
        assert_eq!(plan(5 * GIB, GIB, Some(6 * GIB)), Planned { bytes: 5 * GIB, why: "as set".into() });
        let large = plan(7 * GIB, GIB, Some(6 * GIB));
        assert_eq!(large.bytes, 7 * GIB);
        assert!(large.why.contains("room for 6144 MiB only"), "{}", large.why);
    }
}
