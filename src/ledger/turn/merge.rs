//! The merge: several readings of one turn become one figure with a class
//! (accounting 2.4, 2.5 and the table of 2.6).

use crate::ledger::bound::{Bound, Reason, Reasons};
use crate::ledger::model::is_auto_alias;
use crate::ledger::spend::{Basis, Source};
use crate::ledger::tokens::Reading;

/// How a turn ended (accounting 2.4, E).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ending {
    /// N: a result, and no cancel was sent.
    Normal,
    /// L: the turn limit or the loop detection stopped it.
    LoopOrLimit,
    /// D: no door saw it end; telemetry closed it (R66).
    Unwatched,
    /// No door saw it end, and telemetry never closed it (R66).
    Lapsed,
    /// C
    Cancelled,
    /// X
    Error,
    /// K: the process or the connection ended first.
    Killed,
    /// U: the answer could not be read, or gives a reason nobody knows.
    Unknown,
    /// O
    Open,
}

impl Ending {
    pub const ALL: [Self; 9] = [
        Self::Normal,
        Self::LoopOrLimit,
        Self::Unwatched,
        Self::Lapsed,
        Self::Cancelled,
        Self::Error,
        Self::Killed,
        Self::Unknown,
        Self::Open,
    ];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::LoopOrLimit => "loop_or_limit",
            Self::Unwatched => "unwatched",
            Self::Lapsed => "lapsed",
            Self::Cancelled => "cancelled",
            Self::Error => "error",
            Self::Killed => "killed",
            Self::Unknown => "unknown",
            Self::Open => "open",
        }
    }

    /// The ending of that name, if it is one.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|ending| ending.as_str() == name)
    }

    /// What it demotes a turn for.
    fn reason(self) -> Option<Reason> {
        match self {
            Self::Normal | Self::Unwatched => None,
            Self::LoopOrLimit => Some(Reason::LoopOrLimit),
            Self::Lapsed => Some(Reason::EndingUnseen),
            Self::Cancelled => Some(Reason::Cancelled),
            Self::Error => Some(Reason::Error),
            Self::Killed => Some(Reason::Killed),
            Self::Unknown => Some(Reason::UnknownEnding),
            Self::Open => Some(Reason::Open),
        }
    }
}

/// Whether the model in force was one that is called, or a choice left to the
/// CLI (accounting R34–R36, M).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ModelSetting {
    Concrete,
    Auto,
    /// Nobody saw which.
    Unobserved,
}

impl ModelSetting {
    /// Of a model id as a door saw it; empty says nothing.
    #[must_use]
    pub fn of(model: Option<&str>) -> Self {
        match model.map(str::trim) {
            None | Some("") => Self::Unobserved,
            Some(model) if is_auto_alias(model) => Self::Auto,
            Some(_) => Self::Concrete,
        }
    }

    fn reason(self) -> Option<Reason> {
        match self {
            Self::Concrete => None,
            Self::Auto => Some(Reason::AutoModel),
            Self::Unobserved => Some(Reason::ModelUnobserved),
        }
    }
}

/// The journal's part in a turn (accounting 2.4, J).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Journal {
    /// J+
    Clean,
    /// J0: clean, and no request; with a prompt of its own that nothing answered: J0u.
    Empty { prompted: bool },
    /// J~: an undecodable line stands in the turn.
    Torn,
    /// J!: it could not be read on; the reason is one of the journal reasons
    /// or `baseline_failed`.
    Failed(Reason),
    /// J∅
    Absent,
    /// Jx
    Unread,
}

/// What the prompt result says (accounting 2.4, P).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PromptResult {
    pub figure: Option<Reading>,
    /// `_meta.quota.token_count`: (input, output); a proof of having reached a model.
    pub marker: Option<(u64, u64)>,
    /// There was a `usage` that states no figure.
    pub malformed: bool,
}

/// Telemetry's reading of the turn (accounting R66).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Telemetry {
    pub reading: Reading,
    /// Every request that started was answered or failed.
    pub balanced: bool,
    /// The receiver was away since the turn began: records may be missing.
    pub gap: bool,
}

/// All that is known of one turn.
#[derive(Clone, Copy, Debug)]
pub struct Evidence {
    pub ending: Ending,
    pub model: ModelSetting,
    pub prompt: PromptResult,
    pub journal: Journal,
    /// The sum of the decoded requests; `None` where there is none.
    pub decoded: Option<Reading>,
    /// A headless run's own statistics.
    pub headless: Option<Reading>,
    pub telemetry: Option<Telemetry>,
    /// The door lost frames of this turn (accounting row 43).
    pub lossy: bool,
}

/// What the readings make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// `None`: unmeasured.
    pub figure: Option<Reading>,
    pub bound: Bound,
    /// What demotes; empty when exact.
    pub reasons: Reasons,
    /// What is odd about its sources and demotes nothing.
    pub notes: Reasons,
    pub basis: Basis,
}

/// Merges the readings of one turn: the figure is their component-wise
/// maximum, never a sum, and is exact only where one full reading reaches all
/// the others.
///
/// | ending | full reading | figure | class |
/// |---|---|---|---|
/// | normal, model concrete | prompt result or clean journal at or above all else and the marker | maximum | complete |
/// | normal or unwatched | statistics of a successful run, or balanced telemetry, likewise, whatever the model | maximum | complete |
/// | normal, marker 0, clean journal without a prompt of its own | none | 0 (a slash command) | complete where the model is concrete |
/// | any | none of these | maximum of what there is | lower bound |
/// | any | nothing | none | unknown |
///
/// What is known to be missing, an unanswered request or lost frames, leaves a
/// lower bound whatever the readings say. With `strict` only the prompt result
/// and the journal decide the class; the figure is the same.
#[must_use]
pub fn merge(evidence: &Evidence, strict: bool) -> Verdict {
    let e = evidence;
    let readings = Readings::of(e);
    let mut figure = readings.all().reduce(Reading::component_max);
    let marker_zero = e.prompt.figure.is_none() && e.prompt.marker == Some((0, 0));
    let no_model = figure.is_none()
        && e.ending == Ending::Normal
        && marker_zero
        && e.journal == Journal::Empty { prompted: false };
    if no_model {
        figure = Some(Reading::default());
    }

    let judged = if strict { readings.narrow_only() } else { readings };
    let full = |reading: &Reading| {
        above(reading, e.prompt.marker) && judged.all().all(|other| dominates(reading, &other))
    };
    let narrow = e.ending == Ending::Normal
        && e.model == ModelSetting::Concrete
        && (no_model || judged.narrow().any(|reading| full(&reading)));
    let wide = matches!(e.ending, Ending::Normal | Ending::Unwatched) && judged.wide().any(|r| full(&r));
    let missing = judged.unbalanced.is_some() || e.lossy;
    let complete = !missing && (narrow || wide);

    let notes = notes(e);
    let bound = match figure {
        None => Bound::Unmeasured,
        Some(_) if complete => Bound::Exact,
        Some(_) => Bound::AtLeast,
    };
    let reasons =
        if complete { Reasons::NONE } else { reasons(e, &judged, no_model).union(demoting(notes, e)) };
    Verdict { figure, bound, reasons, notes, basis: readings.basis(no_model) }
}

/// The readings side by side, each filled in where its source cannot tell: a
/// prompt result knows nothing of tool tokens (accounting, settled choices).
#[derive(Clone, Copy)]
struct Readings {
    prompt: Option<Reading>,
    decoded: Option<Reading>,
    /// The journal's reading is a full one.
    clean: bool,
    headless: Option<Reading>,
    balanced: Option<Reading>,
    /// Balanced as far as it goes, with records that may be missing.
    gapped: Option<Reading>,
    unbalanced: Option<Reading>,
}

impl Readings {
    fn of(e: &Evidence) -> Self {
        let holds = matches!(e.journal, Journal::Clean | Journal::Torn | Journal::Failed(_));
        let decoded = e.decoded.filter(|_| holds);
        let telemetry = |of: fn(&Telemetry) -> bool| e.telemetry.filter(of).map(|t| t.reading);
        let mut readings = Self {
            prompt: None,
            decoded,
            clean: e.journal == Journal::Clean,
            headless: e.headless,
            balanced: telemetry(|t| t.balanced && !t.gap),
            gapped: telemetry(|t| t.balanced && t.gap),
            unbalanced: telemetry(|t| !t.balanced),
        };
        let tool = readings.all().map(|reading| reading.tool).max().unwrap_or(0);
        readings.prompt = e.prompt.figure.map(|reading| Reading { tool, ..reading });
        readings
    }

    fn all(&self) -> impl Iterator<Item = Reading> {
        [self.prompt, self.decoded, self.headless, self.balanced, self.gapped, self.unbalanced]
            .into_iter()
            .flatten()
    }

    fn narrow(&self) -> impl Iterator<Item = Reading> {
        [self.prompt, self.decoded.filter(|_| self.clean)].into_iter().flatten()
    }

    fn wide(&self) -> impl Iterator<Item = Reading> {
        [self.headless, self.balanced].into_iter().flatten()
    }

    fn narrow_only(self) -> Self {
        Self { headless: None, balanced: None, gapped: None, unbalanced: None, ..self }
    }

    fn basis(&self, no_model: bool) -> Basis {
        let mut basis = Basis::default();
        let mut add = |has: bool, source| {
            if has {
                basis.insert(source);
            }
        };
        add(self.decoded.is_some() || no_model, Source::Journal);
        add(self.prompt.is_some() || no_model, Source::Prompt);
        add(self.headless.is_some(), Source::HeadlessStats);
        add(self.balanced.or(self.gapped).or(self.unbalanced).is_some(), Source::Telemetry);
        basis
    }
}

fn dominates(a: &Reading, b: &Reading) -> bool {
    a.component_max(*b) == *a
}

fn above(reading: &Reading, marker: Option<(u64, u64)>) -> bool {
    marker.is_none_or(|(input, output)| reading.prompt >= input && reading.output >= output)
}

/// Why a figure is not complete.
fn reasons(e: &Evidence, readings: &Readings, no_model: bool) -> Reasons {
    let mut reasons = Reasons::NONE;
    let mut add = |reason: Option<Reason>| reason.into_iter().for_each(|reason| reasons.insert(reason));
    add(e.model.reason());
    add(e.ending.reason());
    add(readings.unbalanced.map(|_| Reason::RequestUnanswered));
    add(e.telemetry.filter(|t| t.gap).map(|_| Reason::TelemetryGap));
    add(e.lossy.then_some(Reason::TeeLossy));
    add((e.journal == Journal::Torn).then_some(Reason::TornLine));
    let full: Vec<_> = readings.narrow().chain(readings.wide()).collect();
    // An ending that no source measures explains itself: rows 21, 23, 25.
    let explained = matches!(e.ending, Ending::Cancelled | Ending::Killed | Ending::Error);
    let without_journal = !matches!(e.journal, Journal::Clean | Journal::Torn);
    add((full.is_empty() && without_journal && !explained && !no_model).then_some(Reason::NoFigure));
    if !full.is_empty() {
        let candidates: Vec<_> = full.iter().filter(|r| above(r, e.prompt.marker)).collect();
        let others = || full.iter().copied().chain(readings.gapped).chain(readings.unbalanced);
        let reached = candidates.iter().any(|r| others().all(|other| dominates(r, &other)));
        add(candidates.is_empty().then_some(Reason::ShortOfMarker));
        add((!candidates.is_empty() && !reached).then_some(Reason::SourcesCross));
    }
    // Telemetry closed it, and did not see as much as another source.
    if reasons.is_empty() && e.ending == Ending::Unwatched {
        reasons.insert(Reason::EndingUnseen);
    }
    reasons
}

/// What is odd about the sources of a turn, whether it demotes or not.
fn notes(e: &Evidence) -> Reasons {
    let journal = match e.journal {
        Journal::Failed(reason) => Some(reason),
        Journal::Absent => Some(Reason::JournalAbsent),
        Journal::Unread => Some(Reason::JournalUnread),
        Journal::Torn => Some(Reason::TornLine),
        Journal::Clean | Journal::Empty { .. } => None,
    };
    journal.into_iter().chain(e.prompt.malformed.then_some(Reason::UsageMalformed)).collect()
}

/// Those notes that are reasons of a figure that is not complete. A turn that
/// was cancelled, killed or failed is a bound for that alone.
fn demoting(notes: Reasons, e: &Evidence) -> Reasons {
    match e.ending {
        Ending::Cancelled | Ending::Killed | Ending::Error => {
            notes.iter().filter(|note| *note == Reason::TornLine).collect()
        }
        _ => notes,
    }
}

#[cfg(test)]
mod tests;
