//! What holds for every report, over random ledgers around the hours at which
//! clocks are put forward and back.

use std::collections::BTreeSet;

use jiff::Timestamp;
use proptest::prelude::*;
use proptest::sample::subsequence;
use unicode_width::UnicodeWidthStr;

use super::build::{Part, Report};
use super::csv::Csv;
use super::json::Json;
use super::markdown::Markdown;
use super::range::RangeSpec;
use super::sample::{build_of, money, ms, render, zones};
use super::spec::{Dimension, Kind, ReportSpec, SortKey};
use super::table::Plain;
use super::{flatten, spec};
use crate::ledger::bound::{Bound, Reason, Reasons};
use crate::ledger::model::Role;
use crate::ledger::money::{CostBound, CostSum, Picodollars, PriceList};
use crate::ledger::spend::Spend;
use crate::ledger::tokens::{Class, Classes, Reading};
use crate::store::read::{Claim, Dimensions, HomeRow, ProjectRow, RequestRow, SessionRow};

/// Los Angeles forward and back, Lord Howe back and forward (half an hour),
/// 23:30 UTC, St John's back across midnight.
const HOURS: [&str; 6] = [
    "2026-03-08T10:00:00Z",
    "2026-11-01T09:00:00Z",
    "2026-04-04T15:00:00Z",
    "2026-10-03T15:30:00Z",
    "2026-11-15T23:30:00Z",
    "2010-11-07T02:31:00Z",
];
const DAY: i64 = 86_400_000;

#[derive(Clone, Debug)]
struct World {
    dimensions: Dimensions,
    requests: Vec<RequestRow>,
    spec: ReportSpec,
    now: i64,
}

impl World {
    fn report(&self, kind: Kind) -> Report {
        let spec = ReportSpec { kind, ..self.spec.clone() };
        let now = Timestamp::from_millisecond(self.now).expect("a time");
        let range = spec.range.resolve(5, &spec.timezone, now).expect("a range");
        build_of(&spec, range, &self.dimensions, &self.requests)
    }
}

fn count() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0..200_000_u64, 1 => Just(0), 1 => 0..(1_u64 << 63)]
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{1,8}(-[a-z0-9]{1,12}){0,4}",
        "[日本語の表é ]{1,20}",
        Just("a|b, \"c\"\n`d` *e* \\".to_owned()),
        Just("\u{1b}[31mred\u{202e}\t".to_owned()),
    ]
}

/// Ledgers of two homes, four projects and models, and up to eight sessions.
fn world() -> impl Strategy<Value = World> {
    let reading = (count(), count(), prop_oneof![3 => Just(0), 1 => count()], count(), count()).prop_map(
        |(prompt, cached, tool, output, thoughts)| Reading { prompt, cached, tool, output, thoughts },
    );
    let request = (1..=8_i64, 1..=4_i64, any::<bool>(), -4 * DAY..4 * DAY, reading, 0..8_u8);
    let session = ("[0-9a-f]{8}-[0-9a-f]{4}", 1..=4_i64, proptest::option::of(-4 * DAY..4 * DAY), 0..8_u8);
    let dimensions = subsequence(Dimension::ALL.to_vec(), 0..=5).prop_shuffle();
    (
        (
            0..HOURS.len(),
            0..zones().len(),
            dimensions,
            0..5_usize,
            proptest::option::of(1..4_usize),
            proptest::bool::weighted(0.25),
        ),
        proptest::collection::vec(request, 0..24),
        proptest::collection::vec(session, 8),
        proptest::collection::vec(name(), 10),
    )
        .prop_map(|((hour, zone, mut by, since, limit, no_cost), requests, sessions, names)| {
            let middle = ms(HOURS[hour]);
            by.sort_by_key(|dimension| *dimension == Dimension::Class);
            let since = [None, Some("all"), Some("today"), Some("3d"), Some("week")][since];
            let spec = ReportSpec {
                by,
                limit,
                range: RangeSpec::parse(since, None).expect("a range"),
                all: limit.is_some(),
                no_cost,
                ..ReportSpec::of(Kind::Daily, zones().swap_remove(zone))
            };
            let requests =
                requests.into_iter().zip(1..).map(|((session, model, sub, at, reading, price), id)| {
                    let role = if sub { Role::Subagent } else { Role::Main };
                    RequestRow {
                        id,
                        session_id: session,
                        model_id: model,
                        role,
                        at: middle + at,
                        reading,
                        model_inferred: false,
                        cost: cost(price, &reading),
                        above: false,
                        requests: 1,
                        claim: Claim::default(),
                    }
                });
            World {
                requests: requests.collect(),
                dimensions: dimensions_of(middle, sessions, &names),
                spec,
                now: middle + 3 * DAY,
            }
        })
}

/// What such a request costs: mostly at the one price or the other, at times at
/// the lower of two, as an estimate, or at none.
fn cost(price: u8, reading: &Reading) -> CostSum {
    let money = money();
    let name = if price.is_multiple_of(2) { "gemini-2.5-pro" } else { "gemini-2.5-flash" };
    let row = money.table.price(name, PriceList::GeminiApi, 0).expect("a price");
    match price {
        0..5 => (&row.cost(reading)).into(),
        5 => CostSum::priced(row.cost(reading).total(), CostBound::AtLeast),
        6 => (&row.estimate(&reading.classes())).into(),
        _ => CostSum::unpriced(reading.classes().total()),
    }
}

type SessionSeed = (String, i64, Option<i64>, u8);

fn dimensions_of(middle: i64, sessions: Vec<SessionSeed>, names: &[String]) -> Dimensions {
    let name = |place: usize| format!("{}{place}", names[place]);
    let homes =
        (1..=2).map(|id| HomeRow { id, path: format!("/h{id}"), name: name(id as usize), imported: true });
    let projects = (1..=4).map(|id| ProjectRow { id, home_id: id % 2 + 1, name: name(id as usize + 2) });
    let models = (1..=4).map(|id| (id, if id == 4 { "unknown".to_owned() } else { name(id as usize + 6) }));
    let sessions = sessions.into_iter().zip(1..).map(|((session, project_id, prompt, odd), id)| SessionRow {
        id,
        session: format!("{session}-{id}"),
        home_id: project_id % 2 + 1,
        project_id,
        started_at: (odd != 1).then_some(middle - DAY),
        prompts: prompt.map(|at| (middle + at, middle + at)),
        reasons: if odd == 2 { Reasons::NONE.with(Reason::TornLine) } else { Reasons::NONE },
        source_deleted: odd == 3,
        ..SessionRow::default()
    });
    Dimensions {
        homes: homes.map(|home| (home.id, home)).collect(),
        projects: projects.map(|project| (project.id, project)).collect(),
        models: models.collect(),
        sessions: sessions.map(|session| (session.id, session)).collect(),
    }
}

fn sum<'s>(spends: impl IntoIterator<Item = &'s Spend>) -> Spend {
    let mut sum = Spend::default();
    spends.into_iter().for_each(|spend| sum.add(spend));
    sum
}

fn parts_add_up(spend: &Spend, parts: &[Part]) {
    if !parts.is_empty() {
        assert_eq!(sum(parts.iter().map(|part| &part.spend)), *spend);
        parts.iter().for_each(|part| parts_add_up(&part.spend, &part.parts));
    }
}

/// Tokens in the range by another way.
fn by_offsets(world: &World, report: &Report) -> (u64, Classes) {
    let mut sum = (0, Classes::default());
    for request in in_range(world, report) {
        sum.0 += 1;
        sum.1.add(&request.reading.classes());
    }
    sum
}

/// What is priced and the tokens that are not, the same way.
fn costs_by_offsets(world: &World, report: &Report) -> (Picodollars, u64) {
    let (mut usd, mut unpriced) = (0, 0_u64);
    for request in in_range(world, report) {
        usd += request.cost.amount().get();
        unpriced = unpriced.saturating_add(request.cost.unpriced_tokens());
    }
    (Picodollars::new(usd), unpriced)
}

/// The requests in the range by the zone's offset and whole days.
fn in_range<'w>(world: &'w World, report: &Report) -> Vec<&'w RequestRow> {
    let day = |date: jiff::civil::Date| {
        let epoch = jiff::civil::date(1970, 1, 1);
        i64::from(epoch.until(date).expect("days").get_days())
    };
    let within = |request: &&RequestRow| {
        let at = Timestamp::from_millisecond(request.at).expect("a time");
        let shown = request.at + i64::from(world.spec.timezone.to_offset(at).seconds()) * 1000;
        let today = shown.div_euclid(DAY);
        let since = report.range.since.is_none_or(|since| day(since) <= today);
        since && report.range.until.is_none_or(|until| today <= day(until))
    };
    world.requests.iter().filter(within).collect()
}

/// A reader of RFC 4180 written for this test.
fn parse_csv(text: &str) -> Vec<Vec<String>> {
    let mut rows = vec![vec![String::new()]];
    let mut chars = text.chars().peekable();
    let mut quoted = false;
    while let Some(c) = chars.next() {
        let row = rows.last_mut().expect("a row");
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                row.last_mut().expect("a cell").extend(chars.next())
            }
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(String::new()),
            '\r' if !quoted && chars.peek() == Some(&'\n') => {
                chars.next();
                rows.push(vec![String::new()]);
            }
            c => row.last_mut().expect("a cell").push(c),
        }
    }
    assert_eq!(rows.pop(), Some(vec![String::new()]), "it ends in a line break");
    rows
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rows_and_parts_add_up_to_the_same_total_in_every_kind(world in world()) {
        let mut totals: Vec<Spend> = Vec::new();
        for kind in Kind::ALL {
            let report = world.report(*kind);
            let rest = report.rest.iter().map(|(_, spend)| spend);
            let mut added = sum(report.rows.iter().map(|row| &row.spend).chain(rest));
            if !world.spec.no_cost {
                added.add_cost(&CostSum::default());
            }
            prop_assert_eq!(added, report.total);
            prop_assert_eq!(report.total.cost().is_some(), !world.spec.no_cost);
            report.rows.iter().for_each(|row| parts_add_up(&row.spend, &row.parts));
            let (requests, tokens) = by_offsets(&world, &report);
            prop_assert_eq!(report.total.requests, requests);
            prop_assert_eq!(report.total.tokens().unwrap_or_default(), tokens);
            if let Some(cost) = report.total.cost() {
                let (usd, unpriced) = costs_by_offsets(&world, &report);
                prop_assert_eq!(cost.usd.unwrap_or_default(), usd);
                prop_assert_eq!(cost.unpriced_tokens, unpriced);
                prop_assert_eq!(unpriced > 0, !report.costs.iter().all(|c| c.unpriced_models.is_empty()));
                prop_assert!(requests == 0 || cost.bound != CostBound::Exact);
            }
            let keys: BTreeSet<_> = report.rows.iter().map(|row| (&row.key, &row.home)).collect();
            prop_assert_eq!(keys.len(), report.rows.len());
            totals.push(report.total);
        }
        prop_assert!(totals.windows(2).all(|pair| pair[0] == pair[1]));
    }

    #[test]
    fn no_figure_of_the_watcher_is_exact(world in world()) {
        let report = world.report(Kind::Sessions);
        for row in &report.rows {
            prop_assert_eq!(row.spend.requests > 0, row.spend.bound() == Bound::AtLeast);
            prop_assert_eq!(row.spend.reasons.is_empty(), row.spend.bound() == Bound::Exact);
        }
    }

    #[test]
    fn the_order_of_the_requests_changes_nothing(world in world()) {
        let mut reversed = world.clone();
        reversed.requests.reverse();
        for kind in Kind::ALL {
            prop_assert_eq!(world.report(*kind).rows, reversed.report(*kind).rows);
        }
    }

    #[test]
    fn no_line_of_a_table_is_wider_than_80_columns(world in world()) {
        for kind in Kind::ALL {
            let plain = Plain { chart: world.spec.limit.is_none(), ..Plain::default() };
            let text = render(&plain, &world.report(*kind));
            for line in text.lines() {
                prop_assert!(line.width() <= 80, "{}\n{}", line, text);
                prop_assert!(!line.contains('\u{1b}'), "{}", text);
            }
        }
    }

    #[test]
    fn csv_reads_back_to_the_same_names_and_counts(world in world()) {
        for kind in Kind::ALL {
            let report = world.report(*kind);
            let read = parse_csv(&render(&Csv, &report));
            let keys = flatten::key_columns(&report, true);
            let lines = flatten::lines(&report, &Class::ALL);
            prop_assert_eq!(read.len(), lines.len() + 1);
            for (cells, line) in read[1..].iter().zip(&lines) {
                prop_assert_eq!(cells.len(), read[0].len());
                for (cell, key) in cells.iter().zip(&keys) {
                    prop_assert_eq!(cell, key.text(line));
                }
                let place = read[0].iter().position(|name| name == "total").expect("the column");
                let total = line.spend().tokens().map(|tokens| {
                    line.class.map_or_else(|| tokens.total(), |class| tokens.get(class)).to_string()
                });
                prop_assert_eq!(&cells[place], &total.unwrap_or_default());
                let place = read[0].iter().position(|name| name == "cost_usd");
                prop_assert_eq!(place.is_some(), flatten::costs(&report).is_some());
                if let Some(place) = place {
                    let usd = line.spend().cost().and_then(|cost| cost.usd);
                    prop_assert_eq!(&cells[place], &usd.map_or_else(String::new, |usd| usd.to_string()));
                }
            }
        }
    }

    #[test]
    fn markdown_rows_have_the_cells_of_their_header(world in world()) {
        for kind in Kind::ALL {
            let text = render(&Markdown, &world.report(*kind));
            let pipes = |line: &str| line.replace("\\\\", "").replace("\\|", "").matches('|').count();
            let counts: BTreeSet<_> = text.lines().filter(|line| line.starts_with('|')).map(pipes).collect();
            prop_assert!(counts.len() <= 1, "{}", text);
        }
    }

    #[test]
    fn json_totals_are_the_sums_of_their_rows(world in world()) {
        let world = World { spec: ReportSpec { sort: Some(SortKey::Total), ..world.spec.clone() }, ..world };
        for kind in Kind::ALL {
            let text = render(&Json::default(), &world.report(*kind));
            let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
            let rows = json["rows"].as_array().expect("rows").iter().chain(json.get("rest"));
            let requests: u64 = rows.map(|row| row["requests"].as_u64().expect("a count")).sum();
            prop_assert_eq!(json["total"]["requests"].as_u64(), Some(requests));
        }
    }
}

#[test]
fn the_zones_of_these_laws_put_their_clocks_forward_and_back() {
    let differs = |zone: &str, hour: &str| {
        let zone = spec::zone(zone).expect("known");
        let offset = |at| zone.to_offset(Timestamp::from_millisecond(at).expect("a time"));
        offset(ms(hour) - 3_600_000) != offset(ms(hour) + 3_600_000)
    };
    for (zone, hour) in [
        ("America/Los_Angeles", HOURS[0]),
        ("America/Los_Angeles", HOURS[1]),
        ("Australia/Lord_Howe", HOURS[2]),
        ("Australia/Lord_Howe", HOURS[3]),
        ("America/St_Johns", HOURS[5]),
    ] {
        assert!(differs(zone, hour), "{zone} {hour}");
    }
}
