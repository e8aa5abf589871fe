//! Parameters of a request: the options of the command line, by their long names.

use std::collections::BTreeMap;

use axum::extract::Query as Pairs;
use axum::http::Uri;

use super::ApiError;

/// What `/api/v1/report/{kind}` takes: the options of `report` that say which
/// figures, not how to print them.
pub const REPORT: [&str; 16] = [
    "all",
    "breakdown",
    "by",
    "exclude",
    "home",
    "limit",
    "model",
    "no-cost",
    "order",
    "project",
    "session",
    "since",
    "sort",
    "strict",
    "timezone",
    "until",
];

/// Parameters with the values given, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query(BTreeMap<String, Vec<String>>);

impl Query {
    /// Reads the query of `uri`; only `known` names are taken.
    ///
    /// # Errors
    /// 400 with `unknown_parameter`, which says what is known, or `bad_query`.
    pub fn parse(uri: &Uri, known: &[&str]) -> Result<Self, ApiError> {
        let Pairs(pairs) = Pairs::<Vec<(String, String)>>::try_from_uri(uri)
            .map_err(|error| ApiError::bad_request("bad_query", error.body_text()))?;
        let mut query = Self::default();
        for (name, value) in pairs {
            if !known.contains(&name.as_str()) {
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                return Err(ApiError::bad_request(
                    "unknown_parameter",
                    format!("there is no parameter `{name}` here; known: {known}"),
                ));
            }
            query.0.entry(name).or_default().push(value);
        }
        Ok(query)
    }

    /// Every value of a repeatable parameter.
    #[must_use]
    pub fn many(&self, name: &str) -> &[String] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }

    /// The value of a parameter that is given once at most.
    ///
    /// # Errors
    /// 400 with `bad_parameter` if it is given more often.
    pub fn one(&self, name: &str) -> Result<Option<&str>, ApiError> {
        match self.many(name) {
            [] => Ok(None),
            [value] => Ok(Some(value)),
            _ => Err(bad(format!("`{name}` is given more than once"))),
        }
    }

    /// A switch: given without a value, or as `true` or `false`.
    ///
    /// # Errors
    /// 400 with `bad_parameter` for any other value, or if it is given more than once.
    pub fn flag(&self, name: &str) -> Result<bool, ApiError> {
        match self.one(name)? {
            None | Some("false") => Ok(false),
            Some("" | "true") => Ok(true),
            Some(value) => Err(bad(format!("`{name}` is true or false, not `{value}`"))),
        }
    }
}

fn bad(message: String) -> ApiError {
    ApiError::bad_request("bad_parameter", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(query: &str) -> Result<Query, ApiError> {
        Query::parse(&format!("/x?{query}").parse().expect("a URI"), &REPORT)
    }

    #[test]
    fn repeated_single_and_switched_parameters() {
        let query = parse("by=project&by=model&since=7d&all&no-cost=false&project=a%20b+c").expect("known");
        assert_eq!(query.many("by"), ["project", "model"]);
        assert_eq!(query.one("since"), Ok(Some("7d")));
        assert_eq!(query.one("until"), Ok(None));
        assert_eq!(query.flag("all"), Ok(true));
        assert_eq!(query.flag("no-cost"), Ok(false));
        assert_eq!(query.many("project"), ["a b c"]);
    }

    #[test]
    fn what_is_wrong_is_said() {
        assert_eq!(parse("sience=7d").map_err(|e| e.code), Err("unknown_parameter"));
        assert!(
            parse("sience=7d").is_err_and(|e| e.message.contains("`sience`") && e.message.contains("since"))
        );
        let query = parse("since=1&since=2&all=maybe").expect("known names");
        assert_eq!(query.one("since").map_err(|e| e.code), Err("bad_parameter"));
        assert_eq!(query.flag("all").map_err(|e| e.code), Err("bad_parameter"));
    }

    #[test]
    fn the_known_names_are_sorted_for_the_message() {
        assert!(REPORT.is_sorted());
    }
}
