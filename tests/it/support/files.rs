//! Files of homes, with the times a test wants them to have.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

/// A folder or file of `fixtures/`.
pub(crate) fn fixture(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(path)
}

pub(crate) fn json(path: &Path) -> serde_json::Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// The directories below a directory, by name.
pub(crate) fn folders(dir: &Path) -> Vec<PathBuf> {
    let mut folders: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.retain(|path| path.is_dir());
    folders.sort();
    folders
}

/// All files below a directory.
pub(crate) fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

/// Copies a tree; every file is as old as `modified_ms` says.
pub(crate) fn copy_tree(from: &Path, to: &Path, modified_ms: i64) {
    for file in files(from) {
        let copy = to.join(file.strip_prefix(from).unwrap());
        write(&copy, &fs::read(&file).unwrap(), modified_ms);
    }
}

/// Writes a file anew, in place, with the directories it needs.
pub(crate) fn write(path: &Path, content: &[u8], modified_ms: i64) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
    touch(path, modified_ms);
}

/// Appends to a file, which is made where it is missing.
pub(crate) fn append(path: &Path, content: &[u8], modified_ms: i64) {
    use std::io::Write as _;
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut file = File::options().create(true).append(true).open(path).unwrap();
    file.write_all(content).unwrap();
    touch(path, modified_ms);
}

/// Puts a new file in the place of another.
pub(crate) fn rename_over(path: &Path, content: &[u8], modified_ms: i64) {
    let temporary = path.with_extension("jsonl.tmp-4242");
    write(&temporary, content, modified_ms);
    fs::rename(&temporary, path).unwrap();
}

pub(crate) fn touch(path: &Path, modified_ms: i64) {
    let time = UNIX_EPOCH + Duration::from_millis(modified_ms.unsigned_abs());
    File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}
