//! English: patterns of translated German that a native reader stumbles over. The list holds what can be told
//! from correct use without reading the sentence.

use std::path::PathBuf;

use crate::{all_sources, documents, read, root, shown};

/// A phrase, the words that make it right when one of them follows soon, and what to write instead.
const BANNED: &[(&str, &[&str], &str)] = &[
    ("so many", &["that"], "n, this many, a number of"),
    ("so long", &["as", "that"], "this long, up to `timeout`"),
    ("so often", &["that"], "this often"),
    ("anew", &[], "again; re- with the verb"),
    ("of ours", &[], "our, Untorn's"),
    ("outside of", &[], "outside"),
    ("of late", &[], "recently"),
    ("whoever", &[], "the one who; name the actor"),
    ("half-way", &[], "midway, halfway"),
    ("in vain", &[], "for nothing, without success"),
    ("be had", &[], "is available"),
    ("other than in", &[], "unlike in"),
    ("closed in order", &[], "closed cleanly"),
    ("stopped in order", &[], "stopped cleanly"),
    ("shut down in order", &[], "shut down cleanly"),
    ("first contract", &[], "what holds now"),
    ("are no fault", &[], "are not a bug"),
];

/// "In all" for "in total": at the end of a clause.
const TAIL: &str = "in all";

/// Records of what was found at a time keep their words.
const LEFT_ALONE: [&str; 2] = ["docs/findings-", "docs/benchmarks/runs/"];

/// The text without line ends and comment marks, so that a phrase is found across lines; and for each byte
/// the line it is on.
fn flattened(text: &str) -> (String, Vec<usize>) {
    let (mut flat, mut numbers) = (String::new(), Vec::new());
    for (number, line) in text.lines().enumerate() {
        let words = line.trim_start().trim_start_matches(['/', '!', '|', '>']).trim();
        flat.push_str(&words.to_ascii_lowercase());
        flat.push(' ');
        numbers.resize(flat.len(), number + 1);
    }
    (flat, numbers)
}

/// Where the phrase stands as whole words.
fn places<'t>(flat: &'t str, phrase: &'t str) -> impl Iterator<Item = (usize, &'t str)> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    flat.match_indices(phrase).filter_map(move |(at, _)| {
        let (before, after) = (&flat[..at], &flat[at + phrase.len()..]);
        (!before.ends_with(is_word) && !after.starts_with(is_word)).then_some((at, after))
    })
}

fn faults(text: &str) -> Vec<(usize, String)> {
    let (flat, numbers) = flattened(text);
    let mut found = Vec::new();
    for (phrase, unless, instead) in BANNED {
        for (at, after) in places(&flat, phrase) {
            let mut next = after.split_whitespace().take(4);
            if !next.any(|word| unless.contains(&word)) {
                found.push((numbers[at], format!("\"{phrase}\": {instead}")));
            }
        }
    }
    for (at, after) in places(&flat, TAIL) {
        let mut rest = after.chars();
        if rest.next().is_some_and(|c| ".,;:)".contains(c)) && rest.next().is_none_or(|c| c.is_whitespace()) {
            found.push((numbers[at], format!("\"{TAIL}\": in total, altogether")));
        }
    }
    found
}

#[test]
fn english_is_plain() {
    let mut texts: Vec<PathBuf> = all_sources();
    texts.extend(documents());
    texts.push(root().join("CHANGELOG.md"));
    texts.retain(|path| {
        let name = shown(path);
        !name.ends_with("tidy/words.rs") && !LEFT_ALONE.iter().any(|room| name.starts_with(room))
    });
    let mut all = Vec::new();
    for path in texts {
        let found = faults(&read(&path));
        all.extend(found.iter().map(|(line, what)| format!("{}:{line}: {what}", shown(&path))));
    }
    assert!(all.is_empty(), "{} phrases:\n{}", all.len(), all.join("\n"));
}

#[test]
fn a_phrase_is_found_across_lines_and_only_as_words() {
    assert_eq!(faults("/// At most so\n/// many bytes.").len(), 1);
    assert_eq!(
        faults("// So many rows that it matters; janewby; so long as it holds; in all trees").len(),
        0
    );
    assert_eq!(faults("frames in all.\n").first().map(|(line, _)| *line), Some(1));
    assert_eq!(faults("for x in all.iter() {}").len(), 0);
}
