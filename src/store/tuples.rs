//! Counter label sets: first come, first kept, and capped (interface,
//! *Metrics*). Values only grow.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, params, params_from_iter};

use super::StoreError;
use super::apply::Applier;
use super::counter_names::{LABEL_OVERFLOW, NO_LABEL};
use crate::ledger::bound::Bound;
use crate::ledger::evidence::HomeId;
use crate::ledger::model::Role;
use crate::ledger::money::{Cost, CostBound, Picodollars};
use crate::ledger::tokens::{Class, Classes};

/// The value of the labels of what no longer fits.
const OTHER: &str = "other";

/// The counter columns of `tuples`, in the order of [`Growth::columns`].
const COLUMNS: [&str; 23] = [
    "requests",
    "uncached_input",
    "cached_input",
    "tool_input",
    "output",
    "thoughts",
    "cost_uncached_input",
    "cost_cached_input",
    "cost_tool_input",
    "cost_output",
    "cost_thoughts",
    "cost_estimated",
    "cache_savings",
    "long_context_surcharge",
    "unpriced_uncached_input",
    "unpriced_cached_input",
    "unpriced_tool_input",
    "unpriced_output",
    "unpriced_thoughts",
    "settled_exact",
    "settled_at_least",
    "settled_cost_exact",
    "settled_cost_at_least",
];

/// What one transaction adds to a label set.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Growth {
    pub requests: u64,
    pub tokens: Classes,
    /// Priced and not estimated, by class.
    pub cost: [Picodollars; 5],
    pub estimated: Picodollars,
    pub savings: Picodollars,
    pub surcharge: Picodollars,
    pub unpriced: Classes,
    /// Tokens and their cost that became final, exact and at least.
    pub settled: [(u64, Picodollars); 2],
}

impl Growth {
    /// Adds tokens that became final, with what of them is priced and not estimated.
    pub(super) fn settle(&mut self, bound: Bound, tokens: u64, cost: Picodollars) {
        let (sum, money) = &mut self.settled[usize::from(bound != Bound::Exact)];
        *sum = sum.saturating_add(tokens);
        *money += cost;
    }

    /// All of it became final as a lower bound: history.
    pub(super) fn settle_all(&mut self) {
        let cost = self.cost.into_iter().sum();
        self.settle(Bound::AtLeast, self.tokens.total(), cost);
    }

    /// Adds the cost of tokens, or the gap where they have no price.
    pub(super) fn cost(&mut self, tokens: &Classes, cost: Option<&Cost>) {
        let Some(cost) = cost else {
            self.unpriced.add(tokens);
            return;
        };
        if cost.bound == CostBound::Estimate {
            self.estimated += cost.total();
        } else {
            for class in Class::ALL {
                self.cost[class as usize] += cost.classes.get(class);
            }
        }
        self.savings += cost.cache_savings;
        self.surcharge += cost.long_context_surcharge;
    }

    /// Adds what each class of a request's cost rose by.
    pub(super) fn cost_rise(&mut self, was: &Cost, is: &Cost) {
        let rise = |was: Picodollars, is: Picodollars| (is - was).max(Picodollars::ZERO);
        for class in Class::ALL {
            self.cost[class as usize] += rise(was.classes.get(class), is.classes.get(class));
        }
        self.savings += rise(was.cache_savings, is.cache_savings);
        self.surcharge += rise(was.long_context_surcharge, is.long_context_surcharge);
    }

    fn columns(&self) -> impl Iterator<Item = i64> {
        let tokens = |classes: Classes| Class::ALL.map(|class| clamp(classes.get(class)));
        let money = self.cost.into_iter().chain([self.estimated, self.savings, self.surcharge]);
        std::iter::once(clamp(self.requests))
            .chain(tokens(self.tokens))
            .chain(money.map(Picodollars::to_i64))
            .chain(tokens(self.unpriced))
            .chain(self.settled.map(|(tokens, _)| clamp(tokens)))
            .chain(self.settled.map(|(_, cost)| cost.to_i64()))
    }

    fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.tokens.add(&other.tokens);
        self.cost.iter_mut().zip(other.cost).for_each(|(sum, more)| *sum += more);
        self.estimated += other.estimated;
        self.savings += other.savings;
        self.surcharge += other.surcharge;
        self.unpriced.add(&other.unpriced);
        for (sum, more) in self.settled.iter_mut().zip(other.settled) {
            sum.0 = sum.0.saturating_add(more.0);
            sum.1 += more.1;
        }
    }
}

pub(super) type TupleKey = (HomeId, Arc<str>, Arc<str>, Role);

impl Applier {
    /// The label set of a request; past the cap, its home's `other`.
    pub(super) fn tuple(&mut self, c: &Connection, key: TupleKey, now_ms: i64) -> Result<i64, StoreError> {
        if let Some(id) = self.tuples.get(&key) {
            return Ok(*id);
        }
        let (home, project, model, role) = &key;
        let id = match find(c, *home, project, model, role.as_str())? {
            Some(id) => id,
            None if count(c, *home)? < self.max_tuples => {
                self.insert(c, *home, project, model, role.as_str(), now_ms)?
            }
            None => {
                let other = match find(c, *home, OTHER, OTHER, OTHER)? {
                    Some(id) => id,
                    None => self.insert(c, *home, OTHER, OTHER, OTHER, now_ms)?,
                };
                self.overflow.insert(other);
                other
            }
        };
        self.tuples.insert(key, id);
        Ok(id)
    }

    fn insert(
        &self,
        c: &Connection,
        home: HomeId,
        project: &str,
        model: &str,
        role: &str,
        now_ms: i64,
    ) -> Result<i64, StoreError> {
        // What a first import brings is history, not spend: it was never at 0.
        c.execute(
            "INSERT INTO tuples (home_id, project, model, role, born_at)
             SELECT ?1, ?2, ?3, ?4, CASE WHEN imported_at IS NULL THEN NULL ELSE ?5 END FROM homes WHERE id = ?1",
            params![home.0, project, model, role, now_ms],
        )?;
        Ok(c.last_insert_rowid())
    }

    /// Adds a request, or what a revision raised, to a label set.
    pub(super) fn grow(&mut self, tuple: i64, growth: &Growth) {
        self.growth.entry(tuple).or_default().add(growth);
        if self.overflow.contains(&tuple) {
            self.count(LABEL_OVERFLOW, NO_LABEL, growth.requests);
        }
    }

    /// Takes back what this transaction added for tokens that were counted
    /// before: `known` of a request's `tokens`. Answers with what there was to
    /// take back.
    pub(super) fn take_back(
        &mut self,
        tuple: i64,
        known: &Classes,
        tokens: &Classes,
        requests: u64,
    ) -> Classes {
        let mut taken = Classes::default();
        let Some(growth) = self.growth.get_mut(&tuple) else { return taken };
        growth.requests = growth.requests.saturating_sub(requests);
        for class in Class::ALL {
            let share = known.get(class).min(growth.tokens.get(class));
            *growth.tokens.get_mut(class) -= share;
            *taken.get_mut(class) = share;
            let unpriced = growth.unpriced.get_mut(class);
            *unpriced = unpriced.saturating_sub(share);
            let cost = &mut growth.cost[class as usize];
            *cost = *cost - cost.scaled(share, tokens.get(class));
        }
        taken
    }

    /// Writes what this transaction added.
    pub(super) fn flush_tuples(&mut self, c: &Connection) -> Result<(), StoreError> {
        if self.growth.is_empty() {
            return Ok(());
        }
        let mut read =
            c.prepare_cached(&format!("SELECT {} FROM tuples WHERE id = ?1", COLUMNS.join(", ")))?;
        let set: Vec<_> =
            COLUMNS.iter().enumerate().map(|(n, name)| format!("{name} = ?{}", n + 2)).collect();
        let mut write = c.prepare_cached(&format!("UPDATE tuples SET {} WHERE id = ?1", set.join(", ")))?;
        for (id, growth) in self.growth.drain() {
            let was = read.query_row([id], |row| {
                (0..COLUMNS.len()).map(|n| row.get::<_, i64>(n)).collect::<Result<Vec<_>, _>>()
            })?;
            // Saturating: SQLite would turn an overflow into a float.
            let is = was.into_iter().zip(growth.columns()).map(|(was, more)| was.saturating_add(more));
            write.execute(params_from_iter(std::iter::once(id).chain(is)))?;
        }
        Ok(())
    }
}

/// A count as SQLite holds it.
pub(super) fn clamp(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn find(
    c: &Connection,
    home: HomeId,
    project: &str,
    model: &str,
    role: &str,
) -> Result<Option<i64>, StoreError> {
    let mut statement = c.prepare_cached(
        "SELECT id FROM tuples WHERE home_id = ?1 AND project = ?2 AND model = ?3 AND role = ?4",
    )?;
    Ok(statement.query_row(params![home.0, project, model, role], |row| row.get(0)).optional()?)
}

fn count(c: &Connection, home: HomeId) -> Result<u64, StoreError> {
    let mut statement = c.prepare_cached("SELECT count(*) FROM tuples WHERE home_id = ?1 AND role <> ?2")?;
    Ok(statement.query_row(params![home.0, OTHER], |row| row.get::<_, i64>(0))?.unsigned_abs())
}
