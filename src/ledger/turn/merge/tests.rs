//! The decision table of accounting 2.6, row by row, and the laws below it.

use std::process::Command;

use proptest::prelude::*;
use proptest::strategy::ValueTree;

use super::*;
use Ending as E;
use Journal as J;
use ModelSetting as M;
use Reason as R;

fn reading(prompt: u64, cached: u64, tool: u64, output: u64, thoughts: u64) -> Reading {
    Reading { prompt, cached, tool, output, thoughts }
}

const EMPTY: Journal = J::Empty { prompted: false };
const PROMPTED: Journal = J::Empty { prompted: true };
const FAILED: Journal = J::Failed(R::JournalFailed);

/// Evidence of nothing: a concrete model, a normal ending, an empty journal.
fn nothing() -> Evidence {
    Evidence {
        ending: E::Normal,
        model: M::Concrete,
        prompt: PromptResult::default(),
        journal: EMPTY,
        decoded: None,
        headless: None,
        telemetry: None,
        lossy: false,
    }
}

fn telemetry(reading: Reading, balanced: bool) -> Option<Telemetry> {
    Some(Telemetry { reading, balanced, gap: false })
}

/// A row: number, what is changed from `nothing`, figure, bound, reasons.
type Row = (&'static str, Box<dyn Fn(&mut Evidence)>, Option<Reading>, Bound, Vec<Reason>);

fn boxed(change: impl Fn(&mut Evidence) + 'static) -> Box<dyn Fn(&mut Evidence)> {
    Box::new(change)
}

fn table() -> Vec<Row> {
    let a = reading(100, 50, 0, 10, 5);
    let b = reading(90, 40, 0, 8, 4);
    let c = reading(120, 50, 0, 5, 5);
    let a_or_c = reading(120, 50, 0, 10, 5);
    let marker = Some((100, 10));
    let zero = Some((0, 0));
    let (exact, least, none) = (Bound::Exact, Bound::AtLeast, Bound::Unmeasured);
    let p = move |e: &mut Evidence, figure, marker| {
        e.prompt = PromptResult { figure, marker, malformed: false };
    };
    let j = |e: &mut Evidence, journal, decoded| {
        e.journal = journal;
        e.decoded = decoded;
    };
    macro_rules! row {
        ($name:literal, $figure:expr, $bound:expr, [$($reason:expr),*], $change:expr) => {
            ($name, boxed($change), $figure, $bound, vec![$($reason),*])
        };
    }
    vec![
        row!("1 equal", Some(a), exact, [], move |e| {
            p(e, Some(a), marker);
            j(e, J::Clean, Some(a));
        }),
        row!("1 prompt dominates", Some(a), exact, [], move |e| {
            p(e, Some(a), Some((90, 8)));
            j(e, J::Clean, Some(b));
        }),
        row!("1 journal dominates", Some(a), exact, [], move |e| {
            p(e, Some(b), Some((90, 8)));
            j(e, J::Clean, Some(a));
        }),
        row!("2", Some(a_or_c), least, [R::SourcesCross], move |e| {
            p(e, Some(a), None);
            j(e, J::Clean, Some(c));
        }),
        row!("3 J0", Some(a), exact, [], move |e| p(e, Some(a), marker)),
        row!("3 J0u", Some(a), exact, [], move |e| {
            p(e, Some(a), marker);
            j(e, PROMPTED, None);
        }),
        row!("4 prompt dominates", Some(a), exact, [], move |e| {
            p(e, Some(a), marker);
            j(e, J::Torn, Some(b));
        }),
        row!("4 it does not", Some(a), least, [R::TornLine], move |e| {
            p(e, Some(b), None);
            j(e, J::Torn, Some(a));
        }),
        row!("5 failed", Some(a), exact, [], move |e| {
            p(e, Some(a), marker);
            j(e, FAILED, None);
        }),
        row!("5 absent", Some(a), exact, [], move |e| {
            p(e, Some(a), marker);
            j(e, J::Absent, None);
        }),
        row!("5 unread", Some(a), exact, [], move |e| {
            p(e, Some(a), marker);
            j(e, J::Unread, None);
        }),
        row!("6", Some(b), least, [R::ShortOfMarker], move |e| p(e, Some(b), marker)),
        row!("6 the journal dominates both", Some(a), exact, [], move |e| {
            p(e, Some(b), marker);
            j(e, J::Clean, Some(a));
        }),
        row!("7", Some(a), exact, [], move |e| {
            p(e, None, marker);
            j(e, J::Clean, Some(a));
        }),
        row!("8", Some(b), least, [R::ShortOfMarker], move |e| {
            p(e, None, marker);
            j(e, J::Clean, Some(b));
        }),
        row!("9", Some(b), least, [R::TornLine], move |e| {
            p(e, None, marker);
            j(e, J::Torn, Some(b));
        }),
        row!("9 nothing decoded", None, none, [R::TornLine], move |e| {
            p(e, None, marker);
            j(e, J::Torn, None);
        }),
        row!("10 J0", None, none, [R::NoFigure], move |e| p(e, None, marker)),
        row!("10 J0u", None, none, [R::NoFigure], move |e| {
            p(e, None, marker);
            j(e, PROMPTED, None);
        }),
        row!("11 decoded part", Some(b), least, [R::NoFigure, R::JournalFailed], move |e| {
            p(e, None, marker);
            j(e, FAILED, Some(b));
        }),
        row!("11 absent", None, none, [R::NoFigure, R::JournalAbsent], move |e| {
            p(e, None, marker);
            j(e, J::Absent, None);
        }),
        row!("12", Some(Reading::default()), exact, [], move |e| p(e, None, zero)),
        row!("13", None, none, [R::NoFigure], move |e| {
            p(e, None, zero);
            j(e, PROMPTED, None);
        }),
        row!("14", Some(a), exact, [], move |e| {
            p(e, None, zero);
            j(e, J::Clean, Some(a));
        }),
        row!("15", None, none, [R::NoFigure, R::JournalUnread], move |e| {
            p(e, None, zero);
            j(e, J::Unread, None);
        }),
        row!("15 decoded part", Some(a), least, [R::NoFigure, R::JournalLost], move |e| {
            p(e, None, zero);
            j(e, J::Failed(R::JournalLost), Some(a));
        }),
        row!("16", None, none, [R::TornLine], move |e| {
            p(e, None, zero);
            j(e, J::Torn, None);
        }),
        row!("16 decoded", Some(a), least, [R::TornLine], move |e| {
            p(e, None, zero);
            j(e, J::Torn, Some(a));
        }),
        row!("17", Some(a), exact, [], move |e| {
            e.prompt.malformed = true;
            j(e, J::Clean, Some(a));
        }),
        row!("18", None, none, [R::NoFigure], |_| {}),
        row!("18 malformed", None, none, [R::NoFigure, R::UsageMalformed], |e| e.prompt.malformed = true),
        row!("19", Some(b), least, [R::TornLine], move |e| j(e, J::Torn, Some(b))),
        row!("20", Some(a), least, [R::Cancelled], move |e| {
            e.ending = E::Cancelled;
            j(e, J::Clean, Some(a));
        }),
        row!("21", None, none, [R::Cancelled], move |e| {
            e.ending = E::Cancelled;
            j(e, PROMPTED, None);
        }),
        row!("21 prompt figure", Some(a), least, [R::Cancelled], move |e| {
            e.ending = E::Cancelled;
            p(e, Some(a), None);
        }),
        row!("22", Some(a), least, [R::Killed], move |e| {
            e.ending = E::Killed;
            j(e, J::Clean, Some(a));
        }),
        row!("22 torn", Some(a), least, [R::Killed, R::TornLine], move |e| {
            e.ending = E::Killed;
            j(e, J::Torn, Some(a));
        }),
        row!("23", None, none, [R::Killed], move |e| {
            e.ending = E::Killed;
            j(e, FAILED, None);
        }),
        row!("24", Some(a), least, [R::Error], move |e| {
            e.ending = E::Error;
            j(e, J::Clean, Some(a));
        }),
        row!("25", None, none, [R::Error], move |e| {
            e.ending = E::Error;
            j(e, J::Absent, None);
        }),
        row!("26", Some(a), least, [R::UnknownEnding], move |e| {
            e.ending = E::Unknown;
            p(e, Some(a), marker);
        }),
        row!("26b", Some(a), least, [R::LoopOrLimit], move |e| {
            e.ending = E::LoopOrLimit;
            p(e, Some(a), marker);
            j(e, J::Clean, Some(a));
        }),
        row!("27 auto", Some(a), least, [R::AutoModel], move |e| {
            e.model = M::Auto;
            p(e, Some(a), marker);
            j(e, J::Clean, Some(a));
        }),
        row!("27 absent", Some(a), least, [R::ModelUnobserved], move |e| {
            e.model = M::Unobserved;
            p(e, None, marker);
            j(e, J::Clean, Some(a));
        }),
        row!("27 slash command", Some(Reading::default()), least, [R::AutoModel], move |e| {
            e.model = M::Auto;
            p(e, None, zero);
        }),
        row!("30", Some(a), least, [R::NoFigure, R::BaselineFailed], move |e| {
            p(e, None, marker);
            j(e, J::Failed(R::BaselineFailed), Some(a));
        }),
        row!("30 prompt figure", Some(a), exact, [], move |e| {
            p(e, Some(a), marker);
            j(e, J::Failed(R::BaselineFailed), Some(a));
        }),
        row!("39", Some(a), exact, [], move |e| {
            e.model = M::Auto;
            e.headless = Some(a);
            j(e, J::Clean, Some(b));
        }),
        row!("39 it does not dominate", Some(a_or_c), least, [R::AutoModel, R::SourcesCross], move |e| {
            e.model = M::Auto;
            e.headless = Some(a);
            j(e, J::Clean, Some(c));
        }),
        row!("40 error", Some(a), least, [R::Error], move |e| {
            e.ending = E::Error;
            e.headless = Some(a);
            j(e, J::Clean, Some(b));
        }),
        row!("41 door", Some(a), exact, [], move |e| {
            e.model = M::Auto;
            e.telemetry = telemetry(a, true);
            p(e, None, marker);
            j(e, J::Clean, Some(b));
        }),
        row!("41 no door", Some(a), exact, [], move |e| {
            e.ending = E::Unwatched;
            e.model = M::Unobserved;
            e.telemetry = telemetry(a, true);
            j(e, J::Clean, Some(b));
        }),
        row!("41b", Some(a), least, [R::RequestUnanswered], move |e| {
            e.telemetry = telemetry(b, false);
            p(e, None, marker);
            j(e, J::Clean, Some(a));
        }),
        row!("42", Some(a), least, [R::Cancelled], move |e| {
            e.ending = E::Cancelled;
            e.telemetry = telemetry(a, true);
            j(e, J::Clean, Some(b));
        }),
        row!("43", Some(a), least, [R::TeeLossy], move |e| {
            e.lossy = true;
            p(e, Some(a), marker);
            j(e, J::Clean, Some(a));
        }),
        row!("lapsed", Some(a), least, [R::ModelUnobserved, R::EndingUnseen], move |e| {
            e.ending = E::Lapsed;
            e.model = M::Unobserved;
            e.telemetry = telemetry(a, true);
        }),
    ]
}

#[test]
fn every_row_of_the_decision_table_is_decided_as_it_says() {
    for (row, change, figure, bound, reasons) in table() {
        let mut evidence = nothing();
        change(&mut evidence);
        let verdict = merge(&evidence, false);
        assert_eq!((verdict.figure, verdict.bound), (figure, bound), "row {row}");
        assert_eq!(verdict.reasons.iter().collect::<Vec<_>>(), reasons, "row {row}");
    }
}

#[test]
fn a_journal_that_failed_beside_a_complete_prompt_result_is_noted_and_demotes_nothing() {
    let a = reading(100, 50, 0, 10, 5);
    let mut evidence = nothing();
    evidence.prompt.figure = Some(a);
    evidence.journal = J::Absent;
    let verdict = merge(&evidence, false);
    assert_eq!(verdict.bound, Bound::Exact);
    assert!(verdict.reasons.is_empty() && verdict.notes.contains(R::JournalAbsent));
}

#[test]
fn a_prompt_result_says_nothing_about_tool_tokens() {
    let mut evidence = nothing();
    evidence.prompt.figure = Some(reading(100, 50, 0, 10, 5));
    evidence.journal = J::Clean;
    evidence.decoded = Some(reading(90, 40, 7, 8, 4));
    let verdict = merge(&evidence, false);
    assert_eq!(verdict.figure, Some(reading(100, 50, 7, 10, 5)));
    assert_eq!(verdict.bound, Bound::Exact);
}

#[test]
fn strict_keeps_the_figure_and_takes_no_wide_reading_for_the_class() {
    let (a, b) = (reading(100, 50, 0, 10, 5), reading(90, 40, 0, 8, 4));
    let mut evidence = Evidence { model: M::Auto, headless: Some(a), ..nothing() };
    evidence.journal = J::Clean;
    evidence.decoded = Some(b);
    let (wide, strict) = (merge(&evidence, false), merge(&evidence, true));
    assert_eq!((wide.bound, strict.bound), (Bound::Exact, Bound::AtLeast));
    assert_eq!(wide.figure, strict.figure);
    assert!(strict.reasons.contains(R::AutoModel));
}

#[test]
fn r34_r35_auto_is_exact_or_prefixed_other_names_are_concrete_and_none_is_unobserved() {
    for (model, want) in [
        (Some("auto"), M::Auto),
        (Some("auto-gemini-3"), M::Auto),
        (Some("automatic"), M::Concrete),
        (Some("my-auto"), M::Concrete),
        (Some("pro"), M::Concrete),
        (Some("flash"), M::Concrete),
        (Some("flash-lite"), M::Concrete),
        (Some("gemini-2.5-pro"), M::Concrete),
        (Some(""), M::Unobserved),
        (None, M::Unobserved),
    ] {
        assert_eq!(ModelSetting::of(model), want, "{model:?}");
    }
}

fn any_reading() -> impl Strategy<Value = Reading> {
    [0..4u64, 0..4, 0..4, 0..4, 0..4].prop_map(|[p, c, t, o, h]| reading(p, c, t, o, h))
}

fn any_evidence() -> impl Strategy<Value = Evidence> {
    let maybe = || proptest::option::of(any_reading());
    let journal = prop_oneof![
        Just(J::Clean),
        Just(EMPTY),
        Just(PROMPTED),
        Just(J::Torn),
        Just(FAILED),
        Just(J::Absent),
        Just(J::Unread)
    ];
    let marker = prop_oneof![Just(None), Just(Some((0, 0))), Just(Some((2, 1)))];
    (
        prop::sample::select(&Ending::ALL[..]),
        prop_oneof![Just(M::Concrete), Just(M::Auto), Just(M::Unobserved)],
        (maybe(), marker, any::<bool>()),
        (journal, maybe()),
        (maybe(), maybe(), any::<bool>(), any::<bool>()),
        any::<bool>(),
    )
        .prop_map(|(ending, model, (figure, marker, malformed), (journal, decoded), wide, lossy)| {
            let holds = matches!(journal, J::Clean | J::Torn | J::Failed(_));
            let decoded = decoded.filter(|_| holds);
            let decoded = if journal == J::Clean { decoded.or(Some(Reading::default())) } else { decoded };
            Evidence {
                ending,
                model,
                prompt: PromptResult { figure, marker, malformed: malformed && figure.is_none() },
                journal,
                decoded,
                headless: wide.0,
                telemetry: wide.1.map(|reading| Telemetry { reading, balanced: wide.2, gap: wide.3 }),
                lossy,
            }
        })
}

proptest! {
    #[test]
    fn no_figure_is_below_a_reading_and_none_without_any(e in any_evidence()) {
        let verdict = merge(&e, false);
        for other in Readings::of(&e).all() {
            prop_assert!(verdict.figure.is_some_and(|figure| dominates(&figure, &other)));
        }
        prop_assert_eq!(verdict.figure.is_none(), verdict.bound == Bound::Unmeasured);
    }

    #[test]
    fn only_a_watched_or_balanced_end_is_complete(e in any_evidence()) {
        let verdict = merge(&e, false);
        if verdict.bound == Bound::Exact {
            prop_assert!(matches!(e.ending, E::Normal | E::Unwatched) && !e.lossy);
            prop_assert!(e.telemetry.is_none_or(|t| t.balanced));
            let wide_telemetry = e.telemetry.is_some_and(|t| !t.gap);
            let wide = e.headless.is_some() || wide_telemetry;
            prop_assert!(wide || (e.ending == E::Normal && e.model == M::Concrete));
        }
        prop_assert_eq!(verdict.reasons.is_empty(), verdict.bound == Bound::Exact);
    }

    #[test]
    fn strict_never_changes_a_figure_nor_completes_an_automatic_model(e in any_evidence()) {
        let (wide, strict) = (merge(&e, false), merge(&e, true));
        prop_assert_eq!(wide.figure, strict.figure);
        prop_assert!(strict.bound != Bound::Exact || (e.model == M::Concrete && e.ending == E::Normal));
    }

    #[test]
    fn more_evidence_never_lowers_a_figure(e in any_evidence(), more in any_reading()) {
        let before = merge(&e, false);
        let with = Evidence { telemetry: Some(Telemetry { reading: more, balanced: true, gap: false }), ..e };
        if e.telemetry.is_none() && before.basis.iter().next().is_some() && before.figure != Some(Reading::default()) {
            let after = merge(&with, false).figure.unwrap();
            prop_assert!(before.figure.is_none_or(|figure| dominates(&after, &figure)));
        }
    }
}

/// The same cases through the specification's own program.
#[test]
fn the_oracle_agrees_on_random_cases() {
    let oracle = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/merge_rule.py");
    let script = "
import sys, json, importlib.util
spec = importlib.util.spec_from_file_location('merge_rule', sys.argv[1])
rule = importlib.util.module_from_spec(spec); spec.loader.exec_module(rule)
for line in sys.stdin:
    case = json.loads(line)
    t = lambda x: tuple(x) if x is not None else None
    figure, verdict = rule.merge(case['ending'], t(case['prompt']), t(case['marker']), case['journal'],
        t(case['sum']), case['model'], t(case['headless']), t(case['telemetry']), t(case['unbalanced']))
    print(json.dumps([figure, verdict]))
";
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let cases: Vec<_> = (0..20_000)
        .map(|_| any_evidence().new_tree(&mut runner).expect("a case").current())
        .filter(|e| !e.lossy && e.ending != E::Lapsed && e.telemetry.is_none_or(|t| !t.gap))
        .collect();
    let parts = |r: Reading| [r.prompt, r.cached, r.tool, r.output, r.thoughts];
    let mut input = String::new();
    for e in &cases {
        let filled = Readings::of(e);
        let case = serde_json::json!({
            "ending": match e.ending {
                E::Normal => "N", E::LoopOrLimit => "L", E::Unwatched | E::Lapsed => "D", E::Cancelled => "C",
                E::Error => "X", E::Killed => "K", E::Unknown => "U", E::Open => "O",
            },
            "prompt": filled.prompt.map(parts),
            "marker": e.prompt.marker.map(|(input, output)| [input, output]),
            "journal": match e.journal {
                J::Clean => "+", J::Empty { prompted: false } => "0", J::Empty { prompted: true } => "0u",
                J::Torn => "~", J::Failed(_) => "!", J::Absent => "absent", J::Unread => "unread",
            },
            "sum": e.decoded.map(parts),
            "model": if e.model == M::Concrete { "concrete" } else { "auto" },
            "headless": filled.headless.map(parts),
            "telemetry": filled.balanced.map(parts),
            "unbalanced": filled.unbalanced.map(parts),
        });
        input.push_str(&case.to_string());
        input.push('\n');
    }
    let mut child = Command::new("python3")
        .args(["-c", script, oracle])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("python3 runs");
    let mut stdin = child.stdin.take().expect("a pipe");
    let feeder = std::thread::spawn(move || std::io::Write::write_all(&mut stdin, input.as_bytes()));
    let output = child.wait_with_output().expect("it ends");
    feeder.join().expect("no panic").expect("all was read");
    let said: Vec<(Option<[u64; 5]>, String)> = String::from_utf8(output.stdout)
        .expect("text")
        .lines()
        .map(|line| serde_json::from_str(line).expect("an answer"))
        .collect();
    assert_eq!(said.len(), cases.len());
    assert!(said.iter().any(|(_, class)| class == "complete"));
    for (e, (figure, class)) in cases.iter().zip(said) {
        let verdict = merge(e, false);
        let ours = match verdict.bound {
            Bound::Exact => "complete",
            Bound::AtLeast => "lower_bound",
            Bound::Unmeasured => "unknown",
        };
        assert_eq!((verdict.figure.map(parts), ours), (figure, class.as_str()), "{e:?}");
    }
}
