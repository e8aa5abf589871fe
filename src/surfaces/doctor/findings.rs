//! Facts become findings: what is wrong, what may get lost, and what to do.

use std::collections::BTreeMap;

use super::{Facts, Finding, HomeFacts, HomeReport, HomeState, LedgerFacts, Level, listeners, telemetry};
use crate::config::{CliSettings, QUOTA_RISK, keys};

/// All findings, the worst first.
pub(super) fn all(facts: &Facts, homes: &[HomeReport]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (home, report) in facts.homes.iter().zip(homes) {
        of_home(home, &mut findings);
        of_journals(home, &mut findings);
        of_retention(home, report, &mut findings);
        telemetry::of_home(home, facts, &mut findings);
    }
    if facts.homes.is_empty() {
        let message = "no home is configured".to_owned();
        findings.push(wrong(
            "no_home",
            message,
            "gemgauge --home PATH doctor, or homes: in the configuration",
        ));
    }
    of_watching(facts, &mut findings);
    of_ledger(&facts.ledger, &mut findings);
    if let Some(refused) = &facts.listener_refused {
        let fix = "web.listen_address: [\"127.0.0.1:10436\"]";
        findings.push(wrong("listener_refused", format!("serve would not start: {refused}"), fix));
    }
    if let Some(broken) = &facts.lock_broken {
        let fix = "correct the file; promtool check web-config FILE judges a web configuration too";
        findings.push(wrong("lock_broken", format!("serve would not start: {broken}"), fix));
    }
    facts.listeners.iter().for_each(|listener| listeners::findings(listener, &mut findings));
    of_quota(facts, &mut findings);
    for name in &facts.unknown_variables {
        let message = format!("the variable {name} means nothing to gemgauge; it may be misspelt");
        findings.push(warning("unknown_variable", message, format!("unset {name}")));
    }
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.level));
    findings
}

fn wrong(code: &'static str, message: String, fix: impl Into<String>) -> Finding {
    Finding { level: Level::Wrong, code, message, fix: Some(fix.into()) }
}

pub(super) fn warning(code: &'static str, message: String, fix: impl Into<String>) -> Finding {
    Finding { level: Level::Warning, code, message, fix: Some(fix.into()) }
}

pub(super) fn note(code: &'static str, message: String) -> Finding {
    Finding { level: Level::Note, code, message, fix: None }
}

fn of_home(home: &HomeFacts, findings: &mut Vec<Finding>) {
    let (name, path) = (&home.name, home.path.display());
    match &home.state {
        HomeState::Present => {}
        HomeState::Absent => findings
            .push(note("home_absent", format!("{name}: {path} does not exist yet; serve waits for it"))),
        HomeState::NoGemini => findings.push(note(
            "home_without_gemini",
            format!("{name}: Gemini CLI has not run in {path} yet; serve waits for its first session"),
        )),
        HomeState::Unreadable(error) => findings.push(wrong(
            "home_unreadable",
            format!("{name}: {error}"),
            format!("run gemgauge as the owner of {path}, or let it read {path}/.gemini/tmp"),
        )),
    }
}

/// Whoever may switch it on is told the risk, and whoever did, too (quota Q1).
fn of_quota(facts: &Facts, findings: &mut Vec<Finding>) {
    let Some(enabled) = facts.settings.iter().find(|set| set.key == keys::QUOTA_ENABLED.key) else { return };
    findings.push(match enabled.value.as_str() {
        "true" => note("quota_on", format!("quota is polled ({}). {QUOTA_RISK}", enabled.origin)),
        _ => note("quota_off", format!("quota is not polled. {QUOTA_RISK}")),
    });
}

fn of_journals(home: &HomeFacts, findings: &mut Vec<Finding>) {
    let mut failed: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for journal in &home.journals {
        if matches!(journal.state.as_str(), "failed" | "skipped" | "lost" | "torn") {
            let key = (journal.state.as_str(), journal.reason.as_deref().unwrap_or_default());
            failed.entry(key).or_default().push(&journal.file);
        }
    }
    for ((state, reason), files) in failed {
        let name = &home.name;
        let which = match files.as_slice() {
            [only] => format!("the journal {only}"),
            [first, ..] => format!("{} journals, such as {first},", files.len()),
            [] => continue,
        };
        let (is, has) = if files.len() == 1 { ("is", "has") } else { ("are", "have") };
        findings.push(match (state, reason) {
            ("lost", _) => warning(
                "journal_lost",
                format!("{name}: {which} {is} gone and had not been read to the end; those sessions are at least (≥)"),
                "keep serve running, and see the retention of Gemini CLI above",
            ),
            ("torn", _) => note(
                "journal_torn",
                format!("{name}: {which} {is} cut short in an unfinished line; those sessions are at least (≥)"),
            ),
            ("skipped", _) => warning(
                "journal_skipped",
                format!("{name}: {which} {is} not read ({reason}); only plain files below the home are"),
                "move the file itself to where its link stands",
            ),
            (_, "permission") => wrong(
                "journal_failed",
                format!("{name}: {which} may not be read"),
                format!("run gemgauge as the owner of {}, or let it read the files", home.path.display()),
            ),
            (_, "too_large") => wrong(
                "journal_failed",
                format!("{name}: {which} {is} larger than journals.max_file_bytes; what was decoded counts as at least (≥)"),
                "journals.max_file_bytes: 268435456",
            ),
            (_, "line_too_long") => warning(
                "journal_failed",
                format!(
                    "{name}: {which} {has} a line longer than journals.max_line_bytes, which was passed over; \
                     its sessions stay at least (≥)"
                ),
                "journals.max_line_bytes: 67108864, for what is read from then on",
            ),
            (_, reason) => wrong(
                "journal_failed",
                format!("{name}: {which} could not be read ({reason}); those sessions are at least (≥)"),
                format!("look at the files below {}/.gemini/tmp", home.path.display()),
            ),
        });
    }
}

fn of_retention(home: &HomeFacts, report: &HomeReport, findings: &mut Vec<Finding>) {
    let settings = home.path.join(".gemini/settings.json");
    let settings = settings.display();
    let name = &home.name;
    if let Some(problem) = &report.retention.problem
        && home.retention != CliSettings::NoFile
    {
        let message = format!("{name}: general.sessionRetention in {settings}: {problem}");
        findings.push(if report.retention.enabled {
            warning("settings_unreadable", message, format!("correct {settings}"))
        } else {
            note("retention_ignored", message)
        });
    }
    if report.retention.enabled && home.state == HomeState::Present {
        let unread = report.doomed.iter().filter(|journal| !journal.read).count();
        let soon = match (report.doomed.len(), unread) {
            (0, _) => String::new(),
            (doomed, 0) => format!("; its next start takes {doomed} away, all of them read"),
            (doomed, unread) => {
                format!("; its next start takes {doomed} away, {unread} of them not read to the end")
            }
        };
        findings.push(warning(
            "retention_on",
            format!("{name}: Gemini CLI deletes its journals{soon}. What is read before stays in the ledger"),
            format!(
                "general.sessionRetention.enabled=false, that is \
                 {{\"general\": {{\"sessionRetention\": {{\"enabled\": false}}}}}} in {settings}"
            ),
        ));
    }
}

fn of_watching(facts: &Facts, findings: &mut Vec<Finding>) {
    if !facts.watch.enabled {
        return;
    }
    let needed: u64 = facts.homes.iter().map(|home| home.directories).sum();
    if let Some(max) = facts.watch.max_user_watches.filter(|max| *max < needed * 2) {
        let message = format!(
            "the system allows {max} file watches and about {needed} are needed; without events figures only \
             come later, at the next scan"
        );
        let fix = format!("sysctl fs.inotify.max_user_watches={}", (needed * 4).max(65_536));
        findings.push(warning("few_watches", message, fix));
    }
    if facts.watch.max_user_instances == Some(0) {
        let message = "the system allows no file watcher at all; scans do the work".to_owned();
        findings.push(warning("no_watcher", message, "sysctl fs.inotify.max_user_instances=128"));
    }
}

fn of_ledger(ledger: &LedgerFacts, findings: &mut Vec<Finding>) {
    let path = ledger.path.display();
    if let Some(error) = &ledger.error {
        let message = format!("the ledger {path} cannot be opened: {error}");
        findings.push(wrong(
            "ledger_unreadable",
            message,
            "gemgauge --db FILE to use another, or mend this one",
        ));
    }
    if !ledger.exists && ledger.error.is_none() {
        let message = format!("there is no ledger at {path} yet; the first serve or report makes it");
        findings.push(note("ledger_absent", message));
    }
    if let Some(version) = ledger.schema_version.filter(|version| *version > ledger.known_schema) {
        let known = ledger.known_schema;
        findings.push(wrong(
            "ledger_newer",
            format!("the ledger {path} has schema {version}; this gemgauge knows {known}"),
            "install the gemgauge that wrote it, or a newer one",
        ));
    }
    if let Some(mode) = ledger.mode.filter(|mode| mode & 0o077 != 0) {
        let message = format!("others may read the ledger {path} (mode {mode:04o})");
        findings.push(wrong("ledger_open_to_others", message, format!("chmod 600 {path}")));
    }
    // In a sticky directory such as /tmp nobody can replace another's file.
    if let Some(mode) = ledger.directory_mode.filter(|mode| mode & 0o022 != 0 && mode & 0o1000 == 0) {
        let directory = ledger.path.parent().unwrap_or(&ledger.path).display();
        let message = format!("others may replace the ledger: {directory} has mode {mode:04o}");
        findings.push(warning("ledger_directory_open", message, format!("chmod 700 {directory}")));
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::{Diagnosis, JournalFacts, TelemetryFacts, WatchFacts};
    use super::*;

    fn home(state: HomeState) -> HomeFacts {
        HomeFacts {
            name: "ana".into(),
            path: "/home/ana".into(),
            state,
            imported: true,
            journals: Vec::new(),
            retention: CliSettings::Text(r#"{"general":{"sessionRetention":{"enabled":false}}}"#.to_owned()),
            directories: 5,
        }
    }

    fn facts(home: HomeFacts) -> Facts {
        Facts {
            version: "0.1.0".into(),
            now: 0,
            homes: vec![home],
            watch: WatchFacts {
                enabled: true,
                max_user_watches: Some(192_536),
                max_user_instances: Some(128),
            },
            ledger: LedgerFacts {
                path: PathBuf::from("/x/gemgauge/ledger.db"),
                exists: true,
                mode: Some(0o600),
                directory_mode: Some(0o700),
                schema_version: Some(1),
                known_schema: 1,
                ..LedgerFacts::default()
            },
            listener_refused: None,
            lock_broken: None,
            listeners: Vec::new(),
            telemetry: TelemetryFacts { addresses: vec!["127.0.0.1:10436".parse().unwrap()], grpc: true },
            settings: Vec::new(),
            unknown_variables: Vec::new(),
        }
    }

    fn codes(facts: Facts) -> (bool, Vec<&'static str>) {
        let diagnosis = Diagnosis::of(facts);
        (diagnosis.healthy, diagnosis.findings.iter().map(|finding| finding.code).collect())
    }

    fn journal(state: &str, reason: Option<&str>) -> JournalFacts {
        JournalFacts {
            project_dir: "proj".into(),
            file: "session-2026-11-30T10-00-34805873.jsonl".into(),
            state: state.into(),
            reason: reason.map(str::to_owned),
            modified_at: 0,
            resumable: Some(true),
        }
    }

    #[test]
    fn nothing_to_say_about_a_machine_in_order() {
        assert_eq!(codes(facts(home(HomeState::Present))), (true, vec![]));
    }

    #[test]
    fn a_home_that_does_not_exist_yet_is_not_wrong() {
        assert_eq!(codes(facts(home(HomeState::Absent))), (true, vec!["home_absent"]));
        assert_eq!(codes(facts(home(HomeState::NoGemini))), (true, vec!["home_without_gemini"]));
        let unreadable = home(HomeState::Unreadable("/home/ana: permission denied".into()));
        assert_eq!(codes(facts(unreadable)), (false, vec!["home_unreadable"]));
    }

    #[test]
    fn the_default_retention_is_warned_of_with_the_setting_to_change() {
        let mut ana = home(HomeState::Present);
        ana.retention = CliSettings::NoFile;
        ana.journals = vec![journal("behind", None)];
        ana.journals[0].resumable = Some(false);
        let diagnosis = Diagnosis::of(facts(ana));
        assert!(diagnosis.healthy);
        let finding = &diagnosis.findings[0];
        assert_eq!(finding.code, "retention_on");
        assert!(finding.message.contains("takes 1 away, 1 of them not read"), "{}", finding.message);
        assert!(finding.fix.as_ref().unwrap().starts_with("general.sessionRetention.enabled=false"));
    }

    #[test]
    fn journals_that_cannot_be_read_say_what_to_change() {
        for (state, reason, healthy, code, fix) in [
            ("failed", Some("too_large"), false, "journal_failed", "journals.max_file_bytes"),
            ("failed", Some("line_too_long"), true, "journal_failed", "journals.max_line_bytes"),
            ("failed", Some("permission"), false, "journal_failed", "owner of /home/ana"),
            ("failed", Some("io"), false, "journal_failed", "/home/ana/.gemini/tmp"),
            ("lost", None, true, "journal_lost", "keep serve running"),
            ("skipped", Some("symlink"), true, "journal_skipped", "move the file"),
        ] {
            let mut ana = home(HomeState::Present);
            ana.journals = vec![journal(state, reason)];
            let diagnosis = Diagnosis::of(facts(ana));
            let finding = &diagnosis.findings[0];
            assert_eq!((diagnosis.healthy, finding.code), (healthy, code), "{state} {reason:?}");
            assert!(finding.fix.as_ref().unwrap().contains(fix), "{finding:?}");
        }
        let mut ana = home(HomeState::Present);
        ana.journals = vec![journal("read", None), journal("gone", None), journal("pending", None)];
        assert_eq!(codes(facts(ana)), (true, vec![]));
    }

    #[test]
    fn the_ledgers_file_is_for_its_owner_alone() {
        let mut open = facts(home(HomeState::Present));
        open.ledger.mode = Some(0o644);
        open.ledger.directory_mode = Some(0o777);
        let diagnosis = Diagnosis::of(open);
        assert_eq!(diagnosis.findings[0].fix.as_deref(), Some("chmod 600 /x/gemgauge/ledger.db"));
        assert_eq!(diagnosis.findings[1].fix.as_deref(), Some("chmod 700 /x/gemgauge"));
        assert!(!diagnosis.healthy);
    }

    #[test]
    fn a_ledger_may_be_missing_but_not_newer_or_broken() {
        let mut with = facts(home(HomeState::Present));
        with.ledger.exists = false;
        with.ledger.mode = None;
        assert_eq!(codes(with.clone()), (true, vec!["ledger_absent"]));
        with.ledger.exists = true;
        with.ledger.schema_version = Some(2);
        assert_eq!(codes(with.clone()), (false, vec!["ledger_newer"]));
        with.ledger.schema_version = None;
        with.ledger.error = Some("file is not a database".into());
        assert_eq!(codes(with), (false, vec!["ledger_unreadable"]));
    }

    #[test]
    fn telemetry_that_goes_elsewhere_stalls_or_carries_prompts_is_warned_of() {
        let told = |telemetry: &str, grpc: bool, serve_pid| {
            let mut ana = home(HomeState::Present);
            let retention = r#""general": {"sessionRetention": {"enabled": false}}"#;
            ana.retention = CliSettings::Text(format!("{{{retention}, \"telemetry\": {telemetry}}}"));
            let mut with = facts(ana);
            with.telemetry.grpc = grpc;
            with.ledger.serve_pid = serve_pid;
            codes(with).1
        };
        let quiet = r#""enabled": true, "logPrompts": false"#;
        let ours = r#""otlpEndpoint": "http://localhost:10436""#;
        let http = r#""otlpProtocol": "http""#;
        for (telemetry, want) in [
            ("{}".to_owned(), &[][..]),
            (r#"{"enabled": false, "outfile": "t.log"}"#.to_owned(), &[]),
            (format!("{{{quiet}}}"), &["telemetry_elsewhere"]),
            (format!(r#"{{{quiet}, "target": "gcp"}}"#), &["telemetry_elsewhere"]),
            (format!("{{{quiet}, {ours}}}"), &[]),
            (format!("{{{quiet}, {ours}, {http}}}"), &["telemetry_stalls"]),
            (
                format!(r#"{{{quiet}, {http}, "otlpEndpoint": "http://localhost:10436/v1"}}"#),
                &["telemetry_path"],
            ),
            (format!(r#"{{{quiet}, "outfile": "/var/log/t.log"}}"#), &[]),
            (format!(r#"{{{quiet}, "outfile": "t.log"}}"#), &["telemetry_outfile_relative"]),
            (format!(r#"{{"enabled": true, {ours}}}"#), &["telemetry_log_prompts"]),
        ] {
            assert_eq!(told(&telemetry, true, None), want, "{telemetry}");
        }
        assert_eq!(told(&format!("{{{quiet}, {ours}, {http}}}"), true, Some(7)), [""; 0]);
        assert_eq!(told(&format!("{{{quiet}, {ours}}}"), false, Some(7)), ["telemetry_grpc"]);
    }

    #[test]
    fn few_watches_and_misspelt_variables_are_warned_of() {
        let mut with = facts(home(HomeState::Present));
        with.watch.max_user_watches = Some(9);
        with.unknown_variables = vec!["GEMGAUGE_DBB".into()];
        assert_eq!(codes(with.clone()), (true, vec!["few_watches", "unknown_variable"]));
        with.watch.enabled = false;
        with.listener_refused = Some("0.0.0.0:10436 can be reached".into());
        assert_eq!(codes(with.clone()), (false, vec!["listener_refused", "unknown_variable"]));
        with.listener_refused = None;
        with.lock_broken = Some("web.yml, line 1".into());
        assert_eq!(codes(with), (false, vec!["lock_broken", "unknown_variable"]));
    }
}
