//! A whole engine below the catalog, on the simulated machine: redo log, page store, trees, transactions.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::collections::HashMap;
use std::future::Future;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use btree::{Comparison, FieldDef, FieldRef, IndexDef, OwnedKey, Tree};
use disk::{Environment, SimulatedEnvironment};
use pagestore::{PageSize, PageStore, fsp};
use parking_lot::Mutex;
use redo::RedoLog;
use untorn_txn::*;

pub const TABLE_ID: u64 = 77;
pub const SPACE: u32 = 5;

/// `CREATE TABLE t (id INT PRIMARY KEY, k INT NOT NULL, u INT, v BLOB, n INT, c VARCHAR(200), KEY k (k),
/// UNIQUE KEY u (u), KEY v (v(20)))`
pub const ID: u16 = 0;
pub const K: u16 = 1;
pub const U: u16 = 2;
pub const V: u16 = 3;
/// In no index: always the number of its row, until somebody changes it.
pub const N: u16 = 4;
/// In no index, and of any length.
pub const C: u16 = 5;
pub const INDEX_K: usize = 0;
pub const INDEX_U: usize = 1;
pub const INDEX_V: usize = 2;
/// Bytes of V in its index.
const V_PREFIX: u16 = 20;

pub fn int(value: i32) -> [u8; 4] {
    (value as u32 ^ 0x8000_0000).to_be_bytes()
}

pub fn to_int(bytes: &[u8]) -> i32 {
    (u32::from_be_bytes(bytes.try_into().unwrap()) ^ 0x8000_0000) as i32
}

pub fn key(value: i32) -> OwnedKey {
    OwnedKey::from_fields(&[Some(&int(value))])
}

fn definitions() -> [Arc<IndexDef>; 4] {
    let int = |name: &str| FieldDef::fixed(name, 4);
    let clustered = IndexDef::new(
        100,
        "PRIMARY",
        true,
        true,
        vec![
            int("id"),
            FieldDef::fixed("DB_TRX_ID", 6),
            FieldDef::fixed("DB_ROLL_PTR", 7),
            int("k"),
            int("u").nullable(),
            FieldDef::variable("v", 65535, Comparison::Binary).nullable().blob(),
            int("n").nullable(),
            FieldDef::variable("c", 200, Comparison::Binary).nullable(),
        ],
        1,
        1,
    );
    let k = IndexDef::new(101, "k", false, false, vec![int("k"), int("id")], 2, 1);
    let u = IndexDef::new(102, "u", true, false, vec![int("u").nullable(), int("id")], 2, 1);
    let v = FieldDef::variable("v", V_PREFIX.into(), Comparison::Binary).nullable();
    let v = IndexDef::new(103, "v", false, false, vec![v, int("id")], 2, 1);
    [clustered, k, u, v].map(Arc::new)
}

#[derive(Default)]
pub struct Tables(pub Mutex<HashMap<u64, Arc<Table>>>);

impl TableSource for Tables {
    fn table(&self, id: u64) -> Option<Arc<Table>> {
        self.0.lock().get(&id).cloned()
    }
}

pub struct World {
    pub env: Arc<SimulatedEnvironment>,
    pub store: Arc<PageStore>,
    pub redo: Arc<RedoLog>,
    pub system: TransactionSystem,
    pub table: Arc<Table>,
    pub tables: Arc<Tables>,
    pub report: RecoveryReport,
    /// Prepared transactions that the start has found.
    pub prepared: Mutex<Vec<RecoveredTransaction>>,
    roots: [u32; 4],
    page_size: PageSize,
}

fn directory() -> &'static Path {
    Path::new("/data")
}

fn table_path() -> PathBuf {
    directory().join("t.ibd")
}

fn undo_path() -> PathBuf {
    directory().join("undo_001")
}

fn secondary(tree: Tree, column: u16, unique: bool) -> Secondary {
    let part = |column| SecondaryField { column, prefix_bytes: None, prefix_characters: None };
    Secondary { tree: Arc::new(tree), columns: vec![part(column), part(ID)], user_fields: 1, unique, born: 0 }
}

fn clustered_fields() -> Vec<ClusteredField> {
    vec![
        ClusteredField::Column(ID),
        ClusteredField::TrxId,
        ClusteredField::RollPtr,
        ClusteredField::Column(K),
        ClusteredField::Column(U),
        ClusteredField::Column(V),
        ClusteredField::Column(N),
        ClusteredField::Column(C),
    ]
}

fn make_table(trees: [Tree; 4]) -> Arc<Table> {
    let [clustered, k, u, v] = trees;
    let mut secondaries = vec![secondary(k, K, false), secondary(u, U, true), secondary(v, V, false)];
    secondaries[INDEX_V].columns[0].prefix_bytes = Some(V_PREFIX);
    Arc::new(Table::new(TABLE_ID, Arc::new(clustered), clustered_fields(), secondaries, 6))
}

impl World {
    pub fn new(seed: u64) -> World {
        World::with(seed, 8 << 20, PageSize::DEFAULT, false)
    }

    pub fn with(seed: u64, pool_bytes: usize, page_size: PageSize, background_purge: bool) -> World {
        let env = SimulatedEnvironment::new(seed);
        env.storage().create_dir_all(directory()).unwrap();
        World::open(env, None, pool_bytes, page_size, background_purge)
    }

    fn open(
        env: Arc<SimulatedEnvironment>,
        roots: Option<[u32; 4]>,
        pool_bytes: usize,
        page_size: PageSize,
        background_purge: bool,
    ) -> World {
        let dynamic: Arc<dyn Environment> = env.clone();
        let settings = redo::Options { capacity: 16 << 20, first_size: 16 << 20, ..redo::Options::default() };
        let redo = match roots {
            None => RedoLog::create(&dynamic, directory(), settings).unwrap(),
            Some(_) => RedoLog::open(&dynamic, directory(), settings).unwrap(),
        };
        let options = pagestore::Options {
            pool_bytes,
            page_size,
            recovery_threads: 1,
            ..pagestore::Options::default()
        };
        let writer = Arc::new(dblwr::UnprotectedWriter::new(dynamic.clone()));
        let store = PageStore::open(dynamic, redo.clone(), options, writer).unwrap();
        if roots.is_some() {
            store.recover(&[(UNDO_SPACE, undo_path()), (SPACE, table_path())]).unwrap();
        }
        let mut settings = Options::new(undo_path());
        settings.background_purge = background_purge;
        let system = env.run_until_complete(TransactionSystem::open(store.clone(), settings)).unwrap();
        let roots = roots.unwrap_or_else(|| env.run_until_complete(create_trees(&store, &table_path())));
        let trees = definitions();
        let trees: Vec<Tree> = trees
            .into_iter()
            .zip(roots)
            .map(|(def, root)| env.run_until_complete(again(|| Tree::open(&store, SPACE, root, def.clone()))))
            .collect();
        let table = make_table(trees.try_into().map_err(|_| "four").unwrap());
        let tables = Arc::new(Tables::default());
        tables.0.lock().insert(TABLE_ID, table.clone());
        let Recovered { report, prepared } = env.run_until_complete(system.recover(tables.clone())).unwrap();
        let prepared = Mutex::new(prepared);
        World { env, store, redo, system, table, tables, report, prepared, roots, page_size }
    }

    /// Power loss, and a start on what the disk kept.
    pub fn crash(self, seed: u64) -> World {
        let world = self.crash_and_open(seed);
        world.run(world.system.rolled_back());
        world
    }

    /// As `crash`; what had not committed may still be being rolled back.
    pub fn crash_and_open(self, seed: u64) -> World {
        let disk = self.env.disk().crash(seed);
        let (roots, page_size) = (self.roots, self.page_size);
        self.env.shutdown();
        drop(self);
        World::open(SimulatedEnvironment::with_storage(seed, disk), Some(roots), 8 << 20, page_size, false)
    }

    /// Another world, on what the disk of this one would keep if it crashed so at that moment.
    pub fn after_crash(&self, moment: &disk::Moment, crash: disk::Crash, seed: u64) -> World {
        let (disk, _) = moment.crash(crash);
        let env = SimulatedEnvironment::with_storage(seed, disk);
        let world = World::open(env, Some(self.roots), 8 << 20, self.page_size, false);
        world.run(world.system.rolled_back());
        world
    }

    /// Bytes of the undo tablespace's file.
    pub fn undo_bytes(&self) -> u64 {
        self.env.disk().content(&undo_path()).map_or(0, |content| content.len() as u64)
    }

    pub fn run<F: Future>(&self, future: F) -> F::Output {
        self.env.run_until_complete(future)
    }

    pub fn session(&self) -> Session {
        self.session_at(Isolation::RepeatableRead)
    }

    /// A session for the table as one without secondary indexes, which purge sees as such from here on.
    pub fn session_without_indexes(&self) -> Session {
        let clustered = self.table.clustered.clone();
        let table = Arc::new(Table::new(TABLE_ID, clustered, clustered_fields(), Vec::new(), 6));
        self.tables.0.lock().insert(TABLE_ID, table.clone());
        Session { table, ..self.session() }
    }

    pub fn session_at(&self, isolation: Isolation) -> Session {
        let mut trx = Transaction::new(&self.system);
        trx.set_isolation(isolation);
        Session { trx, table: self.table.clone() }
    }

    /// Polls `future` until it is complete or nothing but the clock could bring it on.
    pub fn settle<T>(&self, future: &mut Pin<Box<dyn Future<Output = T> + '_>>) -> Poll<T> {
        let mut context = Context::from_waker(Waker::noop());
        loop {
            if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
                return Poll::Ready(output);
            }
            if !self.env.step() {
                return Poll::Pending;
            }
        }
    }

    /// Inserts rows (id, k) in a transaction of their own.
    pub fn fill(&self, rows: &[(i32, i32)]) {
        let mut session = self.session();
        self.run(async {
            session.begin();
            for (id, k) in rows {
                session.insert(*id, *k).await.unwrap();
            }
            session.commit().await;
        });
    }

    pub fn trees(&self) -> impl Iterator<Item = &Tree> {
        std::iter::once(&*self.table.clustered).chain(self.table.secondaries.iter().map(|index| &*index.tree))
    }

    /// Delete-marked records in all trees.
    pub fn deleted_records(&self) -> u64 {
        let count = |tree: &Tree| {
            let mut checker = btree::Checker::new(tree);
            while !self.run(again(|| checker.step())) {}
            checker.into_report().deleted_records
        };
        self.trees().map(count).sum()
    }

    /// Checks the trees: order, links, counts; and that the indexes agree with the rows, delete-marked
    /// entries aside.
    pub fn check(&self) {
        for tree in self.trees() {
            let mut checker = btree::Checker::new(tree);
            while !self.run(again(|| checker.step())) {}
            let report = checker.into_report();
            assert!(report.problems.is_empty(), "index {}: {report:?}", tree.def().name);
        }
        let mut session = self.session();
        let rows = self.run(session.all());
        let by_k = self.run(session.scan_k(KeyRange::all(), ReadMode::Consistent));
        let mut expected: Vec<(i32, i32)> = rows.iter().map(|row| (row.k, row.id)).collect();
        expected.sort_unstable();
        assert_eq!(by_k.iter().map(|row| (row.k, row.id)).collect::<Vec<_>>(), expected, "index k");
        let by_u =
            self.run(session.scan(ScanIndex::Secondary(INDEX_U), KeyRange::all(), ReadMode::Consistent));
        assert_eq!(by_u.len(), rows.len(), "index u");
        let by_v =
            self.run(session.scan(ScanIndex::Secondary(INDEX_V), KeyRange::all(), ReadMode::Consistent));
        assert_eq!(by_v.len(), rows.len(), "index v");
        let counted = self.run(count(&mut session.trx, &self.table)).unwrap();
        assert_eq!(counted, rows.len() as u64, "the count");
        self.run(session.commit());
    }
}

/// A fresh engine on any environment.
pub struct Engine {
    pub store: Arc<PageStore>,
    pub system: TransactionSystem,
    pub table: Arc<Table>,
}

impl Engine {
    pub fn create(
        env: Arc<dyn Environment>,
        directory: &Path,
        pool_bytes: usize,
        background_purge: bool,
    ) -> Engine {
        let settings = redo::Options { capacity: 64 << 20, ..redo::Options::default() };
        let redo = RedoLog::create(&env, directory, settings).unwrap();
        let options = pagestore::Options { pool_bytes, ..pagestore::Options::default() };
        let writer = Arc::new(dblwr::UnprotectedWriter::new(env.clone()));
        let store = PageStore::open(env, redo, options, writer).unwrap();
        let mut settings = Options::new(directory.join("undo_001"));
        settings.background_purge = background_purge;
        let system = disk::block_on(TransactionSystem::open(store.clone(), settings)).unwrap();
        let roots = disk::block_on(create_trees(&store, &directory.join("t.ibd")));
        let open = |(def, root): (Arc<IndexDef>, u32)| {
            disk::block_on(again(|| Tree::open(&store, SPACE, root, def.clone())))
        };
        let trees: Vec<Tree> = definitions().into_iter().zip(roots).map(open).collect();
        let table = make_table(trees.try_into().map_err(|_| "four").unwrap());
        let tables = Arc::new(Tables::default());
        tables.0.lock().insert(TABLE_ID, table.clone());
        disk::block_on(system.recover(tables)).unwrap();
        Engine { store, system, table }
    }

    pub fn session(&self) -> Session {
        Session { trx: Transaction::new(&self.system), table: self.table.clone() }
    }
}

async fn create_trees(store: &Arc<PageStore>, path: &Path) -> [u32; 4] {
    store.create_space(SPACE, path, fsp::INITIAL_PAGES).unwrap();
    again(|| {
        let mut mtr = store.mtr()?;
        fsp::create_space_pages(&mut mtr, SPACE, fsp::INITIAL_PAGES)?;
        mtr.commit();
        Ok(())
    })
    .await;
    let mut roots = [0; 4];
    for (root, def) in roots.iter_mut().zip(definitions()) {
        *root = again(|| {
            let mut mtr = store.mtr()?;
            let tree = Tree::create(&mut mtr, store, SPACE, def.clone())?;
            mtr.commit();
            Ok(tree.root())
        })
        .await;
    }
    store.flush_space(SPACE).await.unwrap();
    roots
}

/// Polls `future` at most `polls` times.
pub async fn for_polls<F: Future>(future: F, polls: usize) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut left = polls;
    std::future::poll_fn(move |context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        future.as_mut().poll(context).map(Some)
    })
    .await
}

/// Repeats a step of the page store.
pub async fn again<T>(mut step: impl FnMut() -> Result<T, pagestore::Interrupt>) -> T {
    let mut held = Vec::new();
    loop {
        match step() {
            Ok(value) => return value,
            Err(pagestore::Interrupt::Wait(mut wait)) => {
                wait.done().await;
                held.push(wait);
            }
            Err(pagestore::Interrupt::Error(error)) => panic!("{error}"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowCopy {
    pub id: i32,
    pub k: i32,
    pub u: Option<i32>,
}

pub struct Session {
    pub trx: Transaction,
    pub table: Arc<Table>,
}

fn field_int(field: FieldRef<'_>) -> Option<i32> {
    field.inline().map(to_int)
}

pub fn copy_row(row: &Row<'_>) -> RowCopy {
    RowCopy {
        id: field_int(row.column(ID)).unwrap(),
        k: field_int(row.column(K)).unwrap(),
        u: field_int(row.column(U)),
    }
}

pub fn for_update() -> ReadMode {
    ReadMode::Locking { exclusive: true, wait: WaitPolicy::Wait }
}

pub fn for_share() -> ReadMode {
    ReadMode::Locking { exclusive: false, wait: WaitPolicy::Wait }
}

pub fn between(lower: i32, upper: i32) -> KeyRange {
    KeyRange { lower: Bound::Included(key(lower)), upper: Bound::Included(key(upper)) }
}

impl Session {
    pub fn begin(&mut self) {
        self.trx.begin();
    }

    pub async fn commit(&mut self) {
        self.trx.commit(Durability::Sync).await.unwrap();
    }

    pub async fn rollback(&mut self) {
        self.trx.rollback().await.unwrap();
    }

    pub async fn insert(&mut self, id: i32, k: i32) -> Result<(), Error> {
        self.insert_all(id, k, None, None).await
    }

    pub async fn insert_all(
        &mut self,
        id: i32,
        k: i32,
        u: Option<i32>,
        v: Option<&[u8]>,
    ) -> Result<(), Error> {
        let (id, k, u) = (int(id), int(k), u.map(int));
        let row = [Some(&id[..]), Some(&k[..]), u.as_ref().map(|u| &u[..]), v, Some(&id[..]), None];
        insert(&mut self.trx, &self.table, &row).await
    }

    pub async fn update(&mut self, id: i32, k: i32) -> Result<(), Error> {
        update(&mut self.trx, &self.table, &[Some(&int(id))], &[(K, Some(&int(k)))]).await
    }

    pub async fn set_u(&mut self, id: i32, u: Option<i32>) -> Result<(), Error> {
        let u = u.map(int);
        update(&mut self.trx, &self.table, &[Some(&int(id))], &[(U, u.as_ref().map(|u| &u[..]))]).await
    }

    pub async fn set_v(&mut self, id: i32, v: Option<&[u8]>) -> Result<(), Error> {
        update(&mut self.trx, &self.table, &[Some(&int(id))], &[(V, v)]).await
    }

    pub async fn set_n(&mut self, id: i32, n: Option<i32>) -> Result<(), Error> {
        let n = n.map(int);
        update(&mut self.trx, &self.table, &[Some(&int(id))], &[(N, n.as_ref().map(|n| &n[..]))]).await
    }

    pub async fn set_id(&mut self, id: i32, new: i32) -> Result<(), Error> {
        update(&mut self.trx, &self.table, &[Some(&int(id))], &[(ID, Some(&int(new)))]).await
    }

    pub async fn delete(&mut self, id: i32) -> Result<(), Error> {
        delete(&mut self.trx, &self.table, &[Some(&int(id))]).await
    }

    /// Point read; ends the statement.
    pub async fn read(&mut self, id: i32) -> Option<i32> {
        self.read_row(id).await.map(|row| row.k)
    }

    pub async fn read_row(&mut self, id: i32) -> Option<RowCopy> {
        let mut held = disk::HeldWaits::new();
        loop {
            match get_step(&mut self.trx, &self.table, &[Some(&int(id))], copy_row) {
                Ok(row) => {
                    self.trx.end_statement();
                    return row;
                }
                Err(Interrupt::Wait(wait)) => held.wait(wait).await,
                Err(Interrupt::Error(error)) => panic!("{error}"),
            }
        }
    }

    pub async fn read_v(&mut self, id: i32) -> Option<Vec<u8>> {
        enum Found {
            Null,
            Inline(Vec<u8>),
            External([u8; 20]),
        }
        let show = |row: &Row<'_>| match row.column(V) {
            FieldRef::Null => Found::Null,
            FieldRef::Inline(value) => Found::Inline(value.to_vec()),
            FieldRef::External { reference, .. } => Found::External(*reference),
        };
        let mut held = Vec::new();
        let found = loop {
            match get_step(&mut self.trx, &self.table, &[Some(&int(id))], show) {
                Ok(row) => break row,
                Err(Interrupt::Wait(mut wait)) => {
                    wait.done().await;
                    held.push(wait);
                }
                Err(Interrupt::Error(error)) => panic!("{error}"),
            }
        };
        let value = match found? {
            Found::Null => None,
            Found::Inline(value) => Some(value),
            Found::External(reference) => {
                Some(OffPage::new(&[], &reference).fetch(&self.trx, &self.table).await.unwrap())
            }
        };
        self.trx.end_statement();
        value
    }

    pub async fn try_scan(
        &mut self,
        index: ScanIndex,
        range: KeyRange,
        direction: Direction,
        mode: ReadMode,
    ) -> Result<Vec<RowCopy>, Error> {
        let mut rows = Vec::new();
        let mut scan = Scan::new(self.table.clone(), index, range, direction, mode, false);
        let result = scan
            .run(&mut self.trx, &mut |row| {
                rows.push(copy_row(row));
                Control::Continue
            })
            .await;
        self.trx.end_statement();
        result.map(|_| rows)
    }

    pub async fn scan(&mut self, index: ScanIndex, range: KeyRange, mode: ReadMode) -> Vec<RowCopy> {
        self.try_scan(index, range, Direction::Forward, mode).await.unwrap()
    }

    pub async fn scan_k(&mut self, range: KeyRange, mode: ReadMode) -> Vec<RowCopy> {
        self.scan(ScanIndex::Secondary(INDEX_K), range, mode).await
    }

    pub async fn all(&mut self) -> Vec<RowCopy> {
        self.scan(ScanIndex::Clustered, KeyRange::all(), ReadMode::Consistent).await
    }

    /// SELECT k FROM t WHERE id = ? FOR UPDATE
    pub async fn lock(&mut self, id: i32) -> Result<Option<i32>, Error> {
        let range = KeyRange::equal(key(id));
        let rows = self.try_scan(ScanIndex::Clustered, range, Direction::Forward, for_update()).await?;
        Ok(rows.first().map(|row| row.k))
    }

    /// SELECT id, k FROM t WHERE k = ?, as a scan of all rows (the way a predicate without an index is read).
    pub async fn where_k(&mut self, k: i32) -> Vec<(i32, i32)> {
        self.all().await.into_iter().filter(|row| row.k == k).map(|row| (row.id, row.k)).collect()
    }

    /// Rows as (id, k).
    pub async fn pairs(&mut self) -> Vec<(i32, i32)> {
        self.all().await.into_iter().map(|row| (row.id, row.k)).collect()
    }
}

pub fn after(world: &World, duration: Duration) {
    world.env.advance(duration);
}
