//! Every key with its variable, its flag and what it is for. The one list
//! behind the environment, `doctor` and the documentation.

use std::fmt;
use std::path::PathBuf;

/// A key of the configuration file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    pub key: &'static str,
    pub env: &'static str,
    /// The option of the command line, where there is one.
    pub flag: Option<&'static str>,
    pub about: &'static str,
}

/// Which file to read; the one variable that is no key.
pub const CONFIG_ENV: &str = "GEMGAUGE_CONFIG";

macro_rules! keys {
    ($($name:ident: $key:literal, $env:literal, $flag:expr, $about:literal;)*) => {
        $(pub const $name: Key = Key { key: $key, env: $env, flag: $flag, about: $about };)*
        /// All keys, in the order of the file.
        pub const KEYS: &[Key] = &[$($name),*];
    };
}

keys! {
    HOMES: "homes", "GEMGAUGE_HOME", Some("--home"),
        "directories that hold a .gemini, each {path, name, billing, price_list, team, cost_center}";
    DB: "db", "GEMGAUGE_DB", Some("--db"), "the ledger";
    SPOOL: "spool", "GEMGAUGE_SPOOL", None, "where acp and run leave what they saw, for the ledger";
    TIMEZONE: "timezone", "GEMGAUGE_TIMEZONE", Some("--timezone"), "the zone that days begin in";
    PRICES_FILE: "prices.file", "GEMGAUGE_PRICES_FILE", Some("--prices"),
        "prices of your own, above the built-in ones";
    CURRENCY_CODE: "currency.code", "GEMGAUGE_CURRENCY_CODE", None,
        "the currency that people are shown, instead of US dollars";
    CURRENCY_USD_RATE: "currency.usd_rate", "GEMGAUGE_CURRENCY_USD_RATE", None,
        "what one US dollar is in it";
    STRICT: "strict", "GEMGAUGE_STRICT", None, "count and read to the letter of Sortie's documented rule";
    MAX_FILE_BYTES: "journals.max_file_bytes", "GEMGAUGE_JOURNALS_MAX_FILE_BYTES", None,
        "a larger journal is a failed read";
    MAX_LINE_BYTES: "journals.max_line_bytes", "GEMGAUGE_JOURNALS_MAX_LINE_BYTES", None,
        "a longer line is a failed read";
    RESCAN_SECONDS: "journals.rescan_seconds", "GEMGAUGE_JOURNALS_RESCAN_SECONDS", None,
        "between scans while a session is active";
    IDLE_RESCAN_SECONDS: "journals.idle_rescan_seconds", "GEMGAUGE_JOURNALS_IDLE_RESCAN_SECONDS", None,
        "between scans otherwise";
    WATCH: "journals.watch", "GEMGAUGE_JOURNALS_WATCH", None, "ask the system for file events";
    MAX_TUPLES: "metrics.max_tuples", "GEMGAUGE_METRICS_MAX_TUPLES", None,
        "label sets of a home before `other`";
    MAX_SESSIONS: "metrics.max_sessions", "GEMGAUGE_METRICS_MAX_SESSIONS", None,
        "live sessions with series of their own";
    LISTEN_ADDRESS: "web.listen_address", "GEMGAUGE_WEB_LISTEN_ADDRESS", Some("--web.listen-address"),
        "where serve listens";
    TELEMETRY_PATH: "web.telemetry_path", "GEMGAUGE_WEB_TELEMETRY_PATH", Some("--web.telemetry-path"),
        "where Prometheus scrapes";
    ALLOWED_HOSTS: "web.allowed_hosts", "GEMGAUGE_WEB_ALLOWED_HOSTS", None,
        "names that a request's Host may carry";
    ALLOW_UNAUTHENTICATED: "web.allow_unauthenticated", "GEMGAUGE_WEB_ALLOW_UNAUTHENTICATED",
        Some("--web.allow-unauthenticated"), "let anyone who reaches the listener read";
    WEB_CONFIG_FILE: "web.config_file", "GEMGAUGE_WEB_CONFIG_FILE", Some("--web.config.file"),
        "TLS, headers and passwords, as exporter-toolkit writes them";
    WRITE_TOKEN: "web.write_token", "GEMGAUGE_WEB_WRITE_TOKEN", None,
        "what whoever writes must show where others can reach the listener; never shown";
    WRITE_TOKEN_FILE: "web.write_token_file", "GEMGAUGE_WEB_WRITE_TOKEN_FILE", None,
        "a file that holds it";
    TELEMETRY_LISTEN_ADDRESS: "telemetry.listen_address", "GEMGAUGE_TELEMETRY_LISTEN_ADDRESS", None,
        "where serve takes OpenTelemetry besides its own address";
    TELEMETRY_OUTFILES: "telemetry.outfiles", "GEMGAUGE_TELEMETRY_OUTFILES", None,
        "files that Gemini CLI writes its telemetry to, besides those its settings name";
    WEBHOOK_URL: "hooks.webhook.url", "GEMGAUGE_HOOKS_WEBHOOK_URL", None,
        "where a POST goes when a budget reaches a threshold; shown without its path";
    WEBHOOK_TIMEOUT: "hooks.webhook.timeout_seconds", "GEMGAUGE_HOOKS_WEBHOOK_TIMEOUT_SECONDS", None,
        "for one attempt";
    WEBHOOK_RETRIES: "hooks.webhook.retries", "GEMGAUGE_HOOKS_WEBHOOK_RETRIES", None,
        "attempts after the first";
    QUOTA_ENABLED: "quota.enabled", "GEMGAUGE_QUOTA_ENABLED", Some("--quota"),
        "poll the quota of Google sign-ins, which Google's terms do not allow other software";
    QUOTA_PROJECT: "quota.project", "GEMGAUGE_QUOTA_PROJECT", None,
        "the Cloud project asked about: auto (as Gemini CLI), env, or an id";
    QUOTA_ENDPOINT: "quota.endpoint", "GEMGAUGE_QUOTA_ENDPOINT", None,
        "where Code Assist is, instead of $CODE_ASSIST_ENDPOINT";
    QUOTA_API_VERSION: "quota.api_version", "GEMGAUGE_QUOTA_API_VERSION", None,
        "its version, instead of $CODE_ASSIST_API_VERSION";
    LOG_FORMAT: "log.format", "GEMGAUGE_LOG_FORMAT", Some("--log-format"), "text or json";
    LOG_LEVEL: "log.level", "GEMGAUGE_LOG_LEVEL", Some("-v"), "error, warn, info, debug or trace";
}

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    Default,
    File(PathBuf),
    Env(&'static str),
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Env(name) => write!(f, "${name}"),
            Self::Flag(name) => f.write_str(name),
        }
    }
}

/// A value in force and where it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    pub key: &'static str,
    pub value: String,
    pub origin: Origin,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_follow_from_their_keys() {
        for key in KEYS.iter().filter(|key| key.key != "homes") {
            let name = key.key.to_uppercase().replace('.', "_");
            assert_eq!(key.env, format!("GEMGAUGE_{name}"), "{}", key.key);
        }
    }
}
