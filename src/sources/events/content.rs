//! Nobody's texts are taken, not even to be thrown away unread: whoever sends
//! them is told (accounting D4, R70).

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Members that hold texts, in lower case.
const TEXTS: [&str; 21] = [
    "arguments",
    "args",
    "content",
    "contents",
    "diff",
    "history",
    "message",
    "messages",
    "output",
    "parameters",
    "params",
    "parts",
    "prompt",
    "request_text",
    "response",
    "response_text",
    "stderr",
    "stdout",
    "text",
    "thought",
    "transcript",
];

/// The first member, at any depth, that holds a text. An error's message says
/// what the API refused, and is read for nothing else: it may stand in `error`.
///
/// # Errors
/// None was found up to a place where the item could not be read on.
pub(super) fn named(item: &str) -> Result<Option<String>, serde_json::Error> {
    let mut found = None;
    let seed = Search { found: &mut found, in_error: false };
    match seed.deserialize(&mut serde_json::Deserializer::from_str(item)) {
        Err(error) if found.is_none() => Err(error),
        _ => Ok(found),
    }
}

struct Search<'f> {
    found: &'f mut Option<String>,
    in_error: bool,
}

impl<'de> DeserializeSeed<'de> for Search<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Search<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("any value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(Name(name)) = map.next_key()? {
            let allowed = self.in_error && matches!(&*name, "message" | "data");
            if !allowed && TEXTS.iter().any(|text| name.eq_ignore_ascii_case(text)) {
                self.found.get_or_insert_with(|| name.chars().take(32).collect());
            }
            if allowed {
                map.next_value::<IgnoredAny>()?;
            } else {
                map.next_value_seed(Search { found: self.found, in_error: name == "error" })?;
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element_seed(Search { found: self.found, in_error: false })?.is_some() {}
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

/// A name, without a copy where that is possible.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d4_a_text_is_found_wherever_it_stands() {
        for (item, found) in [
            (r#"{"prompt":"x"}"#, Some("prompt")),
            (r#"{"a":[1,{"b":{"Text":null}}]}"#, Some("Text")),
            (r#"{"\u0070rompt":""}"#, Some("prompt")),
            (r#"{"message":"x","prompt":"y"}"#, Some("message")),
            (r#"{"error":{"code":429,"message":"x","data":{"message":"y"}}}"#, None),
            (r#"{"error":{"parts":[]}}"#, Some("parts")),
            (r#"{"error":[{"message":"x"}]}"#, Some("message")),
            (r#"{"a":{"error":{"message":"x"}}}"#, None),
            (r#"{"usage":{"inputTokens":5,"prompt_tokens":7},"x":["prompt",true,-1,1.5]}"#, None),
            ("[]", None),
        ] {
            assert_eq!(named(item).unwrap().as_deref(), found, "{item}");
        }
        // No number that JSON writers write; what stands behind it was not looked at.
        assert!(named(r#"{"x":1e999,"prompt":"y"}"#).is_err());
        assert!(named(&format!("{}{}", "[".repeat(200), "]".repeat(200))).is_err());
    }
}
