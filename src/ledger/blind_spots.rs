//! Billed requests that no journal holds (accounting R38): every surface that
//! shows figures names them, and none of them demotes a turn.

/// The note beside figures that may read complete (accounting R38).
pub const NOTE: &str = "journal figures count the main chat and its subagents";

/// What the journals leave out though it is billed: the requests the CLI makes
/// beside the chat, and answers it throws away. Where a wider source saw the
/// same process (accounting R63, R66) its figure holds them.
pub const BLIND_SPOTS: [&str; 15] = [
    // Chooses the model under an automatic alias.
    "router",
    "web_search",
    "web_fetch",
    // After 30 turns of one prompt, and its double check.
    "loop_check",
    // The summary and its verification.
    "compression",
    // Every attempt of an answer that ended empty or malformed.
    "invalid_stream",
    "next_speaker",
    "edit_corrector",
    // Of long tool output.
    "summarizer",
    // Of earlier sessions, at the start of the UI and for `--list-sessions`.
    "session_summary",
    "prompt_completion",
    "context_snapshot",
    "screenshot_analysis",
    // Policy and enforcement of the safety checker.
    "safety_check",
    "embedding",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r38_blind_spots_are_distinct_words_a_script_can_match() {
        let distinct: std::collections::BTreeSet<_> = BLIND_SPOTS.into_iter().collect();
        assert_eq!(distinct.len(), BLIND_SPOTS.len());
        for name in BLIND_SPOTS {
            assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{name}");
        }
    }
}
