//! What a report was asked for, from the command line or a query string
//! (interface, *Command line*).

use jiff::tz::TimeZone;

use super::ReportError;
use super::filter::Filters;
use super::range::RangeSpec;
use super::words::Words;
pub use super::words::{Dimension, Kind, Order, SortKey};

/// The options of a report as they were written: flags of the command line or
/// parameters of a query, whose names are known there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    pub since: Option<String>,
    pub until: Option<String>,
    pub timezone: Option<String>,
    pub by: Vec<String>,
    pub project: Vec<String>,
    pub model: Vec<String>,
    pub session: Vec<String>,
    pub home: Vec<String>,
    pub exclude: Vec<String>,
    pub sort: Option<String>,
    pub order: Option<String>,
    pub limit: Option<String>,
    pub breakdown: bool,
    pub compact: bool,
    pub all: bool,
    pub no_cost: bool,
    pub strict: bool,
}

/// A report that can be made: every word understood.
#[derive(Clone, Debug)]
pub struct ReportSpec {
    pub kind: Kind,
    pub range: RangeSpec,
    pub timezone: TimeZone,
    /// In the order asked for, each once; the class last, as it splits a figure.
    pub by: Vec<Dimension>,
    pub filters: Filters,
    pub sort: Option<SortKey>,
    pub order: Option<Order>,
    /// Rows beyond it are summed up in one.
    pub limit: Option<usize>,
    pub compact: bool,
    /// Sessions of headers only too.
    pub all: bool,
    /// Tokens only.
    pub no_cost: bool,
    /// Classes by prompt results and journals alone (accounting, settled choices).
    pub strict: bool,
}

impl ReportSpec {
    /// A report with its defaults.
    #[must_use]
    pub fn of(kind: Kind, timezone: TimeZone) -> Self {
        Self {
            kind,
            range: RangeSpec::default(),
            timezone,
            by: Vec::new(),
            filters: Filters::default(),
            sort: None,
            order: None,
            limit: None,
            compact: false,
            all: false,
            no_cost: false,
            strict: false,
        }
    }

    /// # Errors
    /// A sentence with the word that is not understood and those that are.
    pub fn new(kind: Kind, options: &Options, local: &TimeZone) -> Result<Self, ReportError> {
        let limit = match options.limit.as_deref().map(str::trim) {
            None => None,
            Some(text) => match text.parse() {
                Ok(limit) if limit > 0 => Some(limit),
                _ => return Err(ReportError::Limit(text.to_owned())),
            },
        };
        let sort = options.sort.as_deref().map(SortKey::parse).transpose()?;
        if options.no_cost && sort == Some(SortKey::Cost) {
            return Err(ReportError::SortWithoutCost);
        }
        Ok(Self {
            kind,
            range: RangeSpec::parse(options.since.as_deref(), options.until.as_deref())?,
            timezone: match options.timezone.as_deref() {
                None => local.clone(),
                Some(name) => zone(name)?,
            },
            by: dimensions(options)?,
            filters: Filters {
                project: options.project.clone(),
                model: options.model.clone(),
                session: options.session.clone(),
                home: options.home.clone(),
                exclude: options.exclude.clone(),
            },
            sort,
            order: options.order.as_deref().map(Order::parse).transpose()?,
            limit,
            compact: options.compact,
            all: options.all,
            no_cost: options.no_cost,
            strict: options.strict,
        })
    }
}

fn dimensions(options: &Options) -> Result<Vec<Dimension>, ReportError> {
    let mut by: Vec<Dimension> = Vec::new();
    let breakdown = options.breakdown.then_some("model");
    for text in options.by.iter().flat_map(|list| list.split(',')).chain(breakdown) {
        let dimension = Dimension::parse(text)?;
        if !by.contains(&dimension) {
            by.push(dimension);
        }
    }
    by.sort_by_key(|dimension| *dimension == Dimension::Class);
    Ok(by)
}

/// A time zone by its IANA name.
///
/// # Errors
/// Where there is none of that name.
pub fn zone(name: &str) -> Result<TimeZone, ReportError> {
    let name = name.trim();
    TimeZone::get(name).map_err(|_| ReportError::Zone(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surfaces::report::sample;

    fn spec(pairs: &[(&str, &str)]) -> Result<ReportSpec, ReportError> {
        ReportSpec::new(Kind::Daily, &sample::options(pairs), &TimeZone::UTC)
    }

    fn error(pairs: &[(&str, &str)]) -> String {
        spec(pairs).expect_err("refused").to_string()
    }

    #[test]
    fn dimensions_keep_their_order_once_with_the_class_last() {
        let spec = spec(&[("by", "class,role"), ("by", "model"), ("by", "role"), ("breakdown", "")]);
        assert_eq!(spec.expect("fine").by, [Dimension::Role, Dimension::Model, Dimension::Class]);
    }

    #[test]
    fn refusals_name_the_word_and_the_allowed_ones() {
        for (pairs, sentence) in [
            (
                &[("by", "user")][..],
                "\"user\" is no value for by; use one of: project, model, role, home, class",
            ),
            (
                &[("sort", "price")],
                "\"price\" is no value for sort; use one of: \
                 key, time, requests, fresh, cached, tool, output, thoughts, total, cost",
            ),
            (
                &[("sort", "cost"), ("no-cost", "")],
                "rows cannot be sorted by a cost that no-cost leaves out; sort by total instead",
            ),
            (&[("order", "up")], "\"up\" is no value for order; use one of: asc, desc"),
            (
                &[("limit", "0")],
                "limit cannot be \"0\"; use a whole number from 1, or leave it out for all rows",
            ),
            (
                &[("timezone", "Mars/Base")],
                "there is no time zone \"Mars/Base\"; use an IANA name such as UTC or Europe/Berlin",
            ),
        ] {
            assert_eq!(error(pairs), sentence);
        }
    }

    #[test]
    fn zones_are_found_whatever_their_case() {
        assert_eq!(zone("america/los_angeles").expect("known").iana_name(), Some("America/Los_Angeles"));
    }
}
