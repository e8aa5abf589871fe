//! What was spent in money: at the first price of each request (interface,
//! *Metrics*). Values are exact in the ledger and become floats only here.

use std::collections::BTreeMap;

use super::family::{Descriptor, Family, Kind, Label};
use super::tokens::{HOME, MODEL, PROJECT, ROLE, Shown, classes};
use crate::ledger::money::{Billing, Picodollars, PriceList};
use crate::ledger::tokens::Class;

pub static COST: Descriptor = Descriptor {
    name: "gemgauge_cost_usd_total",
    kind: Kind::Counter,
    help: "Cost at list price by token class, at the first price of each request; priced and not estimated",
    labels: &[HOME, PROJECT, MODEL, ROLE, Label::closed("class", classes)],
};

pub static ESTIMATED: Descriptor = Descriptor {
    name: "gemgauge_cost_estimated_usd_total",
    kind: Kind::Counter,
    help: "Cost at list price of tokens whose source tells no cache or tool figures: no bound either way",
    labels: &[HOME, PROJECT, MODEL, ROLE],
};

pub static ADJUSTMENT: Descriptor = Descriptor {
    name: "gemgauge_cost_adjustment_usd",
    kind: Kind::Gauge,
    help: "What repricing changed since the first price, signed",
    labels: &[HOME, PROJECT, MODEL],
};

pub static UNPRICED: Descriptor = Descriptor {
    name: "gemgauge_unpriced_tokens_total",
    kind: Kind::Counter,
    help: "Tokens without a list price: a gap in the cost, never zero",
    labels: &[HOME, PROJECT, MODEL, ROLE, Label::closed("class", classes)],
};

pub static SAVINGS: Descriptor = Descriptor {
    name: "gemgauge_cache_savings_usd_total",
    kind: Kind::Counter,
    help: "What cached tokens would have cost as uncached ones, more than they did",
    labels: &[HOME, PROJECT, MODEL],
};

pub static SURCHARGE: Descriptor = Descriptor {
    name: "gemgauge_long_context_surcharge_usd_total",
    kind: Kind::Counter,
    help: "What requests with prompts above 200,000 tokens cost more than at the low rates",
    labels: &[HOME, PROJECT, MODEL],
};

pub static HOME_INFO: Descriptor = Descriptor {
    name: "gemgauge_home_info",
    kind: Kind::Gauge,
    help: "How a home pays: 1",
    labels: &[
        HOME,
        Label::closed("billing", billings),
        Label::closed("price_list", lists),
        Label::open("team", "as configured, or empty"),
        Label::open("cost_center", "as configured, or empty"),
    ],
};

pub static PRICES_INFO: Descriptor = Descriptor {
    name: "gemgauge_prices_info",
    kind: Kind::Gauge,
    help: "The price table in use: 1",
    labels: &[Label::open("as_of", "day its newest prices were looked up, or empty")],
};

pub(super) static DESCRIPTORS: [&Descriptor; 8] =
    [&COST, &ESTIMATED, &ADJUSTMENT, &UNPRICED, &SAVINGS, &SURCHARGE, &HOME_INFO, &PRICES_INFO];

fn billings() -> Vec<&'static str> {
    Billing::ALL.map(Billing::as_str).to_vec()
}

fn lists() -> Vec<&'static str> {
    PriceList::ALL.map(PriceList::as_str).to_vec()
}

/// How one home pays, and who shares its costs.
#[derive(Clone, Debug)]
pub struct HomeInfo {
    pub home: String,
    pub billing: Billing,
    pub price_list: PriceList,
    pub team: String,
    pub cost_center: String,
}

/// What the configuration says of money.
#[derive(Clone, Debug, Default)]
pub struct MoneyInfo {
    pub homes: Vec<HomeInfo>,
    /// `2026-11-30`, or empty.
    pub prices_as_of: String,
}

/// The families that stand on the ledger's counters. Label sets held at zero
/// show zero here too.
pub(super) fn collect(rows: &[Shown<'_>]) -> [Family; 6] {
    let mut cost = Family::new(&COST);
    let mut estimated = Family::new(&ESTIMATED);
    let mut unpriced = Family::new(&UNPRICED);
    let mut by_model: BTreeMap<[&str; 3], [Picodollars; 3]> = BTreeMap::new();
    for Shown { row, held } in rows {
        let money = |amount: Picodollars| if *held { 0.0 } else { amount.to_f64() };
        let (home, project, model, role) = (&*row.home, &*row.project, &*row.model, &*row.role);
        for class in Class::ALL {
            let labels = [home, project, model, role, class.as_str()];
            cost.add(&labels, money(row.cost[class as usize]));
            unpriced.add_count(&labels, if *held { 0 } else { row.unpriced.get(class) });
        }
        estimated.add(&[home, project, model, role], money(row.cost_estimated));
        let sums = by_model.entry([home, project, model]).or_default();
        if !held {
            sums[0] += row.cost_adjustment;
            sums[1] += row.cache_savings;
            sums[2] += row.long_context_surcharge;
        }
    }
    let [mut adjustment, mut savings, mut surcharge] = [&ADJUSTMENT, &SAVINGS, &SURCHARGE].map(Family::new);
    for (labels, sums) in &by_model {
        adjustment.add(labels, sums[0].to_f64());
        savings.add(labels, sums[1].to_f64());
        surcharge.add(labels, sums[2].to_f64());
    }
    [cost, estimated, adjustment, unpriced, savings, surcharge]
}

/// What the configuration says.
pub(super) fn info(info: &MoneyInfo) -> [Family; 2] {
    let mut homes = Family::new(&HOME_INFO);
    for home in &info.homes {
        let labels =
            [&*home.home, home.billing.as_str(), home.price_list.as_str(), &*home.team, &*home.cost_center];
        homes.add(&labels, 1.0);
    }
    let mut prices = Family::new(&PRICES_INFO);
    prices.add(&[&info.prices_as_of], 1.0);
    [homes, prices]
}
