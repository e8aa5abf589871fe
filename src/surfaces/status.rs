//! One line for a prompt or a status bar.

use std::io::{self, Write};

use jiff::tz::TimeZone;
use serde::Serialize;

use super::budget::{self, Budgets};
use super::money::Usd;
use super::quota::{self, Quota};
use super::report::time;
use crate::ledger::budget::{Budget, Period};
use crate::ledger::money::CostFigure;
use crate::ledger::quota::bucket::{Share, class};
use crate::store::StoreError;
use crate::store::read::Snapshot;

/// What was spent today and this month, the limit that ends first, and which
/// budgets are over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    pub timezone: TimeZone,
    pub today: CostFigure,
    pub month: CostFigure,
    pub limit: Option<Tightest>,
    pub over: Vec<String>,
}

/// The limit that ends first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tightest {
    pub model: String,
    /// `None`: a request was refused, and what is left is not known.
    pub remaining: Option<Share>,
    /// A request was refused, and that holds: it counts more than what is left.
    pub refused: bool,
    /// Unix ms of the reset.
    pub until: Option<i64>,
    pub now: i64,
}

impl Status {
    /// Reads it at `now` (unix ms), of all homes or of some.
    ///
    /// # Errors
    /// The ledger cannot be read.
    pub fn read(
        snapshot: &Snapshot<'_>,
        budgets: &[Budget],
        homes: &[String],
        zone: &TimeZone,
        now: i64,
    ) -> Result<Self, StoreError> {
        let spent = budget::spent(snapshot, &[Period::Day, Period::Month], homes, zone, now)?;
        let lines = Budgets::read(snapshot, budgets, zone, now)?.lines;
        let over = lines.into_iter().filter(|line| line.standing.over).map(|line| line.budget.name);
        Ok(Self {
            timezone: zone.clone(),
            today: spent[0].figure(),
            month: spent[1].figure(),
            limit: tightest(&Quota::standing(snapshot, homes, now)?),
            over: over.collect(),
        })
    }

    /// `≥ $4.31 today · ≥ $61.20 this month · pro 62 % until 19:05 · over: team`.
    ///
    /// # Errors
    /// Whatever writing says.
    pub fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        write!(out, "{} today · {} this month", self.today, self.month)?;
        if let Some(limit) = &self.limit {
            write!(out, " · {}", class(&limit.model))?;
            match limit.remaining.filter(|_| !limit.refused) {
                Some(left) => write!(out, " {} %", quota::percent(left))?,
                None => write!(out, " refused")?,
            }
            if let Some(until) = limit.until {
                write!(out, " until {}", quota::clock(&self.timezone, limit.now, until))?;
            }
        }
        if !self.over.is_empty() {
            write!(out, " · over: {}", self.over.join(", "))?;
        }
        writeln!(out)
    }

    /// As one JSON document, in one line.
    ///
    /// # Errors
    /// Whatever writing says.
    pub fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        let document = Document {
            schema: 1,
            timezone: time::zone_name(&self.timezone),
            today: FigureJson::of(&self.today),
            month: FigureJson::of(&self.month),
            limit: self.limit.as_ref().map(|limit| LimitJson {
                model: &limit.model,
                remaining_percent: limit.remaining.map(Share::percent),
                refused: limit.refused,
                until: limit.until.map(time::iso),
            }),
            over: &self.over,
        };
        serde_json::to_writer(&mut *out, &document)?;
        writeln!(out)
    }
}

/// The limit with the least left, or the refusal in force.
fn tightest(quota: &Quota) -> Option<Tightest> {
    if let Some(limit) = quota.tightest() {
        return Some(Tightest {
            model: limit.row.key.model.clone(),
            remaining: limit.remaining(),
            refused: limit.refused.is_some(),
            until: limit.refused.map(|(_, until)| until).or(limit.row.resets_at),
            now: quota.now,
        });
    }
    quota.refusals.first().map(|refusal| Tightest {
        model: refusal.model.clone(),
        remaining: None,
        refused: true,
        until: Some(refusal.until),
        now: quota.now,
    })
}

#[derive(Serialize)]
struct Document<'s> {
    schema: u32,
    timezone: &'s str,
    today: FigureJson,
    month: FigureJson,
    limit: Option<LimitJson<'s>>,
    over: &'s [String],
}

#[derive(Serialize)]
struct LimitJson<'s> {
    model: &'s str,
    remaining_percent: Option<f64>,
    refused: bool,
    until: Option<String>,
}

#[derive(Serialize)]
struct FigureJson {
    cost_usd: Option<Usd>,
    cost_bound: &'static str,
    unpriced_tokens: u64,
}

impl FigureJson {
    fn of(figure: &CostFigure) -> Self {
        Self {
            cost_usd: figure.usd.map(Usd),
            cost_bound: figure.bound.as_str(),
            unpriced_tokens: figure.unpriced_tokens,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::bound::Bound;
    use crate::ledger::money::{CostBound, CostSum, Picodollars};

    #[test]
    fn it_is_one_line_whatever_there_is_to_say() {
        let figure = |cents: i128, bound| {
            CostSum::priced(Picodollars::new(cents * 10_000_000_000), bound).figure(Bound::Exact)
        };
        let mut status = Status {
            timezone: TimeZone::UTC,
            today: figure(431, CostBound::AtLeast),
            month: figure(6120, CostBound::Exact),
            limit: None,
            over: Vec::new(),
        };
        let text = |status: &Status| {
            let (mut text, mut json) = (Vec::new(), Vec::new());
            status.write_text(&mut text).unwrap();
            status.write_json(&mut json).unwrap();
            assert_eq!(String::from_utf8(json).unwrap().lines().count(), 1);
            String::from_utf8(text).unwrap()
        };
        assert_eq!(text(&status), "≥ $4.31 today · $61.20 this month\n");
        let noon = 1_790_000_000_000;
        let limit = Tightest {
            model: "gemini-2.5-pro".into(),
            remaining: Some(Share::from_billionths(629_900_000)),
            refused: false,
            until: Some(noon + 3_600_000),
            now: noon,
        };
        status.limit = Some(limit.clone());
        assert_eq!(text(&status), "≥ $4.31 today · $61.20 this month · pro 62 % until 15:13\n");
        status.limit = Some(Tightest { refused: true, until: Some(noon + 86_400_000), ..limit });
        assert_eq!(text(&status), "≥ $4.31 today · $61.20 this month · pro refused until Sep 22 14:13\n");
        status.limit = None;
        status.today = CostSum::unpriced(7).figure(Bound::Exact);
        status.over = vec!["team".into(), "web".into()];
        assert_eq!(text(&status), "— today · $61.20 this month · over: team, web\n");
    }
}
