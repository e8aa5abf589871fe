//! Records under their header: each belongs to the last header above it
//! (accounting R13), takes its model and its time from around it where it
//! names none (R21, 2.3).

use std::sync::Arc;

use super::Name;
use super::record::{Answer, BadAnswer, Header, Other};
use crate::ledger::evidence::{Anomalies, Broken, Context, Place, Request, Section, Undecodable};
use crate::ledger::identity::{name_part, nameless};
use crate::ledger::model::Role;

/// Collects the facts of one step.
pub struct Sections {
    name: Name,
    context: Context,
    sections: Vec<Section>,
    anomalies: Anomalies,
    requests: usize,
    /// Model names already met in this step: one allocation each.
    models: Vec<Arc<str>>,
    /// The last prompt of the current section has no request yet.
    unanswered: bool,
}

/// So many prompts without an answer are told of one by one.
const MAX_SILENT: usize = 1000;

impl Sections {
    #[must_use]
    pub fn new(name: &Name, context: Context) -> Self {
        Self {
            name: name.clone(),
            context,
            sections: Vec::new(),
            anomalies: Anomalies::default(),
            requests: 0,
            models: Vec::new(),
            unanswered: false,
        }
    }

    /// How many requests were collected.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.requests
    }

    /// The time of the record read last, unix ms.
    #[must_use]
    pub fn now(&self) -> i64 {
        self.context.at.unwrap_or(self.name.minute)
    }

    pub fn finish(self) -> (Vec<Section>, Context, Anomalies) {
        (self.sections, self.context, self.anomalies)
    }

    pub fn header(&mut self, header: Header, offset: u64, len: u64) {
        if self.name.parent.is_none() {
            if name_part(&header.session) != self.name.id_part {
                self.anomalies.name_mismatch += 1;
            }
            self.context.subagent = header.subagent;
        }
        // A subagent's header names the agent; its spend is its parent's (R46).
        self.context.session = Some(header.session.into());
        self.context.at = header.started_at.or(self.context.at);
        self.context.model = None;
        let section = self.open();
        if self.name.parent.is_none() {
            self.sections[section].starts.extend(header.started_at);
        }
        self.inside(header.answers, header.bad, offset, len);
    }

    pub fn other(&mut self, other: &Other) {
        self.context.at = other.at.or(self.context.at);
        if let Some(model) = &other.model {
            self.context.model = Some(self.model(model));
        }
        if other.prompt && self.name.parent.is_none() && !self.context.subagent {
            let at = self.now();
            let section = self.current();
            let (first, last) = section.prompts.unwrap_or((at, at));
            section.prompts = Some((first.min(at), last.max(at)));
            if section.silent_prompts.len() < MAX_SILENT {
                section.silent_prompts.push(at);
                self.unanswered = true;
            }
        }
    }

    /// A request on a line of its own, or glued to one.
    pub fn answer(&mut self, answer: Answer, place: Place) {
        let mut context = self.context.clone();
        let request = self.request(answer, place, &mut context);
        self.context = context;
        self.push(request);
    }

    /// What a whole record says that its newline does not end yet: it counts,
    /// and is read once more when it is a line.
    pub fn unpassed(&mut self, say: impl FnOnce(&mut Self)) {
        let (context, anomalies) = (self.context.clone(), self.anomalies);
        say(self);
        (self.context, self.anomalies) = (context, anomalies);
    }

    /// Requests of `messages`: history, whose order says nothing about the lines after it.
    pub fn inside(&mut self, answers: Vec<Answer>, bad: Vec<BadAnswer>, offset: u64, len: u64) {
        let mut context = self.context.clone();
        for answer in answers {
            let request = self.request(answer, Place::Inside, &mut context);
            self.push(request);
        }
        if bad.is_empty() {
            return;
        }
        let ids = bad.into_iter().map(|bad| bad.id).collect();
        let at = self.now();
        self.undecodable(Undecodable { offset, len, reason: Broken::BadTokens, at, ids });
    }

    pub fn undecodable(&mut self, line: Undecodable) {
        self.current().undecodable.push(line);
    }

    pub fn glued(&mut self) {
        self.anomalies.glued += 1;
    }

    fn request(&mut self, answer: Answer, place: Place, context: &mut Context) -> Request {
        let at = answer.at.or(context.at).unwrap_or(self.name.minute);
        let model_inferred = answer.model.is_none();
        if let Some(model) = &answer.model {
            context.model = Some(self.model(model));
        }
        context.at = Some(at);
        self.anomalies.total_mismatch += u64::from(answer.total_mismatch);
        self.anomalies.cached_above_input += u64::from(answer.reading.cached_exceeds_prompt());
        self.anomalies.model_missing += u64::from(model_inferred);
        self.anomalies.undated += u64::from(answer.at.is_none());
        Request {
            id: answer.id,
            at,
            undated: answer.at.is_none(),
            model: context.model.clone(),
            model_inferred,
            reading: answer.reading,
            place,
        }
    }

    fn push(&mut self, request: Request) {
        self.requests += 1;
        let answers = request.place != Place::Inside && std::mem::take(&mut self.unanswered);
        let section = self.current();
        section.requests.push(request);
        if answers {
            section.silent_prompts.pop();
        }
    }

    fn model(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.models.iter().find(|known| ***known == *name) {
            return known.clone();
        }
        let model: Arc<str> = name.into();
        // A journal of many model names is hostile: past the first few they are not shared.
        if self.models.len() < 16 {
            self.models.push(model.clone());
        }
        model
    }

    fn current(&mut self) -> &mut Section {
        let index = self.open();
        &mut self.sections[index]
    }

    /// The section of the current context: the last one, or a new one.
    fn open(&mut self) -> usize {
        let role =
            if self.context.subagent || self.name.parent.is_some() { Role::Subagent } else { Role::Main };
        let session: Arc<str> = match (&self.name.parent, &self.context.session) {
            (Some(parent), _) => parent.clone(),
            (None, Some(session)) => session.clone(),
            (None, None) => nameless(&self.name.id_part).into(),
        };
        if let Some(last) = self.sections.last()
            && last.session == session
            && last.role == role
        {
            return self.sections.len() - 1;
        }
        self.unanswered = false;
        self.sections.push(Section {
            session,
            role,
            starts: Vec::new(),
            requests: Vec::new(),
            prompts: None,
            silent_prompts: Vec::new(),
            undecodable: Vec::new(),
        });
        self.sections.len() - 1
    }
}
