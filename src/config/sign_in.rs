//! How a home signs in, by all the settings that hold wherever its CLI works
//! (quota Q3). The settings of a workspace are left out: a home has many.

use std::path::{Path, PathBuf};

use super::env::Env;
use super::gemini::CliSettings;
use super::launch::Launch;

/// How Gemini CLI is told to sign in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignIn {
    Google,
    /// The identity of a cloud machine: the same service, no token on disk.
    Machine,
    ApiKey,
    Vertex,
    Gateway,
    /// Some other way.
    Other,
    /// Neither settings nor environment say.
    Unsaid,
}

impl SignIn {
    /// What the settings say, else the environment, in the order of the CLI.
    ///
    /// # Errors
    /// Which settings could not be read, without what they say.
    pub fn of_home(home: &Path, env: &Env, launch: &Launch<'_>) -> Result<Self, String> {
        let mut chosen = None;
        for path in settings_files(home, env) {
            let said = CliSettings::of_file(&path).said_auth_type();
            let said = said.map_err(|_| format!("the settings {} could not be read", name(&path)))?;
            chosen = said.map(|said| resolved(&said, env)).or(chosen);
        }
        Ok(chosen.map_or_else(|| Self::of_env(launch), |name| Self::named(&name)))
    }

    fn named(name: &str) -> Self {
        match name {
            "oauth-personal" => Self::Google,
            "compute-default-credentials" | "cloud-shell" => Self::Machine,
            "gemini-api-key" => Self::ApiKey,
            "vertex-ai" => Self::Vertex,
            "gateway" => Self::Gateway,
            _ => Self::Other,
        }
    }

    fn of_env(launch: &Launch<'_>) -> Self {
        let is_true = |name| launch.var(name) == Some("true");
        let is_set = |name| launch.var(name).is_some();
        match () {
            () if is_true("GOOGLE_GENAI_USE_GCA") => Self::Google,
            () if is_true("GOOGLE_GENAI_USE_VERTEXAI") => Self::Vertex,
            () if is_set("GOOGLE_GEMINI_BASE_URL") => Self::Gateway,
            () if is_set("GEMINI_API_KEY") => Self::ApiKey,
            () if is_true("CLOUD_SHELL") || is_true("GEMINI_CLI_USE_COMPUTE_ADC") => Self::Machine,
            () => Self::Unsaid,
        }
    }
}

/// The files that say how a home signs in, weakest first: the system's
/// defaults, the home's own, the system's.
#[must_use]
pub fn settings_files(home: &Path, env: &Env) -> [PathBuf; 3] {
    let set = |name| env.var(name).map(|path| env.cwd.join(path));
    let system = set("GEMINI_CLI_SYSTEM_SETTINGS_PATH").unwrap_or_else(|| {
        PathBuf::from(match std::env::consts::OS {
            "macos" => "/Library/Application Support/GeminiCli/settings.json",
            "windows" => r"C:\ProgramData\gemini-cli\settings.json",
            _ => "/etc/gemini-cli/settings.json",
        })
    });
    let defaults = set("GEMINI_CLI_SYSTEM_DEFAULTS_PATH")
        .unwrap_or_else(|| system.parent().unwrap_or(Path::new("/")).join("system-defaults.json"));
    [defaults, home.join(".gemini/settings.json"), system]
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// `$NAME`, `${NAME}` and `${NAME:-default}` replaced, as the CLI does it; what
/// is not set stays as it is.
fn resolved(text: &str, env: &Env) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let braced = after.strip_prefix('{').and_then(|inner| inner.find('}').map(|end| &inner[..end]));
        let word = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len());
        let (name, default, used) = match braced {
            Some(inner) => match inner.split_once(":-") {
                Some((name, default)) => (name, Some(default), inner.len() + 2),
                None => (inner, None, inner.len() + 2),
            },
            None => (&after[..word], None, word),
        };
        let value = env.var(name).and_then(|value| value.to_str()).or(default);
        out.push_str(value.unwrap_or(&rest[at..=at + used]));
        rest = &after[used..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(files: &[(&str, &str)], vars: &[(&str, &str)]) -> Result<SignIn, String> {
        let home = tempfile::tempdir().unwrap();
        for (file, text) in files {
            let path = home.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let system = home.path().join("etc/settings.json");
        let vars = vars.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let system = ("GEMINI_CLI_SYSTEM_SETTINGS_PATH".to_owned(), system.to_str().unwrap().to_owned());
        let env = Env::of(home.path(), vars.chain([system]));
        SignIn::of_home(home.path(), &env, &Launch::of_home(home.path(), &env))
    }

    fn choosing(name: &str) -> String {
        format!(r#"{{"security": {{"auth": {{"selectedType": "{name}"}}}}}} // so"#)
    }

    #[test]
    fn q3_the_systems_settings_beat_the_homes_beat_the_systems_defaults() {
        let user = ".gemini/settings.json";
        let (google, key, vertex) =
            (choosing("oauth-personal"), choosing("gemini-api-key"), choosing("vertex-ai"));
        for (files, want) in [
            (&[(user, google.as_str())][..], SignIn::Google),
            (&[("etc/system-defaults.json", google.as_str())], SignIn::Google),
            (&[("etc/system-defaults.json", &google), (user, &key)], SignIn::ApiKey),
            (&[(user, &google), ("etc/settings.json", &vertex)], SignIn::Vertex),
            (&[(user, &google), ("etc/settings.json", "{}")], SignIn::Google),
            (&[(user, &choosing("cloud-shell"))], SignIn::Machine),
            (&[(user, &choosing("telepathy"))], SignIn::Other),
            (&[(user, r#"{"selectedAuthType": "gateway"}"#)], SignIn::Gateway),
            (&[(user, "{}")], SignIn::Unsaid),
            (&[], SignIn::Unsaid),
        ] {
            assert_eq!(said(files, &[]), Ok(want), "{files:?}");
        }
        let error = said(&[(user, "{s3cret")], &[]).unwrap_err();
        assert_eq!(error, "the settings settings.json could not be read");
    }

    #[test]
    fn q3_the_environment_decides_where_settings_are_silent() {
        for (vars, want) in [
            (&[("GOOGLE_GENAI_USE_GCA", "true"), ("GEMINI_API_KEY", "k")][..], SignIn::Google),
            (&[("GOOGLE_GENAI_USE_GCA", "1"), ("GEMINI_API_KEY", "k")], SignIn::ApiKey),
            (&[("GOOGLE_GENAI_USE_VERTEXAI", "true")], SignIn::Vertex),
            (&[("GOOGLE_GEMINI_BASE_URL", "https://x"), ("GEMINI_API_KEY", "k")], SignIn::Gateway),
            (&[("CLOUD_SHELL", "true")], SignIn::Machine),
        ] {
            assert_eq!(said(&[], vars), Ok(want), "{vars:?}");
            let chosen = [(".gemini/settings.json", choosing("oauth-personal"))];
            assert_eq!(said(&chosen.each_ref().map(|(f, t)| (*f, t.as_str())), vars), Ok(SignIn::Google));
        }
        assert_eq!(said(&[(".gemini/.env", "GEMINI_API_KEY=k\n")], &[]), Ok(SignIn::ApiKey));
    }

    #[test]
    fn q3_settings_may_name_variables() {
        let vars = [("MODE", "oauth-personal"), ("HALF", "oauth")];
        for text in ["$MODE", "${MODE}", "${NONE:-oauth-personal}", "${HALF}-personal", "$HALF-personal"] {
            assert_eq!(
                said(&[(".gemini/settings.json", &choosing(text))], &vars),
                Ok(SignIn::Google),
                "{text}"
            );
        }
        for text in ["$NONE", "${NONE}", "$", "${", "ä$", "$ä"] {
            assert_eq!(
                said(&[(".gemini/settings.json", &choosing(text))], &vars),
                Ok(SignIn::Other),
                "{text}"
            );
        }
    }
}
