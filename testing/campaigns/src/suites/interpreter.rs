//! Plays a script: variables, conditions, loops, connections and included files.
//!
//! What a statement does is the [`Stage`]'s business. Queries inside commands (`let $a = `SELECT …``) are
//! answered by one server for all, so that every server plays the same statements. Commands that only shape
//! mysqltest's own output are passed over; where a script needs what no stage has (a restart, another
//! account, statements that wait for each other) its play ends there, with the reason.

use super::script::{Action, Command, first_word, parse};
use anyhow::Result;
use std::collections::HashMap;
use std::ops::ControlFlow;

/// Where statements are played.
pub trait Stage {
    /// Plays a statement; `sorted` says that the order of its rows means nothing.
    fn statement(&mut self, file: &str, line: usize, sql: &str, sorted: bool) -> Result<()>;
    /// The rows of a query inside a command, with the names of their columns.
    fn query(&mut self, sql: &str) -> Result<(Vec<String>, Vec<Vec<String>>)>;
    /// Goes on with this connection, which is made when it is not there.
    fn connection(&mut self, name: &str) -> Result<()>;
    fn disconnect(&mut self, name: &str);
    /// The text of an included file.
    fn included(&mut self, name: &str) -> Option<String>;
    /// A reason to stop: time is up, a server is gone.
    fn stop(&self) -> Option<String>;
}

/// Why a play ended before the end of its script.
type Ended = ControlFlow<String>;

/// Files that demand what a running server beside others cannot give.
const UNPLAYABLE: [&str; 12] = [
    "have_debug",
    "have_log_bin",
    "have_binlog_format",
    "master-slave",
    "restart_mysqld",
    "start_mysqld",
    "shutdown_mysqld",
    "kill_mysqld",
    "have_wsrep",
    "have_plugin",
    "expect_crash",
    "not_embedded_ps",
];

/// Conditions on the server and waits for others, which say nothing here.
const PASSED_OVER: [&str; 9] =
    ["have_", "not_", "no_", "protocol", "count_sessions", "wait_", "big_test", "maybe_", "long_test"];

/// Rounds of one loop, at most.
const ROUNDS: usize = 3000;

pub struct Interpreter<'a, S> {
    stage: &'a mut S,
    variables: HashMap<String, String>,
    sorted: bool,
    depth: usize,
}

impl<'a, S: Stage> Interpreter<'a, S> {
    pub fn new(stage: &'a mut S) -> Interpreter<'a, S> {
        let variables = HashMap::from([("ENGINE".to_owned(), "InnoDB".to_owned())]);
        Interpreter { stage, variables, sorted: false, depth: 0 }
    }

    /// Plays a script; the reason when it ended before its end.
    pub fn play(&mut self, file: &str, text: &str) -> Result<Option<String>> {
        let commands = parse(text)?;
        Ok(self.block(file, &commands)?.break_value())
    }

    fn block(&mut self, file: &str, commands: &[Command]) -> Result<Ended> {
        for command in commands {
            if let Some(reason) = self.stage.stop() {
                return Ok(ControlFlow::Break(reason));
            }
            let ended = self.command(file, command)?;
            if ended.is_break() {
                return Ok(ended);
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn command(&mut self, file: &str, command: &Command) -> Result<Ended> {
        match &command.action {
            Action::Statement(sql) => self.statement(file, command.line, sql),
            Action::Word(word, arguments) => self.word(file, command.line, word, arguments),
            Action::If(condition, body) => match self.holds(condition)? {
                true => self.block(file, body),
                false => Ok(ControlFlow::Continue(())),
            },
            Action::While(condition, body) => {
                let mut rounds = 0;
                while self.holds(condition)? {
                    rounds += 1;
                    let ended = self.block(file, body)?;
                    if ended.is_break() {
                        return Ok(ended);
                    }
                    if rounds == ROUNDS {
                        return Ok(ControlFlow::Break(format!("a loop of more than {ROUNDS} rounds")));
                    }
                }
                Ok(ControlFlow::Continue(()))
            }
        }
    }

    fn statement(&mut self, file: &str, line: usize, sql: &str) -> Result<Ended> {
        let sorted = std::mem::take(&mut self.sorted);
        self.stage.statement(file, line, sql.trim(), sorted)?;
        Ok(ControlFlow::Continue(()))
    }

    fn word(&mut self, file: &str, line: usize, word: &str, arguments: &str) -> Result<Ended> {
        match word {
            "let" => self.assign(arguments)?,
            "inc" | "dec" => {
                let name = arguments.trim().trim_start_matches('$');
                let step = if word == "inc" { 1 } else { -1 };
                let value = self.variables.get(name).and_then(|text| text.trim().parse::<i64>().ok());
                self.variables.insert(name.to_owned(), (value.unwrap_or(0) + step).to_string());
            }
            "eval" | "evalp" => {
                let sql = self.substituted(arguments)?;
                return self.statement(file, line, &sql);
            }
            "query" | "query_vertical" | "query_horizontal" => {
                let sql = self.substituted(arguments)?;
                return self.statement(file, line, &sql);
            }
            "sorted_result" => self.sorted = true,
            "source" => return self.source(arguments),
            "connect" => return self.connect(arguments),
            "connection" => {
                let name = self.substituted(arguments)?;
                self.stage.connection(&name)?;
            }
            "disconnect" | "dirty_close" => self.stage.disconnect(arguments.trim()),
            "exit" | "skip" | "die" => return Ok(ControlFlow::Break(format!("{word} {arguments}"))),
            "send" | "send_eval" | "reap" => {
                return Ok(ControlFlow::Break("statements that wait for others".into()));
            }
            "change_user" | "shutdown_server" | "reset_connection" => {
                return Ok(ControlFlow::Break(format!("{word} is not played")));
            }
            _ => {}
        }
        Ok(ControlFlow::Continue(()))
    }

    fn source(&mut self, arguments: &str) -> Result<Ended> {
        let path = self.substituted(arguments)?;
        let name = path.rsplit('/').next().unwrap_or("").to_owned();
        if UNPLAYABLE.iter().any(|unplayable| name.starts_with(unplayable)) {
            return Ok(ControlFlow::Break(format!("needs {name}")));
        }
        if PASSED_OVER.iter().any(|passed| name.starts_with(passed)) {
            return Ok(ControlFlow::Continue(()));
        }
        let Some(text) = self.stage.included(&path) else {
            return Ok(ControlFlow::Break(format!("no file {path}")));
        };
        if self.depth == 8 {
            return Ok(ControlFlow::Break("files included too deep".into()));
        }
        self.depth += 1;
        let ended = parse(&text).and_then(|commands| self.block(&path, &commands));
        self.depth -= 1;
        ended
    }

    /// `connect (name, host, user, …)`.
    fn connect(&mut self, arguments: &str) -> Result<Ended> {
        let text = self.substituted(arguments)?;
        let text = text.trim().trim_start_matches('(').trim_end_matches(')');
        let parts: Vec<&str> = text.split(',').map(str::trim).collect();
        let user = parts.get(2).copied().unwrap_or("");
        if !["", "root"].contains(&user) {
            return Ok(ControlFlow::Break(format!("another account: {user}")));
        }
        let database = parts.get(4).copied().unwrap_or("");
        if !["", "test", "*NO-ONE*"].contains(&database) {
            return Ok(ControlFlow::Break(format!("a connection to another database: {database}")));
        }
        self.stage.connection(parts[0])?;
        Ok(ControlFlow::Continue(()))
    }

    /// `$name = value`, where the value may be a query.
    fn assign(&mut self, text: &str) -> Result<()> {
        let Some((name, value)) = text.split_once('=') else { return Ok(()) };
        let value = self.value(value.trim())?;
        self.variables.insert(name.trim().trim_start_matches('$').to_owned(), value);
        Ok(())
    }

    /// What stands on the right of `let`, or on a side of a comparison.
    fn value(&mut self, text: &str) -> Result<String> {
        if let Some(query) = text.strip_prefix('`').and_then(|text| text.strip_suffix('`')) {
            let sql = self.substituted(query)?;
            let (_, rows) = self.stage.query(&sql)?;
            return Ok(rows.first().map(|row| row.join("\t")).unwrap_or_default());
        }
        if first_word(text) == "query_get_value" {
            return self.query_get_value(text);
        }
        let text = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\'')).unwrap_or(text);
        self.substituted(text)
    }

    /// `query_get_value(query, column, row)`; the query may have commas of its own.
    fn query_get_value(&mut self, text: &str) -> Result<String> {
        let inner = text.trim_start_matches("query_get_value").trim();
        let inner = inner.trim_start_matches('(').trim_end_matches(')');
        let inner = self.substituted(inner)?;
        let mut parts = inner.rsplitn(3, ',').map(str::trim);
        let (row, column, query) = (parts.next(), parts.next(), parts.next());
        let (Some(row), Some(column), Some(query)) = (row, column, query) else {
            return Ok(String::new());
        };
        let (names, rows) = self.stage.query(query.trim_matches('"'))?;
        let at = names.iter().position(|name| name.eq_ignore_ascii_case(column));
        let row = row.parse::<usize>().ok().and_then(|number| rows.get(number.checked_sub(1)?));
        Ok(at.and_then(|at| row?.get(at).cloned()).unwrap_or_else(|| "No such row".to_owned()))
    }

    /// Whether a condition holds: a value, `!` of one, or a comparison.
    fn holds(&mut self, condition: &str) -> Result<bool> {
        let condition = condition.trim();
        if !condition.starts_with('`') {
            for operator in ["==", "!=", "<=", ">=", "<", ">"] {
                if let Some((left, right)) = condition.split_once(operator) {
                    let (left, right) = (self.value(left.trim())?, self.value(right.trim())?);
                    return Ok(compared(&left, operator, &right));
                }
            }
        }
        let (negated, text) = match condition.strip_prefix('!') {
            Some(text) => (true, text.trim()),
            None => (false, condition),
        };
        let value = self.value(text)?;
        let value = value.trim();
        let holds = value.parse::<f64>().map_or(!value.is_empty(), |number| number != 0.0);
        Ok(holds != negated)
    }

    /// A text with the variables' values in it.
    fn substituted(&self, text: &str) -> Result<String> {
        let mut result = String::new();
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            let (before, after) = rest.split_at(at);
            let name_end = |letter: char| !letter.is_ascii_alphanumeric() && letter != '_';
            let name = after[1..].split(name_end).next().unwrap_or("");
            match before.strip_suffix('\\') {
                Some(before) => result.extend([before, "$", name]),
                None if name.is_empty() => result.extend([before, "$"]),
                None => {
                    result.push_str(before);
                    result.push_str(self.variables.get(name).map_or("", String::as_str));
                }
            }
            rest = &after[1 + name.len()..];
        }
        result.push_str(rest);
        Ok(result)
    }
}

fn compared(left: &str, operator: &str, right: &str) -> bool {
    let order = match (left.parse::<f64>(), right.parse::<f64>()) {
        (Ok(left), Ok(right)) => left.total_cmp(&right),
        _ => left.cmp(right),
    };
    match operator {
        "==" => order.is_eq(),
        "!=" => order.is_ne(),
        "<=" => order.is_le(),
        ">=" => order.is_ge(),
        "<" => order.is_lt(),
        _ => order.is_gt(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Writes down what it is asked to play. A query is answered with its own text.
    #[derive(Default)]
    struct Paper {
        played: Vec<String>,
    }

    impl Stage for Paper {
        fn statement(&mut self, file: &str, line: usize, sql: &str, sorted: bool) -> Result<()> {
            let sorted = if sorted { " sorted" } else { "" };
            self.played.push(format!("{file}:{line}{sorted} {sql}"));
            Ok(())
        }

        fn query(&mut self, sql: &str) -> Result<(Vec<String>, Vec<Vec<String>>)> {
            let text = sql.trim_start_matches("select ").to_owned();
            Ok((vec!["a".into(), "B".into()], vec![vec![text.clone(), "x".into()], vec!["2".into(), text]]))
        }

        fn connection(&mut self, name: &str) -> Result<()> {
            self.played.push(format!("to {name}"));
            Ok(())
        }

        fn disconnect(&mut self, name: &str) {
            self.played.push(format!("close {name}"));
        }

        fn included(&mut self, name: &str) -> Option<String> {
            (name == "include/some.inc").then(|| "eval select $a;\n".to_owned())
        }

        fn stop(&self) -> Option<String> {
            (self.played.len() > 20).then(|| "enough".to_owned())
        }
    }

    fn played(text: &str) -> (Vec<String>, Option<String>) {
        let mut paper = Paper::default();
        let ended = Interpreter::new(&mut paper).play("t", text).unwrap();
        (paper.played, ended)
    }

    #[test]
    fn variables_are_put_in_by_eval_alone() {
        let (played, ended) = played("let $a = 5;\nselect '$a';\neval select $a, '\\$a', $none;");
        assert_eq!(played, ["t:2 select '$a'", "t:3 select 5, '$a',"]);
        assert_eq!(ended, None);
    }

    #[test]
    fn loops_count_down_and_conditions_compare() {
        let text = "let $i=3;\nwhile ($i)\n{\nif ($i != 2)\n{\neval select $i;\n}\ndec $i;\n}\n\
                    if (!$i)\n{\nselect 0;\n}\nif ($i >= 1)\n{\nselect 9;\n}";
        assert_eq!(played(text).0, ["t:6 select 3", "t:6 select 1", "t:12 select 0"]);
    }

    #[test]
    fn values_come_from_queries() {
        let text = "let $a = `select 7`;\nlet $b = query_get_value(select 1, b, 2);\neval select $a, $b;";
        assert_eq!(played(text).0, ["t:3 select 7\tx, 1"]);
        assert_eq!(
            played("let $a = query_get_value(select 1, c, 1);\neval select '$a';").0,
            ["t:2 select 'No such row'"]
        );
    }

    #[test]
    fn an_included_file_shares_the_variables() {
        let text = "let $a=1;\n--source include/have_innodb.inc\n--source include/some.inc\nselect 2;";
        assert_eq!(played(text).0, ["include/some.inc:1 select 1", "t:4 select 2"]);
    }

    #[test]
    fn connections_follow_each_other() {
        let text = "connect (c1,localhost,root,,);\n--sorted_result\nselect 1;\n--connection default\n\
                    select 2;\ndisconnect c1;";
        assert_eq!(
            played(text).0,
            ["to c1", "t:3 sorted select 1", "to default", "t:5 select 2", "close c1"]
        );
    }

    #[test]
    fn a_play_ends_where_the_stage_is_not_enough() {
        for text in
            ["send select 1;", "--source include/have_debug.inc", "--exit", "--source include/none.inc"]
        {
            let (played, ended) = played(&format!("{text}\nselect 2;"));
            assert!(played.is_empty() && ended.is_some(), "{text}: {played:?}");
        }
        let (played, ended) = played("connect (c1,localhost,mysqltest,,);\nselect 2;");
        assert_eq!((played.len(), ended.as_deref()), (0, Some("another account: mysqltest")));
    }

    #[test]
    fn a_loop_without_an_end_ends() {
        assert_eq!(played("while (1)\n{\nselect 1;\n}").1.as_deref(), Some("enough"));
        assert!(played("while (1)\n{\nlet $a=1;\n}").1.unwrap().contains("loop"));
    }
}
