//! Watches a run's output go by and says what it means: one process, one turn
//! (accounting R63). The form shows in the output itself.

use super::document::{Document, Documents, Took};
use super::lines::{Line, Lines};
use super::stats::Stats;
use super::stream::{self, Said};
use crate::ledger::doors::{
    DoorEvent, EventKind, Exit, Headless, HeadlessForm, ModelStats, Oddity, TurnResult,
};

/// At most so many oddities are told of one run.
const ODDITIES: u64 = 100;

/// Where the bytes come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A process that was started at that time, unix ms: so did its turn.
    Process { started_ms: i64 },
    /// A pipe or a file that may be old: its own timestamps are the better ones.
    Pipe { started_ms: i64 },
}

/// Sees the output of one run.
#[derive(Debug)]
pub struct Observer {
    origin: Origin,
    form: HeadlessForm,
    output: Lines,
    documents: Documents,
    errors: Lines,
    error_documents: Documents,
    /// Lines that may have been events, before the form was known.
    suspects: Vec<Oddity>,
    turn: Option<Turn>,
    turns: u64,
    odd: u64,
}

/// The turn that is open.
#[derive(Debug)]
struct Turn {
    session_id: String,
    model: Option<String>,
    result: Option<Ended>,
    /// A line that may have been its result could not be read.
    unread: bool,
}

#[derive(Debug)]
struct Ended {
    success: bool,
    stats: Option<Vec<ModelStats>>,
    at: Option<i64>,
}

impl Observer {
    #[must_use]
    pub fn new(origin: Origin) -> Self {
        Self {
            origin,
            form: HeadlessForm::Text,
            output: Lines::default(),
            documents: Documents::default(),
            errors: Lines::default(),
            error_documents: Documents::default(),
            suspects: Vec::new(),
            turn: None,
            turns: 0,
            odd: 0,
        }
    }

    /// Sees bytes of standard output.
    pub fn output(&mut self, bytes: &[u8], now_ms: i64, tell: &mut dyn FnMut(DoorEvent)) {
        let mut lines = std::mem::take(&mut self.output);
        lines.feed(bytes, |line| self.line(line, now_ms, tell));
        self.output = lines;
    }

    /// Sees bytes of standard error, where a run that failed names its session.
    pub fn errors(&mut self, bytes: &[u8], now_ms: i64, tell: &mut dyn FnMut(DoorEvent)) {
        let mut lines = std::mem::take(&mut self.errors);
        lines.feed(bytes, |line| self.error_line(line, now_ms, tell));
        self.errors = lines;
    }

    /// The run has ended; `exit` is `None` for a pipe.
    pub fn finish(mut self, exit: Option<Exit>, now_ms: i64, tell: &mut dyn FnMut(DoorEvent)) {
        let mut lines = std::mem::take(&mut self.output);
        lines.finish(|line| self.line(line, now_ms, tell));
        let mut lines = std::mem::take(&mut self.errors);
        lines.finish(|line| self.error_line(line, now_ms, tell));
        if self.documents.is_open() {
            self.suspect(Oddity::MalformedFrame, now_ms, tell);
        }
        self.end_turn(exit, now_ms, tell);
        tell(DoorEvent { at: now_ms, kind: EventKind::ProcessEnded { exit } });
    }

    fn line(&mut self, line: Line<'_>, now_ms: i64, tell: &mut dyn FnMut(DoorEvent)) {
        let streaming = self.form == HeadlessForm::StreamJson;
        if !streaming {
            match self.documents.take(line) {
                Took::Document(document) => return self.document(document, now_ms, tell),
                Took::Broken => return self.suspect(Oddity::MalformedFrame, now_ms, tell),
                Took::Part => return,
                Took::Nothing => {}
            }
        }
        let Line::Whole(line) = line else {
            if let Some(turn) = &mut self.turn {
                turn.unread = true;
            }
            return self.suspect(Oddity::OversizedFrame, now_ms, tell);
        };
        let line = line.trim_ascii();
        if line.is_empty() || (!streaming && !line.starts_with(b"{")) {
            return;
        }
        let model = self.turn.as_ref().and_then(|turn| turn.model.as_deref());
        match stream::read(line, model) {
            Said::Init { session_id, model, at } => {
                self.streams(now_ms, tell);
                self.start_turn(session_id, model, at, now_ms, tell);
            }
            Said::Result { success, stats, at } => {
                self.streams(now_ms, tell);
                self.result(success, stats, at, now_ms, tell);
            }
            Said::Other => self.streams(now_ms, tell),
            Said::Untyped => match super::document::read(line) {
                Some(document) => self.document(document, now_ms, tell),
                None => self.suspect(Oddity::MalformedFrame, now_ms, tell),
            },
            Said::Malformed => self.suspect(Oddity::MalformedFrame, now_ms, tell),
        }
    }

    /// Only where standard output said nothing: an error has its document there.
    fn error_line(&mut self, line: Line<'_>, now_ms: i64, tell: &mut dyn FnMut(DoorEvent)) {
        if let Took::Document(document) = self.error_documents.take(line)
            && self.turns == 0
        {
            self.document(document, now_ms, tell);
        }
    }

    fn document(&mut self, document: Document, now_ms: i64, tell: &mut dyn FnMut(DoorEvent)) {
        if self.form == HeadlessForm::StreamJson {
            return;
        }
        self.form = HeadlessForm::Json;
        self.tell_suspects(now_ms, tell);
        // Older versions name no session: then there is none to tell of.
        let Some(session_id) = document.session_id else { return };
        self.start_turn(session_id, None, None, now_ms, tell);
        self.result(document.success, document.stats, None, now_ms, tell);
    }

    fn start_turn(
        &mut self,
        session_id: String,
        model: Option<String>,
        at: Option<i64>,
        now_ms: i64,
        tell: &mut dyn FnMut(DoorEvent),
    ) {
        if self.turn.as_ref().is_some_and(|turn| turn.session_id == session_id && turn.result.is_none()) {
            return;
        }
        self.end_turn(None, now_ms, tell);
        self.turns += 1;
        let at = match self.origin {
            // A second run behind one process began when it said so.
            Origin::Process { started_ms } if self.turns == 1 => started_ms,
            Origin::Process { .. } => at.unwrap_or(now_ms),
            Origin::Pipe { started_ms } => at.unwrap_or(started_ms),
        };
        let opened = EventKind::SessionOpened {
            session_id: session_id.clone(),
            model: model.clone(),
            resumed: false,
            session_role: None,
        };
        tell(DoorEvent { at, kind: opened });
        let turn = self.turns.to_string();
        tell(DoorEvent { at, kind: EventKind::TurnStarted { session_id: session_id.clone(), turn } });
        self.turn = Some(Turn { session_id, model, result: None, unread: false });
    }

    fn result(
        &mut self,
        success: bool,
        stats: Option<Stats>,
        at: Option<i64>,
        now_ms: i64,
        tell: &mut dyn FnMut(DoorEvent),
    ) {
        if stats.as_ref().is_some_and(|stats| !stats.consistent) {
            self.odd(Oddity::InconsistentStats, now_ms, tell);
        }
        let stats = stats.map(|stats| stats.models);
        match &mut self.turn {
            None => self.odd(Oddity::UnknownResponse, now_ms, tell),
            Some(Turn { result: Some(_), .. }) => self.odd(Oddity::DuplicateResponse, now_ms, tell),
            Some(turn) => {
                turn.result = Some(Ended { success, stats, at });
                turn.unread = false;
            }
        }
    }

    fn end_turn(&mut self, exit: Option<Exit>, now_ms: i64, tell: &mut dyn FnMut(DoorEvent)) {
        let Some(turn) = self.turn.take() else { return };
        let at = match self.origin {
            Origin::Process { .. } => now_ms,
            Origin::Pipe { .. } => turn.result.as_ref().and_then(|result| result.at).unwrap_or(now_ms),
        };
        let (success, stats) = turn.result.map_or((false, None), |result| (result.success, result.stats));
        let headless = Some(Headless { form: self.form, success, stats, exit });
        let result = TurnResult { headless, unread: turn.unread, ..TurnResult::default() };
        let (session_id, turn) = (turn.session_id, self.turns.to_string());
        tell(DoorEvent { at, kind: EventKind::TurnEnded { session_id, turn, result } });
    }

    /// It is stream-json, then.
    fn streams(&mut self, now_ms: i64, tell: &mut dyn FnMut(DoorEvent)) {
        if self.form == HeadlessForm::Text {
            self.form = HeadlessForm::StreamJson;
            self.tell_suspects(now_ms, tell);
        }
    }

    /// Something that is odd unless the run prints text, where nothing is.
    fn suspect(&mut self, oddity: Oddity, now_ms: i64, tell: &mut dyn FnMut(DoorEvent)) {
        if self.form != HeadlessForm::Text {
            self.odd(oddity, now_ms, tell);
        } else if (self.suspects.len() as u64) < ODDITIES {
            self.suspects.push(oddity);
        }
    }

    fn tell_suspects(&mut self, now_ms: i64, tell: &mut dyn FnMut(DoorEvent)) {
        for oddity in std::mem::take(&mut self.suspects) {
            self.odd(oddity, now_ms, tell);
        }
    }

    fn odd(&mut self, oddity: Oddity, now_ms: i64, tell: &mut dyn FnMut(DoorEvent)) {
        self.odd += 1;
        if self.odd <= ODDITIES {
            tell(DoorEvent { at: now_ms, kind: EventKind::Odd { oddity } });
        }
    }
}

#[cfg(test)]
mod tests;
