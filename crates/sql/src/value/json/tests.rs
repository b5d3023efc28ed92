//! Documents there and back.

use super::parse::{Fault, parse};
use super::{DEPTH_MAX, Json, Room, binary, path};
use crate::errors;

fn read(text: &str) -> Json {
    match parse(text.as_bytes(), &mut Room::new(&|_| Ok(()))) {
        Ok(value) => value,
        Err(fault) => panic!("{text}: {fault:?}"),
    }
}

fn there_and_back(value: &Json) -> Option<Json> {
    binary::encode(value).ok().and_then(|bytes| binary::decode(&bytes))
}

#[test]
fn the_binary_form_keeps_every_document() {
    let long = "x".repeat(70_000);
    let texts = [
        "null",
        "true",
        "[]",
        "{}",
        "-1",
        "65535",
        "-32769",
        "2147483648",
        "18446744073709551615",
        "1.5e300",
        "\"\"",
        "[[1, -1], {\"a\": [true, null, 40000, -40000, 3000000000]}]",
        &format!("\"{}\"", "é".repeat(100)),
        &format!("{{\"a\": 1, \"b\": \"{long}\", \"c\": [70000]}}"),
        &format!("[{}]", vec!["1"; 30_000].join(", ")),
    ];
    for text in texts {
        let value = read(text);
        assert_eq!(there_and_back(&value).as_ref().map(Json::print), Some(value.print()));
    }
}

#[test]
fn exact_numbers_keep_their_digits() {
    for text in ["0", "1.50", "-1.50", "0.001", "123456789012345678901234567890.123", "-999999999", "-0.10"] {
        let Some(number) = crate::value::decimal::parse(text) else { panic!("{text}") };
        let value = Json::Decimal(Box::new(number));
        assert_eq!(there_and_back(&value).map(|value| value.print()).as_deref(), Some(text));
    }
}

/// Bytes made by hand from the documented form.
#[test]
fn the_binary_form_is_the_one_of_mysql() {
    let bytes = binary::encode(&read("{\"a\": 1, \"bb\": [\"x\", 70000]}"));
    let wanted: &[u8] = &[
        0, 2, 0, 40, 0, 18, 0, 1, 0, 19, 0, 2, 0, 5, 1, 0, 2, 21, 0, b'a', b'b', b'b', 2, 0, 16, 0, 12, 10,
        0, 7, 12, 0, 1, b'x', 0x70, 0x11, 1, 0,
    ];
    let mut wanted = wanted.to_vec();
    wanted[3] = wanted.len() as u8 - 1;
    assert_eq!(bytes.ok(), Some(wanted));
}

#[test]
fn what_is_damaged_is_no_document() {
    let sound = binary::encode(&read("{\"a\": [1, \"x\", {\"b\": 2.5}], \"c\": 18446744073709551615}"));
    let sound = sound.unwrap_or_default();
    for at in 0..sound.len() {
        for byte in [0, 1, 2, 0x7f, 0xff] {
            let mut damaged = sound.clone();
            damaged[at] = byte;
            let _ = binary::decode(&damaged);
            let _ = binary::decode(&damaged[..at]);
        }
    }
    // An array of itself.
    assert_eq!(binary::decode(&[2, 1, 0, 8, 0, 2, 0, 0]), None);
}

#[test]
fn nesting_ends_at_the_limit() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let value = read(&nested(DEPTH_MAX));
    assert!(there_and_back(&value).is_some());
    let text = nested(1_000_000);
    let deeper = parse(text.as_bytes(), &mut Room::new(&|_| Ok(())));
    assert!(matches!(deeper, Err(Fault::Other(error)) if error.code == errors::JSON_DOCUMENT_TOO_DEEP));
    let around = binary::encode(&Json::Array(vec![value]));
    assert_eq!(around.map_err(|error| error.code), Err(errors::JSON_DOCUMENT_TOO_DEEP));
}

#[test]
fn memory_is_asked_for_before_it_is_used() {
    let text = format!("[{}]", vec!["1"; 100_000].join(","));
    let refuse = |_| Err(crate::memory::refused());
    let read = parse(text.as_bytes(), &mut Room::new(&refuse));
    assert!(matches!(read, Err(Fault::Other(error)) if error.code == errors::OUT_OF_RESOURCES));
}

#[test]
fn groups_and_sorting_agree_with_the_order() {
    let texts = [
        "null",
        "-1.5",
        "0",
        "1",
        "1.0",
        "18446744073709551615",
        "\"\"",
        "\"a\"",
        "\"b\"",
        "{}",
        "{\"a\": 1}",
        "{\"a\": 1.0}",
        "[]",
        "[1]",
        "[1.0]",
        "[1, 2]",
        "false",
        "true",
    ];
    let values = texts.map(read);
    for left in &values {
        for right in &values {
            let (mut a, mut b) = (Vec::new(), Vec::new());
            left.group_key(&mut a);
            right.group_key(&mut b);
            assert_eq!(a == b, left.order(right).is_eq(), "{left:?} {right:?}");
            let (mut a, mut b) = (Vec::new(), Vec::new());
            left.sort_key(&mut a);
            right.sort_key(&mut b);
            assert!(a == b || a.cmp(&b) == left.order(right), "{left:?} {right:?}");
        }
    }
}

#[test]
fn values_do_not_share_their_bytes() {
    // Arrays of two, each of which is the next array: 2^99 values in a kilobyte.
    let mut shared = vec![2];
    (0..99).for_each(|_| shared.extend_from_slice(&[2, 0, 10, 0, 2, 10, 0, 2, 10, 0]));
    shared.extend_from_slice(&[0, 0, 4, 0]);
    assert_eq!(binary::decode(&shared), None);
    // A text that two elements have.
    let both = [&[2, 2, 0, 112, 0, 12, 10, 0, 12, 10, 0, 100][..], &[b'a'; 100]].concat();
    assert_eq!(binary::decode(&both), None);
}

#[test]
fn a_moment_that_is_none_is_no_document() {
    for kind in [10, 11, 12] {
        let packed = |bytes: [u8; 8]| [&[15, kind, 8][..], &bytes].concat();
        assert!(
            binary::decode(&packed([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f])).is_none(),
            "{kind}"
        );
        assert!(binary::decode(&packed([0; 8])).is_some(), "{kind}");
    }
    assert_eq!(binary::decode(&[&[11][..], &f64::NAN.to_le_bytes()].concat()), None);
}

#[test]
fn the_beginning_of_a_text_is_before_it_both_ways() {
    let key = |text: &str, turned: bool| {
        let mut key = Vec::new();
        Json::Text(text.to_owned()).sort_key(&mut key);
        key.iter_mut().filter(|_| turned).for_each(|byte| *byte = !*byte);
        key.push(0xfe);
        key
    };
    for (less, more) in [("a", "ab"), ("", "\0"), ("a", "a\0"), ("a\0", "a\u{1}")] {
        assert!(key(less, false) < key(more, false), "{less:?} {more:?}");
        assert!(key(less, true) > key(more, true), "{less:?} {more:?}");
    }
}

#[test]
fn a_path_has_an_end() {
    assert!(path::Path::parse(&format!("${}", "[0]".repeat(1000))).is_ok());
    assert!(path::Path::parse(&format!("${}", "[0]".repeat(1001))).is_err());
}

#[test]
fn functions_refuse_what_is_damaged() {
    let damaged = [2, 1, 0, 8, 0, 2, 0, 0];
    let read = Json::decoded(&damaged, &mut Room::new(&|_| Ok(())));
    assert_eq!(read.map_err(|error| error.code), Err(errors::INVALID_JSON_BINARY_DATA));
}
