//! One layer of configuration: what the file, the environment or the flags say.
//! Everything is optional; what is not said is left to the layer below.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::Deserialize;

use super::billing::{BillingChoice, HomeBilling, ListChoice};
use super::budgets::BudgetEntry;
use super::env::Env;
use super::error::ConfigError;
use super::hooks::{HookCommand, WebhookUrl};
use super::keys::{self, Origin};
use super::listen::ListenAddress;
use super::quota::{ApiVersion, Endpoint, ProjectRule};
use super::token::WriteToken;

/// What the command line says.
#[derive(Clone, Debug, Default)]
pub struct Flags {
    /// `--config`
    pub config: Option<PathBuf>,
    /// `--home`: paths, or names of homes.
    pub homes: Vec<PathBuf>,
    /// How often `-v` was given.
    pub verbose: u8,
    pub layer: Layer,
}

/// The shape of the configuration file, and of every other layer.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layer {
    pub homes: Option<Vec<HomeEntry>>,
    pub db: Option<PathBuf>,
    pub spool: Option<PathBuf>,
    pub timezone: Option<String>,
    pub prices: Option<PricesLayer>,
    pub currency: Option<CurrencyLayer>,
    pub strict: Option<bool>,
    pub journals: Option<JournalsLayer>,
    pub metrics: Option<MetricsLayer>,
    pub web: Option<WebLayer>,
    pub telemetry: Option<TelemetryLayer>,
    pub budgets: Option<Vec<BudgetEntry>>,
    pub hooks: Option<HooksLayer>,
    pub quota: Option<QuotaLayer>,
    pub log: Option<LogLayer>,
}

/// A home of the file: a directory that holds a `.gemini`, what to call it and
/// how it pays.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HomeEntry {
    pub path: PathBuf,
    pub name: Option<String>,
    pub billing: Option<BillingChoice>,
    pub price_list: Option<ListChoice>,
    pub team: Option<String>,
    pub cost_center: Option<String>,
}

impl HomeEntry {
    pub(super) fn billing(&self) -> HomeBilling {
        HomeBilling {
            billing: self.billing.unwrap_or_default(),
            price_list: self.price_list.unwrap_or_default(),
            team: self.team.clone(),
            cost_center: self.cost_center.clone(),
        }
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PricesLayer {
    pub file: Option<PathBuf>,
}

/// Both as written: a number in YAML is read as its digits, not as a double.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CurrencyLayer {
    pub code: Option<String>,
    pub usd_rate: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JournalsLayer {
    pub max_file_bytes: Option<u64>,
    pub max_line_bytes: Option<u64>,
    pub rescan_seconds: Option<u64>,
    pub idle_rescan_seconds: Option<u64>,
    pub watch: Option<bool>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetricsLayer {
    pub max_tuples: Option<u64>,
    pub max_sessions: Option<u64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebLayer {
    pub listen_address: Option<Vec<ListenAddress>>,
    pub telemetry_path: Option<TelemetryPath>,
    pub allowed_hosts: Option<Vec<String>>,
    pub allow_unauthenticated: Option<bool>,
    pub config_file: Option<PathBuf>,
    pub write_token: Option<WriteToken>,
    pub write_token_file: Option<PathBuf>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TelemetryLayer {
    pub listen_address: Option<Vec<ListenAddress>>,
    pub outfiles: Option<Vec<PathBuf>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogLayer {
    pub format: Option<LogFormat>,
    pub level: Option<Level>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HooksLayer {
    pub webhook: Option<WebhookLayer>,
    pub command: Option<HookCommand>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebhookLayer {
    pub url: Option<WebhookUrl>,
    pub timeout_seconds: Option<u64>,
    pub retries: Option<u64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuotaLayer {
    pub enabled: Option<bool>,
    pub project: Option<ProjectRule>,
    pub endpoint: Option<Endpoint>,
    pub api_version: Option<ApiVersion>,
    pub accounts: Option<BTreeMap<String, String>>,
}

/// How log lines are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    #[default]
    Text,
    Json,
}

/// What is worth a log line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Error,
    Warn,
    #[default]
    Info,
    Debug,
    Trace,
}

impl LogFormat {
    pub const ALL: [Self; 2] = [Self::Text, Self::Json];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
    }
}

impl Level {
    pub const ALL: [Self; 5] = [Self::Error, Self::Warn, Self::Info, Self::Debug, Self::Trace];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }

    /// This level, `by` steps more talkative.
    #[must_use]
    pub fn louder(self, by: u8) -> Self {
        Self::ALL[(self as usize + usize::from(by)).min(Self::ALL.len() - 1)]
    }
}

impl FromStr for LogFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|format| format.as_str() == text);
        known.ok_or_else(|| format!("`{text}` is no log format: write text or json"))
    }
}

impl FromStr for Level {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|level| level.as_str() == text);
        known.ok_or_else(|| format!("`{text}` is no log level: write error, warn, info, debug or trace"))
    }
}

impl fmt::Display for LogFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The path that Prometheus scrapes: absolute, plain, and not one of ours.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct TelemetryPath(String);

impl Default for TelemetryPath {
    fn default() -> Self {
        Self("/metrics".to_owned())
    }
}

impl TelemetryPath {
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for TelemetryPath {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "/-_.~".contains(c);
        if !text.starts_with('/') || text.len() < 2 || text.ends_with('/') || !text.chars().all(plain) {
            return Err(format!("`{text}` is no path to scrape: write one such as /metrics"));
        }
        if ["/api", "/v1", "/-"].iter().any(|ours| text == *ours || text.starts_with(&format!("{ours}/"))) {
            return Err(format!("`{text}` is taken by the service itself: choose one such as /metrics"));
        }
        Ok(Self(text.to_owned()))
    }
}

impl TryFrom<String> for TelemetryPath {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl fmt::Display for TelemetryPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Layer {
    /// What the environment says. Lists are separated by commas.
    pub(super) fn of_env(env: &Env) -> Result<Self, ConfigError> {
        let vars = Vars(env);
        Ok(Self {
            homes: None, // `GEMGAUGE_HOME` means what `--home` means; see `resolve`.
            db: env.var(keys::DB.env).map(PathBuf::from),
            spool: env.var(keys::SPOOL.env).map(PathBuf::from),
            timezone: vars.parsed(&keys::TIMEZONE)?,
            prices: Some(PricesLayer { file: env.var(keys::PRICES_FILE.env).map(PathBuf::from) }),
            currency: Some(CurrencyLayer {
                code: vars.parsed(&keys::CURRENCY_CODE)?,
                usd_rate: vars.parsed(&keys::CURRENCY_USD_RATE)?,
            }),
            strict: vars.switch(&keys::STRICT)?,
            journals: Some(JournalsLayer {
                max_file_bytes: vars.parsed(&keys::MAX_FILE_BYTES)?,
                max_line_bytes: vars.parsed(&keys::MAX_LINE_BYTES)?,
                rescan_seconds: vars.parsed(&keys::RESCAN_SECONDS)?,
                idle_rescan_seconds: vars.parsed(&keys::IDLE_RESCAN_SECONDS)?,
                watch: vars.switch(&keys::WATCH)?,
            }),
            metrics: Some(MetricsLayer {
                max_tuples: vars.parsed(&keys::MAX_TUPLES)?,
                max_sessions: vars.parsed(&keys::MAX_SESSIONS)?,
            }),
            web: Some(WebLayer {
                listen_address: vars.list(&keys::LISTEN_ADDRESS)?,
                telemetry_path: vars.parsed(&keys::TELEMETRY_PATH)?,
                allowed_hosts: vars.list(&keys::ALLOWED_HOSTS)?,
                allow_unauthenticated: vars.switch(&keys::ALLOW_UNAUTHENTICATED)?,
                config_file: env.var(keys::WEB_CONFIG_FILE.env).map(PathBuf::from),
                write_token: vars.secret(&keys::WRITE_TOKEN)?,
                write_token_file: env.var(keys::WRITE_TOKEN_FILE.env).map(PathBuf::from),
            }),
            telemetry: Some(TelemetryLayer {
                listen_address: vars.list(&keys::TELEMETRY_LISTEN_ADDRESS)?,
                outfiles: vars.list(&keys::TELEMETRY_OUTFILES)?,
            }),
            budgets: None, // A list of rows has no place in a variable.
            hooks: Some(HooksLayer {
                webhook: Some(WebhookLayer {
                    url: vars.secret(&keys::WEBHOOK_URL)?,
                    timeout_seconds: vars.parsed(&keys::WEBHOOK_TIMEOUT)?,
                    retries: vars.parsed(&keys::WEBHOOK_RETRIES)?,
                }),
                command: None,
            }),
            quota: Some(QuotaLayer {
                enabled: vars.switch(&keys::QUOTA_ENABLED)?,
                project: vars.parsed(&keys::QUOTA_PROJECT)?,
                endpoint: vars.secret(&keys::QUOTA_ENDPOINT)?,
                api_version: vars.parsed(&keys::QUOTA_API_VERSION)?,
                accounts: None, // A table has no place in a variable.
            }),
            log: Some(LogLayer {
                format: vars.parsed(&keys::LOG_FORMAT)?,
                level: vars.parsed(&keys::LOG_LEVEL)?,
            }),
        })
    }
}

/// The environment, read as values of keys.
struct Vars<'e>(&'e Env);

impl Vars<'_> {
    fn text(&self, key: &'static keys::Key) -> Result<Option<&str>, ConfigError> {
        let Some(value) = self.0.var(key.env) else { return Ok(None) };
        let wrong = || ConfigError::value(key.key, Origin::Env(key.env), "it is not UTF-8");
        value.to_str().map(Some).ok_or_else(wrong)
    }

    fn parsed<T: FromStr<Err: fmt::Display>>(
        &self,
        key: &'static keys::Key,
    ) -> Result<Option<T>, ConfigError> {
        let Some(text) = self.text(key)? else { return Ok(None) };
        let wrong = |error: T::Err| {
            let error = error.to_string();
            let message = if error.contains(text) { error } else { format!("`{text}`: {error}") };
            ConfigError::value(key.key, Origin::Env(key.env), message)
        };
        text.trim().parse().map(Some).map_err(wrong)
    }

    /// A value that no error repeats.
    fn secret<T: FromStr<Err: fmt::Display>>(
        &self,
        key: &'static keys::Key,
    ) -> Result<Option<T>, ConfigError> {
        let Some(text) = self.text(key)? else { return Ok(None) };
        let wrong = |error: T::Err| ConfigError::value(key.key, Origin::Env(key.env), error);
        text.trim().parse().map(Some).map_err(wrong)
    }

    fn list<T: FromStr<Err: fmt::Display>>(
        &self,
        key: &'static keys::Key,
    ) -> Result<Option<Vec<T>>, ConfigError> {
        let Some(text) = self.text(key)? else { return Ok(None) };
        let wrong = |error: T::Err| ConfigError::value(key.key, Origin::Env(key.env), error);
        text.split(',').map(|part| part.trim().parse().map_err(wrong)).collect::<Result<_, _>>().map(Some)
    }

    fn switch(&self, key: &'static keys::Key) -> Result<Option<bool>, ConfigError> {
        let Some(text) = self.text(key)? else { return Ok(None) };
        match text.to_ascii_lowercase().as_str() {
            "true" | "1" | "yes" | "on" => Ok(Some(true)),
            "false" | "0" | "no" | "off" => Ok(Some(false)),
            _ => {
                let message = format!("`{text}` is neither true nor false");
                Err(ConfigError::value(key.key, Origin::Env(key.env), message))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_gets_louder_up_to_trace() {
        assert_eq!(Level::Warn.louder(1), Level::Info);
        assert_eq!(Level::Info.louder(9), Level::Trace);
    }

    #[test]
    fn the_scrape_path_is_plain_and_not_one_of_ours() {
        for path in ["/metrics", "/gemgauge/metrics", "/apiary", "/-metrics"] {
            assert_eq!(path.parse::<TelemetryPath>().unwrap().as_str(), path);
        }
        for path in ["", "/", "metrics", "/m/", "/a b", "/{x}", "/api/x", "/-/healthy", "/v1/logs", "/x?y"] {
            assert!(path.parse::<TelemetryPath>().is_err(), "{path}");
        }
    }
}
