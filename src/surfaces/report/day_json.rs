//! One day as JSON.

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::day::{DAYS, DayReport, Line};
use super::json::{SCHEMA, TokensOf};
use super::time;
use crate::surfaces::money::Usd;

pub(super) struct Document<'r>(pub(super) &'r DayReport);

impl Serialize for Document<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let report = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("schema", &SCHEMA)?;
        map.serialize_entry("day", &report.day.to_string())?;
        map.serialize_entry("timezone", time::zone_name(&report.timezone))?;
        map.serialize_entry("complete_day", &!report.is_today)?;
        map.serialize_entry("median_days", &DAYS)?;
        map.serialize_entry("empty_days", &report.empty_days)?;
        map.serialize_entry("total", &LineOf(&report.total))?;
        for (name, lines) in
            [("projects", &report.projects), ("models", &report.models), ("sessions", &report.sessions)]
        {
            map.serialize_entry(name, &lines.iter().map(LineOf).collect::<Vec<_>>())?;
        }
        map.serialize_entry("story", &super::day_text::story(report))?;
        map.end()
    }
}

struct LineOf<'r>(&'r Line);

impl Serialize for LineOf<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let line = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("key", &line.key)?;
        if let Some(project) = &line.project {
            map.serialize_entry("project", project)?;
        }
        map.serialize_entry("requests", &line.spend.requests)?;
        map.serialize_entry("tokens", &line.spend.tokens().map(TokensOf))?;
        map.serialize_entry("bound", &line.spend.bound())?;
        map.serialize_entry("reasons", &line.spend.reasons)?;
        if let Some(cost) = line.spend.cost() {
            map.serialize_entry("cost_usd", &cost.usd.map(Usd))?;
            map.serialize_entry("cost_bound", cost.bound.as_str())?;
            map.serialize_entry("unpriced_tokens", &cost.unpriced_tokens)?;
        }
        map.serialize_entry("median_requests", &line.median_requests)?;
        map.serialize_entry("median_tokens", &line.median_tokens)?;
        map.serialize_entry("median_bound", &line.median_tokens.map(|_| line.median_bound))?;
        map.serialize_entry("factor", &line.factor().map(hundredths))?;
        if line.spend.cost().is_some() {
            map.serialize_entry("median_cost_usd", &line.median_cost.map(Usd))?;
            map.serialize_entry("cost_factor", &line.cost_factor().map(hundredths))?;
        }
        map.end()
    }
}

#[expect(clippy::cast_precision_loss, reason = "a factor is for people")]
fn hundredths(factor: u128) -> f64 {
    factor as f64 / 100.0
}
