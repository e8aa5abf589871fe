//! A report as lines under key columns: what the table, CSV and Markdown share.

use super::build::{Part, Report, Row};
use super::money::Costs;
use super::spec::{Dimension, Kind};
use crate::ledger::bound::Bound;
use crate::ledger::spend::Spend;
use crate::ledger::tokens::Class;

/// A column that says what a line is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyColumn {
    /// The row's own key.
    Key(Kind),
    /// The project and the home of a session or project row.
    Project,
    Home,
    /// A dimension, and its place in the path of parts.
    Part(Dimension, usize),
    Class,
}

/// The key columns of a report. `homes`: also that of a row's home.
pub(super) fn key_columns(report: &Report, homes: bool) -> Vec<KeyColumn> {
    let mut columns = vec![KeyColumn::Key(report.kind)];
    if report.kind == Kind::Sessions {
        columns.push(KeyColumn::Project);
    }
    if homes && matches!(report.kind, Kind::Sessions | Kind::Projects) {
        columns.push(KeyColumn::Home);
    }
    for (place, dimension) in report.by.iter().enumerate() {
        let column = match dimension {
            Dimension::Class => KeyColumn::Class,
            dimension => KeyColumn::Part(*dimension, place),
        };
        // `sessions --by project` has that column already.
        if !columns.iter().any(|other| other.name() == column.name()) {
            columns.push(column);
        }
    }
    columns
}

impl KeyColumn {
    /// Its stable name in CSV.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Key(Kind::Daily) => "day",
            Self::Key(Kind::Weekly) => "week",
            Self::Key(Kind::Monthly) => "month",
            Self::Key(Kind::Sessions) => "session",
            Self::Key(Kind::Models) => "model",
            Self::Key(Kind::Projects) | Self::Project => "project",
            Self::Key(Kind::Homes) | Self::Home => "home",
            Self::Part(dimension, _) => dimension.as_str(),
            Self::Class => "class",
        }
    }

    /// Its title for people: the name with a capital.
    pub(super) fn title(self) -> String {
        let mut title = self.name().to_owned();
        title[..1].make_ascii_uppercase();
        title
    }

    /// Whether the column repeats while the row stays the same.
    pub(super) fn is_of_row(self) -> bool {
        matches!(self, Self::Key(_) | Self::Project | Self::Home)
    }

    pub(super) fn text<'r>(self, line: &Line<'r>) -> &'r str {
        match self {
            Self::Key(_) => &line.row.key,
            Self::Project => line.row.project.as_deref().unwrap_or_default(),
            Self::Home => line.row.home.as_deref().unwrap_or_default(),
            Self::Part(_, place) => line.parts.get(place).map_or("", |part| &part.key),
            Self::Class => line.class.map_or("", Class::as_str),
        }
    }

    /// The same for people, who know the classes by the titles of their columns.
    pub(super) fn shown<'r>(self, line: &Line<'r>) -> &'r str {
        match (self, line.class) {
            (Self::Class, Some(class)) => class_title(class),
            _ => self.text(line),
        }
    }
}

/// One line: a row, or the smallest parts of it.
#[derive(Clone, Debug)]
pub(super) struct Line<'r> {
    pub(super) row: &'r Row,
    /// From the row down to the part of this line.
    pub(super) parts: Vec<&'r Part>,
    pub(super) class: Option<Class>,
    /// Whether it is the first line of its row.
    pub(super) first: bool,
}

impl<'r> Line<'r> {
    pub(super) fn spend(&self) -> &'r Spend {
        self.parts.last().map_or(&self.row.spend, |part| &part.spend)
    }

    pub(super) fn first_at(&self) -> Option<i64> {
        self.parts.last().map_or(self.row.first_at, |part| part.first_at)
    }

    pub(super) fn last_at(&self) -> Option<i64> {
        self.parts.last().map_or(self.row.last_at, |part| part.last_at)
    }
}

/// The lines of a report in the order of its rows. Split by class, what is
/// unmeasured is one line without a class.
pub(super) fn lines<'r>(report: &'r Report, classes: &[Class]) -> Vec<Line<'r>> {
    let by_class = by_class(report);
    let mut lines = Vec::new();
    for row in &report.rows {
        let mut paths = Vec::new();
        walk(&row.parts, &mut Vec::new(), &mut paths);
        if paths.is_empty() {
            paths.push(Vec::new());
        }
        let mut first = true;
        for parts in paths {
            let line = Line { row, parts, class: None, first };
            if by_class && line.spend().bound() != Bound::Unmeasured {
                lines.extend(classes.iter().enumerate().map(|(place, class)| Line {
                    class: Some(*class),
                    first: first && place == 0,
                    ..line.clone()
                }));
            } else {
                lines.push(line);
            }
            first = false;
        }
    }
    lines
}

pub(super) fn by_class(report: &Report) -> bool {
    report.by.contains(&Dimension::Class)
}

/// What there is to say about costs, unless there are none or the lines are of
/// classes, which have none.
pub(super) fn costs(report: &Report) -> Option<&Costs> {
    report.costs.as_ref().filter(|_| !by_class(report))
}

/// The classes that people are shown: tool input only where there is any.
pub(super) fn shown_classes(report: &Report) -> Vec<Class> {
    let tool = report.total.tokens().is_some_and(|tokens| tokens.tool_input > 0);
    Class::ALL.into_iter().filter(|class| tool || *class != Class::ToolInput).collect()
}

/// The title of a class's column.
pub(super) fn class_title(class: Class) -> &'static str {
    match class {
        Class::UncachedInput => "Fresh",
        Class::CachedInput => "Cached",
        Class::ToolInput => "Tool",
        Class::Output => "Output",
        Class::Thoughts => "Thoughts",
    }
}

fn walk<'r>(parts: &'r [Part], path: &mut Vec<&'r Part>, paths: &mut Vec<Vec<&'r Part>>) {
    for part in parts {
        path.push(part);
        if part.parts.is_empty() {
            paths.push(path.clone());
        } else {
            walk(&part.parts, path, paths);
        }
        path.pop();
    }
}
