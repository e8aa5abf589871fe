//! One look at one outfile: prove that it continues what was read, read the
//! values that were added.
//!
//! The file holds JSON values one behind the other, each over many lines, as
//! `JSON.stringify(…, null, 2)` writes them: a value begins with a line `{` and
//! ends with a line `}`, and no other line is one of these. A value on one line
//! is one too. The offset passes only whole values (architecture, house rule 2).
//!
//! A process that is killed leaves half a value, and the next one's begins
//! behind it. Only the outermost members are indented by two spaces, so the
//! last place of `{`, newline, two spaces and a quote is where a value begins.

use std::fs::File;
use std::io;
use std::path::Path;

use super::super::MAX_BODY;
use super::super::record::{Batch, Read};
use super::value;
use crate::ledger::telemetry::{OutfileCursor, OutfileStep, TelemetryBatch};
use crate::sources::journal::lines::{Buffer, Lines, Piece};
use crate::sources::proof::{PROOF, proof};

/// Where a value begins, and nothing inside one does.
const BEGINNING: &[u8] = b"{\n  \"";

/// How much is read at most.
#[derive(Clone, Debug)]
pub struct Limits {
    /// A larger value is passed over and malformed, in bytes.
    pub max_value_bytes: usize,
    /// A step ends after about this many bytes.
    pub step_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_value_bytes: MAX_BODY, step_bytes: 4 << 20 }
    }
}

/// What a look needs beside the file.
#[derive(Debug)]
pub struct Look<'a> {
    pub path: &'a Path,
    /// Where the last look ended.
    pub cursor: &'a OutfileCursor,
    /// How long the file is.
    pub len: u64,
    /// Nobody has written to it for a while: what has not come does not come.
    pub quiet: bool,
    pub limits: &'a Limits,
}

/// How far a look came.
#[derive(Debug)]
pub struct Looked {
    pub step: OutfileStep,
    /// The step ended before the file did.
    pub more: bool,
}

impl Look<'_> {
    /// Reads what the file holds beyond the cursor, up to the end of a step.
    ///
    /// # Errors
    /// What reading the file says; nothing is lost, the cursor stands.
    pub fn read(&self, file: &File, buffer: &mut Buffer) -> io::Result<Looked> {
        let restarted = !self.continues(file)?;
        let start = if restarted { 0 } else { self.cursor.offset };
        let mut reading = Reading {
            limits: self.limits,
            batch: Batch::default(),
            value: Vec::new(),
            too_long: false,
            offset: start,
            marks: Vec::new(),
        };
        let more = reading.run(file, buffer)?;
        let (batch, offset) = reading.finish(self.quiet || more);
        let (head, head_len) = proof(file, 0, offset.min(PROOF))?;
        let marker_at = offset - offset.min(PROOF);
        let (marker, marker_len) = proof(file, marker_at, offset - marker_at)?;
        let step = OutfileStep {
            path: self.path.to_owned(),
            from: (self.cursor.offset, self.cursor.marker),
            to: OutfileCursor { offset, head, head_len, marker, marker_len },
            restarted,
            batch,
        };
        Ok(Looked { step, more })
    }

    fn continues(&self, file: &File) -> io::Result<bool> {
        let cursor = self.cursor;
        let marker_len = u64::from(cursor.marker_len);
        if self.len < cursor.offset || cursor.offset < marker_len {
            return Ok(false);
        }
        let head = proof(file, 0, u64::from(cursor.head_len))?;
        let marker = proof(file, cursor.offset - marker_len, marker_len)?;
        Ok(head == (cursor.head, cursor.head_len) && marker == (cursor.marker, cursor.marker_len))
    }
}

/// The state of one look.
struct Reading<'l> {
    limits: &'l Limits,
    batch: Batch,
    /// The lines so far of a value that has not ended.
    value: Vec<u8>,
    /// The value is over the cap: only its end is looked for.
    too_long: bool,
    /// Behind the last line that was passed.
    offset: u64,
    /// What there was before each value.
    marks: Vec<Mark>,
}

/// How far the reading was at a value's beginning.
struct Mark {
    offset: u64,
    records: usize,
    malformed: u64,
    dropped: u64,
}

impl Reading<'_> {
    /// Reads values up to the end of the file or of the step; `true` if more is there.
    fn run(&mut self, file: &File, buffer: &mut Buffer) -> io::Result<bool> {
        let start = self.offset;
        let mut lines = Lines::new(file, buffer, start, self.limits.max_value_bytes);
        loop {
            match lines.next_piece()? {
                Piece::Line { offset, at } => {
                    let end = offset + at.len() as u64 + 1;
                    self.line(lines.bytes(&at), end);
                }
                Piece::TooLong { offset, len, .. } => self.give_up(offset + len + 1),
                Piece::Tail { .. } | Piece::LongTail { .. } => return Ok(false),
            }
            // A response is not parted from its twin.
            let whole = self.value.is_empty() && self.batch.oldest_waiting().is_none();
            if whole && self.offset - start >= self.limits.step_bytes {
                return Ok(true);
            }
        }
    }

    /// A line that ends before `end`.
    fn line(&mut self, line: &[u8], end: u64) {
        let text = line.trim_ascii_end();
        let alone = self.value.is_empty() && text.starts_with(b"{") && text.len() > 1 && text.ends_with(b"}");
        let ends = alone || text == b"}";
        if self.too_long {
            self.too_long = !ends;
            self.offset = end;
            return;
        }
        if self.value.is_empty() && text.is_empty() {
            self.offset = end;
            return;
        }
        if self.value.len() + line.len() >= self.limits.max_value_bytes {
            self.give_up(end);
            self.too_long = !ends;
            return;
        }
        self.value.extend_from_slice(line);
        self.value.push(b'\n');
        if ends {
            self.mark();
            let value = std::mem::take(&mut self.value);
            self.whole(&value);
            self.value = value;
            self.value.clear();
            self.offset = end;
        }
    }

    /// A value over the cap is passed line by line.
    fn give_up(&mut self, end: u64) {
        if !self.too_long {
            self.batch.push(Read::Malformed);
        }
        self.value = Vec::new();
        self.too_long = true;
        self.offset = end;
    }

    /// The lines up to the end of a value: it, and what stands before it if
    /// somebody was interrupted.
    fn whole(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.trim_ascii().is_empty() {
            match value::first(rest) {
                Some((read, len)) => {
                    self.batch.push(read);
                    rest = &rest[len..];
                }
                None => {
                    self.batch.push(Read::Malformed);
                    let Some(at) = memchr::memmem::rfind(&rest[1..], BEGINNING) else { return };
                    rest = &rest[1 + at..];
                }
            }
        }
    }

    fn mark(&mut self) {
        let TelemetryBatch { records, malformed, dropped } = self.batch.so_far();
        self.marks.push(Mark {
            offset: self.offset,
            records: records.len(),
            malformed: *malformed,
            dropped: *dropped,
        });
    }

    /// What was read and up to where. While the file is being written, a
    /// response whose twin may still come is left for the next look with all
    /// that follows it: its identity must not depend on when somebody looked.
    fn finish(self, all: bool) -> (TelemetryBatch, u64) {
        let waiting = self.batch.oldest_waiting().filter(|_| !all);
        let mut batch = self.batch.finish();
        let mark = waiting.and_then(|index| self.marks.iter().rfind(|mark| mark.records <= index));
        let Some(mark) = mark else { return (batch, self.offset) };
        batch.records.truncate(mark.records);
        (batch.malformed, batch.dropped) = (mark.malformed, mark.dropped);
        (batch, mark.offset)
    }
}
