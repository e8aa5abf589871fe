//! Wake-ups from the file system. Directories are watched, never single files;
//! whatever goes wrong only means that the next scan is the one that sees it.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use notify::{Config, EventKind, RecommendedWatcher, RecursiveMode, Watcher};

/// What an event asks for.
#[derive(Debug, PartialEq, Eq, Hash)]
pub enum Wake {
    /// Something changed here.
    Look(PathBuf),
    /// Something changed somewhere: only a scan can tell.
    Scan,
}

/// Watches directories; without it everything works, later.
pub struct Watch {
    watcher: Option<RecommendedWatcher>,
    watched: HashSet<PathBuf>,
    failure: Option<String>,
}

impl Watch {
    /// Starts watching; `wake` is called from the watcher's own thread.
    pub fn start(wake: impl Fn(Wake) + Send + 'static) -> Self {
        let handler = move |event: notify::Result<notify::Event>| match event {
            Ok(event) if matches!(event.kind, EventKind::Access(_)) => {}
            Ok(event) if event.need_rescan() || event.paths.is_empty() => wake(Wake::Scan),
            Ok(event) => event.paths.into_iter().for_each(|path| wake(Wake::Look(path))),
            Err(_) => wake(Wake::Scan),
        };
        match RecommendedWatcher::new(handler, Config::default().with_follow_symlinks(false)) {
            Ok(watcher) => Self { watcher: Some(watcher), watched: HashSet::new(), failure: None },
            Err(error) => Self { watcher: None, watched: HashSet::new(), failure: Some(error.to_string()) },
        }
    }

    /// No watching: scans alone.
    #[must_use]
    pub fn off() -> Self {
        Self { watcher: None, watched: HashSet::new(), failure: None }
    }

    /// Why only scans see changes, where watching failed.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Watches these directories and no others; returns whether one is new, so
    /// that what happened in it before it was watched needs a scan.
    pub fn follow(&mut self, directories: &[PathBuf]) -> bool {
        let Some(watcher) = &mut self.watcher else { return false };
        let wanted: HashSet<&Path> = directories.iter().map(PathBuf::as_path).collect();
        let gone: Vec<_> =
            self.watched.iter().filter(|dir| !wanted.contains(dir.as_path())).cloned().collect();
        for dir in gone {
            // Already gone with its directory, as a rule.
            let _ = watcher.unwatch(&dir);
            self.watched.remove(&dir);
        }
        let mut new = false;
        let mut failure = None;
        for dir in directories {
            if self.watched.contains(dir) {
                continue;
            }
            match watcher.watch(dir, RecursiveMode::NonRecursive) {
                Ok(()) => {
                    new = true;
                    self.watched.insert(dir.clone());
                }
                Err(error) if matches!(error.kind, notify::ErrorKind::PathNotFound) => {}
                Err(error) if is_not_found(&error) => {}
                Err(error) => failure = Some(error.to_string()),
            }
        }
        self.failure = failure;
        new
    }
}

fn is_not_found(error: &notify::Error) -> bool {
    matches!(&error.kind, notify::ErrorKind::Io(io) if io.kind() == std::io::ErrorKind::NotFound)
}
