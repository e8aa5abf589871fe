//! Budgets of the configuration file: their shape, and what makes sense.

use std::path::Path;

use serde::Deserialize;
use serde_saphyr::Spanned;

use super::error::ConfigError;
use super::yaml::wrong;
use crate::ledger::budget::{Budget, Period, Scope, Threshold};
use crate::ledger::model::{UNKNOWN, canonical};
use crate::ledger::money::Picodollars;

/// More than anybody's limit: beyond it a zero slipped in.
const MAX_LIMIT: &str = "1000000000";

/// One budget as written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BudgetEntry {
    name: Spanned<Name>,
    limit_usd: Limit,
    period: PeriodWord,
    project: Option<Spanned<Name>>,
    model: Option<Spanned<Model>>,
    home: Option<Spanned<Name>>,
    thresholds: Option<Spanned<Vec<ThresholdText>>>,
}

/// A name that can stand in a line, a label and a message.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
struct Name(String);

impl TryFrom<String> for Name {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text.trim().is_empty() || text.trim() != text || text.chars().any(char::is_control) {
            return Err("write a name in one line, such as team".into());
        }
        if text.chars().count() > 100 {
            Err("a name has at most 100 characters".into())
        } else {
            Ok(Self(text))
        }
    }
}

/// A model as the ledger calls it.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
struct Model(String);

impl TryFrom<String> for Model {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let Name(text) = text.try_into()?;
        match canonical(&text) {
            known if known == text || text == UNKNOWN => Ok(Self(text)),
            known => Err(format!("`{text}` is counted as `{known}`: write that")),
        }
    }
}

/// An amount as written: a number in YAML is read as its digits, not as a double.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "String")]
struct Limit(Picodollars);

impl TryFrom<String> for Limit {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let limit: Picodollars = text.parse()?;
        if limit <= Picodollars::ZERO {
            return Err(format!("`{text}` is no limit: write US dollars above 0, such as 100.00"));
        }
        if limit > MAX_LIMIT.parse()? {
            return Err(format!("`{text}` is more than {MAX_LIMIT} US dollars"));
        }
        Ok(Self(limit))
    }
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum PeriodWord {
    Day,
    Week,
    Month,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "String")]
struct ThresholdText(Threshold);

impl TryFrom<String> for ThresholdText {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse().map(Self)
    }
}

/// Where something is wrong, and what.
struct Mistake {
    at: (u64, u64),
    message: String,
}

impl Mistake {
    fn at<T>(value: &Spanned<T>, message: impl Into<String>) -> Self {
        let location = value.referenced;
        Self { at: (location.line(), location.column()), message: message.into() }
    }
}

/// The budgets of a file, checked against each other.
pub(super) fn check(path: &Path, text: &str, entries: &[BudgetEntry]) -> Result<(), ConfigError> {
    for (index, entry) in entries.iter().enumerate() {
        entry.clone().budget().map_err(|mistake| wrong(path, text, Some(mistake.at), mistake.message))?;
        let name = &entry.name.value.0;
        if let Some(other) = entries[..index].iter().find(|other| other.name.value.0 == *name) {
            let line = other.name.referenced.line();
            let mistake =
                Mistake::at(&entry.name, format!("`{name}` is another budget's name, on line {line}"));
            return Err(wrong(path, text, Some(mistake.at), mistake.message));
        }
    }
    Ok(())
}

/// The budgets of a file that was checked.
pub(super) fn budgets(entries: Vec<BudgetEntry>) -> Vec<Budget> {
    entries.into_iter().filter_map(|entry| entry.budget().ok()).collect()
}

impl BudgetEntry {
    fn budget(self) -> Result<Budget, Mistake> {
        let ascends = |list: &[ThresholdText]| list.windows(2).all(|pair| pair[0].0 < pair[1].0);
        if let Some(list) = self.thresholds.as_ref().filter(|list| !ascends(&list.value)) {
            return Err(Mistake::at(list, "write each threshold once, the lowest first"));
        }
        let scope = match (self.project, self.model, self.home) {
            (None, None, None) => Scope::All,
            (Some(name), None, None) => Scope::Project(name.value.0),
            (None, Some(name), None) => Scope::Model(name.value.0),
            (None, None, Some(name)) => Scope::Home(name.value.0),
            (_, Some(second), None) => return Err(Mistake::at(&second, ONE_SCOPE)),
            (_, _, Some(second)) => return Err(Mistake::at(&second, ONE_SCOPE)),
        };
        let thresholds = self.thresholds.map(|list| list.value.iter().map(|text| text.0).collect());
        Ok(Budget {
            name: self.name.value.0,
            limit: self.limit_usd.0,
            period: match self.period {
                PeriodWord::Day => Period::Day,
                PeriodWord::Week => Period::Week,
                PeriodWord::Month => Period::Month,
            },
            scope,
            thresholds: thresholds.unwrap_or_else(|| Threshold::DEFAULT.to_vec()),
        })
    }
}

const ONE_SCOPE: &str = "a budget is about one project, one model or one home, or without any about all";

#[cfg(test)]
mod tests {
    use super::super::file::read_text;
    use super::*;

    fn read(text: &str) -> Result<Vec<Budget>, String> {
        let layer = read_text(Path::new("config.yml"), text).map_err(|error| error.to_string())?;
        Ok(budgets(layer.budgets.unwrap_or_default()))
    }

    #[test]
    fn budgets_are_read_to_the_cent() {
        let text = "budgets:\n  - {name: all, limit_usd: 100.10, period: month}\n  - name: web\n    limit_usd: \
                    \"2.5\"\n    period: day\n    project: web\n    thresholds: [0.25, 1, 1.5]\n  - {name: pro, \
                    limit_usd: 9, period: week, model: gemini-2.5-pro, thresholds: []}\n";
        let budgets = read(text).unwrap();
        assert_eq!(budgets[0].limit.to_string(), "100.1");
        assert_eq!((budgets[0].scope.clone(), budgets[0].thresholds.len()), (Scope::All, 3));
        assert_eq!((budgets[1].period, budgets[1].scope.to_string()), (Period::Day, "project web".into()));
        assert_eq!(budgets[1].thresholds[2].to_string(), "1.5");
        assert_eq!(budgets[2].thresholds, []);
        assert_eq!(read("budgets:\n").unwrap(), []);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line_and_its_key() {
        let entry = |rest: &str| format!("db: /x\nbudgets:\n  - name: a\n    limit_usd: 1\n    {rest}\n");
        for (text, expected) in [
            (entry("period: year"), "config.yml, line 5, budgets.period: "),
            (entry("perid: day"), "config.yml, line 5, budgets.perid: "),
            (
                entry("period: day\n    thresholds: [0.5, 0]"),
                "config.yml, line 6, budgets.thresholds: `0` is",
            ),
            (
                entry("period: day\n    thresholds: [0.8, 0.5]"),
                "config.yml, line 6, budgets.thresholds: write each threshold once, the lowest first",
            ),
            (
                entry("period: day\n    project: x\n    model: y"),
                "config.yml, line 7, budgets.model: a budget is about one",
            ),
            (
                entry("period: day\n    model: models/gemini-2.5-pro"),
                "config.yml, line 6, budgets.model: `models/gemini-2.5-pro` is counted as `gemini-2.5-pro`",
            ),
            (
                entry("period: day\n  - {name: a, limit_usd: 1, period: day}"),
                "config.yml, line 6, budgets.name: `a` is another budget's name, on line 3",
            ),
            (
                "budgets:\n  - name: a\n    limit_usd: 0\n    period: day\n".into(),
                "config.yml, line 3, budgets.limit_usd: `0` is no limit",
            ),
            (
                "budgets:\n  - name: a\n    limit_usd: lots\n".into(),
                "config.yml, line 3, budgets.limit_usd: `lots` is no amount",
            ),
            ("budgets:\n  - name: \"a\\nb\"\n".into(), "config.yml, line 2, budgets.name: write a name"),
        ] {
            let error = read(&text).unwrap_err();
            assert!(error.starts_with(expected), "{error}\n{text}");
        }
    }
}
