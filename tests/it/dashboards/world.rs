//! Eight days of two made-up instances, with every metric there is, and the
//! totals that follow from how they were made.
//!
//! Everything that grows does so evenly, by a whole number each step. What is
//! spent in a window is then that number times the steps of the window, for
//! label sets that were there from the start, that were born within it, and
//! that came with an instance which joined late and brought history along.

use std::collections::BTreeSet;
use std::fmt::Write as _;

/// The moment the queries are asked at, unix seconds: 2026-11-30, midnight UTC.
pub(super) const END: i64 = 1_795_996_800;
const STEP: i64 = 600;
const DAY: i64 = 86_400;
const START: i64 = END - 8 * DAY;
/// When the second instance joined.
const JOINED: i64 = END - 3 * DAY;
/// When the project `api` was born.
const BORN: i64 = END - 2 * DAY;

pub(super) const CLASSES: [&str; 5] = ["uncached_input", "cached_input", "tool_input", "output", "thoughts"];

/// A label set of spend.
pub(super) struct Tuple {
    pub(super) instance: &'static str,
    pub(super) home: &'static str,
    pub(super) project: &'static str,
    pub(super) model: &'static str,
    pub(super) role: &'static str,
    /// When its first sample is, and what each class stood at then.
    since: i64,
    history: i64,
    /// What each class gains in a step.
    gain: [i64; 5],
    /// Micro-dollars of a token; 0: it has no price.
    price: i64,
    /// Whether everything of it settles as exact.
    pub(super) exact: bool,
    /// Micro-dollars of estimates in a step.
    estimated: i64,
}

const A: &str = "host-a:10436";
const B: &str = "host-b:10436";

pub(super) const TUPLES: [Tuple; 5] = [
    Tuple {
        instance: A,
        home: "ana",
        project: "web",
        model: "gemini-2.5-pro",
        role: "main",
        since: START,
        history: 70_000,
        gain: [900, 600, 0, 120, 60],
        price: 2,
        exact: true,
        estimated: 0,
    },
    Tuple {
        instance: A,
        home: "ana",
        project: "web",
        model: "gemini-2.5-flash",
        role: "utility_router",
        since: START,
        history: 0,
        gain: [300, 0, 0, 12, 0],
        price: 1,
        exact: false,
        estimated: 0,
    },
    Tuple {
        instance: A,
        home: "ana",
        project: "api",
        model: "gemini-2.5-pro",
        role: "subagent",
        since: BORN,
        history: 0,
        gain: [200, 100, 10, 50, 5],
        price: 2,
        exact: true,
        estimated: 0,
    },
    Tuple {
        instance: A,
        home: "ana",
        project: "web",
        model: "gemini-next",
        role: "main",
        since: START,
        history: 0,
        gain: [6, 0, 0, 1, 0],
        price: 0,
        exact: true,
        estimated: 0,
    },
    Tuple {
        instance: B,
        home: "ben",
        project: "ops (x)",
        model: "gemini-2.5-pro",
        role: "main",
        since: JOINED,
        history: 5_000_000,
        gain: [400, 50, 0, 70, 30],
        price: 2,
        exact: true,
        estimated: 40,
    },
];

impl Tuple {
    fn steps(&self, window: i64) -> i64 {
        (END - self.since).min(window) / STEP
    }

    /// Tokens of the last `window` seconds.
    pub(super) fn tokens(&self, window: i64) -> i64 {
        self.gain.iter().sum::<i64>() * self.steps(window)
    }

    /// Dollars of the last `window` seconds.
    pub(super) fn cost(&self, window: i64) -> f64 {
        (self.tokens(window) * self.price) as f64 / 1e6
    }

    fn labels(&self) -> String {
        let Self { home, project, model, .. } = self;
        format!("home=\"{home}\",project=\"{project}\",model=\"{model}\"")
    }
}

/// A series: what it is called and how its value follows from the time.
struct Series {
    metric: &'static str,
    instance: &'static str,
    labels: String,
    since: i64,
    value: Box<dyn Fn(i64) -> f64>,
}

/// Collects series by their families.
#[derive(Default)]
struct World(Vec<Series>);

impl World {
    /// A value that does not change.
    fn gauge(&mut self, metric: &'static str, labels: &str, value: f64) {
        self.add(metric, A, labels.to_owned(), START, move |_| value);
    }

    /// A counter that begins at 0 and gains `gain` a step.
    fn counter(&mut self, metric: &'static str, labels: &str, gain: f64) {
        self.grown(metric, A, labels.to_owned(), START, 0.0, gain);
    }

    fn grown(
        &mut self,
        metric: &'static str,
        instance: &'static str,
        labels: String,
        since: i64,
        from: f64,
        gain: f64,
    ) {
        self.add(metric, instance, labels, since, move |at| from + gain * ((at - since) / STEP) as f64);
    }

    fn add(
        &mut self,
        metric: &'static str,
        instance: &'static str,
        labels: String,
        since: i64,
        value: impl Fn(i64) -> f64 + 'static,
    ) {
        self.0.push(Series { metric, instance, labels, since, value: Box::new(value) });
    }

    fn spend(&mut self, tuple: &'static Tuple) {
        let (labels, role) = (tuple.labels(), tuple.role);
        let mut grown = |metric, labels: String, from: i64, gain: i64, scale: f64| {
            let (from, gain) = (from as f64 / scale, gain as f64 / scale);
            self.grown(metric, tuple.instance, labels, tuple.since, from, gain);
        };
        for (class, gain) in CLASSES.into_iter().zip(tuple.gain) {
            let labels = format!("{labels},role=\"{role}\",class=\"{class}\"");
            grown("gemgauge_tokens_total", labels.clone(), tuple.history, gain, 1.0);
            let (priced, unpriced) = (tuple.price, i64::from(tuple.price == 0));
            grown("gemgauge_cost_usd_total", labels.clone(), tuple.history * priced, gain * priced, 1e6);
            grown("gemgauge_unpriced_tokens_total", labels, tuple.history * unpriced, gain * unpriced, 1.0);
        }
        let total: i64 = tuple.gain.iter().sum();
        let with_role = format!("{labels},role=\"{role}\"");
        grown("gemgauge_requests_total", with_role.clone(), tuple.history / 1000, 2, 1.0);
        grown("gemgauge_cost_estimated_usd_total", with_role.clone(), 0, tuple.estimated, 1e6);
        for (bound, exact) in [("exact", true), ("at_least", false)] {
            let labels = format!("{with_role},bound=\"{bound}\"");
            let gain = if exact == tuple.exact { total } else { 0 };
            let history = if exact { 0 } else { tuple.history * 5 };
            grown("gemgauge_settled_tokens_total", labels.clone(), history, gain, 1.0);
            grown("gemgauge_settled_cost_usd_total", labels, history * tuple.price, gain * tuple.price, 1e6);
        }
        grown("gemgauge_cache_savings_usd_total", labels.clone(), 0, tuple.gain[1], 1e6);
        grown("gemgauge_long_context_surcharge_usd_total", labels.clone(), 0, 30, 1e6);
        let bound = if tuple.exact { "exact" } else { "at_least" };
        let mut now = |metric, labels: String, value: f64| {
            self.add(metric, tuple.instance, labels, tuple.since, move |_| value);
        };
        now("gemgauge_cost_adjustment_usd", labels.clone(), -0.5);
        let labels = format!("{labels},bound=\"{bound}\"");
        // A month that began a week ago.
        now("gemgauge_today_tokens", labels.clone(), tuple.tokens(DAY) as f64);
        now("gemgauge_today_cost_usd", labels.clone(), tuple.cost(DAY));
        now("gemgauge_month_tokens", labels.clone(), tuple.tokens(7 * DAY) as f64);
        now("gemgauge_month_cost_usd", labels, tuple.cost(7 * DAY));
    }

    fn turns(&mut self) {
        // So many turns a day are unmeasured.
        for (home, project, unmeasured) in [("ana", "web", 1), ("ana", "api", 0), ("ben", "ops (x)", 1)] {
            let labels = format!("home=\"{home}\",project=\"{project}\"");
            for (bound, gain) in [("exact", 3), ("at_least", 1)] {
                self.counter("gemgauge_turns_total", &format!("{labels},bound=\"{bound}\""), f64::from(gain));
            }
            let of_bound = format!("{labels},bound=\"unmeasured\"");
            self.add("gemgauge_turns_total", A, of_bound, START, move |at| {
                (unmeasured * ((at - START) / DAY)) as f64
            });
            self.counter("gemgauge_sessions_started_total", &labels, 1.0);
        }
        for reason in ["end_turn", "cancelled", "other", "none"] {
            self.counter(
                "gemgauge_turn_endings_total",
                &format!("home=\"ana\",stop_reason=\"{reason}\""),
                1.0,
            );
        }
        for reason in ["orphan", "model_unobserved"] {
            self.counter("gemgauge_turn_reasons_total", &format!("home=\"ana\",reason=\"{reason}\""), 1.0);
        }
        for change in ["raised", "lowered", "demoted"] {
            self.counter("gemgauge_turn_revisions_total", &format!("home=\"ana\",change=\"{change}\""), 1.0);
        }
        for class in CLASSES {
            self.counter("gemgauge_late_tokens_total", &format!("home=\"ana\",class=\"{class}\""), 7.0);
        }
        self.gauge("gemgauge_live_sessions", "home=\"ana\"", 2.0);
        let session = "session_id=\"aaaaaaaa-0000-4000-8000-000000000001\",home=\"ana\",project=\"web\"";
        self.gauge("gemgauge_session_tokens", session, 1234.0);
        self.gauge("gemgauge_session_cost_usd", session, 0.05);
        // Two users of one name, who pay differently.
        for (instance, home, billing, since) in
            [(A, "ana", "metered", START), (B, "ben", "metered", JOINED), (B, "ana", "seat", JOINED)]
        {
            let labels = format!(
                "home=\"{home}\",billing=\"{billing}\",price_list=\"gemini-api\",team=\"\",cost_center=\"\""
            );
            self.add("gemgauge_home_info", instance, labels, since, |_| 1.0);
        }
    }

    /// `gemini-2.5-pro` uses 2 % of its quota each 10 minutes, has 20 % left and
    /// two hours to go; `gemini-2.5-flash` lasts; of the third nothing is reported.
    fn quota(&mut self) {
        let account = "account=\"a1b2c3d4\",cloud_project=\"cp-1\"";
        let bucket = |model: &str| format!("{account},model=\"{model}\",token_type=\"REQUESTS\"");
        for (model, left, gain) in [("gemini-2.5-pro", 0.2, 0.02), ("gemini-2.5-flash", 0.9, 0.0001)] {
            let labels = bucket(model);
            // A reset within the last hour.
            let before = if left > 0.5 { 0.1 } else { left };
            let remaining = move |at| if at > END - 3600 { left } else { before };
            self.add("gemgauge_quota_remaining_ratio", A, labels.clone(), START, remaining);
            self.counter("gemgauge_quota_consumed_ratio_total", &labels, gain);
        }
        for (model, reported) in [("gemini-2.5-pro", 1.0), ("gemini-2.5-flash", 1.0), ("gemini-3-pro", 0.0)] {
            let labels = bucket(model);
            self.gauge("gemgauge_quota_reported", &labels, reported);
            self.gauge("gemgauge_quota_reset_timestamp_seconds", &labels, (END + 7200) as f64);
            let refused = f64::from(u8::from(model == "gemini-2.5-pro"));
            self.gauge("gemgauge_quota_contradicted", &labels, refused);
            self.gauge("gemgauge_quota_blocked", &format!("{labels},evidence=\"poll\""), 0.0);
            self.gauge("gemgauge_quota_blocked", &format!("{labels},evidence=\"429\""), refused);
        }
        self.add("gemgauge_quota_observed_timestamp_seconds", A, account.to_owned(), START, |at| {
            (at - 60) as f64
        });
        self.gauge("gemgauge_quota_home_info", &format!("home=\"ana\",{account}"), 1.0);
        self.gauge("gemgauge_quota_home_info", &format!("home=\"eva\",{account}"), 1.0);
        for (state, on) in [("off", 0.0), ("ok", 1.0), ("stale", 0.0)] {
            self.gauge("gemgauge_quota_state", &format!("home=\"ana\",state=\"{state}\""), on);
        }
        let model = "home=\"ana\",model=\"gemini-2.5-pro\"";
        self.counter("gemgauge_quota_rejections_total", &format!("{model},reason=\"quota_exhausted\""), 1.0);
        self.counter("gemgauge_quota_exhaustions_total", model, 1.0);
        self.counter("gemgauge_capacity_rejections_total", model, 1.0);
        self.counter("gemgauge_quota_clamped_total", "", 1.0);
        for result in ["ok", "unavailable"] {
            self.counter("gemgauge_quota_polls_total", &format!("home=\"ana\",result=\"{result}\""), 1.0);
        }
        self.gauge("gemgauge_turns_asleep", model, 1.0);
        self.gauge("gemgauge_turn_asleep_until_timestamp_seconds", model, (END + 1800) as f64);
    }

    /// Half of the period has passed. Of one budget 30 of 100 dollars are spent,
    /// of the other 15 of 20.
    fn budgets(&mut self) {
        for (budget, scope, limit, spent) in
            [("team", "all", 100.0, 30.0), ("web", "project web", 20.0, 15.0)]
        {
            let labels = format!("budget=\"{budget}\"");
            self.gauge("gemgauge_budget_limit_usd", &labels, limit);
            self.gauge("gemgauge_budget_spent_usd", &labels, spent);
            self.gauge("gemgauge_budget_spent_at_least_usd", &labels, spent);
            self.gauge("gemgauge_budget_spent_exact", &labels, 0.0);
            self.gauge("gemgauge_budget_forecast_usd", &labels, 2.0 * spent);
            self.gauge("gemgauge_budget_period_start_timestamp_seconds", &labels, (END - 15 * DAY) as f64);
            self.gauge("gemgauge_budget_period_end_timestamp_seconds", &labels, (END + 15 * DAY) as f64);
            self.gauge("gemgauge_budget_info", &format!("{labels},period=\"month\",scope=\"{scope}\""), 1.0);
        }
    }

    fn service(&mut self) {
        let both = [(A, START), (B, JOINED)];
        for (instance, since) in both {
            self.add("up", instance, String::new(), since, |_| 1.0);
            self.add("gemgauge_up", instance, String::new(), since, |_| 1.0);
            let build = "version=\"0.1.0\",revision=\"unknown\",rustc=\"1.90.0\"";
            self.add("gemgauge_build_info", instance, build.to_owned(), since, |_| 1.0);
            self.grown("process_cpu_seconds_total", instance, String::new(), since, 0.0, 3.0);
            for (metric, value) in [
                ("process_open_fds", 30.0),
                ("process_max_fds", 1024.0),
                ("process_resident_memory_bytes", 2e7),
                ("process_threads", 9.0),
                ("process_start_time_seconds", since as f64),
                ("gemgauge_journal_lag_bytes", 12.0),
                ("gemgauge_watch_fallback", 0.0),
                ("gemgauge_writer_queue_length", 1.0),
                ("gemgauge_writer_blocked", 0.0),
            ] {
                self.add(metric, instance, String::new(), since, move |_| value);
            }
        }
        for (metric, label, values) in [
            ("gemgauge_journal_lines_total", "kind", ["request", "repeat", "control"]),
            ("gemgauge_journal_failed_reads_total", "reason", ["permission", "io", "not_json"]),
            ("gemgauge_journal_skipped_total", "reason", ["symlink", "not_regular", "temporary"]),
            ("gemgauge_journal_anomalies_total", "kind", ["total_mismatch", "undated", "glued"]),
            ("gemgauge_journal_undecodable_total", "reason", ["not_json", "bad_tokens", "torn_tail"]),
            ("gemgauge_webhook_deliveries_total", "result", ["ok", "failed", "gave_up"]),
        ] {
            for value in values {
                self.counter(metric, &format!("{label}=\"{value}\""), 1.0);
            }
        }
        for metric in [
            "gemgauge_journal_bytes_total",
            "gemgauge_journal_revisions_total",
            "gemgauge_journals_lost_total",
            "gemgauge_label_overflow_total",
            "gemgauge_runtime_mismatch_total",
            "gemgauge_same_minute_loads_total",
        ] {
            self.counter(metric, "", 2.0);
        }
        self.counter("gemgauge_door_oddities_total", "kind=\"duplicate_response\"", 1.0);
        self.counter("gemgauge_otlp_refused_total", "reason=\"busy\"", 1.0);
        for (state, value) in [("read", 40.0), ("behind", 1.0), ("lost", 2.0)] {
            self.gauge("gemgauge_journals", &format!("state=\"{state}\""), value);
        }
        for source in ["journal", "acp"] {
            self.gauge("gemgauge_source_up", &format!("source=\"{source}\""), 1.0);
            let labels = format!("source=\"{source}\"");
            self.add("gemgauge_source_last_event_timestamp_seconds", A, labels, START, |at| (at - 5) as f64);
            self.counter("gemgauge_events_total", &format!("source=\"{source}\",result=\"accepted\""), 1.0);
        }
        for file in ["db", "wal"] {
            self.gauge("gemgauge_ledger_bytes", &format!("file=\"{file}\""), 1e6);
        }
        for (le, gain) in [("0.0025", 1.0), ("0.25", 3.0), ("+Inf", 4.0)] {
            self.counter("gemgauge_ledger_commit_duration_seconds_bucket", &format!("le=\"{le}\""), gain);
        }
        self.counter("gemgauge_ledger_commit_duration_seconds_count", "", 4.0);
        self.counter("gemgauge_ledger_commit_duration_seconds_sum", "", 0.4);
        for collector in ["ledger", "process"] {
            let labels = format!("collector=\"{collector}\"");
            self.gauge("gemgauge_scrape_collector_success", &labels, 1.0);
            self.gauge("gemgauge_scrape_collector_duration_seconds", &labels, 0.01);
        }
        self.gauge("gemgauge_prices_info", "as_of=\"2026-11-01\"", 1.0);
    }
}

/// When Prometheus scraped: each hour, and each step of the last three hours.
fn moments() -> impl Iterator<Item = i64> {
    let fine = END - 3 * 3600;
    (START..=END).step_by(STEP as usize).filter(move |at| *at >= fine || (at - START) % 3600 == 0)
}

/// All series, by their metrics.
fn world() -> Vec<Series> {
    let mut world = World::default();
    for tuple in &TUPLES {
        world.spend(tuple);
    }
    world.turns();
    world.quota();
    world.budgets();
    world.service();
    let World(mut series) = world;
    series.sort_by_key(|series| series.metric);
    series
}

/// All of it as OpenMetrics with timestamps, for `promtool tsdb create-blocks-from`.
pub(super) fn open_metrics() -> String {
    let mut text = String::new();
    for Series { metric, instance, labels, since, value } in &world() {
        let comma = if labels.is_empty() { "" } else { "," };
        for at in moments().filter(|at| at >= since) {
            let value = value(at);
            writeln!(
                text,
                "{metric}{{job=\"gemgauge\",instance=\"{instance}\"{comma}{labels}}} {value} {at}"
            )
            .unwrap();
        }
    }
    text + "# EOF\n"
}

/// What is made up has the labels of what is exposed, and all of it is there but
/// what no dashboard shows.
#[test]
fn the_made_up_days_have_every_metric_with_its_labels() {
    let metrics = super::metrics();
    let mut made = BTreeSet::new();
    for series in world() {
        let family = super::family(series.metric);
        let mut labels: BTreeSet<_> = series
            .labels
            .split("\",")
            .filter_map(|pair| pair.split_once('='))
            .map(|(label, _)| label)
            .collect();
        if series.metric.ends_with("_bucket") {
            assert!(labels.remove("le"), "{}", series.labels);
        }
        if family != "up" {
            let wanted = metrics.get(&family).unwrap_or_else(|| panic!("there is no {family}"));
            assert_eq!(labels, wanted.iter().map(String::as_str).collect(), "{family}");
        }
        made.insert(family);
    }
    let missed: Vec<_> = metrics.keys().filter(|name| !made.contains(*name)).collect();
    assert_eq!(missed, ["process_virtual_memory_bytes"]);
}
