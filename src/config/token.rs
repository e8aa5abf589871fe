//! The secret that whoever writes must show.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::Deserialize;

use super::error::ConfigError;
use super::read::read_bounded;

/// A token is one line; this is room for any.
const LIMIT: u64 = 4096;

/// A bearer token (RFC 6750). Nothing prints it.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct WriteToken(String);

impl WriteToken {
    /// The token itself, for whoever compares it.
    #[must_use]
    pub fn secret(&self) -> &str {
        &self.0
    }
}

impl FromStr for WriteToken {
    type Err = String;

    /// What is wrong is said without the token.
    fn from_str(text: &str) -> Result<Self, String> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
        if text.len() < 16 || !text.bytes().all(plain) {
            return Err(
                "a token has at least 16 letters, digits or -._~+/=; `openssl rand -hex 32` makes one".into(),
            );
        }
        Ok(Self(text.to_owned()))
    }
}

impl TryFrom<String> for WriteToken {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl fmt::Debug for WriteToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// Where the token is: a file is read when the service starts, not before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenSource {
    Said(WriteToken),
    File(PathBuf),
}

impl TokenSource {
    /// # Errors
    /// The file cannot be read or holds no token.
    pub fn token(&self) -> Result<WriteToken, ConfigError> {
        match self {
            Self::Said(token) => Ok(token.clone()),
            Self::File(path) => read(path),
        }
    }
}

fn read(path: &Path) -> Result<WriteToken, ConfigError> {
    let path_of = || path.to_owned();
    let read =
        read_bounded(path, LIMIT).map_err(|error| ConfigError::ReadToken { path: path_of(), error })?;
    read.trim_end().parse().map_err(|message| ConfigError::File {
        path: path_of(),
        line: None,
        key: None,
        message,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_long_plain_and_never_shown() {
        let token: WriteToken = "s3cret-s3cret-s3cret".parse().unwrap();
        assert_eq!((token.secret(), format!("{token:?}")), ("s3cret-s3cret-s3cret", "…".to_owned()));
        for text in ["", "s3cret", "s3cret s3cret s3cret", "s3cret-s3cret-s3crét"] {
            let error = text.parse::<WriteToken>().unwrap_err();
            assert!(!error.contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn a_file_holds_a_token_and_its_newline() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        std::fs::write(&path, "s3cret-s3cret-s3cret\n").unwrap();
        let source = TokenSource::File(path.clone());
        assert_eq!(source.token().unwrap().secret(), "s3cret-s3cret-s3cret");
        std::fs::write(&path, "s3cret").unwrap();
        let error = source.token().unwrap_err().to_string();
        assert!(error.contains("at least 16") && !error.contains("s3cret"), "{error}");
        std::fs::remove_file(&path).unwrap();
        assert!(source.token().unwrap_err().to_string().starts_with("the token file "));
    }
}
