//! The environment Gemini CLI is taken to start in: that of this process, and
//! of a home's own `.env` what the CLI would add (quota Q3, Q4, Q7).

use std::path::{Path, PathBuf};

use super::env::Env;
use super::read::read_bounded;

/// No sane `.env` is larger.
const LIMIT: u64 = 1 << 20;

/// What is taken from a file: how to sign in, where the sign-in is kept, the
/// project. Where requests go never is (quota Q6), and neither is a token.
const FROM_FILE: &[&str] = &[
    "CLOUD_SHELL",
    "GEMINI_API_KEY",
    "GEMINI_CLI_USE_COMPUTE_ADC",
    "GEMINI_FORCE_ENCRYPTED_FILE_STORAGE",
    "GEMINI_FORCE_FILE_STORAGE",
    "GOOGLE_CLOUD_PROJECT",
    "GOOGLE_CLOUD_PROJECT_ID",
    "GOOGLE_GEMINI_BASE_URL",
    "GOOGLE_GENAI_USE_GCA",
    "GOOGLE_GENAI_USE_VERTEXAI",
];

/// Of these it only matters that they are set: the value is not kept.
const SECRET: &[&str] = &["GEMINI_API_KEY"];

/// What the CLI of one home sees.
pub struct Launch<'e> {
    env: &'e Env,
    file: Vec<(&'static str, String)>,
}

impl<'e> Launch<'e> {
    /// The environment of this process, and what the home's `.env` adds to it.
    /// The `.env` of a workspace is left alone: a repository may hold it.
    #[must_use]
    pub fn of_home(home: &Path, env: &'e Env) -> Self {
        // The first that exists counts, as for the CLI.
        let first = Self::files(home).into_iter().find(|path| path.exists());
        // Not a pipe, as some keepers of secrets have it: reading one may wait for ever.
        let text = first.filter(|path| path.is_file()).and_then(|path| read_bounded(&path, LIMIT).ok());
        Self { env, file: text.map(|text| assignments(&text)).unwrap_or_default() }
    }

    /// Where a home keeps its `.env`, the first that exists counts.
    #[must_use]
    pub fn files(home: &Path) -> [PathBuf; 2] {
        [home.join(".gemini/.env"), home.join(".env")]
    }

    /// A variable that a file may set, too.
    #[must_use]
    pub fn var(&self, name: &str) -> Option<&str> {
        let from_file = || self.file.iter().find(|(set, _)| *set == name).map(|(_, value)| value.as_str());
        self.process_var(name).or_else(from_file)
    }

    /// A variable of the process alone.
    #[must_use]
    pub fn process_var(&self, name: &str) -> Option<&str> {
        self.env.var(name).and_then(|value| value.to_str())
    }
}

/// The assignments that are taken; a later one of the same name wins.
fn assignments(text: &str) -> Vec<(&'static str, String)> {
    let mut found: Vec<(&'static str, String)> = Vec::new();
    for line in text.lines() {
        let line = line.trim_start();
        let line = line.strip_prefix("export ").unwrap_or(line);
        let Some((name, value)) = line.split_once('=') else { continue };
        let Some(name) = FROM_FILE.iter().find(|known| **known == name.trim()) else { continue };
        let value = unquoted(value.trim());
        found.retain(|(set, _)| set != name);
        if !value.is_empty() {
            let kept = if SECRET.contains(name) { "set" } else { value };
            found.push((name, kept.to_owned()));
        }
    }
    found
}

/// Without quotes, or without the comment after a bare value.
fn unquoted(value: &str) -> &str {
    for quote in ['"', '\'', '`'] {
        if let Some(rest) = value.strip_prefix(quote)
            && let Some(end) = rest.find(quote)
        {
            return &rest[..end];
        }
    }
    value.split('#').next().unwrap_or_default().trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home() -> tempfile::TempDir {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join(".gemini")).unwrap();
        home
    }

    #[test]
    fn q7_the_first_env_file_of_the_home_counts_and_overrides_nothing() {
        let home = home();
        let env = Env::of(home.path(), [("GOOGLE_GENAI_USE_GCA", "true")]);
        assert_eq!(Launch::of_home(home.path(), &env).var("GOOGLE_CLOUD_PROJECT"), None);
        std::fs::write(home.path().join(".env"), "GOOGLE_CLOUD_PROJECT=outer\nGOOGLE_GENAI_USE_GCA=no\n")
            .unwrap();
        assert_eq!(Launch::of_home(home.path(), &env).var("GOOGLE_CLOUD_PROJECT"), Some("outer"));
        assert_eq!(Launch::of_home(home.path(), &env).var("GOOGLE_GENAI_USE_GCA"), Some("true"));
        std::fs::write(
            home.path().join(".gemini/.env"),
            "# mine\nexport GOOGLE_CLOUD_PROJECT = \"inner\" # x\nGOOGLE_CLOUD_PROJECT_ID=bare # x\n",
        )
        .unwrap();
        let launch = Launch::of_home(home.path(), &env);
        assert_eq!(launch.var("GOOGLE_CLOUD_PROJECT"), Some("inner"));
        assert_eq!(launch.var("GOOGLE_CLOUD_PROJECT_ID"), Some("bare"));
    }

    #[test]
    fn q6_no_file_says_where_requests_go_or_with_what_token() {
        let home = home();
        let text =
            "CODE_ASSIST_ENDPOINT=https://evil.example\nGOOGLE_CLOUD_ACCESS_TOKEN=t\nGEMINI_API_KEY=k3y\n";
        std::fs::write(home.path().join(".gemini/.env"), text).unwrap();
        let env = Env::of::<&str, &str>(home.path(), []);
        let launch = Launch::of_home(home.path(), &env);
        assert_eq!(launch.var("CODE_ASSIST_ENDPOINT"), None);
        assert_eq!(launch.var("GOOGLE_CLOUD_ACCESS_TOKEN"), None);
        assert_eq!(launch.var("GEMINI_API_KEY"), Some("set"), "the key itself is not kept");
    }
}
