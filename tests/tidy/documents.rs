//! Documents: what they name exists.

use std::collections::BTreeSet;
use std::fs;

use crate::{all_sources, chapters, documents, read, root, shown};

const README_LINES_MAX: usize = 130;

/// The targets of `[text](target)` and `![text](target)`.
fn links(text: &str) -> Vec<&str> {
    text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target).collect()
}

#[test]
fn links_lead_to_files() {
    let mut broken = Vec::new();
    for document in documents() {
        let text = read(&document);
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
    let summary = read(&root().join("docs/SUMMARY.md"));
    let listed: BTreeSet<&str> = links(&summary).into_iter().collect();
    for chapter in chapters() {
        let name = chapter.strip_prefix(root().join("docs")).unwrap().to_str().unwrap();
        assert!(name == "SUMMARY.md" || listed.contains(name), "{name} is not in docs/SUMMARY.md");
    }
}

/// `cargo test` compiles the example, so the lines compile that stand in it.
#[test]
fn code_of_the_documents_is_in_the_example() {
    let example = read(&root().join("examples/tutorial.rs"));
    let known: BTreeSet<&str> = example.lines().map(str::trim).collect();
    let mut blocks = 0;
    for name in ["README.md", "docs/crate.md"] {
        let text = read(&root().join(name));
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
    let lines = read(&root().join("README.md")).lines().count();
    assert!(lines <= README_LINES_MAX, "README.md has {lines} lines");
}

#[test]
fn the_map_has_every_crate() {
    let map = read(&root().join("ARCHITECTURE.md"));
    for room in ["crates", "testing"] {
        for entry in fs::read_dir(root().join(room)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            assert!(map.contains(&format!("{room}/{name}")), "ARCHITECTURE.md does not know {room}/{name}");
        }
    }
}

/// The name that GitHub gives a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings.map(|line| anchor(line.trim_start_matches('#'))).collect()
}

#[test]
fn headings_that_links_name_exist() {
    let mut broken = Vec::new();
    for document in documents() {
        let text = read(&document);
        for link in links(&text).into_iter().filter(|link| !link.contains("://")) {
            let Some((file, heading)) = link.split_once('#') else { continue };
            let target =
                if file.is_empty() { document.clone() } else { document.parent().unwrap().join(file) };
            if !anchors(&read(&target)).contains(heading) {
                broken.push(format!("{}: {link}", shown(&document)));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// Where a path can begin that a document names.
const TOP: [&str; 11] = [
    "crates/",
    "src/",
    "tests/",
    "testing/",
    "docs/",
    "benches/",
    "xtask/",
    "fuzz/",
    "examples/",
    "scripts/",
    ".ci/",
];

/// Whether a document means a file or a directory of the repository, with its whole path.
fn is_path(code: &str) -> bool {
    let plain = code.chars().all(|c| c.is_alphanumeric() || "./_-".contains(c));
    let placeholder = code.contains("YYYY");
    plain
        && !placeholder
        && (TOP.iter().any(|top| code.starts_with(top)) || (code.ends_with(".rs") && code.contains('/')))
}

/// A chapter that a comment of the source names.
fn chapters_named(text: &str) -> Vec<&str> {
    let end = |c: char| !(c.is_ascii_alphanumeric() || "/_-.#".contains(c));
    let starts = text.match_indices("docs/").map(|(at, _)| at);
    let names = starts.map(|at| text[at..].split(end).next().unwrap().trim_end_matches(['.', '#']));
    names.filter(|name| name.contains(".md")).collect()
}

#[test]
fn paths_that_documents_name_exist() {
    let mut missing = Vec::new();
    for document in documents().into_iter().filter(|document| !shown(document).starts_with("docs/findings-"))
    {
        let text = read(&document);
        for code in text.split('`').skip(1).step_by(2).filter(|code| is_path(code)) {
            if !root().join(code).exists() {
                missing.push(format!("{}: {code}", shown(&document)));
            }
        }
    }
    for source in all_sources().into_iter().filter(|source| !source.ends_with("tests/tidy/documents.rs")) {
        for name in chapters_named(&read(&source)) {
            let (file, heading) = name.split_once('#').unwrap_or((name, ""));
            let path = root().join(file);
            if !path.exists() || !(heading.is_empty() || anchors(&read(&path)).contains(heading)) {
                missing.push(format!("{}: {name}", shown(&source)));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

/// A file that a document names without its directory.
#[test]
fn files_that_documents_name_exist() {
    let sources = all_sources();
    let known: BTreeSet<&str> =
        sources.iter().filter_map(|path| path.file_name()).filter_map(|name| name.to_str()).collect();
    let mut missing = Vec::new();
    for document in documents().into_iter().filter(|document| !shown(document).starts_with("docs/findings-"))
    {
        let text = read(&document);
        let codes = text.split('`').skip(1).step_by(2);
        let names = codes.filter(|code| code.ends_with(".rs") && !code.contains(['/', ' ', '*']));
        missing.extend(
            names.filter(|name| !known.contains(*name)).map(|name| format!("{}: {name}", shown(&document))),
        );
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}
