//! Who is told when a budget reaches a threshold.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::Deserialize;

/// Who is told; nobody by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hooks {
    pub webhook: Option<Webhook>,
    pub command: Option<HookCommand>,
}

/// Where to send a POST.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    pub url: WebhookUrl,
    /// For one attempt, from the name of the host to the end of the answer.
    pub timeout: Duration,
    /// Attempts after the first.
    pub retries: u64,
}

/// A program and its arguments; no shell is between.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Vec<String>")]
pub struct HookCommand(Vec<String>);

impl HookCommand {
    #[must_use]
    pub fn program(&self) -> &str {
        &self.0[0]
    }

    #[must_use]
    pub fn args(&self) -> &[String] {
        &self.0[1..]
    }
}

impl TryFrom<Vec<String>> for HookCommand {
    type Error = String;

    fn try_from(words: Vec<String>) -> Result<Self, String> {
        match words.first() {
            Some(program) if !program.is_empty() => Ok(Self(words)),
            _ => Err("write a program and its arguments, such as [on-budget, --quiet]".into()),
        }
    }
}

/// An address that may hold a secret: whoever shows it shows its host only.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct WebhookUrl(String);

impl WebhookUrl {
    /// The whole of it, for whoever sends the request.
    #[must_use]
    pub fn secret(&self) -> &str {
        &self.0
    }

    /// Scheme, and host with port.
    fn parts(text: &str) -> Option<(&str, &str)> {
        let (scheme, rest) = text.split_once("://")?;
        let scheme = ["http", "https"].into_iter().find(|known| scheme.eq_ignore_ascii_case(known))?;
        let authority = rest.split(['/', '?', '#']).next()?;
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let named = !host.is_empty() && !host.starts_with(':');
        named.then_some((scheme, host))
    }
}

impl FromStr for WebhookUrl {
    type Err = String;

    /// What is wrong is said without the address: it may be a secret.
    fn from_str(text: &str) -> Result<Self, String> {
        let plain = text.bytes().all(|byte| byte.is_ascii_graphic());
        match Self::parts(text) {
            Some(_) if plain => Ok(Self(text.to_owned())),
            _ => Err("this is no address: write one such as https://hooks.example/budget".into()),
        }
    }
}

impl TryFrom<String> for WebhookUrl {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

/// `https://hooks.example/…`
impl fmt::Display for WebhookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Self::parts(&self.0) {
            Some((scheme, host)) => write!(f, "{scheme}://{host}/…"),
            None => f.write_str("…"),
        }
    }
}

impl fmt::Debug for WebhookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_secrets() {
        for (text, shown) in [
            ("https://hooks.example/T00/B00/s3cret", "https://hooks.example/…"),
            ("HTTP://ana:s3cret@127.0.0.1:8080/x?token=s3cret#s3cret", "http://127.0.0.1:8080/…"),
            ("https://[::1]:1?s3cret", "https://[::1]:1/…"),
        ] {
            let url: WebhookUrl = text.parse().unwrap();
            assert_eq!(
                (url.to_string(), format!("{url:?}"), url.secret()),
                (shown.into(), shown.into(), text)
            );
        }
        for text in [
            "",
            "s3cret",
            "ftp://s3cret/x",
            "https://",
            "https:///s3cret",
            "http://a/s3 cret",
            "http://:80/s3cret",
        ] {
            let error = text.parse::<WebhookUrl>().unwrap_err();
            assert!(!error.contains("s3cret"), "{error}");
        }
    }
}
