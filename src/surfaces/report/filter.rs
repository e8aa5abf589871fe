//! Which sessions and models a report is about.

use std::collections::BTreeSet;

use crate::ledger::model::UNKNOWN;
use crate::store::read::{Dimensions, SessionRow};

/// The shortest part of a session id that `exclude` takes for one: what
/// reports print and journal names carry.
const ID8: usize = 8;

/// Names to keep and to leave out. A list that is empty keeps all; several
/// names of one list are alternatives; the lists narrow each other. A `*`
/// stands for any text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filters {
    /// A project's name.
    pub project: Vec<String>,
    /// A canonical model name.
    pub model: Vec<String>,
    /// The beginning of a session id.
    pub session: Vec<String>,
    /// A home's name, or its path.
    pub home: Vec<String>,
    /// A project, model or home to leave out, or eight or more characters
    /// that a session id begins with.
    pub exclude: Vec<String>,
}

impl Filters {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The sessions and models that pass.
    #[must_use]
    pub fn select(&self, dimensions: &Dimensions) -> Selection {
        let models = dimensions.models.iter().filter(|(_, name)| self.passes_model(name));
        Selection {
            sessions: dimensions
                .sessions
                .values()
                .filter(|session| self.passes_session(session, dimensions))
                .map(|session| session.id)
                .collect(),
            models: models.map(|(id, _)| *id).collect(),
            unknown_model: self.passes_model(UNKNOWN),
        }
    }

    fn passes_model(&self, name: &str) -> bool {
        keeps(&self.model, |pattern| matches(pattern, name))
            && !self.exclude.iter().any(|pattern| matches(pattern, name))
    }

    fn passes_session(&self, session: &SessionRow, dimensions: &Dimensions) -> bool {
        let project = dimensions.projects.get(&session.project_id);
        let home = dimensions.homes.get(&session.home_id);
        let in_project = |pattern: &String| project.is_some_and(|project| matches(pattern, &project.name));
        let in_home =
            |pattern: &String| home.is_some_and(|home| matches(pattern, &home.name) || *pattern == home.path);
        let excluded = |pattern: &String| {
            in_project(pattern)
                || in_home(pattern)
                || (pattern.chars().count() >= ID8 && session.session.starts_with(pattern.as_str()))
        };
        keeps(&self.project, in_project)
            && keeps(&self.home, in_home)
            && keeps(&self.session, |prefix| session.session.starts_with(prefix.as_str()))
            && !self.exclude.iter().any(excluded)
    }

    /// A sentence for each name that nothing in the ledger has: most likely a
    /// typing error.
    #[must_use]
    pub fn unmatched(&self, dimensions: &Dimensions) -> Vec<String> {
        let projects = || dimensions.projects.values().map(|project| project.name.as_str());
        let homes = || dimensions.homes.values().flat_map(|h| [h.name.as_str(), h.path.as_str()]);
        let models = || dimensions.models.values().map(String::as_str);
        let mut sentences = Vec::new();
        for pattern in self.project.iter().filter(|pattern| !projects().any(|name| matches(pattern, name))) {
            sentences.push(unknown("project", pattern, projects()));
        }
        for pattern in self.model.iter().filter(|pattern| !models().any(|name| matches(pattern, name))) {
            sentences.push(unknown("model", pattern, models()));
        }
        for pattern in self.home.iter().filter(|pattern| !homes().any(|name| matches(pattern, name))) {
            let known = dimensions.homes.values().map(|home| home.name.as_str());
            sentences.push(unknown("home", pattern, known));
        }
        let sessions = || dimensions.sessions.values().map(|session| session.session.as_str());
        for prefix in self.session.iter().filter(|prefix| !sessions().any(|id| id.starts_with(*prefix))) {
            sentences.push(format!("No session begins with \"{prefix}\"."));
        }
        sentences
    }
}

/// `No model is named "x"; known: a, b, c, …`
fn unknown<'a>(what: &str, pattern: &str, known: impl Iterator<Item = &'a str>) -> String {
    let known: BTreeSet<_> = known.collect();
    let mut some: Vec<_> = known.iter().take(5).copied().collect();
    if known.len() > some.len() {
        some.push("…");
    }
    if some.is_empty() {
        format!("No {what} is named \"{pattern}\".")
    } else {
        format!("No {what} is named \"{pattern}\"; known: {}.", some.join(", "))
    }
}

fn keeps(list: &[String], passes: impl FnMut(&String) -> bool) -> bool {
    list.is_empty() || list.iter().any(passes)
}

/// What [`Filters`] let pass, by id.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    sessions: BTreeSet<i64>,
    models: BTreeSet<i64>,
    unknown_model: bool,
}

impl Selection {
    /// Whether spend of this session and model passes; `None`: no model is known.
    #[must_use]
    pub fn passes(&self, session_id: i64, model_id: Option<i64>) -> bool {
        let model = model_id.map_or(self.unknown_model, |id| self.models.contains(&id));
        model && self.sessions.contains(&session_id)
    }
}

/// Whether a name is the pattern, in which each `*` stands for any text.
fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surfaces::report::sample;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, name, want) in [
            ("gemini-2.5-pro", "gemini-2.5-pro", true),
            ("gemini-2.5", "gemini-2.5-pro", false),
            ("*flash*", "gemini-2.5-flash-lite", true),
            ("gemini-*-pro", "gemini-2.5-pro", true),
            ("gemini-*-pro", "gemini-pro", false),
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("a*a", "a", false),
            ("**", "ab", true),
        ] {
            assert_eq!(matches(pattern, name), want, "{pattern} {name}");
        }
    }

    fn passing(filters: Filters) -> Vec<i64> {
        let dimensions = sample::dimensions();
        let selection = filters.select(&dimensions);
        dimensions.sessions.keys().copied().filter(|id| selection.passes(*id, Some(1))).collect()
    }

    fn list(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn lists_narrow_each_other_and_their_names_are_alternatives() {
        assert_eq!(passing(Filters::default()), [1, 2, 3, 4]);
        assert_eq!(passing(Filters { project: list(&["api"]), ..Filters::default() }), [1, 3]);
        assert_eq!(passing(Filters { project: list(&["api", "web"]), ..Filters::default() }), [1, 2, 3]);
        assert_eq!(
            passing(Filters { project: list(&["api"]), session: list(&["b4265a7e"]), ..Filters::default() }),
            [1]
        );
        assert_eq!(passing(Filters { home: list(&["/home/bob"]), ..Filters::default() }), [4]);
    }

    #[test]
    fn what_is_excluded_may_be_a_project_a_model_a_home_or_a_session() {
        for (name, want) in [
            ("api", &[2, 4][..]),
            ("bob", &[1, 2, 3]),
            ("b4265a7e", &[2, 3, 4]),
            ("b4", &[1, 2, 3, 4]),
            ("gemini-2.5-*", &[]),
        ] {
            assert_eq!(passing(Filters { exclude: list(&[name]), ..Filters::default() }), want, "{name}");
        }
    }

    #[test]
    fn a_model_filter_leaves_out_what_has_no_model() {
        let dimensions = sample::dimensions();
        let one = Filters { model: list(&["gemini-2.5-pro"]), ..Filters::default() }.select(&dimensions);
        assert!(one.passes(1, Some(1)) && !one.passes(1, Some(2)) && !one.passes(1, None));
        assert!(Filters::default().select(&dimensions).passes(1, None));
    }

    #[test]
    fn names_that_nothing_has_are_said() {
        let filters = Filters {
            project: list(&["apj"]),
            session: list(&["zz"]),
            home: list(&["ana"]),
            ..Filters::default()
        };
        assert_eq!(
            filters.unmatched(&sample::dimensions()),
            ["No project is named \"apj\"; known: api, scratch, web.", "No session begins with \"zz\"."]
        );
    }
}
