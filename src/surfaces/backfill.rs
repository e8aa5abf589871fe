//! The ledger's history as OpenMetrics with timestamps, under exactly the
//! labels of the scrape: for `promtool tsdb create-blocks-from openmetrics`.
//!
//! Counters grow by the time of the requests. A sample stands at the end of
//! each step in which something changed, and one with the value before at the
//! end of the step before it: at first 0, as in the scrape, later so that
//! `rate` finds the growth where it was.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use super::metrics::family::{Descriptor, escape};
use super::metrics::money::COST;
use super::metrics::tokens::{REQUESTS, TOKENS};
use super::pricing::{ByClass, HomePrices};
use crate::ledger::bound::Bound;
use crate::ledger::money::{CostBound, Picodollars};
use crate::ledger::tokens::{Class, Classes};
use crate::store::StoreError;
use crate::store::read::{Dimensions, RequestRow, Snapshot, TupleRow};

/// The value of the labels of what no longer fits.
const OTHER: &str = "other";

/// What to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackfillSpec {
    /// The labels that Prometheus itself gives to what it scrapes.
    pub job: String,
    pub instance: String,
    /// Milliseconds between samples, more than zero.
    pub step: i64,
    /// Unix ms: what is before it is the value the counters begin with.
    pub since: Option<i64>,
    /// Unix ms: the last moment.
    pub until: i64,
}

/// home, project, model, role.
type Labels = [String; 4];

#[derive(Clone, Copy, Debug, Default)]
struct Growth {
    requests: u64,
    tokens: Classes,
    /// `None`: nothing of it is priced.
    costs: Option<ByClass>,
}

/// What grew at the end of which step, unix ms.
type Steps = BTreeMap<i64, Growth>;

/// History in the making: give it every request, then write it.
pub struct Backfill<'a> {
    spec: &'a BackfillSpec,
    dimensions: &'a Dimensions,
    prices: &'a HomePrices,
    /// The label sets of the scrape.
    known: BTreeSet<Labels>,
    series: BTreeMap<Labels, Steps>,
}

/// Reads the ledger and writes its history. Sessions that are not in
/// `dimensions` are left out.
///
/// # Errors
/// Whatever the store says; `Ok` holds what `out` says.
pub fn write(
    snapshot: &Snapshot<'_>,
    dimensions: &Dimensions,
    spec: &BackfillSpec,
    prices: &HomePrices,
    out: &mut dyn io::Write,
) -> Result<io::Result<()>, StoreError> {
    let mut backfill = Backfill::new(spec, dimensions, prices, &snapshot.tuples()?);
    snapshot.requests(i64::MIN..spec.until.saturating_add(1), |request| backfill.add(&request))?;
    Ok(backfill.write(out))
}

impl<'a> Backfill<'a> {
    #[must_use]
    pub fn new(
        spec: &'a BackfillSpec,
        dimensions: &'a Dimensions,
        prices: &'a HomePrices,
        tuples: &[TupleRow],
    ) -> Self {
        let known = tuples.iter().map(|t| [&t.home, &t.project, &t.model, &t.role].map(String::clone));
        Self { spec, dimensions, prices, known: known.collect(), series: BTreeMap::new() }
    }

    pub fn add(&mut self, request: &RequestRow) {
        let request = &request.alone();
        let Some(session) = self.dimensions.sessions.get(&request.session_id) else { return };
        let Some(home) = self.dimensions.homes.get(&session.home_id) else { return };
        let project = self.dimensions.projects.get(&session.project_id).map(|project| project.name.as_str());
        let Some((project, model)) = project.zip(self.dimensions.models.get(&request.model_id)) else {
            return;
        };
        let own = [&home.name, project, model, request.role.as_str()].map(str::to_owned);
        let other = [&home.name, OTHER, OTHER, OTHER].map(str::to_owned);
        let labels = if !self.known.contains(&own) && self.known.contains(&other) { other } else { own };
        let at = self.sample_at(request.at);
        let growth = self.series.entry(labels).or_default().entry(at).or_default();
        growth.requests += request.requests;
        growth.tokens.add(&request.reading.classes());
        let cost = request.cost.figure(Bound::Exact);
        if cost.usd.is_some() && cost.bound != CostBound::Estimate && !request.cost.any_unpriced() {
            let more = self.prices.by_class(home, model, request);
            let costs = growth.costs.get_or_insert_default();
            costs.iter_mut().zip(more).for_each(|(sum, more): (&mut Picodollars, _)| *sum += more);
        }
    }

    /// The end of the step of a request, which the next scrape would be; the
    /// last sample is at the last moment.
    fn sample_at(&self, at: i64) -> i64 {
        if let Some(since) = self.spec.since.filter(|since| at <= *since) {
            return since;
        }
        let steps = at.div_euclid(self.spec.step) + i64::from(at.rem_euclid(self.spec.step) > 0);
        steps.saturating_mul(self.spec.step).min(self.spec.until)
    }

    /// The end of the step before that of a sample.
    fn before(&self, sample: i64) -> i64 {
        (sample - 1).div_euclid(self.spec.step) * self.spec.step
    }

    /// # Errors
    /// Whatever `out` says.
    pub fn write(&self, out: &mut dyn io::Write) -> io::Result<()> {
        head(out, &TOKENS)?;
        for (labels, steps) in &self.series {
            for class in Class::ALL {
                let text = self.labels(labels, Some(class));
                let grown = steps.iter().map(|(at, growth)| (*at, growth.tokens.get(class)));
                self.counter(out, &TOKENS, &text, grown, u64::saturating_add, |n| n.to_string())?;
            }
        }
        head(out, &REQUESTS)?;
        for (labels, steps) in &self.series {
            let text = self.labels(labels, None);
            let grown = steps.iter().map(|(at, growth)| (*at, growth.requests));
            self.counter(out, &REQUESTS, &text, grown, u64::saturating_add, |n| n.to_string())?;
        }
        let priced = |steps: &Steps| steps.values().any(|growth| growth.costs.is_some());
        if self.series.values().any(priced) {
            head(out, &COST)?;
        }
        for (labels, steps) in self.series.iter().filter(|(_, steps)| priced(steps)) {
            for class in Class::ALL {
                let text = self.labels(labels, Some(class));
                let cost = |growth: &Growth| growth.costs.map_or(Picodollars::ZERO, |c| c[class as usize]);
                let grown = steps.iter().map(|(at, growth)| (*at, cost(growth)));
                self.counter(out, &COST, &text, grown, |a, b| a + b, |usd| usd.to_string())?;
            }
        }
        writeln!(out, "# EOF")
    }

    /// The samples of one series: nothing first, then each change.
    fn counter<T: Copy + Default + PartialEq>(
        &self,
        out: &mut dyn io::Write,
        descriptor: &Descriptor,
        labels: &str,
        grown: impl Iterator<Item = (i64, T)>,
        add: fn(T, T) -> T,
        text: fn(T) -> String,
    ) -> io::Result<()> {
        let name = descriptor.name;
        let mut sum = T::default();
        let mut last = None;
        for (at, more) in grown {
            let changed = more != T::default();
            let history = self.spec.since == Some(at);
            let before = self.before(at);
            if !history && (last.is_none() || (changed && last.is_some_and(|last| last < before))) {
                writeln!(out, "{name}{{{labels}}} {} {}", text(sum), Seconds(before))?;
                last = Some(before);
            }
            if changed || history {
                sum = add(sum, more);
                writeln!(out, "{name}{{{labels}}} {} {}", text(sum), Seconds(at))?;
                last = Some(at);
            }
        }
        Ok(())
    }

    fn labels(&self, labels: &Labels, class: Option<Class>) -> String {
        let names = ["home", "project", "model", "role"].into_iter().zip(labels.iter().map(String::as_str));
        let class = class.map(|class| ("class", class.as_str()));
        let own = [("instance", self.spec.instance.as_str()), ("job", self.spec.job.as_str())];
        let pairs = names.chain(class).chain(own).map(|(name, value)| {
            let mut pair = format!("{name}=\"");
            escape(&mut pair, value, true);
            pair + "\""
        });
        pairs.collect::<Vec<_>>().join(",")
    }
}

fn head(out: &mut dyn io::Write, descriptor: &Descriptor) -> io::Result<()> {
    let (name, mut help) = (descriptor.open_metrics_family(), String::new());
    escape(&mut help, descriptor.help, true);
    writeln!(out, "# TYPE {name} counter\n# HELP {name} {help}")
}

/// Unix milliseconds as the seconds of a timestamp.
struct Seconds(i64);

impl std::fmt::Display for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (whole, rest) = (self.0.div_euclid(1000), self.0.rem_euclid(1000));
        if rest == 0 { write!(f, "{whole}") } else { write!(f, "{whole}.{rest:03}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::money::CostSum;
    use crate::ledger::tokens::Reading;
    use crate::surfaces::report::sample;

    fn spec(since: Option<&str>) -> BackfillSpec {
        BackfillSpec {
            job: "gemgauge".into(),
            instance: "localhost:10436".into(),
            step: 300_000,
            since: since.map(sample::ms),
            until: sample::ms("2026-11-30T12:00:00Z"),
        }
    }

    fn written(spec: &BackfillSpec, requests: &[RequestRow], tuples: &[TupleRow]) -> String {
        let dimensions = sample::dimensions();
        let prices = HomePrices::default();
        let mut backfill = Backfill::new(spec, &dimensions, &prices, tuples);
        requests.iter().for_each(|request| backfill.add(request));
        let mut out = Vec::new();
        backfill.write(&mut out).expect("a Vec takes everything");
        String::from_utf8(out).expect("UTF-8")
    }

    fn samples<'t>(text: &'t str, start: &str) -> Vec<&'t str> {
        text.lines()
            .filter(|line| line.starts_with(start))
            .map(|line| line.rsplit_once('}').expect("labels end").1.trim())
            .collect()
    }

    fn unpriced(request: RequestRow) -> RequestRow {
        RequestRow { cost: CostSum::unpriced(request.reading.classes().total()), ..request }
    }

    #[test]
    fn counters_begin_at_zero_hold_and_grow_at_the_ends_of_steps() {
        let request = |id, at, output| {
            unpriced(sample::request(id, 1, 1, at, Reading { prompt: 10, output, ..Reading::default() }))
        };
        let requests = [
            request(1, "2026-11-28T09:01:00Z", 1),
            request(2, "2026-11-28T09:04:59Z", 2),
            request(3, "2026-11-28T09:05:00.001Z", 4),
            request(4, "2026-11-28T10:00:00Z", 8),
        ];
        let text = written(&spec(None), &requests, &[]);
        let at = |time: &str| sample::ms(time) / 1000;
        let requests_line = "gemgauge_requests_total{home=\"ana\",project=\"api\",model=\"gemini-2.5-pro\",\
                             role=\"main\",instance=\"localhost:10436\",job=\"gemgauge\"}";
        let want = |values: [u64; 5]| {
            let times = ["09:00:00", "09:05:00", "09:10:00", "09:55:00", "10:00:00"];
            let line = |(value, time): (u64, &str)| format!("{value} {}", at(&format!("2026-11-28T{time}Z")));
            values.into_iter().zip(times).map(line).collect::<Vec<_>>()
        };
        assert_eq!(samples(&text, requests_line), want([0, 2, 3, 3, 4]));
        let tokens = |class: &str| {
            let start = "gemgauge_tokens_total{home=\"ana\",project=\"api\",model=\"gemini-2.5-pro\",role=\"main\",class=";
            samples(&text, &format!("{start}\"{class}\"")).into_iter().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(tokens("output"), want([0, 3, 7, 7, 15]));
        assert_eq!(tokens("thoughts"), want([0, 0, 0, 0, 0])[..1], "a class without tokens stands at 0");
        assert!(!text.contains("gemgauge_cost_usd"), "nothing is priced");
        assert!(
            text.starts_with("# TYPE gemgauge_tokens counter\n# HELP gemgauge_tokens ")
                && text.ends_with("\n# EOF\n")
        );
    }

    #[test]
    fn what_is_before_since_is_where_the_counters_begin() {
        let since = "2026-11-28T09:03:00Z";
        let text = written(&spec(Some(since)), &sample::requests(), &[]);
        let seconds = sample::ms(since) / 1000;
        let pro = "gemgauge_requests_total{home=\"ana\",project=\"api\"";
        assert_eq!(samples(&text, pro)[0], format!("1 {seconds}"));
        assert_eq!(
            samples(&text, "gemgauge_requests_total{home=\"ana\",project=\"web\"")[0].split(' ').next(),
            Some("0")
        );
        // Time never runs back within a series, and no value falls.
        let mut last: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (series, sample) = line.rsplit_once("} ").expect("labels end");
            let (value, at) = sample.split_once(' ').expect("a timestamp");
            let now = (at.parse().expect("seconds"), value.parse().expect("a value"));
            if let Some(before) = last.insert(series, now) {
                assert!(before.0 < now.0 && before.1 <= now.1, "{line}");
            }
        }
    }

    #[test]
    fn the_last_sample_is_no_later_than_the_last_moment() {
        let spec = BackfillSpec { until: sample::ms("2026-11-30T10:02:00Z"), ..spec(None) };
        let text = written(&spec, &sample::requests(), &[]);
        let bob = samples(&text, "gemgauge_requests_total{home=\"bob\"");
        let at = |time| sample::ms(time) / 1000;
        let want = [format!("0 {}", at("2026-11-30T10:00:00Z")), format!("1 {}", at("2026-11-30T10:02:00Z"))];
        assert_eq!(bob, want);
    }

    #[test]
    fn what_the_scrape_calls_other_is_other_here_too() {
        let tuple = TupleRow {
            id: 1,
            home: "bob".into(),
            project: OTHER.into(),
            model: OTHER.into(),
            role: OTHER.into(),
            ..TupleRow::default()
        };
        let text = written(&spec(None), &sample::requests(), &[tuple]);
        assert!(text.contains("home=\"bob\",project=\"other\",model=\"other\",role=\"other\","), "{text}");
        assert!(!text.contains("scratch") && text.contains("project=\"api\""));
    }

    #[test]
    fn costs_are_written_where_they_are_priced() {
        let mut requests: Vec<_> = sample::requests().into_iter().map(unpriced).collect();
        requests[0].cost = CostSum::priced(Picodollars::new(1_500_000_000_000), CostBound::Exact);
        let text = written(&spec(None), &requests, &[]);
        let costs = text.lines().filter(|line| line.starts_with("gemgauge_cost_usd_total{"));
        let last: Vec<f64> = costs
            .filter(|line| line.contains("project=\"api\""))
            .map(|line| line.split(' ').nth(1).expect("a value").parse().expect("a number"))
            .collect();
        assert!((last.iter().sum::<f64>() - 1.5).abs() < 1e-9, "{text}");
        assert!(!text.contains("gemgauge_cost_usd_total{home=\"bob\""));
    }
}
