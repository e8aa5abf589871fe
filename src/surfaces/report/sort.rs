//! The order of rows.

use super::build::Row;
use super::spec::{Kind, Order, ReportSpec, SortKey};
use crate::ledger::money::Picodollars;
use crate::ledger::spend::Spend;
use crate::ledger::tokens::Class;

/// Days ascending, sessions by their last request descending, others by cost,
/// then tokens, descending; ties by key (interface, *Report JSON*).
pub(super) fn sort(rows: &mut [Row], spec: &ReportSpec) {
    let key = spec.sort.unwrap_or(match spec.kind {
        Kind::Daily | Kind::Weekly | Kind::Monthly => SortKey::Key,
        Kind::Sessions => SortKey::Time,
        Kind::Models | Kind::Projects | Kind::Homes => SortKey::Cost,
    });
    let order = spec.order.unwrap_or(if key == SortKey::Key { Order::Ascending } else { Order::Descending });
    let class = |row: &Row, class| row.spend.tokens().map(|tokens| i128::from(tokens.get(class)));
    // `None`, nothing measured, is below zero.
    let value = |row: &Row| match key {
        SortKey::Key => None,
        SortKey::Time => row.last_at.map(i128::from),
        SortKey::Requests => Some(i128::from(row.spend.requests)),
        SortKey::UncachedInput => class(row, Class::UncachedInput),
        SortKey::CachedInput => class(row, Class::CachedInput),
        SortKey::ToolInput => class(row, Class::ToolInput),
        SortKey::Output => class(row, Class::Output),
        SortKey::Thoughts => class(row, Class::Thoughts),
        SortKey::Total | SortKey::Cost => row.spend.tokens().map(|tokens| i128::from(tokens.total())),
    };
    // Without prices all cost the same, and the tokens decide.
    let cost = |row: &Row| (key == SortKey::Cost).then(|| self::cost(&row.spend)).flatten();
    rows.sort_by(|a, b| {
        let by_key = || (&a.key, &a.home).cmp(&(&b.key, &b.home));
        let ascending =
            if key == SortKey::Key { by_key() } else { (cost(a), value(a)).cmp(&(cost(b), value(b))) };
        let ordered = if order == Order::Ascending { ascending } else { ascending.reverse() };
        ordered.then_with(by_key)
    });
}

/// What is priced of a figure; `None` is below zero.
pub(super) fn cost(spend: &Spend) -> Option<Picodollars> {
    spend.cost().and_then(|cost| cost.usd)
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;

    use crate::ledger::tokens::Reading;
    use crate::surfaces::report::build::Report;
    use crate::surfaces::report::range::Range;
    use crate::surfaces::report::sample::{self, report};
    use crate::surfaces::report::spec::{Dimension, Kind, ReportSpec};

    fn keys(report: &Report) -> Vec<&str> {
        report.rows.iter().map(|row| row.key.as_str()).collect()
    }

    #[test]
    fn the_orders_of_the_kinds() {
        assert_eq!(keys(&report(Kind::Daily, &[])), ["2026-11-28", "2026-11-29", "2026-11-30"]);
        assert_eq!(keys(&report(Kind::Projects, &[])), ["scratch", "api", "web"]);
        assert_eq!(keys(&report(Kind::Homes, &[])), ["bob", "ana"]);
        let first: Vec<String> =
            report(Kind::Sessions, &[]).rows.iter().map(|row| row.key[..4].to_owned()).collect();
        assert_eq!(first, ["0c77", "77aa", "5e1d", "b426"]);
        // Nothing measured is less than nothing spent.
        assert_eq!(keys(&report(Kind::Models, &[])), ["gemini-2.5-flash", "gemini-2.5-pro", "unknown"]);
    }

    #[test]
    fn the_dearest_comes_first_unless_nobody_asks_for_costs() {
        let mut requests = sample::requests();
        let cheap = Reading { prompt: 60_000, ..Reading::default() };
        requests[5] = sample::request(6, 4, 2, "2026-11-30T10:01:00Z", cheap);
        let order = |no_cost, kind| {
            let spec =
                ReportSpec { no_cost, by: vec![Dimension::Model], ..ReportSpec::of(kind, TimeZone::UTC) };
            let range = Range { since: None, until: None, default: false };
            let report = sample::build_of(&spec, range, &sample::dimensions(), &requests);
            let parts = report.rows[0].parts.iter().map(|part| part.key.clone());
            (keys(&report)[0].to_owned(), parts.collect::<Vec<_>>())
        };
        let (pro, flash) = ("gemini-2.5-pro", "gemini-2.5-flash");
        assert_eq!(order(false, Kind::Models).0, pro);
        assert_eq!(order(true, Kind::Models).0, flash);
        assert_eq!(order(false, Kind::Monthly).1[..2], [pro, flash]);
        assert_eq!(order(true, Kind::Monthly).1[..2], [flash, pro]);
    }

    #[test]
    fn sorted_by_what_was_asked_for() {
        for (sort, order, want) in [
            ("key", "asc", ["api", "scratch", "web"]),
            ("key", "desc", ["web", "scratch", "api"]),
            ("requests", "desc", ["web", "api", "scratch"]),
            ("thoughts", "asc", ["scratch", "web", "api"]),
            ("time", "desc", ["scratch", "api", "web"]),
            ("cost", "asc", ["web", "api", "scratch"]),
        ] {
            assert_eq!(keys(&report(Kind::Projects, &[("sort", sort), ("order", order)])), want, "{sort}");
        }
    }
}
