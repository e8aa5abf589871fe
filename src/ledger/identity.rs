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
    pub started_at: Option<i64>,
}

/// The index of the session that a request belongs to: of those it was found
/// in, the one with the latest start at or before the record's time (the
/// session of a copy starts after the record); where none does, one whose
/// start is unknown, then the one that started first; ties by session id. A
/// pure function of the set, never of reading order.
///
/// # Panics
/// On an empty set: a request was found somewhere.
#[must_use]
pub fn owner(at: i64, found_in: &[Candidate<'_>]) -> usize {
    let rank = |c: &Candidate<'_>| match c.started_at {
        Some(start) if start <= at => (0, -i128::from(start)),
        None => (1, 0),
        Some(start) => (2, i128::from(start)),
    };
    let best = found_in.iter().enumerate().min_by(|(_, a), (_, b)| {
        rank(a).cmp(&rank(b)).then_with(|| a.session_id.cmp(b.session_id))
    });
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

    fn candidate(session_id: &str, started_at: Option<i64>) -> Candidate<'_> {
        Candidate { session_id, started_at }
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

    #[test]
    fn a_copy_starts_after_the_record_and_owns_nothing() {
        let found = [candidate("copy", Some(200)), candidate("original", Some(100))];
        assert_eq!(owner(150, &found), 1);
        assert_eq!(owner(250, &found), 0);
    }

    #[test]
    fn without_a_start_before_the_record_the_first_to_start_owns_it() {
        let found = [candidate("b", Some(300)), candidate("a", Some(200))];
        assert_eq!(owner(100, &found), 1);
        let found = [candidate("b", Some(300)), candidate("~nameless", None)];
        assert_eq!(owner(100, &found), 1);
    }

    #[test]
    fn ties_go_by_session_id_in_any_order() {
        let (a, b) = (candidate("a", Some(100)), candidate("b", Some(100)));
        assert_eq!([a, b][owner(150, &[a, b])].session_id, "a");
        assert_eq!([b, a][owner(150, &[b, a])].session_id, "a");
    }

    #[test]
    fn r17_other_counts_under_one_id_keep_the_component_wise_maximum() {
        let kept = Reading { prompt: 10, output: 5, ..Reading::default() };
        let again = Reading { prompt: 9, output: 7, ..Reading::default() };
        assert_eq!(repeat(kept, kept), Repeat::Same);
        assert_eq!(repeat(kept, again), Repeat::Revised(Reading { prompt: 10, output: 7, ..Reading::default() }));
    }
}
