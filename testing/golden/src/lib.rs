//! Golden scripts: commands and the answers that are expected, in one file.
//!
//! A script is blocks with an empty line between them. A block is commands, a line each, then a line `----`,
//! then the lines that they answer. Lines that begin with `#` are comments: they say why the answers are
//! right. What a command means is the caller's business, see [`play`].
//!
//! With `GOLDEN=write` in the environment the answers are written into the files instead of being compared.
//! Read the difference before you commit it: a script shows what the engine does, and whether it is right is
//! for the reader to say.

use std::fs;
use std::path::Path;

/// The line between commands and answers.
const ANSWERS: &str = "\n----";

/// Plays every script (`*.test`) of a directory, each on a machine of its own, which answers commands.
///
/// # Panics
/// When a script has other answers, or there is none; with the first difference of each.
pub fn play<M: FnMut(&str) -> String>(scripts: impl AsRef<Path>, mut machine: impl FnMut() -> M) {
    let write = std::env::var_os("GOLDEN").is_some_and(|how| how == "write");
    let (mut played, mut wrong) = (0, Vec::new());
    let mut paths: Vec<_> = match fs::read_dir(&scripts) {
        Ok(entries) => entries.flatten().map(|entry| entry.path()).collect(),
        Err(error) => panic!("{}: {error}", scripts.as_ref().display()),
    };
    paths.sort();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|extension| extension == "test")) {
        let script = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let found = answered(&script, machine());
        played += 1;
        if write {
            fs::write(path, &found).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        } else if found != script {
            wrong.push(format!("{}\n{}", path.display(), difference(&script, &found)));
        }
    }
    assert!(played > 0, "no script in {}", scripts.as_ref().display());
    assert!(
        wrong.is_empty(),
        "{}\n\nGOLDEN=write takes what was answered into the files",
        wrong.join("\n\n")
    );
}

/// The script with the machine's answers.
fn answered(script: &str, mut machine: impl FnMut(&str) -> String) -> String {
    let blocks = script.split("\n\n").map(|block| block.trim_matches('\n')).filter(|block| !block.is_empty());
    let answered = blocks.map(|block| {
        let asked = block.split(ANSWERS).next().unwrap_or_default();
        let commands = asked.lines().filter(|line| !line.starts_with('#'));
        let answers: Vec<String> = commands.map(&mut machine).collect();
        match answers.is_empty() {
            true => asked.to_owned(),
            false => {
                let lines = answers.iter().flat_map(|answer| answer.lines());
                format!("{asked}{ANSWERS}{}", lines.map(|line| format!("\n{line}")).collect::<String>())
            }
        }
    });
    answered.collect::<Vec<_>>().join("\n\n") + "\n"
}

/// The first block that differs.
fn difference(wanted: &str, found: &str) -> String {
    let mut pairs = wanted.split("\n\n").zip(found.split("\n\n"));
    let differs = pairs.find(|(wanted, found)| wanted != found);
    let (wanted, found) = differs.unwrap_or(("no such block", "another number of blocks"));
    format!("wanted:\n{wanted}\nfound:\n{found}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str = "# Says what it is told.\n\nsay a\n# Twice.\nsay b\n----\na\nb\n\nbe quiet\n----\n";

    fn parrot(command: &str) -> String {
        command.strip_prefix("say ").unwrap_or_default().to_owned()
    }

    #[test]
    fn right_answers_change_nothing() {
        assert_eq!(answered(SCRIPT, parrot), SCRIPT);
        assert_eq!(answered("say a", parrot), "say a\n----\na\n");
    }

    #[test]
    fn a_wrong_answer_is_shown_with_its_block() {
        let script = SCRIPT.replace("----\na\n", "----\nc\n");
        let found = answered(&script, parrot);
        assert_eq!(found, SCRIPT);
        assert!(difference(&script, &found).contains("wanted:\nsay a\n# Twice.\nsay b\n----\nc\nb\nfound:"));
    }
}
