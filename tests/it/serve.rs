//! The service as an operator meets it: the real binary, real files, real HTTP.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::support::Sandbox;
use crate::support::chats::{MODEL, Project, Spent};
use crate::support::exposition::Exposition;
use crate::support::poll::{until, until_eq};
use crate::support::service::{Service, spent, total};

const ANA: &str = "aaaaaaaa-0000-4000-8000-000000000001";
const BEN: &str = "bbbbbbbb-0000-4000-8000-000000000002";
const CY: &str = "cccccccc-0000-4000-8000-000000000003";

/// Without a watcher scans alone find everything, every second.
const NO_WATCHER: &str = "journals: {watch: false, rescan_seconds: 1, idle_rescan_seconds: 1}\n";

const CONFIG: &str = "home/.config/gemgauge/config.yml";

/// The command line's report of everything, as JSON.
fn report(sandbox: &Sandbox, args: &[&str]) -> Value {
    let said = sandbox.run(&[&["report", "--since", "all", "--json"], args].concat());
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    serde_json::from_str(&said.out).unwrap()
}

/// The row of a session.
fn session<'r>(report: &'r Value, id: &str) -> &'r Value {
    let rows = report["rows"].as_array().unwrap();
    rows.iter().find(|row| row["session_id"] == id).unwrap_or_else(|| panic!("{id} is in {report}"))
}

fn bytes_read(scrape: &Exposition) -> u64 {
    scrape.sum("gemgauge_journal_bytes_total", &[])
}

#[test]
fn one_line_says_where_the_page_and_the_metrics_are() {
    let sandbox = Sandbox::new();
    Project::new(&sandbox.home(), "proj").session(ANA).request();
    let service = sandbox.serve_ready(&[]);
    let at = service.address;
    assert_eq!(service.said(), [format!("gemgauge serves http://{at}/ with metrics at http://{at}/metrics")]);
    assert!(at.ip().is_loopback(), "R72");
}

#[test]
fn the_telemetry_path_is_where_the_line_says() {
    let sandbox = Sandbox::new();
    let service = sandbox.serve(&["--web.telemetry-path", "/spent"]);
    assert!(service.said()[0].ends_with("/spent"), "{:?}", service.said());
    assert_eq!((service.get("/spent").status, service.get("/metrics").status), (200, 404));
}

#[test]
fn every_route_answers() {
    let sandbox = Sandbox::new();
    let journal = Project::new(&sandbox.home(), "proj").session(ANA);
    journal.requests(3);
    let service = sandbox.serve_ready(&[]);

    let page = service.get("/");
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    assert!(page.body.contains(r#"href="metrics""#), "{}", page.body);
    assert_eq!(service.get("/-/healthy").body, "healthy\n");
    assert_eq!(service.get("/-/ready").body, "ready\n");

    let text = service.get("/metrics");
    assert!(text.header("content-type").unwrap().starts_with("text/plain; version=0.0.4"), "{text:?}");
    assert_eq!(Exposition::parse(&text.body).spent(&[("project", "proj")]), journal.spent().pair());
    let accept = [("Accept", "application/openmetrics-text;version=1.0.0")];
    let open = service.ask("GET", "/metrics", &accept);
    assert!(open.header("content-type").unwrap().starts_with("application/openmetrics-text"), "{open:?}");
    assert!(open.body.ends_with("# EOF\n"));
    assert_eq!(Exposition::parse(&open.body).spent(&[("project", "proj")]), journal.spent().pair());

    let state = service.json("/api/v1/state");
    assert_eq!(state["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(state["sessions"][0]["session_id"], ANA);
    assert_eq!(spent(&state["totals"]), journal.spent());
    for kind in ["daily", "weekly", "monthly", "sessions", "models", "projects", "homes"] {
        let report = service.json(&format!("/api/v1/report/{kind}"));
        assert_eq!((&report["kind"], total(&report)), (&Value::from(kind), journal.spent()));
    }
    for id in [ANA, &ANA[..8], "latest"] {
        let explained = service.json(&format!("/api/v1/sessions/{id}"));
        assert_eq!(explained["session"]["session_id"], ANA, "{explained}");
    }
    assert_eq!(service.ask("HEAD", "/metrics", &[]).body, "");
}

#[test]
fn what_is_not_there_or_not_understood_is_an_error_in_json() {
    let sandbox = Sandbox::new();
    Project::new(&sandbox.home(), "proj").session(ANA).request();
    let service = sandbox.serve_ready(&[]);
    for (method, path, status, code) in [
        ("GET", "/nothing", 404, "not_found"),
        ("GET", "/api/v1/report/yearly", 404, "unknown_report"),
        ("GET", "/api/v1/sessions/ffffffff", 404, "unknown_session"),
        ("POST", "/metrics", 405, "method_not_allowed"),
        ("DELETE", "/api/v1/state", 405, "method_not_allowed"),
        ("GET", "/api/v1/report/daily?since=never", 400, "bad_parameter"),
        ("GET", "/api/v1/report/daily?timezone=Mars/Olympus", 400, "bad_parameter"),
        ("GET", "/api/v1/report/daily?sort=cost&no-cost=true", 400, "bad_parameter"),
        ("GET", "/api/v1/report/daily?color=red", 400, "unknown_parameter"),
        ("GET", "/api/v1/sessions/%ff", 400, "bad_path"),
    ] {
        let answer = service.ask(method, path, &[]);
        assert_eq!(
            (answer.status, answer.header("content-type")),
            (status, Some("application/json")),
            "{path}"
        );
        let error = &answer.json()["error"];
        assert_eq!(error["code"], code, "{method} {path}: {error}");
        assert!(error["message"].as_str().is_some_and(|message| message.len() > 5), "{error}");
    }
}

#[test]
fn r72_a_body_over_one_mebibyte_is_refused() {
    let sandbox = Sandbox::new();
    let service = sandbox.serve(&[]);
    let answer = service.ask("POST", "/api/v1/state", &[("Content-Length", "1048577")]);
    assert_eq!((answer.status, &answer.json()["error"]["code"]), (413, &Value::from("body_too_large")));
}

#[test]
fn r72_a_name_that_is_not_ours_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.write(CONFIG, "web: {allowed_hosts: [gauge.example]}\n");
    let service = sandbox.serve(&[]);
    for path in ["/", "/metrics", "/-/healthy", "/api/v1/state", "/nothing"] {
        let answer = service.ask("GET", path, &[("Host", "evil.example")]);
        assert_eq!(
            (answer.status, &answer.json()["error"]["code"]),
            (421, &Value::from("wrong_host")),
            "{path}"
        );
    }
    assert_eq!(service.ask("GET", "/-/healthy", &[("Host", "gauge.example:80")]).status, 200);
    let none = service.exchange("GET / HTTP/1.1\r\nConnection: close\r\n\r\n").unwrap();
    assert_eq!(none.status, 400);
}

/// A home that Gemini CLI never used is waited for; then what happens in it counts.
fn appears_later(config: &str) {
    let sandbox = Sandbox::new();
    sandbox.write(CONFIG, config);
    let service = sandbox.serve_ready(&[]);
    let home = sandbox.home().canonicalize().unwrap();
    let waiting = format!(
        "No Gemini CLI was used below {} yet: waiting for {}",
        home.display(),
        home.join(".gemini").display()
    );
    assert_eq!(service.said()[1..], [waiting]);
    assert_eq!(service.spent(), Spent::default());
    let journal = Project::new(&sandbox.home(), "proj").session(ANA);
    journal.requests(2);
    service.wait_spent(journal.spent());
    journal.request();
    service.wait_spent(journal.spent());
}

#[test]
fn r11_a_home_without_gemini_cli_is_waited_for() {
    appears_later("");
}

#[test]
fn r11_a_home_without_gemini_cli_is_waited_for_without_a_watcher_too() {
    appears_later(NO_WATCHER);
}

/// Lines, journals and projects that come while it runs.
fn follows(config: &str) {
    let sandbox = Sandbox::new();
    sandbox.write(CONFIG, config);
    let project = Project::new(&sandbox.home(), "proj");
    let ana = project.session(ANA);
    ana.request();
    let service = sandbox.serve_ready(&[]);
    service.wait_spent(ana.spent());
    ana.request();
    service.wait_spent(ana.spent());
    let ben = project.session(BEN);
    ben.request();
    service.wait_spent(ana.spent().plus(ben.spent()));
    let cy = Project::new(&sandbox.home(), "other").session(CY);
    cy.requests(2);
    let all = ana.spent().plus(ben.spent()).plus(cy.spent());
    service.wait_spent(all);
    let projects = service.json("/api/v1/report/projects?since=all");
    let row = projects["rows"].as_array().unwrap().iter().find(|row| row["key"] == "other").unwrap();
    assert_eq!(spent(row), cy.spent());
    assert_eq!(service.metrics().sum("gemgauge_watch_fallback", &[]), 0);
}

#[test]
fn r22_an_appended_line_a_new_journal_and_a_new_project_are_seen() {
    follows("");
}

#[test]
fn r23_everything_is_seen_without_a_watcher_too() {
    follows(NO_WATCHER);
}

/// What was appended just before an unlink is read through the held descriptor.
fn deleted_after_an_append(config: &str, restart: bool) {
    let sandbox = Sandbox::new();
    sandbox.write(CONFIG, config);
    let project = Project::new(&sandbox.home(), "proj");
    let journals = [project.session(ANA), project.session(BEN), project.session(CY)];
    journals.iter().for_each(|journal| journal.requests(1));
    let sum = || journals.iter().fold(Spent::default(), |sum, journal| sum.plus(journal.spent()));
    let mut service = sandbox.serve_ready(&[]);
    if restart {
        assert_eq!(service.terminate(), Some(0));
        service = sandbox.serve_ready(&[]);
        until("a look by the second serve", || {
            let looked = service.metrics().sum("gemgauge_source_up", &[("source", "journal")]);
            if looked == 1 { Ok(()) } else { Err(looked) }
        });
    }
    for journal in &journals {
        journal.requests(5);
        journal.delete();
    }
    service.wait_spent(sum());
    let sessions = service.json("/api/v1/report/sessions?since=all");
    for id in [ANA, BEN, CY] {
        until_eq("the note that its source is deleted", &Value::Bool(true), || {
            session(&service.json("/api/v1/report/sessions?since=all"), id)["source_deleted"].clone()
        });
        let reasons = session(&sessions, id)["reasons"].to_string();
        assert!(!reasons.contains("journal_lost"), "{reasons}");
    }
    assert_eq!(service.metrics().sum("gemgauge_journals_lost_total", &[]), 0);
}

#[test]
fn r23_what_was_appended_before_an_unlink_is_counted() {
    deleted_after_an_append("", false);
}

#[test]
fn r23_what_was_appended_before_an_unlink_is_counted_without_a_watcher_too() {
    deleted_after_an_append(NO_WATCHER, false);
}

#[test]
fn r23_what_was_appended_before_an_unlink_is_counted_after_a_restart_too() {
    deleted_after_an_append(NO_WATCHER, true);
}

#[test]
fn sigterm_ends_it_with_0_at_any_moment_and_leaves_no_lock() {
    let sandbox = Sandbox::new();
    Project::new(&sandbox.home(), "proj").session(ANA).request();
    for _ in 0..5 {
        // At once after its first line.
        assert_eq!(sandbox.serve(&[]).terminate(), Some(0));
    }
    for _ in 0..2 {
        let service = sandbox.serve_ready(&[]);
        // A connection that is kept open, as Prometheus does, and one that says nothing.
        let _idle = std::net::TcpStream::connect(service.address).unwrap();
        assert_eq!(service.get("/metrics").status, 200);
        assert_eq!(service.terminate(), Some(0));
    }
    let doctor: Value = serde_json::from_str(&sandbox.run(&["doctor", "--json"]).out).unwrap();
    assert_eq!(doctor["ledger"]["serve_pid"], Value::Null, "{doctor}");
}

#[test]
fn a_first_import_cut_short_by_sigterm_goes_on_at_the_next_start() {
    let sandbox = Sandbox::new();
    let project = Project::new(&sandbox.home(), "proj");
    let journals: Vec<_> =
        (0..400).map(|n| project.session(&format!("{n:08x}-0000-4000-8000-000000000000"))).collect();
    journals.iter().for_each(|journal| journal.requests(20));
    let all = journals.iter().fold(Spent::default(), |sum, journal| sum.plus(journal.spent()));
    assert_eq!(sandbox.serve(&[]).terminate(), Some(0));
    let service = sandbox.serve_ready(&[]);
    assert_eq!(service.spent(), all, "ready means that everything is there");
    assert_eq!(service.metrics().spent(&[]), all.pair(), "history is not spend");
    let size: u64 = journals.iter().map(|journal| journal.len()).sum();
    assert_eq!(bytes_read(&service.metrics()), size);
}

#[test]
fn a_second_serve_on_a_ledger_exits_with_1_and_names_the_first() {
    let sandbox = Sandbox::new();
    let first = sandbox.serve_ready(&[]);
    let second = sandbox.serve_command(&[]).output().unwrap();
    let said = String::from_utf8(second.stderr).unwrap();
    assert_eq!((second.status.code(), second.stdout.len()), (Some(1), 0), "{said}");
    assert!(said.contains(&format!("(pid {})", first.pid())), "{said}");
    assert_eq!(first.get("/-/healthy").status, 200);

    // Another ledger is another service.
    let other = sandbox.path().join("other.db");
    let third = sandbox.serve_ready(&["--db", other.to_str().unwrap()]);
    assert_eq!(third.terminate(), Some(0));
    first.kill();
    sandbox.serve_ready(&[]);
}

#[test]
fn a_report_beside_a_serve_gives_the_same_figures_and_nothing_is_read_twice() {
    let sandbox = Sandbox::new();
    let project = Project::new(&sandbox.home(), "proj");
    let journals = [project.session(ANA), project.session(BEN)];
    let service = sandbox.serve_ready(&[]);
    let mut reports = Vec::new();
    for round in 0..30 {
        journals[round % 2].requests(3);
        let report = sandbox.command(&["report", "sessions", "--since", "all", "--json"]);
        reports.push(report_in_background(report));
    }
    for report in reports {
        assert_eq!(report.wait_with_output().unwrap().status.code(), Some(0));
    }
    let all = journals[0].spent().plus(journals[1].spent());
    service.wait_spent(all);
    let ours = report(&sandbox, &["sessions"]);
    assert_eq!(total(&ours), all);
    assert_eq!(ours, service.json("/api/v1/report/sessions?since=all"));

    // Compare-and-set: whoever reads a line first, it is counted by one.
    let size = journals[0].len() + journals[1].len();
    until_eq("every byte, once", &size, || bytes_read(&service.metrics()));
    let scrape = service.metrics();
    let lines = |kind: &str| scrape.sum("gemgauge_journal_lines_total", &[("kind", kind)]);
    assert_eq!((lines("request"), lines("repeat"), lines("undecodable")), (all.requests, 0, 0));
    assert_eq!(lines("control"), all.requests + 2, "one $set a request, and the headers");
    assert_eq!(scrape.spent(&[]), all.pair());
    assert_eq!(scrape.sum("gemgauge_journal_revisions_total", &[]), 0);
}

fn report_in_background(mut command: Command) -> std::process::Child {
    let (out, err) = (std::process::Stdio::null(), std::process::Stdio::inherit());
    command.stdout(out).stderr(err).spawn().unwrap()
}

#[test]
fn counters_and_reports_are_the_same_sums() {
    let sandbox = Sandbox::new();
    for (project, id, count) in [("one", ANA, 4), ("two", BEN, 1), ("two", CY, 7)] {
        Project::new(&sandbox.home(), project).session(id).requests(count);
    }
    let service = sandbox.serve_ready(&[]);
    let scrape = service.metrics();
    let report = report(&sandbox, &["projects"]);
    assert_eq!(scrape.spent(&[]), total(&report).pair());
    for row in report["rows"].as_array().unwrap() {
        let project = row["key"].as_str().unwrap();
        let labels = [("project", project), ("model", MODEL), ("role", "main")];
        assert_eq!(scrape.spent(&labels), spent(row).pair(), "{project}");
    }
    let distinct: std::collections::BTreeSet<_> =
        scrape.0.iter().map(|series| format!("{} {:?}", series.name, series.labels)).collect();
    assert_eq!(distinct.len(), scrape.0.len(), "no label set comes twice");
}

#[test]
fn r69_a_restart_reads_nothing_again_and_shows_every_counter_at_once() {
    let sandbox = Sandbox::new();
    let project = Project::new(&sandbox.home(), "proj");
    let (ana, ben) = (project.session(ANA), project.session(BEN));
    ana.requests(3);
    ben.request();
    let service = sandbox.serve_ready(&[]);
    service.wait_spent(ana.spent().plus(ben.spent()));
    // Born while it serves; nobody scrapes, so it would still stand at 0.
    let cy = Project::new(&sandbox.home(), "late").session(CY);
    cy.request();
    let all = ana.spent().plus(ben.spent()).plus(cy.spent());
    service.wait_spent(all);
    let before = bytes_read(&service.metrics());
    assert_eq!(before, ana.len() + ben.len() + cy.len());
    assert_eq!(service.terminate(), Some(0));
    for kill in [false, true] {
        let service = sandbox.serve(&[]);
        // The very first scrape.
        assert_eq!(service.metrics().spent(&[]), all.pair());
        service.wait_ready();
        until_eq("a look at everything", &1, || {
            service.metrics().sum("gemgauge_source_up", &[("source", "journal")])
        });
        assert_eq!(bytes_read(&service.metrics()), before);
        assert_eq!(service.metrics().sum("gemgauge_journal_revisions_total", &[]), 0);
        if kill { service.kill() } else { assert_eq!(service.terminate(), Some(0)) }
    }
}

#[test]
fn r23_a_deleted_journal_changes_no_figure_while_it_runs_or_is_down() {
    let sandbox = Sandbox::new();
    let project = Project::new(&sandbox.home(), "proj");
    let (ana, ben) = (project.session(ANA), project.session(BEN));
    ana.requests(2);
    ben.requests(3);
    let all = ana.spent().plus(ben.spent());
    let service = sandbox.serve_ready(&[]);
    service.wait_spent(all);
    let deleted = |service: &Service, id: &str| {
        session(&service.json("/api/v1/report/sessions?since=all"), id)["source_deleted"] == true
    };
    assert_eq!((deleted(&service, ANA), deleted(&service, BEN)), (false, false));
    ana.delete();
    until_eq("the deletion", &true, || deleted(&service, ANA));
    assert_eq!((service.spent(), service.metrics().spent(&[])), (all, all.pair()));
    assert_eq!(service.terminate(), Some(0));
    ben.delete();
    let service = sandbox.serve_ready(&[]);
    until_eq("the deletion", &true, || deleted(&service, BEN));
    assert_eq!((service.spent(), service.metrics().spent(&[])), (all, all.pair()));
    assert_eq!(service.metrics().sum("gemgauge_journals", &[("state", "gone")]), 2);
    fs::remove_dir_all(sandbox.home().join(".gemini")).unwrap();
    assert_eq!(total(&report(&sandbox, &[])), all);
}

#[test]
fn a_label_set_born_while_it_serves_stands_at_0_in_the_scrape_that_sees_it_first() {
    let sandbox = Sandbox::new();
    let old = Project::new(&sandbox.home(), "old").session(ANA);
    old.requests(2);
    let service = sandbox.serve_ready(&[]);
    assert_eq!(service.metrics().spent(&[("project", "old")]), old.spent().pair(), "history is not spend");
    let new = Project::new(&sandbox.home(), "new").session(BEN);
    new.requests(2);
    service.wait_spent(old.spent().plus(new.spent()));
    // HEAD has no body: nobody saw anything.
    assert_eq!(service.ask("HEAD", "/metrics", &[]).status, 200);
    let first = service.metrics();
    let of_new = |scrape: &Exposition| scrape.of("gemgauge_tokens_total", &[("project", "new")]).count();
    assert_eq!((of_new(&first), first.spent(&[("project", "new")])), (5, Spent::default().pair()));
    assert_eq!(first.of("gemgauge_requests_total", &[("project", "new")]).count(), 1);
    assert_eq!(service.metrics().spent(&[("project", "new")]), new.spent().pair());
    assert_eq!(service.metrics().spent(&[("project", "old")]), old.spent().pair());
}

#[test]
fn a_project_directory_copied_to_its_slug_and_then_deleted_counts_once() {
    let sandbox = Sandbox::new();
    let slug = Project::new(&sandbox.home(), "proj");
    let hash = sha256(slug.root());
    fs::remove_dir_all(slug.dir()).unwrap();
    let old = sandbox.home().join(".gemini/tmp").join(&hash);
    fs::create_dir_all(old.join("chats")).unwrap();
    let journal = Project::new(&sandbox.home(), "proj").session(ANA);
    journal.requests(3);
    let there = old.join("chats").join(journal.path.file_name().unwrap());
    fs::rename(&journal.path, &there).unwrap();
    fs::remove_dir_all(slug.dir()).unwrap();

    let service = sandbox.serve_ready(&[]);
    service.wait_spent(journal.spent());
    let before = service.metrics();
    // The CLI copies the directory (fs.cp), and somebody tidies up.
    fs::create_dir_all(slug.dir().join("chats")).unwrap();
    fs::write(slug.dir().join(".project_root"), slug.root()).unwrap();
    fs::copy(&there, &journal.path).unwrap();
    until_eq("the copy", &(2 * journal.len()), || bytes_read(&service.metrics()));
    fs::remove_dir_all(&old).unwrap();
    journal.request();
    service.wait_spent(journal.spent());
    let projects = service.json("/api/v1/report/projects?since=all");
    assert_eq!(projects["rows"].as_array().unwrap().len(), 1, "one project: {projects}");
    let row = service.json("/api/v1/report/sessions?since=all");
    assert_eq!(session(&row, ANA)["source_deleted"], false);
    // No value moves to another label.
    let project = |scrape: &Exposition| {
        let series = scrape.of("gemgauge_requests_total", &[]);
        series.map(|series| series.labels[1].1.clone()).collect::<Vec<_>>()
    };
    let after = service.metrics();
    assert_eq!(project(&before), project(&after));
    assert_eq!(after.spent(&[]), journal.spent().pair());
}

fn sha256(text: &str) -> String {
    let out = Command::new("sh").args(["-c", "printf %s \"$1\" | sha256sum", "sh", text]).output().unwrap();
    String::from_utf8(out.stdout).unwrap()[..64].to_owned()
}

#[test]
fn r75_the_time_zone_of_the_process_changes_no_time_and_no_figure() {
    for zone in ["Pacific/Apia", "Asia/Kathmandu", "America/St_Johns", "Nowhere/AtAll", ":/etc/nothing"] {
        let sandbox = Sandbox::new();
        let journal = Project::new(&sandbox.home(), "proj").session(ANA);
        journal.requests(2);
        let mut command = sandbox.serve_command(&[]);
        command.env("TZ", zone);
        let service = Service::start(command, sandbox.path().join("serve.log"));
        service.wait_ready();
        service.wait_spent(journal.spent());
        let explained = service.json("/api/v1/sessions/latest");
        let started = explained["session"]["started_at"].as_str().unwrap();
        let header = fs::read_to_string(&journal.path).unwrap();
        assert!(header.lines().next().unwrap().contains(started), "{zone}: {started}");
        let days = service.json("/api/v1/report/daily?timezone=UTC");
        assert_eq!(total(&days), journal.spent(), "{zone}");
        assert_eq!(service.metrics().sum("gemgauge_live_sessions", &[]), 1, "{zone}");
    }
}
