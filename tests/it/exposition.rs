//! The exposition in the eyes of Prometheus's own tools, where they are installed.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use gemgauge::health::Health;
use gemgauge::ledger::tokens::Classes;
use gemgauge::store::read::{HomeRow, TupleRow};
use gemgauge::surfaces::metrics::{BuildInfo, Exporter, Format, LedgerRows, MoneyInfo};

/// Pipes an exposition in text 0.0.4 through `promtool check metrics`. `None`
/// where there is no promtool, else what it found, empty if nothing.
pub(crate) fn promtool(text: &str) -> Option<String> {
    let child = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(error) => panic!("promtool does not start: {error}"),
    };
    child.stdin.take().expect("it is piped").write_all(text.as_bytes()).expect("promtool reads");
    let output = child.wait_with_output().expect("promtool ends");
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(output.status.success() || !said.is_empty(), "promtool failed in silence");
    Some(said)
}

#[test]
fn promtool_finds_nothing_in_a_whole_scrape() {
    let tuple = TupleRow {
        id: 1,
        home: "ana".into(),
        project: "C:\\work \"x\"\nline".into(),
        model: "gemini-2.5-pro".into(),
        role: "main".into(),
        born_at: None,
        requests: 1,
        tokens: Classes { uncached_input: 1100, output: 12, ..Classes::default() },
        ..TupleRow::default()
    };
    let home = HomeRow { id: 1, path: "/home/ana".into(), name: "ana".into(), imported: true };
    let rows = LedgerRows { homes: vec![home], tuples: vec![tuple], ..LedgerRows::default() };
    let health = Arc::new(Health::default());
    health.journal.last_event.advance(1_790_000_000_000);
    health.writer.commits.observe(Duration::from_millis(3));
    let exporter =
        Exporter::new(health, BuildInfo::compiled(), PathBuf::from("/nowhere"), MoneyInfo::default(), &[]);
    let gathered = exporter.scrape(1_790_000_000_000, || Duration::ZERO, || Ok(rows));
    match promtool(&Format::Text.encode(&gathered.families)) {
        None => crate::support::skip::missing("promtool"),
        Some(said) => assert_eq!(said, ""),
    }
}
