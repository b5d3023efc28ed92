//! Golden scripts of index pages: one page by itself (`golden/page`), and the pages of a small tree
//! (`golden/tree`), which split and merge.
//!
//! Keys are numbers of two bytes; `+30` is a second column of 30 bytes. Commands:
//!
//! ```text
//! insert 10 +30              also "insert 10 20 30 +5", one after the other
//! delete 10                  removed at once: what purge does to a delete-marked record
//! delete from 10             it and all behind it (one page only)
//! reorganize                 (one page only)
//! show                       page: header, directory, records in order, free list
//!                            tree: the pages level by level; node pointers are key>page
//! show 5                     page 5 of a tree as a page by itself
//! ```
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use crate::support::{Fixture, SPACE};
use pagestore::PageId;
use untorn_btree::compare::SearchKey;
use untorn_btree::page::builder::PageBuilder;
use untorn_btree::page::directory::{slot, slot_of};
use untorn_btree::page::reorganize::reorganized;
use untorn_btree::page::search::{Bound, search};
use untorn_btree::page::validate::validate;
use untorn_btree::page::{delete, header, image, insert, record_list};
use untorn_btree::record::header as record_header;
use untorn_btree::{Comparison, FieldDef, FieldRef, IndexDef, RecordBuffer, RecordRef, Tree};

const PAGE_SIZE: usize = 4096;
const NULL_PAGE: u32 = u32::MAX;

fn definition() -> IndexDef {
    let fields = vec![
        FieldDef::fixed("id", 2),
        FieldDef::fixed("DB_TRX_ID", 6),
        FieldDef::fixed("DB_ROLL_PTR", 7),
        FieldDef::variable("pad", 2000, Comparison::Binary),
    ];
    IndexDef::new(3, "PRIMARY", true, true, fields, 1, 1)
}

/// The numbers of a command, and the length of the second column.
fn arguments(words: &[&str]) -> (Vec<u16>, usize) {
    let pad = words.iter().find_map(|word| word.strip_prefix('+'));
    let numbers = words.iter().filter(|word| !word.starts_with('+'));
    (numbers.map(|word| word.parse().unwrap()).collect(), pad.map_or(0, |pad| pad.parse().unwrap()))
}

fn encode(record: &mut RecordBuffer, def: &IndexDef, key: u16, pad: usize) {
    let (key, pad) = (key.to_be_bytes(), vec![7; pad]);
    let fields = [&key[..], &[0; 6], &[0; 7], &pad].map(FieldRef::Inline);
    record.encode(def, &fields).unwrap();
}

fn key_of(page: &[u8], def: &IndexDef, origin: usize) -> u16 {
    match RecordRef::new(page, origin, def).field(0) {
        FieldRef::Inline(bytes) => u16::from_be_bytes(bytes.try_into().unwrap()),
        other => panic!("a key is inline: {other:?}"),
    }
}

/// Key, place and number in the heap: `10@126#2`.
fn record(page: &[u8], def: &IndexDef, origin: usize) -> String {
    format!("{}@{origin}#{}", key_of(page, def, origin), record_header::heap_no(page, origin))
}

fn direction(page: &[u8]) -> String {
    let number = |at: usize| u16::from_be_bytes([page[at], page[at + 1]]);
    let way = match number(header::DIRECTION) {
        header::direction::LEFT => "left",
        header::direction::RIGHT => "right",
        _ => "none",
    };
    format!("{way} {}", number(header::N_DIRECTION))
}

/// The inside of a page.
fn page_text(page: &[u8], def: &IndexDef) -> String {
    let list = record_list(page).unwrap();
    let mut free = Vec::new();
    let mut next = header::free(page);
    while let Some(origin) = next {
        let size = RecordRef::new(page, origin, def).size();
        free.push(format!("{origin}#{} {size} bytes", record_header::heap_no(page, origin)));
        next = record_header::next(page, origin).filter(|next| *next < page.len() && *next != 0);
    }
    let owner = |at: usize| {
        let origin = slot(page, at);
        let name = match origin {
            header::INFIMUM => "infimum".to_owned(),
            header::SUPREMUM => "supremum".to_owned(),
            origin => key_of(page, def, origin).to_string(),
        };
        format!("{name} owns {}", record_header::n_owned(page, origin))
    };
    let slots: Vec<String> = (0..header::n_dir_slots(page)).map(owner).collect();
    let records: Vec<String> = list.iter().map(|origin| record(page, def, *origin)).collect();
    let last = match header::last_insert(page) {
        0 => "none".to_owned(),
        origin => origin.to_string(),
    };
    let lines = [
        format!(
            "heap: top {}, {} records with infimum and supremum, {} bytes of garbage, room for {}",
            header::heap_top(page),
            header::n_heap(page),
            header::garbage(page),
            header::max_insert(page, 1)
        ),
        format!("last insert: {last}, direction {}", direction(page)),
        format!("directory: {}", slots.join(", ")),
        format!("records: {}", records.join(" ")),
        format!("free: {}", free.join(", ")),
    ];
    lines.map(|line| line.trim_end().to_owned()).join("\n")
}

struct OnePage {
    def: IndexDef,
    page: Vec<u8>,
}

impl OnePage {
    fn new() -> OnePage {
        let mut builder = PageBuilder::fresh(PAGE_SIZE, PageId { space: 1, page: 9 }, 0, 3);
        OnePage { def: definition(), page: builder.finish(false).clone() }
    }

    fn find(&self, key: u16) -> (usize, bool) {
        let bytes = key.to_be_bytes();
        let fields = [Some(&bytes[..])];
        let found =
            search(&self.page, &self.def, &SearchKey::new(&self.def, &fields), Bound::LessOrEqual).unwrap();
        (found.offset, found.exact)
    }

    fn insert(&mut self, key: u16, pad: usize) -> String {
        let mut record = RecordBuffer::new();
        encode(&mut record, &self.def, key, pad);
        let (before, _) = self.find(key);
        match insert::insert_record(&mut self.page, &self.def, before, &mut record).unwrap() {
            Some(origin) => {
                let slot = slot_of(&self.page, origin).unwrap();
                format!("{key} is {} bytes at {origin}, slot {slot}\n", record.size())
            }
            None => format!("{key} needs {} bytes: no room\n", record.size()),
        }
    }

    fn run(&mut self, command: &str) -> String {
        let words: Vec<&str> = command.split(' ').collect();
        let said = match words[..] {
            ["insert", ref rest @ ..] => {
                let (keys, pad) = arguments(rest);
                keys.into_iter().map(|key| self.insert(key, pad)).collect()
            }
            ["delete", "from", key] => {
                let (origin, exact) = self.find(key.parse().unwrap());
                assert!(exact, "there is no {key}");
                delete::delete_from(&mut self.page, &self.def, origin).unwrap();
                String::new()
            }
            ["delete", ref keys @ ..] => {
                for key in arguments(keys).0 {
                    let (origin, exact) = self.find(key);
                    assert!(exact, "there is no {key}");
                    delete::delete_record(&mut self.page, &self.def, origin).unwrap();
                }
                String::new()
            }
            ["reorganize"] => {
                let image = reorganized(&self.page, &self.def).unwrap();
                image::write_image(&mut self.page, &image);
                String::new()
            }
            ["show"] => page_text(&self.page, &self.def),
            _ => panic!("no command: {command}"),
        };
        assert_eq!(validate(&self.page, &self.def), Vec::<String>::new(), "after {command}");
        said
    }
}

struct SmallTree {
    fixture: Fixture,
    tree: Tree,
}

impl SmallTree {
    fn new() -> SmallTree {
        let fixture = Fixture::new(PAGE_SIZE, 8 << 20);
        let tree = fixture.tree(definition());
        SmallTree { fixture, tree }
    }

    fn page(&self, page: u32) -> Vec<u8> {
        let id = PageId { space: SPACE, page };
        self.fixture.run(|| Ok(self.fixture.store.read(id)?.to_vec())).unwrap()
    }

    fn run(&mut self, command: &str) -> String {
        let words: Vec<&str> = command.split(' ').collect();
        match words[..] {
            ["insert", ref rest @ ..] => {
                let (keys, pad) = arguments(rest);
                let mut record = RecordBuffer::new();
                for key in keys {
                    encode(&mut record, self.tree.def(), key, pad);
                    self.fixture.put(&self.tree, &[Some(&key.to_be_bytes())], &mut record, 1);
                }
            }
            ["delete", ref keys @ ..] => {
                for key in arguments(keys).0 {
                    assert!(
                        self.fixture.remove(&self.tree, &[Some(&key.to_be_bytes())]),
                        "there is no {key}"
                    );
                }
            }
            ["show"] => return self.show(),
            ["show", page] => return page_text(&self.page(page.parse().unwrap()), self.tree.def()),
            _ => panic!("no command: {command}"),
        }
        self.fixture.check_clean(&self.tree);
        String::new()
    }

    fn show(&self) -> String {
        let (def, mut leftmost, mut said) = (self.tree.def(), Some(self.tree.root()), Vec::new());
        while let Some(first) = leftmost {
            let mut next = first;
            leftmost = None;
            while next != NULL_PAGE {
                let page = self.page(next);
                let mut entries = Vec::new();
                for origin in record_list(&page).unwrap() {
                    let record = RecordRef::new(&page, origin, def);
                    entries.push(match record.is_node_pointer() {
                        false => key_of(&page, def, origin).to_string(),
                        true => {
                            leftmost.get_or_insert(record.child());
                            let key = key_of(&page, def, origin).to_string();
                            // The leftmost of its level stands for everything below the next.
                            format!("{}>{}", if record.is_min_rec() { "min" } else { &key }, record.child())
                        }
                    });
                }
                let (level, entries) = (header::level(&page), entries.join(" "));
                said.push(format!("level {level}, page {next}: {entries}").trim_end().to_owned());
                next = page::u32_at(&page, page::NEXT);
            }
        }
        said.join("\n")
    }
}

fn scripts(name: &str) -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

#[test]
fn pages_by_themselves() {
    golden::play(scripts("page"), || {
        let mut page = OnePage::new();
        move |command: &str| page.run(command)
    });
}

#[test]
fn pages_of_a_tree() {
    golden::play(scripts("tree"), || {
        let mut tree = SmallTree::new();
        move |command: &str| tree.run(command)
    });
}
