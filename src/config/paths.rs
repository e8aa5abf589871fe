//! Where files belong: the XDG base directories, and what a path means.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::env::Env;

/// `$XDG_DATA_HOME/gemgauge/ledger.db`, by default below `~/.local/share`.
pub(super) fn default_ledger(env: &Env) -> Option<PathBuf> {
    Some(base(env, "XDG_DATA_HOME", ".local/share")?.join("gemgauge/ledger.db"))
}

/// `$XDG_STATE_HOME/gemgauge/spool`, by default below `~/.local/state`.
pub(super) fn default_spool(env: &Env) -> Option<PathBuf> {
    Some(base(env, "XDG_STATE_HOME", ".local/state")?.join("gemgauge/spool"))
}

/// `$XDG_CONFIG_HOME/gemgauge/config.yml`, by default below `~/.config`.
pub(super) fn default_config(env: &Env) -> Option<PathBuf> {
    Some(base(env, "XDG_CONFIG_HOME", ".config")?.join("gemgauge/config.yml"))
}

/// A base directory. The XDG specification has relative ones ignored.
fn base(env: &Env, var: &str, below_home: &str) -> Option<PathBuf> {
    let set = env.var(var).map(Path::new).filter(|path| path.is_absolute());
    set.map(Path::to_owned).or_else(|| Some(env.user_home()?.join(below_home)))
}

/// A path as the user wrote it, made absolute: `~/` is the user's home, a
/// relative path starts from the working directory.
pub(super) fn absolute(env: &Env, path: &Path) -> PathBuf {
    let mut parts = path.components();
    if parts.next().is_some_and(|first| first.as_os_str() == OsStr::new("~"))
        && let Some(home) = env.user_home()
    {
        return home.join(parts.as_path());
    }
    env.cwd.join(path)
}

/// The one spelling of a directory: canonical as far as it exists, so that a
/// directory that appears later keeps its identity.
pub(super) fn canonical(path: &Path) -> PathBuf {
    for existing in path.ancestors() {
        if let Ok(real) = existing.canonicalize() {
            let rest = path.strip_prefix(existing).unwrap_or(Path::new(""));
            return rest.components().fold(real, |at, part| match part {
                std::path::Component::ParentDir => at.parent().map_or(at.clone(), Path::to_owned),
                std::path::Component::CurDir => at,
                other => at.join(other),
            });
        }
    }
    path.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ledger_is_a_data_file_and_the_configuration_a_configuration_file() {
        let env = Env::of(Path::new("/srv"), [("HOME", "/home/ana")]);
        assert_eq!(default_ledger(&env).unwrap(), Path::new("/home/ana/.local/share/gemgauge/ledger.db"));
        assert_eq!(default_config(&env).unwrap(), Path::new("/home/ana/.config/gemgauge/config.yml"));
        let env = Env::of(Path::new("/srv"), [("XDG_DATA_HOME", "/data"), ("XDG_CONFIG_HOME", "relative")]);
        assert_eq!(default_ledger(&env).unwrap(), Path::new("/data/gemgauge/ledger.db"));
        assert_eq!(default_config(&env), None);
    }

    #[test]
    fn a_path_starts_from_the_users_home_or_the_working_directory() {
        let env = Env::of(Path::new("/srv"), [("HOME", "/home/ana")]);
        assert_eq!(absolute(&env, Path::new("~/x")), Path::new("/home/ana/x"));
        assert_eq!(absolute(&env, Path::new("~")), Path::new("/home/ana"));
        assert_eq!(absolute(&env, Path::new("~bob/x")), Path::new("/srv/~bob/x"));
        assert_eq!(absolute(&env, Path::new("a/b")), Path::new("/srv/a/b"));
        assert_eq!(absolute(&env, Path::new("/a/b")), Path::new("/a/b"));
    }

    #[test]
    fn two_spellings_are_one_directory_even_before_it_exists() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().canonicalize().unwrap();
        std::fs::create_dir(real.join("there")).unwrap();
        assert_eq!(canonical(&real.join("there/../later/home")), real.join("later/home"));
        assert_eq!(canonical(&real.join("later/./x/../home")), real.join("later/home"));
        assert_eq!(canonical(&real.join("there/.")), real.join("there"));
    }
}
