//! One session with its requests and the story of its figure: `explain` and
//! `GET /api/v1/sessions/{id}`.

use std::collections::BTreeSet;
use std::io;

use jiff::tz::TimeZone;

use super::build::Row;
use super::money::{Costs, Money, Pays};
use super::turns::{self, TurnReport};
use super::{ReportError, json, session_story, session_text};
use crate::ledger::bound::Bound;
use crate::ledger::model::{Role, UNKNOWN, canonical};
use crate::ledger::money::{Billing, Cost, CostFigure, CostSum, PriceList, PriceRow, Rates, Unpriced};
use crate::ledger::spend::Spend;
use crate::ledger::tokens::Classes;
use crate::store::read::{Dimensions, RequestRow, SessionRow, Snapshot, UndecodableRow};

/// How many sessions an ambiguous id lists.
const LISTED: usize = 5;

/// The session that a person means: a full id, the only one that begins so,
/// or `latest`, the one prompted last. To look in some homes only, take the
/// sessions of others out of `dimensions` first.
///
/// # Errors
/// No such session, or several.
pub fn resolve(dimensions: &Dimensions, query: &str) -> Result<i64, ReportError> {
    let query = query.trim();
    let sessions = || dimensions.sessions.values();
    if query == "latest" {
        // Sessions nobody prompted are start-up journals: last resort.
        let rank = |session: &&SessionRow| {
            let prompted = session.prompts.map(|(_, last)| last);
            (prompted, session.started_at, session.session.clone())
        };
        return sessions().max_by_key(rank).map(|session| session.id).ok_or(ReportError::NoSession);
    }
    let whole: Vec<_> = sessions().filter(|session| session.session == query).collect();
    let found = if whole.is_empty() && !query.is_empty() {
        sessions().filter(|session| session.session.starts_with(query)).collect()
    } else {
        whole
    };
    match found.as_slice() {
        [] => Err(ReportError::UnknownSession(query.to_owned())),
        [only] => Ok(only.id),
        several => {
            let mut found: Vec<_> = several.iter().take(LISTED).map(|s| listed(dimensions, s)).collect();
            if several.len() > LISTED {
                found.push(format!("{} more", several.len() - LISTED));
            }
            Err(ReportError::AmbiguousSession { query: query.to_owned(), found })
        }
    }
}

/// A session among several: its id, and its home where that can tell them apart.
fn listed(dimensions: &Dimensions, session: &SessionRow) -> String {
    match dimensions.homes.get(&session.home_id) {
        Some(home) if dimensions.homes.len() > 1 => format!("{} (home {})", session.session, home.name),
        _ => session.session.clone(),
    }
}

/// A session as `explain` shows it.
#[derive(Clone, Debug)]
pub struct SessionReport {
    /// As in the sessions report, but of all time.
    pub row: Row,
    /// Oldest first.
    pub requests: Vec<Request>,
    /// By their start, each with its own story.
    pub turns: Vec<TurnReport>,
    /// In file order.
    pub undecodable: Vec<UndecodableRow>,
    /// Sentences that say why the figure is what it is.
    pub story: Vec<String>,
    pub costs: Costs,
    /// Whose prices its home pays.
    pub list: PriceList,
}

/// One request with its names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The message id, unique within a home.
    pub id: String,
    /// When the answer ended, unix ms.
    pub at: i64,
    pub model: String,
    pub model_inferred: bool,
    pub role: Role,
    /// A turn claims it.
    pub in_turn: bool,
    pub tokens: Classes,
    /// What the ledger says it costs.
    pub cost: CostFigure,
    /// What the prices in force say: the same, unless they or the home's list
    /// changed since the ledger priced it.
    pub price: Result<Price, Unpriced>,
}

impl Request {
    /// The price that led to its cost.
    #[must_use]
    pub fn price_of_cost(&self) -> Option<&Price> {
        self.price.as_ref().ok().filter(|price| self.cost.usd == Some(price.cost.total()))
    }
}

/// How prices make a cost of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Price {
    pub row: PriceRow,
    /// The name that an alias of the table stands for the row's model by.
    pub alias: Option<String>,
    pub cost: Cost,
}

impl Price {
    fn of(money: &Money, list: PriceList, model: &str, request: &RequestRow) -> Result<Self, Unpriced> {
        let row = money.table.price(model, list, request.at)?;
        let alias = (row.model != canonical(model)).then(|| canonical(model).to_owned());
        Ok(Self { row: row.clone(), alias, cost: row.cost(&request.reading) })
    }

    /// The rates that its tier has.
    #[must_use]
    pub fn rates(&self) -> &Rates {
        self.row.rates(self.cost.tier)
    }
}

/// Everything the ledger knows of one session (a key of [`Dimensions::sessions`]).
///
/// # Errors
/// Whatever the store says.
pub fn explain(
    snapshot: &Snapshot<'_>,
    dimensions: &Dimensions,
    session_id: i64,
    money: &Money,
    now_ms: i64,
) -> Result<SessionReport, ReportError> {
    let requests = snapshot.session_requests(session_id)?;
    let undecodable = snapshot.session_undecodable(session_id)?;
    let turned = Turned {
        turns: turns::turns(&snapshot.session_story(session_id, now_ms)?),
        parts: snapshot.session_parts(session_id)?,
    };
    Ok(build(dimensions, session_id, &requests, turned, undecodable, money))
}

/// What doors and telemetry add to the requests of a session.
#[derive(Clone, Debug, Default)]
pub struct Turned {
    /// By their start.
    pub turns: Vec<TurnReport>,
    /// What they hold above their requests.
    pub parts: Vec<RequestRow>,
}

/// The pure part of [`explain`].
///
/// # Panics
/// On a session that is not of these dimensions: [`resolve`] found it there.
#[must_use]
pub fn build(
    dimensions: &Dimensions,
    session_id: i64,
    requests: &[(String, RequestRow)],
    turned: Turned,
    undecodable: Vec<UndecodableRow>,
    money: &Money,
) -> SessionReport {
    let session = dimensions.sessions.get(&session_id).expect("the session is of these dimensions");
    let home = dimensions.homes.get(&session.home_id);
    let pricing = money.pricing(home);
    let mut spend = Spend::default();
    spend.add_cost(&CostSum::default());
    for request in requests.iter().map(|(_, request)| request).chain(&turned.parts) {
        request.add_to(&mut spend, session, false);
        spend.add_cost(&request.cost);
    }
    for turn in &turned.turns {
        if turn.number.is_some() {
            spend.count_turn(turn.bound);
        }
        if turn.bound == Bound::Unmeasured {
            spend.add_unmeasured();
        }
        spend.demote(turn.reasons);
    }
    if turned.turns.is_empty() {
        if let Some(silent) = session.silent().filter(|_| requests.is_empty()) {
            silent.add_to(&mut spend, false);
        }
        spend.demote(session.reasons);
    }

    let requests: Vec<Request> = requests
        .iter()
        .map(|(id, request)| {
            let model = dimensions.models.get(&request.model_id).map_or(UNKNOWN, String::as_str);
            Request {
                id: id.clone(),
                at: request.at,
                model: model.to_owned(),
                model_inferred: request.model_inferred,
                role: request.role,
                in_turn: request.claim.turn.is_some(),
                tokens: request.reading.classes(),
                cost: request.cost.figure(Bound::Exact),
                price: Price::of(money, pricing.list, model, request),
            }
        })
        .collect();
    let silent = session.prompts.map(|(_, last)| last).or(session.started_at);
    let above = turned.turns.iter().flat_map(|turn| &turn.above).map(|part| part.model.to_string());
    let mut models: Vec<_> = requests.iter().map(|request| request.model.clone()).chain(above).collect();
    models.sort();
    models.dedup();
    let times = || {
        let turns = turned.turns.iter().flat_map(|turn| [Some(turn.started_at), turn.ended_at]);
        requests.iter().map(|request| request.at).chain(turns.flatten())
    };
    let project = dimensions.projects.get(&session.project_id).map(|project| project.name.clone());
    let row = Row {
        key: session.session.clone(),
        home: home.map(|home| home.name.clone()),
        project: Some(project.unwrap_or_else(|| UNKNOWN.to_owned())),
        started_at: session.started_at,
        first_at: times().min().or(silent),
        last_at: times().max().or(silent),
        models,
        spend,
        pays: Pays::As(pricing.billing),
        source_deleted: session.source_deleted,
        parts: Vec::new(),
    };
    let costs = costs(money, &row, &requests);
    let mut story = session_story::figure(session, &row, &requests, &turned, &undecodable);
    story.extend(session_story::costs(&requests));
    SessionReport { row, requests, turns: turned.turns, undecodable, story, costs, list: pricing.list }
}

fn costs(money: &Money, row: &Row, requests: &[Request]) -> Costs {
    let unpriced = requests.iter().filter(|request| request.cost.unpriced_tokens > 0);
    let models: BTreeSet<_> = unpriced.map(|request| request.model.clone()).collect();
    let seat = row.pays == Pays::As(Billing::Seat);
    Costs {
        as_of: money.as_of(),
        pays: row.pays,
        seats: row.home.iter().filter(|_| seat).cloned().collect(),
        unpriced_models: models.into_iter().collect(),
        currency: money.currency.clone(),
    }
}

impl SessionReport {
    /// One JSON document and a newline.
    ///
    /// # Errors
    /// Whatever `out` says.
    pub fn write_json(&self, pretty: bool, out: &mut dyn io::Write) -> io::Result<()> {
        json::document(self, pretty, out)
    }

    /// The same for a terminal of `width` columns, in the times of `zone`.
    ///
    /// # Errors
    /// Whatever `out` says.
    pub fn write_text(
        &self,
        zone: &TimeZone,
        width: usize,
        color: bool,
        out: &mut dyn io::Write,
    ) -> io::Result<()> {
        session_text::write(self, zone, width, color, out)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::ledger::money::{AliasRow, CostBound, Picodollars, PriceTable, Validity};
    use crate::ledger::tokens::Reading;
    use crate::surfaces::report::sample;
    use crate::surfaces::report::spec::Kind;

    pub(in super::super) fn explained(id: i64) -> SessionReport {
        let requests = sample::requests().into_iter().filter(|request| request.session_id == id);
        let requests: Vec<_> = requests.map(|request| (format!("m{}", request.id), request)).collect();
        let torn = UndecodableRow {
            project_dir: "scratch".to_owned(),
            file: "session-2026-11-30T10-00-0c7713fe.jsonl".to_owned(),
            offset: 4_711,
            len: 80,
            reason: "not_json".to_owned(),
            at: sample::ms("2026-11-30T10:01:00Z"),
            settled: false,
        };
        build(
            &sample::dimensions(),
            id,
            &requests,
            Turned::default(),
            if id == 4 { vec![torn] } else { Vec::new() },
            &sample::money(),
        )
    }

    fn text(id: i64, width: usize) -> String {
        let mut out = Vec::new();
        explained(id).write_text(&TimeZone::UTC, width, false, &mut out).expect("a Vec takes everything");
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn sessions_are_found_by_id_prefix_or_as_the_latest() {
        let mut dimensions = sample::dimensions();
        let find = |query: &str| resolve(&dimensions, query).map_err(|error| error.to_string());
        assert_eq!(find("b4265a7e-16f4-4a8e-9b1c-0d2e4f6a8c1b"), Ok(1));
        assert_eq!(find(" b4 "), Ok(1));
        assert_eq!(find("latest"), Ok(4));
        assert_eq!(
            find("zz"),
            Err("no session begins with \"zz\"; `gemgauge report sessions --since all` lists them".to_owned())
        );
        assert!(find("").is_err());
        dimensions.sessions.values_mut().for_each(|session| session.prompts = None);
        dimensions.sessions.get_mut(&2).expect("a session").prompts = Some((1, 1));
        assert_eq!(resolve(&dimensions, "latest").expect("found"), 2);
        assert!(matches!(resolve(&Dimensions::default(), "latest"), Err(ReportError::NoSession)));
    }

    #[test]
    fn a_prefix_of_several_lists_up_to_five() {
        let mut dimensions = sample::dimensions();
        for id in 10..17 {
            let session = SessionRow { id, session: format!("cafe-{id}"), ..dimensions.sessions[&1].clone() };
            dimensions.sessions.insert(id, session);
        }
        let error = resolve(&dimensions, "cafe").expect_err("ambiguous");
        assert!(!error.is_usage());
        assert_eq!(
            error.to_string(),
            "several sessions begin with \"cafe\": cafe-10 (home ana), cafe-11 (home ana), \
             cafe-12 (home ana), cafe-13 (home ana), cafe-14 (home ana), 2 more; give more of the id"
        );
        assert_eq!(resolve(&dimensions, "cafe-16").expect("found"), 16);
    }

    #[test]
    fn a_session_is_told_with_its_requests_and_why() {
        let want = "\
Session 0c7713fe-21a3-4f08-9a55-1f2e3d4c5b6a
Project  scratch
Home     bob
Started  2026-11-30 10:00:00
Active   2026-11-30 10:01:00 (UTC)
Sources  journal
Tokens   ≥ 1,237,789
Cost     ≥ $0.1084 (gemini-api, seat: list-price equivalent, not an invoice)

Time      Model        Fresh     Cached  Output  Think        Total       Cost
──────────────────────────────────────────────────────────────────────────────
10:01:00  2.5-flash  234,567  1,000,000   3,210     12    1,237,789    $0.1084
──────────────────────────────────────────────────────────────────────────────
Total                234,567  1,000,000   3,210     12  ≥ 1,237,789  ≥ $0.1084

The figure is the one request its journals hold.
It is a lower bound: seen only by the journal watcher, and journals leave out
  cancelled, router and web-search requests; some journal lines could not be
  decoded.
1 journal line could not be decoded and may hold a request.
- not_json: tmp/scratch/chats/session-2026-11-30T10-00-0c7713fe.jsonl at byte
  4711
1 request at gemini-2.5-flash, price from https://example.com/prices:
- 234,567 uncached × $0.3/M = $0.0703701
- 1,000,000 cached × $0.03/M = $0.03
- 3,210 output × $2.5/M = $0.008025
- 12 thoughts × $2.5/M = $0.00003
";
        assert_eq!(text(4, 80), want);
    }

    #[test]
    fn what_was_never_answered_has_no_figure_and_says_so() {
        let text = text(3, 80);
        assert!(
            text.contains(
                "Tokens   — (unmeasured)\nCost     — (unmeasured)\n\nA person prompted this session"
            ),
            "{text}"
        );
    }

    #[test]
    fn requests_of_several_days_keep_their_day_in_80_columns() {
        let text = text(2, 80);
        assert!(text.contains("\n11-30 00:10 2.5-flash subagent 5,000 "), "{text}");
        assert!(text.lines().all(|line| unicode_width::UnicodeWidthStr::width(line) <= 80), "{text}");
        assert!(text.contains("Its journals are deleted by now; the figure is what was read before.\n"));
        assert!(text.contains("\n2 requests at gemini-2.5-flash, price from https://example.com/prices:\n"));
    }

    /// Session 1 with its first request as `change` makes it, and an alias `pro`.
    fn changed(change: impl FnOnce(&mut RequestRow), model: &str) -> SessionReport {
        let mut dimensions = sample::dimensions();
        dimensions.models.insert(3, model.to_owned());
        let mut request = sample::requests().swap_remove(0);
        change(&mut request);
        let mut money = sample::money();
        let alias = AliasRow {
            alias: "pro".to_owned(),
            model: "gemini-2.5-pro".to_owned(),
            valid: Validity::default(),
            source: String::new(),
        };
        let aliases = PriceTable::new(Vec::new(), vec![alias], None).expect("a table");
        money.table = PriceTable::clone(&money.table).below(aliases).into();
        build(&dimensions, 1, &[("m1".to_owned(), request)], Turned::default(), Vec::new(), &money)
    }

    #[test]
    fn a_cost_is_derived_class_by_class() {
        let report = changed(|request| request.model_id = 3, "pro");
        let price = report.requests[0].price.as_ref().expect("a price");
        assert_eq!(price.alias.as_deref(), Some("pro"));
        let mut out = Vec::new();
        report.write_text(&TimeZone::UTC, 80, false, &mut out).expect("a Vec takes everything");
        let text = String::from_utf8(out).expect("UTF-8");
        assert!(text.contains("\nCost     ≥ $0.0156 (gemini-api, metered)\n"), "{text}");
        let want = "
1 request at pro as gemini-2.5-pro, up to 200,000 tokens, price from
  https://example.com/prices:
- 3,801 uncached × $1.25/M = $0.00475125
- 11,526 cached × $0.125/M = $0.00144075
- 23 output × $10/M = $0.00023
- 919 thoughts × $10/M = $0.00919
";
        assert!(text.ends_with(want), "{text}");
    }

    #[test]
    fn a_long_prompt_shows_its_tier() {
        let report = changed(
            |request| {
                request.reading.prompt = 250_000;
                request.cost = (&sample::money()
                    .table
                    .price("gemini-2.5-pro", PriceList::GeminiApi, 0)
                    .expect("a price")
                    .cost(&request.reading))
                    .into();
            },
            "x",
        );
        let mut out = Vec::new();
        report.write_text(&TimeZone::UTC, 100, false, &mut out).expect("a Vec takes everything");
        let text = String::from_utf8(out).expect("UTF-8");
        assert!(text.contains("  Tier  ") && text.contains("  high  "), "{text}");
        assert!(text.contains("1 request at gemini-2.5-pro, above 200,000 tokens, price from"), "{text}");
    }

    #[test]
    fn where_the_ledger_and_the_prices_part_it_is_said() {
        let unpriced = |request: &mut RequestRow| request.cost = CostSum::unpriced(16_269);
        let other = |request: &mut RequestRow| {
            request.cost = CostSum::priced(Picodollars::DOLLAR, CostBound::Exact);
        };
        let unknown = |request: &mut RequestRow| {
            unpriced(request);
            request.model_id = 3;
        };
        let empty = |request: &mut RequestRow| {
            unknown(request);
            (request.reading, request.cost) = (Reading::default(), CostSum::unpriced(0));
        };
        assert!(changed(empty, "gemini-9").story.iter().all(|said| !said.contains("price")));
        for (report, want) in [
            (
                changed(unknown, "gemini-9"),
                "No price for 1 request to gemini-9 (16,269 tokens): the price table does not know its model.",
            ),
            (
                changed(unpriced, "x"),
                "1 request had no price when the ledger took it in, and would have one now.",
            ),
            (
                changed(other, "x"),
                "1 request would cost something else at the prices now in force; the ledger keeps its first price.",
            ),
        ] {
            assert_eq!(report.story.last().map(String::as_str), Some(want));
            assert_eq!(report.requests[0].price_of_cost(), None);
        }
    }

    #[test]
    fn the_row_is_that_of_the_sessions_report() {
        let report = sample::report(Kind::Sessions, &[]);
        for id in 1..=4 {
            let row = explained(id).row;
            assert!(report.rows.contains(&row), "{row:?}");
        }
    }
}
