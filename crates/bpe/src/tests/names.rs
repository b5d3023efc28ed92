//! Names that lead to somebody else's file: through links, and because the file was exchanged between the
//! look and the use.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use disk::{
    Entry, Environment, Event, File, Io, IoCounters, OpenHow, RealEnvironment, RealOptions, Result, Storage,
    TaskFuture,
};

use super::world::options;
use crate::options::Options;
use crate::status::State;
use crate::tier::Tier;

/// What lies in the files of somebody else.
const THEIRS: [u8; 8192] = [0xCD; 8192];

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let directory = std::env::temp_dir().join(format!("untorn-bpe-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(&directory).unwrap();
        Scratch(directory)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn real() -> Arc<RealEnvironment> {
    Arc::new(RealEnvironment::new(RealOptions::default()).unwrap())
}

fn at(path: PathBuf) -> Options {
    Options { file: Some(path), ..options(8) }
}

fn assert_refused(tier: &Tier, what: &str) {
    let state = tier.status().state;
    assert!(matches!(state, State::Failed(_)), "{what}: {state:?}");
}

#[test]
fn a_link_is_not_followed_and_a_second_name_is_not_used() {
    let scratch = Scratch::new("links");
    let victim = scratch.path("victim");
    // An empty file is somebody's all the same; and a link may lead to where nothing is yet.
    for (what, name) in [("tier", "tier"), ("map", "tier.map0")] {
        for exists in [true, false] {
            if exists {
                std::fs::write(&victim, "").unwrap();
            }
            symlink(&victim, scratch.path(name)).unwrap();
            let tier = Tier::open(real(), at(scratch.path("tier")));
            assert_refused(&tier, what);
            let length = std::fs::metadata(&victim).map(|metadata| metadata.len()).ok();
            assert_eq!(length, exists.then_some(0), "{what}");
            drop(tier);
            for file in std::fs::read_dir(&scratch.0).unwrap() {
                std::fs::remove_file(file.unwrap().path()).unwrap();
            }
        }
    }
    std::fs::write(&victim, "").unwrap();
    std::fs::hard_link(&victim, scratch.path("tier")).unwrap();
    assert_refused(&Tier::open(real(), at(scratch.path("tier"))), "a second name");
    assert_eq!(std::fs::metadata(&victim).unwrap().len(), 0);
}

/// A disk image begins with zeros, too.
#[test]
fn a_file_that_begins_with_zeros_is_no_map() {
    let scratch = Scratch::new("zeros");
    let mut image = vec![0; 8192];
    image.extend_from_slice(&THEIRS);
    for (what, name) in [("emptied", "tier.map0"), ("removed", "tier.map1")] {
        std::fs::write(scratch.path(name), &image).unwrap();
        let tier = Tier::open(real(), at(scratch.path("tier")));
        assert_eq!(matches!(tier.status().state, State::Failed(_)), name == "tier.map0", "{what}");
        tier.take_down();
        assert_eq!(std::fs::read(scratch.path(name)).unwrap(), image, "{what}");
        std::fs::remove_file(scratch.path(name)).unwrap();
    }
}

/// An environment whose tier file becomes somebody else's at the last moment before it is opened.
struct Exchanging {
    inner: Arc<RealEnvironment>,
    storage: Arc<dyn Storage>,
}

struct ExchangingStorage(Arc<dyn Storage>);

impl Storage for ExchangingStorage {
    fn open(&self, path: &Path, how: OpenHow) -> Result<Arc<dyn File>> {
        if path.ends_with("tier") {
            std::fs::write(path, THEIRS).unwrap();
        }
        self.0.open(path, how)
    }
    fn exists(&self, path: &Path) -> Result<bool> {
        self.0.exists(path)
    }
    fn remove(&self, path: &Path) -> Result<()> {
        self.0.remove(path)
    }
    fn remove_dir(&self, path: &Path) -> Result<()> {
        self.0.remove_dir(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.0.rename(from, to)
    }
    fn create_dir_all(&self, path: &Path) -> Result<()> {
        self.0.create_dir_all(path)
    }
    fn sync_dir(&self, path: &Path) -> Result<()> {
        self.0.sync_dir(path)
    }
    fn list(&self, path: &Path) -> Result<Vec<Entry>> {
        self.0.list(path)
    }
    fn lock(&self, path: &Path) -> Result<Box<dyn Send + Sync>> {
        self.0.lock(path)
    }
    fn submit(&self, batch: Vec<(Arc<dyn File>, Io)>) {
        self.0.submit(batch);
    }
    fn counters(&self) -> IoCounters {
        self.0.counters()
    }
}

impl Environment for Exchanging {
    fn now(&self) -> Duration {
        self.inner.now()
    }
    fn unix_time(&self) -> Duration {
        self.inner.unix_time()
    }
    fn storage(&self) -> &Arc<dyn Storage> {
        &self.storage
    }
    fn spawn(&self, name: &'static str, task: TaskFuture) {
        self.inner.spawn(name, task);
    }
    fn spawn_worker(&self, name: &'static str, task: TaskFuture) {
        self.inner.spawn_worker(name, task);
    }
    fn sleep(&self, duration: Duration) -> TaskFuture {
        self.inner.sleep(duration)
    }
    fn block_until(&self, event: &Event) {
        self.inner.block_until(event);
    }
    fn random_u64(&self) -> u64 {
        self.inner.random_u64()
    }
}

#[test]
fn a_file_that_takes_the_name_at_the_last_moment_is_left_as_it_is() {
    let scratch = Scratch::new("exchanged");
    let inner = real();
    let storage = Arc::new(ExchangingStorage(inner.storage().clone()));
    let tier = Tier::open(Arc::new(Exchanging { inner, storage }), at(scratch.path("tier")));
    assert_refused(&tier, "exchanged");
    assert_eq!(std::fs::read(scratch.path("tier")).unwrap(), THEIRS);
}
