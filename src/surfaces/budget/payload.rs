//! What a hook is told.

use serde::Serialize;
use serde_json::value::RawValue;

use super::contributors::{Contributor, Contributors};
use super::json::{BudgetJson, share};
use super::{Line, time};
use crate::ledger::budget::Threshold;
use crate::ledger::money::Rounding;
use crate::surfaces::money::Usd;

#[derive(Serialize)]
struct Payload<'l> {
    schema: u32,
    event: &'static str,
    /// The same however often it is sent.
    id: String,
    /// One sentence; chat services show this field.
    text: String,
    threshold: Box<RawValue>,
    timezone: &'l str,
    budget: BudgetJson<'l>,
    contributors: ContributorsJson<'l>,
}

#[derive(Serialize)]
struct ContributorsJson<'l> {
    projects: Vec<ContributorJson<'l>>,
    models: Vec<ContributorJson<'l>>,
    sessions: Vec<ContributorJson<'l>>,
}

#[derive(Serialize)]
struct ContributorJson<'l> {
    name: &'l str,
    spent_usd: Option<Usd>,
    spent_bound: &'static str,
}

fn list(contributors: &[Contributor]) -> Vec<ContributorJson<'_>> {
    contributors
        .iter()
        .map(|Contributor { name, cost }| ContributorJson {
            name,
            spent_usd: cost.usd.map(Usd),
            spent_bound: cost.bound.as_str(),
        })
        .collect()
}

/// The JSON that tells of a threshold reached.
///
/// # Panics
/// Never: everything in it can be written.
#[must_use]
pub fn payload(
    line: &Line,
    contributors: &Contributors,
    threshold: Threshold,
    zone: &jiff::tz::TimeZone,
) -> String {
    let Line { budget, span, standing, .. } = line;
    let id = format!("{}/{}/{}/{threshold}", budget.name, budget.period.as_str(), span.first);
    let text = format!(
        "gemgauge: budget {} reached {} of its limit: {} of {} ({}, {} from {})",
        budget.name,
        threshold,
        standing.spent,
        budget.limit.dollars(Rounding::HalfEven),
        budget.scope,
        budget.period.as_str(),
        span.first,
    );
    let payload = Payload {
        schema: 1,
        event: "budget_threshold",
        id,
        text,
        threshold: share(threshold),
        timezone: time::zone_name(zone),
        budget: BudgetJson::of(line),
        contributors: ContributorsJson {
            projects: list(&contributors.projects),
            models: list(&contributors.models),
            sessions: list(&contributors.sessions),
        },
    };
    serde_json::to_string(&payload).expect("everything in it can be written")
}
