//! A disk that returns what was not stored: never served, each counted. And a control that the check would
//! notice.

use std::path::Path;

use disk::Random;
use page::{BufferPoolExtension, PageId};

use crate::negative_control::{Promise, break_promise};

use super::world::{PAGE_SIZE, World, image, options};

const FILE: &str = "fast/tier";

/// What happens to a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Damage {
    /// An earlier version of the page lies there: the last write of the slot never arrived.
    Stale,
    /// A version of the page that the tier has never seen.
    Newer,
    /// The front is new, the rest is what was there before.
    Torn,
    /// Another page, whole.
    Misdirected,
    /// Some bytes are wrong.
    Corrupt,
    /// Zeros.
    Lost,
}

const ALL: [Damage; 6] =
    [Damage::Stale, Damage::Newer, Damage::Torn, Damage::Misdirected, Damage::Corrupt, Damage::Lost];

/// The bytes of a damaged slot.
fn damaged(damage: Damage, id: PageId, lsn: u64, random: &mut Random) -> Vec<u8> {
    let mut bytes = image(id, lsn);
    match damage {
        Damage::Stale => return image(id, lsn - 1),
        Damage::Newer => return image(id, lsn + 50),
        Damage::Torn => {
            let cut = 512 * (1 + random.below(7));
            bytes[cut..].copy_from_slice(&image(id, lsn - 7)[cut..]);
        }
        Damage::Misdirected => return image(PageId::new(id.space, id.page + 1), lsn),
        Damage::Corrupt => {
            let at = random.below(bytes.len());
            bytes[at] ^= 1 << random.below(8);
        }
        Damage::Lost => bytes.fill(0),
    }
    bytes
}

/// Damages some slots of a filled tier and looks at every page; returns the number of each damage done.
fn look_at_damage(world: &mut World) -> Result<[u64; ALL.len()], String> {
    let pages = world.all();
    world.fill(&pages);
    let mut done = [0; ALL.len()];
    for id in pages {
        let Some(found) = world.tier.find(id) else { continue };
        if world.random.one_in(3) {
            continue;
        }
        let kind = world.random.below(ALL.len());
        let bytes = damaged(ALL[kind], id, world.lsn_of(id), &mut world.random);
        assert_eq!(bytes.len(), PAGE_SIZE.bytes());
        assert!(world.env.disk().corrupt(Path::new(FILE), found.offset as usize, &bytes));
        done[kind] += 1;
    }
    world.look_at_all()?;
    Ok(done)
}

#[test]
fn no_damaged_page_is_served_and_each_is_counted() {
    for seed in 0..12 {
        let mut world = World::new(seed, 300, options(8));
        let [stale, newer, torn, misdirected, corrupt, lost] =
            look_at_damage(&mut world).unwrap_or_else(|error| panic!("{error}"));
        let status = world.status();
        assert!(
            stale * newer * torn * misdirected * corrupt * lost > 0,
            "seed {seed}: a damage was not tried"
        );
        assert_eq!(status.mismatches_stale, stale + newer, "seed {seed}");
        assert_eq!(status.mismatches_misdirected, misdirected, "seed {seed}");
        assert_eq!(status.mismatches_corrupt, torn + corrupt + lost, "seed {seed}");
        assert!(world.served > 0 && status.hits == world.served, "seed {seed}");
        // What was found to be damaged is gone, not read again.
        let pages = status.pages;
        world.look_at_all().unwrap();
        assert_eq!(world.status().mismatches_stale, status.mismatches_stale);
        assert_eq!(world.status().pages, pages);
    }
}

/// The negative control: with the comparison switched off, the same histories are caught by the model.
#[test]
fn without_verification_the_damage_would_be_served() {
    for seed in 0..12 {
        let _broken = break_promise(Promise::Compare);
        let mut world = World::new(seed, 300, options(8));
        assert!(look_at_damage(&mut world).is_err(), "seed {seed}: nobody noticed");
    }
}

/// Every single bit of a slot counts, those that the page checksum leaves out included.
#[test]
fn any_flipped_bit_of_a_slot_is_found() {
    let mut world = World::new(5, 64, options(8));
    let pages = world.all();
    world.fill(&pages);
    let mut damaged = 0;
    for (number, id) in pages.into_iter().enumerate() {
        let Some(found) = world.tier.find(id) else { continue };
        // All of the header with the bytes that the checksum does not cover, and the ends.
        let at = if number < 46 { number } else { PAGE_SIZE.bytes() - 1 - (number - 46) };
        let mut bytes = image(id, world.lsn_of(id));
        bytes[at] ^= 1 << world.random.below(8);
        world.env.disk().corrupt(Path::new(FILE), found.offset as usize, &bytes);
        assert_eq!(world.look(id), Ok(false), "byte {at}");
        damaged += 1;
    }
    let status = world.status();
    let counted = status.mismatches_corrupt + status.mismatches_stale + status.mismatches_misdirected;
    assert_eq!(counted, damaged);
    assert!(damaged > 50);
}
