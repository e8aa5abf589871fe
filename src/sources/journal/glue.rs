//! What is legible in a line that is no record (accounting R19).
//!
//! After a kill a later resume appends to the torn tail, and a whole record
//! ends up glued to the rest of a broken one. Such a line begins with whole
//! records, or ends with one, or both; what stands between is lost. An object
//! inside tool arguments never ends where the line ends.

use memchr::memmem::Finder;

use super::record::{self, Line};

/// How many bytes one broken line may cost to search: hostile lines are
/// bounded, real ones cost a few times their length.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// What a broken line still shows.
#[derive(Debug, Default)]
pub struct Rest {
    /// Whole records at its start and at its end, in order.
    pub records: Vec<Line>,
    /// Message ids in heads of records that are not whole: whose counts, if
    /// they had any, are unknown.
    pub ids: Vec<Box<str>>,
}

/// Searches a broken line once.
#[must_use]
pub fn search(line: &[u8]) -> Rest {
    let mut rest = Rest::default();
    let mut start = 0;
    while let Ok(len) = leading_object(&line[start..]) {
        // The whole line is one object, broken for what it says.
        if len == line.len() {
            break;
        }
        rest.take(&line[start..start + len]);
        start += len;
    }
    let end = final_object(&line[start..]).map_or(line.len(), |at| start + at);
    if end < line.len() {
        rest.take(&line[end..]);
    }
    rest.ids.extend(legible_ids(&line[start..end]));
    rest
}

impl Rest {
    /// Takes a whole record; of one whose counts are broken, its id.
    fn take(&mut self, whole: &[u8]) {
        match record::parse(whole) {
            Line::Broken(_) => self.ids.extend(record::bad_id(whole)),
            record => self.records.push(record),
        }
    }
}

/// The length of the whole JSON object that `text` begins with, or how many
/// bytes it took to see that there is none.
fn leading_object(text: &[u8]) -> Result<usize, usize> {
    if text.first() != Some(&b'{') {
        return Err(1);
    }
    let mut values = serde_json::Deserializer::from_slice(text).into_iter::<serde::de::IgnoredAny>();
    match values.next() {
        Some(Ok(_)) => Ok(values.byte_offset()),
        Some(Err(error)) => Err(error.column().max(1)),
        None => Err(1),
    }
}

/// Where the record that ends with the line begins, after the first byte.
fn final_object(text: &[u8]) -> Option<usize> {
    let start = Finder::new(b"{\"");
    let (mut from, mut bytes) = (1, 0);
    while bytes < MAX_BYTES {
        let at = from + start.find(text.get(from..)?)?;
        let candidate = &text[at..];
        match leading_object(candidate) {
            Ok(len) if candidate[len..].trim_ascii().is_empty() => return Some(at),
            // A whole object inside something torn: nothing inside it is a record.
            Ok(len) => (from, bytes) = (at + len, bytes + len),
            Err(cost) => (from, bytes) = (at + 2, bytes + cost),
        }
    }
    None
}

/// Ids of message heads, `{"id":"…","timestamp":"…"`, except of records that
/// show another type than gemini.
#[must_use]
pub fn legible_ids(text: &[u8]) -> Vec<Box<str>> {
    const HEAD: &[u8] = b"{\"id\":\"";
    let mut ids: Vec<Box<str>> = Vec::new();
    for at in Finder::new(HEAD).find_iter(text) {
        let rest = &text[at + HEAD.len()..];
        let Some(end) = memchr::memchr2(b'"', b'\\', &rest[..rest.len().min(256)]) else { continue };
        let (id, rest) = rest.split_at(end);
        let Some(rest) = rest.strip_prefix(b"\",\"timestamp\":\"") else { continue };
        let shown = memchr::memchr(b'"', rest)
            .and_then(|end| rest[end..].strip_prefix(b"\",\"type\":\""))
            .and_then(|rest| memchr::memchr(b'"', rest).map(|end| &rest[..end]));
        if shown.is_some_and(|kind| matches!(kind, b"user" | b"info" | b"warning" | b"error")) {
            continue;
        }
        if let Ok(id) = std::str::from_utf8(id)
            && !ids.iter().any(|known| **known == *id)
        {
            ids.push(id.into());
        }
    }
    ids
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = r#"{"id":"b","timestamp":"2026-08-20T10:00:05.000Z","type":"gemini","content":"x","tokens":{"input":2,"output":1},"model":"m"}"#;

    fn ids_of(records: &[Line]) -> Vec<&str> {
        records
            .iter()
            .filter_map(|line| match line {
                Line::Answer(answer) => Some(&*answer.id),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn r19_a_record_glued_onto_a_torn_one_is_found_wherever_the_tear_is() {
        let torn = WHOLE.replace("\"b\"", "\"a\"");
        for cut in 1..torn.len() {
            let line = format!("{}{WHOLE}", &torn[..cut]);
            let rest = search(line.as_bytes());
            assert_eq!(ids_of(&rest.records), ["b"], "cut at {cut}");
            let legible = cut >= r#"{"id":"a","timestamp":""#.len();
            assert_eq!(rest.ids.iter().any(|id| **id == *"a"), legible, "cut at {cut}");
        }
    }

    #[test]
    fn r19_a_lost_newline_leaves_two_whole_records() {
        let first = WHOLE.replace("\"b\"", "\"a\"");
        let rest = search(format!("{first}{WHOLE}").as_bytes());
        assert_eq!(ids_of(&rest.records), ["a", "b"]);
        assert!(rest.ids.is_empty());
    }

    #[test]
    fn r19_a_whole_record_with_broken_counts_still_demotes_by_its_id() {
        let bad = WHOLE.replace("\"b\"", "\"a\"").replace("\"input\":2", "\"input\":-2");
        for line in [format!("{bad}{WHOLE}"), format!("{WHOLE}{bad}")] {
            let rest = search(line.as_bytes());
            assert_eq!(ids_of(&rest.records), ["b"]);
            assert_eq!(rest.ids, ["a".into()]);
        }
    }

    #[test]
    fn r19_an_object_inside_tool_arguments_is_no_record() {
        let torn =
            format!(r#"{{"id":"a","timestamp":"T","type":"gemini","toolCalls":[{{"args":{WHOLE},"x":"cut"#);
        let rest = search(torn.as_bytes());
        assert!(rest.records.is_empty());
        assert!(rest.ids.iter().any(|id| **id == *"a"));
    }

    #[test]
    fn r19_bytes_without_a_record_give_nothing() {
        for line in [&b"\0\0\0\0"[..], b"}{", b"{\"", b"garbage", b""] {
            let rest = search(line);
            assert!(rest.records.is_empty() && rest.ids.is_empty(), "{line:?}");
        }
    }

    #[test]
    fn a_hostile_line_is_given_up_on() {
        let line = "{\"".repeat(1_000_000);
        assert!(search(line.as_bytes()).records.is_empty());
    }
}
