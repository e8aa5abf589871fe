//! Addresses to listen on.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::Deserialize;

/// `host:port`, as every exporter takes it. No host: every interface. Port 0:
/// any free one.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct ListenAddress {
    host: String,
    port: u16,
}

impl ListenAddress {
    /// The host to bind to.
    #[must_use]
    pub fn host(&self) -> &str {
        if self.host.is_empty() { "::" } else { &self.host }
    }

    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Whether only this machine reaches it. A name other than `localhost` may
    /// resolve to anything, so it does not count.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        let ip = self.host.parse::<IpAddr>();
        ip.map_or(self.host.eq_ignore_ascii_case("localhost"), |ip| ip.to_canonical().is_loopback())
    }
}

impl FromStr for ListenAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("`{text}` is no address to listen on: write host:port, such as 127.0.0.1:10436");
        let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        let port = port.parse().map_err(|_| wrong())?;
        let host = match host.strip_prefix('[').map(|rest| rest.strip_suffix(']')) {
            Some(inner) => inner.filter(|ip| ip.parse::<std::net::Ipv6Addr>().is_ok()).ok_or_else(wrong)?,
            None if host.contains(|c: char| c == ':' || c == '/' || c.is_whitespace()) => return Err(wrong()),
            None => host,
        };
        Ok(Self { host: host.to_owned(), port })
    }
}

impl TryFrom<String> for ListenAddress {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_as_exporters_write_them() {
        for (text, host, loopback) in [
            ("127.0.0.1:10436", "127.0.0.1", true),
            ("127.8.0.1:1", "127.8.0.1", true),
            ("localhost:0", "localhost", true),
            ("[::1]:9", "::1", true),
            ("[::ffff:127.0.0.1]:9", "::ffff:127.0.0.1", true),
            (":10436", "::", false),
            ("0.0.0.0:10436", "0.0.0.0", false),
            ("[::]:10436", "::", false),
            ("localhost.example.org:80", "localhost.example.org", false),
        ] {
            let address: ListenAddress = text.parse().unwrap();
            assert_eq!((address.host(), address.is_loopback()), (host, loopback), "{text}");
            assert_eq!(address.to_string(), text);
        }
    }

    #[test]
    fn what_is_no_address_says_how_to_write_one() {
        for text in
            ["", "10436", "localhost", "host:port", "host:65536", "::1:80", "[::1]", "[x]:1", "http://a:1"]
        {
            let error = text.parse::<ListenAddress>().unwrap_err();
            assert!(error.contains("write host:port"), "{text}: {error}");
        }
    }
}
