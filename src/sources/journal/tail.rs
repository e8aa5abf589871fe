//! One look at one `.jsonl` journal: prove that it continues what was read,
//! read what was added, say what it means.
//!
//! The offset passes only complete lines (architecture, house rule 2). What
//! stands behind the last newline is looked at and not passed: a whole request
//! counts, anything else is pending until nobody writes it any more.

use std::fs::File;
use std::io;

use super::glue;
use super::lines::{Buffer, Lines, Piece};
use super::record::{self, Line, Previous};
use super::section::Sections;
use super::{Limits, Name};
use crate::ledger::evidence::{
    Broken, Condition, Cursor, Failure, JournalPath, JournalStep, LineCounts, Place, Stamp, Undecodable,
};
use crate::sources::proof::{PROOF, proof};

/// What a look needs beside the file.
pub struct Look<'a> {
    pub path: &'a JournalPath,
    pub name: &'a Name,
    /// Where the last look ended.
    pub cursor: &'a Cursor,
    pub stamp: Stamp,
    pub now_ms: i64,
    /// Nobody writes the file any more: an unfinished tail is torn.
    pub quiet: bool,
    pub limits: &'a Limits,
}

/// How far a look came.
#[derive(Debug)]
pub struct Looked {
    pub step: JournalStep,
    /// The budget ran out before the file did.
    pub more: bool,
}

impl Look<'_> {
    /// Reads what the file holds beyond the cursor, up to the budget of one step.
    ///
    /// # Errors
    /// What reading the file says; nothing is lost, the cursor stands.
    pub fn read(&self, file: &File, buffer: &mut Buffer) -> io::Result<Looked> {
        let revised = !self.continues(file)?;
        let start = if revised { Cursor::default() } else { self.cursor.clone() };
        let mut reading = Reading {
            sections: Sections::new(self.name, start.context.clone()),
            lines: LineCounts::default(),
            previous: Previous::default(),
            offset: start.offset,
            tail_counted: start.tail_counted,
            failed: start.failed,
            condition: Condition::Read,
        };
        let more = reading.run(self, file, buffer)?;
        let condition = match (reading.failed, reading.condition) {
            _ if more => Condition::Behind,
            // Failed or not, an unfinished tail is looked at again.
            (_, Condition::Pending) => Condition::Pending,
            _ if self.stamp.len > self.limits.max_file_bytes => Condition::Failed(Failure::TooLarge),
            (Some(failure), _) => Condition::Failed(failure),
            (None, condition) => condition,
        };
        let (sections, context, anomalies) = reading.sections.finish();
        let mut to = Cursor {
            offset: reading.offset,
            context,
            tail_counted: reading.tail_counted,
            failed: reading.failed,
            seen: self.stamp,
            ..Cursor::default()
        };
        (to.head, to.head_len) = proof(file, 0, reading.offset.min(PROOF))?;
        let marker_len = reading.offset.min(PROOF);
        (to.marker, to.marker_len) = proof(file, reading.offset - marker_len, marker_len)?;
        let step = JournalStep {
            path: self.path.clone(),
            from: (self.cursor.offset, self.cursor.marker),
            to,
            condition,
            revised,
            whole: false,
            sections,
            lines: reading.lines,
            anomalies,
            bytes: reading.offset - start.offset,
        };
        Ok(Looked { step, more })
    }

    /// Whether the file still begins with, and holds before the offset, what
    /// was read: content decides, not the inode, which is reused at once.
    fn continues(&self, file: &File) -> io::Result<bool> {
        let cursor = self.cursor;
        if self.stamp.len < cursor.offset {
            return Ok(false);
        }
        let head = proof(file, 0, u64::from(cursor.head_len))?;
        let marker_len = u64::from(cursor.marker_len);
        let marker = proof(file, cursor.offset - marker_len, marker_len)?;
        Ok(head == (cursor.head, cursor.head_len) && marker == (cursor.marker, cursor.marker_len))
    }
}

/// The state of one look.
struct Reading {
    sections: Sections,
    lines: LineCounts,
    previous: Previous,
    offset: u64,
    tail_counted: bool,
    failed: Option<Failure>,
    condition: Condition,
}

impl Reading {
    /// Reads lines up to the end of the file or of the budget; `true` if more is there.
    fn run(&mut self, look: &Look<'_>, file: &File, buffer: &mut Buffer) -> io::Result<bool> {
        let limits = look.limits;
        if limits.strict && (look.stamp.len > limits.max_file_bytes || self.failed.is_some()) {
            return Ok(false);
        }
        let from = self.offset;
        let mut lines = Lines::new(file, buffer, from, limits.max_line_bytes);
        loop {
            match lines.next_piece()? {
                Piece::Line { offset, at } => {
                    let bytes = lines.bytes(&at);
                    let place = if self.tail_counted { Place::Tail } else { Place::Line };
                    self.tail_counted = false;
                    self.line(bytes, offset, place);
                    self.offset = offset + at.len() as u64 + 1;
                }
                Piece::TooLong { offset, len, head } => {
                    self.lines.undecodable += 1;
                    self.too_long(offset, len, &head);
                    self.tail_counted = false;
                    self.offset = offset + len + 1;
                    if limits.strict {
                        return Ok(false);
                    }
                }
                Piece::Tail { offset, at } => {
                    let bytes = lines.bytes(&at);
                    self.tail(bytes, offset, look.quiet);
                    return Ok(false);
                }
                Piece::LongTail { offset, len, head } => {
                    self.condition = if look.quiet { Condition::Torn } else { Condition::Pending };
                    if look.quiet {
                        self.too_long(offset, len, &head);
                    }
                    return Ok(false);
                }
            }
            if self.offset - from >= limits.step_bytes || self.sections.requests() >= limits.step_requests {
                return Ok(self.offset < look.stamp.len);
            }
        }
    }

    fn line(&mut self, bytes: &[u8], offset: u64, place: Place) {
        match record::read(bytes, &mut self.previous) {
            Line::Blank => {}
            Line::Repeat => self.lines.repeats += 1,
            Line::Control => self.lines.control += 1,
            Line::Other(other) => {
                self.lines.other += 1;
                self.sections.other(&other);
            }
            Line::Header(header) => {
                self.lines.control += 1;
                self.previous.forget();
                self.sections.header(header, offset, bytes.len() as u64);
            }
            Line::Checkpoint(answers, bad) => {
                self.lines.control += 1;
                self.sections.inside(answers, bad, offset, bytes.len() as u64);
            }
            Line::Answer(answer) => self.sections.answer(answer, place),
            Line::Broken(reason) => {
                self.lines.undecodable += 1;
                self.previous.forget();
                self.broken(bytes, offset, bytes.len() as u64, reason);
            }
        }
    }

    /// A broken line: what is whole in it counts, and the line demotes until
    /// every id legible in it was read elsewhere (accounting R19).
    fn broken(&mut self, bytes: &[u8], offset: u64, len: u64, reason: Broken) {
        let rest = glue::search(bytes.trim_ascii());
        let at = self.sections.now();
        let mut ids = rest.ids;
        for record in rest.records {
            match record {
                Line::Answer(answer) => {
                    self.sections.glued();
                    self.sections.answer(answer, Place::Inside);
                }
                Line::Header(header) => self.sections.header(header, offset, len),
                Line::Checkpoint(answers, bad) => self.sections.inside(answers, bad, offset, len),
                Line::Other(other) => self.sections.other(&other),
                Line::Blank | Line::Repeat | Line::Control | Line::Broken(_) => {}
            }
        }
        if reason == Broken::BadTokens && ids.is_empty() {
            ids = record::bad_id(bytes).into_iter().collect();
        }
        self.sections.undecodable(Undecodable { offset, len, reason, at, ids });
    }

    fn too_long(&mut self, offset: u64, len: u64, head: &[u8]) {
        self.failed = Some(Failure::LineTooLong);
        let at = self.sections.now();
        let ids = glue::legible_ids(head);
        self.sections.undecodable(Undecodable { offset, len, reason: Broken::TooLong, at, ids });
    }

    fn tail(&mut self, bytes: &[u8], offset: u64, quiet: bool) {
        if bytes.trim_ascii().is_empty() {
            return;
        }
        let len = bytes.len() as u64;
        match record::parse(bytes) {
            Line::Answer(answer) => {
                self.tail_counted = true;
                self.sections.unpassed(|sections| sections.answer(answer, Place::Tail));
            }
            Line::Header(header) => self.sections.unpassed(|sections| sections.header(header, offset, len)),
            Line::Checkpoint(answers, bad) => {
                self.sections.unpassed(|sections| sections.inside(answers, bad, offset, len));
            }
            Line::Other(other) => self.sections.unpassed(|sections| sections.other(&other)),
            Line::Broken(_) if quiet => {
                self.condition = Condition::Torn;
                self.broken(bytes, offset, len, Broken::TornTail);
            }
            Line::Broken(_) => self.condition = Condition::Pending,
            Line::Blank | Line::Repeat | Line::Control => {}
        }
    }
}
