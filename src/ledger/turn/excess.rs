//! What a turn's figure holds above its journal requests, and under which
//! model and role it goes (accounting 2.7, *Attribution and counters*).

use std::collections::BTreeMap;
use std::sync::Arc;

use super::session::RequestFact;
use super::telemetry::Heard;
use crate::ledger::doors::ModelStats;
use crate::ledger::model::{Role, UNKNOWN, canonical};
use crate::ledger::money::LONG_PROMPT;
use crate::ledger::tokens::Reading;

/// Tokens of a turn that no request row holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Canonical.
    pub model: Arc<str>,
    pub role: Role,
    /// Billed requests that no journal shows.
    pub requests: u64,
    /// Component by component what is missing; `cached` may exceed `prompt`
    /// here: tokens that the requests called uncached.
    pub reading: Reading,
    pub claim: Claim,
}

/// What a cost of a part may claim, its tokens and price aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// Its requests are known to be at the low rates.
    Exact,
    /// Some of it may be at the high rates.
    AtLeast,
    /// Its source does not tell cached or tool tokens apart (accounting 2.8).
    Estimate,
}

/// The reading of headless statistics (accounting R63, R65, 2.2). Where tool
/// tokens are not told apart, they are what another source knows of them.
#[must_use]
pub fn statistics(stats: &[ModelStats], tool_known: u64) -> Reading {
    let mut sum = Reading::default();
    let mut untold = 0u64;
    for of_model in stats {
        let tool = of_model.tool.unwrap_or(0).min(of_model.thoughts_and_tool);
        sum = sum.plus(Reading {
            prompt: of_model.prompt,
            cached: of_model.cached,
            tool,
            output: of_model.output,
            thoughts: of_model.thoughts_and_tool - tool,
        });
        if of_model.tool.is_none() {
            untold = untold.saturating_add(of_model.thoughts_and_tool);
        }
    }
    let tool = tool_known.saturating_sub(sum.tool).min(untold);
    Reading { tool: sum.tool + tool, thoughts: sum.thoughts - tool, ..sum }
}

/// What a turn holds, to be compared.
pub struct Held<'a> {
    pub requests: Vec<&'a RequestFact>,
    pub figure: Option<Reading>,
    /// What its subagents spent, where that stands beside the figure.
    pub subagents: Option<Reading>,
    /// The figure holds the subagents (a headless turn).
    pub whole: bool,
    /// The model in force.
    pub model: Option<Arc<str>>,
    pub statistics: Option<&'a [ModelStats]>,
    pub heard: Option<&'a Heard>,
    pub estimate: bool,
}

impl Held<'_> {
    /// The parts above the requests: they add up to the figure less its requests.
    #[must_use]
    pub fn parts(&self) -> Vec<Part> {
        let mut parts = Vec::new();
        let whole = self.whole;
        let own = move |role: Role| whole || role != Role::Subagent;
        if let Some(figure) = self.figure {
            let missing = figure.above(self.sum(&own));
            let fallback = self.model.as_deref().map_or(UNKNOWN, canonical).into();
            self.spread(missing, figure, &own, (Role::Main, fallback), &mut parts);
        }
        if let Some(subagents) = self.subagents {
            let subagent = |role: Role| role == Role::Subagent;
            let missing = subagents.above(self.sum(&subagent));
            self.spread(missing, subagents, &subagent, (Role::Subagent, UNKNOWN.into()), &mut parts);
        }
        parts
    }

    fn sum(&self, of: &dyn Fn(Role) -> bool) -> Reading {
        let requests = self.requests.iter().filter(|request| of(request.role));
        requests.fold(Reading::default(), |sum, request| sum.plus(request.reading))
    }

    /// Gives what is missing to those models and roles that a wide source says
    /// more of than the journal, the rest to the fallback.
    fn spread(
        &self,
        missing: Reading,
        whole: Reading,
        of: &dyn Fn(Role) -> bool,
        fallback: (Role, Arc<str>),
        parts: &mut Vec<Part>,
    ) {
        let mut left = missing;
        let claim = match whole.prompt {
            _ if self.estimate => Claim::Estimate,
            prompt if prompt > LONG_PROMPT => Claim::AtLeast,
            _ => Claim::Exact,
        };
        let mut add = |key: (Role, Arc<str>), reading: Reading, requests: u64| {
            if reading == Reading::default() && requests == 0 {
                return;
            }
            let claim = if reading.cached > reading.prompt { Claim::Estimate } else { claim };
            match parts.iter_mut().find(|part| (part.role, &part.model) == (key.0, &key.1)) {
                Some(part) => {
                    part.reading = part.reading.plus(reading);
                    part.requests += requests;
                }
                None => parts.push(Part { role: key.0, model: key.1, requests, reading, claim }),
            }
        };
        for (key, (said, requests)) in self.wide(of) {
            let share = said.component_min(left);
            left = left.above(share);
            add(key, share, requests);
        }
        add(fallback, left, 0);
    }

    /// What wide sources say above the journal, by role and model: tokens, and requests.
    fn wide(&self, of: &dyn Fn(Role) -> bool) -> BTreeMap<(Role, Arc<str>), (Reading, u64)> {
        let mut above: BTreeMap<(Role, Arc<str>), (Reading, u64)> = BTreeMap::new();
        let of_requests = |fits: &dyn Fn(&RequestFact) -> bool| {
            let requests = self.requests.iter().filter(|request| fits(request));
            requests.fold((Reading::default(), 0), |(sum, count), r| (sum.plus(r.reading), count + 1))
        };
        for (role, model, calls) in self.heard.into_iter().flat_map(|heard| heard.calls(of)) {
            let (held, count) = of_requests(&|request| request.role == role && request.model == *model);
            let more = (calls.reading.above(held), calls.answered.saturating_sub(count));
            above.insert((role, model.clone()), more);
        }
        if !above.is_empty() {
            return above;
        }
        for of_model in self.statistics.unwrap_or_default() {
            let model: Arc<str> = canonical(&of_model.model).into();
            let named = of_model.role.as_deref().map(Role::named);
            let role = named.unwrap_or_else(|| {
                let journaled = self.requests.iter().any(|request| request.model == model);
                if journaled { Role::Main } else { Role::Utility }
            });
            if !of(role) {
                continue;
            }
            // Without roles the statistics of a model hold its subagents' requests too.
            let (held, count) = of_requests(&|r| r.model == model && (named.is_none() || r.role == role));
            let said = statistics(std::slice::from_ref(of_model), held.tool);
            let sum = above.entry((role, model)).or_default();
            sum.0 = sum.0.plus(said.above(held));
            sum.1 += of_model.requests.unwrap_or(0).saturating_sub(count);
        }
        above
    }
}

#[cfg(test)]
mod tests;
