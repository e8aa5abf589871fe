//! The report as JSON, the same on the command line and over HTTP (interface,
//! *Report JSON*). Keys come in a fixed order.

use std::io;

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::build::{Part, Report, Row};
use super::money::{Costs, Pays};
use super::spec::{Dimension, Kind};
use super::{Format, time};
use crate::ledger::money::CostFigure;
use crate::ledger::spend::Spend;
use crate::ledger::tokens::{Class, Classes};
use crate::surfaces::money::{Local, Usd};

/// The version of the shape.
pub const SCHEMA: u32 = 1;

/// One JSON document and a newline.
#[derive(Clone, Copy, Debug, Default)]
pub struct Json {
    /// Indented, for people.
    pub pretty: bool,
}

impl Format for Json {
    fn render(&self, report: &Report, out: &mut dyn io::Write) -> io::Result<()> {
        document(report, self.pretty, out)
    }
}

/// Writes any value of this room as one JSON document and a newline.
pub(super) fn document(value: &impl Serialize, pretty: bool, out: &mut dyn io::Write) -> io::Result<()> {
    if pretty {
        serde_json::to_writer_pretty(&mut *out, value)?;
    } else {
        serde_json::to_writer(&mut *out, value)?;
    }
    out.write_all(b"\n")
}

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("schema", &SCHEMA)?;
        map.serialize_entry("kind", self.kind.as_str())?;
        map.serialize_entry("timezone", time::zone_name(&self.timezone))?;
        map.serialize_entry("since", &self.range.since.map(|day| day.to_string()))?;
        map.serialize_entry("until", &self.range.until.map(|day| day.to_string()))?;
        let costs = self.costs.as_ref();
        if let Some(costs) = costs {
            map.serialize_entry("prices", &costs.as_of.map(|day| day.to_string()))?;
            if let Some(currency) = &costs.currency {
                map.serialize_entry("currency", currency.code())?;
            }
        }
        let (kind, by) = (self.kind, self.by.as_slice());
        let rows: Vec<_> = self.rows.iter().map(|row| RowOf { kind, by, row, costs }).collect();
        map.serialize_entry("rows", &rows)?;
        if let Some((rows, spend)) = &self.rest {
            map.serialize_entry("rest", &SumOf { rows: Some(*rows), spend, pays: None, costs })?;
        }
        map.serialize_entry(
            "total",
            &SumOf { rows: None, spend: &self.total, pays: costs.map(|costs| costs.pays), costs },
        )?;
        map.end()
    }
}

/// A row of a report of some kind.
pub(super) struct RowOf<'r> {
    pub(super) kind: Kind,
    pub(super) by: &'r [Dimension],
    pub(super) row: &'r Row,
    pub(super) costs: Option<&'r Costs>,
}

/// What it is of (its key and, by kind, the session, home, project and start),
/// then its figure.
impl Serialize for RowOf<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { kind, by, row, costs } = *self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("key", &row.key)?;
        if kind == Kind::Sessions {
            map.serialize_entry("session_id", &row.key)?;
        }
        if let Some(home) = &row.home {
            map.serialize_entry("home", home)?;
        }
        if let Some(project) = &row.project {
            map.serialize_entry("project", project)?;
        }
        if kind == Kind::Sessions {
            map.serialize_entry("started_at", &row.started_at.map(time::iso))?;
        }
        map.serialize_entry("last_at", &row.last_at.map(time::iso))?;
        map.serialize_entry("models", &row.models)?;
        figure(&mut map, &row.spend, Some(row.pays), costs)?;
        map.serialize_entry("source_deleted", &row.source_deleted)?;
        breakdown(&mut map, by, &row.spend, &row.parts, costs)?;
        map.end()
    }
}

/// A figure with its claim: requests, tokens (`null`: unmeasured), bound,
/// reasons, basis, its cost where one is asked for, turns.
fn figure<M: SerializeMap>(
    map: &mut M,
    spend: &Spend,
    pays: Option<Pays>,
    costs: Option<&Costs>,
) -> Result<(), M::Error> {
    map.serialize_entry("requests", &spend.requests)?;
    map.serialize_entry("subagent_requests", &spend.subagent_requests)?;
    map.serialize_entry("tokens", &spend.tokens().map(TokensOf))?;
    map.serialize_entry("bound", &spend.bound())?;
    map.serialize_entry("reasons", &spend.reasons)?;
    map.serialize_entry("basis", &spend.basis)?;
    if let Some((figure, costs)) = spend.cost().zip(costs) {
        cost(map, figure, costs)?;
        if let Some(pays) = pays {
            map.serialize_entry("billing", pays.as_str())?;
        }
    }
    map.serialize_entry("turns", &spend.turns)
}

/// Dollars with all their digits (`null`: nothing priced), what they claim, the
/// tokens they leave out; the same in the user's currency where there is one.
pub(super) fn cost<M: SerializeMap>(map: &mut M, figure: CostFigure, costs: &Costs) -> Result<(), M::Error> {
    map.serialize_entry("cost_usd", &figure.usd.map(Usd))?;
    if let Some(currency) = &costs.currency {
        map.serialize_entry("cost_local", &figure.usd.map(|usd| Local(currency, usd)))?;
    }
    map.serialize_entry("cost_bound", figure.bound.as_str())?;
    map.serialize_entry("unpriced_tokens", &figure.unpriced_tokens)
}

/// `by_model` and the like: the parts of a figure, each with the next
/// dimension inside it.
fn breakdown<M: SerializeMap>(
    map: &mut M,
    by: &[Dimension],
    spend: &Spend,
    parts: &[Part],
    costs: Option<&Costs>,
) -> Result<(), M::Error> {
    match by.split_first() {
        None => Ok(()),
        Some((Dimension::Class, _)) => map.serialize_entry("by_class", &classes(spend)),
        Some((dimension, by)) => {
            let parts: Vec<_> =
                parts.iter().map(|part| PartOf { dimension: *dimension, by, part, costs }).collect();
            map.serialize_entry(dimension.by_key(), &parts)
        }
    }
}

struct PartOf<'r> {
    dimension: Dimension,
    by: &'r [Dimension],
    part: &'r Part,
    costs: Option<&'r Costs>,
}

impl Serialize for PartOf<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry(self.dimension.as_str(), &self.part.key)?;
        let Part { spend, parts, .. } = self.part;
        figure(&mut map, spend, None, self.costs)?;
        breakdown(&mut map, self.by, spend, parts, self.costs)?;
        map.end()
    }
}

#[derive(serde::Serialize)]
struct ClassOf {
    class: &'static str,
    total: u64,
    bound: &'static str,
}

/// Nothing where nothing was measured. A class has no cost of its own here: the
/// ledger keeps what a request costs, not what each of its classes does, and the
/// rates differ by day, list and tier.
fn classes(spend: &Spend) -> Vec<ClassOf> {
    let bound = spend.bound().as_str();
    let of = |tokens: Classes| Class::ALL.map(|class| (class.as_str(), tokens.get(class)));
    let classes = spend.tokens().map(of).into_iter().flatten();
    classes.map(|(class, total)| ClassOf { class, total, bound }).collect()
}

struct SumOf<'r> {
    rows: Option<usize>,
    spend: &'r Spend,
    pays: Option<Pays>,
    costs: Option<&'r Costs>,
}

impl Serialize for SumOf<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(rows) = self.rows {
            map.serialize_entry("rows", &rows)?;
        }
        figure(&mut map, self.spend, self.pays, self.costs)?;
        map.end()
    }
}

/// The five classes and `total`.
pub(super) struct TokensOf(pub(super) Classes);

impl Serialize for TokensOf {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(Class::ALL.len() + 1))?;
        for class in Class::ALL {
            map.serialize_entry(class.as_str(), &self.0.get(class))?;
        }
        map.serialize_entry("total", &self.0.total())?;
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::surfaces::report::sample::{render, report};

    fn value(kind: Kind, pairs: &[(&str, &str)]) -> Value {
        serde_json::from_str(&render(&Json::default(), &report(kind, pairs))).expect("JSON")
    }

    #[test]
    fn the_shape_and_its_order() {
        let want = concat!(
            r#"{"schema":1,"kind":"sessions","timezone":"UTC","since":"2026-11-24","until":"2026-11-30","#,
            r#""prices":"2026-11-30","rows":["#,
            r#"{"key":"5e1d20aa-3b3b-4c4c-8d8d-9e9e0f0f1a1a","session_id":"5e1d20aa-3b3b-4c4c-8d8d-9e9e0f0f1a1a","#,
            r#""home":"ana","project":"web","started_at":"2026-11-29T23:20:00.000Z","#,
            r#""last_at":"2026-11-30T00:20:00.000Z","models":["gemini-2.5-flash","gemini-2.5-pro"],"#,
            r#""requests":3,"subagent_requests":1,"tokens":{"uncached_input":6400,"cached_input":1700,"#,
            r#""tool_input":0,"output":135,"thoughts":70,"total":8305},"bound":"at_least","#,
            r#""reasons":["model_unobserved","orphan"],"basis":["journal"],"#,
            r#""cost_usd":0.0034595,"cost_bound":"at_least","unpriced_tokens":0,"billing":"metered","#,
            r#""turns":{"complete":0,"lower_bound":0,"unknown":0},"source_deleted":true}],"#,
            r#""total":{"requests":3,"subagent_requests":1,"tokens":{"uncached_input":6400,"cached_input":1700,"#,
            r#""tool_input":0,"output":135,"thoughts":70,"total":8305},"bound":"at_least","#,
            r#""reasons":["model_unobserved","orphan"],"basis":["journal"],"#,
            r#""cost_usd":0.0034595,"cost_bound":"at_least","unpriced_tokens":0,"billing":"metered","#,
            r#""turns":{"complete":0,"lower_bound":0,"unknown":0}}}"#,
            "\n",
        );
        assert_eq!(render(&Json::default(), &report(Kind::Sessions, &[("project", "web")])), want);
    }

    #[test]
    fn unmeasured_is_null_and_an_empty_report_is_zero_and_exact() {
        let json = value(Kind::Sessions, &[("session", "77aa0b1c")]);
        assert_eq!(json["rows"][0]["tokens"], Value::Null);
        assert_eq!(json["rows"][0]["bound"], "unmeasured");
        assert_eq!(json["rows"][0]["reasons"], json!(["model_unobserved", "no_figure", "orphan"]));
        let json = value(Kind::Daily, &[("until", "2026-01-01")]);
        assert_eq!(json["rows"], json!([]));
        assert_eq!(json["total"]["bound"], "exact");
        assert_eq!(json["total"]["tokens"]["total"], 0);
    }

    #[test]
    fn what_has_no_price_is_no_zero() {
        let json = value(Kind::Sessions, &[("session", "77aa0b1c")]);
        assert_eq!(
            (&json["rows"][0]["cost_usd"], &json["rows"][0]["cost_bound"]),
            (&Value::Null, &json!("unmeasured"))
        );
        let json = value(Kind::Daily, &[("until", "2026-01-01")]);
        assert_eq!((&json["total"]["cost_usd"], &json["total"]["cost_bound"]), (&json!(0), &json!("exact")));
        let json = value(Kind::Homes, &[]);
        let billing: Vec<_> =
            json["rows"].as_array().expect("rows").iter().map(|row| &row["billing"]).collect();
        assert_eq!(
            (billing, &json["total"]["billing"]),
            (vec![&json!("seat"), &json!("metered")], &json!("mixed"))
        );
    }

    #[test]
    fn without_costs_nothing_speaks_of_them() {
        let text = render(&Json::default(), &report(Kind::Sessions, &[("no-cost", ""), ("by", "model")]));
        for word in ["cost", "price", "billing"] {
            assert!(!text.contains(word), "{text}");
        }
    }

    #[test]
    fn another_currency_stands_beside_the_dollars() {
        let mut report = report(Kind::Homes, &[("home", "ana")]);
        let currency = crate::ledger::money::Currency::new("EUR", "0.92").expect("a currency");
        report.costs.as_mut().expect("costs").currency = Some(currency);
        let text = render(&Json::default(), &report);
        assert!(text.contains(r#""prices":"2026-11-30","currency":"EUR","rows""#), "{text}");
        assert!(text.contains(r#""cost_usd":0.0294365,"cost_local":0.02708158,"cost_bound""#), "{text}");
    }

    #[test]
    fn all_time_has_no_ends() {
        let json = value(Kind::Monthly, &[("since", "all")]);
        assert_eq!((&json["since"], &json["until"]), (&Value::Null, &Value::Null));
        assert_eq!(json["rows"][0]["key"], "2026-11");
    }

    #[test]
    fn dimensions_stand_inside_each_other_in_the_order_asked_for() {
        let json = value(Kind::Daily, &[("by", "model,class,role"), ("since", "today")]);
        let model = &json["rows"][0]["by_model"][0];
        assert_eq!(model["model"], "gemini-2.5-flash");
        let role = &model["by_role"][0];
        assert_eq!((&role["role"], &role["tokens"]["total"]), (&json!("main"), &json!(1_239_822)));
        let class = json!({"class": "uncached_input", "total": 235_667, "bound": "at_least"});
        assert_eq!(role["by_class"][0], class);
    }

    #[test]
    fn what_a_limit_leaves_out_is_said() {
        let json = value(Kind::Sessions, &[("limit", "1")]);
        assert_eq!(json["rest"]["rows"], 3);
        assert_eq!(json["total"]["requests"], 6);
    }
}
