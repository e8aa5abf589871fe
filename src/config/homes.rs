//! Which homes there are, which directory each is, and what it is called
//! (interface, *Words*; accounting R11).

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use super::billing::HomeBilling;
use super::env::Env;
use super::error::ConfigError;
use super::keys::{self, Origin};
use super::layer::HomeEntry;
use super::paths;
use super::read::read_bounded;

/// A directory that holds a `.gemini`, or will.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    /// Its identity: canonical, as far as it exists.
    pub path: PathBuf,
    /// The `home` label, unless the ledger gave it another before.
    pub name: String,
    /// Whether the user chose the name.
    pub named: bool,
    /// What the configuration says about its money; see [`Home::pricing`].
    pub said: HomeBilling,
}

/// A home as `--home` names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HomeChoice {
    /// Its path, canonical.
    Path(PathBuf),
    /// Its name, here or in the ledger.
    Name(String),
}

impl fmt::Display for HomeChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => write!(f, "{}", path.display()),
            Self::Name(name) => f.write_str(name),
        }
    }
}

/// What came of the homes that were configured and chosen.
pub(super) struct Resolved {
    pub(super) homes: Vec<Home>,
    pub(super) chosen: Vec<HomeChoice>,
}

/// A home before it has its one spelling and its name.
struct Entry {
    path: PathBuf,
    name: Option<String>,
    said: HomeBilling,
}

impl Entry {
    fn at(path: PathBuf) -> Self {
        Self { path, name: None, said: HomeBilling::default() }
    }
}

impl From<HomeEntry> for Entry {
    fn from(entry: HomeEntry) -> Self {
        let said = entry.billing();
        Self { path: entry.path, name: entry.name, said }
    }
}

impl From<&Home> for Entry {
    fn from(home: &Home) -> Self {
        Self { path: home.path.clone(), name: Some(home.name.clone()), said: home.said.clone() }
    }
}

/// Puts the configured homes (`None`: the default one) and the choices of the
/// command line together. A choice that is the name of a configured home takes
/// that one; what looks like a path, or is a directory, is one; any other name
/// may be known to the ledger.
pub(super) fn resolve(
    env: &Env,
    configured: Option<&[HomeEntry]>,
    configured_by: &Origin,
    choices: &[PathBuf],
    chosen_by: &Origin,
) -> Result<Resolved, ConfigError> {
    let configured = match configured {
        Some(entries) => entries.to_vec(),
        None => vec![HomeEntry { path: default_home(env), ..HomeEntry::default() }],
    };
    let users = Users::of_system();
    let configured = configured.into_iter().map(Entry::from).collect();
    let homes = name_all(env, &users, configured, configured_by)?;
    if choices.is_empty() {
        return Ok(Resolved { homes, chosen: Vec::new() });
    }
    let mut paths = Vec::new();
    let mut chosen = Vec::new();
    for choice in choices {
        let by_name = homes.iter().find(|home| Path::new(&home.name) == choice);
        if let Some(home) = by_name {
            chosen.push(HomeChoice::Name(home.name.clone()));
            paths.push(Entry::from(home));
            continue;
        }
        let path = paths::absolute(env, choice);
        match choice.to_str() {
            Some(name) if !looks_like_path(name) && !path.is_dir() => {
                chosen.push(HomeChoice::Name(name.to_owned()));
            }
            _ => {
                let path = paths::canonical(&path);
                let known = homes.iter().find(|home| home.path == path);
                chosen.push(HomeChoice::Path(path.clone()));
                paths.push(known.map_or_else(|| Entry::at(path), Entry::from));
            }
        }
    }
    Ok(Resolved { homes: name_all(env, &users, paths, chosen_by)?, chosen })
}

/// The home of a Gemini CLI that is started in this environment, in its one spelling.
#[must_use]
pub fn effective_home(env: &Env) -> PathBuf {
    paths::canonical(&default_home(env))
}

/// `$GEMINI_CLI_HOME`, else the user's home, else the system's directory for
/// temporary files (accounting R11).
fn default_home(env: &Env) -> PathBuf {
    let set = env.var("GEMINI_CLI_HOME").map(|home| env.cwd.join(home));
    set.or_else(|| env.user_home()).unwrap_or_else(|| env.temp_dir.clone())
}

fn looks_like_path(choice: &str) -> bool {
    choice.contains(['/', std::path::MAIN_SEPARATOR]) || matches!(choice, "." | ".." | "~")
}

/// Gives each directory its one spelling and its one name; a directory that
/// comes twice is one home. Chosen names are given first.
fn name_all(
    env: &Env,
    users: &Users,
    entries: Vec<Entry>,
    origin: &Origin,
) -> Result<Vec<Home>, ConfigError> {
    let wrong = |message: String| ConfigError::value(keys::HOMES.key, origin.clone(), message);
    let mut homes: Vec<Entry> = Vec::new();
    for Entry { path, name, said } in entries {
        if path.as_os_str().is_empty() {
            return Err(wrong("a home has an empty path".to_owned()));
        }
        let path = paths::canonical(&paths::absolute(env, &path));
        if name.as_deref().is_some_and(is_unusable) {
            return Err(wrong(format!("the home {} has no usable name", path.display())));
        }
        for (key, label) in [("team", &said.team), ("cost_center", &said.cost_center)] {
            if label.as_deref().is_some_and(is_unusable) {
                return Err(wrong(format!("the home {} has no usable {key}", path.display())));
            }
        }
        match homes.iter_mut().find(|known| known.path == path) {
            Some(known) => {
                known.name = known.name.take().or(name);
                known.said = std::mem::take(&mut known.said).or(said);
            }
            None => homes.push(Entry { path, name, said }),
        }
    }
    let mut taken = BTreeSet::new();
    for Entry { path, name, .. } in &homes {
        if let Some(name) = name
            && !taken.insert(name.clone())
        {
            return Err(wrong(format!(
                "two homes are called `{name}`; call {} something else",
                path.display()
            )));
        }
    }
    let named = |Entry { path, name, said }: Entry| match name {
        Some(name) => Home { path, name, named: true, said },
        None => {
            let name = free_name(&default_name(users, &path), &taken);
            taken.insert(name.clone());
            Home { path, name, named: false, said }
        }
    };
    Ok(homes.into_iter().map(named).collect())
}

/// Text that no label should carry.
fn is_unusable(label: &str) -> bool {
    label.trim().is_empty() || label.contains(char::is_control)
}

/// `name`, or the first of `name-2`, `name-3`, … that nobody has.
fn free_name(name: &str, taken: &BTreeSet<String>) -> String {
    if !taken.contains(name) {
        return name.to_owned();
    }
    (2..).map(|n| format!("{name}-{n}")).find(|name| !taken.contains(name)).expect("some number is free")
}

/// What a home is called when nobody says: its owner's user name, else the base
/// name of the directory.
fn default_name(users: &Users, path: &Path) -> String {
    let owner = owner_uid(path).and_then(|uid| users.name_of(uid));
    let base = || path.file_name().map(|name| name.to_string_lossy().into_owned());
    owner.or_else(base).unwrap_or_else(|| "home".to_owned())
}

#[cfg(unix)]
fn owner_uid(path: &Path) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    Some(path.metadata().ok()?.uid())
}

#[cfg(not(unix))]
fn owner_uid(_: &Path) -> Option<u32> {
    None
}

/// The name of a user of this machine.
#[must_use]
pub fn user_name(uid: u32) -> Option<String> {
    Users::of_system().name_of(uid)
}

/// The user database: the text of `/etc/passwd`.
struct Users(String);

impl Users {
    /// No sane user database is larger.
    const LIMIT: u64 = 8 << 20;

    fn of_system() -> Self {
        Self(read_bounded(Path::new("/etc/passwd"), Self::LIMIT).unwrap_or_default())
    }

    fn name_of(&self, uid: u32) -> Option<String> {
        let mut entries = self.0.lines().map(|line| line.split(':'));
        entries.find_map(|mut fields| {
            let name = fields.next().filter(|name| !name.is_empty())?;
            (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(path: &Path, name: Option<&str>) -> HomeEntry {
        HomeEntry { path: path.to_owned(), name: name.map(str::to_owned), ..HomeEntry::default() }
    }

    fn names(entries: Vec<HomeEntry>) -> Result<Vec<String>, ConfigError> {
        let env = Env::of(Path::new("/"), [("HOME", "/home/ana")]);
        let entries = entries.into_iter().map(Entry::from).collect();
        let homes = name_all(&env, &Users(String::new()), entries, &Origin::Default)?;
        Ok(homes.into_iter().map(|home| home.name).collect())
    }

    #[test]
    fn r11_the_default_home_is_the_clis() {
        let home = |vars: &[(&str, &str)]| default_home(&Env::of(Path::new("/srv"), vars.iter().copied()));
        assert_eq!(home(&[("HOME", "/home/ana"), ("GEMINI_CLI_HOME", "/x")]), Path::new("/x"));
        assert_eq!(home(&[("HOME", "/home/ana"), ("GEMINI_CLI_HOME", "x")]), Path::new("/srv/x"));
        assert_eq!(home(&[("HOME", "/home/ana"), ("GEMINI_CLI_HOME", "")]), Path::new("/home/ana"));
        assert_eq!(home(&[]), Path::new("/tmp"));
    }

    #[test]
    fn the_owner_names_a_home() {
        let users =
            Users("root:x:0:0:root:/root:/bin/bash\n:x:7:7::/:\nana:x:1000:1000::/home/ana:/bin/sh\n".into());
        assert_eq!(users.name_of(0).as_deref(), Some("root"));
        assert_eq!(users.name_of(1000).as_deref(), Some("ana"));
        assert_eq!(users.name_of(7), None);
        assert_eq!(users.name_of(1001), None);
    }

    #[test]
    fn an_unknown_owner_leaves_the_base_name() {
        let missing = Path::new("/nowhere/at/all/ci");
        assert_eq!(names(vec![entry(missing, None)]).unwrap(), ["ci"]);
        assert_eq!(default_name(&Users(String::new()), Path::new("/")), "home");
    }

    #[test]
    fn equal_names_are_counted_and_chosen_ones_go_first() {
        let entries = vec![
            entry(Path::new("/no/a/ci"), None),
            entry(Path::new("/no/b/ci"), None),
            entry(Path::new("/no/c"), Some("ci-2")),
            entry(Path::new("/no/d/ci"), None),
        ];
        assert_eq!(names(entries).unwrap(), ["ci", "ci-3", "ci-2", "ci-4"]);
    }

    #[test]
    fn two_spellings_are_one_home() {
        let dir = tempfile::tempdir().unwrap();
        let twice =
            vec![entry(&dir.path().join("x/../h"), None), entry(&dir.path().join("h"), Some("named"))];
        assert_eq!(names(twice).unwrap(), ["named"]);
    }

    #[test]
    fn a_name_is_given_once() {
        let entries = vec![entry(Path::new("/no/a"), Some("x")), entry(Path::new("/no/b"), Some("x"))];
        let error = names(entries).unwrap_err().to_string();
        assert_eq!(error, "homes (default): two homes are called `x`; call /no/b something else");
        assert!(names(vec![entry(Path::new("/no/a"), Some(" "))]).is_err());
        assert!(names(vec![entry(Path::new(""), None)]).is_err());
    }

    #[test]
    fn what_is_said_about_money_goes_with_the_home() {
        use crate::config::{BillingChoice, ListChoice};
        let env = Env::of(Path::new("/"), [("HOME", "/home/ana")]);
        let said = HomeEntry {
            billing: Some(BillingChoice::Seat),
            team: Some("tools".into()),
            ..entry(Path::new("/no/a"), Some("ana"))
        };
        let again = HomeEntry { price_list: Some(ListChoice::VertexAi), ..entry(Path::new("/no/a"), None) };
        let resolve = |entries: &[HomeEntry], choices: &[PathBuf]| {
            resolve(&env, Some(entries), &Origin::Default, choices, &Origin::Flag("--home"))
        };
        for choice in [&[][..], &["ana".into()], &["/no/a".into()]] {
            let homes = resolve(&[said.clone(), again.clone()], choice).unwrap().homes;
            assert_eq!(homes.len(), 1);
            assert_eq!(homes[0].said.team.as_deref(), Some("tools"));
            assert_eq!(homes[0].pricing().to_string(), "seat, vertex-ai");
        }
        let wrong = HomeEntry { cost_center: Some(" ".into()), ..said };
        let error = resolve(&[wrong], &[]).err().unwrap().to_string();
        assert_eq!(error, "homes (default): the home /no/a has no usable cost_center");
    }

    #[test]
    fn a_choice_is_a_known_name_or_a_path_or_a_name_for_the_ledger() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        std::fs::create_dir(dir.join("here")).unwrap();
        let env = Env::of(&dir, [("HOME", "/home/ana")]);
        let configured = [entry(Path::new("/no/a"), Some("ana")), entry(Path::new("/no/b"), Some("bob"))];
        let choose = |choices: &[&str]| {
            let choices: Vec<PathBuf> = choices.iter().map(PathBuf::from).collect();
            let resolved =
                resolve(&env, Some(&configured), &Origin::Default, &choices, &Origin::Flag("--home"))
                    .unwrap();
            (resolved.homes.into_iter().map(|home| home.path).collect::<Vec<_>>(), resolved.chosen)
        };
        assert_eq!(choose(&[]).0, [Path::new("/no/a"), Path::new("/no/b")]);
        assert_eq!(choose(&["bob"]), (vec!["/no/b".into()], vec![HomeChoice::Name("bob".into())]));
        assert_eq!(choose(&["./new"]), (vec![dir.join("new")], vec![HomeChoice::Path(dir.join("new"))]));
        assert_eq!(choose(&["here"]).1, [HomeChoice::Path(dir.join("here"))]);
        assert_eq!(choose(&["carl"]), (vec![], vec![HomeChoice::Name("carl".into())]));
    }
}
