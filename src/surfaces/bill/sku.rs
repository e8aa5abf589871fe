//! What a SKU's description names: a model's family and a kind of token.
//!
//! Google's descriptions differ by service and change: "Generate content input
//! token count gemini 2.5 pro short input text", "Gemini 2.5 Flash Thinking
//! Text Output - Predictions". They are read word by word.

use serde::Serialize;

/// A kind of token that has a SKU of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Uncached and tool input.
    Input,
    /// Cached input.
    Cached,
    /// Output and thoughts.
    Output,
}

impl Kind {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Cached => "cached",
            Self::Output => "output",
        }
    }
}

/// Words that are part of a family's name after its version.
const FAMILY: [&str; 6] = ["pro", "flash", "lite", "ultra", "nano", "image"];

/// The family in a model's name or a description: `gemini-2.5-flash-lite`.
/// Previews and dated versions are of the family they preview.
pub(super) fn family(text: &str) -> Option<String> {
    let words = words(text);
    let at = words.iter().position(|word| word == "gemini")?;
    let version = words.get(at + 1).filter(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    let mut name = format!("gemini-{version}");
    // Description and name may put a word between: "Gemini 2.5 GA Flash".
    let mut found = false;
    for word in &words[at + 2..] {
        if FAMILY.contains(&word.as_str()) {
            name.push('-');
            name.push_str(word);
            found = true;
        } else if found {
            break;
        }
    }
    found.then_some(name)
}

/// The kind of token of a description; `None` where it is no token that a
/// request spends, such as the storage of a cache.
pub(super) fn kind(description: &str) -> Option<Kind> {
    let words = words(description);
    let has = |start: &str| words.iter().any(|word| word.starts_with(start));
    if has("storage") || has("grounding") || has("tuning") || has("provisioned") {
        None
    } else if has("cach") {
        Some(Kind::Cached)
    } else if has("output") || has("response") || has("thinking") {
        Some(Kind::Output)
    } else if has("input") || has("prompt") {
        Some(Kind::Input)
    } else {
        None
    }
}

/// How many tokens a unit is; `None` where it is no count of tokens.
pub(super) fn unit(text: &str) -> Option<i128> {
    let words = words(text);
    let is = |names: &[&str]| words.iter().any(|word| names.contains(&word.as_str()));
    if is(&[
        "hour",
        "hours",
        "character",
        "characters",
        "second",
        "seconds",
        "byte",
        "gibibyte",
        "month",
        "request",
    ]) {
        None
    } else if is(&["1m", "million", "millions", "1000000"]) {
        Some(1_000_000)
    } else if is(&["1k", "thousand", "thousands", "1000"]) {
        Some(1_000)
    } else {
        Some(1)
    }
}

/// Words in lower case; a version's point stays in it.
fn words(text: &str) -> Vec<String> {
    let split = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '.');
    split.map(|word| word.trim_matches('.').to_ascii_lowercase()).filter(|word| !word.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_name_a_family_and_a_kind() {
        for (text, model, want) in [
            (
                "Generate content input token count gemini 2.5 pro short input text",
                "gemini-2.5-pro",
                Kind::Input,
            ),
            (
                "Generate content output token count Gemini 2.5 Flash Lite",
                "gemini-2.5-flash-lite",
                Kind::Output,
            ),
            ("Generate_content cached input token count gemini 2.5 pro", "gemini-2.5-pro", Kind::Cached),
            ("Gemini 2.5 Flash Thinking Text Output - Predictions", "gemini-2.5-flash", Kind::Output),
            ("Gemini 2.5 Pro Text Input Caching (Long)", "gemini-2.5-pro", Kind::Cached),
            ("Gemini 3 Pro Preview Text Input - Predictions", "gemini-3-pro", Kind::Input),
        ] {
            assert_eq!((family(text).as_deref(), kind(text)), (Some(model), Some(want)), "{text}");
        }
        assert_eq!(kind("Gemini 2.5 Pro cached content storage"), None);
        assert_eq!(family("N1 Predefined Instance Core"), None);
        assert_eq!(family("gemini-2.5-flash-preview-04-17").as_deref(), Some("gemini-2.5-flash"));
        assert_eq!(family("unknown"), None);
    }

    #[test]
    fn units_are_counts_of_tokens_or_nothing() {
        for (text, want) in [
            ("count", Some(1)),
            ("tokens", Some(1)),
            ("1M tokens", Some(1_000_000)),
            ("1000 count", Some(1_000)),
            ("", Some(1)),
            ("token hour", None),
            ("characters", None),
        ] {
            assert_eq!(unit(text), want, "{text}");
        }
    }
}
