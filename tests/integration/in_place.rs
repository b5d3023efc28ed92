//! Values and pairs of a key-value table that are looked at where they lie: the same as copies are.
#![allow(clippy::unwrap_used)]

use untorn::{Database, Error};

#[test]
fn what_lies_there_is_what_a_copy_says() {
    let db = Database::in_memory().unwrap();
    let files = db.key_value::<(String, u32), (Option<Vec<u8>>, i64)>("files").unwrap();
    let content =
        |n: u32| (!n.is_multiple_of(7)).then(|| vec![n as u8; if n == 150 { 100_000 } else { n as usize }]);
    let mut t = db.begin();
    for n in 0..300 {
        files.put(&mut t, ("a", n), (content(n).as_deref(), -i64::from(n))).unwrap();
    }
    t.commit().unwrap();

    let mut t = db.begin();
    for round in 0..6 {
        // The first of them use the table, the later ones find pages that have been searched.
        for n in (0..300).rev() {
            let copy = files.get(&mut t, ("a", n)).unwrap();
            assert_eq!(copy, Some((content(n), -i64::from(n))), "round {round}");
            let seen = files.look(&mut t, ("a", n), |(content, m)| (content.map(<[u8]>::to_vec), m));
            assert_eq!(seen.unwrap(), copy, "round {round}");
        }
        assert_eq!(files.look(&mut t, ("b", 0), |_| ()).unwrap(), None);
    }
    let has_heads = |(name, bytes): &(&str, u64)| *name == "Untorn_buffer_pool_heads_bytes" && *bytes > 0;
    assert!(db.status().iter().any(has_heads), "no page has got heads");
    let mut pairs = files.range(&mut t, ("a", 100)..("a", 200));
    for n in 0..50 {
        // Both ways of asking, from both ends, meet in the middle.
        let ((name, m), (bytes, _)) = pairs.next_in_place().unwrap().unwrap();
        assert_eq!((name, m, bytes), ("a", 100 + n, content(100 + n).as_deref()));
        let last = 199 - n;
        if n % 2 == 0 {
            assert_eq!(pairs.next_back().unwrap().unwrap().1.1, -i64::from(last));
        } else {
            let ((_, m), (bytes, _)) = pairs.next_back_in_place().unwrap().unwrap();
            assert_eq!((m, bytes), (last, content(last).as_deref()));
        }
    }
    assert!(pairs.next_in_place().unwrap().is_none() && pairs.next_back_in_place().unwrap().is_none());
}

#[test]
fn a_look_sees_what_its_transaction_sees() {
    let db = Database::in_memory().unwrap();
    let ages = db.key_value::<String, u32>("ages").unwrap();
    db.transact(|t| ages.put(t, "Ada", 36)).unwrap();
    let mut before = db.begin();
    assert_eq!(ages.look(&mut before, "Ada", |age| age).unwrap(), Some(36));
    for age in 37..60 {
        db.transact(|t| ages.put(t, "Ada", age)).unwrap();
        assert_eq!(ages.look(&mut before, "Ada", |age| age).unwrap(), Some(36));
        assert_eq!(ages.look(&mut db.begin(), "Ada", |age| age).unwrap(), Some(age));
    }
    db.transact(|t| ages.remove(t, "Ada")).unwrap();
    assert_eq!(ages.look(&mut before, "Ada", |age| age).unwrap(), Some(36));
    assert_eq!(ages.iter(&mut before).next_in_place().unwrap(), Some(("Ada", 36)));
    assert_eq!(ages.look(&mut db.begin(), "Ada", |age| age).unwrap(), None);
}

#[test]
fn what_cannot_be_read_is_an_error_once() {
    let db = Database::in_memory().unwrap();
    let bytes = db.key_value::<Vec<u8>, u8>("names").unwrap();
    db.transact(|t| bytes.put(t, &[b'a', 0xFF], 1).and(bytes.put(t, b"b", 2))).unwrap();
    let names = db.key_value::<String, u8>("names").unwrap();
    let mut t = db.begin();
    assert_eq!(names.look(&mut t, "b", |n| n).unwrap(), Some(2));
    let mut pairs = names.iter(&mut t);
    assert!(matches!(pairs.next_in_place(), Err(Error::UnreadablePair { .. })));
    assert!(pairs.next_in_place().unwrap().is_none() && pairs.next().is_none(), "after an error");
}
