//! The house stays tidy: links and paths lead somewhere, code in documents is code that compiles, files and
//! functions stay short, English stays plain, the map has every room.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod documents;
mod figures;
mod packages;
mod sources;
mod visibility;
mod words;

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

/// A path as the repository says it.
fn shown(path: &Path) -> &str {
    path.strip_prefix(root()).unwrap().to_str().unwrap()
}

fn chapters() -> Vec<PathBuf> {
    let entries = ["docs", "docs/internals", "docs/benchmarks"]
        .into_iter()
        .flat_map(|room| fs::read_dir(root().join(room)).unwrap());
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect()
}

fn documents() -> Vec<PathBuf> {
    let mut all = chapters();
    all.extend(["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(|name| root().join(name)));
    all
}

fn find_sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") {
            find_sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The rooms with Rust sources.
const ROOMS: [&str; 8] =
    ["src", "crates", "testing", "tests", "benches", "xtask", "fuzz/fuzz_targets", "examples"];

fn all_sources() -> Vec<PathBuf> {
    let mut all = Vec::new();
    for room in ROOMS {
        find_sources(&root().join(room), &mut all);
    }
    assert!(all.len() > 300, "{} files", all.len());
    all
}
