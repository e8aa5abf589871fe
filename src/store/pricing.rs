//! Prices of requests as the store keeps them: the first one in the counters,
//! the current one in the row.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::{Connection, TransactionBehavior, params};

use super::StoreError;
use super::requests::{reading, role_of};
use crate::ledger::evidence::HomeId;
use crate::ledger::money::{Cost, CostBound, CostSum, Picodollars, PriceList, PriceTable};
use crate::ledger::tokens::Reading;

/// Which prices apply.
#[derive(Clone, Default)]
pub struct Pricing {
    pub table: Arc<PriceTable>,
    /// The price list of each home; of one that is not named, the Gemini API's.
    pub lists: HashMap<HomeId, PriceList>,
}

impl Pricing {
    #[must_use]
    pub fn list(&self, home: HomeId) -> PriceList {
        self.lists.get(&home).copied().unwrap_or(PriceList::GeminiApi)
    }

    /// The cost of a request at the price of its own day; `None` where it has none.
    #[must_use]
    pub fn cost(&self, home: HomeId, model: &str, at: i64, reading: &Reading) -> Option<Cost> {
        self.table.price(model, self.list(home), at).ok().map(|row| row.cost(reading))
    }
}

/// How rows hold that a cost is an estimate.
pub(super) const ESTIMATE: i64 = 2;

/// The columns `cost` and `cost_bound` of a cost.
pub(super) fn columns(cost: Option<&Cost>) -> (Option<i64>, i64) {
    let bound = cost.map_or(0, |cost| match cost.bound {
        CostBound::Exact => 0,
        CostBound::AtLeast => 1,
        CostBound::Estimate | CostBound::Unmeasured => ESTIMATE,
    });
    (cost.map(|cost| cost.total().to_i64()), bound)
}

/// The cost that these columns hold.
pub(super) fn sum(cost: Option<i64>, bound: i64, reading: &Reading) -> CostSum {
    let bound = match bound {
        0 => CostBound::Exact,
        1 => CostBound::AtLeast,
        _ => CostBound::Estimate,
    };
    match cost {
        Some(cost) => CostSum::priced(Picodollars::from(cost), bound),
        None => CostSum::unpriced(reading.classes().total()),
    }
}

/// What pricing history anew changed, by model.
#[derive(Clone, Debug, Default)]
pub struct Repriced {
    /// Requests looked at.
    pub requests: u64,
    /// Model to what changed.
    pub models: std::collections::BTreeMap<String, ModelRepriced>,
}

/// What changed for one model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModelRepriced {
    /// Requests whose cost changed.
    pub changed: u64,
    pub before: Picodollars,
    pub after: Picodollars,
    /// Tokens without a price, before and after.
    pub unpriced_before: u64,
    pub unpriced_after: u64,
}

/// Prices every request of the named homes anew; how another pays, nobody
/// says here, and it keeps its costs. Figures follow; counters keep the first
/// price, and what differs from it stands beside them as an adjustment.
pub(super) fn reprice(connection: &mut Connection, pricing: &Pricing) -> Result<Repriced, StoreError> {
    let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut done = Repriced::default();
    {
        let mut select = tx.prepare(
            "SELECT r.id, r.home_id, m.name, r.at, r.cost, r.cost_bound, coalesce(p.folded_into, p.id), r.role,
                    r.prompt, r.cached, r.tool, r.output, r.thoughts
             FROM requests r JOIN models m ON m.id = r.model_id
                  JOIN sessions s ON s.id = r.session_id JOIN projects p ON p.id = s.project_id",
        )?;
        let mut update = tx.prepare("UPDATE requests SET cost = ?2, cost_bound = ?3 WHERE id = ?1")?;
        // A label set past the cap was counted under `other`, and so is its adjustment.
        let mut adjust = tx.prepare(
            "UPDATE tuples SET cost_adjustment = cost_adjustment + ?5 WHERE id = coalesce(
                 (SELECT t.id FROM tuples t JOIN projects p ON p.name = t.project AND p.home_id = t.home_id
                  WHERE t.home_id = ?1 AND p.id = ?2 AND t.model = ?3 AND t.role = ?4),
                 (SELECT id FROM tuples WHERE home_id = ?1 AND role = 'other'))",
        )?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            let (id, home, model): (i64, i64, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
            if !pricing.lists.contains_key(&HomeId(home)) {
                continue;
            }
            let (at, was): (i64, (Option<i64>, i64)) = (row.get(3)?, (row.get(4)?, row.get(5)?));
            let reading = reading(row, 8)?;
            let cost = pricing.cost(HomeId(home), &model, at, &reading);
            let is = columns(cost.as_ref());
            done.requests += 1;
            let tokens = reading.classes().total();
            let project: i64 = row.get(6)?;
            let role = role_of(row.get(7)?);
            let of_model = done.models.entry(model).or_default();
            of_model.before += Picodollars::from(was.0.unwrap_or(0));
            of_model.after += Picodollars::from(is.0.unwrap_or(0));
            of_model.unpriced_before += if was.0.is_none() { tokens } else { 0 };
            of_model.unpriced_after += if is.0.is_none() { tokens } else { 0 };
            if was != is {
                of_model.changed += 1;
                update.execute(params![id, is.0, is.1])?;
                let by = is.0.unwrap_or(0).saturating_sub(was.0.unwrap_or(0));
                adjust.execute(params![home, project, row.get::<_, String>(2)?, role.as_str(), by])?;
            }
        }
    }
    tx.commit()?;
    Ok(done)
}
