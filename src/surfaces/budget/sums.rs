//! Requests to sums: several questions in one pass.

use std::collections::BTreeSet;

use jiff::tz::TimeZone;

use super::contributors::{Contributors, Shares};
use super::{Span, time};
use crate::ledger::bound::Bound;
use crate::ledger::budget::{Period, Scope, Spent};
use crate::store::StoreError;
use crate::store::read::{Dimensions, Mark, RequestRow, SessionRow, Snapshot};

/// What is asked: whose spend, in the period that is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    pub period: Period,
    pub scope: Scope,
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Tally {
    pub span: Span,
    pub spent: Spent,
    pub contributors: Contributors,
    /// The ledger knows nothing by the name of the scope.
    pub unmatched: bool,
}

/// Which requests a question is about, by id.
#[derive(Clone, Debug)]
enum Matcher {
    All,
    Projects(BTreeSet<i64>),
    Models(BTreeSet<i64>),
    Homes(BTreeSet<i64>),
}

impl Matcher {
    fn of(scope: &Scope, dimensions: &Dimensions) -> Self {
        match scope {
            Scope::All => Self::All,
            Scope::Project(name) => {
                let named = dimensions.projects.values().filter(|project| project.name == *name);
                Self::Projects(named.map(|project| project.id).collect())
            }
            Scope::Model(name) => {
                let named = dimensions.models.iter().filter(|(_, model)| *model == name);
                Self::Models(named.map(|(id, _)| *id).collect())
            }
            Scope::Home(name) => {
                let named = dimensions.homes.values().filter(|home| home.name == *name);
                Self::Homes(named.map(|home| home.id).collect())
            }
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::All => false,
            Self::Projects(ids) | Self::Models(ids) | Self::Homes(ids) => ids.is_empty(),
        }
    }

    /// Whether spend of a session by a model is meant; what no model is named
    /// of is no named model's.
    fn takes(&self, session: &SessionRow, model: Option<i64>) -> bool {
        match self {
            Self::All => true,
            Self::Projects(ids) => ids.contains(&session.project_id),
            Self::Models(ids) => model.is_some_and(|model| ids.contains(&model)),
            Self::Homes(ids) => ids.contains(&session.home_id),
        }
    }
}

/// One answer in the making.
struct Sum {
    matcher: Matcher,
    span: Span,
    spent: Spent,
    shares: Shares,
}

/// Sums in the making: give it everything spent ([`Sums::add`]) and every mark
/// ([`Sums::mark`]).
pub struct Sums<'a> {
    dimensions: &'a Dimensions,
    zone: &'a TimeZone,
    /// Homes to keep.
    homes: BTreeSet<i64>,
    sums: Vec<Sum>,
}

impl<'a> Sums<'a> {
    #[must_use]
    pub fn new(
        questions: &[Question],
        homes: &[String],
        dimensions: &'a Dimensions,
        zone: &'a TimeZone,
        now: i64,
    ) -> Self {
        let sums = questions.iter().map(|question| Sum {
            matcher: Matcher::of(&question.scope, dimensions),
            span: Span::of(question.period, zone, now),
            spent: Spent::default(),
            shares: Shares::default(),
        });
        let chosen = dimensions.homes.values().filter(|home| homes.contains(&home.name) || homes.is_empty());
        Self { dimensions, zone, homes: chosen.map(|home| home.id).collect(), sums: sums.collect() }
    }

    /// Unix ms that hold every time asked about, and up to a day more at
    /// either end: where a clock is put back across midnight a day is not one
    /// stretch of time.
    #[must_use]
    pub fn millis(&self) -> std::ops::Range<i64> {
        const DAY: i64 = 86_400_000;
        let spans = || self.sums.iter().map(|sum| sum.span);
        let start = spans().map(|span| span.start).min().unwrap_or(0);
        let end = spans().map(|span| span.end).max().unwrap_or(0);
        start.saturating_sub(DAY)..end.saturating_add(DAY)
    }

    /// Takes a row of spend in.
    pub fn add(&mut self, request: &RequestRow) {
        let Some(session) = self.dimensions.sessions.get(&request.session_id) else { return };
        if !self.homes.contains(&session.home_id) {
            return;
        }
        let claim = request.bound(session, false);
        let day = time::date(self.zone, request.at);
        for sum in &mut self.sums {
            if sum.span.holds(day) && sum.matcher.takes(session, Some(request.model_id)) {
                sum.spent.add(&request.cost, claim);
                sum.shares.add(request, session, claim);
            }
        }
    }

    /// Takes a turn in, or a session that shows nothing of what it spent.
    pub fn mark(&mut self, mark: &Mark) {
        let Some(session) = self.dimensions.sessions.get(&mark.session_id) else { return };
        let Some(day) = mark.at.map(|at| time::date(self.zone, at)) else { return };
        let (bound, _) = mark.verdict(false);
        if bound == Bound::Exact || !self.homes.contains(&session.home_id) {
            return;
        }
        for sum in &mut self.sums {
            if sum.span.holds(day) && sum.matcher.takes(session, mark.model_id) {
                sum.spent.add_unmeasured();
            }
        }
    }

    /// The answers.
    #[must_use]
    pub fn finish(self) -> Vec<Tally> {
        let tally = |sum: Sum| Tally {
            span: sum.span,
            spent: sum.spent,
            contributors: sum.shares.top(self.dimensions),
            unmatched: sum.matcher.is_empty(),
        };
        self.sums.into_iter().map(tally).collect()
    }
}

/// Answers from the ledger.
pub(super) fn tally(
    snapshot: &Snapshot<'_>,
    questions: Vec<Question>,
    homes: &[String],
    zone: &TimeZone,
    now: i64,
) -> Result<Vec<Tally>, StoreError> {
    if questions.is_empty() {
        return Ok(Vec::new());
    }
    let dimensions = snapshot.dimensions()?;
    let mut sums = Sums::new(&questions, homes, &dimensions, zone, now);
    snapshot.requests(sums.millis(), |request| sums.add(&request))?;
    snapshot.marks(&dimensions, sums.millis())?.iter().for_each(|mark| sums.mark(mark));
    Ok(sums.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::bound::{Reason, Reasons};
    use crate::ledger::budget::{Budget, Hook, Threshold};
    use crate::ledger::model::Role;
    use crate::ledger::money::{CostBound, CostSum, Picodollars};
    use crate::ledger::tokens::Reading;
    use crate::store::read::{Claim, HomeRow, ProjectRow};
    use crate::surfaces::budget::Line;

    fn ms(time: &str) -> i64 {
        time.parse::<jiff::Timestamp>().unwrap().as_millisecond()
    }

    /// A Monday.
    const NOW: &str = "2026-11-30T12:00:00Z";

    /// ana's sessions 1 and 3 of `api`, 2 of `web`; bob's 4 of a `web` of his own.
    fn dimensions() -> Dimensions {
        let home =
            |id, name: &str| HomeRow { id, path: format!("/{name}"), name: name.into(), imported: true };
        let project = |id, home_id, name: &str| ProjectRow { id, home_id, name: name.into() };
        let session = |id, home_id, project_id| SessionRow {
            id,
            session: format!("session-{id}"),
            home_id,
            project_id,
            started_at: Some(ms("2026-11-30T08:00:00Z")),
            prompts: None,
            reasons: Reasons::NONE,
            source_deleted: false,
            ..SessionRow::default()
        };
        Dimensions {
            homes: [home(1, "ana"), home(2, "bob")].map(|it| (it.id, it)).into(),
            projects: [project(1, 1, "api"), project(2, 1, "web"), project(3, 2, "web")]
                .map(|it| (it.id, it))
                .into(),
            models: [(1, "gemini-2.5-pro".to_owned()), (2, "gemini-2.5-flash".to_owned())].into(),
            sessions: [session(1, 1, 1), session(2, 1, 2), session(3, 1, 1), session(4, 2, 3)]
                .map(|it| (it.id, it))
                .into(),
        }
    }

    fn request(session_id: i64, model_id: i64, at: &str, cents: i128) -> RequestRow {
        RequestRow {
            id: 0,
            session_id,
            model_id,
            role: Role::Main,
            at: ms(at),
            reading: Reading::default(),
            model_inferred: false,
            cost: CostSum::priced(Picodollars::new(cents * 10_000_000_000), CostBound::Exact),
            above: false,
            requests: 1,
            claim: Claim::default(),
        }
    }

    fn requests() -> Vec<RequestRow> {
        vec![
            request(1, 1, "2026-10-31T23:59:59Z", 1),
            request(1, 1, "2026-11-01T00:00:00Z", 200),
            request(2, 2, "2026-11-29T23:59:59Z", 400),
            request(2, 1, "2026-11-30T00:00:00Z", 800),
            request(4, 1, "2026-11-30T11:00:00Z", 1600),
            request(4, 1, "2026-12-01T00:00:00Z", 3200),
        ]
    }

    fn answers(questions: &[(Period, Scope)], homes: &[&str], dimensions: &Dimensions) -> Vec<Tally> {
        let questions: Vec<_> = questions
            .iter()
            .map(|(period, scope)| Question { period: *period, scope: scope.clone() })
            .collect();
        let homes: Vec<_> = homes.iter().map(|&home| home.to_owned()).collect();
        let zone = TimeZone::UTC;
        let mut sums = Sums::new(&questions, &homes, dimensions, &zone, ms(NOW));
        let millis = sums.millis();
        requests().iter().filter(|it| millis.contains(&it.at)).for_each(|it| sums.add(it));
        let silent = |mark: &Mark| requests().iter().all(|request| request.session_id != mark.session_id);
        let marks = dimensions.sessions.values().filter_map(SessionRow::silent).filter(silent);
        marks.for_each(|mark| sums.mark(&mark));
        sums.finish()
    }

    fn shown(tallies: &[Tally]) -> Vec<String> {
        tallies.iter().map(|tally| tally.spent.figure().to_string()).collect()
    }

    #[test]
    fn each_request_is_of_its_own_days_and_scopes() {
        use Period::{Day, Month, Week};
        let questions = [
            (Day, Scope::All),
            (Week, Scope::All),
            (Month, Scope::All),
            (Month, Scope::Project("web".into())),
            (Month, Scope::Model("gemini-2.5-flash".into())),
            (Month, Scope::Home("bob".into())),
            (Day, Scope::Project("api".into())),
            (Month, Scope::Project("wbe".into())),
        ];
        let tallies = answers(&questions, &[], &dimensions());
        let want = ["≥ $24.00", "≥ $56.00", "≥ $30.00", "≥ $28.00", "≥ $4.00", "≥ $16.00", "$0.00", "$0.00"];
        assert_eq!(shown(&tallies), want);
        let unmatched: Vec<_> = tallies.iter().map(|tally| tally.unmatched).collect();
        assert_eq!(unmatched, [false, false, false, false, false, false, false, true]);
        assert_eq!(
            shown(&answers(&questions[..3], &["ana"], &dimensions())),
            ["≥ $8.00", "≥ $8.00", "≥ $14.00"]
        );
        assert_eq!(shown(&answers(&questions[..1], &["nobody"], &dimensions())), ["$0.00"]);
    }

    #[test]
    fn r40_a_prompt_without_a_figure_is_unmeasured() {
        let mut dimensions = dimensions();
        let asked = ms("2026-11-30T09:00:00Z");
        dimensions.sessions.get_mut(&3).unwrap().prompts = Some((asked, asked));
        let questions = [
            (Period::Day, Scope::Project("api".into())),
            (Period::Month, Scope::Project("api".into())),
            (Period::Month, Scope::Model("gemini-2.5-flash".into())),
        ];
        assert_eq!(shown(&answers(&questions, &[], &dimensions)), ["—", "≥ $2.00", "≥ $4.00"]);
        dimensions.sessions.get_mut(&3).unwrap().prompts = None;
        dimensions.sessions.get_mut(&3).unwrap().reasons.insert(Reason::TornLine);
        assert_eq!(shown(&answers(&questions[..1], &[], &dimensions)), ["—"]);
    }

    #[test]
    fn the_dearest_are_named_first() {
        let tallies = answers(&[(Period::Month, Scope::All)], &[], &dimensions());
        let named = |list: &[super::super::contributors::Contributor]| {
            list.iter().map(|it| format!("{} {}", it.name, it.cost)).collect::<Vec<_>>()
        };
        let top = &tallies[0].contributors;
        assert_eq!(named(&top.projects), ["web ≥ $16.00", "web ≥ $12.00", "api ≥ $2.00"]);
        assert_eq!(named(&top.models), ["gemini-2.5-pro ≥ $26.00", "gemini-2.5-flash ≥ $4.00"]);
        assert_eq!(named(&top.sessions), ["session-4 ≥ $16.00", "session-2 ≥ $12.00", "session-1 ≥ $2.00"]);
    }

    #[test]
    fn a_budget_stands_as_its_answer_says() {
        let budget = Budget {
            name: "team".into(),
            limit: Picodollars::new(20 * Picodollars::DOLLAR.get()),
            period: Period::Day,
            scope: Scope::All,
            thresholds: Threshold::DEFAULT.to_vec(),
        };
        let tallies = answers(&[(Period::Day, Scope::All)], &[], &dimensions());
        let line = Line::of(&budget, &tallies[0], ms(NOW));
        assert!(line.standing.over);
        assert_eq!(line.standing.left.to_string(), "≤ -$4.00");
        assert_eq!(line.standing.forecast.unwrap().to_string(), "≥ $48.00");
        assert_eq!(line.firing(line.standing.reached[0], Hook::Webhook).starts, "2026-11-30");
    }
}
