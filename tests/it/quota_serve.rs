//! Quota through the real binary: a home that is signed in, a Code Assist of
//! our own on loopback, and every surface that shows what it said.

use std::process::Command;

use gemgauge::ledger::quota::RISK;
use gemgauge::sources::quota::account_of_email;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::support::code_assist::{Answer, CodeAssist, LOAD, QUOTA};
use crate::support::files::{files, fixture, json as json_of};
use crate::support::overheard::assert_nowhere;
use crate::support::poll::{until, until_eq};
use crate::support::service::{Answer as Http, Service};
use crate::support::signed_in::{ADDRESS, sign_in};
use crate::support::{Said, Sandbox};

const SENTINEL: &str = "ya29.s3ntinel-FAKE-token";
const BOTH: [&str; 2] = [LOAD, QUOTA];
const HOUR: i64 = 3_600_000;

/// A user who is signed in, and the service that the sign-in is for.
struct Machine {
    sandbox: Sandbox,
    google: CodeAssist,
    /// When the limits reset, unix ms; whole seconds.
    resets_at: i64,
}

impl Machine {
    fn new() -> Self {
        let machine = Self {
            sandbox: Sandbox::new(),
            google: CodeAssist::start(),
            resets_at: Timestamp::now().as_second() * 1_000 + 3 * HOUR,
        };
        let credentials = json!({"access_token": SENTINEL, "refresh_token": SENTINEL, "id_token": SENTINEL,
                                 "expiry_date": machine.resets_at});
        sign_in(&machine.sandbox.home(), &credentials);
        let reset = Timestamp::from_millisecond(machine.resets_at).unwrap().to_string();
        machine.google.says(
            QUOTA,
            [Answer::buckets(&json!([
                {"modelId": "gemini-2.5-pro", "tokenType": "REQUESTS", "remainingAmount": "1080",
                 "remainingFraction": 0.72, "resetTime": reset},
                {"modelId": "gemini-2.5-flash", "tokenType": "REQUESTS", "remainingFraction": 0,
                 "resetTime": reset},
                {"modelId": "gemini-3-pro-preview", "tokenType": "REQUESTS", "resetTime": reset},
            ]))],
        );
        machine
    }

    /// The command with what leads it to the service, and nothing of the real machine.
    fn led(&self, mut command: Command) -> Command {
        command.env("CODE_ASSIST_ENDPOINT", self.google.url());
        command.env("GEMINI_CLI_SYSTEM_SETTINGS_PATH", self.sandbox.path().join("no-settings.json"));
        command.env("GEMGAUGE_LOG_LEVEL", "trace");
        command
    }

    fn run(&self, args: &[&str]) -> Said {
        self.led(self.sandbox.command(args)).output().unwrap().into()
    }

    fn serve(&self, args: &[&str]) -> Service {
        let command = self.led(self.sandbox.serve_command(args));
        let service = Service::start(command, self.sandbox.path().join("serve.log"));
        service.wait_ready();
        service
    }

    /// Serves, and returns once the poll at start is shown.
    fn serve_polled(&self) -> Service {
        let service = self.serve(&["--quota"]);
        until("the poll at start", || {
            let (name, home) = only_home(&service);
            if home["state"] == "off" { Err((name, home)) } else { Ok(()) }
        });
        service
    }
}

/// Name and standing of the one home there is.
fn only_home(service: &Service) -> (String, Value) {
    let state = service.json("/api/v1/state");
    let homes: Vec<_> = state["quota"].as_object().unwrap().clone().into_iter().collect();
    let [home] = homes.try_into().unwrap();
    home
}

fn post(service: &Service, events: &[Value]) -> Http {
    let body: String = events.iter().map(|event| format!("{event}\n")).collect();
    let request = format!(
        "POST /api/v1/events HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\
         Content-Type: application/x-ndjson\r\nContent-Length: {}\r\n\r\n{body}",
        service.address,
        body.len()
    );
    service.exchange(&request).unwrap()
}

/// A turn that ends with what the real CLI was recorded to answer.
fn refused_turn(machine: &Machine, capture: &str) -> Vec<Value> {
    let recorded = json_of(&fixture("quota").join(capture));
    let error = recorded["replies"]["session/prompt[0]"]["error"].clone();
    assert_eq!(error["code"], 429, "{capture}");
    let home = std::fs::canonicalize(machine.sandbox.home()).unwrap();
    let now = Timestamp::now().as_millisecond();
    let event = |id: &str, at: i64, kind: &str, more: Value| {
        let mut event = json!({"v": 1, "event_id": id, "at": at, "host": "w1", "home": home, "kind": kind,
                               "session_id": "5e551010-0000-4000-8000-000000000001"});
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        event
    };
    vec![
        event("1", now - 2, "session_opened", json!({"model": "gemini-2.5-flash"})),
        event("2", now - 1, "turn_started", json!({"turn": 1})),
        event("3", now, "turn_ended", json!({"turn": 1, "error": error})),
    ]
}

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn q9_q15_what_google_says_is_on_every_surface_of_the_service() {
    let machine = Machine::new();
    let service = machine.serve_polled();
    let (home, standing) = only_home(&service);
    assert_eq!(standing["state"], "ok", "{standing}");
    let account = account_of_email(ADDRESS).unwrap();

    let state = service.json("/api/v1/state");
    let limits = state["rate_limits"].as_array().unwrap();
    let shown: Vec<_> = limits
        .iter()
        .map(|limit| {
            assert_eq!((limit["home"].as_str(), limit["account"].as_str()), (Some(&*home), Some(&*account)));
            assert_eq!(limit["cloud_project"], "assigned-project");
            let resets_at: Timestamp = limit["resets_at"].as_str().unwrap().parse().unwrap();
            assert_eq!(resets_at.as_millisecond(), machine.resets_at);
            let fraction = limit["remaining_fraction"].as_f64();
            (limit["model"].as_str().unwrap(), fraction, limit["limit"].as_i64())
        })
        .collect();
    let wanted = [
        ("gemini-2.5-flash", Some(0.0), None),
        ("gemini-2.5-pro", Some(0.72), Some(1500)),
        ("gemini-3-pro-preview", None, None),
    ];
    assert_eq!(shown, wanted);

    // The command reads the same ledger, and asks nobody.
    let mut served = service.json("/api/v1/quota");
    let said = machine.run(&["quota", "--json", "--no-scan"]);
    assert_eq!(said.code, 1, "nothing allows it to ask: {}", said.err);
    let mut said = parsed(&said.out);
    for document in [&mut served, &mut said] {
        document.as_object_mut().unwrap().remove("at").expect("it says when it was made");
    }
    assert_eq!(served, said);
    assert_eq!(served["limits"].as_array().unwrap().len(), 3);

    let metrics = service.metrics();
    let of = |name: &str, model: &str| {
        let labels = [
            ("account", &*account),
            ("cloud_project", "assigned-project"),
            ("model", model),
            ("token_type", "REQUESTS"),
        ];
        metrics.value(name, &labels)
    };
    for (model, fraction, _) in wanted {
        assert_eq!(of("gemgauge_quota_remaining_ratio", model), fraction, "{model}");
        let reported = f64::from(u8::from(fraction.is_some()));
        assert_eq!(of("gemgauge_quota_reported", model), Some(reported), "{model}");
        let reset = of("gemgauge_quota_reset_timestamp_seconds", model);
        assert_eq!(reset, Some((machine.resets_at / 1_000) as f64), "{model}");
        assert_eq!(of("gemgauge_quota_contradicted", model), Some(0.0), "{model}");
    }
    let empty = [("model", "gemini-2.5-flash"), ("evidence", "poll")];
    assert_eq!(metrics.value("gemgauge_quota_blocked", &empty), Some(1.0));
    for series in metrics.of("gemgauge_quota_state", &[("home", &home)]) {
        let ok = series.labels.contains(&("state".into(), "ok".into()));
        assert_eq!(series.value, f64::from(u8::from(ok)), "{series:?}");
    }
    assert_eq!(metrics.value("gemgauge_quota_state", &[("home", &home), ("state", "ok")]), Some(1.0));
    assert_eq!(metrics.value("gemgauge_quota_polls_total", &[("home", &home), ("result", "ok")]), Some(1.0));
    let info = [("home", &*home), ("account", &*account), ("cloud_project", "assigned-project")];
    assert_eq!(metrics.value("gemgauge_quota_home_info", &info), Some(1.0));

    assert_eq!(service.terminate(), Some(0));
    let asked = machine.google.asked();
    let paths: Vec<_> = asked.iter().map(|asked| asked.path.as_str()).collect();
    assert_eq!(paths, ["/v1internal:loadCodeAssist", "/v1internal:retrieveUserQuota"], "one poll at start");
    assert_eq!(asked[1].question, json!({"project": "assigned-project"}));
    for asked in asked {
        assert_eq!((asked.method.as_str(), asked.token.as_deref()), ("POST", Some(SENTINEL)));
        assert!(asked.agent.unwrap().starts_with("gemgauge/"));
    }
}

/// The ledger, what stands beside it, spools: all but the sign-in itself.
fn written(machine: &Machine) -> Vec<(String, Vec<u8>)> {
    let mut found = files(machine.sandbox.path());
    found.retain(|path| !path.starts_with(machine.sandbox.home().join(".gemini")));
    assert!(found.contains(&machine.sandbox.ledger()), "{found:?}");
    found.iter().map(|path| (path.display().to_string(), std::fs::read(path).unwrap())).collect()
}

#[test]
fn q8_the_token_is_in_nothing_that_is_written_served_or_said() {
    let echo = json!({"error": {"code": 500, "message": SENTINEL, "status": ADDRESS,
                                "details": [{"reason": SENTINEL, "retryDelay": ADDRESS}]}});
    let cases = [
        ("success", None, "ok"),
        ("401", Some(Answer::json(401, &echo)), "waiting_for_refresh"),
        ("429", Some(Answer::json(429, &echo).with("retry-after", SENTINEL)), "unavailable"),
        ("500", Some(Answer::json(500, &echo)), "unavailable"),
        ("no JSON", Some(Answer::text(200, "text/html", format!("{SENTINEL} {ADDRESS}"))), "unavailable"),
        (
            "redirect",
            Some(Answer::text(302, "text/plain", SENTINEL).with("location", "/elsewhere")),
            "unavailable",
        ),
    ];
    for (case, answer, state) in cases {
        let machine = Machine::new();
        if let Some(answer) = answer {
            machine.google.says(QUOTA, [answer]);
        }
        let service = machine.serve_polled();
        assert_eq!(only_home(&service).1["state"], state, "{case}");
        let mut places: Vec<(String, Vec<u8>)> = Vec::new();
        for path in [
            "/",
            "/metrics",
            "/-/ready",
            "/api/v1/state",
            "/api/v1/quota",
            "/api/v1/report/daily?since=all",
            "/api/v1/report/homes?since=all",
        ] {
            let answer = service.get(path);
            assert_eq!(answer.status, 200, "{path}");
            places.push((path.into(), format!("{answer:?}").into_bytes()));
        }
        // With the write-ahead log, which goes when the service does.
        let wal = machine.sandbox.ledger().with_extension("db-wal").display().to_string();
        let now = written(&machine);
        assert!(now.iter().any(|(path, content)| *path == wal && !content.is_empty()), "{case}");
        places.extend(now);
        places.push(("standard output".into(), service.said().join("\n").into_bytes()));
        assert!(service.log().contains("quota was polled"), "{case}: the log says all");
        assert_eq!(service.terminate(), Some(0), "{case}");
        assert_eq!(machine.google.take_calls(), BOTH, "{case}");

        for args in [
            &["quota", "--poll", "-vvv"][..],
            &["quota", "--poll", "--json"],
            &["status"],
            &["doctor"],
            &["doctor", "--json"],
        ] {
            let said = machine.run(args);
            assert!(!said.out.is_empty(), "{case} {args:?}: {said:?}");
            places.push((format!("{args:?}"), (said.out + &said.err).into_bytes()));
        }
        assert_eq!(machine.google.asked().len(), 4, "{case}: it was polled twice more");
        assert!(machine.google.asked().iter().all(|asked| asked.token.as_deref() == Some(SENTINEL)));
        places.extend(written(&machine));
        for secret in [SENTINEL, ADDRESS] {
            let named = places.iter().map(|(place, content)| (place.as_str(), content.as_slice()));
            assert_nowhere(secret, named);
        }
    }
}

#[test]
fn q2_q14_a_refused_turn_is_counted_shown_and_wakes_the_poller() {
    let machine = Machine::new();
    let service = machine.serve_polled();
    assert!(!service.log().contains("event=Refused"), "{}", service.log());
    let answer = post(&service, &refused_turn(&machine, "acp_429_individual.json"));
    assert_eq!((answer.status, &answer.json()["accepted"]), (202, &json!(3)), "{answer:?}");

    let (home, _) = only_home(&service);
    let home = [("home", &*home)];
    // The message names no model, and an empty limit counts for itself.
    let unnamed = [home[0], ("model", "unknown")];
    let counted = || {
        let metrics = service.metrics();
        let sum = |name: &str| metrics.sum(name, &unnamed);
        (
            sum("gemgauge_quota_rejections_total"),
            sum("gemgauge_quota_exhaustions_total"),
            sum("gemgauge_capacity_rejections_total"),
        )
    };
    until_eq("one refusal", &(1, 1, 0), counted);
    until("a wake", || {
        let log = service.log();
        if log.contains("event=Refused") { Ok(()) } else { Err(log) }
    });
    let said = machine.run(&["quota"]);
    assert!(said.out.contains("  refused at "), "{}", said.out);
    let refusals = service.json("/api/v1/quota")["refusals"].clone();
    assert_eq!(refusals.as_array().map(Vec::len), Some(1), "{refusals}");

    // The same again is a duplicate.
    let again = post(&service, &refused_turn(&machine, "acp_429_individual.json"));
    assert_eq!(again.json()["duplicate"], 3, "{again:?}");
    assert_eq!(counted(), (1, 1, 0));
    assert_eq!(service.terminate(), Some(0));

    // What was told is no news to the next service.
    let service = machine.serve_polled();
    assert_eq!(service.metrics().sum("gemgauge_quota_rejections_total", &home), 1);
    assert_eq!(service.log().matches("event=Refused").count(), 1, "of both services");
    assert_eq!(service.terminate(), Some(0));
}

#[test]
fn q1_nobody_is_asked_before_somebody_says_so() {
    let machine = Machine::new();
    let service = machine.serve(&[]);
    assert_eq!(only_home(&service).1["state"], "off");
    assert_eq!(post(&service, &refused_turn(&machine, "acp_429_perday.json")).status, 202);
    until("the refusal", || {
        let metrics = service.metrics();
        if metrics.sum("gemgauge_quota_rejections_total", &[]) == 1 { Ok(()) } else { Err(metrics) }
    });
    assert_eq!(service.json("/api/v1/state")["rate_limits"], json!([]));
    assert_eq!(service.terminate(), Some(0));

    let said = machine.run(&["quota"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(words(&said.out).contains(": not polled"), "{}", said.out);
    assert!(words(&said.out).ends_with(&words(RISK)), "{}", said.out);
    assert_eq!(machine.google.take_calls(), [""; 0]);

    // The flag is the consent, for this once.
    let said = machine.run(&["quota", "--poll"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(
        words(&said.out).contains("72 % left") && !words(&said.out).contains(&words(RISK)),
        "{}",
        said.out
    );
    assert_eq!(machine.google.take_calls(), BOTH);
    let said = machine.run(&["quota"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.out.contains("72 % left"), "{}", said.out);
    assert_eq!(machine.google.take_calls(), [""; 0]);

    // So is the configuration, for good.
    machine.sandbox.write("home/.config/gemgauge/config.yml", "quota:\n  enabled: true\n");
    let said = machine.run(&["quota"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(machine.google.take_calls(), BOTH);
}
