//! Where the service listens, who reads there and who writes.

use serde::Serialize;

use super::Finding;
use super::findings::{note, warning};

/// An address and what is asked there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Listener {
    pub address: String,
    /// Whether only this machine reaches it.
    pub loopback: bool,
    pub tls: bool,
    pub reads: Reads,
    pub writes: Writes,
}

/// What whoever reads must show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reads {
    Anyone,
    Password,
    Certificate,
    CertificateAndPassword,
}

/// Who writes, where there is something to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Writes {
    /// Whoever reads.
    WhoReads,
    /// Whoever shows the token.
    Token,
    Nobody,
}

impl Listener {
    pub(super) fn sentence(&self) -> String {
        let scheme = if self.tls { "https" } else { "http" };
        let reach = if self.loopback { "this machine only" } else { "other machines reach it" };
        let reads = match (self.reads, self.loopback) {
            (Reads::Anyone, true) => "every user of the machine reads",
            (Reads::Anyone, false) => "anyone reads",
            (Reads::Password, _) => "a password reads",
            (Reads::Certificate, _) => "a certificate reads",
            (Reads::CertificateAndPassword, _) => "a certificate with a password reads",
        };
        let writes = match self.writes {
            Writes::WhoReads => " and writes",
            Writes::Token => ", the token writes",
            Writes::Nobody => ", nobody writes",
        };
        format!("{}  {scheme}, {reach}; {reads}{writes}", self.address)
    }
}

pub(super) fn findings(listener: &Listener, findings: &mut Vec<Finding>) {
    if listener.loopback {
        return;
    }
    let address = &listener.address;
    if listener.reads == Reads::Anyone {
        findings.push(warning(
            "exposed",
            format!(
                "{address}: anyone who reaches it reads the metrics, the reports, the sessions and the names \
                 of projects, unasked"
            ),
            "--web.config.file (web.config_file) with basic_auth_users, or listen on 127.0.0.1",
        ));
    }
    let password = matches!(listener.reads, Reads::Password | Reads::CertificateAndPassword);
    if !listener.tls && (password || listener.writes == Writes::Token) {
        findings.push(warning(
            "secrets_in_clear",
            format!("{address}: passwords and tokens go over the network in clear text"),
            "tls_server_config in the web configuration",
        ));
    }
    if listener.writes == Writes::Nobody {
        findings
            .push(note("writes_refused", format!("{address}: nobody writes there without web.write_token")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listener(loopback: bool, tls: bool, reads: Reads, writes: Writes) -> Listener {
        Listener { address: "0.0.0.0:1".into(), loopback, tls, reads, writes }
    }

    #[test]
    fn what_nothing_locks_is_said() {
        use Reads::{Anyone, Certificate, CertificateAndPassword, Password};
        for (listener, codes, sentence) in [
            (
                listener(true, false, Anyone, Writes::WhoReads),
                &[][..],
                "http, this machine only; every user of the machine reads and writes",
            ),
            (
                listener(true, true, Password, Writes::WhoReads),
                &[],
                "https, this machine only; a password reads and writes",
            ),
            (
                listener(false, false, Anyone, Writes::Nobody),
                &["exposed", "writes_refused"],
                "http, other machines reach it; anyone reads, nobody writes",
            ),
            (
                listener(false, false, Anyone, Writes::Token),
                &["exposed", "secrets_in_clear"],
                "http, other machines reach it; anyone reads, the token writes",
            ),
            (
                listener(false, false, Password, Writes::Nobody),
                &["secrets_in_clear", "writes_refused"],
                "http, other machines reach it; a password reads, nobody writes",
            ),
            (
                listener(false, true, Certificate, Writes::Token),
                &[],
                "https, other machines reach it; a certificate reads, the token writes",
            ),
            (
                listener(false, true, CertificateAndPassword, Writes::Token),
                &[],
                "https, other machines reach it; a certificate with a password reads, the token writes",
            ),
        ] {
            let mut found = Vec::new();
            findings(&listener, &mut found);
            assert_eq!(found.iter().map(|finding| finding.code).collect::<Vec<_>>(), codes, "{listener:?}");
            assert_eq!(listener.sentence(), format!("0.0.0.0:1  {sentence}"));
        }
    }
}
