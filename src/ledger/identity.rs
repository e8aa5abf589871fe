//! Which request a record is and which session it belongs to
//! (accounting R13, R14, R17 and the settled choices on identity).

use super::tokens::Reading;

/// How many characters of a session id a journal's name carries.
pub const ID8: usize = 8;

/// The part of a session id that journal names carry, the way the CLI makes
/// it: characters outside `[A-Za-z0-9_-]` become `_`, then the first eight.
#[must_use]
pub fn name_part(session_id: &str) -> String {
    let keep = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '_' };
    session_id.chars().take(ID8).map(keep).collect()
}

/// The id part to look a known session's journal up by, or `None` where the
/// journal is left unread: fewer than eight characters, or one that is not an
/// ASCII letter, digit or `-` (accounting R14). Files found by discovery are
/// read whatever their name.
#[must_use]
pub fn lookup_part(session_id: &str) -> Option<&str> {
    let part = session_id.get(..ID8)?;
    part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-').then_some(part)
}

/// The name of the session of a journal without a header whose owner is not
/// known (accounting R13).
#[must_use]
pub fn nameless(name_part: &str) -> String {
    format!("~{name_part}")
}

/// The name part of a [`nameless`] session.
#[must_use]
pub fn nameless_part(session_id: &str) -> Option<&str> {
    session_id.strip_prefix('~')
}

/// The one known session that a nameless journal can be of: the only one whose
/// name part equals the journal's (accounting R13). None or several: unknown.
pub fn resolve_nameless<'a>(part: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let mut fits = known.into_iter().filter(|id| nameless_part(id).is_none() && name_part(id) == part);
    match (fits.next(), fits.next()) {
        (Some(only), None) => Some(only),
        _ => None,
    }
}

/// A session that a request was found in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate<'a> {
    pub session_id: &'a str,
    /// The earliest header `startTime`, unix ms; `None` where no header is known.
    pub first_start: Option<i64>,
    /// The latest header `startTime` at or before the record's time, unix ms.
    pub start_before: Option<i64>,
}

/// The index of the session that a request belongs to: of those it was found
/// in, the one with the latest header at or before the record's time (the
/// session of a copy starts after the record); where none has one, a session
/// whose start is unknown, then the one that started first; ties by session
/// id. A pure function of the set, never of reading order.
///
/// # Panics
/// On an empty set: a request was found somewhere.
#[must_use]
pub fn owner(found_in: &[Candidate<'_>]) -> usize {
    let rank = |c: &Candidate<'_>| match (c.start_before, c.first_start) {
        (Some(start), _) => (0, -i128::from(start)),
        (None, None) => (1, 0),
        (None, Some(start)) => (2, i128::from(start)),
    };
    let best = found_in
        .iter()
        .enumerate()
        .min_by(|(_, a), (_, b)| rank(a).cmp(&rank(b)).then_with(|| a.session_id.cmp(b.session_id)));
    best.expect("a request was found in at least one session").0
}

/// What a second sight of a request's id does to its figure (accounting R17).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// The same counts again: paid once.
    Same,
    /// Other counts under one id: keep the component-wise maximum and count a revision.
    Revised(Reading),
}

/// Compares the counts kept for an id with the counts of a later copy.
#[must_use]
pub fn repeat(kept: Reading, again: Reading) -> Repeat {
    if kept == again { Repeat::Same } else { Repeat::Revised(kept.component_max(again)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A session with these headers, as a candidate for a record of time `at`.
    fn candidate<'a>(session_id: &'a str, starts: &[i64], at: i64) -> Candidate<'a> {
        let start_before = starts.iter().copied().filter(|start| *start <= at).max();
        Candidate { session_id, first_start: starts.iter().copied().min(), start_before }
    }

    #[test]
    fn r14_only_plain_ids_of_eight_characters_are_looked_up() {
        assert_eq!(lookup_part("b4265a7e-16f4-4a8e"), Some("b4265a7e"));
        for id in ["abc_defg-1", "../../..", "ab*defgh", "äbcdefgh", "abcdefg", "abcdefgé", ""] {
            assert_eq!(lookup_part(id), None, "{id}");
        }
    }

    #[test]
    fn r13_a_nameless_journal_is_of_the_only_session_it_fits() {
        let known = ["12406ca6-1111", "2e6f3616-2222", "~12406ca6"];
        assert_eq!(resolve_nameless("12406ca6", known), Some("12406ca6-1111"));
        assert_eq!(resolve_nameless("99999999", known), None);
        assert_eq!(resolve_nameless("12406ca6", ["12406ca6-1111", "12406ca6-3333"]), None);
        assert_eq!(resolve_nameless("s_1", ["s/1"]), Some("s/1"));
    }

    fn owner_at<'a>(at: i64, sessions: &[(&'a str, &[i64])]) -> &'a str {
        let found: Vec<_> = sessions.iter().map(|(id, starts)| candidate(id, starts, at)).collect();
        sessions[owner(&found)].0
    }

    #[test]
    fn a_copy_starts_after_the_record_and_owns_nothing() {
        assert_eq!(owner_at(150, &[("copy", &[200]), ("original", &[100])]), "original");
        assert_eq!(owner_at(250, &[("copy", &[200]), ("original", &[100])]), "copy");
    }

    #[test]
    fn every_header_of_a_session_counts_as_a_start() {
        // Made in `a` after its resume at 300, while `b` had started at 200.
        assert_eq!(owner_at(350, &[("a", &[100, 300]), ("b", &[200])]), "a");
    }

    #[test]
    fn without_a_start_before_the_record_the_first_to_start_owns_it() {
        assert_eq!(owner_at(100, &[("b", &[300]), ("a", &[200, 400])]), "a");
        assert_eq!(owner_at(100, &[("b", &[300]), ("~nameless", &[])]), "~nameless");
    }

    #[test]
    fn ties_go_by_session_id_in_any_order() {
        assert_eq!(owner_at(150, &[("a", &[100]), ("b", &[100])]), "a");
        assert_eq!(owner_at(150, &[("b", &[100]), ("a", &[100])]), "a");
    }

    #[test]
    fn r17_other_counts_under_one_id_keep_the_component_wise_maximum() {
        let kept = Reading { prompt: 10, output: 5, ..Reading::default() };
        let again = Reading { prompt: 9, output: 7, ..Reading::default() };
        assert_eq!(repeat(kept, kept), Repeat::Same);
        assert_eq!(
            repeat(kept, again),
            Repeat::Revised(Reading { prompt: 10, output: 7, ..Reading::default() })
        );
    }
}
