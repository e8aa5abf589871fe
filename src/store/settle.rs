//! A turn becomes final, once, and is counted; what comes later may only add
//! (accounting 2.7).

use std::sync::Arc;

use rusqlite::{Connection, params};

use super::StoreError;
use super::apply::Applier;
use super::counter_names::{LATE_TOKENS, STOP_REASONS, TURN_ENDINGS, TURN_REASONS, TURN_REVISIONS, TURNS};
use super::facts::Loaded;
use super::pricing;
use super::requests::{reading, rise, role_of};
use super::tuples::{Growth, clamp};
use super::turns::{Counted, TurnRow, Whose, bound_number, read_row};
use crate::ledger::bound::Bound;
use crate::ledger::evidence::HomeId;
use crate::ledger::model::Role;
use crate::ledger::money::{Cost, CostBound, Picodollars};
use crate::ledger::tokens::{Class, Classes, Reading};
use crate::ledger::turn::excess::Part;
use crate::ledger::turn::session::Turn;
use crate::ledger::turn::settle::{PROMOTE_DEADLINE, Standing, is_final};

/// So many requests that no door claims are settled in one transaction.
const SWEEP: usize = 20_000;

/// Telemetry is expected of a process where some was heard so lately, ms.
const TELEMETRY_ALIVE: i64 = 24 * 60 * 60 * 1000;

/// A turn with its row as it was before, and what it holds above its requests.
pub(super) struct Written<'a> {
    pub row: &'a TurnRow,
    pub turn: &'a Turn,
    pub parts: &'a [(Part, Option<Cost>)],
}

impl Applier {
    /// Settles a turn that is final, or counts what came after it was.
    pub(super) fn settle_or_revise(
        &mut self,
        c: &Connection,
        whose: &Whose,
        of: &Written<'_>,
        loaded: &Loaded,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        let Written { row, turn, parts } = *of;
        if let Some((_, bound)) = row.settled {
            return self.revise_turn(c, whose, of, loaded, bound, now_ms);
        }
        let standing = Standing {
            ending: turn.ending,
            bound: turn.verdict.bound,
            ended_at: turn.ended_at,
            read_at: self.read_at.get(&whose.home).copied(),
            behind: loaded.behind,
            telemetry_expected: self.telemetry_expected(c, now_ms)?,
            heard: turn.heard.is_some(),
        };
        if !is_final(&standing, now_ms) {
            return Ok(());
        }
        let bound = turn.verdict.bound;
        for request in turn.requests.iter().filter(|n| !loaded.requests[**n].1) {
            self.settle_request(c, whose, loaded.facts.requests[*request].id, bound, now_ms)?;
        }
        let counted = self.count_parts(c, whose, parts, budget(turn, loaded), bound, now_ms)?;
        self.write_settled(c, row.id, Some((now_ms, bound)), counted)?;
        if turn.unit.is_some() || self.is_foreign(c, row.id)? {
            return Ok(());
        }
        let project = self.project_name(c, whose.project)?;
        let count = |applier: &mut Self, name, first: &str, second: &str| {
            applier.count_home(whose.home, name, first, second, 1);
        };
        count(self, TURNS, &project, bound.as_str());
        count(self, TURN_ENDINGS, stop_reason(turn, loaded), "");
        for reason in turn.verdict.reasons.iter() {
            count(self, TURN_REASONS, reason.as_str(), "");
        }
        Ok(())
    }

    /// Evidence after the final settle: counters may rise, the class fall.
    fn revise_turn(
        &mut self,
        c: &Connection,
        whose: &Whose,
        of: &Written<'_>,
        loaded: &Loaded,
        settled: Bound,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        let Written { row, turn, parts } = *of;
        // What was never measured has no tokens of its own to be labelled with.
        let bound = if settled == Bound::Exact { Bound::Exact } else { Bound::AtLeast };
        let mut counted = row.counted;
        for place in turn.requests.iter().filter(|n| !loaded.requests[**n].1) {
            let request = &loaded.facts.requests[*place];
            let late = self.match_late(c, whose, request.id, &mut counted, now_ms)?;
            self.count_late(whose.home, &late);
            self.settle_request_as(c, whose, request.id, bound, Some(late), now_ms)?;
        }
        let excess = parts.iter().fold(Classes::default(), |mut sum, (part, _)| {
            sum.add(&part.reading.classes());
            sum
        });
        let more = rise(&counted.tokens, &excess);
        if more.total() > 0 {
            let at = turn.ended_at.unwrap_or(turn.started_at);
            let priced = |part: Part| {
                let cost = self.pricing.part(whose.home, &part, at);
                (part, cost)
            };
            let held: u64 = parts.iter().map(|(part, _)| part.requests).sum();
            let requests = held.saturating_sub(counted.requests);
            let scaled: Vec<_> = spread(parts, &more, requests).into_iter().map(priced).collect();
            let new = self.count_parts(c, whose, &scaled, more.total(), bound, now_ms)?;
            self.count_late(whose.home, &new.tokens);
            counted.tokens.add(&new.tokens);
            counted.requests += new.requests;
        }
        if counted != row.counted {
            self.write_settled(c, row.id, None, counted)?;
        }
        let (before, is) = (row.before(), read_row(c, row.id)?.before());
        let below = |a: Option<Reading>, b: Option<Reading>| {
            let (a, b) = (a.unwrap_or_default(), b.unwrap_or_default());
            a.component_max(b) != a
        };
        if below(before.0, is.0) {
            self.count_home(whose.home, TURN_REVISIONS, "raised", "", 1);
        } else if below(is.0, before.0) {
            self.count_home(whose.home, TURN_REVISIONS, "lowered", "", 1);
        }
        if is.1 > before.1 {
            self.count_home(whose.home, TURN_REVISIONS, "demoted", "", 1);
        }
        Ok(())
    }

    /// A journal request that comes after its turn was counted is first set
    /// against what was counted above the turn's requests; answers with what
    /// it adds.
    fn match_late(
        &mut self,
        c: &Connection,
        whose: &Whose,
        id: i64,
        counted: &mut Counted,
        now_ms: i64,
    ) -> Result<Classes, StoreError> {
        let request = settled_request(c, id)?;
        let tokens = request.reading.classes();
        let mut known = Classes::default();
        for class in Class::ALL {
            let share = tokens.get(class).min(counted.tokens.get(class));
            *known.get_mut(class) = share;
            *counted.tokens.get_mut(class) -= share;
        }
        let again = counted.requests.min(1);
        counted.requests -= again;
        let tuple = self.tuple_of(c, whose, request.model, request.role, now_ms)?;
        let taken = self.take_back(tuple, &known, &tokens, again);
        let mut late = tokens;
        for class in Class::ALL {
            *late.get_mut(class) -= taken.get(class);
        }
        Ok(late)
    }

    fn count_late(&mut self, home: HomeId, late: &Classes) {
        for class in Class::ALL {
            self.count_home(home, LATE_TOKENS, class.as_str(), "", late.get(class));
        }
    }

    /// Advances the counters by what a figure holds above its requests, by no
    /// more than `budget` in all: the classes sum to the total.
    fn count_parts(
        &mut self,
        c: &Connection,
        whose: &Whose,
        parts: &[(Part, Option<Cost>)],
        mut budget: u64,
        bound: Bound,
        now_ms: i64,
    ) -> Result<Counted, StoreError> {
        let mut counted = Counted::default();
        for (part, cost) in parts {
            let mut tokens = part.reading.classes();
            for class in Class::ALL {
                let count = tokens.get_mut(class);
                *count = (*count).min(budget);
                budget -= *count;
            }
            let (model, _) = self.model(c, Some(&part.model))?;
            let tuple = self.tuple_of(c, whose, model, part.role, now_ms)?;
            let mut growth = Growth { requests: part.requests, tokens, ..Growth::default() };
            growth.cost(&tokens, cost.as_ref());
            let priced = cost.filter(|cost| cost.bound != CostBound::Estimate).map(|cost| cost.total());
            growth.settle(bound, tokens.total(), priced.unwrap_or_default());
            self.grow(tuple, &growth);
            counted.tokens.add(&tokens);
            counted.requests += part.requests;
        }
        Ok(counted)
    }

    fn settle_request(
        &mut self,
        c: &Connection,
        whose: &Whose,
        id: i64,
        bound: Bound,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        self.settle_request_as(c, whose, id, bound, None, now_ms)
    }

    /// Settles a request, or what it adds to a turn that was settled before.
    fn settle_request_as(
        &mut self,
        c: &Connection,
        whose: &Whose,
        id: i64,
        bound: Bound,
        late: Option<Classes>,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        let request = settled_request(c, id)?;
        let tokens = late.unwrap_or_else(|| request.reading.classes()).total();
        let whole = request.reading.classes().total();
        let cost = if tokens == whole { request.cost } else { request.cost.scaled(tokens, whole) };
        let tuple = self.tuple_of(c, whose, request.model, request.role, now_ms)?;
        let mut growth = Growth::default();
        growth.settle(bound, tokens, cost);
        self.grow(tuple, &growth);
        c.prepare_cached("UPDATE requests SET settled = 1 WHERE id = ?1")?.execute([id])?;
        Ok(())
    }

    /// Requests that no door claimed within the deadline are lower bounds.
    pub(super) fn settle_unclaimed(&mut self, c: &Connection, now_ms: i64) -> Result<(), StoreError> {
        let unclaimed: Vec<(i64, i64, i64)> = {
            let mut statement = c.prepare_cached(
                "SELECT r.id, s.home_id, coalesce(p.folded_into, p.id)
                 FROM requests r JOIN sessions s ON s.id = r.session_id JOIN projects p ON p.id = s.project_id
                 WHERE r.settled = 0 AND r.at < ?1 AND r.turn_id IS NULL LIMIT ?2",
            )?;
            let rows = statement.query_map(params![now_ms - PROMOTE_DEADLINE, SWEEP as i64], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })?;
            rows.collect::<Result<_, _>>()?
        };
        for (id, home, project) in unclaimed {
            self.settle_request(c, &Whose { home: HomeId(home), project }, id, Bound::AtLeast, now_ms)?;
        }
        Ok(())
    }

    fn tuple_of(
        &mut self,
        c: &Connection,
        whose: &Whose,
        model: i64,
        role: Role,
        now_ms: i64,
    ) -> Result<i64, StoreError> {
        let project = self.project_name(c, whose.project)?;
        let name: Arc<str> = super::requests::model_name(c, model)?.into();
        self.tuple(c, (whose.home, project, name, role), now_ms)
    }

    fn write_settled(
        &self,
        c: &Connection,
        turn: i64,
        settled: Option<(i64, Bound)>,
        counted: Counted,
    ) -> Result<(), StoreError> {
        let [uncached, cached, tool, output, thoughts] =
            Class::ALL.map(|class| clamp(counted.tokens.get(class)));
        c.prepare_cached(
            "UPDATE turns SET settled_at = coalesce(?2, settled_at), settled_bound = coalesce(?3, settled_bound),
                 counted_requests = ?4, counted_uncached_input = ?5, counted_cached_input = ?6,
                 counted_tool_input = ?7, counted_output = ?8, counted_thoughts = ?9 WHERE id = ?1",
        )?
        .execute(params![
            turn,
            settled.map(|(at, _)| at),
            settled.map(|(_, bound)| bound_number(bound)),
            clamp(counted.requests),
            uncached,
            cached,
            tool,
            output,
            thoughts,
        ])?;
        Ok(())
    }

    /// Whether a turn is of an agent that is not measured (accounting R1).
    fn is_foreign(&self, c: &Connection, turn: i64) -> Result<bool, StoreError> {
        let mut statement = c.prepare_cached(
            "SELECT s.runtime IS NOT NULL FROM turns t JOIN sessions s ON s.id = t.session_id WHERE t.id = ?1",
        )?;
        Ok(statement.query_row([turn], |row| row.get(0))?)
    }

    fn telemetry_expected(&mut self, c: &Connection, now_ms: i64) -> Result<bool, StoreError> {
        let at = match self.telemetry_at {
            Some(at) => at,
            None => {
                let last =
                    "SELECT coalesce(max(at), 0) FROM telemetry WHERE id = (SELECT max(id) FROM telemetry)";
                *self.telemetry_at.insert(c.query_row(last, [], |row| row.get(0))?)
            }
        };
        Ok(at > now_ms - TELEMETRY_ALIVE)
    }
}

/// How many tokens a turn's figure holds above its requests, at most.
fn budget(turn: &Turn, loaded: &Loaded) -> u64 {
    let held = turn
        .requests
        .iter()
        .map(|n| loaded.facts.requests[*n].reading)
        .fold(Reading::default(), Reading::plus);
    let beside = turn.evidence.headless.is_none().then_some(turn.subagents).flatten().unwrap_or_default();
    let figure = turn.verdict.figure.unwrap_or_default().plus(beside);
    figure.classes().total().saturating_sub(held.classes().total())
}

/// The parts, each class of them cut down to what is new. The new requests are
/// where new tokens are.
fn spread(parts: &[(Part, Option<Cost>)], more: &Classes, mut requests: u64) -> Vec<Part> {
    let mut left = *more;
    let mut cut = Vec::new();
    for (part, _) in parts {
        let classes = part.reading.classes();
        let mut share = Classes::default();
        for class in Class::ALL {
            *share.get_mut(class) = classes.get(class).min(left.get(class));
            *left.get_mut(class) -= share.get(class);
        }
        let reading = Reading {
            prompt: share.uncached_input + share.cached_input,
            cached: share.cached_input,
            tool: share.tool_input,
            output: share.output,
            thoughts: share.thoughts,
        };
        let new = if share.total() > 0 { part.requests.min(requests) } else { 0 };
        requests -= new;
        cut.push(Part { reading, requests: new, ..part.clone() });
    }
    cut
}

/// The label of how a turn ended.
fn stop_reason<'a>(turn: &Turn, loaded: &'a Loaded) -> &'a str {
    let result = turn.views.iter().find_map(|key| {
        loaded.facts.views.iter().find(|view| view.key == *key).and_then(|view| view.result.as_ref())
    });
    match result.and_then(|result| result.stop_reason.as_deref()) {
        Some(reason) => STOP_REASONS[..5].iter().find(|known| **known == reason).copied().unwrap_or("other"),
        None => "none",
    }
}

/// What settling needs of a request's row.
struct Settled {
    model: i64,
    role: Role,
    reading: Reading,
    /// Priced and not estimated.
    cost: Picodollars,
}

fn settled_request(c: &Connection, id: i64) -> Result<Settled, StoreError> {
    let mut statement = c.prepare_cached(
        "SELECT model_id, role, prompt, cached, tool, output, thoughts, cost, cost_bound FROM requests WHERE id = ?1",
    )?;
    Ok(statement.query_row([id], |row| {
        let estimate = row.get::<_, i64>(8)? == pricing::ESTIMATE;
        let cost: Option<i64> = row.get(7)?;
        Ok(Settled {
            model: row.get(0)?,
            role: role_of(row.get(1)?),
            reading: reading(row, 2)?,
            cost: cost.filter(|_| !estimate).map(Picodollars::from).unwrap_or_default(),
        })
    })?)
}
