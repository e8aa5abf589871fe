//! One session as JSON.

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::json::{RowOf, SCHEMA, TokensOf};
use super::money::Costs;
use super::session::{Price, Request, SessionReport};
use super::spec::Kind;
use super::turns::{SourceReading, TurnReport};
use super::{json, time};
use crate::ledger::bound::Reasons;
use crate::ledger::money::CostFigure;
use crate::ledger::spend::{Basis, Source};
use crate::ledger::tokens::{Class, Classes, Reading};
use crate::ledger::turn::excess::Part;
use crate::store::read::UndecodableRow;
use crate::surfaces::money::{Usd, per_million};

/// `session` is the row of the sessions report; the lists stand beside it.
impl Serialize for SessionReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("schema", &SCHEMA)?;
        map.serialize_entry("prices", &self.costs.as_of.map(|day| day.to_string()))?;
        map.serialize_entry("price_list", self.list.as_str())?;
        if let Some(currency) = &self.costs.currency {
            map.serialize_entry("currency", currency.code())?;
        }
        map.serialize_entry(
            "session",
            &RowOf { kind: Kind::Sessions, by: &[], row: &self.row, costs: Some(&self.costs) },
        )?;
        let sources: Vec<_> = self.row.spend.basis.iter().map(|source| self.seen_by(source)).collect();
        map.serialize_entry("sources", &sources)?;
        let turns: Vec<_> = self.turns.iter().map(TurnJson::of).collect();
        map.serialize_entry("turns", &turns)?;
        let requests: Vec<_> =
            self.requests.iter().map(|request| RequestJson::of(request, &self.costs)).collect();
        map.serialize_entry("requests", &requests)?;
        let undecodable: Vec<_> = self.undecodable.iter().map(UndecodableJson::of).collect();
        map.serialize_entry("undecodable", &undecodable)?;
        map.serialize_entry("story", &self.story)?;
        map.end()
    }
}

impl SessionReport {
    /// What one source saw, of all turns together.
    fn seen_by(&self, source: Source) -> SourceJson {
        if source == Source::Journal {
            let mut tokens = Classes::default();
            self.requests.iter().for_each(|request| tokens.add(&request.tokens));
            let tokens = Some(TokensOf(tokens));
            return SourceJson {
                source: source.as_str(),
                requests: Some(self.requests.len() as u64),
                tokens,
            };
        }
        let said =
            || self.turns.iter().flat_map(|turn| &turn.readings).filter(|reading| reading.source == source);
        let sum = said().fold(Reading::default(), |sum, reading| sum.plus(reading.reading));
        let requests = said().map(|reading| reading.requests).sum::<Option<u64>>();
        let tokens = said().next().map(|_| TokensOf(sum.classes()));
        SourceJson { source: source.as_str(), requests, tokens }
    }
}

#[derive(Serialize)]
struct SourceJson {
    source: &'static str,
    /// `null`: it does not say.
    requests: Option<u64>,
    tokens: Option<TokensOf>,
}

#[derive(Serialize)]
struct TurnJson<'r> {
    /// `null`: calls outside of all turns.
    number: Option<usize>,
    started_at: String,
    ended_at: Option<String>,
    ending: &'static str,
    stop_reason: Option<&'r str>,
    model: &'r str,
    doors: &'r [&'static str],
    requests: u64,
    tokens: Option<TokensOf>,
    bound: &'static str,
    reasons: Reasons,
    basis: Basis,
    subagent_tokens: Option<TokensOf>,
    marker: Option<Marker>,
    sources: Vec<SourceJson>,
    /// Tokens of the figure that no journal request holds.
    above: Vec<AboveJson<'r>>,
    /// Whether more evidence may still change it.
    provisional: bool,
    settled_at: Option<String>,
    story: &'r [String],
}

#[derive(Serialize)]
struct Marker {
    input_tokens: u64,
    output_tokens: u64,
}

#[derive(Serialize)]
struct AboveJson<'r> {
    model: &'r str,
    role: &'static str,
    tokens: TokensOf,
}

impl<'r> TurnJson<'r> {
    fn of(turn: &'r TurnReport) -> Self {
        let source = |said: &SourceReading| SourceJson {
            source: said.source.as_str(),
            requests: said.requests,
            tokens: Some(TokensOf(said.reading.classes())),
        };
        let above = |part: &'r Part| AboveJson {
            model: &part.model,
            role: part.role.as_str(),
            tokens: TokensOf(part.reading.classes()),
        };
        Self {
            number: turn.number,
            started_at: time::iso(turn.started_at),
            ended_at: turn.ended_at.map(time::iso),
            ending: turn.ending.as_str(),
            stop_reason: turn.stop_reason.as_deref(),
            model: &turn.model,
            doors: &turn.doors,
            requests: turn.requests,
            tokens: turn.tokens.map(TokensOf),
            bound: turn.bound.as_str(),
            reasons: turn.reasons,
            basis: turn.basis,
            subagent_tokens: turn.subagents.map(TokensOf),
            marker: turn.marker.map(|(input_tokens, output_tokens)| Marker { input_tokens, output_tokens }),
            sources: turn.readings.iter().map(source).collect(),
            above: turn.above.iter().map(above).collect(),
            provisional: turn.settled_at.is_none(),
            settled_at: turn.settled_at.map(time::iso),
            story: &turn.story,
        }
    }
}

#[derive(Serialize)]
struct RequestJson<'r> {
    id: &'r str,
    at: String,
    model: &'r str,
    model_inferred: bool,
    role: &'static str,
    tokens: TokensOf,
    #[serde(flatten)]
    cost: CostOf<'r>,
    /// How the prices in force make a cost of it; `null`: they do not.
    price: Option<PriceJson<'r>>,
    /// Why they do not.
    #[serde(skip_serializing_if = "Option::is_none")]
    unpriced: Option<&'static str>,
}

struct CostOf<'r>(CostFigure, &'r Costs);

impl Serialize for CostOf<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        json::cost(&mut map, self.0, self.1)?;
        map.end()
    }
}

#[derive(Serialize)]
struct PriceJson<'r> {
    /// Of the row.
    model: &'r str,
    #[serde(skip_serializing_if = "Option::is_none")]
    alias: Option<&'r str>,
    price_list: &'static str,
    tier: &'static str,
    source: &'r str,
    /// Whether the ledger's cost is the one that follows from it.
    applied: bool,
    classes: Vec<ClassJson>,
}

#[derive(Serialize)]
struct ClassJson {
    class: &'static str,
    tokens: u64,
    usd_per_million: Usd,
    cost_usd: Usd,
}

impl<'r> PriceJson<'r> {
    fn of(request: &'r Request, price: &'r Price) -> Self {
        let counted = Class::ALL.into_iter().filter(|class| request.tokens.get(*class) > 0);
        let classes = counted.map(|class| ClassJson {
            class: class.as_str(),
            tokens: request.tokens.get(class),
            usd_per_million: per_million(price.rates().of(class)),
            cost_usd: Usd(price.cost.classes.get(class)),
        });
        Self {
            model: &price.row.model,
            alias: price.alias.as_deref(),
            price_list: price.row.list.as_str(),
            tier: price.cost.tier.as_str(),
            source: &price.row.source,
            applied: request.price_of_cost().is_some(),
            classes: classes.collect(),
        }
    }
}

impl<'r> RequestJson<'r> {
    fn of(request: &'r Request, costs: &'r Costs) -> Self {
        Self {
            id: &request.id,
            at: time::iso(request.at),
            model: &request.model,
            model_inferred: request.model_inferred,
            role: request.role.as_str(),
            tokens: TokensOf(request.tokens),
            cost: CostOf(request.cost, costs),
            price: request.price.as_ref().ok().map(|price| PriceJson::of(request, price)),
            unpriced: request.price.as_ref().err().map(|why| why.as_str()),
        }
    }
}

#[derive(Serialize)]
struct UndecodableJson<'r> {
    project_dir: &'r str,
    file: &'r str,
    offset: u64,
    len: u64,
    reason: &'r str,
    at: String,
    settled: bool,
}

impl<'r> UndecodableJson<'r> {
    fn of(line: &'r UndecodableRow) -> Self {
        Self {
            project_dir: &line.project_dir,
            file: &line.file,
            offset: line.offset,
            len: line.len,
            reason: &line.reason,
            at: time::iso(line.at),
            settled: line.settled,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::surfaces::report::session::tests::explained;

    #[test]
    fn the_json_has_the_row_its_requests_and_the_lines_that_broke() {
        let mut out = Vec::new();
        explained(4).write_json(false, &mut out).expect("a Vec takes everything");
        let json: serde_json::Value = serde_json::from_slice(&out).expect("JSON");
        assert_eq!(json["session"]["session_id"], "0c7713fe-21a3-4f08-9a55-1f2e3d4c5b6a");
        assert_eq!(
            json["session"]["reasons"],
            serde_json::json!(["model_unobserved", "torn_line", "orphan"])
        );
        let request = serde_json::json!({
            "id": "m6", "at": "2026-11-30T10:01:00.000Z", "model": "gemini-2.5-flash",
            "model_inferred": false, "role": "main",
            "tokens": {"uncached_input": 234_567, "cached_input": 1_000_000, "tool_input": 0,
                       "output": 3_210, "thoughts": 12, "total": 1_237_789},
            "cost_usd": 0.1084251, "cost_bound": "exact", "unpriced_tokens": 0,
            "price": {
                "model": "gemini-2.5-flash", "price_list": "gemini-api", "tier": "low",
                "source": "https://example.com/prices", "applied": true,
                "classes": [
                    {"class": "uncached_input", "tokens": 234_567, "usd_per_million": 0.3,
                     "cost_usd": 0.0703701},
                    {"class": "cached_input", "tokens": 1_000_000, "usd_per_million": 0.03,
                     "cost_usd": 0.03},
                    {"class": "output", "tokens": 3_210, "usd_per_million": 2.5, "cost_usd": 0.008025},
                    {"class": "thoughts", "tokens": 12, "usd_per_million": 2.5, "cost_usd": 0.00003},
                ],
            },
        });
        assert_eq!(json["requests"], serde_json::json!([request]));
        assert_eq!(json["undecodable"][0]["offset"], 4_711);
        assert_eq!(json["sources"][0]["source"], "journal");
        assert_eq!(json["story"].as_array().map(Vec::len), Some(3));
    }
}
