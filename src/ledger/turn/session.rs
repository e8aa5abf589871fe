//! Everything the ledger holds of one session, put together into its turns
//! (accounting 2.3, 2.4, settled choices). A pure function of the facts: the
//! order in which they arrived changes nothing.

use std::sync::Arc;

use super::excess::{self, Held, Part};
use super::merge::{Ending, Evidence, Journal, ModelSetting, PromptResult, Telemetry, Verdict, merge};
use super::telemetry::{self, Heard, Listener, Record};
use super::windows::{Window, overlap, turn_of};
use crate::ledger::bound::{Bound, Reason, Reasons};
use crate::ledger::doors::{Door, Exit, Headless, TurnResult, Usage};
use crate::ledger::model::Role;
use crate::ledger::tokens::Reading;

/// What a view of a turn is kept under.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ViewKey {
    /// A row that a door's events made.
    Door(i64),
    /// What telemetry calls it.
    Telemetry(String),
}

/// One view of one turn: what a door saw of it, or telemetry.
#[derive(Clone, Debug)]
pub struct View {
    pub key: ViewKey,
    /// `None`: telemetry.
    pub door: Option<Door>,
    /// The process behind the door; of telemetry 0.
    pub connection: i64,
    /// Of telemetry: the prompt id.
    pub prompt_id: Option<Arc<str>>,
    /// Of telemetry: nothing of the turn came before.
    pub begun: bool,
    /// Unix ms.
    pub started_at: i64,
    pub ended_at: Option<i64>,
    /// What came back; `None`: nothing (yet).
    pub result: Option<TurnResult>,
    pub cancel_sent: bool,
    /// The door lost frames while the turn was open.
    pub lossy: bool,
    /// The process, or the connection to it, ended.
    pub process_ended_at: Option<i64>,
    /// It was open for longer than a turn can be (accounting 2.7).
    pub lapsed: bool,
    /// The agent runs on another host (accounting R62).
    pub remote: bool,
    /// The session existed before this process opened it (accounting R41).
    pub resumed: bool,
}

/// A model that a door saw come into force.
#[derive(Clone, Debug)]
pub struct ModelFact {
    pub connection: i64,
    pub at: i64,
    pub model: Option<Arc<str>>,
}

/// A journal request of the session.
#[derive(Clone, Debug)]
pub struct RequestFact {
    pub id: i64,
    pub at: i64,
    /// It names no time of its own.
    pub undated: bool,
    pub role: Role,
    /// Canonical.
    pub model: Arc<str>,
    pub reading: Reading,
}

/// A line of the session's journals that could not be decoded.
#[derive(Clone, Copy, Debug)]
pub struct TornFact {
    pub at: i64,
    pub role: Role,
}

/// The state of the session's journals.
#[derive(Clone, Copy, Debug, Default)]
pub struct JournalFacts {
    /// A journal whose header names the session was found, ever.
    pub found: bool,
    /// The session's id may be looked up by (accounting R14), or is this host's at all.
    pub unreadable_id: bool,
    /// From when on what was written could not be read (unix ms), and why.
    pub failed: Option<(i64, Reason)>,
}

/// All facts of one session.
#[derive(Clone, Debug, Default)]
pub struct SessionFacts {
    /// Of doors. Those of telemetry follow from its records.
    pub views: Vec<View>,
    pub models: Vec<ModelFact>,
    pub requests: Vec<RequestFact>,
    /// Times of prompts that no request followed in what was read with them.
    pub silent_prompts: Vec<i64>,
    pub torn: Vec<TornFact>,
    pub journal: JournalFacts,
    pub records: Vec<Record>,
    /// When the telemetry receiver was there (unix ms, from and until);
    /// `None`: the records came by a way that misses none.
    pub listening: Option<Vec<(i64, i64)>>,
    /// The agent is not Gemini CLI: its turns are listed, and nothing of them is
    /// measured (accounting R1).
    pub foreign: bool,
    /// Telemetry's turns that began before this never end any more (accounting 2.7).
    pub lapsed_before: i64,
}

/// One turn, as the facts make it.
#[derive(Clone, Debug)]
pub struct Turn {
    /// What saw it, the one whose word counts first at the head; of calls that
    /// ran outside of all turns none.
    pub views: Vec<ViewKey>,
    /// It is no turn: calls outside of all turns, by their prompt id (accounting R66).
    pub unit: Option<String>,
    pub started_at: i64,
    pub ended_at: Option<i64>,
    pub ending: Ending,
    pub setting: ModelSetting,
    /// The model in force when the prompt was sent, canonical.
    pub model: Option<Arc<str>>,
    pub evidence: Evidence,
    pub verdict: Verdict,
    pub strict: Verdict,
    /// Places in [`SessionFacts::requests`], subagents' included.
    pub requests: Vec<usize>,
    /// What the figure holds above its requests.
    pub excess: Vec<Part>,
    /// Billed requests, by whichever source says most (interface, `requests`).
    pub billed: u64,
    /// What its subagents spent, where it stands beside the merge (accounting R46).
    pub subagents: Option<Reading>,
    /// Telemetry's calls, answered and not.
    pub heard: Option<Heard>,
    /// The prompt results looked like running totals and were left out (accounting R31).
    pub cumulative: bool,
}

impl Turn {
    /// Leaves no figure.
    fn unmeasure(&mut self) {
        for verdict in [&mut self.verdict, &mut self.strict] {
            (verdict.figure, verdict.bound) = (None, Bound::Unmeasured);
            verdict.reasons = Reasons::NONE.with(Reason::NoFigure);
        }
        (self.subagents, self.billed) = (None, 0);
        self.excess.clear();
    }
}

/// Puts the turns of one session together, and what ran outside of them,
/// ordered by their start.
#[must_use]
pub fn assess(facts: &SessionFacts) -> Vec<Turn> {
    let views = views(facts);
    let groups = group(&views);
    let windows: Vec<_> = groups.iter().map(|group| window(&views, group)).collect();
    let place = |at: i64| turn_of(&windows, at);
    let requests: Vec<_> = facts.requests.iter().map(|request| place(request.at)).collect();
    let listeners: Vec<_> = groups.iter().zip(&windows).map(|(g, w)| listener(&views, g, *w)).collect();
    let (heard, units) = telemetry::by_turn(&facts.records, &listeners);
    let cumulative = cumulative(facts, &views, &groups, &requests);

    let mine = |of: Option<usize>, place: usize| of == Some(place);
    let turns = groups.iter().enumerate().map(|(n, group)| {
        let draft = Draft {
            facts,
            views: group.iter().map(|place| &views[*place]).collect(),
            unit: None,
            window: windows[n],
            requests: (0..requests.len()).filter(|r| mine(requests[*r], n)).collect(),
            torn: facts.torn.iter().copied().filter(|torn| mine(place(torn.at), n)).collect(),
            prompted: facts.silent_prompts.iter().any(|at| mine(place(*at), n)),
            heard: heard[n].clone(),
            cumulative: cumulative[n],
        };
        draft.turn()
    });
    let units = units.into_iter().map(|(id, (from, until, heard))| {
        let window = Window { from, until: Some(until), gone: None };
        let (views, requests, torn) = (Vec::new(), Vec::new(), Vec::new());
        let heard = Some(heard);
        let draft = Draft {
            facts,
            views,
            unit: Some(id),
            window,
            requests,
            torn,
            prompted: false,
            heard,
            cumulative: false,
        };
        draft.turn()
    });
    let mut turns: Vec<_> = turns.chain(units).collect();
    turns.sort_by(|a, b| (a.started_at, &a.views, &a.unit).cmp(&(b.started_at, &b.views, &b.unit)));
    if facts.foreign {
        turns.iter_mut().for_each(Turn::unmeasure);
    }
    turns
}

/// The views of doors, and those that telemetry's records make.
fn views(facts: &SessionFacts) -> Vec<View> {
    let mut views = facts.views.clone();
    views.extend(telemetry::spoken(&facts.records).into_iter().map(|turn| View {
        key: ViewKey::Telemetry(turn.key),
        door: None,
        connection: 0,
        prompt_id: Some(turn.prompt_id),
        begun: turn.begun,
        started_at: turn.started_at,
        ended_at: turn.ended_at,
        result: None,
        cancel_sent: false,
        lossy: false,
        process_ended_at: None,
        lapsed: !turn.begun || (turn.ended_at.is_none() && turn.started_at < facts.lapsed_before),
        remote: false,
        resumed: false,
    }));
    views
}

fn listener<'a>(views: &'a [View], group: &[usize], window: Window) -> Listener<'a> {
    let of_group = || group.iter().map(|place| &views[*place]);
    Listener {
        window,
        watched: of_group().any(|view| view.door.is_some()),
        prompt_ids: of_group().filter_map(|view| view.prompt_id.as_deref()).collect(),
    }
}

/// Views of one turn, together: those of two doors are matched one to one by
/// the overlap of their windows; two of one door never are (accounting 3).
fn group(views: &[View]) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..views.len()).collect();
    let rank = |view: &View| view.door.map_or(u8::MAX, |door| door as u8);
    order.sort_by_key(|place| (rank(&views[*place]), views[*place].started_at, *place));
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for place in order {
        let view = &views[place];
        let own = window(views, &[place]);
        let best = groups
            .iter_mut()
            .filter(|group| group.iter().all(|other| views[*other].door != view.door))
            .map(|group| (overlap(&own, &window(views, &group[..1])), group))
            .filter(|(overlap, _)| *overlap > 0)
            .max_by_key(|(overlap, group)| (*overlap, std::cmp::Reverse(group[0])));
        match best {
            Some((_, group)) => group.push(place),
            None => groups.push(vec![place]),
        }
    }
    groups
}

/// The window of a group: as the view says whose word counts first.
fn window(views: &[View], group: &[usize]) -> Window {
    let first = &views[group[0]];
    Window { from: first.started_at, until: first.ended_at, gone: first.process_ended_at }
}

/// Which turns come after three results in a row that only grew while the
/// journal did not: such a `usage` is a running total and no figure (accounting R31).
fn cumulative(
    facts: &SessionFacts,
    views: &[View],
    groups: &[Vec<usize>],
    requests: &[Option<usize>],
) -> Vec<bool> {
    let mut order: Vec<usize> = (0..groups.len()).collect();
    order.sort_by_key(|place| views[groups[*place][0]].started_at);
    let mut verdicts = vec![false; groups.len()];
    let mut last: Option<(i64, Reading)> = None;
    let mut grown = 0;
    for place in order {
        let view = &views[groups[place][0]];
        let Some(usage) = view.result.as_ref().and_then(figure) else { continue };
        if grown >= 3 {
            verdicts[place] = true;
            continue;
        }
        let journal = facts
            .requests
            .iter()
            .zip(requests)
            .filter(|(request, turn)| **turn == Some(place) && request.role == Role::Main)
            .fold(Reading::default(), |sum, (request, _)| sum.plus(request.reading));
        let grows = last.is_some_and(|(connection, before)| {
            connection == view.connection && usage != before && usage.component_max(before) == usage
        });
        let per_turn = journal.prompt > 0 && journal.prompt < usage.prompt;
        grown = if grows && per_turn { grown + 1 } else { 0 };
        last = Some((view.connection, usage));
    }
    verdicts
}

/// The figure of a prompt result, if it states one (accounting R25–R29).
fn figure(result: &TurnResult) -> Option<Reading> {
    match result.usage {
        Usage::Figure { input, output, thoughts, cached_read, .. } => {
            Some(Reading { prompt: input, cached: cached_read.unwrap_or(0), tool: 0, output, thoughts })
        }
        Usage::Absent | Usage::Malformed => None,
    }
}

/// How a view ended (accounting 2.4, E; rows 39 and 40 for a headless run).
fn ending(view: &View) -> Ending {
    let Some(result) = &view.result else {
        return match (view.door, view.ended_at.or(view.process_ended_at)) {
            (None, _) if view.lapsed => Ending::Lapsed,
            (None, Some(_)) => Ending::Unwatched,
            (Some(_), _) if view.lapsed => Ending::Killed,
            (Some(_), Some(_)) if view.cancel_sent => Ending::Cancelled,
            (Some(_), Some(_)) => Ending::Killed,
            (_, None) => Ending::Open,
        };
    };
    if let Some(headless) = &result.headless {
        return headless_ending(headless);
    }
    if result.unread {
        return Ending::Unknown;
    }
    let stop_reason = result.stop_reason.as_deref();
    if view.cancel_sent || stop_reason == Some("cancelled") || result.error == Some(-32800) {
        return Ending::Cancelled;
    }
    if result.error.is_some() {
        return Ending::Error;
    }
    match stop_reason {
        Some("end_turn" | "max_tokens" | "refusal") => Ending::Normal,
        Some("max_turn_requests") => Ending::LoopOrLimit,
        _ => Ending::Unknown,
    }
}

fn headless_ending(headless: &Headless) -> Ending {
    match (headless.exit, headless.success) {
        (Some(Exit::Signal(_)), _) => Ending::Killed,
        (Some(Exit::Code(130)), _) => Ending::Cancelled,
        (Some(Exit::Code(code)), _) if code != 0 => Ending::Error,
        (_, true) => Ending::Normal,
        // A run that said nothing of its end and exits with 0 was interrupted.
        (_, false) if headless.stats.is_none() => Ending::Killed,
        (_, false) => Ending::Error,
    }
}

/// What one turn is made of.
struct Draft<'a> {
    facts: &'a SessionFacts,
    views: Vec<&'a View>,
    unit: Option<String>,
    window: Window,
    requests: Vec<usize>,
    torn: Vec<TornFact>,
    prompted: bool,
    heard: Option<Heard>,
    cumulative: bool,
}

impl Draft<'_> {
    fn turn(self) -> Turn {
        let headless = self.views().find_map(|view| view.result.as_ref()?.headless.as_ref());
        let whole = headless.is_some();
        let covered = |role: Role| whole || role != Role::Subagent;
        let sum = |of: &dyn Fn(Role) -> bool| {
            let mut readings =
                self.requests.iter().map(|n| &self.facts.requests[*n]).filter(|r| of(r.role)).peekable();
            readings.peek()?;
            Some(readings.fold(Reading::default(), |sum, request| sum.plus(request.reading)))
        };
        let decoded = sum(&covered);
        let (setting, model) = self.model();
        let gap = self.gap();
        let heard = self.heard.as_ref();
        let tool_known = decoded
            .map_or(0, |reading| reading.tool)
            .max(heard.map_or(0, |heard| heard.reading(&covered).tool));
        let statistics = headless.and_then(|headless| headless.stats.as_deref());
        let telemetry = heard.and_then(|heard| heard.telemetry(&covered)).map(|t| Telemetry { gap, ..t });
        let evidence = Evidence {
            ending: self.ending(),
            model: setting,
            prompt: self.prompt(),
            journal: self.journal(whole),
            decoded,
            headless: statistics.map(|stats| excess::statistics(stats, tool_known)),
            telemetry,
            lossy: self.views().any(|view| view.lossy),
        };
        let (mut verdict, mut strict) = (merge(&evidence, false), merge(&evidence, true));
        let beside = (!whole).then(|| self.subagents(&sum)).flatten();
        if let Some(reason) = self.subagents_broken(whole) {
            demote(&mut verdict, reason);
            demote(&mut strict, reason);
        }
        // A call that began and never ended has no reading, but it was there.
        let silent = telemetry.is_none() && heard.is_some_and(|heard| heard.unanswered(&covered) != 0);
        if silent || beside.is_some_and(|beside| beside.unanswered) {
            demote(&mut verdict, Reason::RequestUnanswered);
        }
        let held = Held {
            requests: self.requests.iter().map(|n| &self.facts.requests[*n]).collect(),
            figure: verdict.figure,
            subagents: beside.map(|beside| beside.reading),
            whole,
            model: model.clone(),
            statistics,
            heard,
            estimate: self.is_estimate(statistics, &evidence),
        };
        let excess = held.parts();
        let stated = statistics.and_then(|stats| stats.iter().map(|of_model| of_model.requests).sum());
        let billed = (self.requests.len() as u64)
            .max(stated.unwrap_or(0))
            .max(heard.map_or(0, |heard| heard.answered(&|_| true)));
        Turn {
            views: self.views.iter().map(|view| view.key.clone()).collect(),
            unit: self.unit,
            started_at: self.window.from,
            ended_at: self.window.until.or(self.window.gone),
            ending: evidence.ending,
            setting,
            model,
            evidence,
            verdict,
            strict,
            excess,
            billed,
            subagents: beside.map(|beside| beside.reading).or_else(|| sum(&|role| role == Role::Subagent)),
            heard: self.heard,
            cumulative: self.cumulative,
            requests: self.requests,
        }
    }

    /// By the view whose word counts first. What ran outside of all turns has
    /// no ending but its answers.
    fn ending(&self) -> Ending {
        if self.unit.is_some() {
            return Ending::Unwatched;
        }
        self.views.first().map_or(Ending::Open, |view| ending(view))
    }

    /// The receiver was away since the turn began, so that records may be missing.
    fn gap(&self) -> bool {
        let until = self.window.until.or(self.window.gone).unwrap_or(i64::MAX);
        let spans = self.facts.listening.as_ref();
        let covers = |(from, to): &(i64, i64)| *from <= self.window.from && until <= *to;
        self.heard.is_some() && spans.is_some_and(|spans| !spans.iter().any(covers))
    }

    fn views(&self) -> impl Iterator<Item = &View> {
        self.views.iter().copied()
    }

    /// The prompt results of all its doors: figures by the maximum, never added.
    fn prompt(&self) -> PromptResult {
        let mut prompt = PromptResult { malformed: self.cumulative, ..PromptResult::default() };
        for result in self.views().filter_map(|view| view.result.as_ref()) {
            let own = figure(result).filter(|_| !self.cumulative);
            prompt.figure = match (prompt.figure, own) {
                (Some(a), Some(b)) => Some(a.component_max(b)),
                (a, b) => a.or(b),
            };
            prompt.marker = match (prompt.marker, result.marker) {
                (Some((a, b)), Some((c, d))) => Some((a.max(c), b.max(d))),
                (a, b) => a.or(b),
            };
            prompt.malformed |= result.usage == Usage::Malformed;
        }
        prompt
    }

    /// The model setting in force from the prompt to the ending, and the model
    /// it began with (accounting R33–R36): by the door whose word counts first
    /// of those that saw one.
    fn model(&self) -> (ModelSetting, Option<Arc<str>>) {
        let until = self.window.until.unwrap_or(i64::MAX);
        for view in self.views() {
            let of_process = || self.facts.models.iter().filter(|fact| fact.connection == view.connection);
            let Some(first) = of_process().rfind(|fact| fact.at <= view.started_at) else {
                continue;
            };
            let during = of_process().filter(|fact| fact.at > view.started_at && fact.at <= until);
            let settings = std::iter::once(first).chain(during).map(|f| ModelSetting::of(f.model.as_deref()));
            // One moment left to the CLI is enough; so is one that nobody saw.
            let setting = settings.fold(ModelSetting::Concrete, |all, one| match (all, one) {
                (ModelSetting::Concrete, one) => one,
                (ModelSetting::Unobserved, ModelSetting::Auto) => ModelSetting::Auto,
                (all, _) => all,
            });
            return (setting, first.model.clone());
        }
        (ModelSetting::Unobserved, None)
    }

    fn journal(&self, whole: bool) -> Journal {
        let journal = &self.facts.journal;
        let end = self.window.until.or(self.window.gone).unwrap_or(i64::MAX);
        let of_chat = |role: Role| whole || role != Role::Subagent;
        let mine = || self.requests.iter().map(|n| &self.facts.requests[*n]).filter(|r| of_chat(r.role));
        if !journal.found {
            let unread = journal.unreadable_id || self.views().any(|view| view.remote);
            return if unread { Journal::Unread } else { Journal::Absent };
        }
        if let Some((_, reason)) = journal.failed.filter(|(since, _)| *since <= end) {
            return Journal::Failed(reason);
        }
        if self.views().any(|view| view.resumed) && mine().any(|request| request.undated) {
            return Journal::Failed(Reason::BaselineFailed);
        }
        if self.torn.iter().any(|torn| of_chat(torn.role)) {
            return Journal::Torn;
        }
        if mine().next().is_some() { Journal::Clean } else { Journal::Empty { prompted: self.prompted } }
    }

    /// What the subagents spent, beside the merge (accounting R46): of their
    /// journals and telemetry the maximum.
    fn subagents(&self, sum: &SumOf<'_>) -> Option<Beside> {
        let subagent = |role: Role| role == Role::Subagent;
        let journals = sum(&subagent);
        let heard = self.heard.as_ref().and_then(|heard| heard.telemetry(&subagent));
        let readings = journals.into_iter().chain(heard.map(|heard| heard.reading));
        let reading = readings.reduce(Reading::component_max)?;
        Some(Beside { reading, unanswered: heard.is_some_and(|heard| !heard.balanced) })
    }

    /// A subagent's own journal keeps it from being complete (accounting R46).
    fn subagents_broken(&self, whole: bool) -> Option<Reason> {
        let torn = !whole && self.torn.iter().any(|torn| torn.role == Role::Subagent);
        torn.then_some(Reason::TornLine)
    }

    /// A source that does not tell cached or tool tokens apart makes a cost no
    /// bound (accounting 2.8).
    fn is_estimate(&self, stats: Option<&[crate::ledger::doors::ModelStats]>, evidence: &Evidence) -> bool {
        let cache_unread = evidence.prompt.figure.is_some()
            && self
                .views()
                .filter_map(|view| view.result.as_ref())
                .any(|result| matches!(result.usage, Usage::Figure { cached_read: None, .. }));
        let tool_unread = stats.is_some_and(|stats| {
            stats.iter().any(|of_model| of_model.tool.is_none() && of_model.thoughts_and_tool > 0)
        });
        cache_unread || tool_unread
    }
}

/// The sum of the turn's requests of some roles; `None` where it has none.
type SumOf<'a> = dyn Fn(&dyn Fn(Role) -> bool) -> Option<Reading> + 'a;

#[derive(Clone, Copy)]
struct Beside {
    reading: Reading,
    unanswered: bool,
}

fn demote(verdict: &mut Verdict, reason: Reason) {
    if verdict.figure.is_some() {
        verdict.bound = Bound::AtLeast;
    }
    verdict.reasons.insert(reason);
}

#[cfg(test)]
mod tests;
