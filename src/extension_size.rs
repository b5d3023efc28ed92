//! How large the buffer pool extension is: as large as was asked for, or by the pool and the room there is.

use std::path::Path;

/// The size of a tier without a set size, as a multiple of the buffer pool.
const POOLS: u64 = 8;
/// The part of the room that a tier without a set size takes at most: others write to that disk too, the data
/// directory perhaps, and a full one stops them.
const ROOM_SHARE: u64 = 2;
const MIB: u64 = 1 << 20;

/// A tier without a set size is off where it would be smaller than this, or than this part of the buffer
/// pool: its memory and writes would buy nothing.
const USEFUL_BYTES: u64 = 16 * MIB;
const USEFUL_SHARE: u64 = 4;

/// Tells how many bytes a file there may come to have, if that is known.
pub(crate) type Room = fn(&Path) -> Option<u64>;

/// The size of a tier, and how it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Planned {
    pub bytes: u64,
    pub why: String,
}

/// The size for a file with this much room, 0 for no tier. `asked` is 0 where nobody has set one.
pub(crate) fn plan(asked: u64, pool_bytes: u64, room: Option<u64>) -> Planned {
    let wanted = pool_bytes.saturating_mul(POOLS);
    let Some(room) = room else {
        let unknown = "its disk does not say how much is free: it stops when that is full";
        return if asked == 0 {
            Planned { bytes: wanted, why: format!("{POOLS} times the buffer pool; {unknown}") }
        } else {
            Planned { bytes: asked, why: format!("as set; {unknown}") }
        };
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
        return Planned { bytes: wanted, why: format!("{POOLS} times the buffer pool") };
    }
    let least = USEFUL_BYTES.max(pool_bytes / USEFUL_SHARE).min(wanted);
    if room / ROOM_SHARE < least {
        let why = format!(
            "half of the {free} MiB free there is too little for it, which would need {} MiB: make room, or set \
             its size",
            least / MIB
        );
        return Planned { bytes: 0, why };
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
        let unknown = plan(0, GIB, None);
        assert_eq!(unknown.bytes, 8 * GIB);
        assert!(unknown.why.contains("does not say how much is free"), "{}", unknown.why);
        assert_eq!(plan(0, u64::MAX, None).bytes, u64::MAX);
    }

    #[test]
    fn a_size_that_was_set_is_kept_and_said_to_be_too_large() {
        assert_eq!(plan(5 * GIB, GIB, Some(6 * GIB)), Planned { bytes: 5 * GIB, why: "as set".into() });
        let large = plan(7 * GIB, GIB, Some(6 * GIB));
        assert_eq!(large.bytes, 7 * GIB);
        assert!(large.why.contains("room for 6144 MiB only"), "{}", large.why);
    }

    #[test]
    fn without_room_for_a_useful_one_there_is_none() {
        let none = plan(0, GIB, Some(511 * MIB));
        assert_eq!(none.bytes, 0);
        assert!(none.why.contains("half of the 511 MiB free there is too little"), "{}", none.why);
        assert_eq!(plan(0, GIB, Some(512 * MIB)).bytes, 256 * MIB);
        assert_eq!(plan(0, 8 * MIB, Some(31 * MIB)).bytes, 0);
        // A size that is set stays.
        assert_eq!(plan(2 * MIB, GIB, Some(3 * MIB)).bytes, 2 * MIB);
    }
}
