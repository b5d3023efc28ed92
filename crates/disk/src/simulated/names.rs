//! The names of a simulated file system: what is visible, and what a power loss leaves of it.
//!
//! Creating, renaming and removing are visible at once and durable after a sync of the directory; until then
//! a power loss keeps any subset of them, each whole (a rename is never half done). Directories themselves
//! are durable at once: nothing in the engine depends on losing one.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

/// What a name stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Node {
    /// A directory.
    Directory,
    /// The file with this number.
    File(usize),
}

#[derive(Clone, Debug)]
enum NameChange {
    Link(PathBuf, usize),
    Unlink(PathBuf),
    Rename(PathBuf, PathBuf, usize),
}

/// All names.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    visible: BTreeMap<PathBuf, Node>,
    durable: BTreeMap<PathBuf, Node>,
    pending: Vec<NameChange>,
}

/// One spelling per name.
pub(crate) fn plain(path: &Path) -> PathBuf {
    path.components().filter(|part| !matches!(part, Component::CurDir)).collect()
}

fn parent(path: &Path) -> PathBuf {
    path.parent().map(Path::to_path_buf).unwrap_or_default()
}

impl Names {
    pub(crate) fn get(&self, path: &Path) -> Option<Node> {
        match self.visible.get(path) {
            Some(node) => Some(*node),
            None if path.parent().is_none() || path.as_os_str().is_empty() => Some(Node::Directory),
            None => None,
        }
    }

    /// Whether files can be made in the directory of `path`.
    pub(crate) fn has_parent(&self, path: &Path) -> bool {
        self.get(&parent(path)) == Some(Node::Directory)
    }

    pub(crate) fn create_directory(&mut self, path: &Path) {
        for part in path.ancestors().filter(|part| !part.as_os_str().is_empty()) {
            self.visible.entry(part.into()).or_insert(Node::Directory);
            self.durable.entry(part.into()).or_insert(Node::Directory);
        }
    }

    pub(crate) fn remove_directory(&mut self, path: &Path) {
        self.visible.remove(path);
        self.durable.remove(path);
    }

    pub(crate) fn link(&mut self, path: PathBuf, file: usize) {
        self.visible.insert(path.clone(), Node::File(file));
        self.pending.push(NameChange::Link(path, file));
    }

    pub(crate) fn unlink(&mut self, path: &Path) {
        self.visible.remove(path);
        self.pending.push(NameChange::Unlink(path.into()));
    }

    /// Removes a file at once and for good; whether there was one.
    pub(crate) fn lose(&mut self, path: &Path) -> bool {
        self.durable.remove(path);
        self.visible.remove(path).is_some()
    }

    pub(crate) fn rename(&mut self, from: &Path, to: &Path, file: usize) {
        self.visible.remove(from);
        self.visible.insert(to.into(), Node::File(file));
        self.pending.push(NameChange::Rename(from.into(), to.into(), file));
    }

    /// Makes the changes in a directory durable.
    pub(crate) fn sync(&mut self, directory: &Path) {
        let durable = &mut self.durable;
        self.pending.retain(|change| {
            let concerned = match change {
                NameChange::Link(path, _) | NameChange::Unlink(path) => parent(path) == directory,
                NameChange::Rename(from, to, _) => parent(from) == directory || parent(to) == directory,
            };
            if concerned {
                apply(durable, change);
            }
            !concerned
        });
    }

    /// The entries right below a directory.
    pub(crate) fn below(&self, directory: &Path) -> Vec<(String, Node)> {
        let inside = |path: &Path| path.parent().is_some_and(|above| above == directory);
        let named = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
        self.visible
            .iter()
            .filter(|(path, _)| inside(path))
            .filter_map(|(path, node)| named(path).map(|name| (name, *node)))
            .collect()
    }

    /// Number of changes that are not durable.
    pub(crate) fn pending(&self) -> usize {
        self.pending.len()
    }

    /// What a power loss leaves, and how many changes survived. `survives` is asked once for each, in their
    /// order.
    pub(crate) fn after_crash(&self, survives: &mut dyn FnMut() -> bool) -> (Names, usize) {
        let mut left = self.durable.clone();
        let mut kept = 0;
        for change in &self.pending {
            if survives() {
                apply(&mut left, change);
                kept += 1;
            }
        }
        (Names { visible: left.clone(), durable: left, pending: Vec::new() }, kept)
    }

    /// Every visible file with its number.
    pub(crate) fn visible_files(&self) -> impl Iterator<Item = (&Path, usize)> {
        self.visible.iter().filter_map(|(path, node)| match node {
            Node::File(file) => Some((path.as_path(), *file)),
            Node::Directory => None,
        })
    }

    /// The numbers of all files that have a name.
    pub(crate) fn files(&self) -> impl Iterator<Item = usize> {
        self.visible_files().map(|(_, file)| file)
    }
}

fn apply(names: &mut BTreeMap<PathBuf, Node>, change: &NameChange) {
    match change {
        NameChange::Link(path, file) => drop(names.insert(path.clone(), Node::File(*file))),
        NameChange::Unlink(path) => drop(names.remove(path)),
        NameChange::Rename(from, to, file) => {
            if names.get(from) == Some(&Node::File(*file)) {
                names.remove(from);
            }
            names.insert(to.clone(), Node::File(*file));
        }
    }
}
