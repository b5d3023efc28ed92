//! No dead `pub`: a function that only its own file names is not public.
//!
//! Found by text, so a name that several functions share hides a violation; it never invents one. Types and
//! constants are left out: a type may be public because a public signature has it without anybody naming it,
//! and the constants of a protocol are a table. `src/` is left out too: its users are outside.

use std::collections::{BTreeMap, BTreeSet};

use crate::{all_sources, read, shown};

fn words(text: &str) -> BTreeSet<&str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).collect()
}

/// Names of the functions that are `pub`, without restriction.
fn public_functions(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    for line in text.lines() {
        let Some(code) = line.trim_start().strip_prefix("pub ") else { continue };
        let words = ["const ", "async ", "unsafe "];
        let code = words.iter().fold(code, |code, word| code.strip_prefix(word).unwrap_or(code));
        if let Some(signature) = code.strip_prefix("fn ") {
            names.push(signature.split(['(', '<']).next().unwrap());
        }
    }
    names
}

#[test]
fn what_is_public_is_used_elsewhere() {
    let texts: Vec<_> =
        all_sources().into_iter().map(|path| (shown(&path).to_owned(), read(&path))).collect();
    let mut files_with: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, text) in &texts {
        for word in words(text) {
            *files_with.entry(word).or_default() += 1;
        }
    }
    let mut dead = Vec::new();
    for (path, text) in texts.iter().filter(|(path, _)| !path.starts_with("src/") && path.contains("/src/")) {
        let names = public_functions(text).into_iter();
        dead.extend(names.filter(|name| files_with[name] == 1).map(|name| format!("{path}: {name}")));
    }
    assert!(dead.is_empty(), "public, and named by no other file:\n{}", dead.join("\n"));
}
