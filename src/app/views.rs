//! The answers behind the HTTP routes: snapshots of the ledger, put into the
//! shapes of the surfaces.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Map, Value};

use super::clock::Clock;
use super::money;
use crate::config::Config;
use crate::health::Health;
use crate::ledger::money::Picodollars;
use crate::store::read::{OpenTurn, Reader, Snapshot, TurnsStamp};
use crate::store::{StoreError, open_reader};
use crate::surfaces::http::state::{self, State};

use crate::surfaces::http::{ApiError, Query, Readiness, Scrape, Views};
use crate::surfaces::metrics::{Calendar, Exporter, Format, LedgerRows, Receipt, sessions};
use crate::surfaces::quota::Quota;
use crate::surfaces::report::spec::{Kind, Options, ReportSpec};
use crate::surfaces::report::{self, Format as _, ReportError, json, session};

/// Reads the ledger for whoever asks.
pub struct LedgerViews {
    config: Config,
    timezone: TimeZone,
    calendar: Calendar,
    health: Arc<Health>,
    exporter: Exporter,
    clock: Clock,
    readers: Mutex<Vec<Reader>>,
    live: Mutex<Option<(Marker, Live)>>,
}

impl LedgerViews {
    #[must_use]
    pub fn new(
        config: Config,
        timezone: TimeZone,
        health: Arc<Health>,
        exporter: Exporter,
        clock: Clock,
    ) -> Self {
        let calendar = Calendar::new(timezone.clone());
        Self {
            config,
            timezone,
            calendar,
            health,
            exporter,
            clock,
            readers: Mutex::default(),
            live: Mutex::default(),
        }
    }

    /// Runs `f` on a snapshot, on a connection of its own.
    fn read<T>(&self, f: impl FnOnce(&Snapshot<'_>) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let idle = self.readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut reader = idle.map_or_else(|| open_reader(&self.config.db), Ok)?;
        let read = reader.snapshot(f);
        if read.is_ok() {
            self.readers.lock().unwrap_or_else(PoisonError::into_inner).push(reader);
        }
        read
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_millisecond(self.clock.now_ms()).unwrap_or_default()
    }

    /// A report row of every live session, and the total of all time; made
    /// again only when the ledger moved or another session is live.
    fn live(&self, snapshot: &Snapshot<'_>) -> Result<Live, ReportError> {
        let now = self.clock.now_ms();
        let live = snapshot.live_sessions(sessions::window(now))?;
        let tuples = snapshot.tuples()?;
        let marker = Marker {
            requests: tuples.iter().map(|row| row.requests).sum(),
            tokens: tuples.iter().fold(0, |sum: u64, row| sum.saturating_add(row.tokens.total())),
            adjustment: tuples.iter().map(|row| row.cost_adjustment).sum(),
            journals: snapshot.journal_states()?,
            turns: snapshot.turns_stamp()?,
            live: live.keys().copied().collect(),
        };
        let mut made = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, known)) = &*made
            && *of == marker
        {
            return Ok(known.clone());
        }
        let new = self.make_live(snapshot, &marker.live)?;
        *made = Some((marker, new.clone()));
        Ok(new)
    }

    fn make_live(&self, snapshot: &Snapshot<'_>, live: &[i64]) -> Result<Live, ReportError> {
        // A session behind an open door is live before its first request.
        let options = Options {
            since: Some("all".into()),
            all: true,
            strict: self.config.strict,
            ..Options::default()
        };
        let spec = ReportSpec::new(Kind::Sessions, &options, &self.timezone)?;
        let report = report::report(snapshot, &spec, &money(&self.config), self.now())?;
        let dimensions = snapshot.dimensions()?;
        let open_turns = snapshot.open_turns()?;
        let ids: HashSet<&str> =
            live.iter().filter_map(|id| dimensions.sessions.get(id)).map(|s| s.session.as_str()).collect();
        let mut report = serde_json::to_value(&report).unwrap_or_default();
        let rows = match report["rows"].take() {
            Value::Array(rows) => rows,
            _ => Vec::new(),
        };
        let open: HashMap<&str, &OpenTurn> = open_turns
            .values()
            .filter_map(|turn| Some((dimensions.sessions.get(&turn.session_id)?.session.as_str(), turn)))
            .collect();
        let rows = rows.into_iter().filter_map(|row| match row {
            Value::Object(mut row) => {
                let id = row["session_id"].as_str().filter(|id| ids.contains(id))?.to_owned();
                let turn = open.get(id.as_str()).map(|turn| state::open_turn(turn, &dimensions));
                row.insert("open_turn".to_owned(), turn.unwrap_or(Value::Null));
                Some(row)
            }
            _ => None,
        });
        Ok((rows.collect(), report["total"].take()))
    }
}

/// Rows of live sessions, and the total.
type Live = (Vec<Map<String, Value>>, Value);

/// What `live` rests on: the counters move with every request.
#[derive(PartialEq)]
struct Marker {
    requests: u64,
    tokens: u64,
    adjustment: Picodollars,
    journals: BTreeMap<String, u64>,
    turns: TurnsStamp,
    live: Vec<i64>,
}

impl Views for LedgerViews {
    fn state(&self) -> Result<String, ApiError> {
        self.read(|snapshot| {
            let homes: Vec<_> = snapshot.homes()?.into_values().collect();
            let quota = Quota::standing(snapshot, &[], self.clock.now_ms())?;
            Ok(self
                .live(snapshot)
                .map(|(rows, total)| State::new(rows, total, &homes, &quota, &self.health).to_json()))
        })
        .map_err(ReportError::from)
        .flatten()
        .map_err(|error| api_error(&error))
    }

    fn report(&self, kind: &str, query: &Query) -> Result<String, ApiError> {
        let kind: Kind = kind
            .parse()
            .map_err(|error: ReportError| ApiError::not_found("unknown_report", error.to_string()))?;
        let text = |name: &str| Ok::<_, ApiError>(query.one(name)?.map(str::to_owned));
        let options = Options {
            since: text("since")?,
            until: text("until")?,
            timezone: text("timezone")?,
            by: query.many("by").iter().flat_map(|by| by.split(',')).map(str::to_owned).collect(),
            breakdown: query.flag("breakdown")?,
            project: query.many("project").to_vec(),
            model: query.many("model").to_vec(),
            session: query.many("session").to_vec(),
            home: query.many("home").to_vec(),
            exclude: query.many("exclude").to_vec(),
            sort: text("sort")?,
            order: text("order")?,
            limit: text("limit")?,
            all: query.flag("all")?,
            compact: false,
            no_cost: query.flag("no-cost")?,
            strict: query.flag("strict")? || self.config.strict,
        };
        let spec = ReportSpec::new(kind, &options, &self.timezone).map_err(|error| api_error(&error))?;
        let money = money(&self.config);
        self.read(|snapshot| Ok(report::report(snapshot, &spec, &money, self.now())))
            .map_err(ReportError::from)
            .flatten()
            .map_err(|error| api_error(&error))
            .and_then(|report| {
                let mut text = Vec::new();
                json::Json { pretty: false }.render(&report, &mut text).map_err(|_| ApiError::internal())?;
                String::from_utf8(text).map_err(|_| ApiError::internal())
            })
    }

    fn session(&self, id: &str) -> Result<String, ApiError> {
        let (money, now) = (money(&self.config), self.clock.now_ms());
        let explain = |snapshot: &Snapshot<'_>| {
            let dimensions = snapshot.dimensions()?;
            let id = session::resolve(&dimensions, id)?;
            session::explain(snapshot, &dimensions, id, &money, now)
        };
        let report = self
            .read(|snapshot| Ok(explain(snapshot)))
            .map_err(ReportError::from)
            .flatten()
            .map_err(|error| api_error(&error))?;
        let mut text = Vec::new();
        report.write_json(false, &mut text).map_err(|_| ApiError::internal())?;
        String::from_utf8(text).map_err(|_| ApiError::internal())
    }

    fn quota(&self) -> Result<String, ApiError> {
        let quota = self
            .read(|snapshot| Quota::read(snapshot, &[], self.clock.now_ms()))
            .map_err(|error| api_error(&error.into()))?;
        let mut text = Vec::new();
        quota.write_json(false, &mut text).map_err(|_| ApiError::internal())?;
        String::from_utf8(text).map_err(|_| ApiError::internal())
    }

    fn scrape(&self, format: Format) -> Scrape {
        let now = self.clock.now_ms();
        let max_sessions = usize::try_from(self.config.metrics.max_sessions).unwrap_or(usize::MAX);
        let gathered = self.exporter.scrape(
            now,
            || self.clock.elapsed(),
            || self.read(|snapshot| LedgerRows::read(snapshot, now, &self.calendar, max_sessions)),
        );
        for (collector, error) in &gathered.failures {
            tracing::warn!(?collector, %error, "a part of the scrape failed");
        }
        Scrape { body: format.encode(&gathered.families), receipt: gathered.receipt }
    }

    fn scraped(&self, receipt: Receipt) {
        self.exporter.confirm(receipt);
    }

    fn ready(&self) -> Readiness {
        let homes =
            self.read(|snapshot| snapshot.homes()).map(|homes| homes.into_values().collect::<Vec<_>>());
        let homes = homes.as_deref().map_err(ToString::to_string);
        Readiness::assess(homes.as_ref().map(|homes| &homes[..]).map_err(String::as_str), &self.health)
    }
}

fn api_error(error: &ReportError) -> ApiError {
    match error {
        ReportError::UnknownSession(_) | ReportError::NoSession => {
            ApiError::not_found("unknown_session", error.to_string())
        }
        ReportError::AmbiguousSession { .. } => ApiError::bad_request("ambiguous_session", error.to_string()),
        ReportError::Store(error) => ApiError::ledger_unavailable(error.to_string()),
        _ => ApiError::bad_request("bad_parameter", error.to_string()),
    }
}
