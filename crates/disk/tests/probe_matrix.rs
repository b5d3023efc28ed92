//! The rule against facts of many machines. Each file in `recorded/` has facts, where they come from
//! (`recorded` on a machine, or `constructed` from documents), and the verdict per page size, with words that
//! its reason must have.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use untorn_disk::probe::{Atomic, Facts, verdict};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    origin: String,
    facts: Facts,
    expect: BTreeMap<usize, Expected>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    atomic: Atomic,
    flagged: bool,
    because: String,
}

fn cases() -> Vec<(String, Case)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded");
    let mut paths: Vec<_> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let read = |path: &std::path::PathBuf| {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let text = std::fs::read_to_string(path).unwrap();
        (name.clone(), serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}")))
    };
    paths.iter().map(read).collect()
}

#[test]
fn every_machine_gets_its_verdict() {
    let cases = cases();
    let mut seen = BTreeMap::new();
    for (name, case) in &cases {
        assert!(case.origin.starts_with("recorded: ") || case.origin.starts_with("constructed: "), "{name}");
        for (page_bytes, expected) in &case.expect {
            let found = verdict(&case.facts, *page_bytes);
            let place = format!("{name}, pages of {page_bytes} bytes: {found:?}");
            assert_eq!((found.atomic, found.flagged), (expected.atomic, expected.flagged), "{place}");
            assert!(found.reason.contains(&expected.because), "{place}, not because of {}", expected.because);
            *seen.entry((format!("{}", found.atomic), found.flagged)).or_insert(0) += 1;
        }
    }
    // All four outcomes occur, or the directory is not what it was.
    assert_eq!(seen.len(), 4, "{seen:?}");
}

/// Whatever the kernel says, a verdict holds for sizes a tablespace can have, and never without what carries
/// it.
#[test]
fn no_verdict_goes_beyond_its_facts() {
    for (name, mut case) in cases() {
        for page_bytes in [0, 1, 512, 2048, 12288, 131_072] {
            assert_eq!(verdict(&case.facts, page_bytes).atomic, Atomic::None, "{name}, {page_bytes}");
        }
        let told = case.facts.atomic.take();
        for page_bytes in [4096, 8192, 16384, 32768, 65536] {
            let without = verdict(&case.facts, page_bytes);
            assert!(!without.flagged && without.atomic != Atomic::FileSystem, "{name}: {without:?}");
            assert!(page_bytes == 4096 || without.atomic == Atomic::None, "{name}: {without:?}");
        }
        case.facts.atomic = told;
        case.facts.device = None;
        for page_bytes in [4096, 16384] {
            let blind = verdict(&case.facts, page_bytes);
            let optimal = told.is_some_and(|told| told.unit_max_opt as usize >= page_bytes);
            let only_hardware = case.facts.file_system == "ext4";
            assert!(blind.atomic != Atomic::Hardware || optimal || only_hardware, "{name}: {blind:?}");
        }
    }
}

/// The names of the JSON are promised to users of `untorn probe --json`.
#[test]
fn facts_survive_json() {
    for (name, case) in cases() {
        let text = serde_json::to_string(&case.facts).unwrap();
        assert_eq!(serde_json::from_str::<Facts>(&text).unwrap(), case.facts, "{name}");
    }
}
