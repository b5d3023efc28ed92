//! A tree is made on a disk that is full.

use std::path::Path;
use std::sync::Arc;

use disk::{Environment, FaultKind, SimulatedEnvironment, retry};
use pagestore::{Error, Interrupt, Mtr, Options, PageSize, PageStore, fsp};
use untorn_btree::{FieldDef, IndexDef, Tree};

use super::support::{PlainWriter, SPACE};

/// A new file has room for four roots. The fifth tree finds none before it has changed a page.
#[test]
fn a_tree_that_finds_no_room_changes_nothing() {
    let env = SimulatedEnvironment::new(1);
    let dynamic: Arc<dyn Environment> = env.clone();
    let data = Path::new("/data");
    dynamic.storage().create_dir_all(data).unwrap();
    let log = redo::Options { capacity: 4 << 20, first_size: 4 << 20, ..redo::Options::default() };
    let redo = redo::RedoLog::create(&dynamic, data, log).unwrap();
    let page_size = PageSize::new(16384).unwrap();
    let options = Options { pool_bytes: 4 << 20, page_size, ..Options::default() };
    let store = PageStore::open(dynamic, redo, options, Arc::new(PlainWriter)).unwrap();
    store.create_space(SPACE, &data.join("t.ibd"), fsp::INITIAL_PAGES).unwrap();
    env.run_until_complete(async {
        change(&store, |mtr| fsp::create_space_pages(mtr, SPACE, fsp::INITIAL_PAGES)).await.unwrap();
        let def = Arc::new(IndexDef::new(7, "k", false, false, vec![FieldDef::fixed("id", 4)], 1, 1));
        let tree = async || change(&store, |mtr| Tree::create(mtr, &store, SPACE, def.clone())).await;
        env.disk().leave_room(0, FaultKind::Enospc);
        for _ in 0..4 {
            tree().await.unwrap();
        }
        let refused = tree().await.unwrap_err();
        assert!(matches!(refused, Error::NoSpace { .. }), "{refused}");
        assert_eq!(store.poisoned(), None);
        env.disk().fill_up(false);
        tree().await.unwrap();
        let report = retry(|| fsp::check(&store, SPACE)).await.unwrap();
        assert!(report.is_clean(), "{report}");
        assert_eq!(report.size, fsp::INITIAL_PAGES + 1);
    });
    env.shutdown();
}

/// Does `work` in a mini-transaction, again after each wait.
async fn change<T>(
    store: &PageStore,
    mut work: impl FnMut(&mut Mtr<'_>) -> Result<T, Interrupt>,
) -> Result<T, Error> {
    retry(|| {
        let mut mtr = store.mtr()?;
        let done = work(&mut mtr)?;
        mtr.commit();
        Ok::<T, Interrupt>(done)
    })
    .await
}
