//! Made-up rows of two homes that share an account, and of one that has none.

use std::collections::{BTreeMap, BTreeSet};

use super::Quota;
use crate::ledger::quota::Rejection;
use crate::ledger::quota::bucket::{BucketKey, Share};
use crate::ledger::quota::poll::QuotaState;
use crate::store::read::{BucketRow, HomeRow, QuotaHomeRow, QuotaModelRow, QuotaRows, RefusalRow};

pub(in crate::surfaces) const NOW: i64 = 1_790_000_000_000;
pub(super) const MIN: i64 = 60_000;
pub(super) const HOUR: i64 = 60 * MIN;

pub(super) fn home(home_id: i64, state: QuotaState, account: Option<&str>) -> QuotaHomeRow {
    QuotaHomeRow {
        home_id,
        at: NOW - 3 * MIN,
        state,
        detail: None,
        account: account.map(str::to_owned),
        cloud_project: account.map(|_| "proj".to_owned()),
        polled_at: account.map(|_| NOW - 3 * MIN),
        next_poll_at: account.map(|_| NOW + 2 * MIN),
        observed_at: account.map(|_| NOW - 3 * MIN),
    }
}

pub(super) fn bucket(id: i64, model: &str, remaining: Option<f64>) -> BucketRow {
    BucketRow {
        id,
        key: BucketKey {
            account: "9f3a6c01".into(),
            cloud_project: "proj".into(),
            model: model.into(),
            token_type: "REQUESTS".into(),
        },
        born_at: NOW - HOUR,
        at: NOW - 3 * MIN,
        fraction: remaining,
        amount: None,
        remaining: remaining.map(|fraction| Share::from_billionths((fraction * 1e9) as i64)),
        resets_at: Some(NOW + 4 * HOUR + 12 * MIN),
        limit: None,
        consumed: 380_000_000,
        current: true,
    }
}

pub(super) fn refusal(home_id: i64, at: i64, model: Option<&str>) -> RefusalRow {
    let rejection = Rejection {
        reason: Some("QUOTA_EXHAUSTED".into()),
        model: model.map(str::to_owned),
        resets_at: Some(NOW + 2 * HOUR),
        retry_after_ms: Some(NOW + 2 * HOUR - at),
        ..Rejection::default()
    };
    RefusalRow { home_id, session: "5e551010-s".into(), at, rejection, succeeded_at: None, heard_at: None }
}

pub(in crate::surfaces) fn homes() -> BTreeMap<i64, HomeRow> {
    let home = |id, name: &str| {
        (id, HomeRow { id, path: format!("/home/{name}"), name: name.into(), imported: true })
    };
    BTreeMap::from([home(1, "ana"), home(2, "ben")])
}

/// `ana` has three limits: one that a refusal contradicts, one half used, one
/// not reported. `ben` has an API key, and met a refusal that names no model.
pub(in crate::surfaces) fn rows() -> QuotaRows {
    let flash =
        BucketRow { amount: Some(930), limit: Some(1500), ..bucket(2, "gemini-2.5-flash", Some(0.62)) };
    let waits = |row: RefusalRow| RefusalRow { rejection: Rejection { waits: true, ..row.rejection }, ..row };
    QuotaRows {
        homes: vec![home(1, QuotaState::Ok, Some("9f3a6c01")), home(2, QuotaState::NotGoogleSignIn, None)],
        buckets: vec![
            bucket(1, "gemini-2.5-pro", Some(0.958)),
            flash,
            bucket(3, "gemini-3-pro-preview", None),
            BucketRow { current: false, ..bucket(4, "gemini-1.5-pro", Some(0.5)) },
        ],
        models: vec![QuotaModelRow {
            id: 1,
            home_id: 1,
            model: "gemini-2.5-pro".into(),
            born_at: None,
            rejections: vec![("quota_exhausted".into(), 4)],
            capacity: 2,
            exhaustions: 1,
        }],
        polls: vec![(1, "ok".into(), 41), (1, "unavailable".into(), 1)],
        refusals: vec![
            waits(refusal(1, NOW - MIN, Some("gemini-2.5-pro"))),
            refusal(2, NOW - 2 * MIN, None),
            refusal(1, NOW - 5 * MIN, Some("gemini-2.5-pro")),
        ],
    }
}

pub(in crate::surfaces) fn quota() -> Quota {
    Quota::of(&rows(), &homes(), &BTreeSet::from([1]), NOW)
}
