//! What Gemini CLI is told in the settings of a home. Read only, and lenient:
//! the file is the CLI's, and what it makes of it decides.

use std::io::ErrorKind;
use std::path::Path;

use serde_json::Value;

use super::read::read_bounded;

/// No sane settings file is larger.
const LIMIT: u64 = 4 << 20;

/// A home's `.gemini/settings.json`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CliSettings {
    /// There is none, so the CLI's defaults hold.
    NoFile,
    /// Its text.
    Text(String),
    /// It is there and cannot be read.
    Unreadable(String),
}

impl CliSettings {
    /// The settings of the home at this path.
    #[must_use]
    pub fn of_home(home: &Path) -> Self {
        Self::of_file(&home.join(".gemini/settings.json"))
    }

    /// The settings in this file.
    pub(super) fn of_file(path: &Path) -> Self {
        match read_bounded(path, LIMIT) {
            Ok(text) => Self::Text(text),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                Self::NoFile
            }
            Err(error) => Self::Unreadable(error.to_string()),
        }
    }

    /// What it says; nothing at all where there is no file.
    ///
    /// # Errors
    /// Why that could not be found out.
    pub fn json(&self) -> Result<Value, String> {
        match self {
            Self::NoFile => Ok(Value::Null),
            Self::Unreadable(error) => Err(error.clone()),
            Self::Text(text) => serde_json::from_str(&without_comments(text))
                .map_err(|error| format!("it is no JSON: {error}")),
        }
    }

    /// How the home signs in, in the CLI's words: `oauth-personal`,
    /// `gemini-api-key`, … Older versions kept it at the top.
    #[must_use]
    pub fn auth_type(&self) -> Option<String> {
        self.said_auth_type().ok()?
    }

    /// The same, or why that could not be found out.
    pub(super) fn said_auth_type(&self) -> Result<Option<String>, String> {
        let settings = self.json()?;
        let said = settings["security"]["auth"]["selectedType"].as_str();
        Ok(said.or(settings["selectedAuthType"].as_str()).map(str::to_owned))
    }
}

/// What the settings say of telemetry (facts of 0.61). Variables of the CLI's
/// own process beat all of it, and nobody else sees them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CliTelemetry {
    pub enabled: bool,
    /// `local` or `gcp`.
    pub target: Option<String>,
    pub endpoint: Option<String>,
    /// `grpc` or `http`.
    pub protocol: Option<String>,
    pub outfile: Option<String>,
    /// `true` unless it says otherwise.
    pub log_prompts: bool,
    pub use_collector: bool,
}

/// Where a process sends its telemetry: to one place (facts of 0.61).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Export {
    Google,
    Otlp {
        endpoint: String,
        /// gRPC, else HTTP.
        grpc: bool,
    },
    Outfile(String),
}

impl CliTelemetry {
    /// Where telemetry goes; `None`: it is off.
    #[must_use]
    pub fn export(&self) -> Option<Export> {
        if !self.enabled {
            return None;
        }
        if self.target.as_deref() == Some("gcp") && !self.use_collector {
            return Some(Export::Google);
        }
        Some(match &self.outfile {
            Some(outfile) => Export::Outfile(outfile.clone()),
            None => Export::Otlp {
                endpoint: self.endpoint.clone().unwrap_or_else(|| "http://localhost:4317".to_owned()),
                grpc: self.protocol.as_deref() != Some("http"),
            },
        })
    }
}

impl CliSettings {
    /// What it says of telemetry; what it does not say is as the CLI has it.
    #[must_use]
    pub fn telemetry(&self) -> CliTelemetry {
        let settings = self.json().unwrap_or_default();
        let member = |name: &str| &settings["telemetry"][name];
        let text = |name: &str| member(name).as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        CliTelemetry {
            enabled: member("enabled") == &Value::Bool(true),
            target: text("target"),
            endpoint: text("otlpEndpoint"),
            protocol: text("otlpProtocol"),
            outfile: text("outfile"),
            log_prompts: member("logPrompts") != &Value::Bool(false),
            use_collector: member("useCollector") == &Value::Bool(true),
        }
    }
}

/// JSON without the comments that Gemini CLI allows in its settings.
fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    let mut in_string = false;
    while let Some(c) = chars.next() {
        match c {
            '\\' if in_string => {
                out.push(c);
                out.extend(chars.next());
            }
            '"' => {
                in_string = !in_string;
                out.push(c);
            }
            '/' if !in_string && chars.peek() == Some(&'/') => {
                while chars.next_if(|c| *c != '\n').is_some() {}
            }
            '/' if !in_string && chars.next_if_eq(&'*').is_some() => {
                let mut before = ' ';
                for c in chars.by_ref() {
                    if before == '*' && c == '/' {
                        break;
                    }
                    before = c;
                }
                out.push(' ');
            }
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sign_in_is_found_wherever_a_version_keeps_it() {
        for (text, want) in [
            (r#"{"security":{"auth":{"selectedType":"oauth-personal"}}}"#, Some("oauth-personal")),
            (
                "{\"security\": {// mine\n\"auth\": {\"selectedType\": /* now */ \"vertex-ai\"}}}",
                Some("vertex-ai"),
            ),
            (r#"{"selectedAuthType":"gemini-api-key"}"#, Some("gemini-api-key")),
            (r#"{"security":{"auth":{"selectedType":7}}}"#, None),
            (r#"{"security":[]}"#, None),
            ("[]", None),
            ("{", None),
            ("", None),
        ] {
            assert_eq!(CliSettings::Text(text.to_owned()).auth_type().as_deref(), want, "{text}");
        }
        assert_eq!(CliSettings::Unreadable("no".into()).auth_type(), None);
    }

    #[test]
    fn a_process_sends_its_telemetry_to_one_place() {
        let otlp = |endpoint: &str, grpc| Some(Export::Otlp { endpoint: endpoint.to_owned(), grpc });
        for (telemetry, want) in [
            ("{}", None),
            (r#"{"enabled": false, "outfile": "/t.log"}"#, None),
            (r#"{"enabled": true}"#, otlp("http://localhost:4317", true)),
            (r#"{"enabled": true, "outfile": ""}"#, otlp("http://localhost:4317", true)),
            (
                r#"{"enabled": true, "otlpEndpoint": "http://x:4318", "otlpProtocol": "http"}"#,
                otlp("http://x:4318", false),
            ),
            (
                r#"{"enabled": true, "otlpEndpoint": "http://x:4318", "outfile": "/t.log"}"#,
                Some(Export::Outfile("/t.log".into())),
            ),
            (r#"{"enabled": true, "target": "gcp", "outfile": "/t.log"}"#, Some(Export::Google)),
            (
                r#"{"enabled": true, "target": "gcp", "useCollector": true, "outfile": "/t.log"}"#,
                Some(Export::Outfile("/t.log".into())),
            ),
        ] {
            let settings = CliSettings::Text(format!(r#"{{"telemetry": {telemetry}}}"#));
            assert_eq!(settings.telemetry().export(), want, "{telemetry}");
        }
        assert!(CliSettings::NoFile.telemetry().log_prompts);
        let quiet = CliSettings::Text(r#"{"telemetry": {"logPrompts": false}}"#.into());
        assert!(!quiet.telemetry().log_prompts);
    }

    #[test]
    fn a_home_without_the_file_says_nothing() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(CliSettings::of_home(dir.path()), CliSettings::NoFile);
        std::fs::create_dir(dir.path().join(".gemini")).unwrap();
        std::fs::write(dir.path().join(".gemini/settings.json"), "{}").unwrap();
        assert_eq!(CliSettings::of_home(dir.path()), CliSettings::Text("{}".into()));
        std::fs::write(dir.path().join(".gemini/settings.json"), [0xff]).unwrap();
        assert!(matches!(CliSettings::of_home(dir.path()), CliSettings::Unreadable(_)));
    }
}
