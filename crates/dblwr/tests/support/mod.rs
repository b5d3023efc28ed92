//! Pages that say which version they are, files of them, and a writer's batches.
#![allow(dead_code)]

use disk::*;
use page::{FlushPurpose, PageId, PageWriteFuture, WriteBatch, WrittenBatch};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use untorn_dblwr::*;

pub const PAGE: usize = 16384;
pub const PAGES: u32 = 24;
pub const SPACES: [u32; 2] = [1, 2];
pub const DATA: &str = "data";

/// The page checksum of MySQL 8.0 (`innodb_checksum_algorithm=crc32`): header and body, stored twice, and the
/// low half of the LSN in the trailer.
pub fn checksum(image: &[u8]) -> u32 {
    crc32c::crc32c(&image[4..26]) ^ crc32c::crc32c(&image[38..PAGE - 8])
}

pub fn verify(image: &[u8]) -> bool {
    let sum = checksum(image).to_be_bytes();
    image[..4] == sum && image[PAGE - 8..PAGE - 4] == sum && image[20..24] == image[PAGE - 4..]
}

pub fn lsn_of(image: &[u8]) -> u64 {
    u64::from_be_bytes(image[16..24].try_into().unwrap())
}

/// The page `id` as of `lsn`: every sector differs between versions.
pub fn fill(image: &mut [u8], id: PageId, lsn: u64) {
    let mut random = Random::new(u64::from(id.space) << 48 ^ u64::from(id.page) << 32 ^ lsn);
    image.chunks_mut(8).for_each(|chunk| chunk.copy_from_slice(&random.next_u64().to_le_bytes()));
    image[4..8].copy_from_slice(&id.page.to_be_bytes());
    image[16..24].copy_from_slice(&lsn.to_be_bytes());
    image[34..38].copy_from_slice(&id.space.to_be_bytes());
    image[PAGE - 4..].copy_from_slice(&(lsn as u32).to_be_bytes());
    let sum = checksum(image).to_be_bytes();
    image[..4].copy_from_slice(&sum);
    image[PAGE - 8..PAGE - 4].copy_from_slice(&sum);
}

pub fn page(id: PageId, lsn: u64) -> AlignedBuf {
    let mut image = AlignedBuf::zeroed(PAGE);
    fill(&mut image, id, lsn);
    image
}

pub fn data_path(space: u32) -> std::path::PathBuf {
    Path::new(DATA).join(format!("{space}.ibd"))
}

pub fn open_files(storage: &dyn Storage, how: OpenHow) -> BTreeMap<u32, Arc<dyn File>> {
    SPACES.iter().map(|space| (*space, storage.open(&data_path(*space), how).unwrap())).collect()
}

/// Two tablespaces whose pages are all durable at LSN 1.
pub fn make_data(storage: &dyn Storage) -> BTreeMap<u32, Arc<dyn File>> {
    storage.create_dir_all(Path::new(DATA)).unwrap();
    let files = open_files(storage, OpenHow::CREATE_NEW);
    for (space, file) in &files {
        for number in 0..PAGES {
            file.write_at(&page(PageId::new(*space, number), 1), u64::from(number) * PAGE as u64).unwrap();
        }
        file.sync_data().unwrap();
    }
    storage.sync_dir(Path::new(DATA)).unwrap();
    files
}

pub fn options() -> Options {
    Options { pages: 4, ..Options::new(DATA, PAGE) }
}

pub fn batch(
    files: &BTreeMap<u32, Arc<dyn File>>,
    pages: &[PageId],
    lsn: u64,
    purpose: FlushPurpose,
) -> WriteBatch {
    let mut batch = WriteBatch::new(PAGE, pages.len(), purpose);
    // One in three goes as fast as it can.
    batch.spread.time = Duration::from_millis(lsn % 3 * 7);
    for id in pages {
        let offset = u64::from(id.page) * PAGE as u64;
        fill(batch.push(*id, files[&id.space].clone(), offset), *id, lsn);
    }
    batch
}

pub fn run_recovery(disk: &Arc<SimulatedStorage>, checkpoint: u64) -> Recovered {
    let env = SimulatedEnvironment::with_storage(0, disk.clone());
    let files = open_files(&**disk, OpenHow::EXISTING);
    let mut locate =
        |id: PageId| Ok(files.get(&id.space).map(|file| (file.clone(), u64::from(id.page) * PAGE as u64)));
    recover_since(&*env, &[DATA.into()], PAGE, checkpoint, &mut locate).unwrap()
}

pub fn read_page(storage: &SimulatedStorage, id: PageId) -> Vec<u8> {
    let content = storage.content(&data_path(id.space)).unwrap();
    content[id.page as usize * PAGE..][..PAGE].to_vec()
}

pub fn all_pages() -> impl Iterator<Item = PageId> {
    SPACES.into_iter().flat_map(|space| (0..PAGES).map(move |number| PageId::new(space, number)))
}

pub type Outcome = (Event, Arc<std::sync::Mutex<Option<Result<WrittenBatch>>>>);

pub fn spawn(env: &Arc<SimulatedEnvironment>, write: PageWriteFuture) -> Outcome {
    let outcome: Outcome = Default::default();
    let (event, slot) = outcome.clone();
    env.spawn(
        "write",
        Box::pin(async move {
            *slot.lock().unwrap() = Some(write.await);
            event.set();
        }),
    );
    outcome
}

/// Damages a page in its file. Whether there is such a file.
pub fn tear(disk: &SimulatedStorage, id: PageId) -> bool {
    disk.corrupt(&data_path(id.space), id.page as usize * PAGE + 5000, &[0xAA; 512])
}
