#![allow(clippy::unwrap_used)]
use super::*;

fn parsed(words: &[&str]) -> Result<Option<Arguments>, String> {
    parse(words.iter().map(|word| (*word).to_owned()))
}

#[test]
fn the_command_line_is_checked() {
    let expected = Arguments { path: "/data".into(), json: true, page_bytes: 4096, measure: false };
    assert_eq!(parsed(&["--json", "--page-size", "4k", "/data", "--no-measure"]), Ok(Some(expected)));
    assert_eq!(parsed(&["/data", "--page-size=65536"]).unwrap().unwrap().page_bytes, 65_536);
    assert_eq!(parsed(&["/data", "--help"]), Ok(None));
    for (words, complaint) in [
        (&[][..], "path is missing"),
        (&["/a", "/b"], "one path"),
        (&["/a", "--jason"], "unknown option --jason"),
        (&["/a", "--page-size=5000"], "4K, 8K"),
        (&["/a", "--page-size"], "needs a size"),
    ] {
        let message = parsed(words).unwrap_err();
        assert!(message.contains(complaint), "{message}");
    }
}

#[test]
fn a_directory_is_answered_for_and_left_as_it_was() {
    let directory = std::env::temp_dir().join(format!("untorn-probe-command-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let path = directory.clone();
    let answer = answer(&Arguments { path, json: true, page_bytes: 4096, measure: true }).unwrap();
    let measured = answer.measured.as_ref().unwrap();
    assert!(measured.plain_write.count > 0 && measured.sync.count > 0);
    let refused = measured.atomic_refusal.is_some();
    assert!(refused != answer.verdict.flagged, "{:?} {:?}", answer.verdict, measured);
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0);
    let text = text::describe(&answer);
    assert!(text.contains(&answer.verdict.reason) && text.contains("fdatasync"), "{text}");
    // Every key the help names is there.
    let json = serde_json::to_value(&answer).unwrap();
    for key in ["/page_bytes", "/verdict/atomic", "/verdict/flagged", "/verdict/reason", "/advice"]
        .into_iter()
        .chain(["/facts/file_system", "/facts/direct_io", "/facts/atomic", "/facts/device", "/facts/kernel"])
        .chain(["/measured/sync/median_us", "/measured/plain_write/count", "/measured/atomic_write"])
    {
        assert!(json.pointer(key).is_some(), "{key} in {json}");
    }
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn what_is_not_there_is_an_error() {
    let missing = Arguments { path: "/no/such/place".into(), json: false, page_bytes: 16_384, measure: true };
    assert!(answer(&missing).unwrap_err().to_string().contains("/no/such/place"));
}
