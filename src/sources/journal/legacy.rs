//! One look at one `.json` journal: a whole document, rewritten in place
//! (accounting R24). It is read as a stream; what was decoded before the text
//! ends or breaks counts all the same.

use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Read};

use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::json::{self, Lenient, Message};
use super::lines::read_at;
use super::record::{Found, Header, Other, answer};
use super::section::Sections;
use super::tail::{Look, Looked};
use crate::ledger::evidence::Broken;
use crate::ledger::evidence::{
    Condition, Context, Cursor, Failure, JournalStep, LineCounts, Place, Stamp, Undecodable,
};

impl Look<'_> {
    /// Reads the whole document.
    ///
    /// # Errors
    /// What reading the file says; nothing is lost, the cursor stands.
    pub fn read_document(&self, file: &File) -> io::Result<Looked> {
        let mut document = Document { sections: Sections::new(self.name, Context::default()), bytes: 0 };
        let too_large = self.stamp.len > self.limits.max_file_bytes;
        let read = if too_large && self.limits.strict {
            Ok(())
        } else {
            let reader =
                BufReader::with_capacity(64 * 1024, At { file, offset: 0, bytes: &mut document.bytes });
            read_into(reader, &mut document.sections)
        };
        let condition = match read {
            Err(error) if error.is_io() => return Err(error.into()),
            _ if too_large => Condition::Failed(Failure::TooLarge),
            Ok(()) => Condition::Read,
            Err(_) if self.quiet => Condition::Failed(Failure::NotJson),
            Err(_) => Condition::Pending,
        };
        let (sections, context, anomalies) = document.sections.finish();
        let to = Cursor {
            offset: if condition == Condition::Read { self.stamp.len } else { 0 },
            context,
            seen: self.settled_stamp(),
            ..Cursor::default()
        };
        let step = JournalStep {
            path: self.path.clone(),
            from: (self.cursor.offset, self.cursor.marker),
            to,
            condition,
            revised: false,
            whole: true,
            sections,
            lines: LineCounts::default(),
            anomalies,
            bytes: document.bytes,
        };
        Ok(Looked { step, more: false })
    }

    /// The stamp to compare the next look with. A document is rewritten in
    /// place, and two writes within one tick of the file system's clock may
    /// leave one time and one length: too fresh a time is not kept.
    fn settled_stamp(&self) -> Stamp {
        const TICK_MS: i64 = 20;
        let fresh = self.now_ms - self.stamp.modified_ns / 1_000_000 < TICK_MS;
        Stamp { modified_ns: if fresh { 0 } else { self.stamp.modified_ns }, ..self.stamp }
    }
}

struct Document {
    sections: Sections,
    bytes: u64,
}

/// Reads a file from its start by offset, leaving its own position alone.
struct At<'a> {
    file: &'a File,
    offset: u64,
    bytes: &'a mut u64,
}

impl Read for At<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = read_at(self.file, buffer, self.offset)?;
        self.offset += read as u64;
        *self.bytes += read as u64;
        Ok(read)
    }
}

fn read_into(reader: impl Read, sections: &mut Sections) -> Result<(), serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_reader(reader);
    deserializer.deserialize_map(DocumentVisitor(sections))?;
    deserializer.end()
}

/// Reads the document's members; the header counts wherever it stands.
struct DocumentVisitor<'a>(&'a mut Sections);

impl<'de> Visitor<'de> for DocumentVisitor<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a chat document")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let (mut session, mut started_at, mut subagent) = (None, None, false);
        let mut held = Held::default();
        let mut result = Ok(());
        loop {
            let key = match map.next_key::<String>() {
                Ok(Some(key)) => key,
                Ok(None) => break,
                Err(error) => {
                    result = Err(error);
                    break;
                }
            };
            let value = match key.as_str() {
                "sessionId" => map.next_value::<Lenient<String>>().map(|v| session = v.0),
                "startTime" => map
                    .next_value::<Lenient<String>>()
                    .map(|v| started_at = v.0.as_deref().and_then(json::time)),
                "kind" => {
                    map.next_value::<Lenient<String>>().map(|v| subagent = v.0.as_deref() == Some("subagent"))
                }
                "messages" => map.next_value_seed(MessagesSeed(&mut held)),
                _ => map.next_value::<IgnoredAny>().map(drop),
            };
            if let Err(error) = value {
                result = Err(error);
                break;
            }
        }
        if let Some(session) = session {
            let header = Header { session, started_at, subagent, answers: Vec::new(), bad: Vec::new() };
            self.0.header(header, 0, 0);
        }
        held.release(self.0);
        result
    }
}

/// What the messages said, held until the header is known.
#[derive(Default)]
struct Held(Vec<Found>);

impl Held {
    fn release(self, sections: &mut Sections) {
        for (n, found) in self.0.into_iter().enumerate() {
            match found {
                Found::Answer(answer) => sections.answer(answer, Place::Inside),
                Found::Other(other) => sections.other(&other),
                Found::Bad(bad) => {
                    let at = sections.now();
                    let ids = vec![bad.id];
                    // The message's number stands for its place: a document has no lines.
                    let line = Undecodable { offset: n as u64, len: 0, reason: Broken::BadTokens, at, ids };
                    sections.undecodable(line);
                }
            }
        }
    }
}

struct MessagesSeed<'a>(&'a mut Held);

impl<'de> serde::de::DeserializeSeed<'de> for MessagesSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for MessagesSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("messages")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while let Some(message) = seq.next_element::<Lenient<Message<'de>>>()? {
            let Some(message) = message.0 else { continue };
            match answer(message) {
                Found::Other(Other { prompt: false, model: None, .. }) => {}
                found => self.0.0.push(found),
            }
        }
        Ok(())
    }
}
