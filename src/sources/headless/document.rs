//! The one document of `-o json`, printed over many lines, among other lines
//! perhaps: of warnings, on standard error (accounting R65).

use serde::Deserialize;
use serde_json::value::RawValue;

use super::lines::{Line, MAX_LINE};
use super::stats::{self, Stats};
use super::stream::NAME_CHARS;
use crate::sources::raw::{name, object, stated};

/// What a document says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    pub session_id: Option<String>,
    /// It holds no error.
    pub success: bool,
    pub stats: Option<Stats>,
}

/// Reads a document; `None` if it is none of a run's.
#[must_use]
pub fn read(text: &[u8]) -> Option<Document> {
    #[derive(Deserialize)]
    struct Whole<'a> {
        #[serde(default, borrow, deserialize_with = "stated")]
        session_id: Option<&'a RawValue>,
        #[serde(default, borrow, deserialize_with = "stated")]
        response: Option<&'a RawValue>,
        #[serde(default, borrow, deserialize_with = "stated")]
        stats: Option<&'a RawValue>,
        #[serde(default, borrow, deserialize_with = "stated")]
        error: Option<&'a RawValue>,
    }
    let whole: Whole<'_> = object(serde_json::from_slice(text).ok()?)?;
    let error = whole.error.filter(|error| error.get() != "null");
    // An error alone may be anybody's; with its session it is the run's.
    (whole.response.is_some() || whole.stats.is_some() || (whole.session_id.is_some() && error.is_some()))
        .then(|| Document {
            session_id: whole.session_id.and_then(|id| name(id, NAME_CHARS)),
            success: error.is_none(),
            stats: whole.stats.and_then(stats::of_document),
        })
}

/// Finds documents among lines: from a line `{` to the next line `}`. Inside a
/// printed document no other line is one of these.
#[derive(Debug, Default)]
pub struct Documents {
    open: Option<Vec<u8>>,
}

/// What a line is to the documents.
#[derive(Debug, PartialEq, Eq)]
pub enum Took {
    /// Not theirs.
    Nothing,
    /// Part of what may become one.
    Part,
    /// A document ends here.
    Document(Document),
    /// What began as one is none: broken, somebody else's, or over the cap.
    Broken,
}

impl Documents {
    pub fn take(&mut self, line: Line<'_>) -> Took {
        let Line::Whole(line) = line else {
            return if self.open.take().is_some() { Took::Broken } else { Took::Nothing };
        };
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if !matches!(line, [] | [b' ' | b'\t', ..] | b"}") {
            // Not indented: what was open ends in the middle.
            self.open = None;
        }
        let Some(open) = &mut self.open else {
            if line != b"{" {
                return Took::Nothing;
            }
            self.open = Some(b"{\n".to_vec());
            return Took::Part;
        };
        if open.len() + line.len() > MAX_LINE {
            self.open = None;
            return Took::Broken;
        }
        open.extend_from_slice(line);
        open.push(b'\n');
        if line != b"}" {
            return Took::Part;
        }
        let whole = self.open.take().expect("it was open above");
        read(&whole).map_or(Took::Broken, Took::Document)
    }

    /// Whether one began and did not end.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<Took> {
        let mut documents = Documents::default();
        let lines = text.lines().map(|line| documents.take(Line::Whole(line.as_bytes())));
        lines.filter(|took| !matches!(took, Took::Nothing | Took::Part)).collect()
    }

    #[test]
    fn r65_a_document_names_its_session_and_its_success() {
        let read = |text: &str| super::read(text.as_bytes());
        let document =
            |id: Option<&str>, success| Document { session_id: id.map(str::to_owned), success, stats: None };
        for (text, want) in [
            (r#"{"session_id":"s","response":"","stats":null}"#, Some(document(Some("s"), true))),
            (r#"{"session_id":"s","response":"","error":null}"#, Some(document(Some("s"), true))),
            (r#"{"session_id":"s","error":{"type":"Error"}}"#, Some(document(Some("s"), false))),
            (r#"{"response":"older versions name no session"}"#, Some(document(None, true))),
            (r#"{"session_id":7,"response":""}"#, Some(document(None, true))),
            (r#"{"error":{"code":400,"message":"the API's own"}}"#, None),
            (r#"{"session_id":"s"}"#, None),
            ("[]", None),
            (r#"{"session_id":"s","response":"}"#, None),
        ] {
            assert_eq!(read(text), want, "{text}");
        }
    }

    #[test]
    fn r65_the_error_document_is_found_among_warnings() {
        let stderr = "Warning: {\n_ApiError: {\"error\":{}} {\n  status: 400\n}\n{\n  \"session_id\": \"s\",\n  \
                      \"error\": {\n    \"code\": 1\n  }\n}\n";
        let error = Document { session_id: Some("s".into()), success: false, stats: None };
        assert_eq!(found(stderr), [Took::Document(error.clone())]);
        assert_eq!(found(&stderr.replace('\n', "\r\n")), [Took::Document(error)]);
        assert_eq!(found("{\n  cause: 1\n}\n{\n}\n"), [Took::Broken, Took::Broken]);
        let torn = format!("{{\n  \"session_id\": \"t\",\n{}", &stderr[stderr.find("{\n  \"s").unwrap()..]);
        assert_eq!(found(&torn).len(), 1, "a torn one does not take the next one with it");
    }

    #[test]
    fn r65_a_document_over_the_cap_is_not_held() {
        let mut documents = Documents::default();
        assert_eq!(documents.take(Line::Whole(b"{")), Took::Part);
        let line = vec![b' '; MAX_LINE / 4];
        let took: Vec<_> = (0..5).map(|_| documents.take(Line::Whole(&line))).collect();
        assert_eq!(took[..4], [Took::Part, Took::Part, Took::Part, Took::Broken]);
        assert!(!documents.is_open());
        assert_eq!(documents.take(Line::Whole(b"{")), Took::Part);
        assert_eq!(documents.take(Line::TooLong), Took::Broken);
    }
}
