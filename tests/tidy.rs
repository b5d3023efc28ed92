//! The house stays tidy: links lead somewhere, code in documents is code that compiles, files stay short, the
//! map has every room.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const README_LINES_MAX: usize = 130;
const SOURCE_LINES_MAX: usize = 800;
/// `max_width` of `rustfmt.toml`, in characters.
const LINE_WIDTH_MAX: usize = 110;
/// What a command does belongs to `testing/`.
const XTASK_LINES_MAX: usize = 700;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn chapters() -> Vec<PathBuf> {
    let entries =
        ["docs", "docs/internals"].into_iter().flat_map(|room| fs::read_dir(root().join(room)).unwrap());
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect()
}

fn documents() -> Vec<PathBuf> {
    let mut all = chapters();
    all.extend(["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(|name| root().join(name)));
    all
}

/// The targets of `[text](target)` and `![text](target)`.
fn links(text: &str) -> Vec<&str> {
    text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target).collect()
}

#[test]
fn links_lead_to_files() {
    let mut broken = Vec::new();
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        for link in links(&text).into_iter().filter(|link| !link.contains("://") && !link.starts_with('#')) {
            let file = link.split('#').next().unwrap();
            if !document.parent().unwrap().join(file).exists() {
                broken.push(format!("{}: {link}", document.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn every_chapter_is_in_the_summary() {
    let summary = fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    let listed: BTreeSet<&str> = links(&summary).into_iter().collect();
    for chapter in chapters() {
        let name = chapter.strip_prefix(root().join("docs")).unwrap().to_str().unwrap();
        assert!(name == "SUMMARY.md" || listed.contains(name), "{name} is not in docs/SUMMARY.md");
    }
}

/// `cargo test` compiles the example, so the lines compile that stand in it.
#[test]
fn code_of_the_documents_is_in_the_example() {
    let example = fs::read_to_string(root().join("examples/tutorial.rs")).unwrap();
    let known: BTreeSet<&str> = example.lines().map(str::trim).collect();
    let mut blocks = 0;
    for name in ["README.md", "docs/crate.md"] {
        let text = fs::read_to_string(root().join(name)).unwrap();
        for block in text.split("```rust\n").skip(1) {
            blocks += 1;
            for line in block.split("```").next().unwrap().lines().map(str::trim) {
                let imported = line.starts_with("use ") && example.contains("use untorn::");
                assert!(line.is_empty() || imported || known.contains(line), "{name}: {line}");
            }
        }
    }
    assert!(blocks >= 4, "{blocks} blocks of code");
}

#[test]
fn the_front_page_is_short() {
    let lines = fs::read_to_string(root().join("README.md")).unwrap().lines().count();
    assert!(lines <= README_LINES_MAX, "README.md has {lines} lines");
}

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

fn lines(path: &PathBuf) -> usize {
    fs::read_to_string(path).unwrap().lines().count()
}

#[test]
fn xtask_is_a_command_line() {
    let mut all = Vec::new();
    sources(&root().join("xtask"), &mut all);
    let sum: usize = all.iter().map(lines).sum();
    assert!(sum <= XTASK_LINES_MAX, "xtask has {sum} lines");
}

#[test]
fn source_files_have_one_idea_each() {
    let all = all_sources();
    let long: Vec<_> = all.iter().filter(|path| lines(path) > SOURCE_LINES_MAX).collect();
    assert!(long.is_empty(), "more than {SOURCE_LINES_MAX} lines: {long:?}");
}

/// The rooms with Rust sources.
const ROOMS: [&str; 8] =
    ["src", "crates", "testing", "tests", "benches", "xtask", "fuzz/fuzz_targets", "examples"];

fn all_sources() -> Vec<PathBuf> {
    let mut all = Vec::new();
    for room in ROOMS {
        sources(&root().join(room), &mut all);
    }
    assert!(all.len() > 300, "{} files", all.len());
    all
}

/// A row of a table, a drawing or a layout, and the target of a link cannot be broken.
fn may_be_wide(comment: &str) -> bool {
    comment.starts_with('|')
        || comment.contains("](")
        || comment.contains('─')
        || comment.trim_start_matches(['-', ' ']).contains("  ")
}

#[test]
fn comments_are_as_wide_as_code() {
    let mut wide = Vec::new();
    for path in all_sources() {
        for (number, line) in fs::read_to_string(&path).unwrap().lines().enumerate() {
            let Some(comment) = line.trim_start().strip_prefix("//") else { continue };
            let comment = comment.trim_start_matches(['/', '!']).trim_start();
            if line.chars().count() > LINE_WIDTH_MAX && !may_be_wide(comment) {
                wide.push(format!("{}:{}", path.display(), number + 1));
            }
        }
    }
    assert!(wide.is_empty(), "wider than {LINE_WIDTH_MAX} characters:\n{}", wide.join("\n"));
}

#[test]
fn the_map_has_every_crate() {
    let map = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    for room in ["crates", "testing"] {
        for entry in fs::read_dir(root().join(room)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            assert!(map.contains(&format!("{room}/{name}")), "ARCHITECTURE.md does not know {room}/{name}");
        }
    }
}

/// The manifest of every crate that would be published, with its directory.
fn published() -> Vec<(PathBuf, String)> {
    let crates = fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path());
    let manifests = crates.chain([root().to_path_buf()]).map(|directory| {
        let manifest = fs::read_to_string(directory.join("Cargo.toml")).unwrap();
        (directory, manifest)
    });
    manifests.collect()
}

#[test]
fn manifests_say_what_a_registry_shows() {
    let fields = [
        "description = \"",
        "version.workspace = true",
        "edition.workspace = true",
        "rust-version.workspace = true",
        "license.workspace = true",
        "documentation = \"",
        "keywords = [\"",
        "categories = [\"",
        "[package.metadata.docs.rs]",
    ];
    for (directory, manifest) in published() {
        for field in fields {
            let there = manifest.lines().any(|line| line.starts_with(field));
            assert!(there, "{}/Cargo.toml has no {field}", directory.display());
        }
        for license in ["LICENSE-MIT", "LICENSE-APACHE"] {
            assert!(directory.join(license).exists(), "{} has no {license}", directory.display());
        }
    }
}

/// Without the version a dependency is nowhere once the path is gone.
#[test]
fn published_crates_depend_on_versions() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let version = manifest.lines().find(|line| line.starts_with("version = ")).unwrap();
    let (package, dependencies) = manifest.split_once("[workspace.dependencies]").unwrap();
    assert!(package.contains("rust-version = "), "the workspace says no rust-version");
    let ours: Vec<&str> = dependencies
        .lines()
        .filter(|line| line.contains("path = ") && !line.contains("path = \"testing/"))
        .collect();
    // All but the server, on which nobody depends.
    assert_eq!(ours.len(), published().len() - 1, "{ours:?}");
    for line in ours {
        assert!(line.contains(version), "not {version}: {line}");
    }
}

#[test]
fn what_tests_the_house_is_not_published() {
    let testing = fs::read_dir(root().join("testing")).unwrap().map(|entry| entry.unwrap().path());
    for directory in testing.chain(["xtask", "fuzz"].map(|name| root().join(name))) {
        let manifest = fs::read_to_string(directory.join("Cargo.toml")).unwrap();
        assert!(manifest.contains("publish = false"), "{} would be published", directory.display());
    }
}
