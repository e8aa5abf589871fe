//! The words that options of a report take.

use std::str::FromStr;

use super::ReportError;

/// A closed list of words that an option takes.
pub(super) trait Words: Copy + PartialEq + Sized + 'static {
    const OPTION: &'static str;
    const ALL: &'static [Self];

    /// The word itself, then other spellings of it.
    fn spellings(self) -> &'static [&'static str];

    fn names() -> String {
        let names: Vec<_> = Self::ALL.iter().map(|word| word.spellings()[0]).collect();
        names.join(", ")
    }

    fn parse(text: &str) -> Result<Self, ReportError> {
        let wanted = text.trim().to_ascii_lowercase();
        let found = Self::ALL.iter().find(|word| word.spellings().contains(&wanted.as_str()));
        found.copied().ok_or_else(|| ReportError::Value {
            option: Self::OPTION,
            value: text.to_owned(),
            allowed: Self::names(),
        })
    }
}

/// What the rows of a report are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Daily,
    Weekly,
    Monthly,
    Sessions,
    Models,
    Projects,
    Homes,
}

impl Words for Kind {
    const OPTION: &'static str = "report";
    const ALL: &'static [Self] = &[
        Self::Daily,
        Self::Weekly,
        Self::Monthly,
        Self::Sessions,
        Self::Models,
        Self::Projects,
        Self::Homes,
    ];

    fn spellings(self) -> &'static [&'static str] {
        match self {
            Self::Daily => &["daily", "day", "days"],
            Self::Weekly => &["weekly", "week", "weeks"],
            Self::Monthly => &["monthly", "month", "months"],
            Self::Sessions => &["sessions", "session"],
            Self::Models => &["models", "model"],
            Self::Projects => &["projects", "project"],
            Self::Homes => &["homes", "home"],
        }
    }
}

impl Kind {
    pub const ALL: &'static [Self] = <Self as Words>::ALL;

    /// The name in paths and in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.spellings()[0]
    }

    /// All names, for an error sentence.
    #[must_use]
    pub fn names() -> String {
        <Self as Words>::names()
    }

    /// Calendar days that a report covers when it is not told.
    #[must_use]
    pub fn default_days(self) -> u16 {
        if self == Self::Sessions { 7 } else { 30 }
    }
}

impl FromStr for Kind {
    type Err = ReportError;

    fn from_str(text: &str) -> Result<Self, ReportError> {
        <Self as Words>::parse(text).map_err(|_| ReportError::Kind { given: text.to_owned() })
    }
}

/// What rows are broken down by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dimension {
    Project,
    Model,
    Role,
    Home,
    Class,
}

impl Words for Dimension {
    const OPTION: &'static str = "by";
    const ALL: &'static [Self] = &[Self::Project, Self::Model, Self::Role, Self::Home, Self::Class];

    fn spellings(self) -> &'static [&'static str] {
        match self {
            Self::Project => &["project", "projects"],
            Self::Model => &["model", "models"],
            Self::Role => &["role", "roles"],
            Self::Home => &["home", "homes"],
            Self::Class => &["class", "classes"],
        }
    }
}

impl Dimension {
    pub const ALL: &'static [Self] = <Self as Words>::ALL;

    /// The name of its column.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.spellings()[0]
    }

    /// The key of its list in JSON.
    #[must_use]
    pub fn by_key(self) -> &'static str {
        match self {
            Self::Project => "by_project",
            Self::Model => "by_model",
            Self::Role => "by_role",
            Self::Home => "by_home",
            Self::Class => "by_class",
        }
    }
}

/// What rows are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortKey {
    Key,
    Time,
    Requests,
    UncachedInput,
    CachedInput,
    ToolInput,
    Output,
    Thoughts,
    Total,
    Cost,
}

impl Words for SortKey {
    const OPTION: &'static str = "sort";
    const ALL: &'static [Self] = &[
        Self::Key,
        Self::Time,
        Self::Requests,
        Self::UncachedInput,
        Self::CachedInput,
        Self::ToolInput,
        Self::Output,
        Self::Thoughts,
        Self::Total,
        Self::Cost,
    ];

    fn spellings(self) -> &'static [&'static str] {
        match self {
            Self::Key => &["key", "name"],
            Self::Time => &["time", "last", "last_at"],
            Self::Requests => &["requests"],
            Self::UncachedInput => &["fresh", "uncached_input", "uncached"],
            Self::CachedInput => &["cached", "cached_input"],
            Self::ToolInput => &["tool", "tool_input"],
            Self::Output => &["output"],
            Self::Thoughts => &["thoughts"],
            Self::Total => &["total", "tokens"],
            Self::Cost => &["cost", "cost_usd"],
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Ascending,
    Descending,
}

impl Words for Order {
    const OPTION: &'static str = "order";
    const ALL: &'static [Self] = &[Self::Ascending, Self::Descending];

    fn spellings(self) -> &'static [&'static str] {
        match self {
            Self::Ascending => &["asc", "ascending"],
            Self::Descending => &["desc", "descending"],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_singular_forms() {
        for kind in Kind::ALL {
            for spelling in kind.spellings() {
                assert_eq!(spelling.parse::<Kind>().expect("a kind"), *kind);
            }
        }
        let error = "yearly".parse::<Kind>().expect_err("refused").to_string();
        assert_eq!(
            error,
            "there is no report \"yearly\"; use one of: \
             daily, weekly, monthly, sessions, models, projects, homes"
        );
    }

    #[test]
    fn no_word_means_two_things() {
        fn all_differ<W: Words>() {
            let words: Vec<_> = W::ALL.iter().flat_map(|word| word.spellings()).collect();
            let distinct: std::collections::BTreeSet<_> = words.iter().collect();
            assert_eq!(distinct.len(), words.len());
        }
        all_differ::<Kind>();
        all_differ::<Dimension>();
        all_differ::<SortKey>();
        all_differ::<Order>();
    }
}
