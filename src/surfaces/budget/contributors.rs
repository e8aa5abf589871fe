//! Who spent the most.

use std::collections::BTreeMap;

use crate::ledger::bound::Bound;
use crate::ledger::budget::Spent;
use crate::ledger::model::UNKNOWN;
use crate::ledger::money::CostFigure;
use crate::store::read::{Dimensions, RequestRow, SessionRow};

/// How many of each kind are named.
const TOP: usize = 3;

/// The largest spenders, the largest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contributors {
    pub projects: Vec<Contributor>,
    pub models: Vec<Contributor>,
    pub sessions: Vec<Contributor>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contributor {
    /// A project, a model, or a session id.
    pub name: String,
    pub cost: CostFigure,
}

/// Spend of one question by project, model and session.
#[derive(Clone, Debug, Default)]
pub(super) struct Shares {
    projects: BTreeMap<i64, Spent>,
    models: BTreeMap<i64, Spent>,
    sessions: BTreeMap<i64, Spent>,
}

impl Shares {
    pub(super) fn add(&mut self, request: &RequestRow, session: &SessionRow, claim: Bound) {
        let add = |shares: &mut BTreeMap<i64, Spent>, id| {
            shares.entry(id).or_default().add(&request.cost, claim);
        };
        add(&mut self.projects, session.project_id);
        add(&mut self.models, request.model_id);
        add(&mut self.sessions, session.id);
    }

    pub(super) fn top(&self, dimensions: &Dimensions) -> Contributors {
        Contributors {
            projects: top(&self.projects, |id| dimensions.projects.get(&id).map(|p| &p.name)),
            models: top(&self.models, |id| dimensions.models.get(&id)),
            sessions: top(&self.sessions, |id| dimensions.sessions.get(&id).map(|s| &s.session)),
        }
    }
}

/// Those with a price, the dearest first.
fn top<'d>(shares: &BTreeMap<i64, Spent>, name: impl Fn(i64) -> Option<&'d String>) -> Vec<Contributor> {
    let figures = shares.iter().map(|(id, spent)| (*id, spent.figure()));
    let mut figures: Vec<_> = figures.filter(|(_, cost)| cost.usd.is_some()).collect();
    figures.sort_by_key(|(id, cost)| (std::cmp::Reverse(cost.usd), *id));
    let named = |(id, cost)| Contributor { name: name(id).map_or(UNKNOWN, String::as_str).to_owned(), cost };
    figures.into_iter().take(TOP).map(named).collect()
}
