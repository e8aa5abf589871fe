//! The whole exposition against a golden text, and what must hold for any.

use std::collections::{BTreeMap, BTreeSet};

use super::family::{Kind, Values};
use super::*;
use crate::ledger::money::{Billing, PriceList};
use crate::ledger::tokens::Classes;
use crate::store::counter_names;
use crate::surfaces::quota::sample;

const NOW: i64 = 1_790_000_000_000;

fn tuple(id: i64, home: &str, project: &str, role: &str, born_at: Option<i64>) -> TupleRow {
    TupleRow {
        id,
        home: home.into(),
        project: project.into(),
        model: "gemini-2.5-pro".into(),
        role: role.into(),
        born_at,
        requests: 3,
        tokens: Classes {
            uncached_input: 3801,
            cached_input: 11_526,
            tool_input: 0,
            output: 23,
            thoughts: 919,
        },
        ..TupleRow::default()
    }
}

fn home(id: i64, name: &str, imported: bool) -> HomeRow {
    HomeRow { id, path: format!("/home/{name}"), name: name.into(), imported }
}

fn rows() -> LedgerRows {
    LedgerRows {
        homes: vec![home(1, "ana", true), home(2, "ben", true)],
        tuples: vec![
            tuple(1, "ana", "C:\\work \"x\"\nline", "main", None),
            tuple(2, "ana", "proj", "subagent", Some(NOW - 10_000)),
        ],
        counters: BTreeMap::from([
            (("journal_lines".into(), "request".into()), 6),
            (("journal_lines".into(), "repeat".into()), 5),
            (("journal_bytes".into(), String::new()), 18_000_000_000),
            (("journal_undecodable".into(), "torn_tail".into()), 1),
        ]),
        journal_states: BTreeMap::from([("read".into(), 4), ("torn".into(), 1)]),
        live_sessions: BTreeMap::from([("ana".into(), 1)]),
        calendar: vec![CalendarRow {
            home: "ana".into(),
            project: "proj".into(),
            model: "gemini-2.5-pro".into(),
            ..CalendarRow::default()
        }],
        home_counters: [
            ("sessions_started", "proj", "", 3),
            ("turns", "proj", "exact", 2),
            ("turn_endings", "end_turn", "", 2),
        ]
        .map(|(name, first, second, value)| CounterRow {
            id: 1,
            home: "ana".into(),
            name: name.into(),
            first: first.into(),
            second: second.into(),
            value,
            born_at: None,
        })
        .into(),
        session_spend: vec![SessionSpend {
            session: "b4265a7e-16f4".into(),
            home: "ana".into(),
            project: "proj".into(),
            last_at: NOW,
            tokens: 1_182,
            cost: None,
        }],
        quota: QuotaScrape { rows: sample::rows(), quota: sample::quota() },
    }
}

fn exporter() -> Exporter {
    let health = Health::default();
    health.journal.up.set(true);
    health.journal.last_event.advance(NOW - 1_500);
    health.journal.lag_bytes.set(512);
    health.writer.queue_length.set(2);
    health.writer.commits.observe(Duration::from_millis(4));
    health.writer.commits.observe(Duration::from_millis(1_500));
    let build = BuildInfo { version: "0.1.0".into(), revision: "abc1234".into(), rustc: "1.95.0".into() };
    health.webhook.ok.add(2);
    let ana = HomeInfo {
        home: "ana".into(),
        billing: Billing::Seat,
        price_list: PriceList::GeminiApi,
        team: "web".into(),
        cost_center: String::new(),
    };
    let money = MoneyInfo { homes: vec![ana], prices_as_of: "2026-11-30".into() };
    Exporter::new(Arc::new(health), build, PathBuf::from("/nowhere/ledger.db"), money, &[])
        .with_budgets(board())
}

/// A budget of a month of which a half has passed, with 40 of 100 dollars spent.
fn board() -> Arc<Board> {
    use crate::ledger::bound::Bound;
    use crate::ledger::budget::{Budget, Period, Scope, Spent, Threshold};
    use crate::ledger::money::{CostBound, CostSum, Picodollars};
    use crate::surfaces::budget::{Contributors, Span, Tally};
    let dollars = |count| Picodollars::new(count * Picodollars::DOLLAR.get());
    let budget = Budget {
        name: "team".into(),
        limit: dollars(100),
        period: Period::Month,
        scope: Scope::Project("web".into()),
        thresholds: Threshold::DEFAULT.to_vec(),
    };
    let mut spent = Spent::default();
    spent.add(&CostSum::priced(dollars(40), CostBound::Exact), Bound::AtLeast);
    let day = jiff::civil::date(2026, 9, 1);
    let span = Span { first: day, last: day.last_of_month(), start: NOW - 1_000_000, end: NOW + 1_000_000 };
    let tally = Tally { span, spent, contributors: Contributors::default(), unmatched: false };
    let board = Board::default();
    board.publish(vec![(budget, tally)]);
    Arc::new(board)
}

fn reading<T>(result: Result<T, String>) -> Reading<T> {
    Reading { result, took: Duration::from_millis(2) }
}

fn readings(ledger: Result<LedgerRows, String>) -> Readings {
    let sample = process::Sample {
        cpu_seconds: 1.25,
        open_fds: 23,
        max_fds: Some(1024),
        virtual_bytes: 1 << 28,
        resident_bytes: 1 << 24,
        start_time: 1_789_999_000.5,
        threads: 7,
    };
    Readings {
        ledger: reading(ledger),
        files: reading(Ok(ledger::FileSizes { db: 4096, wal: 0 })),
        process: reading(Ok(Some(sample))),
    }
}

fn text(ledger: Result<LedgerRows, String>) -> String {
    Format::Text.encode(&exporter().gather(NOW, readings(ledger)).families)
}

fn golden(name: &str, want: &str, got: &str) {
    if option_env!("UPDATE").is_some() {
        let path = format!("{}/src/surfaces/metrics/golden/{name}", env!("CARGO_MANIFEST_DIR"));
        std::fs::write(path, got).expect("the golden text can be written");
    } else {
        assert!(got == want, "{name} differs (UPDATE=1 cargo test rewrites it); got:\n{got}");
    }
    assert!(got.lines().count() < 250, "{name} is too long to be read");
}

/// Of turns and doors: long closed lists, in a text of their own.
fn is_of_turns(family: &Family) -> bool {
    turns::DESCRIPTORS.iter().chain(&doors::DESCRIPTORS).any(|of| of.name == family.descriptor().name)
}

/// What the golden texts hold: everything but the process's own metrics,
/// whose names are Prometheus's, and turns and quota, which have texts of their own.
fn golden_families() -> Vec<Family> {
    let mut families = exporter().gather(NOW, readings(Ok(rows()))).families;
    let elsewhere = |family: &Family| is_quota(family) || is_of_turns(family);
    families.retain(|family| !family.descriptor().name.starts_with("process_") && !elsewhere(family));
    families
}

fn is_quota(family: &Family) -> bool {
    quota::DESCRIPTORS.iter().any(|descriptor| descriptor.name == family.descriptor().name)
}

#[test]
fn q9_to_q14_the_quota_families_are_the_golden_text() {
    let mut families = exporter().gather(NOW, readings(Ok(rows()))).families;
    families.retain(is_quota);
    let text = Format::Text.encode(&families);
    golden("quota.txt", include_str!("golden/quota.txt"), &text);
    assert!(text.lines().count() < 200, "it is to be read");
}

#[test]
fn q10_q11_there_is_no_ratio_of_what_is_not_known() {
    let mut passed = rows();
    passed.quota.rows.buckets[0].resets_at = Some(NOW);
    passed.quota.rows.refusals.clear();
    let imported = passed.homes.iter().map(|home| (home.id, home.clone())).collect();
    passed.quota.quota = Quota::of(&passed.quota.rows, &imported, &BTreeSet::new(), NOW);
    let text = text(Ok(passed));
    let of = |name: &str| text.lines().filter(|line| line.starts_with(&format!("{name}{{"))).count();
    assert_eq!(
        of("gemgauge_quota_remaining_ratio"),
        1,
        "flash: pro's reset is due, the third is not reported"
    );
    assert_eq!(of("gemgauge_quota_reported"), 3);
    assert_eq!(of("gemgauge_quota_consumed_ratio_total"), 4, "a counter stays");
    assert_eq!(of("gemgauge_quota_blocked"), 6);
    assert!(!text.contains("gemgauge_quota_blocked{") || !text.contains("evidence=\"429\"} 1"));
}

#[test]
fn quota_counters_stand_at_zero_first_and_never_fall() {
    let series = |text: &str, wanted: &str| {
        text.lines().find_map(|line| line.strip_prefix(wanted)).map(|value| value.trim().to_owned())
    };
    let consumed = "gemgauge_quota_consumed_ratio_total{account=\"9f3a6c01\",cloud_project=\"proj\",model=\"gemini-2.5-pro\",token_type=\"REQUESTS\"}";
    let capacity = "gemgauge_capacity_rejections_total{home=\"ana\",model=\"gemini-2.5-pro\"}";
    let mut new = rows();
    new.quota.rows.buckets[0].born_at = NOW - 1_000;
    new.quota.rows.models[0].born_at = Some(NOW - 1_000);
    let scrape = |exporter: &Exporter| exporter.gather(NOW, readings(Ok(new.clone())));
    let values = |gathered: &Gathered| {
        let text = Format::Text.encode(&gathered.families);
        (series(&text, consumed).unwrap(), series(&text, capacity).unwrap())
    };
    let fresh = exporter();
    let first = scrape(&fresh);
    assert_eq!(values(&first), ("0".into(), "0".into()));
    fresh.confirm(first.receipt);
    assert_eq!(values(&scrape(&fresh)), ("0.38".into(), "2".into()));
    // After a restart what was exposed before shows its value at once.
    let restarted = exporter().with_quota(&new.quota.rows);
    assert_eq!(values(&scrape(&restarted)), ("0.38".into(), "2".into()));
}

#[test]
fn turns_and_doors_have_a_golden_text_of_their_own() {
    let mut rows = rows();
    rows.homes.truncate(1);
    rows.tuples.truncate(1);
    let mut families = exporter().gather(NOW, readings(Ok(rows))).families;
    families.retain(is_of_turns);
    golden("turns.txt", include_str!("golden/turns.txt"), &Format::Text.encode(&families));
}

#[test]
fn the_text_form_is_the_golden_text() {
    let text = Format::Text.encode(&golden_families());
    golden("exposition.txt", include_str!("golden/exposition.txt"), &text);
}

#[test]
fn the_openmetrics_form_is_the_golden_text() {
    let text = Format::OpenMetrics.encode(&golden_families());
    golden("openmetrics.txt", include_str!("golden/openmetrics.txt"), &text);
}

#[test]
fn no_two_series_have_equal_label_sets() {
    let mut seen = BTreeSet::new();
    for line in text(Ok(rows())).lines().filter(|line| !line.starts_with('#')) {
        let (series, _) = line.rsplit_once(' ').expect("a sample has a value");
        assert!(seen.insert(series.to_owned()), "twice: {series}");
    }
}

#[test]
fn both_forms_have_the_same_series_with_the_same_values() {
    let families = exporter().gather(NOW, readings(Ok(rows()))).families;
    let samples = |form: Format| {
        let text = form.encode(&families);
        text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(samples(Format::Text), samples(Format::OpenMetrics));
}

#[test]
fn label_values_are_escaped() {
    assert!(text(Ok(rows())).contains(r#"project="C:\\work \"x\"\nline",model"#));
}

#[test]
fn a_new_label_set_stands_at_zero_until_one_scrape_has_seen_it() {
    let exporter = exporter();
    let series =
        r#"gemgauge_requests_total{home="ana",project="proj",model="gemini-2.5-pro",role="subagent"} "#;
    let scrape = || exporter.gather(NOW, readings(Ok(rows())));
    let value = |gathered: &Gathered| {
        let text = Format::Text.encode(&gathered.families);
        text.lines().find_map(|line| line.strip_prefix(series)).map(str::to_owned)
    };
    let unseen = scrape();
    assert_eq!(value(&unseen).as_deref(), Some("0"));
    let seen = scrape();
    assert_eq!(value(&seen).as_deref(), Some("0"));
    exporter.confirm(seen.receipt);
    assert_eq!(value(&scrape()).as_deref(), Some("3"));
}

#[test]
fn ledger_families_wait_for_a_first_import() {
    let mut importing = rows();
    importing.homes = vec![home(1, "ana", false)];
    let text = text(Ok(importing));
    for family in ["gemgauge_tokens_total", "gemgauge_requests_total", "gemgauge_live_sessions"] {
        assert!(!text.contains(family), "{family} is there");
    }
    assert!(text.contains("gemgauge_journal_lines_total{kind=\"request\"} 6"), "progress is shown");
    assert!(text.contains("gemgauge_up 1"));
}

#[test]
fn a_home_that_joins_hides_only_itself() {
    let mut joining = rows();
    joining.homes = vec![home(1, "ana", true), home(2, "ben", false)];
    joining.tuples.push(tuple(3, "ben", "proj", "main", None));
    let text = text(Ok(joining));
    assert!(text.contains("gemgauge_tokens_total{home=\"ana\""));
    assert!(!text.contains("home=\"ben\""));
}

#[test]
fn a_broken_ledger_leaves_the_rest_of_the_scrape() {
    let gathered = exporter().gather(NOW, readings(Err("disk I/O error".into())));
    assert_eq!(gathered.failures, [(Collector::Ledger, "disk I/O error".to_owned())]);
    let text = Format::Text.encode(&gathered.families);
    assert!(text.contains("gemgauge_up 0\n"));
    assert!(text.contains("gemgauge_scrape_collector_success{collector=\"ledger\"} 0\n"));
    assert!(text.contains("gemgauge_source_up{source=\"journal\"} 1\n"));
    assert!(text.contains("process_threads 7\n"));
    assert!(!text.contains("gemgauge_tokens_total") && !text.contains("gemgauge_journals"));
}

#[test]
fn before_the_first_event_there_is_no_time_of_it() {
    let exporter = Exporter::new(
        Arc::new(Health::default()),
        BuildInfo::compiled(),
        PathBuf::from("/nowhere"),
        MoneyInfo::default(),
        &[],
    );
    let text = Format::Text.encode(&exporter.gather(NOW, readings(Ok(rows()))).families);
    assert!(!text.contains("last_event_timestamp"));
    assert!(text.contains("gemgauge_source_up{source=\"journal\"} 0\n"));
}

#[test]
fn durations_come_from_the_clock_that_is_passed_in() {
    let ticks = std::cell::Cell::new(0);
    let clock = || {
        ticks.set(ticks.get() + 1);
        Duration::from_millis(250 * ticks.get())
    };
    let gathered = exporter().scrape(NOW, clock, || Ok(rows()));
    let text = Format::Text.encode(&gathered.families);
    assert!(text.contains("gemgauge_scrape_collector_duration_seconds{collector=\"ledger\"} 0.25\n"));
    assert_eq!(gathered.failures.iter().map(|(c, _)| c.as_str()).collect::<Vec<_>>(), ["ledger_files"]);
}

#[test]
fn every_enumerated_label_value_stands_from_the_start() {
    let empty = LedgerRows { homes: vec![home(1, "ana", true)], ..LedgerRows::default() };
    let text = text(Ok(empty));
    for (_, descriptors) in subjects() {
        for descriptor in descriptors.iter().filter(|d| d.labels.len() == 1) {
            let label = &descriptor.labels[0];
            let Values::Closed(list) = label.values else { continue };
            for value in list() {
                let series = format!("{}{{{}=\"{value}\"}} ", descriptor.name, label.name);
                assert!(text.contains(&series), "{series} is missing");
            }
        }
    }
}

#[test]
fn every_family_has_its_descriptor_and_every_descriptor_its_family() {
    let gathered = exporter().gather(NOW, readings(Ok(rows())));
    let names: BTreeSet<&str> = gathered.families.iter().map(|family| family.descriptor().name).collect();
    let described: Vec<&str> = subjects().iter().flat_map(|(_, d)| d.iter()).map(|d| d.name).collect();
    let distinct: BTreeSet<&str> = described.iter().copied().collect();
    assert_eq!(described.len(), distinct.len(), "a name is described twice");
    assert_eq!(names, distinct);
}

/// The rules `promtool check metrics` applies, so that they hold without it.
#[test]
fn names_follow_the_lint_rules() {
    const FORBIDDEN: [&str; 21] = [
        "counter",
        "gauge",
        "histogram",
        "summary",
        "minutes",
        "hours",
        "days",
        "weeks",
        "bits",
        "percent",
        "s",
        "ms",
        "us",
        "ns",
        "sec",
        "b",
        "kb",
        "mb",
        "m",
        "h",
        "d",
    ];
    for descriptor in subjects().iter().flat_map(|(_, d)| d.iter()) {
        let name = descriptor.name;
        assert_eq!(descriptor.kind == Kind::Counter, name.ends_with("_total"), "{name}");
        assert!(!name.split('_').any(|word| FORBIDDEN.contains(&word)), "{name}");
        let reserved = ["_bucket", "_count", "_sum", "_created"];
        assert!(!reserved.iter().any(|suffix| name.ends_with(suffix)), "{name}");
        assert!(!descriptor.help.is_empty() && !descriptor.help.ends_with('.'), "{name}");
        let plain = |text: &str| text.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
        assert!(plain(name) && descriptor.labels.iter().all(|label| plain(label.name)), "{name}");
        for label in descriptor.labels {
            assert!(!["le", "quantile", "type", "job", "instance"].contains(&label.name), "{name}");
        }
    }
}

#[test]
fn counter_names_of_the_store_have_closed_lists() {
    assert_eq!(counter_names::labels("journal_bytes"), Some(vec![""]));
    assert_eq!(counter_names::labels("nothing"), None);
}
