//! A script in the language of mysqltest, read into commands.
//!
//! A line that begins with `--` is a command of its own; anything else ends at the delimiter. What does not
//! begin with a command's name is a statement for the server. `if` and `while` have blocks in braces. The
//! delimiter changes where the text says so, so that reading needs no server.

use anyhow::{Result, bail};

/// One command and the line that it begins in.
#[derive(Clone, Debug, PartialEq)]
pub struct Command {
    pub line: usize,
    pub action: Action,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// A statement for the server.
    Statement(String),
    /// A command of the language: its name in small letters, and the rest.
    Word(String, String),
    If(String, Vec<Command>),
    While(String, Vec<Command>),
}

/// Words that are commands without `--` too. After `--` every word is one.
const WORDS: [&str; 46] = [
    "append_file",
    "cat_file",
    "change_user",
    "character_set",
    "chmod",
    "connect",
    "connection",
    "copy_file",
    "dec",
    "delimiter",
    "die",
    "diff_files",
    "dirty_close",
    "disable_query_log",
    "disable_result_log",
    "disable_warnings",
    "disconnect",
    "echo",
    "enable_query_log",
    "enable_result_log",
    "enable_warnings",
    "error",
    "eval",
    "exec",
    "exit",
    "file_exists",
    "inc",
    "let",
    "mkdir",
    "perl",
    "ping",
    "query_horizontal",
    "query_vertical",
    "real_sleep",
    "reap",
    "remove_file",
    "replace_column",
    "replace_result",
    "rmdir",
    "send",
    "send_quit",
    "skip",
    "sleep",
    "source",
    "sorted_result",
    "write_file",
];

/// Commands whose following lines, up to `EOF`, are a text and no script.
const WITH_TEXT: [&str; 3] = ["append_file", "perl", "write_file"];

/// Reads a script.
pub fn parse(text: &str) -> Result<Vec<Command>> {
    let mut reader = Reader { rest: text, line: 1, delimiter: ";".to_owned() };
    let commands = reader.block(false)?;
    Ok(commands)
}

struct Reader<'a> {
    rest: &'a str,
    line: usize,
    delimiter: String,
}

impl<'a> Reader<'a> {
    /// Commands up to the end of the text, or to the brace that ends a block.
    fn block(&mut self, inner: bool) -> Result<Vec<Command>> {
        let mut commands = Vec::new();
        loop {
            self.skip_blank();
            let line = self.line;
            if self.rest.is_empty() {
                return Ok(commands);
            }
            if self.rest.starts_with('}') {
                self.take(1);
                if inner {
                    return Ok(commands);
                }
                continue;
            }
            if self.rest.starts_with('#') {
                self.take_line();
                continue;
            }
            let action = if let Some(conditional) = self.conditional()? {
                conditional
            } else if self.rest.starts_with("--") {
                let text = self.take_line().trim_start_matches('-').trim();
                match text.is_empty() || !text.starts_with(|c: char| c.is_ascii_alphabetic()) {
                    true => continue,
                    false => word_of(text.trim_end_matches(';')),
                }
            } else {
                let text = self.take_statement();
                match first_word(&text) {
                    _ if text.trim().is_empty() => continue,
                    word if WORDS.contains(&&*word) => word_of(&text),
                    _ => Action::Statement(text),
                }
            };
            if let Some(action) = self.after_word(action) {
                commands.push(Command { line, action });
            }
        }
    }

    /// What a command does to the reading of what follows it.
    fn after_word(&mut self, action: Action) -> Option<Action> {
        if let Action::Word(word, arguments) = &action {
            if word == "delimiter" {
                let new = arguments.trim();
                // After `--` a semicolon at the end was taken for the end of the command.
                self.delimiter = if new.is_empty() { ";" } else { new }.to_owned();
                return None;
            }
            if WITH_TEXT.contains(&&**word) {
                let end = arguments.split_whitespace().nth(1).unwrap_or("EOF").to_owned();
                while !self.rest.is_empty() && self.take_line().trim() != end {}
            }
        }
        Some(action)
    }

    /// `if (…) {…}` or `while (…) {…}`, when that is what comes.
    fn conditional(&mut self) -> Result<Option<Action>> {
        let text = self.rest.strip_prefix("--").unwrap_or(self.rest).trim_start();
        let word = first_word(text);
        let after = text.get(word.len()..).unwrap_or("").trim_start();
        if !["if", "while"].contains(&&*word) || !after.starts_with('(') {
            return Ok(None);
        }
        self.take(self.rest.len() - after.len());
        let Some(length) = closing(after) else {
            bail!("line {}: the condition does not end", self.line);
        };
        let condition = self.take(length + 1)[1..length].trim().to_owned();
        self.skip_blank();
        if !self.rest.starts_with('{') {
            bail!("line {}: no block after the condition", self.line);
        }
        self.take(1);
        let body = self.block(true)?;
        Ok(Some(if word == "if" { Action::If(condition, body) } else { Action::While(condition, body) }))
    }

    /// A statement, without its delimiter. Delimiters in quotes and in lines of comment do not end it.
    fn take_statement(&mut self) -> String {
        let mut quote = None;
        let mut line_start = false;
        let mut skip_to = 0;
        for (at, letter) in self.rest.char_indices() {
            if at < skip_to {
                continue;
            }
            let rest = &self.rest[at..];
            match quote {
                Some('\n') if letter == '\n' => (quote, line_start) = (None, true),
                Some(open) if open != '\n' && letter == '\\' => skip_to = at + 1 + next_length(rest),
                Some(open) if letter == open => quote = None,
                Some(_) => {}
                None if rest.starts_with(&*self.delimiter) => {
                    let length = self.delimiter.len();
                    let text = self.take(at).to_owned();
                    self.take(length);
                    return text;
                }
                None if line_start && (letter == '#' || rest.starts_with("-- ")) => quote = Some('\n'),
                None if "'\"`".contains(letter) => quote = Some(letter),
                None => {}
            }
            if quote.is_none() {
                line_start = letter == '\n' || line_start && letter.is_whitespace();
            }
        }
        self.take(self.rest.len()).to_owned()
    }

    fn skip_blank(&mut self) {
        self.take(self.rest.len() - self.rest.trim_start().len());
    }

    fn take_line(&mut self) -> &'a str {
        let end = self.rest.find('\n').map_or(self.rest.len(), |at| at + 1);
        self.take(end)
    }

    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length);
        self.line += taken.matches('\n').count();
        self.rest = rest;
        taken
    }
}

/// Bytes of the letter after the backslash that `text` begins with.
fn next_length(text: &str) -> usize {
    text.chars().nth(1).map_or(0, char::len_utf8)
}

/// Where the parenthesis that `text` begins with ends.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0;
    let mut quote = None;
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            (Some(open), _) => quote = Some(open).filter(|open| *open != letter),
            (None, '\'' | '"') => quote = Some(letter),
            (None, '(') => depth += 1,
            (None, ')') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// The word that a text begins with, in small letters.
pub fn first_word(text: &str) -> String {
    let word = text.trim_start().split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next();
    word.unwrap_or("").to_ascii_lowercase()
}

fn word_of(text: &str) -> Action {
    let text = text.trim();
    let word = first_word(text);
    let arguments = text[word.len()..].trim().to_owned();
    Action::Word(word, arguments)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn statement(text: &str) -> Action {
        Action::Statement(text.to_owned())
    }

    fn word(word: &str, arguments: &str) -> Action {
        Action::Word(word.to_owned(), arguments.to_owned())
    }

    fn actions(text: &str) -> Vec<Action> {
        parse(text).unwrap().into_iter().map(|command| command.action).collect()
    }

    #[test]
    fn statements_end_at_the_delimiter_outside_of_quotes_and_comments() {
        assert_eq!(actions("select ';', \"a\\\";b\", `c;d`;"), [statement("select ';', \"a\\\";b\", `c;d`")]);
        let text = "select 1,\n# it's; a comment\n2;\nselect 3;";
        assert_eq!(actions(text), [statement("select 1,\n# it's; a comment\n2"), statement("select 3")]);
    }

    #[test]
    fn the_delimiter_changes_where_the_text_says_so() {
        let text = "delimiter |;\nselect 1; select 2|\ndelimiter ;|\nselect 3;";
        assert_eq!(actions(text), [statement("select 1; select 2"), statement("select 3")]);
        let text = "--delimiter |\nselect 1; select 2|\n--delimiter ;\nselect 3;";
        assert_eq!(actions(text), [statement("select 1; select 2"), statement("select 3")]);
    }

    #[test]
    fn commands_with_and_without_dashes() {
        let text = "--error ER_NO\nlet $a= 1;\n--- nothing\n--\nselect 1;\n# echo\necho x;";
        assert_eq!(
            actions(text),
            [
                word("error", "ER_NO"),
                word("let", "$a= 1"),
                word("nothing", ""),
                statement("select 1"),
                word("echo", "x")
            ]
        );
    }

    #[test]
    fn blocks_nest_and_lines_count() {
        let commands =
            parse("select 0;\nwhile ($i)\n{\n  if (`select ')'`) {\nselect 1;\n}\n  dec $i;\n}\n").unwrap();
        let Action::While(condition, body) = &commands[1].action else { panic!("{commands:?}") };
        assert_eq!((&**condition, commands[1].line, body.len()), ("$i", 2, 2));
        let Action::If(condition, inner) = &body[0].action else { panic!("{body:?}") };
        assert_eq!(condition, "`select ')'`");
        assert_eq!(inner[0], Command { line: 5, action: statement("select 1") });
        assert_eq!(body[1].action, word("dec", "$i"));
    }

    #[test]
    fn a_text_up_to_eof_is_no_script() {
        assert_eq!(actions("--perl\nprint 'x;\nEOF\nselect 1;"), [word("perl", ""), statement("select 1")]);
        assert_eq!(
            actions("--write_file f END\nselect 0;\nEND\nselect 1;"),
            [word("write_file", "f END"), statement("select 1")]
        );
    }

    #[test]
    fn a_condition_without_an_end_is_an_error() {
        assert!(parse("if ($a").is_err());
        assert!(parse("if ($a)\nselect 1;").is_err());
    }
}
