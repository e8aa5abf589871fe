//! What the real CLI said over ACP, played to the observer.

use std::path::PathBuf;

use gemgauge::ledger::doors::{DoorEvent, EventKind, Exit};
use gemgauge::sources::acp::observer::Observer;

use crate::support::files::{files, fixture};
use crate::support::transcript::{self, Line, expected};

fn recordings() -> Vec<PathBuf> {
    let mut found = files(&fixture("recordings"));
    found.retain(|path| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        name.starts_with("acp") && path.extension().is_some_and(|extension| extension == "jsonl")
    });
    assert!(found.len() >= 10, "{found:?}");
    found
}

/// Plays the frames, each direction cut into pieces of so many bytes.
fn played(lines: &[Line], piece: usize) -> Vec<DoorEvent> {
    let mut events = Vec::new();
    let mut observer = Observer::new(None);
    let mut sink = |event| events.push(event);
    for Line { at, by_client, text, .. } in lines {
        for part in format!("{text}\n").as_bytes().chunks(piece) {
            if *by_client {
                observer.client(*at, part, &mut sink);
            } else {
                observer.agent(*at, part, &mut sink);
            }
        }
    }
    observer.end(0, Some(Exit::Code(0)), &mut sink);
    events
}

fn kinds(lines: &[Line], piece: usize) -> Vec<EventKind> {
    played(lines, piece).into_iter().map(|event| event.kind).collect()
}

#[test]
fn d2_4_every_recorded_conversation_tells_what_its_messages_say() {
    for path in recordings() {
        let lines = transcript::read(&path);
        let mut want = expected(&lines);
        want.push(EventKind::ProcessEnded { exit: Some(Exit::Code(0)) });
        assert!(want.len() > 2, "{}", path.display());
        for piece in [1, 7, 4096, usize::MAX] {
            assert_eq!(kinds(&lines, piece), want, "{}", path.display());
        }
    }
}

/// One line an event, for the eye.
fn told(recording: &str) -> Vec<String> {
    let lines = transcript::read(&fixture(&format!("recordings/{recording}")));
    let word = |kind| match kind {
        EventKind::Handshake { name, version } => {
            format!("{} {}", name.unwrap_or_default(), version.unwrap_or_default())
        }
        EventKind::SessionOpened { model, resumed, .. } => {
            format!("{} {}", if resumed { "load" } else { "new" }, model.unwrap_or_default())
        }
        EventKind::ModelSet { model, .. } => format!("set {}", model.unwrap_or_default()),
        EventKind::TurnStarted { turn, .. } => format!("start {turn}"),
        EventKind::CancelSent { turn, .. } => format!("cancel {}", turn.unwrap_or_default()),
        EventKind::TurnEnded { turn, result, .. } => {
            let (input, output) = result.marker.unwrap_or_default();
            format!("end {turn} {} {input}/{output}", result.stop_reason.unwrap_or_default())
        }
        EventKind::ProcessEnded { .. } => "over".to_owned(),
        other => format!("{other:?}"),
    };
    kinds(&lines, 4096).into_iter().map(word).collect()
}

#[test]
fn r36_a_concrete_model_a_change_a_command_and_late_usage() {
    assert_eq!(
        told("acp-concrete/acp.jsonl"),
        [
            "gemini-cli 0.61.0",
            "new gemini-2.5-pro",
            "start 3#1",
            "end 3#1 end_turn 5111/113",
            "start 4#2",
            "end 4#2 end_turn 15999/417",
            "set gemini-2.5-flash",
            "start 6#3",
            "end 6#3 end_turn 11221/343",
            "start 7#4",
            "end 7#4 end_turn 0/0",
            "start 8#5",
            "end 8#5 end_turn 0/0",
            "over",
        ]
    );
}

#[test]
fn r37_a_cancel_meets_the_prompt_that_is_open_and_not_the_next() {
    assert_eq!(
        told("acp-cancel/acp.jsonl")[4..],
        [
            "start 4#2",
            "cancel 4#2",
            "end 4#2 cancelled 0/0",
            "start 5#3",
            "end 5#3 end_turn 5444/152",
            "over"
        ]
    );
}

#[test]
fn r42_a_loaded_session_replays_without_a_turn() {
    assert_eq!(
        told("acp-load/acp-2-load.jsonl"),
        ["gemini-cli 0.61.0", "load gemini-2.5-pro", "start 3#1", "end 3#1 end_turn 10777/291", "over"]
    );
}

#[test]
fn r34_an_automatic_model_is_named_as_it_is() {
    assert_eq!(told("acp-auto/acp.jsonl")[1], "new auto");
}
