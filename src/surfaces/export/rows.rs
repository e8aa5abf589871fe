//! What a row is, and all of them in their order.

use std::collections::BTreeMap;
use std::io;

use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

use super::{ExportError, ExportSpec, Grain};
use crate::config::Pricing;
use crate::ledger::model::{Role, UNKNOWN};
use crate::ledger::money::Picodollars;
use crate::ledger::spend::Spend;
use crate::store::read::{Dimensions, HomeRow, RequestRow, SessionRow, Snapshot};
use crate::surfaces::pricing::{ByClass, HomePrices};
use crate::surfaces::report::filter::Selection;
use crate::surfaces::report::range::Range;
use crate::surfaces::report::time;

const HOUR_MS: i64 = 3_600_000;

/// A request, or what an hour or a day sums up.
#[derive(Debug)]
pub(super) struct Row<'a> {
    pub(super) grain: Grain,
    /// Unix ms; of a request the end of its answer.
    pub(super) start: i64,
    /// The first moment after it.
    pub(super) end: i64,
    /// Of a request.
    pub(super) message_id: Option<&'a str>,
    pub(super) names: Names<'a>,
    pub(super) pricing: Pricing,
    pub(super) spend: Spend,
    pub(super) costs: ByClass,
}

/// Whose it is, in the order of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Names<'a> {
    pub(super) home: &'a str,
    pub(super) project: &'a str,
    pub(super) session: &'a str,
    pub(super) model: &'a str,
    pub(super) role: Role,
}

#[derive(Default)]
struct Sum {
    spend: Spend,
    costs: ByClass,
}

/// Reads the rows of one export.
pub(super) struct Reader<'a> {
    dimensions: &'a Dimensions,
    grain: Grain,
    zone: &'a TimeZone,
    range: Range,
    selection: Selection,
    prices: &'a HomePrices,
    /// By home.
    pricings: BTreeMap<i64, Pricing>,
}

type Each<'f> = dyn FnMut(&Row<'_>) -> io::Result<()> + 'f;

impl<'a> Reader<'a> {
    pub(super) fn new(
        dimensions: &'a Dimensions,
        spec: &'a ExportSpec,
        prices: &'a HomePrices,
        now: Timestamp,
    ) -> Result<Self, ExportError> {
        Ok(Self {
            dimensions,
            grain: spec.grain,
            zone: &spec.zone,
            range: spec.range.resolve(1, &spec.zone, now)?,
            selection: spec.filters.select(dimensions),
            prices,
            pricings: dimensions.homes.iter().map(|(id, home)| (*id, prices.of(home))).collect(),
        })
    }

    pub(super) fn each(&self, snapshot: &Snapshot<'_>, each: &mut Each<'_>) -> Result<(), ExportError> {
        if self.grain == Grain::Request {
            self.requests(snapshot, each)
        } else {
            self.periods(snapshot, each)
        }
    }

    fn wanted(&self, request: &RequestRow) -> bool {
        self.range.contains(time::date(self.zone, request.at))
            && self.selection.passes(request.session_id, Some(request.model_id))
    }

    /// One session after the other: no more than one is held at a time.
    fn requests(&self, snapshot: &Snapshot<'_>, each: &mut Each<'_>) -> Result<(), ExportError> {
        let mut sessions: Vec<&SessionRow> = self.dimensions.sessions.values().collect();
        sessions.sort_by_key(|session| (session.started_at, &session.session, session.id));
        for session in sessions {
            for (message_id, request) in snapshot.session_requests(session.id)? {
                if !self.wanted(&request) {
                    continue;
                }
                let mut sum = Sum::default();
                self.add(&mut sum, session, &request);
                let (start, end) = (request.at, request.at.saturating_add(1));
                let names = self.names(session, &request);
                each(&self.row(session, start, end, Some(&message_id), names, sum))?;
            }
            // What its turns hold above them has no message id.
            for part in snapshot.session_parts(session.id)?.into_iter().filter(|part| self.wanted(part)) {
                let mut sum = Sum::default();
                self.add(&mut sum, session, &part);
                let (start, end) = (part.at, part.at.saturating_add(1));
                each(&self.row(session, start, end, None, self.names(session, &part), sum))?;
            }
        }
        Ok(())
    }

    fn periods(&self, snapshot: &Snapshot<'_>, each: &mut Each<'_>) -> Result<(), ExportError> {
        let mut sums: BTreeMap<(i64, Names<'_>, i64), (i64, Sum)> = BTreeMap::new();
        snapshot.requests(self.range.millis(self.zone), |request| {
            if self.wanted(&request) {
                let session = &self.dimensions.sessions[&request.session_id];
                let (start, end) = self.period(request.at);
                let key = (start, self.names(session, &request), session.id);
                let (_, sum) = sums.entry(key).or_insert_with(|| (end, Sum::default()));
                self.add(sum, session, &request);
            }
        })?;
        for ((start, names, session_id), (end, sum)) in sums {
            let session = &self.dimensions.sessions[&session_id];
            each(&self.row(session, start, end, None, names, sum))?;
        }
        Ok(())
    }

    /// The hour or day that holds a moment: its first moment and the one after it.
    fn period(&self, at: i64) -> (i64, i64) {
        if self.grain == Grain::Hour {
            let start = at.div_euclid(HOUR_MS).saturating_mul(HOUR_MS);
            return (start, start.saturating_add(HOUR_MS));
        }
        let day = time::date(self.zone, at);
        let midnight = |day: jiff::civil::Date| {
            let zoned = self.zone.to_ambiguous_timestamp(day.at(0, 0, 0, 0)).compatible();
            zoned.map_or(at, Timestamp::as_millisecond)
        };
        (midnight(day), midnight(day.saturating_add(1.day())))
    }

    fn home(&self, session: &SessionRow) -> &'a HomeRow {
        &self.dimensions.homes[&session.home_id]
    }

    fn names(&self, session: &SessionRow, request: &RequestRow) -> Names<'a> {
        let dimensions = self.dimensions;
        Names {
            home: &self.home(session).name,
            project: dimensions.projects.get(&session.project_id).map_or(UNKNOWN, |project| &project.name),
            session: &dimensions.sessions[&session.id].session,
            model: dimensions.models.get(&request.model_id).map_or(UNKNOWN, String::as_str),
            role: request.role,
        }
    }

    /// Adds a request with what the report claims of it.
    fn add(&self, sum: &mut Sum, session: &SessionRow, request: &RequestRow) {
        let request = request.alone();
        request.add_to(&mut sum.spend, session, false);
        sum.spend.add_cost(&request.cost);
        let model = self.dimensions.models.get(&request.model_id).map_or(UNKNOWN, String::as_str);
        let costs = self.prices.by_class(self.home(session), model, &request);
        sum.costs.iter_mut().zip(costs).for_each(|(sum, cost): (&mut Picodollars, _)| *sum += cost);
    }

    fn row<'r>(
        &self,
        session: &SessionRow,
        start: i64,
        end: i64,
        message_id: Option<&'r str>,
        names: Names<'r>,
        sum: Sum,
    ) -> Row<'r> {
        Row {
            grain: self.grain,
            start,
            end,
            message_id,
            names,
            pricing: self.pricings[&session.home_id],
            spend: sum.spend,
            costs: sum.costs,
        }
    }
}
