//! When a turn is final (accounting 2.7).

use super::merge::Ending;
use crate::ledger::bound::Bound;

/// After so long nothing more is waited for, ms.
pub const PROMOTE_DEADLINE: i64 = 15 * 60 * 1000;

/// A turn open for longer than this is closed, ms.
pub const OPEN_TURN_MAX: i64 = 24 * 60 * 60 * 1000;

/// An exporter sends what it has at least this often, ms.
pub const TELEMETRY_BATCH: i64 = 10 * 1000;

/// What decides whether a turn is final.
#[derive(Clone, Copy, Debug)]
pub struct Standing {
    pub ending: Ending,
    pub bound: Bound,
    /// Unix ms; `None`: open.
    pub ended_at: Option<i64>,
    /// The home's journals were all looked at in a scan begun then, unix ms.
    pub read_at: Option<i64>,
    /// One of the session's journals held more than could be read then.
    pub behind: bool,
    /// Telemetry was heard of this session, or of any lately.
    pub telemetry_expected: bool,
    /// Telemetry of this turn is there.
    pub heard: bool,
}

/// Whether a turn is final at `now` (unix ms): its ending is known, the
/// journals were read to their ends after it, and every door known to watch
/// has spoken, or the deadline has passed.
#[must_use]
pub fn is_final(standing: &Standing, now: i64) -> bool {
    let Some(ended) = standing.ended_at else { return false };
    // However late it is: evidence of a time when nobody looked comes together first.
    if standing.ending == Ending::Open || standing.read_at.is_none_or(|read| read < ended) {
        return false;
    }
    if now >= ended + PROMOTE_DEADLINE {
        return true;
    }
    if standing.behind {
        return false;
    }
    if !standing.telemetry_expected {
        return true;
    }
    // What telemetry completes, its last batch may still add to.
    standing.heard && standing.bound == Bound::Exact && now >= ended + TELEMETRY_BATCH
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standing() -> Standing {
        Standing {
            ending: Ending::Normal,
            bound: Bound::Exact,
            ended_at: Some(1_000),
            read_at: Some(1_000),
            behind: false,
            telemetry_expected: false,
            heard: false,
        }
    }

    #[test]
    fn a_turn_is_final_once_its_journal_was_read_behind_its_ending() {
        assert!(is_final(&standing(), 1_000));
        let unread = Standing { read_at: Some(999), ..standing() };
        assert!(!is_final(&unread, 1_000));
        assert!(!is_final(&Standing { read_at: None, ..standing() }, 1_000));
        assert!(!is_final(&unread, 1_000 + PROMOTE_DEADLINE), "nobody has looked since");
        let behind = Standing { behind: true, ..standing() };
        assert!(!is_final(&behind, 1_000));
        assert!(is_final(&behind, 1_000 + PROMOTE_DEADLINE));
    }

    #[test]
    fn an_open_turn_is_never_final() {
        assert!(!is_final(&Standing { ended_at: None, ..standing() }, i64::MAX));
        assert!(!is_final(&Standing { ending: Ending::Open, ..standing() }, i64::MAX));
    }

    #[test]
    fn telemetry_is_waited_for_where_it_is_expected() {
        let expected = Standing { telemetry_expected: true, ..standing() };
        assert!(!is_final(&expected, 1_000 + TELEMETRY_BATCH));
        let heard = Standing { heard: true, ..expected };
        assert!(!is_final(&heard, 1_000));
        assert!(is_final(&heard, 1_000 + TELEMETRY_BATCH));
        // What is a bound may still become complete.
        let bound = Standing { bound: Bound::AtLeast, ..heard };
        assert!(!is_final(&bound, 1_000 + TELEMETRY_BATCH));
        assert!(is_final(&bound, 1_000 + PROMOTE_DEADLINE));
    }
}
