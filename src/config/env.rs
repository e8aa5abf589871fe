//! The one place where the process's environment enters.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The environment as plain data: a test makes its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Env {
    vars: BTreeMap<OsString, OsString>,
    /// The working directory, which relative paths start from.
    pub cwd: PathBuf,
    /// The system's directory for temporary files.
    pub temp_dir: PathBuf,
}

impl Env {
    /// The environment of this process.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the one place where the environment is read")]
    pub fn of_process() -> Self {
        Self {
            vars: std::env::vars_os().collect(),
            cwd: std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/")),
            temp_dir: std::env::temp_dir(),
        }
    }

    /// An environment of exactly these variables.
    #[must_use]
    pub fn of<K: AsRef<OsStr>, V: AsRef<OsStr>>(cwd: &Path, vars: impl IntoIterator<Item = (K, V)>) -> Self {
        let vars = vars.into_iter().map(|(k, v)| (k.as_ref().to_owned(), v.as_ref().to_owned())).collect();
        Self { vars, cwd: cwd.to_owned(), temp_dir: PathBuf::from("/tmp") }
    }

    /// A variable; one that is set to nothing counts as unset.
    #[must_use]
    pub fn var(&self, name: &str) -> Option<&OsStr> {
        self.vars.get(OsStr::new(name)).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    /// The names of all variables that start with `prefix`.
    pub fn names_with<'e>(&'e self, prefix: &'e str) -> impl Iterator<Item = &'e str> {
        self.vars.keys().filter_map(|name| name.to_str()).filter(move |name| name.starts_with(prefix))
    }

    /// The user's home directory.
    #[must_use]
    pub fn user_home(&self) -> Option<PathBuf> {
        let var = if cfg!(windows) { "USERPROFILE" } else { "HOME" };
        self.var(var).map(|home| self.cwd.join(home))
    }
}
