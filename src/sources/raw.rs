//! JSON that is read member by member, strictly and without copies: what is
//! not asked for is never looked at.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// An integer literal from 0 to 2⁶³ − 1: neither `3.0` nor `1e3` is one.
#[must_use]
pub fn count(raw: &RawValue) -> Option<u64> {
    let token = raw.get();
    let digits = token.bytes().all(|byte| byte.is_ascii_digit());
    token.parse().ok().filter(|&count| digits && count <= i64::MAX.unsigned_abs())
}

/// A counter that may be left out, and is 0 then; `None`: it is no count.
#[must_use]
pub fn optional_count(raw: Option<&RawValue>) -> Option<u64> {
    raw.map_or(Some(0), count)
}

/// A JSON object; an array is none, though it would do for a struct.
#[must_use]
pub fn object<'a, T: Deserialize<'a>>(raw: &'a RawValue) -> Option<T> {
    raw.get().starts_with('{').then(|| serde_json::from_str(raw.get()).ok())?
}

/// A JSON string.
#[must_use]
pub fn text(raw: &RawValue) -> Option<String> {
    serde_json::from_str(raw.get()).ok()
}

/// A string that names something: not empty, of at most `longest` characters,
/// none of them a control character.
#[must_use]
pub fn name(raw: &RawValue, longest: usize) -> Option<String> {
    text(raw).filter(|name| is_name(name, longest))
}

/// As for [`name`].
#[must_use]
pub fn is_name(name: &str, longest: usize) -> bool {
    !name.is_empty() && name.chars().count() <= longest && !name.chars().any(char::is_control)
}

/// A member that is there, even if it is null: for `#[serde(deserialize_with)]`.
///
/// # Errors
/// What serde says.
pub fn stated<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}
