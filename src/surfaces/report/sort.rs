//! The order of rows.

use super::build::Row;
use super::spec::{Kind, Order, ReportSpec, SortKey};
use crate::ledger::tokens::Class;

/// Days ascending, sessions by their last request descending, others by tokens
/// descending; ties by key (interface, *Report JSON*).
pub(super) fn sort(rows: &mut [Row], spec: &ReportSpec) {
    let key = spec.sort.unwrap_or(match spec.kind {
        Kind::Daily | Kind::Weekly | Kind::Monthly => SortKey::Key,
        Kind::Sessions => SortKey::Time,
        Kind::Models | Kind::Projects | Kind::Homes => SortKey::Total,
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
        SortKey::Total => row.spend.tokens().map(|tokens| i128::from(tokens.total())),
    };
    rows.sort_by(|a, b| {
        let by_key = || (&a.key, &a.home).cmp(&(&b.key, &b.home));
        let ascending = if key == SortKey::Key { by_key() } else { value(a).cmp(&value(b)) };
        let ordered = if order == Order::Ascending { ascending } else { ascending.reverse() };
        ordered.then_with(by_key)
    });
}

#[cfg(test)]
mod tests {
    use crate::surfaces::report::build::Report;
    use crate::surfaces::report::sample::report;
    use crate::surfaces::report::spec::Kind;

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
    fn sorted_by_what_was_asked_for() {
        for (sort, order, want) in [
            ("key", "asc", ["api", "scratch", "web"]),
            ("key", "desc", ["web", "scratch", "api"]),
            ("requests", "desc", ["web", "api", "scratch"]),
            ("thoughts", "asc", ["scratch", "web", "api"]),
            ("time", "desc", ["scratch", "api", "web"]),
        ] {
            assert_eq!(keys(&report(Kind::Projects, &[("sort", sort), ("order", order)])), want, "{sort}");
        }
    }
}
