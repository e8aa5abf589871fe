//! A diagnosis for a person.

use std::io::{self, Write};

use jiff::Timestamp;

use super::retention::{Doomed, Why};
use super::{Diagnosis, Finding, HomeReport, HomeState, LedgerFacts, Level, TelemetryReport};

/// How many journals about to be deleted are listed per home.
const DOOMED_SHOWN: usize = 5;

pub(super) fn write(diagnosis: &Diagnosis, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "gemgauge {}", diagnosis.version)?;
    writeln!(out, "\nHomes")?;
    for home in &diagnosis.homes {
        write_home(home, diagnosis.now, out)?;
    }
    writeln!(out, "\nLedger")?;
    write_ledger(&diagnosis.ledger, out)?;
    writeln!(out, "\nWatching")?;
    write_watching(diagnosis, out)?;
    if !diagnosis.listeners.is_empty() {
        writeln!(out, "\nListening")?;
    }
    for listener in &diagnosis.listeners {
        writeln!(out, "  {}", listener.sentence())?;
    }
    if let Some(telemetry) = &diagnosis.telemetry {
        writeln!(out, "\nTelemetry")?;
        write_telemetry(telemetry, out)?;
    }
    writeln!(out, "\nSettings")?;
    let width = diagnosis.settings.iter().map(|setting| setting.key.len()).max().unwrap_or(0);
    for setting in &diagnosis.settings {
        let value = if setting.value.is_empty() { "(none)" } else { &setting.value };
        writeln!(out, "  {:width$}  {value}  [{}]", setting.key, setting.origin)?;
    }
    writeln!(out, "\nFindings")?;
    for finding in &diagnosis.findings {
        write_finding(finding, out)?;
    }
    let verdict = if diagnosis.healthy { "Nothing is wrong." } else { "Something is wrong: see above." };
    writeln!(out, "  {verdict}")
}

fn write_home(home: &HomeReport, now: i64, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "  {}  {}", home.name, home.path.display())?;
    match &home.state {
        HomeState::Absent => return writeln!(out, "    does not exist yet"),
        HomeState::NoGemini => return writeln!(out, "    no Gemini CLI session yet"),
        HomeState::Unreadable(error) => writeln!(out, "    cannot be read: {error}")?,
        HomeState::Present => {}
    }
    let total: usize = home.states.values().sum();
    let import = if home.imported { "" } else { "; not read to the end yet" };
    writeln!(out, "    {}, {}{import}", plural(home.projects, "project"), plural(total, "journal"))?;
    let counts = |counts: Vec<String>| counts.join(", ");
    if total > 0 {
        writeln!(
            out,
            "    state: {}",
            counts(home.states.iter().map(|(s, n)| format!("{n} {s}")).collect())
        )?;
        writeln!(
            out,
            "    format: {}",
            counts(home.formats.iter().map(|(s, n)| format!("{n} {s}")).collect())
        )?;
    }
    let retention = &home.retention;
    if !retention.enabled {
        return writeln!(out, "    Gemini CLI keeps its journals (general.sessionRetention is off)");
    }
    let mut limits: Vec<String> = retention.max_age.iter().map(|age| format!("older than {age}")).collect();
    limits.extend(retention.max_count.map(|count| format!("beyond the newest {count}")));
    limits.push("those it cannot resume, with every file of the same id".to_owned());
    writeln!(out, "    Gemini CLI deletes journals at its start: {}", limits.join("; "))?;
    if let Some(at) = home.next_expiry {
        writeln!(out, "    the next gets too old on {} ({})", date(at), in_days(at - now))?;
    }
    write_doomed(&home.doomed, out)
}

fn write_doomed(doomed: &[Doomed], out: &mut dyn Write) -> io::Result<()> {
    if doomed.is_empty() {
        return Ok(());
    }
    writeln!(out, "    its next start in the project deletes:")?;
    for journal in doomed.iter().take(DOOMED_SHOWN) {
        let why = match journal.why {
            Why::NotResumable => "cannot be resumed",
            Why::TooOld => "too old",
            Why::BeyondMaxCount => "beyond maxCount",
            Why::SameId => "another file of its id goes",
        };
        let read = if journal.read { "read" } else { "not read to the end" };
        writeln!(out, "      {}  {}  ({why}; {read})", journal.project_dir, journal.file)?;
    }
    match doomed.len().checked_sub(DOOMED_SHOWN) {
        Some(more) if more > 0 => writeln!(out, "      and {more} more"),
        _ => Ok(()),
    }
}

fn write_ledger(ledger: &LedgerFacts, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "  {}", ledger.path.display())?;
    if !ledger.exists {
        return writeln!(out, "    does not exist yet");
    }
    let mut parts = vec![bytes(ledger.bytes)];
    parts.extend(ledger.mode.map(|mode| format!("mode {mode:04o}")));
    parts.extend(ledger.schema_version.map(|version| format!("schema {version}")));
    parts.push(match ledger.serve_pid {
        Some(pid) => format!("serve runs as process {pid}"),
        None => "no serve runs".to_owned(),
    });
    writeln!(out, "    {}", parts.join(", "))
}

fn write_watching(diagnosis: &Diagnosis, out: &mut dyn Write) -> io::Result<()> {
    if !diagnosis.watch.enabled {
        return writeln!(out, "  file events are switched off (journals.watch); scans do the work");
    }
    let directories = diagnosis.watched_directories;
    match (diagnosis.watch.max_user_watches, diagnosis.watch.max_user_instances) {
        (Some(watches), Some(instances)) => writeln!(
            out,
            "  about {directories} directories; the system allows {watches} watches and {instances} watchers"
        ),
        _ => writeln!(out, "  about {directories} directories"),
    }
}

fn write_telemetry(telemetry: &TelemetryReport, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "  Gemini CLI sends its own telemetry here with this in .gemini/settings.json:")?;
    writeln!(out, "    {}", telemetry.settings)?;
    writeln!(out, "  or with these variables, which beat its settings:")?;
    writeln!(out, "    {}", telemetry.environment.join(" "))?;
    if telemetry.protocol == "http" {
        writeln!(
            out,
            "  While no serve runs, each of its runs then takes about 8.5 seconds longer to exit."
        )?;
    }
    Ok(())
}

fn write_finding(finding: &Finding, out: &mut dyn Write) -> io::Result<()> {
    let level = match finding.level {
        Level::Note => "note",
        Level::Warning => "warning",
        Level::Wrong => "wrong",
    };
    writeln!(out, "  {level}: {}", finding.message)?;
    finding.fix.as_ref().map_or(Ok(()), |fix| writeln!(out, "    do: {fix}"))
}

fn plural(count: usize, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

fn bytes(bytes: u64) -> String {
    match bytes {
        0..1_024 => format!("{bytes} B"),
        1_024..1_048_576 => format!("{:.1} KiB", bytes as f64 / 1_024.0),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}

fn date(at: i64) -> String {
    Timestamp::from_millisecond(at).map_or_else(|_| "?".to_owned(), |at| at.strftime("%Y-%m-%d").to_string())
}

fn in_days(ms: i64) -> String {
    match ms / 86_400_000 {
        0 => "within a day".to_owned(),
        1 => "in a day".to_owned(),
        days => format!("in {days} days"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Facts, HomeFacts, JournalFacts, TelemetryFacts, WatchFacts};
    use super::*;
    use crate::config::{CliSettings, Origin, Setting};

    const DAY: i64 = 86_400_000;

    fn diagnosis() -> Diagnosis {
        let journal = |file: &str, state: &str, reason: Option<&str>, resumable| JournalFacts {
            project_dir: "proj".into(),
            file: file.into(),
            state: state.into(),
            reason: reason.map(str::to_owned),
            modified_at: 20_000 * DAY,
            resumable: Some(resumable),
        };
        let ana = HomeFacts {
            name: "ana".into(),
            path: "/home/ana".into(),
            state: HomeState::Present,
            imported: true,
            journals: vec![
                journal("session-2024-10-04T00-00-34805873.jsonl", "read", None, true),
                journal("session-2024-10-04T00-01-34805873.jsonl", "behind", None, false),
                journal("session-2024-10-04T00-02-0544eb2c.json", "failed", Some("too_large"), true),
            ],
            retention: CliSettings::NoFile,
            directories: 5,
        };
        let ci = HomeFacts {
            name: "ci".into(),
            path: "/srv/ci".into(),
            state: HomeState::Absent,
            imported: false,
            journals: Vec::new(),
            retention: CliSettings::NoFile,
            directories: 3,
        };
        Diagnosis::of(Facts {
            version: "0.1.0".into(),
            now: 20_001 * DAY,
            homes: vec![ana, ci],
            watch: WatchFacts {
                enabled: true,
                max_user_watches: Some(192_536),
                max_user_instances: Some(128),
            },
            ledger: LedgerFacts {
                path: "/home/ana/.local/share/gemgauge/ledger.db".into(),
                exists: true,
                bytes: 12_900_000,
                mode: Some(0o600),
                directory_mode: Some(0o700),
                schema_version: Some(1),
                known_schema: 1,
                error: None,
                serve_pid: Some(4711),
            },
            listener_refused: None,
            lock_broken: None,
            listeners: Vec::new(),
            telemetry: TelemetryFacts { addresses: vec!["127.0.0.1:10436".parse().unwrap()], grpc: true },
            settings: vec![
                Setting {
                    key: "db",
                    value: "/home/ana/.local/share/gemgauge/ledger.db".into(),
                    origin: Origin::Default,
                },
                Setting { key: "timezone", value: "UTC".into(), origin: Origin::Env("GEMGAUGE_TIMEZONE") },
                Setting { key: "web.allowed_hosts", value: String::new(), origin: Origin::Default },
            ],
            unknown_variables: Vec::new(),
        })
    }

    #[test]
    fn a_person_reads_what_was_found_and_what_to_do() {
        let mut text = Vec::new();
        diagnosis().write_text(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let expected = "\
gemgauge 0.1.0

Homes
  ana  /home/ana
    1 project, 3 journals
    state: 1 behind, 1 failed (too_large), 1 read
    format: 1 json, 2 jsonl
    Gemini CLI deletes journals at its start: older than 30d; those it cannot resume, with every file of the same id
    the next gets too old on 2024-11-03 (in 29 days)
    its next start in the project deletes:
      proj  session-2024-10-04T00-00-34805873.jsonl  (another file of its id goes; read)
      proj  session-2024-10-04T00-01-34805873.jsonl  (cannot be resumed; not read to the end)
  ci  /srv/ci
    does not exist yet

Ledger
  /home/ana/.local/share/gemgauge/ledger.db
    12.3 MiB, mode 0600, schema 1, serve runs as process 4711

Watching
  about 8 directories; the system allows 192536 watches and 128 watchers

Telemetry
  Gemini CLI sends its own telemetry here with this in .gemini/settings.json:
    {\"telemetry\":{\"enabled\":true,\"logPrompts\":false,\"otlpEndpoint\":\"http://127.0.0.1:10436\",\"otlpProtocol\":\"grpc\",\"target\":\"local\"}}
  or with these variables, which beat its settings:
    GEMINI_TELEMETRY_ENABLED=true GEMINI_TELEMETRY_TARGET=local GEMINI_TELEMETRY_OTLP_ENDPOINT=http://127.0.0.1:10436 GEMINI_TELEMETRY_OTLP_PROTOCOL=grpc GEMINI_TELEMETRY_LOG_PROMPTS=false

Settings
  db                 /home/ana/.local/share/gemgauge/ledger.db  [default]
  timezone           UTC  [$GEMGAUGE_TIMEZONE]
  web.allowed_hosts  (none)  [default]

Findings
  wrong: ana: the journal session-2024-10-04T00-02-0544eb2c.json is larger than journals.max_file_bytes; what was decoded counts as at least (≥)
    do: journals.max_file_bytes: 268435456
  warning: ana: Gemini CLI deletes its journals; its next start takes 2 away, 1 of them not read to the end. What is read before stays in the ledger
    do: general.sessionRetention.enabled=false, that is {\"general\": {\"sessionRetention\": {\"enabled\": false}}} in /home/ana/.gemini/settings.json
  note: ci: /srv/ci does not exist yet; serve waits for it
  Something is wrong: see above.
";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_script_reads_the_same() {
        let mut json = Vec::new();
        diagnosis().write_json(&mut json).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
        assert_eq!((&json["schema"], &json["healthy"]), (&1.into(), &false.into()));
        assert_eq!(json["findings"][0]["code"], "journal_failed");
        assert_eq!(json["findings"][0]["level"], "wrong");
        assert_eq!(json["homes"][0]["doomed"][1]["why"], "not_resumable");
        assert_eq!(json["homes"][0]["states"]["failed (too_large)"], 1);
        assert_eq!(json["homes"][1]["state"], "absent");
        assert_eq!((&json["ledger"]["serve_pid"], &json["ledger"]["mode"]), (&4711.into(), &"0600".into()));
        assert_eq!(json["settings"][1]["origin"], "$GEMGAUGE_TIMEZONE");
    }

    #[test]
    fn sizes_are_readable() {
        assert_eq!(bytes(1_023), "1023 B");
        assert_eq!(bytes(1_024), "1.0 KiB");
        assert_eq!(bytes(5 << 20), "5.0 MiB");
    }
}
