//! Requests to rows: a pure function of the ledger's rows and what was asked.
//!
//! Tokens go to the time of their request, or of their turn's end; turn counts
//! to the turn's start (interface, *Report JSON*). The total is the sum of the rows (accounting 2.8).

use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::Date;
use jiff::tz::TimeZone;

use super::filter::Selection;
use super::money::{Costs, Money, Pays};
use super::range::Range;
use super::sort::sort;
use super::spec::{Dimension, Kind, ReportSpec};
use super::time;
use super::tree::{Key, Path, Sum, parts};
use crate::ledger::bound::Bound;
use crate::ledger::model::{Role, UNKNOWN};
use crate::ledger::money::{Billing, CostSum};
use crate::ledger::spend::Spend;
use crate::store::read::{Dimensions, Mark, RequestRow, SessionRow};

/// A report as every format shows it.
#[derive(Clone, Debug)]
pub struct Report {
    pub kind: Kind,
    pub timezone: TimeZone,
    pub range: Range,
    pub by: Vec<Dimension>,
    /// Counts in compact units, where a person reads them.
    pub compact: bool,
    pub rows: Vec<Row>,
    /// What `limit` left out: how many rows and their sum.
    pub rest: Option<(usize, Spend)>,
    /// The sum of the rows and the rest.
    pub total: Spend,
    /// `None`: nobody asked for costs, and no figure has one.
    pub costs: Option<Costs>,
    pub sessions: SessionCounts,
    /// Whether the ledger knows more than one home.
    pub several_homes: bool,
    /// A sentence for each filter that nothing in the ledger fits.
    pub unmatched: Vec<String>,
}

/// The sessions that a report rests on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionCounts {
    pub all: usize,
    /// No file that held their requests remains.
    pub deleted: usize,
    /// Something was asked and nothing measured.
    pub unmeasured: usize,
}

/// One row of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// A session id, `2026-11-30` (of a week its Monday), `2026-11`, or a name.
    pub key: String,
    /// The home of a session, a project or a home row.
    pub home: Option<String>,
    /// The project of a session or a project row.
    pub project: Option<String>,
    /// Unix ms of a session's header; it may be before the range.
    pub started_at: Option<i64>,
    /// Unix ms of the first and last request (or unanswered prompt) within the range.
    pub first_at: Option<i64>,
    pub last_at: Option<i64>,
    /// By name.
    pub models: Vec<String>,
    pub spend: Spend,
    /// How its homes pay.
    pub pays: Pays,
    /// No file that held its requests remains.
    pub source_deleted: bool,
    /// By the first of [`Report::by`] that is not the class.
    pub parts: Vec<Part>,
}

/// A part of a row, or of another part, by one dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub key: String,
    pub spend: Spend,
    /// Unix ms of the first and the last request.
    pub first_at: Option<i64>,
    pub last_at: Option<i64>,
    pub parts: Vec<Part>,
}

/// A report in the making: give it everything spent ([`Build::add`]) and every
/// mark ([`Build::mark`]).
pub struct Build<'a> {
    spec: &'a ReportSpec,
    money: &'a Money,
    dimensions: &'a Dimensions,
    range: Range,
    selection: Selection,
    unknown_model: Option<i64>,
    answered: BTreeSet<i64>,
    sums: BTreeMap<Path, Sum>,
    unmeasured: usize,
    /// Models that have tokens without a price.
    unpriced: BTreeSet<i64>,
}

impl<'a> Build<'a> {
    #[must_use]
    pub fn new(spec: &'a ReportSpec, money: &'a Money, range: Range, dimensions: &'a Dimensions) -> Self {
        let unknown = dimensions.models.iter().find(|(_, name)| *name == UNKNOWN);
        Self {
            spec,
            money,
            dimensions,
            range,
            selection: spec.filters.select(dimensions),
            unknown_model: unknown.map(|(id, _)| *id),
            answered: BTreeSet::new(),
            sums: BTreeMap::new(),
            unmeasured: 0,
            unpriced: BTreeSet::new(),
        }
    }

    /// A figure of nothing yet: it costs nothing, or has no cost where nobody
    /// asked for one.
    fn nothing(&self) -> Spend {
        let mut spend = Spend::default();
        if !self.spec.no_cost {
            spend.add_cost(&CostSum::default());
        }
        spend
    }

    fn session(&self, id: i64) -> &'a SessionRow {
        self.dimensions.sessions.get(&id).expect("the session of a request is in the same snapshot")
    }

    /// The day of a time, if it is in the range.
    fn day(&self, at: i64) -> Option<Date> {
        Some(time::date(&self.spec.timezone, at)).filter(|day| self.range.contains(*day))
    }

    /// Whether something at that time is in the range; what has no time is
    /// only in a range that has no end.
    fn covers(&self, at: Option<i64>) -> bool {
        at.map_or_else(|| self.range.is_all(), |at| self.day(at).is_some())
    }

    /// Takes a row of spend in; those out of range or filtered out change nothing.
    pub fn add(&mut self, request: &RequestRow) {
        let Some(day) = self.day(request.at) else { return };
        self.answered.insert(request.session_id);
        if !self.selection.passes(request.session_id, Some(request.model_id)) {
            return;
        }
        let session = self.session(request.session_id);
        let path = self.path(session, Some(day), Some(request.model_id), request.role);
        let sum = self.sums.entry(path).or_default();
        request.add_to(&mut sum.spend, session, self.spec.strict);
        if !self.spec.no_cost {
            sum.spend.add_cost(&request.cost);
            if request.cost.any_unpriced() {
                self.unpriced.insert(request.model_id);
            }
        }
        sum.saw(Some(request.at));
        sum.models.insert(Some(request.model_id));
        sum.sessions.insert(session.id);
    }

    /// Takes a turn in, or a session that shows nothing of what it spent;
    /// those out of range or filtered out change nothing.
    pub fn mark(&mut self, mark: &Mark) {
        if !self.covers(mark.at) || !self.dimensions.sessions.contains_key(&mark.session_id) {
            return;
        }
        let session = self.session(mark.session_id);
        let model = mark.model_id.or(self.unknown_model);
        let day = mark.at.and_then(|at| self.day(at));
        // Without a day there is no row for it but its own.
        if !self.selection.passes(session.id, model) || (day.is_none() && self.spec.kind != Kind::Sessions) {
            return;
        }
        self.answered.insert(session.id);
        let path = self.path(session, day, model, Role::Main);
        let nothing = self.nothing();
        let sum = self.sums.entry(path).or_default();
        sum.spend.add(&nothing);
        mark.add_to(&mut sum.spend, self.spec.strict);
        if !mark.turn && mark.bound == Bound::Unmeasured {
            self.unmeasured += 1;
        }
        sum.saw(mark.at);
        sum.sessions.insert(session.id);
    }

    /// Sessions of headers only, where they are wanted too.
    fn headers(&mut self) {
        if !self.spec.all || self.spec.kind != Kind::Sessions {
            return;
        }
        for session in self.dimensions.sessions.values() {
            let at = session.started_at;
            let day = at.and_then(|at| self.day(at));
            if self.answered.contains(&session.id)
                || !self.covers(at)
                || !self.selection.passes(session.id, self.unknown_model)
            {
                continue;
            }
            let path = self.path(session, day, self.unknown_model, Role::Main);
            let nothing = self.nothing();
            let sum = self.sums.entry(path).or_default();
            sum.spend.add(&nothing);
            sum.saw(at);
            sum.sessions.insert(session.id);
        }
    }

    fn path(&self, session: &SessionRow, day: Option<Date>, model: Option<i64>, role: Role) -> Path {
        let day = day.unwrap_or(Date::MIN);
        let mut path = [None; 5];
        path[0] = Some(match self.spec.kind {
            Kind::Daily => Key::Date(day),
            Kind::Weekly => Key::Date(time::monday(day)),
            Kind::Monthly => Key::Date(day.first_of_month()),
            Kind::Sessions => Key::Session(session.id),
            Kind::Models => Key::Model(model),
            Kind::Projects => Key::Project(session.project_id),
            Kind::Homes => Key::Home(session.home_id),
        });
        let keys = self.spec.by.iter().filter_map(|dimension| match dimension {
            Dimension::Project => Some(Key::Project(session.project_id)),
            Dimension::Model => Some(Key::Model(model)),
            Dimension::Role => Some(Key::Role(role)),
            Dimension::Home => Some(Key::Home(session.home_id)),
            Dimension::Class => None,
        });
        path.iter_mut().skip(1).zip(keys).for_each(|(place, key)| *place = Some(key));
        path
    }

    /// The report.
    ///
    /// # Panics
    /// Where a request is of a session that is not in the dimensions.
    #[must_use]
    pub fn finish(mut self) -> Report {
        self.headers();
        let mut groups: BTreeMap<Key, Vec<(&Path, &Sum)>> = BTreeMap::new();
        for leaf in &self.sums {
            groups.entry(leaf.0[0].expect("a path begins with its row")).or_default().push(leaf);
        }
        let mut whole = Sum { spend: self.nothing(), ..Sum::default() };
        let mut rows = Vec::with_capacity(groups.len());
        for (key, leaves) in groups {
            let mut sum = Sum::default();
            leaves.iter().for_each(|(_, leaf)| sum.add(leaf));
            whole.add(&sum);
            rows.push(self.row(key, sum, parts(&leaves, 1, &|key| self.name(key))));
        }
        sort(&mut rows, self.spec);
        let rest = self.spec.limit.filter(|limit| *limit < rows.len()).map(|limit| {
            let mut rest = Spend::default();
            let left_out = rows.split_off(limit);
            left_out.iter().for_each(|row| rest.add(&row.spend));
            (left_out.len(), rest)
        });
        Report {
            kind: self.spec.kind,
            timezone: self.spec.timezone.clone(),
            range: self.range,
            by: self.spec.by.clone(),
            compact: self.spec.compact,
            rows,
            rest,
            total: whole.spend,
            costs: (!self.spec.no_cost).then(|| self.costs(&whole)),
            sessions: SessionCounts {
                all: whole.sessions.len(),
                deleted: whole.sessions.iter().filter(|id| self.session(**id).source_deleted).count(),
                unmeasured: self.unmeasured,
            },
            several_homes: self.dimensions.homes.len() > 1,
            unmatched: self.spec.filters.unmatched(self.dimensions),
        }
    }

    fn billing(&self, home_id: i64) -> Billing {
        self.money.pricing(self.dimensions.homes.get(&home_id)).billing
    }

    fn homes(&self, sum: &Sum) -> BTreeSet<i64> {
        sum.sessions.iter().map(|id| self.session(*id).home_id).collect()
    }

    fn pays(&self, sum: &Sum) -> Pays {
        Pays::of(self.homes(sum).into_iter().map(|id| self.billing(id)))
    }

    fn costs(&self, whole: &Sum) -> Costs {
        let names = |keys: &mut dyn Iterator<Item = Key>| {
            let mut names: Vec<_> = keys.map(|key| self.name(key)).collect();
            names.sort();
            names
        };
        let homes = self.homes(whole).into_iter();
        Costs {
            as_of: self.money.as_of(),
            pays: self.pays(whole),
            seats: names(&mut homes.filter(|id| self.billing(*id) == Billing::Seat).map(Key::Home)),
            unpriced_models: names(&mut self.unpriced.iter().map(|id| Key::Model(Some(*id)))),
            currency: self.money.currency.clone(),
        }
    }

    fn row(&self, key: Key, sum: Sum, parts: Vec<Part>) -> Row {
        let (home_id, project_id, started_at) = match key {
            Key::Session(id) => {
                let session = self.session(id);
                (Some(session.home_id), Some(session.project_id), session.started_at)
            }
            Key::Project(id) => (self.dimensions.projects.get(&id).map(|p| p.home_id), Some(id), None),
            Key::Home(id) => (Some(id), None, None),
            _ => (None, None, None),
        };
        let mut models: Vec<_> = sum.models.iter().map(|id| self.name(Key::Model(*id))).collect();
        models.sort();
        Row {
            key: self.name(key),
            home: home_id.map(|id| self.name(Key::Home(id))),
            project: project_id.map(|id| self.name(Key::Project(id))),
            started_at,
            first_at: sum.first_at,
            last_at: sum.last_at,
            models,
            pays: self.pays(&sum),
            spend: sum.spend,
            source_deleted: sum.sessions.iter().all(|id| self.session(*id).source_deleted),
            parts,
        }
    }

    fn name(&self, key: Key) -> String {
        let dimensions = self.dimensions;
        let name = match key {
            Key::Date(month) if self.spec.kind == Kind::Monthly => {
                return month.strftime("%Y-%m").to_string();
            }
            Key::Date(day) => return day.to_string(),
            Key::Session(id) => return self.session(id).session.clone(),
            Key::Model(id) => id.and_then(|id| dimensions.models.get(&id)),
            Key::Project(id) => dimensions.projects.get(&id).map(|project| &project.name),
            Key::Home(id) => dimensions.homes.get(&id).map(|home| &home.name),
            Key::Role(role) => return role.as_str().to_owned(),
        };
        name.map_or(UNKNOWN, String::as_str).to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::bound::{Reason, Reasons};
    use crate::ledger::tokens::Reading;
    use crate::surfaces::report::sample::{self, report};

    fn keys(report: &Report) -> Vec<&str> {
        report.rows.iter().map(|row| row.key.as_str()).collect()
    }

    #[test]
    fn a_request_is_of_the_day_that_the_clocks_of_the_zone_show() {
        for (zone, at, want) in [
            ("UTC", "2026-11-29T23:30:00Z", "2026-11-29"),
            ("Pacific/Kiritimati", "2026-11-29T23:30:00Z", "2026-11-30"),
            ("America/Los_Angeles", "2026-11-29T07:59:59Z", "2026-11-28"),
            // The hour that comes twice, and the last second of that day.
            ("America/Los_Angeles", "2026-11-01T09:30:00Z", "2026-11-01"),
            ("America/Los_Angeles", "2026-11-02T07:59:59Z", "2026-11-01"),
            ("America/Los_Angeles", "2026-03-09T06:59:59Z", "2026-03-08"),
            // Half an hour back at 2:00: midnight of the 6th is at 13:30 UTC.
            ("Australia/Lord_Howe", "2026-04-05T13:29:59Z", "2026-04-05"),
            ("Australia/Lord_Howe", "2026-04-05T13:30:00Z", "2026-04-06"),
        ] {
            let zone = super::super::spec::zone(zone).expect("known");
            let spec = ReportSpec::of(Kind::Daily, zone);
            let range = Range { since: None, until: None, default: false };
            let request = sample::request(1, 1, 1, at, Reading { output: 1, ..Reading::default() });
            let report = sample::build_of(&spec, range, &sample::dimensions(), &[request]);
            assert!(keys(&report).contains(&want), "{at}: {:?}", keys(&report));
        }
    }

    #[test]
    fn weeks_are_keyed_by_their_monday_and_months_by_their_name() {
        assert_eq!(keys(&report(Kind::Weekly, &[])), ["2026-11-23", "2026-11-30"]);
        assert_eq!(keys(&report(Kind::Monthly, &[])), ["2026-11"]);
    }

    #[test]
    fn row38_what_only_the_watcher_saw_is_a_lower_bound_with_the_reasons_of_its_session() {
        let report = report(Kind::Projects, &[]);
        let scratch = &report.rows[0];
        assert_eq!(scratch.spend.bound(), Bound::AtLeast);
        assert_eq!(scratch.spend.reasons, Reasons::WATCHER_ONLY.with(Reason::TornLine));
        assert_eq!(report.rows[2].spend.reasons, Reasons::WATCHER_ONLY);
    }

    #[test]
    fn r40_a_prompt_without_a_figure_is_unmeasured_and_marks_its_day_project_and_home() {
        let sessions = report(Kind::Sessions, &[]);
        assert_eq!(sessions.rows[1].spend.bound(), Bound::Unmeasured);
        assert_eq!(sessions.sessions, SessionCounts { all: 4, deleted: 1, unmeasured: 1 });
        for (kind, key) in [(Kind::Daily, "2026-11-30"), (Kind::Projects, "api"), (Kind::Homes, "ana")] {
            let report = report(kind, &[]);
            let row = report.rows.iter().find(|row| row.key == key).expect("the row");
            assert!(row.spend.reasons.contains(Reason::NoFigure), "{key}");
            assert_eq!(row.spend.bound(), Bound::AtLeast, "{key}");
        }
        let only = report(Kind::Daily, &[("session", "77aa0b1c")]);
        assert_eq!(only.total.tokens(), None);
    }

    #[test]
    fn a_session_of_headers_only_is_listed_where_all_are_wanted() {
        let mut dimensions = sample::dimensions();
        dimensions.sessions.get_mut(&3).expect("the session").prompts = None;
        for (kind, all, want) in
            [(Kind::Sessions, false, 0), (Kind::Sessions, true, 1), (Kind::Daily, true, 0)]
        {
            let spec = ReportSpec { all, ..ReportSpec::of(kind, TimeZone::UTC) };
            let range = Range { since: None, until: None, default: false };
            let report = sample::build_of(&spec, range, &dimensions, &[]);
            let headers =
                report.rows.iter().filter(|row| row.key.starts_with("77aa0b1c")).collect::<Vec<_>>();
            assert_eq!(headers.len(), want);
            assert!(headers.iter().all(|row| row.spend.bound() == Bound::Exact));
        }
    }

    #[test]
    fn sessions_are_clipped_to_the_range() {
        let report = report(Kind::Sessions, &[("until", "2026-11-29"), ("session", "5e1d")]);
        let row = &report.rows[0];
        assert_eq!((row.spend.requests, row.spend.subagent_requests), (1, 0));
        assert_eq!(row.last_at, Some(sample::ms("2026-11-29T23:30:00Z")));
    }

    #[test]
    fn a_row_has_lost_its_source_where_all_its_sessions_have() {
        let deleted = |kind, key: &str| {
            report(kind, &[]).rows.iter().find(|row| row.key.starts_with(key)).map(|row| row.source_deleted)
        };
        assert_eq!(deleted(Kind::Sessions, "5e1d20aa"), Some(true));
        assert_eq!(deleted(Kind::Projects, "web"), Some(true));
        assert_eq!(deleted(Kind::Homes, "ana"), Some(false));
    }
}
