//! Stores that do not do what an upload needs of them, or do it late: a real one's memory behind it.
#![allow(clippy::unwrap_used)]

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use futures_core::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path as Key;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMode,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use url::Url;

use super::Location;

#[derive(Debug, Default)]
struct Store {
    memory: InMemory,
    /// It puts an object where it is asked to only if there is none.
    knows_no_condition: bool,
    /// It says once that there is one, before there is: another one's is on its way.
    is_early: AtomicBool,
}

impl fmt::Display for Store {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a store")
    }
}

#[async_trait]
impl ObjectStore for Store {
    async fn put_opts(&self, key: &Key, payload: PutPayload, mut how: PutOptions) -> Result<PutResult> {
        if how.mode == PutMode::Create && self.is_early.swap(false, Ordering::SeqCst) {
            return Err(Error::AlreadyExists { path: key.to_string(), source: "a conflict".into() });
        }
        if self.knows_no_condition {
            how.mode = PutMode::Overwrite;
        }
        self.memory.put_opts(key, payload, how).await
    }

    async fn put_multipart_opts(
        &self,
        key: &Key,
        how: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.memory.put_multipart_opts(key, how).await
    }

    async fn get_opts(&self, key: &Key, how: GetOptions) -> Result<GetResult> {
        self.memory.get_opts(key, how).await
    }

    fn delete_stream(&self, keys: BoxStream<'static, Result<Key>>) -> BoxStream<'static, Result<Key>> {
        self.memory.delete_stream(keys)
    }

    fn list(&self, prefix: Option<&Key>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.memory.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Key>) -> Result<ListResult> {
        self.memory.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Key, to: &Key, how: CopyOptions) -> Result<()> {
        self.memory.copy_opts(from, to, how).await
    }
}

fn location(store: Store) -> Location {
    let url = Url::parse("s3://backups/monday").unwrap();
    Location { store: Arc::new(store), prefix: Key::from("monday"), url }
}

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

#[test]
fn one_of_two_gets_the_name() {
    let location = location(Store::default());
    run(async {
        assert_eq!(location.create_or_get("mark", b"mine").await, Ok(None));
        assert_eq!(location.create_or_get("mark", b"other").await, Ok(Some(b"mine".to_vec())));
    });
}

#[test]
fn a_store_that_would_give_it_to_both_is_refused() {
    let location = location(Store { knows_no_condition: true, ..Store::default() });
    let said = run(location.create_or_get("mark", b"mine")).unwrap_err();
    assert!(said.contains("If-None-Match"), "{said}");
}

/// S3 refuses one of two that come together, before the other's object is there.
#[test]
fn a_refusal_without_an_object_is_no_answer() {
    let location = location(Store { is_early: AtomicBool::new(true), ..Store::default() });
    assert_eq!(run(location.create_or_get("mark", b"mine")), Ok(None));
}

#[test]
fn an_object_that_is_too_large_is_not_taken_into_memory() {
    let location = location(Store::default());
    run(async {
        location.create("small", b"12345678").await.unwrap();
        assert!(location.get("small", 7).await.unwrap_err().contains("more bytes than the 7"));
        assert_eq!(location.get("small", 8).await, Ok(Some(b"12345678".to_vec())));
    });
}
