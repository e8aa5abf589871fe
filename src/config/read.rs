//! Small files, read with a limit.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The text of a small file.
///
/// # Errors
/// What the system says, or that the file is longer than `limit` or no UTF-8.
#[expect(clippy::disallowed_methods, reason = "the read is limited by `take`")]
pub fn read_bounded(path: &Path, limit: u64) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(limit.saturating_add(1)).read_to_string(&mut text)?;
    if text.len() as u64 > limit {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("longer than {limit} bytes")));
    }
    Ok(text)
}
