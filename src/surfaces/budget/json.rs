//! Budgets for scripts.

use std::io::{self, Write};

use serde::Serialize;
use serde::ser::{SerializeSeq as _, Serializer};
use serde_json::value::RawValue;

use super::{Budgets, Line, time};
use crate::ledger::budget::{Scope, Threshold};
use crate::ledger::money::CostBound;
use crate::surfaces::money::Usd;

#[derive(Serialize)]
struct Document<'b> {
    schema: u32,
    timezone: &'b str,
    over: bool,
    budgets: Vec<BudgetJson<'b>>,
}

#[derive(Serialize)]
pub(super) struct BudgetJson<'b> {
    name: &'b str,
    scope: &'static str,
    scope_name: Option<&'b str>,
    period: &'static str,
    since: String,
    until: String,
    limit_usd: Usd,
    spent_usd: Option<Usd>,
    spent_bound: &'static str,
    unpriced_tokens: u64,
    left_usd: Option<Usd>,
    left_bound: &'static str,
    share: Option<f64>,
    elapsed: f64,
    pace: Option<f64>,
    forecast_usd: Option<Usd>,
    forecast_bound: &'static str,
    over: bool,
    #[serde(serialize_with = "shares")]
    thresholds: &'b [Threshold],
    #[serde(serialize_with = "shares")]
    reached: &'b [Threshold],
    unmatched: bool,
}

/// Thresholds as decimals.
fn shares<S: Serializer>(thresholds: &&[Threshold], serializer: S) -> Result<S::Ok, S::Error> {
    let mut list = serializer.serialize_seq(Some(thresholds.len()))?;
    for threshold in *thresholds {
        list.serialize_element(&share(*threshold))?;
    }
    list.end()
}

pub(super) fn share(threshold: Threshold) -> Box<RawValue> {
    RawValue::from_string(threshold.to_string()).expect("a decimal is a JSON number")
}

/// Four decimals: what people read.
fn rounded(share: f64) -> f64 {
    (share * 1e4).round() / 1e4
}

impl<'b> BudgetJson<'b> {
    pub(super) fn of(line: &'b Line) -> Self {
        let Line { budget, span, standing, unmatched } = line;
        let (scope, scope_name) = match &budget.scope {
            Scope::All => ("all", None),
            Scope::Project(name) => ("project", Some(name.as_str())),
            Scope::Model(name) => ("model", Some(name.as_str())),
            Scope::Home(name) => ("home", Some(name.as_str())),
        };
        Self {
            name: &budget.name,
            scope,
            scope_name,
            period: budget.period.as_str(),
            since: span.first.to_string(),
            until: span.last.to_string(),
            limit_usd: Usd(budget.limit),
            spent_usd: standing.spent.usd.map(Usd),
            spent_bound: standing.spent.bound.as_str(),
            unpriced_tokens: standing.spent.unpriced_tokens,
            left_usd: standing.left.usd.map(Usd),
            left_bound: standing.left.bound.as_str(),
            share: standing.share.map(rounded),
            elapsed: rounded(standing.elapsed),
            pace: standing.pace.map(rounded),
            forecast_usd: standing.forecast.and_then(|forecast| forecast.usd).map(Usd),
            forecast_bound: standing
                .forecast
                .map_or(CostBound::Unmeasured, |forecast| forecast.bound)
                .as_str(),
            over: standing.over,
            thresholds: &budget.thresholds,
            reached: &standing.reached,
            unmatched: *unmatched,
        }
    }
}

pub(super) fn write(budgets: &Budgets, out: &mut dyn Write) -> io::Result<()> {
    let document = Document {
        schema: 1,
        timezone: time::zone_name(&budgets.timezone),
        over: budgets.any_over(),
        budgets: budgets.lines.iter().map(BudgetJson::of).collect(),
    };
    serde_json::to_writer_pretty(&mut *out, &document)?;
    writeln!(out)
}
