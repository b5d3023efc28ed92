//! Sources: width, length, and no results through the back door.

use std::path::Path;

use crate::{all_sources, find_sources, read, root, shown};

const SOURCE_LINES_MAX: usize = 800;
const FUNCTION_LINES_MAX: usize = 100;
/// `max_width` of `rustfmt.toml`, in characters.
const LINE_WIDTH_MAX: usize = 110;
/// What a command does belongs to `testing/`.
const XTASK_LINES_MAX: usize = 700;

fn lines(path: &Path) -> usize {
    read(path).lines().count()
}

#[test]
fn xtask_is_a_command_line() {
    let mut all = Vec::new();
    find_sources(&root().join("xtask"), &mut all);
    let sum: usize = all.iter().map(|path| lines(path)).sum();
    assert!(sum <= XTASK_LINES_MAX, "xtask has {sum} lines");
}

#[test]
fn source_files_have_one_idea_each() {
    let all = all_sources();
    let long: Vec<_> = all.iter().filter(|path| lines(path) > SOURCE_LINES_MAX).collect();
    assert!(long.is_empty(), "more than {SOURCE_LINES_MAX} lines: {long:?}");
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
        for (number, line) in read(&path).lines().enumerate() {
            let Some(comment) = line.trim_start().strip_prefix("//") else { continue };
            let comment = comment.trim_start_matches(['/', '!']).trim_start();
            if line.chars().count() > LINE_WIDTH_MAX && !may_be_wide(comment) {
                wide.push(format!("{}:{}", path.display(), number + 1));
            }
        }
    }
    assert!(wide.is_empty(), "wider than {LINE_WIDTH_MAX} characters:\n{}", wide.join("\n"));
}

/// The functions of a file with more lines than allowed: name and lines. rustfmt puts the closing brace under
/// the beginning of the line with `fn`.
fn long_functions(text: &str) -> Vec<(String, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut long = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let words = ["pub ", "pub(crate) ", "pub(super) ", "const ", "async ", "unsafe "];
        let code = words.iter().fold(code, |code, word| code.strip_prefix(word).unwrap_or(code));
        let Some(signature) = code.strip_prefix("fn ") else { continue };
        let indent = &line[..line.len() - line.trim_start().len()];
        let end = format!("{indent}}}");
        let declaration = |line: &str| {
            line.starts_with(indent) && line.ends_with(';') && !line.starts_with(&format!("{indent} "))
        };
        let mut rest = lines[start..].iter();
        let Some(count) = rest.position(|line| **line == end || declaration(line)) else { continue };
        if count + 1 > FUNCTION_LINES_MAX {
            let name = signature.split(['(', '<']).next().unwrap();
            long.push((name.to_owned(), count + 1));
        }
    }
    long
}

#[test]
fn functions_have_few_steps() {
    let mut long = Vec::new();
    for path in all_sources() {
        for (name, lines) in long_functions(&read(&path)) {
            long.push(format!("{}: {name} has {lines} lines", shown(&path)));
        }
    }
    assert!(long.is_empty(), "more than {FUNCTION_LINES_MAX} lines:\n{}", long.join("\n"));
}

/// A flag that a function sets through a reference is a result in disguise: an enum or a struct says what it
/// means.
#[test]
fn results_are_returned() {
    let mut found = Vec::new();
    let hidden = concat!(": &mut", " bool");
    for path in all_sources() {
        for (number, line) in read(&path).lines().enumerate() {
            if line.contains(hidden) && !line.trim_start().starts_with("//") {
                found.push(format!("{}:{}", shown(&path), number + 1));
            }
        }
    }
    assert!(found.is_empty(), "`&mut bool` parameters:\n{}", found.join("\n"));
}
