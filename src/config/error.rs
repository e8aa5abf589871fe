//! What can be wrong with a configuration, in the user's words.

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::keys::Origin;
use super::listen::ListenAddress;

#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("the configuration file {} could not be read: {error}", path.display())]
    Read { path: PathBuf, error: io::Error },

    #[error("the price file {} could not be read: {error}", path.display())]
    ReadPrices { path: PathBuf, error: io::Error },

    #[error("the web configuration {} could not be read: {error}", path.display())]
    ReadWebConfig { path: PathBuf, error: io::Error },

    #[error("the token file {} could not be read: {error}", path.display())]
    ReadToken { path: PathBuf, error: io::Error },

    /// A file that is not valid; `line` counts from 1.
    #[error("{}{}: {message}", path.display(), Place { line: *line, key: key.as_deref() })]
    File { path: PathBuf, line: Option<u64>, key: Option<String>, message: String },

    #[error("{key} ({origin}): {message}")]
    Value { key: &'static str, origin: Origin, message: String },

    #[error("there is no place for the ledger: neither XDG_DATA_HOME nor HOME is set; say --db FILE")]
    NoPlaceForLedger,

    #[error(
        "{address} can be reached from other machines and nothing would ask who reads there: listen on \
         127.0.0.1 instead, ask for passwords or certificates with --web.config.file, or say \
         --web.allow-unauthenticated (web.allow_unauthenticated: true) if that is what you want"
    )]
    OpenListener { address: ListenAddress },
}

impl ConfigError {
    pub(super) fn value(key: &'static str, origin: Origin, message: impl fmt::Display) -> Self {
        Self::Value { key, origin, message: message.to_string() }
    }

    /// Whether the command line is to blame: then the exit code says usage.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Value { origin: Origin::Flag(_), .. })
    }
}

/// `, line 3, web.listen_address`
struct Place<'a> {
    line: Option<u64>,
    key: Option<&'a str>,
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, ", line {line}")?;
        }
        self.key.map_or(Ok(()), |key| write!(f, ", {key}"))
    }
}
