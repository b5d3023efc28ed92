//! `untorn upload` and `untorn download`, with a directory in the place of a store: what comes back, what a
//! call goes on with that another one left, and what is refused.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use untorn::{BackupContents, BackupOptions, Database, Options};

/// A database with two backups, the second incremental, and a place for what is uploaded.
struct Place(PathBuf);

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Place {
    fn with_backups(name: &str) -> Place {
        let place = std::env::temp_dir().join(format!("untorn-object-storage-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&place);
        fs::create_dir_all(place.join("store")).unwrap();
        let place = Place(place);
        let database = Database::open(Options::new(place.at("data"))).unwrap();
        let shop = database.key_value::<u32, Vec<u8>>("shop").unwrap();
        let fill = |keys: std::ops::Range<u32>| {
            let put = |t: &mut untorn::Transaction| {
                keys.clone().try_for_each(|key| shop.put(t, key, &[key as u8; 4000]).map(drop))
            };
            database.transact(put).unwrap();
        };
        fill(0..500);
        database.backup(place.at("monday")).unwrap();
        fill(500..501);
        database
            .backup_with(place.at("tuesday"), BackupOptions::default().since(place.at("monday")))
            .unwrap();
        database.close().unwrap();
        place
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn url(&self, name: &str) -> String {
        format!("file://{}", self.at("store").join(name).display())
    }

    fn upload(&self, backup: &str, name: &str) -> Result<String, String> {
        untorn(&["upload", self.at(backup).to_str().unwrap(), &self.url(name)])
    }

    fn download(&self, name: &str, directory: &str) -> Result<String, String> {
        untorn(&["download", &self.url(name), self.at(directory).to_str().unwrap()])
    }

    /// Restores it and opens it.
    fn rows(&self, backup: &Path) -> usize {
        let restored = self.at("restored");
        let _ = fs::remove_dir_all(&restored);
        untorn::restore(backup, &restored, |_| {}).unwrap();
        let database = Database::open(Options::new(&restored)).unwrap();
        let shop = database.key_value::<u32, Vec<u8>>("shop").unwrap();
        let mut transaction = database.begin();
        let rows = shop.iter(&mut transaction).map(Result::unwrap).count();
        drop(transaction);
        database.close().unwrap();
        rows
    }
}

/// What the program said, by whether it did it.
fn untorn(words: &[&str]) -> Result<String, String> {
    let output = Command::new(env!("CARGO_BIN_EXE_untorn")).args(words).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8(said).unwrap();
    if output.status.success() { Ok(said) } else { Err(said) }
}

/// All files below a directory, with their bytes.
fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut below = vec![directory.to_owned()];
    while let Some(next) = below.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                below.push(path);
            } else {
                files.insert(path.strip_prefix(directory).unwrap().to_owned(), fs::read(&path).unwrap());
            }
        }
    }
    files
}

fn change_a_byte(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(path, bytes).unwrap();
}

/// The largest file of a backup that is not its manifest.
fn largest(backup: &Path) -> PathBuf {
    let contents = BackupContents::of(backup).unwrap();
    contents.files.iter().max_by_key(|file| file.bytes).unwrap().path.clone()
}

#[test]
fn a_backup_comes_back_with_what_it_adds_to() {
    let place = Place::with_backups("back");
    let said = place.upload("tuesday", "tuesday").unwrap();
    assert!(said.contains("it adds to monday"), "{said}");
    place.upload("monday", "monday").unwrap();
    for name in ["monday", "tuesday"] {
        assert_eq!(files(&place.at(name)), files(&place.at("store").join(name)), "a file an object");
    }
    assert!(place.upload("monday", "monday").unwrap().contains("has it already"));
    place.download("tuesday", "came/tuesday").unwrap();
    for name in ["monday", "tuesday"] {
        assert_eq!(files(&place.at(name)), files(&place.at("came").join(name)));
    }
    assert_eq!(place.rows(&place.at("came/tuesday")), 501);
    assert!(place.download("tuesday", "came/tuesday").unwrap().contains("has it already"));
    let damaged = place.at("came/tuesday").join(largest(&place.at("tuesday")));
    change_a_byte(&damaged);
    let said = place.download("tuesday", "came/tuesday").unwrap_err();
    assert!(said.contains(damaged.to_str().unwrap()) && said.contains("remove the directory"), "{said}");
}

/// What is in a database is for its owner, on its way, too.
#[test]
fn only_the_owner_may_read_what_is_made() {
    let place = Place::with_backups("private");
    place.upload("monday", "monday").unwrap();
    place.download("monday", "came").unwrap();
    for made in [place.at("store/monday"), place.at("came")] {
        for path in files(&made).keys() {
            let mode = fs::metadata(made.join(path)).unwrap().permissions().mode();
            assert_eq!(mode & 0o077, 0, "{}", path.display());
        }
    }
}

#[test]
fn a_download_follows_no_link() {
    let place = Place::with_backups("link");
    place.upload("monday", "monday").unwrap();
    fs::write(place.at("elsewhere"), "stays").unwrap();
    let contents = BackupContents::of(place.at("monday")).unwrap();
    fs::create_dir(place.at("came")).unwrap();
    // What a call that was killed left, and a link in the place of its first file.
    fs::write(place.at("came").join(BackupContents::INCOMPLETE), "a download").unwrap();
    place.download("monday", "came").unwrap();
    fs::remove_file(place.at("came").join(BackupContents::MANIFEST)).unwrap();
    let mark = format!("a download of {:08x}\n", contents.checksum);
    fs::write(place.at("came").join(BackupContents::INCOMPLETE), mark).unwrap();
    let file = place.at("came").join(largest(&place.at("monday")));
    fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink(place.at("elsewhere"), &file).unwrap();
    let said = place.download("monday", "came").unwrap_err();
    assert!(said.contains(file.to_str().unwrap()), "{said}");
    assert_eq!(fs::read_to_string(place.at("elsewhere")).unwrap(), "stays");
}

#[test]
fn a_base_has_a_place_of_its_own() {
    let place = Place::with_backups("base");
    place.upload("monday", "monday").unwrap();
    place.upload("tuesday", "tuesday").unwrap();
    let said = place.download("tuesday", "came/monday").unwrap_err();
    assert!(said.contains("which is taken"), "{said}");
    // Where it is called from is as good a place as any, and what is there need not be there in the store.
    let here = place.at("here/tuesday");
    fs::create_dir_all(&here).unwrap();
    fs::create_dir(place.at("here/monday")).unwrap();
    for (path, bytes) in files(&place.at("monday")) {
        let to = place.at("here/monday").join(path);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::write(to, bytes).unwrap();
    }
    fs::remove_dir_all(place.at("store/monday")).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_untorn"));
    let output = command.args(["download", &place.url("tuesday"), "."]).current_dir(&here).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(place.rows(&here), 501);
}

#[test]
fn an_upload_that_was_cut_off_is_gone_on_with() {
    let place = Place::with_backups("cut-up");
    place.upload("monday", "monday").unwrap();
    let object = place.at("store/monday");
    // As if it had ended before: one object is not whole, one is another's, one is not there, nor the
    // manifest.
    let contents = BackupContents::of(&object).unwrap();
    let mut large: Vec<_> = contents.files.iter().filter(|file| file.bytes > 100).collect();
    large.sort_by_key(|file| file.bytes);
    fs::write(object.join(&large[0].path), b"a part").unwrap();
    change_a_byte(&object.join(&large[1].path));
    fs::remove_file(object.join(&large[2].path)).unwrap();
    fs::remove_file(object.join(BackupContents::MANIFEST)).unwrap();
    fs::write(object.join(BackupContents::INCOMPLETE), format!("{:08x}\n", contents.checksum)).unwrap();
    let said = place.download("monday", "early").unwrap_err();
    assert!(said.contains("was not finished: upload it again"), "{said}");
    // Another one cannot have its name meanwhile.
    let said = place.upload("tuesday", "monday").unwrap_err();
    assert!(said.contains("is the name of another backup whose upload is not finished"), "{said}");
    place.upload("monday", "monday").unwrap();
    assert_eq!(files(&place.at("monday")), files(&object));
    // One that somebody removed since is sent again.
    fs::remove_file(object.join(&large[2].path)).unwrap();
    place.upload("monday", "monday").unwrap();
    assert_eq!(files(&place.at("monday")), files(&object));
}

#[test]
fn a_download_that_was_cut_off_is_gone_on_with() {
    let place = Place::with_backups("cut-down");
    place.upload("monday", "monday").unwrap();
    let largest = largest(&place.at("monday"));
    let object = place.at("store/monday").join(&largest);
    change_a_byte(&object);
    let said = place.download("monday", "came").unwrap_err();
    assert!(
        said.contains("the backup is damaged there") && said.contains(largest.to_str().unwrap()),
        "{said}"
    );
    assert!(untorn::restore(place.at("came"), place.at("restored"), |_| {}).is_err());
    change_a_byte(&object);
    // Another one does not go on there.
    place.upload("tuesday", "tuesday").unwrap();
    let said = place.download("tuesday", "came").unwrap_err();
    assert!(said.contains("no download of this backup"), "{said}");
    place.download("monday", "came").unwrap();
    assert_eq!(files(&place.at("monday")), files(&place.at("came")));
    assert_eq!(place.rows(&place.at("came")), 500);
}

#[test]
fn what_is_damaged_is_not_uploaded() {
    let place = Place::with_backups("damaged");
    let largest = largest(&place.at("monday"));
    change_a_byte(&place.at("monday").join(&largest));
    let said = place.upload("monday", "monday").unwrap_err();
    assert!(said.contains("the backup is damaged") && said.contains(largest.to_str().unwrap()), "{said}");
    assert!(!place.at("store/monday").join(BackupContents::MANIFEST).exists());
    fs::remove_file(place.at("monday").join(&largest)).unwrap();
    let said = place.upload("monday", "monday").unwrap_err();
    assert!(said.contains("it is not there"), "{said}");
    fs::write(place.at("tuesday").join(BackupContents::INCOMPLETE), b"").unwrap();
    let said = place.upload("tuesday", "tuesday").unwrap_err();
    assert!(said.contains("not finished"), "{said}");
}

#[test]
fn a_name_belongs_to_one_backup() {
    let place = Place::with_backups("names");
    place.upload("monday", "monday").unwrap();
    let before = files(&place.at("store/monday"));
    let said = place.upload("tuesday", "monday").unwrap_err();
    assert!(said.contains("is another backup already"), "{said}");
    assert_eq!(before, files(&place.at("store/monday")), "not a byte of it");
    // A base that was replaced.
    place.upload("tuesday", "tuesday").unwrap();
    fs::remove_dir_all(place.at("store/monday")).unwrap();
    let said = place.download("tuesday", "early/tuesday").unwrap_err();
    assert!(said.contains("there is no backup"), "{said}");
    place.upload("tuesday", "monday").unwrap();
    let said = place.download("tuesday", "came/tuesday").unwrap_err();
    assert!(said.contains("is another backup than the one that is added to"), "{said}");
}

#[test]
fn words_and_urls_are_explained() {
    assert!(untorn(&["upload", "--help"]).unwrap().contains("AWS_ACCESS_KEY_ID"));
    assert!(untorn(&["download", "one"]).unwrap_err().contains("usage: untorn download URL DIRECTORY"));
    let place = Place::with_backups("urls");
    let backup = place.at("monday");
    let upload = |url| untorn(&["upload", backup.to_str().unwrap(), url]).unwrap_err();
    assert!(upload("monday").contains("s3://BUCKET/NAME"));
    assert!(upload("ftp://there/monday").contains("knows s3:// and file:// only"));
    assert!(upload("s3://bucket").contains("needs a name"));
    assert!(upload("file:///there/monday#2").contains("a name has no ? and no #"));
}
