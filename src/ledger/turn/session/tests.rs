//! Sessions put together: the worked example, and the rules by their numbers.

use proptest::prelude::*;

use super::*;
use crate::ledger::doors::{HeadlessForm, ModelStats};
use crate::ledger::turn::telemetry::Kind;

fn reading(prompt: u64, cached: u64, output: u64, thoughts: u64) -> Reading {
    Reading { prompt, cached, tool: 0, output, thoughts }
}

fn view(id: i64, started_at: i64, ended_at: i64, result: TurnResult) -> View {
    View {
        key: ViewKey::Door(id),
        door: Some(Door::Acp),
        connection: 1,
        prompt_id: None,
        begun: true,
        started_at,
        ended_at: Some(ended_at),
        result: Some(result),
        cancel_sent: false,
        lossy: false,
        process_ended_at: None,
        lapsed: false,
        remote: false,
        resumed: false,
    }
}

fn end_turn(marker: Option<(u64, u64)>) -> TurnResult {
    TurnResult { stop_reason: Some("end_turn".into()), marker, ..TurnResult::default() }
}

fn usage(result: TurnResult, input: u64, output: u64) -> TurnResult {
    let usage = Usage::Figure { input, output, thoughts: 0, cached_read: Some(0), cached_write: 0 };
    TurnResult { usage, ..result }
}

fn request(id: i64, at: i64, reading: Reading) -> RequestFact {
    RequestFact { id, at, undated: false, role: Role::Main, model: "gemini-2.5-pro".into(), reading }
}

fn model(at: i64, model: &str) -> ModelFact {
    ModelFact { connection: 1, at, model: Some(model.into()) }
}

fn found() -> JournalFacts {
    JournalFacts { found: true, ..JournalFacts::default() }
}

fn facts(views: Vec<View>, requests: Vec<RequestFact>) -> SessionFacts {
    SessionFacts {
        views,
        requests,
        models: vec![model(0, "gemini-2.5-pro")],
        journal: found(),
        ..SessionFacts::default()
    }
}

fn only(facts: &SessionFacts) -> Turn {
    let turns = assess(facts);
    assert_eq!(turns.len(), 1, "{turns:#?}");
    turns.into_iter().next().expect("one turn")
}

fn reasons(verdict: &Verdict) -> Vec<&'static str> {
    verdict.reasons.iter().map(Reason::as_str).collect()
}

#[test]
fn the_worked_example_of_the_accounting_comes_out() {
    let cancelled = TurnResult { stop_reason: Some("cancelled".into()), ..TurnResult::default() };
    let one = reading(1100, 800, 12, 70);
    let facts = facts(
        vec![
            view(1, 100, 200, end_turn(Some((1100, 12)))),
            view(2, 300, 400, end_turn(Some((2100, 22)))),
            view(3, 500, 510, end_turn(Some((0, 0)))),
            view(4, 600, 700, cancelled),
            view(5, 800, 900, end_turn(Some((300, 0)))),
            view(6, 1000, 1100, end_turn(Some((1100, 12)))),
        ],
        vec![
            request(1, 190, one),
            request(2, 350, reading(1000, 0, 10, 70)),
            request(3, 390, reading(1100, 800, 12, 70)),
            request(4, 1090, one),
        ],
    );
    let facts = SessionFacts { silent_prompts: vec![610, 810], ..facts };
    let turns = assess(&facts);
    let figures: Vec<_> =
        turns.iter().map(|t| (t.verdict.figure.map(|f| f.classes().total()), t.verdict.bound)).collect();
    assert_eq!(
        figures,
        [
            (Some(1182), Bound::Exact),
            (Some(2262), Bound::Exact),
            (Some(0), Bound::Exact),
            (None, Bound::Unmeasured),
            (None, Bound::Unmeasured),
            (Some(1182), Bound::Exact),
        ]
    );
    let total: u64 = figures.iter().filter_map(|(total, _)| *total).sum();
    assert_eq!(total, 4626);
}

#[test]
fn r36_the_model_in_force_from_prompt_to_result_decides() {
    let turn = |models: Vec<ModelFact>| {
        let mut facts = facts(
            vec![view(1, 100, 200, end_turn(Some((10, 1))))],
            vec![request(1, 150, reading(10, 0, 1, 0))],
        );
        facts.models = models;
        only(&facts)
    };
    let sets = |models: Vec<ModelFact>| turn(models).setting;
    assert_eq!(sets(vec![model(0, "auto")]), ModelSetting::Auto);
    assert_eq!(sets(vec![model(0, "auto"), model(50, "gemini-2.5-pro")]), ModelSetting::Concrete);
    // Row 28: changed during the turn.
    assert_eq!(sets(vec![model(0, "gemini-2.5-pro"), model(150, "auto")]), ModelSetting::Auto);
    assert_eq!(sets(vec![model(0, "gemini-2.5-pro"), model(250, "auto")]), ModelSetting::Concrete);
    assert_eq!(sets(vec![]), ModelSetting::Unobserved);
    let other_process = ModelFact { connection: 2, ..model(0, "gemini-2.5-pro") };
    assert_eq!(sets(vec![other_process]), ModelSetting::Unobserved);
    let auto = turn(vec![model(0, "auto")]);
    assert_eq!((auto.verdict.bound, reasons(&auto.verdict)), (Bound::AtLeast, vec!["auto_model"]));
}

#[test]
fn r37_a_cancel_that_was_sent_demotes_even_an_end_turn() {
    let mut facts =
        facts(vec![view(1, 100, 200, end_turn(Some((10, 1))))], vec![request(1, 150, reading(10, 0, 1, 0))]);
    assert_eq!(only(&facts).verdict.bound, Bound::Exact);
    facts.views[0].cancel_sent = true;
    assert_eq!(reasons(&only(&facts).verdict), ["cancelled"]);
}

#[test]
fn r41_what_a_resumed_session_did_before_is_in_no_turn() {
    let mut facts = facts(
        vec![view(1, 100, 200, end_turn(Some((10, 1))))],
        vec![request(1, 90, reading(999, 0, 9, 0)), request(2, 150, reading(10, 0, 1, 0))],
    );
    facts.views[0].resumed = true;
    let turn = only(&facts);
    assert_eq!((turn.requests.as_slice(), turn.verdict.bound), (&[1][..], Bound::Exact));
    // Row 30: a record that names no time may be history.
    facts.requests[1].undated = true;
    let turn = only(&facts);
    assert!(turn.verdict.reasons.contains(Reason::BaselineFailed));
    assert_eq!(turn.verdict.bound, Bound::AtLeast);
}

#[test]
fn r46_subagents_stand_beside_the_merge_and_inside_a_headless_one() {
    let subagent = RequestFact { role: Role::Subagent, ..request(2, 160, reading(50, 0, 5, 0)) };
    let mut acp = facts(
        vec![view(1, 100, 200, end_turn(Some((10, 1))))],
        vec![request(1, 150, reading(10, 0, 1, 0)), subagent.clone()],
    );
    let turn = only(&acp);
    assert_eq!(turn.verdict.figure, Some(reading(10, 0, 1, 0)));
    assert_eq!(turn.subagents, Some(reading(50, 0, 5, 0)));
    assert_eq!((turn.verdict.bound, turn.requests.len()), (Bound::Exact, 2));
    acp.torn.push(TornFact { at: 170, role: Role::Subagent });
    assert_eq!(reasons(&only(&acp).verdict), ["torn_line"]);

    let headless = run(100, 200, true, Some(Exit::Code(0)), stats(60, 6));
    let run = facts(vec![headless], vec![request(1, 150, reading(10, 0, 1, 0)), subagent]);
    let turn = only(&run);
    assert_eq!(turn.verdict.figure, Some(reading(60, 0, 6, 0)));
    assert!(turn.excess.is_empty(), "{:?}", turn.excess);
}

fn stats(prompt: u64, output: u64) -> Option<Vec<ModelStats>> {
    Some(vec![ModelStats {
        model: "gemini-2.5-pro".into(),
        prompt,
        output,
        tool: Some(0),
        ..ModelStats::default()
    }])
}

fn run(from: i64, to: i64, success: bool, exit: Option<Exit>, stats: Option<Vec<ModelStats>>) -> View {
    let headless = Some(Headless { form: HeadlessForm::Json, success, stats, exit });
    let result = TurnResult { headless, ..TurnResult::default() };
    View { door: Some(Door::Run), ..view(9, from, to, result) }
}

#[test]
fn row39_statistics_of_a_good_run_complete_even_an_automatic_model() {
    let mut facts = facts(
        vec![run(100, 200, true, Some(Exit::Code(0)), stats(90, 9))],
        vec![request(1, 150, reading(10, 0, 1, 0))],
    );
    facts.models = vec![model(100, "auto")];
    let turn = only(&facts);
    assert_eq!((turn.verdict.figure, turn.verdict.bound), (Some(reading(90, 0, 9, 0)), Bound::Exact));
    assert_eq!(turn.strict.bound, Bound::AtLeast);
    let part = &turn.excess[0];
    assert_eq!((&*part.model, part.role, part.reading), ("gemini-2.5-pro", Role::Main, reading(80, 0, 8, 0)));
    // A pipe has no exit code: success is enough.
    facts.views = vec![run(100, 200, true, None, stats(90, 9))];
    assert_eq!(only(&facts).verdict.bound, Bound::Exact);
}

#[test]
fn row40_and_r64_a_run_that_did_not_end_well_is_a_lower_bound() {
    for (success, exit, stats, want) in [
        (true, Some(Exit::Code(53)), stats(90, 9), "error"),
        (false, Some(Exit::Code(1)), stats(90, 9), "error"),
        (false, Some(Exit::Code(0)), None, "killed"),
        (false, Some(Exit::Signal(9)), None, "killed"),
        (false, Some(Exit::Code(130)), None, "cancelled"),
        (false, None, stats(90, 9), "error"),
    ] {
        let facts =
            facts(vec![run(100, 200, success, exit, stats)], vec![request(1, 150, reading(10, 0, 1, 0))]);
        let turn = only(&facts);
        assert_eq!((turn.verdict.bound, reasons(&turn.verdict)), (Bound::AtLeast, vec![want]), "{exit:?}");
    }
}

#[test]
fn r48_overlapping_prompts_get_their_own_endings_and_records() {
    let cancelled = TurnResult { stop_reason: Some("cancelled".into()), ..TurnResult::default() };
    let facts = facts(
        vec![view(1, 100, 210, cancelled), view(2, 200, 300, end_turn(Some((10, 1))))],
        vec![request(1, 150, reading(5, 0, 1, 0)), request(2, 205, reading(10, 0, 1, 0))],
    );
    let turns = assess(&facts);
    assert_eq!(turns[0].requests, [0]);
    assert_eq!(turns[1].requests, [1]);
    assert_eq!((turns[0].verdict.bound, turns[1].verdict.bound), (Bound::AtLeast, Bound::Exact));
}

#[test]
fn r31_results_that_only_grow_while_the_journal_does_not_are_running_totals() {
    let mut views = Vec::new();
    let mut requests = Vec::new();
    for n in 1..=5u64 {
        let at = n.cast_signed() * 100;
        views.push(view(n.cast_signed(), at, at + 50, usage(end_turn(None), 10 * n, n)));
        requests.push(request(n.cast_signed(), at + 40, reading(10, 0, 1, 0)));
    }
    let turns = assess(&facts(views.clone(), requests));
    let cumulative: Vec<_> = turns.iter().map(|turn| turn.cumulative).collect();
    assert_eq!(cumulative, [false, false, false, false, true]);
    assert_eq!(turns[4].verdict.figure, Some(reading(10, 0, 1, 0)));
    // Turns that really grow: the journal says so, too.
    let requests =
        (1..=5).map(|n| request(n, n * 100 + 40, reading(10 * n.unsigned_abs(), 0, n.unsigned_abs(), 0)));
    let turns = assess(&facts(views, requests.collect()));
    assert!(turns.iter().all(|turn| !turn.cumulative));
}

#[test]
fn r47_what_a_result_gives_as_its_reason_decides_the_ending() {
    for (stop_reason, error, want) in [
        (Some("end_turn"), None, Ending::Normal),
        (Some("max_tokens"), None, Ending::Normal),
        (Some("refusal"), None, Ending::Normal),
        (Some("max_turn_requests"), None, Ending::LoopOrLimit),
        (Some("cancelled"), None, Ending::Cancelled),
        (Some("foo"), None, Ending::Unknown),
        (None, None, Ending::Unknown),
        (None, Some(429), Ending::Error),
        (None, Some(-32800), Ending::Cancelled),
    ] {
        let result = TurnResult { stop_reason: stop_reason.map(Into::into), error, ..TurnResult::default() };
        assert_eq!(ending(&view(1, 1, 2, result)), want, "{stop_reason:?} {error:?}");
    }
    let unread = TurnResult { unread: true, ..TurnResult::default() };
    assert_eq!(ending(&view(1, 1, 2, unread)), Ending::Unknown);
}

#[test]
fn two_doors_that_see_one_prompt_make_one_turn() {
    let mut facts = facts(
        vec![view(1, 100, 200, end_turn(Some((10, 1)))), view(2, 101, 199, usage(end_turn(None), 12, 1))],
        vec![request(1, 150, reading(10, 0, 1, 0))],
    );
    facts.views[1].door = Some(Door::Http);
    let turn = only(&facts);
    assert_eq!(turn.views, [ViewKey::Door(1), ViewKey::Door(2)]);
    // Figures by the maximum, the ending and the model by the proxy's word.
    assert_eq!(turn.verdict.figure, Some(reading(12, 0, 1, 0)));
    assert_eq!(turn.model.as_deref(), Some("gemini-2.5-pro"));
    // Two turns of one door are never merged.
    facts.views[1].door = Some(Door::Acp);
    assert_eq!(assess(&facts).len(), 2);
}

#[test]
fn r62_without_a_journal_here_the_prompt_result_stands_alone() {
    let mut facts = facts(vec![view(1, 100, 200, end_turn(Some((10, 1))))], vec![]);
    facts.journal = JournalFacts::default();
    assert_eq!(reasons(&only(&facts).verdict), ["no_figure", "journal_absent"]);
    facts.views[0].remote = true;
    assert_eq!(reasons(&only(&facts).verdict), ["no_figure", "journal_unread"]);
    facts.views[0].result = Some(usage(end_turn(Some((10, 1))), 10, 1));
    assert_eq!(only(&facts).verdict.bound, Bound::Exact);
}

#[test]
fn r1_nothing_of_another_agent_is_measured() {
    let views = vec![view(1, 100, 200, usage(end_turn(None), 10, 1))];
    let turn = only(&SessionFacts { foreign: true, ..facts(views, vec![]) });
    assert_eq!((turn.verdict.figure, turn.verdict.bound), (None, Bound::Unmeasured));
    assert!(turn.excess.is_empty());
}

#[test]
fn r14_row32_a_session_that_cannot_be_looked_up_is_unread() {
    let mut facts = facts(vec![view(1, 100, 200, end_turn(Some((10, 1))))], vec![]);
    facts.journal = JournalFacts { unreadable_id: true, ..JournalFacts::default() };
    assert_eq!(only(&facts).evidence.journal, Journal::Unread);
    facts.journal.found = true;
    assert_ne!(only(&facts).evidence.journal, Journal::Unread);
}

#[test]
fn row35_a_journal_that_fails_later_leaves_earlier_turns_alone() {
    let views = vec![view(1, 100, 200, end_turn(Some((10, 1)))), view(2, 300, 400, end_turn(Some((10, 1))))];
    let requests = vec![request(1, 150, reading(10, 0, 1, 0)), request(2, 350, reading(10, 0, 1, 0))];
    let mut facts = facts(views, requests);
    facts.journal.failed = Some((320, Reason::JournalFailed));
    let turns = assess(&facts);
    assert_eq!((turns[0].verdict.bound, turns[1].verdict.bound), (Bound::Exact, Bound::AtLeast));
}

fn record(at: i64, kind: Kind, id: &str, role: Role, reading: Reading) -> Record {
    let model = if role == Role::Router { "gemini-3.5-flash-lite" } else { "gemini-2.5-pro" };
    Record { at, kind, prompt_id: id.into(), role, model: model.into(), reading, times: 1 }
}

fn call(at: i64, id: &str, role: Role, reading: Reading) -> [Record; 2] {
    [
        record(at, Kind::Request, id, role, Reading::default()),
        record(at + 5, Kind::Response, id, role, reading),
    ]
}

fn prompt(at: i64, id: &str) -> Record {
    record(at, Kind::Prompt, id, Role::Main, Reading::default())
}

/// An interactive session without any door: three prompts, the second cancelled.
fn interactive() -> SessionFacts {
    let mut records = vec![prompt(100, "s########0")];
    records.extend(call(101, "s########0", Role::Router, reading(7, 0, 1, 0)));
    records.extend(call(110, "s########0", Role::Main, reading(100, 0, 10, 0)));
    records.push(prompt(200, "s########1"));
    records.push(record(210, Kind::Request, "s########1", Role::Main, Reading::default()));
    records.push(prompt(300, "s########2"));
    records.extend(call(310, "s########2", Role::Main, reading(300, 0, 30, 0)));
    records.extend(call(350, "compress-1", Role::Compressor, reading(5, 0, 2, 0)));
    records.extend(call(360, "compress-1-verify", Role::Compressor, reading(6, 0, 2, 0)));
    records.push(record(400, Kind::CleanExit, "", Role::Main, Reading::default()));
    SessionFacts {
        requests: vec![request(1, 114, reading(100, 0, 10, 0)), request(2, 314, reading(300, 0, 30, 0))],
        journal: found(),
        records,
        ..SessionFacts::default()
    }
}

#[test]
fn r66_telemetry_alone_completes_an_interactive_session() {
    let turns = assess(&interactive());
    let told: Vec<_> = turns
        .iter()
        .map(|turn| (turn.unit.is_some(), turn.verdict.figure.map(|f| f.prompt), reasons(&turn.verdict)))
        .collect();
    assert_eq!(
        told,
        [
            (false, Some(107), vec![]),
            (false, None, vec!["model_unobserved", "request_unanswered", "no_figure"]),
            (false, Some(300), vec![]),
            (true, Some(11), vec![]),
        ]
    );
    let router = &turns[0].excess[0];
    assert_eq!(
        (router.role, &*router.model, router.reading.prompt),
        (Role::Router, "gemini-3.5-flash-lite", 7)
    );
    assert_eq!(turns[0].billed, 2);
}

#[test]
fn r66_silence_leaves_the_last_turn_open_and_at_last_a_lower_bound() {
    let mut facts = interactive();
    facts.records.retain(|record| record.kind != Kind::CleanExit);
    let last = |facts: &SessionFacts| assess(facts).into_iter().rfind(|t| t.unit.is_none()).unwrap();
    assert_eq!(last(&facts).ending, Ending::Open);
    facts.lapsed_before = 301;
    let lapsed = last(&facts);
    assert_eq!(lapsed.ending, Ending::Lapsed);
    assert!(lapsed.verdict.reasons.contains(Reason::EndingUnseen));
}

#[test]
fn r66_a_gap_of_the_receiver_keeps_telemetry_from_completing() {
    let mut facts = interactive();
    facts.listening = Some(vec![(0, 1000)]);
    assert_eq!(assess(&facts)[0].verdict.bound, Bound::Exact);
    facts.listening = Some(vec![(0, 105), (108, 1000)]);
    let turns = assess(&facts);
    assert!(turns[0].verdict.reasons.contains(Reason::TelemetryGap));
    assert_eq!(turns[2].verdict.bound, Bound::Exact);
}

#[test]
fn row41_telemetry_completes_an_automatic_turn_of_the_proxy_and_adds_nothing_twice() {
    let mut facts = facts(
        vec![view(1, 100, 200, end_turn(Some((100, 10))))],
        vec![request(1, 150, reading(100, 0, 10, 0))],
    );
    facts.models = vec![model(0, "auto")];
    facts.records.extend(call(105, "classifier-router-fallback-1-a", Role::Router, reading(7, 0, 1, 0)));
    facts.records.extend(call(120, "4f2a", Role::Main, reading(100, 0, 10, 0)));
    let turn = only(&facts);
    assert_eq!((turn.verdict.figure, turn.verdict.bound), (Some(reading(107, 0, 11, 0)), Bound::Exact));
    // Row 41b: one that began and was never answered.
    facts.records.push(record(180, Kind::Request, "4f2a", Role::Main, Reading::default()));
    assert!(only(&facts).verdict.reasons.contains(Reason::RequestUnanswered));
}

proptest! {
    /// The order in which facts arrived changes nothing.
    #[test]
    fn assessment_does_not_depend_on_order(seed in any::<u64>()) {
        let mut facts = interactive();
        facts.views = vec![view(1, 95, 190, end_turn(Some((100, 10)))), view(2, 195, 290, end_turn(None))];
        facts.models = vec![model(0, "auto")];
        let summary = |facts: &SessionFacts| {
            assess(facts)
                .iter()
                .map(|turn| {
                    let ids: std::collections::BTreeSet<_> =
                        turn.requests.iter().map(|n| facts.requests[*n].id).collect();
                    (turn.views.clone(), turn.verdict, ids, turn.excess.clone())
                })
                .collect::<Vec<_>>()
        };
        let before = summary(&facts);
        let mut state = seed;
        let mut next = |below: usize| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as usize % below
        };
        for n in (1..facts.records.len()).rev() {
            facts.records.swap(n, next(n + 1));
        }
        facts.requests.reverse();
        facts.views.reverse();
        prop_assert_eq!(summary(&facts), before);
    }
}
