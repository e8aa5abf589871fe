//! One session with its requests and the story of its figure: `explain` and
//! `GET /api/v1/sessions/{id}`.

use std::io;

use jiff::tz::TimeZone;

use super::build::Row;
use super::{ReportError, json, notes, number, session_text};
use crate::ledger::bound::{Bound, Reason, Reasons};
use crate::ledger::identity::nameless_part;
use crate::ledger::model::{Role, UNKNOWN};
use crate::ledger::spend::Spend;
use crate::ledger::tokens::Classes;
use crate::store::read::{Dimensions, RequestRow, SessionRow, Snapshot, UndecodableRow};

/// How many sessions an ambiguous id lists.
const LISTED: usize = 5;

/// The session that a person means: a full id, the only one that begins so,
/// or `latest`, the one prompted last. To look in some homes only, take the
/// sessions of others out of `dimensions` first.
///
/// # Errors
/// No such session, or several.
pub fn resolve(dimensions: &Dimensions, query: &str) -> Result<i64, ReportError> {
    let query = query.trim();
    let sessions = || dimensions.sessions.values();
    if query == "latest" {
        // Sessions nobody prompted are start-up journals: last resort.
        let rank = |session: &&SessionRow| {
            let prompted = session.prompts.map(|(_, last)| last);
            (prompted, session.started_at, session.session.clone())
        };
        return sessions().max_by_key(rank).map(|session| session.id).ok_or(ReportError::NoSession);
    }
    let whole: Vec<_> = sessions().filter(|session| session.session == query).collect();
    let found = if whole.is_empty() && !query.is_empty() {
        sessions().filter(|session| session.session.starts_with(query)).collect()
    } else {
        whole
    };
    match found.as_slice() {
        [] => Err(ReportError::UnknownSession(query.to_owned())),
        [only] => Ok(only.id),
        several => {
            let mut found: Vec<_> = several.iter().take(LISTED).map(|s| listed(dimensions, s)).collect();
            if several.len() > LISTED {
                found.push(format!("{} more", several.len() - LISTED));
            }
            Err(ReportError::AmbiguousSession { query: query.to_owned(), found })
        }
    }
}

/// A session among several: its id, and its home where that can tell them apart.
fn listed(dimensions: &Dimensions, session: &SessionRow) -> String {
    match dimensions.homes.get(&session.home_id) {
        Some(home) if dimensions.homes.len() > 1 => format!("{} (home {})", session.session, home.name),
        _ => session.session.clone(),
    }
}

/// A session as `explain` shows it.
#[derive(Clone, Debug)]
pub struct SessionReport {
    /// As in the sessions report, but of all time.
    pub row: Row,
    /// Oldest first.
    pub requests: Vec<Request>,
    /// In file order.
    pub undecodable: Vec<UndecodableRow>,
    /// Sentences that say why the figure is what it is.
    pub story: Vec<String>,
}

/// One request with its names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The message id, unique within a home.
    pub id: String,
    /// When the answer ended, unix ms.
    pub at: i64,
    pub model: String,
    pub model_inferred: bool,
    pub role: Role,
    pub tokens: Classes,
}

/// Everything the ledger knows of one session (a key of [`Dimensions::sessions`]).
///
/// # Errors
/// Whatever the store says.
pub fn explain(
    snapshot: &Snapshot<'_>,
    dimensions: &Dimensions,
    session_id: i64,
) -> Result<SessionReport, ReportError> {
    let requests = snapshot.session_requests(session_id)?;
    let undecodable = snapshot.session_undecodable(session_id)?;
    Ok(build(dimensions, session_id, &requests, undecodable))
}

/// The pure part of [`explain`].
///
/// # Panics
/// On a session that is not of these dimensions: [`resolve`] found it there.
#[must_use]
pub fn build(
    dimensions: &Dimensions,
    session_id: i64,
    requests: &[(String, RequestRow)],
    undecodable: Vec<UndecodableRow>,
) -> SessionReport {
    let session = dimensions.sessions.get(&session_id).expect("the session is of these dimensions");
    let mut spend = Spend::default();
    for (_, request) in requests {
        spend.add_request(request.role, request.reading);
        spend.demote(Reasons::WATCHER_ONLY);
    }
    let unmeasured = requests.is_empty() && (session.prompts.is_some() || !session.reasons.is_empty());
    if unmeasured {
        spend.add_unmeasured();
        spend.demote(Reasons::WATCHER_ONLY.with(Reason::NoFigure));
    }
    spend.demote(session.reasons);

    let requests: Vec<Request> = requests
        .iter()
        .map(|(id, request)| Request {
            id: id.clone(),
            at: request.at,
            model: dimensions.models.get(&request.model_id).map_or(UNKNOWN, String::as_str).to_owned(),
            model_inferred: request.model_inferred,
            role: request.role,
            tokens: request.reading.classes(),
        })
        .collect();
    let silent = session.prompts.map(|(_, last)| last).or(session.started_at);
    let mut models: Vec<_> = requests.iter().map(|request| request.model.clone()).collect();
    models.sort();
    models.dedup();
    let project = dimensions.projects.get(&session.project_id).map(|project| project.name.clone());
    let row = Row {
        key: session.session.clone(),
        home: dimensions.homes.get(&session.home_id).map(|home| home.name.clone()),
        project: Some(project.unwrap_or_else(|| UNKNOWN.to_owned())),
        started_at: session.started_at,
        first_at: requests.iter().map(|request| request.at).min().or(silent),
        last_at: requests.iter().map(|request| request.at).max().or(silent),
        models,
        spend,
        source_deleted: session.source_deleted,
        parts: Vec::new(),
    };
    let story = story(session, &row, &requests, &undecodable);
    SessionReport { row, requests, undecodable, story }
}

/// Why the figure is what it is.
fn story(
    session: &SessionRow,
    row: &Row,
    requests: &[Request],
    undecodable: &[UndecodableRow],
) -> Vec<String> {
    let spend = &row.spend;
    let mut story = Vec::new();
    story.push(match (spend.bound(), spend.requests) {
        (Bound::Unmeasured, _) if session.prompts.is_some() => {
            "A person prompted this session, and no answer with token counts was found: \
             what it cost is unknown, not zero."
                .to_owned()
        }
        (Bound::Unmeasured, _) => {
            "A part of this session's journal could not be read, and nothing in the rest has token \
             counts: what it cost is unknown, not zero."
                .to_owned()
        }
        (_, 0) => "Its journal holds a header and no prompt: Gemini CLI writes one at every start. \
             Nothing was spent."
            .to_owned(),
        (_, 1) => "The figure is the one request its journals hold.".to_owned(),
        (_, n) => format!(
            "The figure is the sum of the {} requests its journals hold, each counted once.",
            number::thousands(n)
        ),
    });
    match spend.subagent_requests {
        0 => {}
        1 => story.push("1 of them was made by a subagent.".to_owned()),
        n => story.push(format!("{} of them were made by subagents.", number::thousands(n))),
    }
    if spend.bound() == Bound::AtLeast {
        story.push(format!("It is a lower bound: {}.", notes::why(spend.reasons)));
    }
    let inferred = requests.iter().filter(|request| request.model_inferred).count();
    match inferred {
        0 => {}
        1 => story.push("1 request names no model; that of the one before it was taken.".to_owned()),
        n => story.push(format!("{n} requests name no model; those of the ones before them were taken.")),
    }
    let open = undecodable.iter().filter(|line| !line.settled).count();
    match open {
        0 => {}
        1 => story.push("1 journal line could not be decoded and may hold a request.".to_owned()),
        n => story.push(format!("{n} journal lines could not be decoded and may hold requests.")),
    }
    match undecodable.len() - open {
        0 => {}
        1 => story.push("1 journal line was broken, and all it held was read elsewhere.".to_owned()),
        n => story.push(format!("{n} journal lines were broken, and all they held was read elsewhere.")),
    }
    if nameless_part(&row.key).is_some() {
        story.push("Its journal has no header, and its name fits no known session, or several.".to_owned());
    }
    if row.source_deleted {
        story.push("Its journals are deleted by now; the figure is what was read before.".to_owned());
    }
    story
}

impl SessionReport {
    /// One JSON document and a newline.
    ///
    /// # Errors
    /// Whatever `out` says.
    pub fn write_json(&self, pretty: bool, out: &mut dyn io::Write) -> io::Result<()> {
        json::document(self, pretty, out)
    }

    /// The same for a terminal of `width` columns, in the times of `zone`.
    ///
    /// # Errors
    /// Whatever `out` says.
    pub fn write_text(
        &self,
        zone: &TimeZone,
        width: usize,
        color: bool,
        out: &mut dyn io::Write,
    ) -> io::Result<()> {
        session_text::write(self, zone, width, color, out)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::surfaces::report::sample;
    use crate::surfaces::report::spec::Kind;

    pub(in super::super) fn explained(id: i64) -> SessionReport {
        let requests = sample::requests().into_iter().filter(|request| request.session_id == id);
        let requests: Vec<_> = requests.map(|request| (format!("m{}", request.id), request)).collect();
        let torn = UndecodableRow {
            project_dir: "scratch".to_owned(),
            file: "session-2026-11-30T10-00-0c7713fe.jsonl".to_owned(),
            offset: 4_711,
            len: 80,
            reason: "not_json".to_owned(),
            at: sample::ms("2026-11-30T10:01:00Z"),
            settled: false,
        };
        build(&sample::dimensions(), id, &requests, if id == 4 { vec![torn] } else { Vec::new() })
    }

    fn text(id: i64, width: usize) -> String {
        let mut out = Vec::new();
        explained(id).write_text(&TimeZone::UTC, width, false, &mut out).expect("a Vec takes everything");
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn sessions_are_found_by_id_prefix_or_as_the_latest() {
        let mut dimensions = sample::dimensions();
        let find = |query: &str| resolve(&dimensions, query).map_err(|error| error.to_string());
        assert_eq!(find("b4265a7e-16f4-4a8e-9b1c-0d2e4f6a8c1b"), Ok(1));
        assert_eq!(find(" b4 "), Ok(1));
        assert_eq!(find("latest"), Ok(4));
        assert_eq!(
            find("zz"),
            Err("no session begins with \"zz\"; `gemgauge report sessions --since all` lists them".to_owned())
        );
        assert!(find("").is_err());
        dimensions.sessions.values_mut().for_each(|session| session.prompts = None);
        dimensions.sessions.get_mut(&2).expect("a session").prompts = Some((1, 1));
        assert_eq!(resolve(&dimensions, "latest").expect("found"), 2);
        assert!(matches!(resolve(&Dimensions::default(), "latest"), Err(ReportError::NoSession)));
    }

    #[test]
    fn a_prefix_of_several_lists_up_to_five() {
        let mut dimensions = sample::dimensions();
        for id in 10..17 {
            let session = SessionRow { id, session: format!("cafe-{id}"), ..dimensions.sessions[&1].clone() };
            dimensions.sessions.insert(id, session);
        }
        let error = resolve(&dimensions, "cafe").expect_err("ambiguous");
        assert!(!error.is_usage());
        assert_eq!(
            error.to_string(),
            "several sessions begin with \"cafe\": cafe-10 (home ana), cafe-11 (home ana), \
             cafe-12 (home ana), cafe-13 (home ana), cafe-14 (home ana), 2 more; give more of the id"
        );
        assert_eq!(resolve(&dimensions, "cafe-16").expect("found"), 16);
    }

    #[test]
    fn a_session_is_told_with_its_requests_and_why() {
        let want = "\
Session 0c7713fe-21a3-4f08-9a55-1f2e3d4c5b6a
Project  scratch
Home     bob
Started  2026-11-30 10:00:00
Active   2026-11-30 10:01:00 (UTC)
Sources  journal
Tokens   ≥ 1,237,789

Time      Model               Fresh     Cached  Output  Thoughts        Total
─────────────────────────────────────────────────────────────────────────────
10:01:00  gemini-2.5-flash  234,567  1,000,000   3,210        12    1,237,789
─────────────────────────────────────────────────────────────────────────────
Total                       234,567  1,000,000   3,210        12  ≥ 1,237,789

The figure is the one request its journals hold.
It is a lower bound: seen only by the journal watcher, and journals leave out
  cancelled, router and web-search requests; some journal lines could not be
  decoded.
1 journal line could not be decoded and may hold a request.
- not_json: tmp/scratch/chats/session-2026-11-30T10-00-0c7713fe.jsonl at byte
  4711
";
        assert_eq!(text(4, 80), want);
    }

    #[test]
    fn what_was_never_answered_has_no_figure_and_says_so() {
        let text = text(3, 80);
        assert!(text.contains("Tokens   — (unmeasured)\n\nA person prompted this session"), "{text}");
    }

    #[test]
    fn requests_of_several_days_keep_their_day_in_80_columns() {
        let text = text(2, 80);
        assert!(text.contains("\n11-30 00:10  2.5-flash  subagent  5,000 "), "{text}");
        assert!(text.lines().all(|line| unicode_width::UnicodeWidthStr::width(line) <= 80), "{text}");
        assert!(text.ends_with("Its journals are deleted by now; the figure is what was read before.\n"));
    }

    #[test]
    fn the_row_is_that_of_the_sessions_report() {
        let report = sample::report(Kind::Sessions, &[]);
        for id in 1..=4 {
            let row = explained(id).row;
            assert!(report.rows.contains(&row), "{row:?}");
        }
    }
}
