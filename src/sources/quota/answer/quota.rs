//! The buckets of `retrieveUserQuota`, as stated (quota Q9, Q10): nothing is
//! clamped, derived or made up.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Loaded, Verdict, good, millis, no_longer_supported, no_sense};
use crate::ledger::quota::poll::{BucketReading, QuotaState};
use crate::sources::quota::client::Reply;
use crate::sources::quota::plain::object;

/// Where a bucket does not say what it counts.
const UNSTATED: &str = "unspecified";

/// More models than anybody has; the rest is counted and left out.
const MOST: usize = 256;

/// No id is longer.
const LONGEST: usize = 128;

/// A good answer.
#[derive(Debug, PartialEq)]
pub(in crate::sources::quota) struct Quota {
    pub(in crate::sources::quota) buckets: Vec<BucketReading>,
    /// A sentence, where something is missing.
    pub(in crate::sources::quota) detail: Option<String>,
}

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow, default)]
    buckets: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Bucket<'a> {
    #[serde(borrow)]
    model_id: Option<&'a RawValue>,
    #[serde(borrow)]
    token_type: Option<&'a RawValue>,
    #[serde(borrow)]
    remaining_amount: Option<&'a RawValue>,
    #[serde(borrow)]
    remaining_fraction: Option<&'a RawValue>,
    #[serde(borrow)]
    reset_time: Option<&'a RawValue>,
}

/// Reads the answer of `retrieveUserQuota`.
pub(in crate::sources::quota) fn quota(reply: &Reply, loaded: &Loaded, now: i64) -> Result<Quota, Verdict> {
    let body = good(reply, now).map_err(|problem| match problem.verdict() {
        // Of the two names for it, the one that says why.
        verdict if verdict.state == QuotaState::NoSubscription && loaded.unsupported => no_longer_supported(),
        verdict => verdict,
    })?;
    let answer: Answer<'_> = object(body).ok_or_else(no_sense)?;
    let stated = answer.buckets.unwrap_or_default();
    let buckets: Vec<BucketReading> = stated.iter().filter_map(|raw| read(raw)).take(MOST).collect();
    let detail = match stated.len() - buckets.len() {
        0 if buckets.is_empty() => Some("Google reports no quota for this account".to_owned()),
        0 => None,
        1 => Some("one bucket could not be read".to_owned()),
        left_out => Some(format!("{left_out} buckets could not be read")),
    };
    Ok(Quota { buckets, detail })
}

/// `None`: nobody could say what it is a bucket of, or how full.
fn read(raw: &RawValue) -> Option<BucketReading> {
    let bucket: Bucket<'_> = object(raw.get())?;
    let name = |raw: Option<&RawValue>| raw.and_then(text).filter(|name| is_name(name));
    let token_type = match bucket.token_type.and_then(text) {
        Some(stated) if !stated.is_empty() => Some(stated).filter(|name| is_name(name))?,
        _ => UNSTATED.to_owned(),
    };
    Some(BucketReading {
        model: name(bucket.model_id)?,
        token_type,
        remaining_fraction: match bucket.remaining_fraction {
            Some(raw) if raw.get() != "null" => Some(fraction(raw)?),
            _ => None,
        },
        // Less than nothing, or no whole number, says as much as no amount.
        remaining_amount: bucket.remaining_amount.and_then(amount).filter(|amount| *amount >= 0),
        resets_at: bucket.reset_time.and_then(text).and_then(|text| millis(&text)),
    })
}

fn is_name(text: &str) -> bool {
    (1..=LONGEST).contains(&text.len()) && !text.contains(char::is_control)
}

fn text(raw: &RawValue) -> Option<String> {
    serde_json::from_str::<Option<String>>(raw.get()).ok()?
}

/// A number, or one in quotes, as the JSON of protocol buffers may have it.
fn fraction(raw: &RawValue) -> Option<f64> {
    let quoted = text(raw);
    let number: f64 = quoted.as_deref().unwrap_or(raw.get()).parse().ok()?;
    number.is_finite().then_some(number)
}

fn amount(raw: &RawValue) -> Option<i64> {
    match serde_json::from_str(raw.get()).ok()? {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => number.as_i64(),
        _ => None,
    }
}
