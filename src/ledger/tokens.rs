//! Token counts: the reading of one source and the five disjoint classes
//! (accounting 2.2).

use serde::Serialize;

/// What one source says about one request or turn: the vector that the merge
/// compares and maximises (accounting 2.2). All counts are tokens.
///
/// `cached` is a part of `prompt`; `tool` stands outside it; `output` leaves
/// `thoughts` out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Reading {
    pub prompt: u64,
    pub cached: u64,
    pub tool: u64,
    pub output: u64,
    pub thoughts: u64,
}

impl Reading {
    /// The largest count of each component: the tightest bound two readings
    /// of the same spend allow (accounting 2.1).
    #[must_use]
    pub fn component_max(self, other: Self) -> Self {
        Self {
            prompt: self.prompt.max(other.prompt),
            cached: self.cached.max(other.cached),
            tool: self.tool.max(other.tool),
            output: self.output.max(other.output),
            thoughts: self.thoughts.max(other.thoughts),
        }
    }

    /// Both together: readings of different requests.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            prompt: self.prompt.saturating_add(other.prompt),
            cached: self.cached.saturating_add(other.cached),
            tool: self.tool.saturating_add(other.tool),
            output: self.output.saturating_add(other.output),
            thoughts: self.thoughts.saturating_add(other.thoughts),
        }
    }

    /// What this one holds above another, component by component.
    #[must_use]
    pub fn above(self, other: Self) -> Self {
        Self {
            prompt: self.prompt.saturating_sub(other.prompt),
            cached: self.cached.saturating_sub(other.cached),
            tool: self.tool.saturating_sub(other.tool),
            output: self.output.saturating_sub(other.output),
            thoughts: self.thoughts.saturating_sub(other.thoughts),
        }
    }

    /// The smaller count of each component.
    #[must_use]
    pub fn component_min(self, other: Self) -> Self {
        Self {
            prompt: self.prompt.min(other.prompt),
            cached: self.cached.min(other.cached),
            tool: self.tool.min(other.tool),
            output: self.output.min(other.output),
            thoughts: self.thoughts.min(other.thoughts),
        }
    }

    /// The five disjoint classes. A cached count above the prompt leaves
    /// nothing uncached (accounting R21).
    #[must_use]
    pub fn classes(self) -> Classes {
        Classes {
            uncached_input: self.prompt.saturating_sub(self.cached),
            cached_input: self.cached,
            tool_input: self.tool,
            output: self.output,
            thoughts: self.thoughts,
        }
    }

    /// With no more cached tokens than the prompt holds: what a part above
    /// requests adds by itself, where its other cached tokens are theirs.
    #[must_use]
    pub fn alone(self) -> Self {
        Self { cached: self.cached.min(self.prompt), ..self }
    }

    /// Whether the source claims more cached tokens than the prompt holds.
    #[must_use]
    pub fn cached_exceeds_prompt(self) -> bool {
        self.cached > self.prompt
    }
}

/// A token class, in the order of every table and label set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    UncachedInput,
    CachedInput,
    ToolInput,
    Output,
    Thoughts,
}

impl Class {
    pub const ALL: [Self; 5] =
        [Self::UncachedInput, Self::CachedInput, Self::ToolInput, Self::Output, Self::Thoughts];

    /// The value of the `class` label and the key in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::UncachedInput => "uncached_input",
            Self::CachedInput => "cached_input",
            Self::ToolInput => "tool_input",
            Self::Output => "output",
            Self::Thoughts => "thoughts",
        }
    }
}

/// Five disjoint token counts that sum to [`Classes::total`] (accounting 2.2).
///
/// Sums saturate: a journal may carry counts up to 2^63−1, and a wrapped sum
/// would claim less than was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct Classes {
    pub uncached_input: u64,
    pub cached_input: u64,
    pub tool_input: u64,
    pub output: u64,
    pub thoughts: u64,
}

impl Classes {
    #[must_use]
    pub fn get(&self, class: Class) -> u64 {
        match class {
            Class::UncachedInput => self.uncached_input,
            Class::CachedInput => self.cached_input,
            Class::ToolInput => self.tool_input,
            Class::Output => self.output,
            Class::Thoughts => self.thoughts,
        }
    }

    pub fn get_mut(&mut self, class: Class) -> &mut u64 {
        match class {
            Class::UncachedInput => &mut self.uncached_input,
            Class::CachedInput => &mut self.cached_input,
            Class::ToolInput => &mut self.tool_input,
            Class::Output => &mut self.output,
            Class::Thoughts => &mut self.thoughts,
        }
    }

    /// The sum of the five classes; a vendor's own total is never passed on.
    #[must_use]
    pub fn total(&self) -> u64 {
        Class::ALL.into_iter().fold(0, |sum, class| sum.saturating_add(self.get(class)))
    }

    pub fn add(&mut self, other: &Self) {
        for class in Class::ALL {
            let sum = self.get(class).saturating_add(other.get(class));
            *self.get_mut(class) = sum;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r21_the_classes_are_disjoint_and_sum_to_the_total() {
        let reading = Reading { prompt: 15327, cached: 11526, tool: 7, output: 23, thoughts: 919 };
        let classes = reading.classes();
        assert_eq!(classes.uncached_input, 3801);
        assert_eq!(classes.total(), 15327 + 7 + 23 + 919);
    }

    #[test]
    fn r21_more_cached_than_prompt_leaves_nothing_uncached() {
        let reading = Reading { prompt: 10, cached: 12, ..Reading::default() };
        assert!(reading.cached_exceeds_prompt());
        assert_eq!(reading.classes().uncached_input, 0);
        assert_eq!(reading.classes().cached_input, 12);
    }

    #[test]
    fn sums_saturate_instead_of_wrapping() {
        let mut sum = Classes { output: u64::MAX - 1, ..Classes::default() };
        sum.add(&Classes { output: 5, thoughts: 1, ..Classes::default() });
        assert_eq!(sum.output, u64::MAX);
        assert_eq!(sum.total(), u64::MAX);
    }
}
