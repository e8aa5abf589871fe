//! How a file looks from outside.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

/// Two looks at a file differ if it was written or replaced in between;
/// nothing where it cannot be looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stamp(Option<Look>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Look {
    bytes: u64,
    modified: Option<SystemTime>,
    /// Inode and change time, which no program sets back.
    #[cfg(unix)]
    identity: (u64, i64, i64),
}

impl Stamp {
    pub(super) fn of(path: &Path) -> Self {
        let look = |metadata: fs::Metadata| Look {
            bytes: metadata.len(),
            modified: metadata.modified().ok(),
            #[cfg(unix)]
            identity: {
                use std::os::unix::fs::MetadataExt as _;
                (metadata.ino(), metadata.ctime(), metadata.ctime_nsec())
            },
        };
        Self(fs::metadata(path).ok().map(look))
    }
}
