//! Model names and request roles as figures and labels use them.

/// The label of a model that no source names.
pub const UNKNOWN: &str = "unknown";

/// The canonical name of a model: `models/` and a revision suffix such as
/// `-001` dropped; an automatic alias (it names no model that could have
/// been billed) and an empty name are [`UNKNOWN`].
#[must_use]
pub fn canonical(name: &str) -> &str {
    let name = name.trim();
    let name = name.strip_prefix("models/").unwrap_or(name);
    let name = match name.rsplit_once('-') {
        Some((base, suffix)) if is_revision(suffix) && !base.is_empty() => base,
        _ => name,
    };
    if name.is_empty() || is_auto_alias(name) { UNKNOWN } else { name }
}

/// Whether a model setting lets the CLI choose per request (accounting R34):
/// exactly `auto`, or beginning with `auto-`.
#[must_use]
pub fn is_auto_alias(name: &str) -> bool {
    name == "auto" || name.starts_with("auto-")
}

fn is_revision(suffix: &str) -> bool {
    suffix.len() == 3 && suffix.bytes().all(|b| b.is_ascii_digit())
}

/// The part a request plays, in the CLI's own words (its `LlmRole`).
///
/// Journals hold [`Role::Main`] and [`Role::Subagent`] only; the utility roles
/// come from telemetry and headless statistics (accounting R38).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// The chat itself.
    Main,
    /// A subagent's own chat (accounting R46).
    Subagent,
    /// No more is known than that it was none of the two.
    Utility,
    Router,
    Tool,
    Compressor,
    LoopDetector,
    NextSpeaker,
    EditCorrector,
    Summarizer,
    Autocomplete,
    StateSnapshot,
    FastAckHelper,
}

impl Role {
    pub const ALL: [Self; 13] = [
        Self::Main,
        Self::Subagent,
        Self::Utility,
        Self::Router,
        Self::Tool,
        Self::Compressor,
        Self::LoopDetector,
        Self::NextSpeaker,
        Self::EditCorrector,
        Self::Summarizer,
        Self::Autocomplete,
        Self::StateSnapshot,
        Self::FastAckHelper,
    ];

    /// The value of the `role` label.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::Subagent => "subagent",
            Self::Utility => "utility",
            Self::Router => "utility_router",
            Self::Tool => "utility_tool",
            Self::Compressor => "utility_compressor",
            Self::LoopDetector => "utility_loop_detector",
            Self::NextSpeaker => "utility_next_speaker",
            Self::EditCorrector => "utility_edit_corrector",
            Self::Summarizer => "utility_summarizer",
            Self::Autocomplete => "utility_autocomplete",
            Self::StateSnapshot => "utility_state_snapshot_processor",
            Self::FastAckHelper => "utility_fast_ack_helper",
        }
    }

    /// The role of that name, if it is one.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == name)
    }

    /// The role a source names: one we do not know yet is a utility, so that a
    /// label value never comes from outside.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self::parse(name).unwrap_or(Self::Utility)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_names() {
        for (name, want) in [
            ("gemini-2.5-pro", "gemini-2.5-pro"),
            ("models/gemini-2.5-pro", "gemini-2.5-pro"),
            ("models/gemini-2.5-pro-001", "gemini-2.5-pro"),
            ("gemini-2.5-flash-002", "gemini-2.5-flash"),
            ("gemini-3-pro-preview", "gemini-3-pro-preview"),
            ("gemini-2.5-flash-preview-04-17", "gemini-2.5-flash-preview-04-17"),
            ("auto", UNKNOWN),
            ("auto-gemini-3", UNKNOWN),
            ("automatic", "automatic"),
            ("", UNKNOWN),
            ("-001", "-001"),
        ] {
            assert_eq!(canonical(name), want, "{name}");
        }
    }

    #[test]
    fn r34_auto_aliases_are_exact_or_prefixed() {
        assert!(is_auto_alias("auto") && is_auto_alias("auto-gemini-2.5"));
        assert!(!is_auto_alias("my-auto") && !is_auto_alias("automatic") && !is_auto_alias("Auto"));
    }

    #[test]
    fn role_names_round_trip() {
        for role in Role::ALL {
            assert_eq!(Role::parse(role.as_str()), Some(role));
        }
        assert_eq!(Role::parse("utility_of_tomorrow"), None);
        assert_eq!(Role::named("utility_of_tomorrow"), Role::Utility);
    }
}
