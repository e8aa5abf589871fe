//! What a directory holds, to be compared with what it held.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Kind, mode, times of change and content of everything below a directory.
pub(crate) fn tree(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut tree = BTreeMap::new();
    add(root, &mut tree);
    assert!(!tree.is_empty(), "{} is there", root.display());
    tree
}

fn add(path: &Path, tree: &mut BTreeMap<PathBuf, String>) {
    let Ok(metadata) = std::fs::symlink_metadata(path) else { return };
    let content = if metadata.is_file() { std::fs::read(path).unwrap() } else { Vec::new() };
    let content = gemgauge::ledger::hash::fnv1a(&content);
    let (mode, modified, changed) = (metadata.mode(), metadata.mtime_nsec(), metadata.ctime_nsec());
    let seconds = (metadata.mtime(), metadata.ctime());
    tree.insert(path.to_owned(), format!("{mode:o} {seconds:?} {modified} {changed} {content:x}"));
    if metadata.is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            add(&entry.unwrap().path(), tree);
        }
    }
}
