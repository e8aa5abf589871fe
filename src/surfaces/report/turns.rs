//! The turns of one session, and the story of each in plain words: what each
//! source said, and why the figure is complete, at least, or unmeasured.

use super::{notes, number};
use crate::ledger::bound::{Bound, Reason, Reasons};
use crate::ledger::doors::{Door, Exit, Headless, HeadlessForm, TurnResult, Usage};
use crate::ledger::model::{Role, UNKNOWN};
use crate::ledger::spend::{Basis, Source};
use crate::ledger::tokens::{Classes, Reading};
use crate::ledger::turn::excess::Part;
use crate::ledger::turn::merge::{Ending, Journal, ModelSetting};
use crate::ledger::turn::session::{SessionFacts, Turn, View};
use crate::store::read::{SessionStory, TurnRow};

/// One turn as `explain` shows it, or calls outside of all turns.
#[derive(Clone, Debug)]
pub struct TurnReport {
    /// Its place among the session's turns, from 1; `None`: calls outside of them.
    pub number: Option<usize>,
    /// Unix ms.
    pub started_at: i64,
    pub ended_at: Option<i64>,
    pub ending: Ending,
    /// As the agent wrote it.
    pub stop_reason: Option<String>,
    /// In force when the prompt was sent.
    pub model: String,
    /// What saw it.
    pub doors: Vec<&'static str>,
    pub bound: Bound,
    pub reasons: Reasons,
    pub basis: Basis,
    /// `None`: unmeasured.
    pub tokens: Option<Classes>,
    /// What its subagents spent, where that stands beside the figure.
    pub subagents: Option<Classes>,
    /// What each source said.
    pub readings: Vec<SourceReading>,
    /// (input, output) that the prompt result proves to have reached a model.
    pub marker: Option<(u64, u64)>,
    /// Tokens of the figure that no journal request holds, by model and role.
    pub above: Vec<Part>,
    /// Billed requests, by whichever source says most.
    pub requests: u64,
    /// Final since, unix ms; `None`: more may still come.
    pub settled_at: Option<i64>,
    /// Sentences.
    pub story: Vec<String>,
}

/// What one source says of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceReading {
    pub source: Source,
    pub requests: Option<u64>,
    pub reading: Reading,
}

/// The turns of a session, by their start.
#[must_use]
pub fn turns(story: &SessionStory) -> Vec<TurnReport> {
    let mut number = 0;
    story
        .turns
        .iter()
        .map(|turn| {
            let place = turn.unit.is_none().then(|| {
                number += 1;
                number
            });
            let row = story.rows.iter().find(|row| row.started_at == turn.started_at);
            report(&story.facts, turn, row, place)
        })
        .collect()
}

fn report(facts: &SessionFacts, turn: &Turn, row: Option<&TurnRow>, number: Option<usize>) -> TurnReport {
    let views: Vec<&View> = facts.views.iter().filter(|view| turn.views.contains(&view.key)).collect();
    let result = views.iter().find_map(|view| view.result.as_ref());
    let mut doors: Vec<_> = views.iter().filter_map(|view| view.door).map(Door::as_str).collect();
    if turn.heard.is_some() {
        doors.push("otlp");
    }
    // What is final may only rise or fall; the row holds to that.
    let settled = row.filter(|row| row.settled_at.is_some());
    let (bound, reasons) =
        settled.map_or((turn.verdict.bound, turn.verdict.reasons), |row| (row.bound, row.reasons));
    let figure = settled.map_or(turn.verdict.figure, |row| row.figure);
    let readings = readings(turn);
    let said = Said { turn, result, readings: &readings };
    let mut story = said.sources();
    story.push(said.verdict(bound, reasons));
    story.extend(said.notes(settled.is_some()));
    TurnReport {
        number,
        started_at: turn.started_at,
        ended_at: turn.ended_at,
        ending: turn.ending,
        stop_reason: result.and_then(|result| result.stop_reason.clone()),
        model: turn.model.as_deref().unwrap_or(UNKNOWN).to_owned(),
        doors,
        bound,
        reasons,
        basis: turn.verdict.basis,
        tokens: figure.map(Reading::classes),
        subagents: turn.subagents.filter(|_| turn.evidence.headless.is_none()).map(Reading::classes),
        readings,
        marker: turn.evidence.prompt.marker,
        above: turn.excess.clone(),
        requests: turn.billed,
        settled_at: settled.and_then(|row| row.settled_at),
        story,
    }
}

fn readings(turn: &Turn) -> Vec<SourceReading> {
    let evidence = &turn.evidence;
    let whole = evidence.headless.is_some();
    let answered = |heard: &crate::ledger::turn::telemetry::Heard| {
        heard.answered(&|role| whole || role != Role::Subagent)
    };
    let requests = turn.requests.len() as u64;
    let of = |source, requests, reading: Option<Reading>| {
        reading.map(|reading| SourceReading { source, requests, reading })
    };
    [
        of(Source::Journal, Some(requests), evidence.decoded),
        of(Source::Prompt, None, evidence.prompt.figure),
        of(Source::HeadlessStats, None, evidence.headless),
        of(Source::Telemetry, turn.heard.as_ref().map(answered), evidence.telemetry.map(|t| t.reading)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// `input 1,100 (800 cached), output 12, thoughts 70`.
pub(super) fn spoken(reading: Reading) -> String {
    let mut parts = vec![match reading.cached {
        0 => format!("input {}", number::thousands(reading.prompt)),
        cached => {
            format!("input {} ({} cached)", number::thousands(reading.prompt), number::thousands(cached))
        }
    }];
    parts.push(format!("output {}", number::thousands(reading.output)));
    for (name, count) in [("thoughts", reading.thoughts), ("tool use", reading.tool)] {
        if count > 0 {
            parts.push(format!("{name} {}", number::thousands(count)));
        }
    }
    parts.join(", ")
}

fn count(n: u64, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{} {what}s", number::thousands(n)) }
}

struct Said<'a> {
    turn: &'a Turn,
    result: Option<&'a TurnResult>,
    readings: &'a [SourceReading],
}

impl Said<'_> {
    /// What was asked of which source, and what each said.
    fn sources(&self) -> Vec<String> {
        let mut story = Vec::new();
        if self.turn.unit.is_none() {
            story.push(self.journal());
        }
        story.extend(self.prompt());
        if let Some(headless) = self.result.and_then(|result| result.headless.as_ref()) {
            story.push(self.headless(headless));
        }
        story.extend(self.telemetry());
        story
    }

    fn of(&self, source: Source) -> Option<&SourceReading> {
        self.readings.iter().find(|reading| reading.source == source)
    }

    fn journal(&self) -> String {
        let held = self.of(Source::Journal).map(|reading| {
            let requests = count(reading.requests.unwrap_or(0), "request");
            format!("{requests}: {}", spoken(reading.reading))
        });
        match (self.turn.evidence.journal, held) {
            (Journal::Clean, Some(held)) => format!("The journal was read whole and holds {held}."),
            (Journal::Clean, None) => {
                "The journal was read whole and holds requests of subagents only.".into()
            }
            (Journal::Empty { prompted: true }, _) => {
                "The journal was read whole: it shows the prompt, and no answer with token counts.".into()
            }
            (Journal::Empty { prompted: false }, _) => "The journal was read whole and shows nothing.".into(),
            (Journal::Torn, Some(held)) => {
                format!("The journal has a line that cannot be decoded; the rest holds {held}.")
            }
            (Journal::Torn, None) => "All that the journal has is a line that cannot be decoded.".into(),
            (Journal::Failed(_), Some(held)) => {
                format!("The journal could not be read on; read were {held}.")
            }
            (Journal::Failed(_), None) => "The journal could not be read.".into(),
            (Journal::Absent, _) => "No journal of this session was found.".into(),
            (Journal::Unread, _) => {
                "The session's journal is not on this machine, or cannot be looked up.".into()
            }
        }
    }

    fn prompt(&self) -> Option<String> {
        let result = self.result.filter(|result| result.headless.is_none())?;
        if result.unread {
            return Some("The answer to the prompt was among frames that could not be read.".into());
        }
        if let Some(code) = result.error {
            return Some(format!("The prompt was answered with error {code}, which states no usage."));
        }
        let marker = match self.turn.evidence.prompt.marker {
            Some((0, 0)) => "; its counts of 0 say that no model was reached, or that none were stated",
            Some(_) => "",
            None => "",
        };
        let reached =
            self.turn.evidence.prompt.marker.filter(|marker| *marker != (0, 0)).map(|(input, output)| {
                format!(
                    "; it says that a model was reached, with {} tokens in and {} out",
                    number::thousands(input),
                    number::thousands(output)
                )
            });
        let reached = reached.unwrap_or_else(|| marker.to_owned());
        Some(match (self.of(Source::Prompt), result.usage) {
            (Some(said), _) => format!("The prompt result states {}{reached}.", spoken(said.reading)),
            (None, Usage::Absent) => format!("The prompt result states no usage{reached}."),
            (None, _) if self.turn.cumulative => {
                "The prompt results state running totals, not what each turn used, and are left out.".into()
            }
            (None, _) => format!("The prompt result has a usage that states no figure{reached}."),
        })
    }

    fn headless(&self, headless: &Headless) -> String {
        let form = match headless.form {
            HeadlessForm::StreamJson => "stream-json",
            HeadlessForm::Json => "json",
            HeadlessForm::Text => "text",
        };
        let exit = match headless.exit {
            Some(Exit::Code(code)) => format!("exited with {code}{}", exit_meaning(code)),
            Some(Exit::Signal(signal)) => format!("was ended by signal {signal}"),
            None => "was read from a pipe".to_owned(),
        };
        match self.of(Source::HeadlessStats) {
            Some(said) => format!(
                "The run ({form}) {exit}, and its own statistics state {}; they count every answered call.",
                spoken(said.reading)
            ),
            None => format!("The run ({form}) {exit} and stated no statistics."),
        }
    }

    fn telemetry(&self) -> Option<String> {
        let heard = self.turn.heard.as_ref()?;
        let all = |_: Role| true;
        let answered = count(heard.answered(&all), "answered call");
        let reading = spoken(heard.reading(&all));
        let open = heard.unanswered(&all);
        Some(match open {
            0 => format!("Telemetry shows {answered} and none without an end: {reading}."),
            1.. => format!(
                "Telemetry shows {answered}: {reading}; {} began and ended unseen.",
                count(open.unsigned_abs(), "more call")
            ),
            _ => format!("Telemetry shows {answered}: {reading}; of some the beginning is missing."),
        })
    }

    /// Why the figure is what it is.
    fn verdict(&self, bound: Bound, reasons: Reasons) -> String {
        let turn = self.turn;
        if bound != Bound::Exact {
            let why = notes::why(reasons);
            return match bound {
                Bound::AtLeast => format!("At least: {why}."),
                _ => format!("Unmeasured: {why}."),
            };
        }
        if turn.unit.is_some() {
            return "Complete: every call that began was answered.".into();
        }
        if turn.verdict.figure == Some(Reading::default()) && self.readings.is_empty() {
            return "Complete: a command that reached no model.".into();
        }
        let wide = turn.strict.bound != Bound::Exact;
        let source = match (wide, turn.evidence.headless.is_some()) {
            (true, true) => "the run's own statistics",
            (true, false) => "telemetry",
            (false, _) if turn.evidence.journal == Journal::Clean => "the journal",
            (false, _) => "the prompt result",
        };
        let model = match (wide, turn.setting) {
            (false, ModelSetting::Concrete) => ", the model was one that is called, not chosen by the CLI,",
            _ => "",
        };
        format!("Complete: no other source shows more than {source}{model} and the turn ended as it should.")
    }

    fn notes(&self, settled: bool) -> Vec<String> {
        let mut notes = Vec::new();
        if self.turn.verdict.bound == Bound::Exact && self.turn.verdict.notes.contains(Reason::UsageMalformed)
        {
            notes.push("Its usage member is malformed; the figure does not need it.".into());
        }
        if !self.turn.excess.is_empty() {
            let parts = self.turn.excess.iter().map(|part| {
                format!(
                    "{} to {} ({})",
                    number::thousands(part.reading.classes().total()),
                    part.model,
                    part.role.as_str()
                )
            });
            notes.push(format!(
                "Tokens that no journal request holds: {}.",
                parts.collect::<Vec<_>>().join(", ")
            ));
        }
        if self.turn.ending == Ending::Open {
            notes.push("It is still open.".into());
        } else if !settled {
            notes.push("Provisional: a source that may know more has not spoken yet.".into());
        }
        notes
    }
}

/// What an exit code of Gemini CLI means (accounting R64).
fn exit_meaning(code: i32) -> &'static str {
    match code {
        1 => " (an error)",
        41 => " (authentication)",
        42 => " (input)",
        44 => " (sandbox)",
        52 => " (configuration)",
        53 => " (turn limit)",
        54 => " (tool)",
        55 => " (untrusted workspace)",
        130 => " (cancelled)",
        173 => " (quota)",
        _ => "",
    }
}
