//! Golden scripts of mini-transactions: what is done to pages, the redo records of it, and what recovery
//! makes of them on other pages.
//!
//! ```text
//! create 5                   page 5 is made and latched; so are pages that are changed
//! write 5 at 100 01 02       bytes
//! fill 5 at 200 16 × ff
//! move 5 from 100 to 300 4
//! commit                     what was done since the last commit is one mini-transaction
//! sync                       the log is made durable
//! crash                      shows the records that are left, recovers and goes on
//! show 5                     what is not zero between header and trailer
//! ```

use std::sync::Arc;

use disk::Environment;
use page::PageId;
use redo::{Flush, Record, RedoLog};

use super::crash::{Machine, SPACE, create, directory, reopen};
use super::support::{redo_options, retry};
use crate::error::Interrupt;
use crate::mtr::{Mtr, PageHandle};

const SEED: u64 = 1;
const LOG: u64 = 1 << 20;

fn number<T: std::str::FromStr>(word: &str) -> T {
    word.parse().unwrap_or_else(|_| panic!("no number: {word}"))
}

fn bytes_of(words: &[&str]) -> Vec<u8> {
    words.iter().map(|word| u8::from_str_radix(word, 16).unwrap()).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}

fn page_of(mtr: &mut Mtr<'_>, word: &str) -> Result<PageHandle, Interrupt> {
    let id = PageId { space: SPACE, page: number(word) };
    match mtr.held(id) {
        Some(held) => Ok(held),
        None => mtr.x(id),
    }
}

/// Does one thing to a page.
fn change(mtr: &mut Mtr<'_>, command: &str) -> Result<(), Interrupt> {
    let words: Vec<&str> = command.split(' ').collect();
    match words[..] {
        ["create", page] => drop(mtr.create(PageId { space: SPACE, page: number(page) })?),
        ["write", page, "at", offset, ref bytes @ ..] => {
            let page = page_of(mtr, page)?;
            mtr.write(page, number(offset), &bytes_of(bytes));
        }
        ["fill", page, "at", offset, length, "×", byte] => {
            let page = page_of(mtr, page)?;
            mtr.fill(page, number(offset), number(length), bytes_of(&[byte])[0]);
        }
        ["move", page, "from", from, "to", to, length] => {
            let page = page_of(mtr, page)?;
            mtr.copy_within(page, number(to), number(from), number(length));
        }
        _ => panic!("no command: {command}"),
    }
    Ok(())
}

fn described(record: Record<'_>) -> String {
    match record {
        Record::Write { page, offset, bytes } => {
            format!("Write page {} at {offset}: {}", page.page, hex(bytes))
        }
        Record::Fill { page, offset, length, byte } => {
            format!("Fill page {} at {offset}: {length} × {byte:02x}", page.page)
        }
        Record::Move { page, to, from, length } => {
            format!("Move page {} from {from} to {to}: {length} bytes", page.page)
        }
        Record::Init { page } => format!("Init page {}", page.page),
        Record::Free { page } => format!("Free page {}", page.page),
        Record::SpaceSize { pages, .. } => format!("SpaceSize {pages} pages"),
    }
}

struct Script {
    machine: Machine,
    begun: Vec<String>,
}

impl Script {
    fn run(&mut self, command: &str) -> String {
        match command.split_once(' ').unwrap_or((command, "")) {
            ("commit", _) => self.commit(),
            ("sync", _) => {
                let store = self.machine.store.clone();
                let upto = store.redo().current();
                let synced =
                    async move { retry(|| Ok(store.redo().flush(upto, Flush::Sync)?)).await.unwrap() };
                self.machine.env.run_until_complete(synced);
                String::new()
            }
            ("crash", _) => self.crash(),
            ("show", page) => self.show(number(page)),
            _ => {
                self.begun.push(command.to_owned());
                String::new()
            }
        }
    }

    fn commit(&mut self) -> String {
        let (store, begun) = (self.machine.store.clone(), std::mem::take(&mut self.begun));
        let logged = self.machine.env.run_until_complete(async move {
            let change = || {
                let mut mtr = store.mtr()?;
                // The pages come first: from the first change on nothing is waited for.
                for command in begun.iter().filter(|command| !command.starts_with("create")) {
                    let page = command.split(' ').nth(1).unwrap_or_default();
                    let made = format!("create {page}");
                    if !begun.contains(&made) {
                        page_of(&mut mtr, page)?;
                    }
                }
                begun.iter().try_for_each(|command| change(&mut mtr, command))?;
                let logged = mtr.logged_bytes();
                mtr.commit();
                Ok(logged)
            };
            retry(change).await.unwrap()
        });
        format!("{logged} bytes logged")
    }

    fn crash(&mut self) -> String {
        let disk = self.machine.env.disk().crash(SEED);
        self.machine.env.shutdown();
        let mut said = String::new();
        {
            let env = disk::SimulatedEnvironment::with_storage(SEED, disk.clone());
            let dynamic: Arc<dyn Environment> = env.clone();
            let log = RedoLog::open(&dynamic, &directory(), redo_options(LOG)).unwrap();
            let visit = |_, _, records: &[u8]| {
                said += &format!("mini-transaction of {} bytes\n", records.len());
                for record in redo::records(records) {
                    said += &format!("  {}\n", described(record.unwrap()));
                }
                Ok::<(), redo::Error>(())
            };
            log.scan(visit, |_, _| {}).unwrap();
            env.shutdown();
        }
        let (machine, _) = reopen(SEED, disk).unwrap();
        self.machine = machine;
        if said.is_empty() { "nothing in the log".to_owned() } else { said }
    }

    fn show(&mut self, page: u32) -> String {
        let store = self.machine.store.clone();
        let id = PageId { space: SPACE, page };
        let read = async move { retry(|| Ok(store.read(id)?.to_vec())).await.unwrap() };
        let page = self.machine.env.run_until_complete(read);
        let end = page.len() - page::TRAILER_LEN;
        let mut said = Vec::new();
        let mut at = page::HEADER_LEN;
        while at < end {
            if page[at] == 0 {
                at += 1;
                continue;
            }
            let same = page[at..end].iter().take_while(|byte| **byte == page[at]).count();
            let other = page[at..end].iter().take_while(|byte| **byte != 0).count();
            let length = if same >= 8 { same } else { other };
            said.push(match same >= 8 {
                true => format!("{at}: {same} × {:02x}", page[at]),
                false => format!("{at}: {}", hex(&page[at..at + length])),
            });
            at += length;
        }
        if said.is_empty() { "zeros".to_owned() } else { said.join("\n") }
    }
}

#[test]
fn golden_scripts() {
    golden::play(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/redo"), || {
        let mut script = Script { machine: create(SEED), begun: Vec::new() };
        move |command: &str| script.run(command)
    });
}
