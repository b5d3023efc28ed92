//! What would be published says so, depends on versions, and takes nothing along that only tests.

use std::fs;
use std::path::PathBuf;

use crate::root;

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
