//! Members of JSON objects, read without keeping what is not asked for.

use serde_json::value::RawValue;

pub(super) use crate::sources::raw::{object, stated, text};

/// What can be told of an object whose end is missing: the members before the
/// first one that is an object or an array, and the name of that one.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    /// Names, and values as JSON.
    pub(super) members: Vec<(String, String)>,
    /// The nested value begins at that byte.
    pub(super) nested: Option<(String, usize)>,
}

impl Head {
    pub(super) fn of(bytes: &[u8]) -> Self {
        let mut head = Self::default();
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
        };
        let Some(at) = text.find('{').filter(|at| text[..*at].trim().is_empty()) else { return head };
        let mut rest = &text[at + 1..];
        while let Some((name, value)) = string(rest.trim_start()) {
            let Some(value) = value.trim_start().strip_prefix(':').map(str::trim_start) else { break };
            let Ok(name) = serde_json::from_str(name) else { break };
            if value.starts_with(['{', '[']) {
                head.nested = Some((name, text.len() - value.len()));
                break;
            }
            let end = match string(value) {
                Some((text, _)) => text.len(),
                None if value.starts_with('"') => break,
                None => value.find([',', '}']).unwrap_or(value.len()),
            };
            head.members.push((name, value[..end].trim_end().to_owned()));
            let Some(next) = value[end..].trim_start().strip_prefix(',') else { break };
            rest = next;
        }
        head
    }

    pub(super) fn get(&self, name: &str) -> Option<&RawValue> {
        let (_, value) = self.members.iter().find(|(known, _)| known == name)?;
        serde_json::from_str(value).ok()
    }
}

/// A JSON string at the beginning of a text, and what follows it.
fn string(text: &str) -> Option<(&str, &str)> {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'"' if at == 0 => {}
            _ if at == 0 => return None,
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(text.split_at(at + 1)),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d2_4_the_head_of_a_frame_tells_what_stands_before_its_content() {
        let bytes = br#" {"jsonrpc" : "2.0", "id":"a\"b","x":12 ,"params":{"sessionId":"s","prompt":[{"#;
        let head = Head::of(bytes);
        let id: Option<String> = head.get("id").and_then(text);
        assert_eq!(id.as_deref(), Some("a\"b"));
        assert_eq!(head.get("x").map(RawValue::get), Some("12"));
        let (name, at) = head.nested.clone().expect("something is nested");
        assert_eq!((name.as_str(), &bytes[at..at + 5]), ("params", &b"{\"ses"[..]));
        let cut = Head::of(br#"{"id":5,"result":"never en"#);
        assert_eq!((cut.members.len(), cut.nested), (1, None));
        for nothing in [&b""[..], b"[", b"x {", b"{", b"{\"a", b"{a:1", b"\xff"] {
            assert_eq!(Head::of(nothing), Head::default(), "{nothing:?}");
        }
    }
}
