//! The FinOps Open Cost and Usage Specification (FOCUS), as far as it fits a
//! ledger of tokens: a line for each token class that has tokens.
//!
//! `BilledCost` is empty: gemgauge sees no invoice. `EffectiveCost` is the list
//! cost where the home pays by the token, and empty where it has a seat.

use std::io;

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::rows::Row;
use crate::ledger::money::{Billing, PriceList};
use crate::ledger::tokens::Class;
use crate::surfaces::report::csv::record;
use crate::surfaces::report::time;

const COLUMNS: [&str; 25] = [
    "BilledCost",
    "BillingCurrency",
    "ChargeCategory",
    "ChargeDescription",
    "ChargeFrequency",
    "ChargePeriodStart",
    "ChargePeriodEnd",
    "ConsumedQuantity",
    "ConsumedUnit",
    "EffectiveCost",
    "ListCost",
    "PricingCategory",
    "ProviderName",
    "PublisherName",
    "ResourceId",
    "ResourceType",
    "ServiceCategory",
    "ServiceName",
    "SkuId",
    "Tags",
    "x_Bound",
    "x_CostBound",
    "x_Billing",
    "x_Grain",
    "x_MessageId",
];

pub(super) fn header(out: &mut dyn io::Write) -> io::Result<()> {
    record(out, COLUMNS)
}

pub(super) fn write(row: &Row<'_>, out: &mut dyn io::Write) -> io::Result<()> {
    let tokens = row.spend.tokens().unwrap_or_default();
    let cost = row.spend.cost();
    let priced = cost.is_some_and(|cost| cost.usd.is_some());
    let tags = serde_json::to_string(&Tags(row))?;
    let service = match row.pricing.list {
        PriceList::GeminiApi => "Gemini API",
        PriceList::VertexAi => "Vertex AI",
    };
    let grain = match row.grain {
        super::Grain::Request => "request",
        super::Grain::Hour => "hour",
        super::Grain::Day => "day",
    };
    for class in Class::ALL {
        let count = tokens.get(class);
        if count == 0 {
            continue;
        }
        let list = if priced { row.costs[class as usize].to_string() } else { String::new() };
        let effective = if row.pricing.billing == Billing::Metered { list.clone() } else { String::new() };
        let description = format!("{} {} tokens", row.names.model, class.as_str().replace('_', " "));
        let cells: [&str; COLUMNS.len()] = [
            "",
            "USD",
            "Usage",
            &description,
            "Usage-Based",
            &time::iso(row.start),
            &time::iso(row.end),
            &count.to_string(),
            "Tokens",
            &effective,
            &list,
            "Standard",
            "Google",
            "Google",
            row.names.session,
            "Gemini CLI session",
            "AI and Machine Learning",
            service,
            &format!("{}/{}", row.names.model, class.as_str()),
            &tags,
            row.spend.bound().as_str(),
            cost.map_or("unmeasured", |cost| cost.bound.as_str()),
            row.pricing.billing.as_str(),
            grain,
            row.message_id.unwrap_or_default(),
        ];
        record(out, cells)?;
    }
    Ok(())
}

struct Tags<'r>(&'r Row<'r>);

impl Serialize for Tags<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let names = &self.0.names;
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("home", names.home)?;
        map.serialize_entry("project", names.project)?;
        map.serialize_entry("role", names.role.as_str())?;
        map.end()
    }
}
