//! What passes between a client and its agent, as facts: which sessions there
//! are, when a prompt was sent, how it ended (accounting R25–R37, R43, R47, R48).
//!
//! Pure: bytes with their times in, [`DoorEvent`]s out. Of parameters and
//! contents nothing is kept but ids, names of models and reasons to stop.

use std::collections::{HashMap, HashSet, VecDeque};

use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::frames::{Frame, Frames};
use super::json::{Head, object, stated, text};
use super::message::{Answer, Id, Message, messages};
use super::result::{turn_error, turn_result};
use crate::ledger::doors::{DoorEvent, EventKind, Exit, Oddity, TurnResult};

/// Requests of the client that may wait for an answer; the oldest goes first.
const MAX_OPEN: usize = 1024;

/// Ids that were answered lately: a second answer to one of them is told apart.
const MAX_ANSWERED: usize = 1024;

/// Sessions of one process whose beginnings are remembered.
const MAX_SESSIONS: usize = 1024;

/// Of each kind of oddity so many are told, so that a spool cannot be flooded.
const MAX_ODDITIES: u32 = 1000;

/// The longest id of a session, name of a model and the like, in bytes.
const MAX_NAME: usize = 256;

/// So many options of a session are looked at.
const MAX_OPTIONS: usize = 64;

/// A request that the client sent and that is not answered.
enum Asked {
    Initialize,
    New,
    /// `session/load` or `session/resume`; in the minute of its `session/new`?
    Load {
        session_id: String,
        same_minute: bool,
    },
    Prompt(Turn),
    SetModel {
        session_id: String,
        model: Option<String>,
    },
    /// `session/set_config_option`.
    SetOption {
        session_id: String,
        option: String,
        value: Option<String>,
    },
    Other,
}

struct Turn {
    session_id: String,
    name: String,
    /// Its answer may have been among what could not be read.
    doubtful: bool,
}

/// What is remembered of a session.
#[derive(Default)]
struct Session {
    /// The UTC minute of its `session/new`, since 1970.
    minute: Option<i64>,
    /// The options that choose a model.
    model_options: Vec<String>,
}

/// Listens to both directions of one connection.
pub struct Observer {
    session_role: Option<String>,
    client: Frames,
    agent: Frames,
    said: Said,
}

impl Observer {
    /// `session_role` is what an orchestrator says the sessions are for (accounting R45).
    #[must_use]
    pub fn new(session_role: Option<String>) -> Self {
        let session_role = session_role.filter(|role| role.len() <= MAX_NAME);
        Self { session_role, client: Frames::default(), agent: Frames::default(), said: Said::default() }
    }

    /// Bytes that the client wrote, read at that time (unix ms).
    pub fn client(&mut self, at: i64, bytes: &[u8], sink: &mut dyn FnMut(DoorEvent)) {
        let mut told = Told { at, sink };
        self.client.push(bytes, |frame| self.said.by_client(frame, &mut told));
    }

    /// Bytes that the agent wrote, read at that time (unix ms).
    pub fn agent(&mut self, at: i64, bytes: &[u8], sink: &mut dyn FnMut(DoorEvent)) {
        let (mut told, role) = (Told { at, sink }, self.session_role.as_deref());
        self.agent.push(bytes, |frame| self.said.by_agent(frame, role, &mut told));
    }

    /// Bytes of the client are missing here.
    pub fn client_gap(&mut self, at: i64, sink: &mut dyn FnMut(DoorEvent)) {
        self.client.gap();
        self.said.unheard = true;
        Told { at, sink }.tell(EventKind::Lost { count: None });
    }

    /// Bytes of the agent are missing here.
    pub fn agent_gap(&mut self, at: i64, sink: &mut dyn FnMut(DoorEvent)) {
        self.agent.gap();
        self.said.doubt();
        Told { at, sink }.tell(EventKind::Lost { count: None });
    }

    /// The process behind the door ended. Prompts without an answer stay open:
    /// they ended with it, unless their answer was missed.
    pub fn end(&mut self, at: i64, exit: Option<Exit>, sink: &mut dyn FnMut(DoorEvent)) {
        let (mut told, role) = (Told { at, sink }, self.session_role.as_deref());
        self.client.end(|frame| self.said.by_client(frame, &mut told));
        self.agent.end(|frame| self.said.by_agent(frame, role, &mut told));
        self.said.end_doubtful(None, &mut told);
        told.tell(EventKind::ProcessEnded { exit });
    }
}

/// Where events go, and the time of what is being read.
struct Told<'s> {
    at: i64,
    sink: &'s mut dyn FnMut(DoorEvent),
}

impl Told<'_> {
    fn tell(&mut self, kind: EventKind) {
        (self.sink)(DoorEvent { at: self.at, kind });
    }

    fn minute(&self) -> i64 {
        self.at.div_euclid(60_000)
    }

    fn ended(&mut self, turn: Turn, result: TurnResult) {
        let Turn { session_id, name: turn, .. } = turn;
        self.tell(EventKind::TurnEnded { session_id, turn, result });
    }
}

/// What was said so far, as far as it matters.
#[derive(Default)]
struct Said {
    /// By id, with the number of the request.
    open: HashMap<Id, (u64, Asked)>,
    answered: HashSet<Id>,
    answered_order: VecDeque<Id>,
    sessions: HashMap<String, Session>,
    requests: u64,
    turns: u64,
    /// Some of what the client said was missed.
    unheard: bool,
    oddities: [u32; Oddity::ALL.len()],
}

impl Said {
    fn by_client(&mut self, frame: Frame<'_>, told: &mut Told<'_>) {
        match frame {
            Frame::Whole(frame) if blank(frame) => {}
            Frame::Whole(frame) => {
                let read = messages(frame, |message| match message {
                    Message::Request { id, method, params } => self.request(id, &method, params, told),
                    Message::Notification { method, params } => self.notification(&method, params, told),
                    // An answer to a request of the agent: ids of the two directions collide.
                    Message::Response { .. } => {}
                });
                if read.is_err() {
                    self.odd(Oddity::MalformedFrame, told);
                }
            }
            Frame::TooLong(head) => {
                self.odd(Oddity::OversizedFrame, told);
                self.long_request(head, told);
            }
        }
    }

    fn by_agent(&mut self, frame: Frame<'_>, role: Option<&str>, told: &mut Told<'_>) {
        match frame {
            Frame::Whole(frame) if blank(frame) => {}
            Frame::Whole(frame) => {
                let read = messages(frame, |message| {
                    if let Message::Response { id, answer } = message {
                        self.response(id, answer, role, told);
                    }
                });
                if read.is_err() {
                    self.odd(Oddity::MalformedFrame, told);
                    // It may have been an answer that was cut short.
                    self.doubt();
                }
            }
            Frame::TooLong(head) => {
                self.odd(Oddity::OversizedFrame, told);
                self.long_answer(head, told);
            }
        }
    }

    fn request(&mut self, id: Id, method: &str, params: Option<&RawValue>, told: &mut Told<'_>) {
        if id.is_huge() {
            return self.odd(Oddity::MalformedFrame, told);
        }
        let params: Params<'_> = params.and_then(object).unwrap_or_default();
        let session = params.session_id.and_then(name);
        let asked = match (method, session) {
            ("initialize", _) => Asked::Initialize,
            ("session/new", _) => Asked::New,
            ("session/load" | "session/resume", Some(session_id)) => {
                let minute = self.sessions.get(&session_id).and_then(|session| session.minute);
                Asked::Load { same_minute: minute == Some(told.minute()), session_id }
            }
            ("session/prompt", Some(session_id)) => return self.prompt(id, session_id, told),
            ("session/set_model", Some(session_id)) => {
                Asked::SetModel { session_id, model: params.model_id.and_then(name) }
            }
            ("session/set_config_option", Some(session_id)) => match params.config_id.and_then(name) {
                Some(option) => Asked::SetOption { session_id, option, value: params.value.and_then(name) },
                None => Asked::Other,
            },
            _ => Asked::Other,
        };
        self.ask(id, asked, told);
    }

    fn prompt(&mut self, id: Id, session_id: String, told: &mut Told<'_>) {
        self.end_doubtful(Some(&session_id), told);
        self.turns += 1;
        // An id may come again: the number tells them apart.
        let name = format!("{}#{}", id.shortened(64), self.turns);
        told.tell(EventKind::TurnStarted { session_id: session_id.clone(), turn: name.clone() });
        self.ask(id, Asked::Prompt(Turn { session_id, name, doubtful: false }), told);
    }

    fn ask(&mut self, id: Id, asked: Asked, told: &mut Told<'_>) {
        self.requests += 1;
        let replaced = self.open.insert(id, (self.requests, asked));
        let mut forgotten: Vec<Asked> = replaced.into_iter().map(|(_, asked)| asked).collect();
        if self.open.len() > MAX_OPEN {
            let oldest = self.open.iter().min_by_key(|(_, (number, _))| *number);
            let oldest = oldest.map(|(id, _)| id.clone()).expect("it is not empty");
            forgotten.extend(self.open.remove(&oldest).map(|(_, asked)| asked));
        }
        for asked in forgotten {
            if let Asked::Prompt(turn) = asked {
                told.ended(turn, unread());
            }
        }
    }

    /// A request whose frame is too long to be held: a prompt with a picture, most likely.
    fn long_request(&mut self, head: &[u8], told: &mut Told<'_>) {
        let outer = Head::of(head);
        let method = outer.get("method").and_then(text);
        let id = outer.get("id").map(Id::of);
        let nested = outer.nested.as_ref().filter(|(name, _)| name == "params");
        let session = nested.and_then(|(_, at)| Head::of(&head[*at..]).get("sessionId").and_then(name));
        match (method.as_deref(), id, session) {
            (Some("session/prompt"), Some(id), Some(session_id)) if !id.is_huge() => {
                self.prompt(id, session_id, told);
            }
            // An answer to a request of the agent, such as the text of a file.
            (None, Some(_), None) if outer.nested.as_ref().is_some_and(|(name, _)| name == "result") => {}
            _ => {
                self.unheard = true;
                told.tell(EventKind::Lost { count: None });
            }
        }
    }

    fn notification(&mut self, method: &str, params: Option<&RawValue>, told: &mut Told<'_>) {
        let params: Params<'_> = params.and_then(object).unwrap_or_default();
        match method {
            "session/cancel" => {
                let session_id = params.session_id.and_then(name);
                self.cancel(|turn, _| Some(&turn.session_id) == session_id.as_ref(), told);
            }
            "$/cancel_request" => {
                let request = params.request_id.map(Id::of);
                self.cancel(|_, id| Some(id) == request.as_ref(), told);
            }
            _ => {}
        }
    }

    /// Tells of a cancel for every open prompt that it meets, the older first.
    /// With nothing open, a cancel means nothing.
    fn cancel(&mut self, meets: impl Fn(&Turn, &Id) -> bool, told: &mut Told<'_>) {
        let turn = |(id, (number, asked)): (&Id, &(u64, Asked))| match asked {
            Asked::Prompt(turn) if meets(turn, id) => {
                Some((*number, turn.session_id.clone(), turn.name.clone()))
            }
            _ => None,
        };
        let mut turns: Vec<_> = self.open.iter().filter_map(turn).collect();
        turns.sort_unstable();
        for (_, session_id, turn) in turns {
            told.tell(EventKind::CancelSent { session_id, turn: Some(turn) });
        }
    }

    fn response(&mut self, id: Id, answer: Answer<'_>, role: Option<&str>, told: &mut Told<'_>) {
        let Some((_, asked)) = self.open.remove(&id) else {
            return if self.answered.contains(&id) {
                self.odd(Oddity::DuplicateResponse, told);
            } else if !self.unheard {
                self.odd(Oddity::UnknownResponse, told);
            };
        };
        self.remember_answered(id);
        match (asked, answer) {
            (Asked::Prompt(turn), Answer::Result(result)) => told.ended(turn, turn_result(result)),
            (Asked::Prompt(turn), Answer::Error(error)) => told.ended(turn, turn_error(error, told.at)),
            (Asked::Prompt(turn), Answer::Nothing) => told.ended(turn, TurnResult::default()),
            (Asked::Initialize, Answer::Result(result)) => told.tell(handshake(result)),
            (Asked::New, Answer::Result(result)) => {
                let opened: Opened<'_> = object(result).unwrap_or_default();
                match opened.session_id.and_then(name) {
                    Some(id) => self.opened(id, &opened, false, role, told),
                    None => self.odd(Oddity::MalformedFrame, told),
                }
            }
            (Asked::Load { session_id, .. }, Answer::Result(result)) => {
                self.opened(session_id, &object(result).unwrap_or_default(), true, role, told);
            }
            (Asked::Load { session_id, same_minute }, Answer::Error(_) | Answer::Nothing) => {
                told.tell(EventKind::LoadFailed { session_id, same_minute });
            }
            (Asked::SetModel { session_id, model }, Answer::Result(_)) => {
                told.tell(EventKind::ModelSet { session_id, model });
            }
            (Asked::SetOption { session_id, option, value }, Answer::Result(result)) => {
                self.option_set(session_id, &option, value, result, told);
            }
            _ => {}
        }
    }

    fn opened(
        &mut self,
        id: String,
        opened: &Opened<'_>,
        resumed: bool,
        role: Option<&str>,
        told: &mut Told<'_>,
    ) {
        if self.sessions.len() < MAX_SESSIONS || self.sessions.contains_key(&id) {
            let session = self.sessions.entry(id.clone()).or_default();
            if !resumed {
                session.minute = Some(told.minute());
            }
            session.model_options = model_options(opened.config_options);
        }
        let models: Models<'_> = opened.models.and_then(object).unwrap_or_default();
        told.tell(EventKind::SessionOpened {
            session_id: id,
            model: models.current_model_id.and_then(name),
            resumed,
            session_role: role.map(str::to_owned),
        });
    }

    /// An option changes the model if the agent lists it as one that chooses it.
    fn option_set(
        &mut self,
        session_id: String,
        option: &str,
        value: Option<String>,
        result: &RawValue,
        told: &mut Told<'_>,
    ) {
        let now: Opened<'_> = object(result).unwrap_or_default();
        let known = self
            .sessions
            .get(&session_id)
            .is_some_and(|session| session.model_options.iter().any(|known| known == option));
        if known || model_options(now.config_options).iter().any(|known| known == option) {
            told.tell(EventKind::ModelSet { session_id, model: value });
        }
    }

    /// An answer whose frame is too long to be held, or a long notification.
    fn long_answer(&mut self, head: &[u8], told: &mut Told<'_>) {
        let head = Head::of(head);
        let ends_in = head.nested.as_ref().map(|(name, _)| name.as_str());
        if head.get("method").is_some() {
            // A request or a notification of the agent: no prompt's answer.
        } else if let (Some(id), Some("result" | "error")) = (head.get("id").map(Id::of), ends_in) {
            if let Some((_, asked)) = self.open.remove(&id) {
                self.remember_answered(id);
                if let Asked::Prompt(turn) = asked {
                    told.ended(turn, unread());
                }
            }
        } else {
            self.doubt();
        }
    }

    /// The answer to any open prompt may just have been missed.
    fn doubt(&mut self) {
        for (_, asked) in self.open.values_mut() {
            if let Asked::Prompt(turn) = asked {
                turn.doubtful = true;
            }
        }
    }

    /// Ends the prompts whose answer may have been missed, of one session or of all.
    fn end_doubtful(&mut self, session_id: Option<&str>, told: &mut Told<'_>) {
        let doubtful = |asked: &Asked| {
            matches!(asked, Asked::Prompt(turn)
                if turn.doubtful && session_id.is_none_or(|id| id == turn.session_id))
        };
        let mut turns: Vec<_> = self.open.extract_if(|_, (_, asked)| doubtful(asked)).collect();
        turns.sort_unstable_by_key(|(_, (number, _))| *number);
        for (id, (_, asked)) in turns {
            self.remember_answered(id);
            if let Asked::Prompt(turn) = asked {
                told.ended(turn, unread());
            }
        }
    }

    fn remember_answered(&mut self, id: Id) {
        if self.answered.insert(id.clone()) {
            self.answered_order.push_back(id);
        }
        if self.answered.len() > MAX_ANSWERED
            && let Some(oldest) = self.answered_order.pop_front()
        {
            self.answered.remove(&oldest);
        }
    }

    fn odd(&mut self, oddity: Oddity, told: &mut Told<'_>) {
        let place = Oddity::ALL.iter().position(|known| *known == oddity).expect("ALL has them all");
        if self.oddities[place] < MAX_ODDITIES {
            self.oddities[place] += 1;
            told.tell(EventKind::Odd { oddity });
        }
    }
}

/// The members of parameters that are looked at.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params<'p> {
    #[serde(default, borrow, deserialize_with = "stated")]
    session_id: Option<&'p RawValue>,
    #[serde(default, borrow, deserialize_with = "stated")]
    model_id: Option<&'p RawValue>,
    #[serde(default, borrow, deserialize_with = "stated")]
    config_id: Option<&'p RawValue>,
    #[serde(default, borrow, deserialize_with = "stated")]
    value: Option<&'p RawValue>,
    #[serde(default, borrow, deserialize_with = "stated")]
    request_id: Option<&'p RawValue>,
}

/// The members of the answers that open a session or set an option.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Opened<'r> {
    #[serde(default, borrow, deserialize_with = "stated")]
    session_id: Option<&'r RawValue>,
    #[serde(default, borrow, deserialize_with = "stated")]
    models: Option<&'r RawValue>,
    #[serde(default, borrow, deserialize_with = "stated")]
    config_options: Option<&'r RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Models<'r> {
    #[serde(default, borrow, deserialize_with = "stated")]
    current_model_id: Option<&'r RawValue>,
}

/// The options that choose a model, of a list as agents give it.
fn model_options(list: Option<&RawValue>) -> Vec<String> {
    #[derive(Default, Deserialize)]
    struct Choice<'r> {
        #[serde(default, borrow, deserialize_with = "stated")]
        id: Option<&'r RawValue>,
        #[serde(default, borrow, deserialize_with = "stated")]
        category: Option<&'r RawValue>,
    }
    let list: FirstFew<'_> = list.and_then(|list| serde_json::from_str(list.get()).ok()).unwrap_or_default();
    let chooses = |choice: &Choice<'_>| choice.category.and_then(text).as_deref() == Some("model");
    let choices = list.0.into_iter().filter_map(object::<Choice<'_>>);
    choices.filter(chooses).filter_map(|choice| choice.id.and_then(name)).collect()
}

/// The first elements of an array, however many follow.
#[derive(Default)]
struct FirstFew<'r>(Vec<&'r RawValue>);

impl<'r> Deserialize<'r> for FirstFew<'r> {
    fn deserialize<D: Deserializer<'r>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Self::default())
    }
}

impl<'r> Visitor<'r> for FirstFew<'r> {
    type Value = Self;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'r>>(mut self, mut elements: A) -> Result<Self, A::Error> {
        while let Some(element) = elements.next_element()? {
            if self.0.len() < MAX_OPTIONS {
                self.0.push(element);
            }
        }
        Ok(self)
    }
}

/// Who the agent says it is (accounting R1).
fn handshake(result: &RawValue) -> EventKind {
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Initialized<'r> {
        #[serde(default, borrow, deserialize_with = "stated")]
        agent_info: Option<&'r RawValue>,
    }
    #[derive(Default, Deserialize)]
    struct Info<'r> {
        #[serde(default, borrow, deserialize_with = "stated")]
        name: Option<&'r RawValue>,
        #[serde(default, borrow, deserialize_with = "stated")]
        version: Option<&'r RawValue>,
    }
    let result: Initialized<'_> = object(result).unwrap_or_default();
    let info: Info<'_> = result.agent_info.and_then(object).unwrap_or_default();
    EventKind::Handshake { name: info.name.and_then(name), version: info.version.and_then(name) }
}

/// A name or an id: a text that is neither empty nor long.
fn name(raw: &RawValue) -> Option<String> {
    text(raw).filter(|text| !text.is_empty() && text.len() <= MAX_NAME)
}

fn unread() -> TurnResult {
    TurnResult { unread: true, ..TurnResult::default() }
}

/// A line of white space only.
fn blank(frame: &[u8]) -> bool {
    frame.iter().all(u8::is_ascii_whitespace)
}

#[cfg(test)]
mod tests;
