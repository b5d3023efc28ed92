//! The README boasts with figures of recorded runs only.

use std::collections::BTreeMap;

use crate::{read, root};

/// Figures of the README: "1.47 ×", "90 %", "0.9 s", "from 1.06 to 1.99".
fn figures(text: &str) -> Vec<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let number = |word: &str| {
        let word = word.trim_end_matches(['.', ',', ';', ':']);
        word.parse::<f64>().is_ok().then(|| word.to_owned())
    };
    let mut found = Vec::new();
    for pair in words.windows(2) {
        let unit = pair[1].trim_end_matches(['.', ',', ';', ':', ')']);
        if ["×", "%", "s"].contains(&unit) {
            found.extend(number(pair[0]));
        }
    }
    for range in words.windows(4).filter(|words| words[0] == "from" && words[2] == "to") {
        found.extend([range[1], range[3]].iter().filter_map(|word| number(word)));
    }
    found
}

/// The numbers that the tables and sentences of a page hold.
fn numbers(page: &str) -> Vec<&str> {
    page.split(|c: char| !c.is_ascii_digit() && c != '.' && c != ',')
        .map(|n| n.trim_matches(['.', ',']))
        .collect()
}

#[test]
fn figures_of_the_readme_stand_on_the_page_it_links() {
    let readme = read(&root().join("README.md"));
    assert!(readme.contains("(docs/benchmarks.md)"), "the README links no page for its figures");
    let benchmarks = read(&root().join("docs/benchmarks.md"));
    let known = numbers(&benchmarks);
    let figures = figures(&readme);
    assert!(figures.len() >= 8, "{figures:?}");
    let unknown: Vec<_> = figures.iter().filter(|figure| !known.contains(&figure.as_str())).collect();
    assert!(unknown.is_empty(), "docs/benchmarks.md does not have {unknown:?}");
}

/// The record that the benchmarks page gives for its headline.
fn newest_record() -> serde_json::Value {
    let page = read(&root().join("docs/benchmarks.md"));
    let (_, rest) = page.split_once("(benchmarks/runs/").expect("a link to a record");
    let (name, _) = rest.split_once(')').unwrap();
    serde_json::from_str(&read(&root().join("docs/benchmarks/runs").join(name))).unwrap()
}

fn names<'r>(
    of: &'r serde_json::Value,
    name: impl Fn(&'r serde_json::Value) -> &'r serde_json::Value,
) -> Vec<&'r str> {
    of.as_array().unwrap().iter().map(|one| name(one).as_str().unwrap()).collect()
}

fn geometric_mean(values: &[f64]) -> f64 {
    assert!(!values.is_empty(), "nothing was measured");
    (values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64).exp()
}

/// Ours to a peer's in one script: the mean over the rounds.
fn ratio(
    samples: &[serde_json::Value],
    script: &str,
    servers: [&str; 2],
    of: fn(&serde_json::Value) -> f64,
) -> f64 {
    let [ours, theirs] = servers.map(|server| {
        let of_server =
            samples.iter().filter(|sample| sample["script"] == script && sample["server"] == server);
        of_server.map(|sample| (sample["round"].as_u64().unwrap(), of(sample))).collect::<BTreeMap<_, _>>()
    });
    geometric_mean(&ours.iter().map(|(round, value)| value / theirs[round]).collect::<Vec<_>>())
}

#[test]
fn the_headline_is_what_the_record_gives() {
    let record = newest_record();
    let scripts = names(&record["load"]["scripts"], |script| script);
    let servers = names(&record["servers"], |server| &server["name"]);
    let (ours, peers) = servers.split_first().unwrap();
    let samples = record["samples"].as_array().unwrap();
    let of_peers = |script: &str, of| {
        peers.iter().map(|peer| ratio(samples, script, [*ours, *peer], of)).collect::<Vec<_>>()
    };
    let speed = |sample: &serde_json::Value| sample["queries_per_second"].as_f64().unwrap();
    let cost = |sample: &serde_json::Value| {
        sample["processor_us"].as_f64().unwrap() / sample["queries"].as_f64().unwrap()
    };
    let faster: Vec<f64> =
        scripts.iter().map(|script| of_peers(script, speed).into_iter().fold(f64::MAX, f64::min)).collect();
    let cheaper: Vec<f64> =
        scripts.iter().map(|script| of_peers(script, cost).into_iter().fold(0.0, f64::max)).collect();
    let (least, most) =
        (faster.iter().copied().fold(f64::MAX, f64::min), faster.iter().copied().fold(0.0, f64::max));
    let readme = read(&root().join("README.md"));
    for figure in [
        format!("{:.2} × the queries", geometric_mean(&faster)),
        format!("{:.2} × the CPU time", geometric_mean(&cheaper)),
        format!("from {least:.2} to {most:.2}"),
    ] {
        assert!(readme.contains(&figure), "the record gives \"{figure}\", the README has something else");
    }
}
