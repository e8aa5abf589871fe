//! The files of a home's `.gemini` that hold a sign-in, read with care (quota Q4).

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use zeroize::Zeroizing;

/// No sign-in is larger.
const LIMIT: u64 = 1 << 20;

/// The CLI truncates and writes: a reader may meet half a file.
const TORN: Duration = Duration::from_millis(150);

/// A file's content; zeroed when it goes.
pub(super) struct Content {
    pub(super) text: Zeroizing<String>,
    /// Who owns it, where the system knows owners.
    pub(super) owner: Option<u32>,
}

/// Why a file tells nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unreadable {
    LeadsOut,
    NotRegular,
    TooLong,
    NotText,
    Denied,
    Broken,
    Failed,
}

impl Unreadable {
    /// The words after the name of the file.
    pub(super) fn why(self) -> &'static str {
        match self {
            Self::LeadsOut => "is a link out of .gemini",
            Self::NotRegular => "is not a regular file",
            Self::TooLong => "is longer than 1 MiB",
            Self::NotText => "is not UTF-8",
            Self::Denied => "may not be read by this user",
            Self::Broken => "is not what Gemini CLI writes",
            Self::Failed => "could not be read",
        }
    }
}

/// Reads a file of `root` and makes something of it; `None`: there is no such
/// file. What cannot be made sense of is read again once, after a moment.
pub(super) fn read<T>(
    root: &Path,
    name: &str,
    sleep: &dyn Fn(Duration),
    make: impl Fn(&Content) -> Option<T>,
) -> Result<Option<T>, Unreadable> {
    let once = || match content(root, name) {
        Ok(Some(content)) => make(&content).map(Some).ok_or(Unreadable::Broken),
        Ok(None) => Ok(None),
        Err(why) => Err(why),
    };
    match once() {
        Err(Unreadable::Broken | Unreadable::NotText) => {
            sleep(TORN);
            once()
        }
        read => read,
    }
}

fn content(root: &Path, name: &str) -> Result<Option<Content>, Unreadable> {
    let absent =
        |error: &io::Error| matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
    let Some(path) = inside(root, name)? else { return Ok(None) };
    let (file, metadata) = match open(&path) {
        Ok(opened) => opened,
        Err(error) if absent(&error) => return Ok(None),
        Err(error) => return Err(failed(&error)),
    };
    if !metadata.is_file() {
        return Err(Unreadable::NotRegular);
    }
    // As large as it will get: growing would leave copies behind.
    let size = usize::try_from(metadata.len().min(LIMIT)).unwrap_or_default();
    let mut bytes = Zeroizing::new(Vec::with_capacity(size + 64));
    file.take(LIMIT + 1).read_to_end(&mut bytes).map_err(|error| failed(&error))?;
    if bytes.len() as u64 > LIMIT {
        return Err(Unreadable::TooLong);
    }
    let text = str::from_utf8(&bytes).map_err(|_| Unreadable::NotText)?;
    Ok(Some(Content { text: Zeroizing::new(text.to_owned()), owner: owner(&metadata) }))
}

/// Where the file really is, if that is below `root`; `None`: it is nowhere.
fn inside(root: &Path, name: &str) -> Result<Option<PathBuf>, Unreadable> {
    let real = |path: &Path| match path.canonicalize() {
        Ok(real) => Ok(Some(real)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(failed(&error)),
    };
    let (Some(root), Some(path)) = (real(root)?, real(&root.join(name))?) else { return Ok(None) };
    if path.starts_with(&root) { Ok(Some(path)) } else { Err(Unreadable::LeadsOut) }
}

fn failed(error: &io::Error) -> Unreadable {
    if error.kind() == io::ErrorKind::PermissionDenied { Unreadable::Denied } else { Unreadable::Failed }
}

/// Opens for reading, following no link that was put there since, and waiting
/// for no writer of a FIFO.
fn open(path: &Path) -> io::Result<(File, Metadata)> {
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        options.custom_flags(flags.bits().cast_signed());
    }
    let file = options.open(path)?;
    let metadata = file.metadata()?;
    Ok((file, metadata))
}

#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "elsewhere there is none")]
fn owner(metadata: &Metadata) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    Some(metadata.uid())
}

#[cfg(not(unix))]
fn owner(_: &Metadata) -> Option<u32> {
    None
}

/// What tells that a file was written again: a look at its metadata, not at
/// what is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    len: u64,
    modified: Option<std::time::SystemTime>,
    #[cfg(unix)]
    node: u64,
    #[cfg(unix)]
    changed: (i64, i64),
}

/// `None`: there is no such file, or nobody may see it.
pub(super) fn stamp(path: &Path) -> Option<Stamp> {
    let metadata = path.metadata().ok()?;
    #[cfg(unix)]
    use std::os::unix::fs::MetadataExt;
    Some(Stamp {
        len: metadata.len(),
        modified: metadata.modified().ok(),
        #[cfg(unix)]
        node: metadata.ino(),
        #[cfg(unix)]
        changed: (metadata.ctime(), metadata.ctime_nsec()),
    })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const NAME: &str = "oauth_creds.json";

    /// Waits by letting somebody write.
    fn read_whole(root: &Path, meanwhile: &dyn Fn()) -> (Result<Option<String>, Unreadable>, u32) {
        let waits = Cell::new(0);
        let sleep = |wait: Duration| {
            assert_eq!(wait.as_millis(), 150);
            waits.set(waits.get() + 1);
            meanwhile();
        };
        let whole = |content: &Content| content.text.ends_with('}').then(|| content.text.to_string());
        (read(root, NAME, &sleep, whole), waits.get())
    }

    #[test]
    fn q4_a_torn_file_is_read_again_once() {
        let dir = tempfile::tempdir().unwrap();
        let (file, nothing) = (dir.path().join(NAME), || ());
        assert_eq!(read_whole(dir.path(), &nothing), (Ok(None), 0));
        assert_eq!(read_whole(&dir.path().join("gone"), &nothing), (Ok(None), 0));
        std::fs::write(&file, "{}").unwrap();
        assert_eq!(read_whole(dir.path(), &nothing), (Ok(Some("{}".into())), 0));
        for torn in [&b""[..], b"{", b"{\"a\": \"\xc3"] {
            std::fs::write(&file, torn).unwrap();
            assert_eq!(read_whole(dir.path(), &nothing).1, 1);
            assert!(read_whole(dir.path(), &nothing).0.is_err());
            let finished = || std::fs::write(&file, "{1}").unwrap();
            assert_eq!(read_whole(dir.path(), &finished), (Ok(Some("{1}".into())), 1));
        }
        let removed = || std::fs::remove_file(&file).unwrap();
        std::fs::write(&file, "{").unwrap();
        assert_eq!(read_whole(dir.path(), &removed), (Ok(None), 1));
    }

    #[test]
    fn q4_what_is_too_long_or_no_file_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(NAME);
        std::fs::write(&file, " ".repeat(1 << 20)).unwrap();
        assert_eq!(read_whole(dir.path(), &|| ()).0, Err(Unreadable::Broken));
        std::fs::write(&file, " ".repeat((1 << 20) + 1)).unwrap();
        assert_eq!(read_whole(dir.path(), &|| ()), (Err(Unreadable::TooLong), 0));
        std::fs::remove_file(&file).unwrap();
        std::fs::create_dir(&file).unwrap();
        assert_eq!(read_whole(dir.path(), &|| ()), (Err(Unreadable::NotRegular), 0));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn q4_nobody_waits_for_the_writer_of_a_pipe() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let dir = tempfile::tempdir().unwrap();
        mknodat(CWD, dir.path().join(NAME), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        assert_eq!(read_whole(dir.path(), &|| ()), (Err(Unreadable::NotRegular), 0));
    }

    #[cfg(unix)]
    #[test]
    fn q4_no_link_leads_out_of_the_root() {
        use std::os::unix::fs::symlink;
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join(".gemini");
        std::fs::create_dir(&root).unwrap();
        let (outside, inside) = (dir.path().join("outside.json"), root.join("inside.json"));
        std::fs::write(&outside, "{out}").unwrap();
        std::fs::write(&inside, "{in}").unwrap();
        symlink(&outside, root.join(NAME)).unwrap();
        assert_eq!(read_whole(&root, &|| ()), (Err(Unreadable::LeadsOut), 0));
        std::fs::remove_file(root.join(NAME)).unwrap();
        symlink("inside.json", root.join(NAME)).unwrap();
        assert_eq!(read_whole(&root, &|| ()).0, Ok(Some("{in}".into())));
        // The root itself may be a link.
        symlink(&root, dir.path().join("linked")).unwrap();
        assert_eq!(read_whole(&dir.path().join("linked"), &|| ()).0, Ok(Some("{in}".into())));
    }

    #[test]
    fn a_file_that_was_written_again_has_another_stamp() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(NAME);
        assert_eq!(stamp(&file), None);
        std::fs::write(&file, "{}").unwrap();
        let first = stamp(&file);
        assert_eq!(stamp(&file), first);
        std::fs::write(&file, "{1}").unwrap();
        assert_ne!(stamp(&file), first);
    }
}
