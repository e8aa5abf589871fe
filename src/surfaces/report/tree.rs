//! Sums by key and by the dimensions below it.

use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::Date;

use super::build::Part;
use super::sort::cost;
use crate::ledger::model::Role;
use crate::ledger::spend::Spend;

/// What a sum is of. Small and by id: names come in when the report is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    /// A day, or the first day of a week or month.
    Date(Date),
    Session(i64),
    /// `None`: no source names a model.
    Model(Option<i64>),
    Project(i64),
    Home(i64),
    Role(Role),
}

/// The key of a row and of the parts below it, unused ends `None`.
pub(super) type Path = [Option<Key>; 5];

/// A sum with what its rows show beside it.
#[derive(Clone, Debug, Default)]
pub(super) struct Sum {
    pub(super) spend: Spend,
    /// Unix ms of the first and the last thing summed.
    pub(super) first_at: Option<i64>,
    pub(super) last_at: Option<i64>,
    pub(super) models: BTreeSet<Option<i64>>,
    pub(super) sessions: BTreeSet<i64>,
}

impl Sum {
    pub(super) fn saw(&mut self, at: Option<i64>) {
        self.first_at = self.first_at.into_iter().chain(at).min();
        self.last_at = self.last_at.max(at);
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.spend.add(&other.spend);
        self.saw(other.first_at);
        self.saw(other.last_at);
        self.models.extend(&other.models);
        self.sessions.extend(&other.sessions);
    }
}

/// The parts of a row: `leaves` are sums of one row by path, `depth` the place
/// of the first dimension. Dearest first, then largest, ties by name.
pub(super) fn parts(leaves: &[(&Path, &Sum)], depth: usize, name: &impl Fn(Key) -> String) -> Vec<Part> {
    let mut groups: BTreeMap<Key, Vec<(&Path, &Sum)>> = BTreeMap::new();
    for leaf in leaves {
        if let Some(key) = leaf.0.get(depth).copied().flatten() {
            groups.entry(key).or_default().push(*leaf);
        }
    }
    let mut parts: Vec<Part> = groups
        .into_iter()
        .map(|(key, leaves)| {
            let mut sum = Sum::default();
            leaves.iter().for_each(|(_, leaf)| sum.add(leaf));
            Part {
                key: name(key),
                spend: sum.spend,
                first_at: sum.first_at,
                last_at: sum.last_at,
                parts: self::parts(&leaves, depth + 1, name),
            }
        })
        .collect();
    let size = |part: &Part| (cost(&part.spend), part.spend.tokens().map(|tokens| tokens.total()));
    parts.sort_by(|a, b| size(b).cmp(&size(a)).then_with(|| a.key.cmp(&b.key)));
    parts
}
