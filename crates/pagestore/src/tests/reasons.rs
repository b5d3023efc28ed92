//! Each page that is written counts for the reason for which it was.

use std::time::Duration;

use page::PageId;

use super::crash::{PAGE_SIZE, PAGES, SPACE, create_with};
use super::support::{create_page, options, retry, update_page};
use crate::flush::adaptive_flushing::Urgency;
use crate::flush::reason::WriteReason;
use crate::store::PageStore;

const ALL: [WriteReason; 9] = [
    WriteReason::Age,
    WriteReason::Dirty,
    WriteReason::LogShort,
    WriteReason::Ahead,
    WriteReason::Idle,
    WriteReason::Frames,
    WriteReason::All,
    WriteReason::Tablespace,
    WriteReason::Resize,
];

/// Makes all pages dirty in a pool of `frames`, has them written by the work, and gives the reasons.
fn reasons(frames: usize, work: impl AsyncFnOnce(&PageStore)) -> Vec<WriteReason> {
    let machine = create_with(7, 8 << 20, options(frames, PAGE_SIZE));
    let (env, store) = (machine.env.clone(), machine.store.clone());
    env.run_until_complete(async {
        for page in 0..PAGES {
            retry(|| create_page(&store, PageId::new(SPACE, page), 1)).await.unwrap();
        }
        work(&store).await;
        store.settle_writes().await.unwrap();
    });
    let status = store.status();
    env.shutdown();
    let pages: u64 = ALL.iter().map(|reason| status.written_for.pages(*reason)).sum();
    assert_eq!(pages, status.pages_written, "a page has been written for no reason, or for two");
    ALL.into_iter().filter(|reason| status.written_for.pages(*reason) > 0).collect()
}

#[test]
fn pages_are_counted_by_the_reason_for_which_they_were_written() {
    let flush = async |store: &PageStore| store.flush_all().await.unwrap();
    assert_eq!(reasons(1024, flush), [WriteReason::All]);
    let checkpoint = async |store: &PageStore| assert!(store.checkpoint().await.unwrap().0 > 0);
    assert_eq!(reasons(1024, checkpoint), [WriteReason::All]);
    let export = async |store: &PageStore| store.flush_space(SPACE).await.unwrap();
    assert_eq!(reasons(1024, export), [WriteReason::Tablespace]);
    // Nothing happens for a while.
    let rest = async |store: &PageStore| {
        while store.status().pages_dirty > 0 {
            store.env.sleep(Duration::from_millis(100)).await;
        }
    };
    let rested = reasons(1024, rest);
    assert!(rested.contains(&WriteReason::Idle), "{rested:?}");
    let frames = async |store: &PageStore| {
        for page in 0..PAGES {
            retry(|| update_page(store, PageId::new(SPACE, page), 2)).await.unwrap();
        }
    };
    let read = reasons(PAGES as usize / 2, frames);
    assert!(read.contains(&WriteReason::Frames), "{read:?}");
}

#[test]
fn what_the_controller_decides_has_a_reason() {
    for (urgency, surplus, reason) in [
        (Urgency::Idle, true, WriteReason::Idle),
        (Urgency::Ahead, false, WriteReason::Ahead),
        (Urgency::Paced, false, WriteReason::Age),
        (Urgency::Paced, true, WriteReason::Dirty),
        (Urgency::Async, true, WriteReason::LogShort),
        (Urgency::Sync, false, WriteReason::LogShort),
    ] {
        assert_eq!(WriteReason::of(urgency, surplus), reason, "{urgency:?}");
    }
}
