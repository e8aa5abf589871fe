//! The page as people meet it, in a real browser: its figures are the API's,
//! it is up to date, it says nothing it should not, and everybody can use it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use gemgauge::ledger::money::{Picodollars, Rounding};
use serde_json::{Value, json};

use crate::quota::polled;
use crate::support::Sandbox;
use crate::support::browser::Browser;
use crate::support::chats::{Journal, MODEL, Project, stamp};
use crate::support::files::{copy_tree, fixture};
use crate::support::poll::until;
use crate::support::service::Service;

const ANA: &str = "aaaaaaaa-0000-4000-8000-000000000001";
const BEN: &str = "bbbbbbbb-0000-4000-8000-000000000002";
const HOSTILE: &str = "<img src=x onerror=alert(1)>";

/// A service over two projects, one of which is named to break the page.
fn served(sandbox: &Sandbox) -> (Service, Journal) {
    let journal = Project::new(&sandbox.home(), "proj").session(ANA);
    journal.requests(3);
    Project::new(&sandbox.home(), HOSTILE).session(BEN).requests(2);
    let service = sandbox.serve_ready(&[]);
    (service, journal)
}

/// `4,626`
fn thousands(count: u64) -> String {
    let digits = count.to_string();
    let groups: Vec<_> =
        digits.as_bytes().rchunks(3).rev().map(|group| std::str::from_utf8(group).unwrap()).collect();
    groups.join(",")
}

/// The tokens of a row as the command line prints them; all here are of journals alone.
fn tokens(row: &Value) -> String {
    assert_eq!(row["bound"], "at_least", "{row}");
    format!("≥ {}", thousands(row["tokens"]["total"].as_u64().unwrap()))
}

/// Where pictures go: to be looked at, not compared.
fn pictures() -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("page");
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

const TODAY: &str = "[data-tile=today] .figure";

#[test]
fn its_figures_are_those_of_the_api_and_of_the_command_line() {
    let sandbox = Sandbox::new();
    let (service, _journal) = served(&sandbox);
    let Some(mut browser) = Browser::start(service.address) else { return };
    browser.open("/");
    let today = service.json("/api/v1/report/daily?since=today");
    let figures = browser.texts(TODAY);
    assert_eq!(figures[1], tokens(&today["total"]));
    let printed = sandbox.run(&["report", "--since", "today"]).out;
    let total = printed.lines().rfind(|line| line.starts_with("Total")).unwrap();
    for figure in &figures {
        assert!(total.contains(figure.as_str()), "{figures:?} in {total}");
    }
    let totals = service.json("/api/v1/state")["totals"].clone();
    assert!(browser.texts(".tile .figure").contains(&tokens(&totals)));

    for (kind, place) in [("models", "by-model"), ("projects", "by-project")] {
        let report = service.json(&format!("/api/v1/report/{kind}?since=7d"));
        for row in report["rows"].as_array().unwrap() {
            let shown = browser.texts(&format!("section[aria-labelledby={place}] tbody tr"));
            let key = row["key"].as_str().unwrap();
            let line =
                shown.iter().find(|line| line.starts_with(key)).unwrap_or_else(|| panic!("{key}: {shown:?}"));
            assert!(line.contains(&tokens(row)), "{line}");
        }
    }

    browser.open(&format!("/#session={ANA}"));
    let explained = service.json(&format!("/api/v1/sessions/{ANA}"));
    assert!(browser.text("h1").ends_with(ANA));
    assert!(browser.texts(".facts dd .figure").contains(&tokens(&explained["session"])));
    let story: Vec<String> = serde_json::from_value(explained["story"].clone()).unwrap();
    assert_eq!(browser.texts("section[aria-labelledby=why] li"), story);
    let requests = browser.texts("section[aria-labelledby=requests] tbody tr");
    assert_eq!(requests.len(), explained["requests"].as_array().unwrap().len());
    browser.assert_no_problems();
}

/// A lower bound that a double rounds up would claim too much.
#[test]
fn costs_are_rounded_as_on_the_command_line() {
    let scratch = tempfile::tempdir().unwrap();
    let module = scratch.path().join("format.mjs");
    std::fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/surfaces/page/format.js"), &module)
        .unwrap();
    let mut amounts: Vec<i128> =
        vec![0, 1, 9, 50, 290_000_000_000, 999_949_999_999, 999_950_000_000, 1_005_000_000_000];
    let mut next: i128 = 7;
    for _ in 0..400 {
        next = next * 6_364_136_223_846_793_005 % 1_000_000_007_000_000_003;
        amounts.push(next % 10_i128.pow(u32::try_from(next % 18).unwrap() + 1));
    }
    let texts: Vec<String> = amounts.iter().map(|amount| Picodollars::new(*amount).to_string()).collect();
    let script = format!(
        "import {{ money, pico }} from {module:?}; for (const text of {texts:?}) \
         console.log(money(pico(text)), money(pico(text), '$', true));"
    );
    let node = Command::new("node").args(["--input-type=module", "-e", &script]).output().unwrap();
    assert!(node.status.success(), "{}", String::from_utf8_lossy(&node.stderr));
    let shown = String::from_utf8(node.stdout).unwrap();
    assert_eq!(shown.lines().count(), amounts.len());
    for (amount, line) in amounts.into_iter().map(Picodollars::new).zip(shown.lines()) {
        let want = format!("{} {}", amount.dollars(Rounding::HalfEven), amount.dollars(Rounding::Down));
        assert_eq!(line, want, "{amount}");
    }
}

#[test]
fn a_seats_costs_are_called_what_they_are() {
    let sandbox = Sandbox::new();
    let home = sandbox.home().canonicalize().unwrap();
    let config = format!("homes: [{{path: {:?}, billing: seat}}]\n", home.display().to_string());
    sandbox.write("home/.config/gemgauge/config.yml", &config);
    let (service, _journal) = served(&sandbox);
    let Some(mut browser) = Browser::start(service.address) else { return };
    browser.open("/");
    assert!(browser.texts(".tile").iter().all(|tile| tile.ends_with("list-price equivalent")));
    browser.wait_for(".notes", "list-price equivalent, not an invoice");
    browser.open(&format!("/#session={ANA}"));
    browser.wait_for(".facts", "seat: list-price equivalent, not an invoice");
    browser.assert_no_problems();
}

#[test]
fn a_line_that_is_appended_shows_by_itself_and_is_said() {
    let sandbox = Sandbox::new();
    let (service, journal) = served(&sandbox);
    let Some(mut browser) = Browser::start(service.address) else { return };
    browser.open("/");
    let before = browser.texts(TODAY);
    journal.request();
    let wanted = until("the request", || {
        let row = service.json("/api/v1/report/daily?since=today")["total"].clone();
        if row["requests"] == 6 { Ok(tokens(&row)) } else { Err(row) }
    });
    browser.wait_for(TODAY, &wanted);
    assert_ne!(browser.texts(TODAY), before);
    browser.wait_for("#said", &format!("{wanted} tokens"));
    browser.wait_for("#sessions-live tbody tr", &ANA[..8]);
    browser.assert_no_problems();
}

#[test]
fn a_live_session_shows_its_open_turn() {
    let sandbox = Sandbox::new();
    let (service, journal) = served(&sandbox);
    let now = stamp();
    let event = |n: u32, kind: &str| {
        format!(
            r#"{{"v":1,"event_id":"e{n}","at":"{now}","host":"w1","kind":"{kind}","session_id":"{ANA}","model":"{MODEL}","turn":7}}"#
        )
    };
    // A model goes with an opened session, a turn with a prompt.
    let opened = event(1, "session_opened").replace(r#","turn":7"#, "");
    let started = event(2, "turn_started").replace(&format!(r#","model":"{MODEL}""#), "");
    let body = format!("{opened}\n{started}\n");
    let answer = service.exchange(&format!(
        "POST /api/v1/events HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: application/x-ndjson\r\n\
         Content-Length: {}\r\n\r\n{body}",
        service.address,
        body.len()
    ));
    assert_eq!(answer.unwrap().json()["accepted"], 2);
    journal.request();
    let Some(mut browser) = Browser::start(service.address) else { return };
    browser.open("/");
    browser.wait_for("#sessions-live tbody tr", &format!("{MODEL}, for "));
    browser.open(&format!("/#session={ANA}"));
    browser.wait_for(".turn h3", "Turn 1");
    let turns = &service.json(&format!("/api/v1/sessions/{ANA}"))["turns"];
    let story: Vec<String> = serde_json::from_value(turns[0]["story"].clone()).unwrap();
    assert_eq!(browser.texts(".turn:first-of-type li"), story);
    browser.assert_no_problems();
}

#[test]
fn hostile_names_are_text() {
    let sandbox = Sandbox::new();
    let (service, _journal) = served(&sandbox);
    let Some(mut browser) = Browser::start(service.address) else { return };
    for path in ["/", "/#/sessions", &format!("/#/session={BEN}")] {
        browser.open(path);
        browser.wait_for("main", HOSTILE);
        assert_eq!(browser.ask("count", json!({"selector": "main img, main script"})), 0, "{path}");
    }
    browser.assert_no_problems();
    // No such session: the service says so, and the console with it.
    browser.open("/#/session=%3Cimg%20src=x%20onerror=alert(1)%3E%ff");
    assert_eq!(browser.ask("count", json!({"selector": "main img"})), 0);
}

/// Every page of a service that has something to show on each.
fn every_page() -> [(&'static str, String); 5] {
    [
        ("spend", "/".to_owned()),
        ("sessions", "/#/sessions".to_owned()),
        ("session", format!("/#session={ANA}")),
        ("quota", "/#/quota".to_owned()),
        ("health", "/#/health".to_owned()),
    ]
}

#[test]
fn every_control_has_a_name_headings_are_in_order_and_contrast_is_enough() {
    let sandbox = Sandbox::new();
    polled(&sandbox);
    let (service, _journal) = served(&sandbox);
    let Some(mut browser) = Browser::start(service.address) else { return };
    for scheme in ["light", "dark"] {
        browser.window(scheme, 1200);
        for (page, path) in every_page() {
            browser.open(&path);
            let weak: Vec<String> = serde_json::from_value(browser.ask("contrast", json!({}))).unwrap();
            assert!(weak.is_empty(), "{page}, {scheme}: {weak:?}");
            if scheme == "dark" {
                continue;
            }
            let tree = browser.tree();
            let named = [
                "button",
                "link",
                "searchbox",
                "textbox",
                "combobox",
                "table",
                "region",
                "navigation",
                "image",
                "img",
                "figure",
                "article",
            ];
            for node in tree.iter().filter(|node| named.contains(&node.role.as_str())) {
                let article = node.role == "article";
                assert!(article || !node.name.trim().is_empty(), "{page}: {node:?} has no name");
            }
            for landmark in ["banner", "navigation", "main", "contentinfo"] {
                assert!(tree.iter().any(|node| node.role == landmark), "{page}: no {landmark}");
            }
            let levels: Vec<u64> =
                tree.iter().filter(|node| node.role == "heading").filter_map(|node| node.level).collect();
            assert_eq!(
                (levels[0], levels.iter().filter(|level| **level == 1).count()),
                (1, 1),
                "{page}: {levels:?}"
            );
            assert!(levels.windows(2).all(|pair| pair[1] <= pair[0] + 1), "{page}: {levels:?}");
            assert!(tree.iter().filter(|node| node.role == "button").count() > 0 || page == "health");
        }
    }
    browser.assert_no_problems();
}

#[test]
fn a_keyboard_alone_gets_to_a_session_and_hears_why() {
    let sandbox = Sandbox::new();
    let (service, _journal) = served(&sandbox);
    let Some(mut browser) = Browser::start(service.address) else { return };
    browser.open("/");
    browser.press("Tab");
    assert_eq!(browser.ask("active", json!({}))["id"], "skip", "the first stop skips the rest");
    browser.tab_to(|active| active["text"] == "Sessions");
    browser.press("Enter");
    browser.wait_for("h1", "Sessions");
    browser.tab_to(|active| active["text"] == "Cost");
    browser.press("Enter");
    browser.wait_for("th[aria-sort=descending]", "Cost");
    assert_eq!(browser.ask("active", json!({}))["text"], "Cost ↓", "focus stays where it was");
    browser.tab_to(|active| active["text"] == ANA[..8]);
    browser.press("Enter");
    browser.wait_for("h1", ANA);
    assert_eq!(browser.ask("active", json!({}))["tag"], "H1", "reading goes on at the heading");
    browser.tab_to(|active| active["tag"] == "BUTTON" && active["text"].as_str().unwrap().starts_with('≥'));
    browser.wait_for("#tip:not([hidden])", "journals leave out cancelled");
    let described = json!({"selector": ":focus", "name": "aria-describedby"});
    assert_eq!(browser.ask("attribute", described), "tip");
    browser.press("Escape");
    assert_eq!(browser.ask("count", json!({"selector": "#tip:not([hidden])"})), 0);
    browser.assert_no_problems();
}

#[test]
fn filters_survive_a_reload() {
    let sandbox = Sandbox::new();
    let (service, _journal) = served(&sandbox);
    let Some(mut browser) = Browser::start(service.address) else { return };
    browser.open("/#/sessions?range=30d&sort=total&order=asc");
    browser.ask("focus", json!({"selector": "#filter-q"}));
    browser.ask("type", json!({"text": "PROJ"}));
    browser.wait_for("[role=status]", "1 session.");
    for _ in 0..2 {
        assert_eq!(browser.ask("location", json!({})), "#/sessions?range=30d&sort=total&order=asc&q=PROJ");
        assert_eq!(browser.ask("value", json!({"selector": "#filter-q"})), "PROJ");
        assert_eq!(browser.texts("tbody th a"), [&ANA[..8]]);
        assert_eq!(browser.texts("th[aria-sort=ascending]"), ["Tokens ↑"]);
        assert_eq!(browser.texts(".choices [aria-current]"), ["30 days"]);
        browser.ask("reload", json!({}));
    }
    browser.open("/?x=1#/?range=today&show=tokens");
    assert_eq!(browser.texts(".choices [aria-current]"), ["Today", "Tokens"]);
    browser.assert_no_problems();
}

#[test]
fn where_the_service_ends_the_page_says_so_and_comes_back_with_it() {
    let sandbox = Sandbox::new();
    let (service, journal) = served(&sandbox);
    let Some(mut browser) = Browser::start(service.address) else { return };
    browser.open("/");
    let address = service.address.to_string();
    assert_eq!(service.terminate(), Some(0));
    browser.wait_for("#live[data-state=lost]", "Not live");
    journal.request();
    let command = sandbox.command(&["serve", "--web.listen-address", &address]);
    let service = Service::start(command, sandbox.path().join("serve.log"));
    service.wait_ready();
    browser.wait_for("#live[data-state=live]", "Live");
    browser.wait_for(TODAY, &tokens(&service.json("/api/v1/report/daily?since=today")["total"]));
}

#[test]
fn it_works_behind_a_password_and_beside_another_metrics_path() {
    let sandbox = Sandbox::new();
    Project::new(&sandbox.home(), "proj").session(ANA).requests(2);
    let hash = bcrypt::hash_with_salt("hunter2", 4, *b"a salt of a test").unwrap();
    let users = format!("basic_auth_users: {{ana: {}}}\n", hash.format_for_version(bcrypt::Version::TwoY));
    sandbox.write("web.yml", &users);
    let service = sandbox.serve(&["--web.config.file", "web.yml", "--web.telemetry-path", "/my/metrics"]);
    assert_eq!(service.get("/-/page/app.css").status, 401);
    let Some(mut browser) = Browser::start(service.address) else { return };
    browser.ask("window", json!({"credentials": {"username": "ana", "password": "hunter2"}}));
    browser.open("/");
    browser.wait_for(TODAY, "≥");
    let link = json!({"selector": "footer li a", "name": "href"});
    assert_eq!(browser.ask("attribute", link), "my/metrics");
}

#[test]
fn pictures_of_it_are_taken_and_a_phone_needs_no_sideways_scrolling() {
    let sandbox = Sandbox::new();
    copy_tree(&fixture("home/.gemini"), &sandbox.home().join(".gemini"), 1_796_000_000_000);
    polled(&sandbox);
    let (service, _journal) = served(&sandbox);
    let Some(mut browser) = Browser::start(service.address) else { return };
    for (name, scheme, width) in [("light", "light", 1200), ("dark", "dark", 1200), ("phone", "light", 390)] {
        browser.window(scheme, width);
        for (page, path) in every_page() {
            browser.open(&path);
            assert_eq!(browser.ask("overflow", json!({})), 0, "{page} at {width} pixels");
            let file = pictures().join(format!("{page}-{name}.png"));
            browser.ask("shot", json!({"file": file}));
            assert!(file.metadata().unwrap().len() > 10_000, "{}", file.display());
        }
    }
    browser.assert_no_problems();
}

/// An open stream: what comes after the headers, and those.
fn listen(service: &Service, more: &str) -> (BufReader<TcpStream>, String) {
    let mut stream = TcpStream::connect(service.address).unwrap();
    write!(stream, "GET /api/v1/live HTTP/1.1\r\nHost: {}\r\n{more}\r\n", service.address).unwrap();
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(stream.read_line(&mut head).unwrap(), 0, "{head}");
    }
    (stream, head)
}

/// The next event's data.
fn event(stream: &mut BufReader<TcpStream>) -> Value {
    loop {
        let mut line = String::new();
        assert_ne!(stream.read_line(&mut line).unwrap(), 0, "the stream goes on");
        if let Some(data) = line.strip_prefix("data: ") {
            return serde_json::from_str(data).unwrap();
        }
    }
}

#[test]
fn the_stream_tells_of_each_change_and_of_nothing_else() {
    let sandbox = Sandbox::new();
    let journal = Project::new(&sandbox.home(), "proj").session(ANA);
    journal.request();
    let service = sandbox.serve_ready(&[]);
    let (mut stream, head) = listen(&service, "Accept-Encoding: gzip\r\n");
    assert!(head.starts_with("HTTP/1.1 200") && head.contains("content-type: text/event-stream"), "{head}");
    assert!(!head.contains("content-encoding") && head.contains("x-accel-buffering: no"), "{head}");
    event(&mut stream);
    // A start may leave more to tell; then each change is told once.
    let before = service.spent();
    journal.request();
    until("word of the change", || {
        event(&mut stream);
        let now = service.spent();
        if now.requests == before.requests + 1 { Ok(()) } else { Err(now) }
    });
    assert_eq!(service.ask("HEAD", "/api/v1/live", &[]).status, 200);
    assert_eq!(service.get("/api/v1/live?since=1").json()["error"]["code"], "unknown_parameter");
}

#[test]
fn so_many_streams_and_no_more() {
    let sandbox = Sandbox::new();
    let service = sandbox.serve_ready(&[]);
    let mut streams: Vec<_> =
        (0..gemgauge::surfaces::http::live::STREAMS).map(|_| listen(&service, "")).collect();
    assert!(streams.iter().all(|(_, head)| head.starts_with("HTTP/1.1 200")));
    let refused = service.get("/api/v1/live");
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("30")));
    assert_eq!(refused.json()["error"]["code"], "too_many_streams");
    assert_eq!(service.get("/-/healthy").status, 200);
    streams.pop();
    until("a place", || match listen(&service, "") {
        (_, head) if head.starts_with("HTTP/1.1 200") => Ok(()),
        (_, head) => Err(head),
    });
}

#[test]
fn a_stream_ends_well_when_the_service_does() {
    let sandbox = Sandbox::new();
    let service = sandbox.serve_ready(&[]);
    let (mut stream, _) = listen(&service, "");
    event(&mut stream);
    assert_eq!(service.terminate(), Some(0));
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
    assert!(rest.ends_with("0\r\n\r\n"), "it is not cut off: {rest:?}");
}
