//! How budgets stand, by what was last seen of the ledger: a scrape goes
//! through no request.

use super::family::{Descriptor, Family, Kind, Label};
use crate::health::WebhookHealth;
use crate::ledger::money::CostBound;
use crate::surfaces::budget::Line;

const BUDGET: Label = Label::open("budget", "name of a budget in the configuration");

pub static LIMIT: Descriptor = Descriptor {
    name: "gemgauge_budget_limit_usd",
    kind: Kind::Gauge,
    help: "What may be spent in a period",
    labels: &[BUDGET],
};

pub static SPENT: Descriptor = Descriptor {
    name: "gemgauge_budget_spent_usd",
    kind: Kind::Gauge,
    help: "What was spent in the current period; absent where nothing of it was measured or priced",
    labels: &[BUDGET],
};

pub static SPENT_AT_LEAST: Descriptor = Descriptor {
    name: "gemgauge_budget_spent_at_least_usd",
    kind: Kind::Gauge,
    help: "What was spent for certain in the current period, without what is estimated",
    labels: &[BUDGET],
};

pub static SPENT_EXACT: Descriptor = Descriptor {
    name: "gemgauge_budget_spent_exact",
    kind: Kind::Gauge,
    help: "Whether nothing that was spent is missing (1); else it may be more",
    labels: &[BUDGET],
};

pub static FORECAST: Descriptor = Descriptor {
    name: "gemgauge_budget_forecast_usd",
    kind: Kind::Gauge,
    help: "What will have been spent at the pace so far; absent before 3 % of the period",
    labels: &[BUDGET],
};

pub static START: Descriptor = Descriptor {
    name: "gemgauge_budget_period_start_timestamp_seconds",
    kind: Kind::Gauge,
    help: "When the current period began, unix time",
    labels: &[BUDGET],
};

pub static END: Descriptor = Descriptor {
    name: "gemgauge_budget_period_end_timestamp_seconds",
    kind: Kind::Gauge,
    help: "When the next period begins, unix time",
    labels: &[BUDGET],
};

pub static INFO: Descriptor = Descriptor {
    name: "gemgauge_budget_info",
    kind: Kind::Gauge,
    help: "What a budget is about, always 1",
    labels: &[
        BUDGET,
        Label::open("period", "`day`, `week` or `month`"),
        Label::open("scope", "`all`, or one of `project`, `model`, `home` with its name"),
    ],
};

/// What became of a notice, or of an attempt at one.
const RESULTS: [&str; 3] = ["ok", "failed", "gave_up"];

fn results() -> Vec<&'static str> {
    RESULTS.to_vec()
}

pub static DELIVERIES: Descriptor = Descriptor {
    name: "gemgauge_webhook_deliveries_total",
    kind: Kind::Counter,
    help: "Notices of thresholds that the webhook took (ok), attempts that failed (failed), notices given up (gave_up)",
    labels: &[Label::closed("result", results)],
};

pub(super) static DESCRIPTORS: [&Descriptor; 9] =
    [&LIMIT, &SPENT, &SPENT_AT_LEAST, &SPENT_EXACT, &FORECAST, &START, &END, &INFO, &DELIVERIES];

pub(super) fn collect(lines: &[Line]) -> [Family; 8] {
    let [mut limit, mut spent, mut certain, mut exact, mut forecast, mut start, mut end, mut info] =
        [&LIMIT, &SPENT, &SPENT_AT_LEAST, &SPENT_EXACT, &FORECAST, &START, &END, &INFO].map(Family::new);
    for Line { budget, span, standing, .. } in lines {
        let name = [budget.name.as_str()];
        limit.add(&name, budget.limit.to_f64());
        if let Some(usd) = standing.spent.usd {
            spent.add(&name, usd.to_f64());
        }
        certain.add(&name, standing.certain.to_f64());
        exact.add(&name, f64::from(standing.spent.bound == CostBound::Exact));
        if let Some(usd) = standing.forecast.and_then(|forecast| forecast.usd) {
            forecast.add(&name, usd.to_f64());
        }
        start.add(&name, span.start as f64 / 1e3);
        end.add(&name, span.end as f64 / 1e3);
        info.add(&[&budget.name, budget.period.as_str(), &budget.scope.to_string()], 1.0);
    }
    [limit, spent, certain, exact, forecast, start, end, info]
}

pub(super) fn deliveries(webhook: &WebhookHealth) -> Family {
    let mut family = Family::new(&DELIVERIES);
    for (result, count) in RESULTS.iter().zip([&webhook.ok, &webhook.failed, &webhook.gave_up]) {
        family.add_count(&[result], count.get());
    }
    family
}
