//! What the user wants: one struct, from defaults, file, environment and flags.
//!
//! - **In**: the flags ([`Flags`]), the environment ([`Env`]) and one YAML file.
//! - **Out**: a [`Config`] whose values are all valid, and where each came from ([`Setting`]).
//! - **Never**: ask the operating system for a variable anywhere but in [`env`], or
//!   touch the ledger.
//! - **Look first** at [`Config::load`], then [`keys`] (every key with its variable and
//!   its flag), then [`homes`] (which homes there are and what they are called).

mod billing;
mod budgets;
pub mod env;
mod error;
mod file;
mod gemini;
pub mod homes;
mod hooks;
pub mod keys;
mod launch;
mod layer;
mod listen;
mod paths;
pub mod prices;
mod quota;
mod read;
mod resolve;
mod sign_in;
mod token;
pub mod web_config;
mod yaml;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::ledger::budget::Budget;
use crate::ledger::money::{Currency, PriceTable};

pub use billing::{BillingChoice, HomeBilling, ListChoice, Pricing};
pub use budgets::BudgetEntry;
pub use env::Env;
pub use error::ConfigError;
pub use gemini::{CliSettings, CliTelemetry, Export};
pub use homes::{Home, HomeChoice, effective_home, user_name};
pub use hooks::{HookCommand, Hooks, Webhook, WebhookUrl};
pub use keys::{Origin, Setting};
pub use launch::Launch;
pub use layer::{
    CurrencyLayer, Flags, HomeEntry, HooksLayer, JournalsLayer, Layer, Level, LogFormat, LogLayer,
    MetricsLayer, PricesLayer, QuotaLayer, TelemetryLayer, TelemetryPath, WebLayer, WebhookLayer,
};
pub use listen::ListenAddress;
pub use quota::{ApiVersion, Endpoint, ProjectId, ProjectRule, QUOTA_RISK, Quota};
pub use read::read_bounded;
pub use sign_in::{SignIn, settings_files};
pub use token::{TokenSource, WriteToken};
pub use web_config::WebConfig;

/// Everything that can be configured, resolved and checked.
#[derive(Clone, Debug)]
pub struct Config {
    /// The homes to watch and to read, each once. One that does not exist yet
    /// is waited for.
    pub homes: Vec<Home>,
    /// What `--home` narrows a report to; empty: every home of the ledger.
    pub chosen: Vec<HomeChoice>,
    /// The ledger.
    pub db: PathBuf,
    /// The directory of spool files.
    pub spool: PathBuf,
    /// An IANA zone name; `None`: the machine's own zone.
    pub timezone: Option<String>,
    /// What the models cost: the built-in prices, below those of the user's file.
    pub prices: Arc<PriceTable>,
    /// What people are shown costs in; `None`: US dollars.
    pub currency: Option<Currency>,
    /// Read and count to the letter of Sortie's documented rule.
    pub strict: bool,
    pub journals: Journals,
    pub metrics: Metrics,
    pub web: Web,
    pub telemetry: Telemetry,
    pub budgets: Vec<Budget>,
    pub hooks: Hooks,
    pub quota: Quota,
    pub log: Log,
    /// The configuration file that was read, if any.
    pub file: Option<PathBuf>,
    /// Every value with its origin, in the order of [`keys::KEYS`].
    pub settings: Vec<Setting>,
    /// Variables that start with `GEMGAUGE_` and mean nothing: misspelt, most likely.
    pub unknown_variables: Vec<String>,
}

/// How journals are found and read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Journals {
    /// A larger journal is a failed read (accounting R15).
    pub max_file_bytes: u64,
    /// A longer line, without its newline, is a failed read (accounting R15).
    pub max_line_bytes: u64,
    /// Between scans while a session is active.
    pub rescan: Duration,
    /// Between scans otherwise.
    pub idle_rescan: Duration,
    /// Whether to ask the system for file events; without them the scans do it all.
    pub watch: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metrics {
    /// Label sets (project, model, role) a home may have before `other`.
    pub max_tuples: u64,
    /// Live sessions with series of their own.
    pub max_sessions: u64,
}

/// The HTTP side of `serve`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Web {
    listen: Vec<ListenAddress>,
    pub telemetry_path: TelemetryPath,
    /// Names besides IP addresses and `localhost` that a request's `Host` may carry.
    pub allowed_hosts: Vec<String>,
    pub allow_unauthenticated: bool,
    /// TLS, headers and passwords; read when the service starts.
    pub config_file: Option<PathBuf>,
    /// What whoever writes must show, on a listener that others reach.
    pub write_token: Option<TokenSource>,
}

impl Web {
    /// Where to listen, whether or not that is allowed.
    #[must_use]
    pub fn addresses(&self) -> &[ListenAddress] {
        &self.listen
    }

    /// Where to listen. `authenticated`: whether [`WebConfig::authenticates`].
    ///
    /// # Errors
    /// When one of them can be reached from outside, nothing authenticates, and
    /// nobody asked for that by name.
    pub fn listen_addresses(&self, authenticated: bool) -> Result<&[ListenAddress], ConfigError> {
        self.admit(&self.listen, authenticated)
    }

    fn admit<'a>(
        &self,
        addresses: &'a [ListenAddress],
        authenticated: bool,
    ) -> Result<&'a [ListenAddress], ConfigError> {
        match addresses.iter().find(|address| !address.is_loopback()) {
            Some(open) if !self.allow_unauthenticated && !authenticated => {
                Err(ConfigError::OpenListener { address: open.clone() })
            }
            _ => Ok(addresses),
        }
    }
}

/// Where telemetry of Gemini CLI comes from (accounting R66).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Telemetry {
    listen: Vec<ListenAddress>,
    /// Absolute paths.
    outfiles: Vec<PathBuf>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    pub format: LogFormat,
    pub level: Level,
}

impl Config {
    /// Reads the file and puts defaults, file, environment and flags together,
    /// the later the stronger.
    ///
    /// # Errors
    /// A value that cannot be used, with where it came from and what is expected.
    pub fn load(flags: &Flags, env: &Env) -> Result<Self, ConfigError> {
        resolve::resolve(flags, env)
    }

    /// The same without any file, for what must go on although the file cannot be used.
    ///
    /// # Errors
    /// A value of the environment or the flags that cannot be used.
    pub fn load_without_file(flags: &Flags, env: &Env) -> Result<Self, ConfigError> {
        resolve::resolve_with(flags, env, None, Layer::default())
    }

    /// Where telemetry is taken besides the addresses of [`Self::web`].
    ///
    /// # Errors
    /// As of [`Web::listen_addresses`].
    pub fn telemetry_addresses(&self, authenticated: bool) -> Result<&[ListenAddress], ConfigError> {
        self.web.admit(&self.telemetry.listen, authenticated)
    }

    /// Every address that takes telemetry, those meant for it first.
    #[must_use]
    pub fn receivers(&self) -> Vec<ListenAddress> {
        self.telemetry.listen.iter().chain(&self.web.listen).cloned().collect()
    }

    /// The outfiles to read, each once: the configured ones, and what each
    /// home's settings name now. A relative path there is relative to wherever
    /// the CLI is started, so that nobody can say which file it is.
    #[must_use]
    pub fn outfiles(&self) -> Vec<PathBuf> {
        let of_home = |home: &Home| CliSettings::of_home(&home.path).telemetry().outfile;
        let named =
            self.homes.iter().filter_map(of_home).map(PathBuf::from).filter(|path| path.is_absolute());
        let mut outfiles = Vec::new();
        for path in self.telemetry.outfiles.iter().cloned().chain(named) {
            if !outfiles.contains(&path) {
                outfiles.push(path);
            }
        }
        outfiles
    }

    /// Where the value of `key` came from.
    #[must_use]
    pub fn origin(&self, key: &str) -> Origin {
        self.settings.iter().find(|s| s.key == key).map_or(Origin::Default, |s| s.origin.clone())
    }
}
