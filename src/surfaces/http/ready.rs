//! Whether the service can be relied on, and what of it cannot (accounting R74).

use crate::health::Health;
use crate::store::read::HomeRow;

/// The answer of `/-/ready`: 200 if `waiting` is empty, else 503.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Readiness {
    /// Why figures are not to be relied on yet.
    pub waiting: Vec<String>,
    /// What is broken while everything else works.
    pub degraded: Vec<String>,
}

impl Readiness {
    /// Judges the ledger's homes, or why the ledger cannot be read, with the
    /// service's health. Only the homes that `health` knows as served matter.
    /// A degraded home is not waited for: it may stay as it is for ever.
    #[must_use]
    pub fn assess(ledger: Result<&[HomeRow], &str>, health: &Health) -> Self {
        let mut readiness = Self::default();
        let homes = health.home_states();
        match ledger {
            Err(why) => readiness.waiting.push(format!("the ledger is broken: {why}")),
            Ok(rows) => {
                let imported = |name: &str| rows.iter().any(|row| row.name == name && row.imported);
                let waiting = homes.iter().filter(|(name, wrong)| wrong.is_none() && !imported(name));
                readiness.waiting.extend(
                    waiting.map(|(name, _)| format!("the first import of home {name} is not done yet")),
                );
                if homes.is_empty() {
                    readiness.waiting.push("no home has been looked at yet".to_owned());
                }
            }
        }
        for (name, wrong) in homes {
            readiness.degraded.extend(wrong.map(|why| format!("home {name}: {why}")));
        }
        if !health.journal.up.get() {
            readiness.degraded.push("source journal: the watcher does not work".to_owned());
        }
        if health.writer.blocked.get() {
            readiness.degraded.push("ledger: the writer cannot commit".to_owned());
        }
        if health.web_config_broken.get() {
            let message = "web configuration: it has changed and cannot be used, the one before is in force; \
                           the log says why";
            readiness.degraded.push(message.to_owned());
        }
        readiness
    }

    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Plain text, a line for each thing.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        if self.is_ready() {
            text.push_str("ready\n");
        }
        for (word, lines) in [("not ready", &self.waiting), ("degraded", &self.degraded)] {
            text.extend(lines.iter().map(|line| format!("{word}: {line}\n")));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home(name: &str, imported: bool) -> HomeRow {
        HomeRow { id: 1, path: format!("/home/{name}"), name: name.into(), imported }
    }

    fn health(homes: &[&str]) -> Health {
        let health = Health::default();
        health.journal.up.set(true);
        homes.iter().for_each(|name| health.home_ok(name));
        health
    }

    #[test]
    fn ready_once_every_served_home_is_imported() {
        let health = health(&["ana", "ben"]);
        let ana = [home("ana", true)];
        let waiting = Readiness::assess(Ok(&ana), &health);
        assert_eq!(waiting.text(), "not ready: the first import of home ben is not done yet\n");
        let all = [home("ana", true), home("ben", true), home("no longer served", false)];
        assert_eq!(Readiness::assess(Ok(&all), &health).text(), "ready\n");
    }

    #[test]
    fn r74_a_broken_home_degrades_only_itself() {
        let health = health(&["ana", "ben"]);
        health.home_degraded("ben", "permission denied");
        let rows = [home("ana", true), home("ben", false)];
        let readiness = Readiness::assess(Ok(&rows), &health);
        assert!(readiness.is_ready());
        assert_eq!(readiness.text(), "ready\ndegraded: home ben: permission denied\n");
    }

    #[test]
    fn a_broken_ledger_and_nothing_looked_at_are_not_ready() {
        let health = health(&["ana"]);
        health.writer.blocked.set(true);
        let text = Readiness::assess(Err("disk I/O error"), &health).text();
        assert_eq!(
            text,
            "not ready: the ledger is broken: disk I/O error\ndegraded: ledger: the writer cannot commit\n"
        );
        let text = Readiness::assess(Ok(&[]), &Health::default()).text();
        assert!(text.starts_with("not ready: no home has been looked at yet\n"));
        assert!(text.contains("source journal"));
    }
}
