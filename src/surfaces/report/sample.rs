//! A small ledger by hand, for the tests of this room.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::build::{Build, Report};
use super::money::Money;
use super::range::Range;
use super::spec::{Kind, Options, ReportSpec};
use super::{Format, spec};
use crate::config::Pricing;
use crate::ledger::bound::{Reason, Reasons};
use crate::ledger::model::Role;
use crate::ledger::money::{Billing, CostSum, Day, PriceList, PriceRow, PriceTable, Rate, Rates, Validity};
use crate::ledger::tokens::Reading;
use crate::store::read::{Claim, Dimensions, HomeRow, Mark, ProjectRow, RequestRow, SessionRow};

/// A Monday, the last day of the samples.
pub(in crate::surfaces) const NOW: &str = "2026-11-30T12:00:00Z";

pub(in crate::surfaces) fn ms(time: &str) -> i64 {
    time.parse::<Timestamp>().expect("a time").as_millisecond()
}

/// Two homes; sessions 1 and 3 of `api`, 2 of `web`, 4 of bob's `scratch`.
/// Session 2 is deleted, 3 prompted and never answered, 4 has a torn line.
pub(in crate::surfaces) fn dimensions() -> Dimensions {
    let home =
        |id, name: &str| HomeRow { id, path: format!("/home/{name}"), name: name.to_owned(), imported: true };
    let project = |id, home_id, name: &str| ProjectRow { id, home_id, name: name.to_owned() };
    let session = |id: i64, project_id: i64, name: &str, started: &str| SessionRow {
        id,
        session: name.to_owned(),
        home_id: if project_id == 3 { 2 } else { 1 },
        project_id,
        started_at: Some(ms(started)),
        prompts: Some((ms(started) + 1_000, ms(started) + 60_000)),
        reasons: Reasons::NONE,
        source_deleted: id == 2,
        ..SessionRow::default()
    };
    let mut torn = session(4, 3, "0c7713fe-21a3-4f08-9a55-1f2e3d4c5b6a", "2026-11-30T10:00:00Z");
    torn.reasons.insert(Reason::TornLine);
    let sessions = [
        session(1, 1, "b4265a7e-16f4-4a8e-9b1c-0d2e4f6a8c1b", "2026-11-28T09:00:00Z"),
        session(2, 2, "5e1d20aa-3b3b-4c4c-8d8d-9e9e0f0f1a1a", "2026-11-29T23:20:00Z"),
        session(3, 1, "77aa0b1c-9d8e-4f7a-8b6c-5d4e3f2a1b0c", "2026-11-30T08:00:00Z"),
        torn,
    ];
    Dimensions {
        homes: [home(1, "ana"), home(2, "bob")].into_iter().map(|home| (home.id, home)).collect(),
        projects: [project(1, 1, "api"), project(2, 1, "web"), project(3, 2, "scratch")]
            .into_iter()
            .map(|project| (project.id, project))
            .collect(),
        models: [(1, "gemini-2.5-pro"), (2, "gemini-2.5-flash")]
            .into_iter()
            .map(|(id, name)| (id, name.to_owned()))
            .collect(),
        sessions: sessions.into_iter().map(|session| (session.id, session)).collect(),
    }
}

pub(in crate::surfaces) fn request(
    id: i64,
    session_id: i64,
    model_id: i64,
    at: &str,
    reading: Reading,
) -> RequestRow {
    RequestRow {
        id,
        session_id,
        model_id,
        role: Role::Main,
        at: ms(at),
        reading,
        model_inferred: false,
        cost: cost(model_id, reading),
        above: false,
        requests: 1,
        claim: Claim::default(),
    }
}

fn cost(model_id: i64, reading: Reading) -> CostSum {
    let table = money().table;
    let name = if model_id == 1 { "gemini-2.5-pro" } else { "gemini-2.5-flash" };
    table
        .price(name, PriceList::GeminiApi, ms(NOW))
        .map_or_else(|_| CostSum::unpriced(reading.classes().total()), |row| (&row.cost(&reading)).into())
}

/// Two models at the rates of 2026; ana pays by the token, bob has a seat.
pub(super) fn money() -> Money {
    let rates = |input, cached, output| {
        let rate = |text| Rate::per_million(text).expect("a rate");
        Rates { input: rate(input), cached: rate(cached), output: rate(output), thoughts: None }
    };
    let row = |model: &str, low, high| PriceRow {
        model: model.to_owned(),
        list: PriceList::GeminiApi,
        valid: Validity::default(),
        low,
        high,
        at_least: false,
        retired: false,
        source: "https://example.com/prices".to_owned(),
    };
    let rows = vec![
        row("gemini-2.5-pro", rates("1.25", "0.125", "10"), Some(rates("2.5", "0.25", "15"))),
        row("gemini-2.5-flash", rates("0.3", "0.03", "2.5"), None),
    ];
    let pays = |billing| Pricing { billing, list: PriceList::GeminiApi };
    Money {
        table: PriceTable::new(rows, Vec::new(), Some(Day(20_787))).expect("a table").into(),
        homes: [("/home/ana", pays(Billing::Metered)), ("/home/bob", pays(Billing::Seat))]
            .map(|(path, pays)| (path.to_owned(), pays))
            .into(),
        currency: None,
    }
}

/// Six requests of three sessions; one of a subagent.
pub(in crate::surfaces) fn requests() -> Vec<RequestRow> {
    let reading = |prompt, cached, output, thoughts| Reading { prompt, cached, tool: 0, output, thoughts };
    let mut subagent = request(4, 2, 2, "2026-11-30T00:10:00Z", reading(5_000, 0, 90, 0));
    subagent.role = Role::Subagent;
    vec![
        request(1, 1, 1, "2026-11-28T09:01:00Z", reading(15_327, 11_526, 23, 919)),
        request(2, 1, 1, "2026-11-28T09:05:00Z", reading(18_000, 15_000, 410, 64)),
        request(3, 2, 1, "2026-11-29T23:30:00Z", reading(1_100, 800, 12, 70)),
        subagent,
        request(5, 2, 2, "2026-11-30T00:20:00Z", reading(2_000, 900, 33, 0)),
        request(6, 4, 2, "2026-11-30T10:01:00Z", reading(1_234_567, 1_000_000, 3_210, 12)),
    ]
}

/// What the caller of a build does, without a store.
pub(in crate::surfaces) fn build_of(
    spec: &ReportSpec,
    range: Range,
    dimensions: &Dimensions,
    requests: &[RequestRow],
) -> Report {
    let money = money();
    let mut build = Build::new(spec, &money, range, dimensions);
    requests.iter().for_each(|request| build.add(request));
    let silent = |mark: &Mark| requests.iter().all(|request| request.session_id != mark.session_id);
    let marks = dimensions.sessions.values().filter_map(SessionRow::silent).filter(silent);
    marks.for_each(|mark| build.mark(&mark));
    build.finish()
}

/// Options by name, as a query gives them.
pub(in crate::surfaces) fn options(pairs: &[(&str, &str)]) -> Options {
    let mut options = Options::default();
    for (name, value) in pairs {
        let value = (*value).to_owned();
        match *name {
            "since" => options.since = Some(value),
            "until" => options.until = Some(value),
            "timezone" => options.timezone = Some(value),
            "sort" => options.sort = Some(value),
            "order" => options.order = Some(value),
            "limit" => options.limit = Some(value),
            "by" => options.by.push(value),
            "project" => options.project.push(value),
            "model" => options.model.push(value),
            "session" => options.session.push(value),
            "home" => options.home.push(value),
            "exclude" => options.exclude.push(value),
            "breakdown" => options.breakdown = true,
            "compact" => options.compact = true,
            "all" => options.all = true,
            "no-cost" => options.no_cost = true,
            other => panic!("no option {other}"),
        }
    }
    options
}

/// A report of the sample, by options.
pub(in crate::surfaces) fn report(kind: Kind, pairs: &[(&str, &str)]) -> Report {
    let spec = ReportSpec::new(kind, &options(pairs), &TimeZone::UTC).expect("a spec");
    let now = NOW.parse().expect("a time");
    let range = spec.range.resolve(kind.default_days(), &spec.timezone, now).expect("a range");
    build_of(&spec, range, &dimensions(), &requests())
}

pub(in crate::surfaces) fn render(format: &dyn Format, report: &Report) -> String {
    let mut out = Vec::new();
    format.render(report, &mut out).expect("a Vec takes everything");
    String::from_utf8(out).expect("reports are UTF-8")
}

pub(in crate::surfaces) fn zones() -> Vec<TimeZone> {
    ["UTC", "America/Los_Angeles", "Pacific/Kiritimati", "Australia/Lord_Howe", "America/St_Johns"]
        .iter()
        .map(|name| spec::zone(name).expect("known"))
        .collect()
}
