//! Outfiles as they grow, break and begin anew.

use std::path::{Path, PathBuf};

use gemgauge::ledger::telemetry::{OutfileCursor, OutfileStep, RecordKey, TelemetryBatch};
use gemgauge::sources::otlp::json;
use gemgauge::sources::otlp::outfile::tail::Limits;
use gemgauge::sources::otlp::outfile::{OutfileState, Outfiles};

use crate::support::files::{append, write};
use crate::support::otlp::{OUTFILES, outfile, request_of};

const NOW: i64 = 1_796_060_000_000;
/// Long ago: nobody writes it any more.
const QUIET: i64 = NOW - 60_000;

/// An outfile of a test, and the source that reads it.
struct Room {
    path: PathBuf,
    source: Outfiles,
    _dir: tempfile::TempDir,
}

impl Room {
    fn new() -> Self {
        Self::with(Limits::default())
    }

    fn with(limits: Limits) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("telemetry.log");
        let source = Outfiles::new([(path.clone(), OutfileCursor::default())], limits);
        Self { path, source, _dir: dir }
    }

    fn look(&mut self) -> Vec<OutfileStep> {
        let mut steps = Vec::new();
        self.source
            .look(NOW, &mut |step| {
                steps.push(step);
                Ok(())
            })
            .unwrap();
        steps
    }

    fn state(&self) -> OutfileState {
        self.source.states().next().unwrap().1.clone()
    }
}

/// All that the steps held. They must follow on each other.
fn together(steps: &[OutfileStep]) -> TelemetryBatch {
    let mut whole = TelemetryBatch::default();
    for step in steps {
        whole.records.extend(step.batch.records.clone());
        whole.malformed += step.batch.malformed;
        whole.dropped += step.batch.dropped;
    }
    whole
}

fn keys(batch: &TelemetryBatch) -> Vec<RecordKey> {
    RecordKey::of_batch(&batch.records)
}

/// A small file: the log records around one answer, without their resources.
fn small() -> String {
    let text = outfile("list-sessions");
    let values =
        serde_json::Deserializer::from_str(&text).into_iter::<serde_json::Value>().map(Result::unwrap);
    let mut small = String::new();
    for mut value in values.filter(|value| value.get("hrTime").is_some()) {
        value
            .as_object_mut()
            .unwrap()
            .retain(|key, _| ["hrTime", "hrTimeObserved", "attributes", "_body"].contains(&key.as_str()));
        small.push_str(&serde_json::to_string_pretty(&value).unwrap());
        small.push('\n');
    }
    small
}

#[test]
fn r66_an_outfile_reads_as_the_same_content_over_otlp() {
    for recording in OUTFILES {
        let text = outfile(recording);
        let mut room = Room::new();
        write(&room.path.clone(), text.as_bytes(), QUIET);
        let steps = room.look();
        let batch = together(&steps);
        let over_otlp = json::logs(request_of(&text).to_string().as_bytes()).unwrap();
        assert_eq!(batch.records, over_otlp.records, "{recording}");
        assert_eq!(batch.malformed, 0, "{recording}");
        assert!(batch.dropped > over_otlp.dropped, "spans and metrics too: {recording}");
        assert_eq!(steps.last().unwrap().to.offset, text.len() as u64);
        assert!(room.look().is_empty(), "nothing new");
    }
}

#[test]
fn r66_a_file_that_grows_by_one_cut_anywhere_has_the_same_records() {
    let text = small();
    let whole = json::logs(request_of(&text).to_string().as_bytes()).unwrap();
    let mut room = Room::new();
    for cut in 0..=text.len() {
        write(&room.path, &text.as_bytes()[..cut], NOW);
        room.source.reset(room.path.clone(), OutfileCursor::default());
        let mut steps = room.look();
        append(&room.path, &text.as_bytes()[cut..], QUIET);
        steps.extend(room.look());
        assert!(steps.iter().all(|step| !step.restarted), "{cut}");
        assert!(steps.windows(2).all(|pair| pair[1].from == (pair[0].to.offset, pair[0].to.marker)), "{cut}");
        let batch = together(&steps);
        assert_eq!(batch.records, whole.records, "{cut}");
        assert_eq!(batch.malformed, 0, "{cut}");
    }
}

#[test]
fn r66_what_a_killed_process_left_costs_itself_alone() {
    let text = small();
    let whole = json::logs(request_of(&text).to_string().as_bytes()).unwrap();
    let first_end = text.find("\n}\n").unwrap() + 3;
    let mut room = Room::new();
    // One value torn after each of its bytes, and a process that begins behind it.
    for cut in 1..first_end {
        let torn = format!("{}{text}", &text[..cut]);
        write(&room.path, torn.as_bytes(), QUIET);
        room.source.reset(room.path.clone(), OutfileCursor::default());
        let batch = together(&room.look());
        // Whole but for its newline, it counts.
        let unfinished = cut < first_end - 1;
        let before = if unfinished { &[][..] } else { &whole.records[..1] };
        assert_eq!(batch.records, [before, &whole.records].concat(), "{cut}");
        assert_eq!(batch.malformed, u64::from(unfinished), "{cut}: {}", &text[..cut]);
    }
}

#[test]
fn r71_a_file_that_was_replaced_or_cut_is_read_anew_with_the_same_keys() {
    let text = outfile("telemetry-outfile");
    let mut room = Room::new();
    write(&room.path, text.as_bytes(), QUIET);
    let first = together(&room.look());
    // Cut to nothing, then longer than before with another head.
    write(&room.path, b"", QUIET + 1);
    let steps = room.look();
    assert!(steps[0].restarted && steps[0].to.offset == 0 && together(&steps).records.is_empty());
    let longer = format!("{}{text}", outfile("list-sessions"));
    write(&room.path, longer.as_bytes(), QUIET + 2);
    let again = together(&room.look());
    assert!(again.records.ends_with(&first.records));
    write(&room.path, text.as_bytes(), QUIET + 3);
    let steps = room.look();
    assert!(steps[0].restarted);
    assert_eq!(keys(&together(&steps)), keys(&first));
}

#[test]
fn r71_small_steps_have_the_keys_of_one_large_one() {
    let text = outfile("interactive-telemetry");
    let mut whole = Room::new();
    write(&whole.path.clone(), text.as_bytes(), QUIET);
    let whole = together(&whole.look());
    for step_bytes in [1, 5_000, 50_000] {
        let mut room = Room::with(Limits { step_bytes, ..Limits::default() });
        write(&room.path.clone(), text.as_bytes(), QUIET);
        let steps = room.look();
        assert!(steps.len() > 3, "{step_bytes}");
        let batch = together(&steps);
        assert_eq!(batch, whole, "{step_bytes}: no response is parted from its twin");
    }
}

#[test]
fn r66_a_response_waits_for_its_twin_while_the_file_is_written() {
    let text = small();
    let response = text.find("gemini_cli.api_response").unwrap();
    let begins = text[..response].rfind("\n{\n").unwrap() + 1;
    let ends = response + text[response..].find("\n}\n").unwrap() + 3;
    let mut room = Room::new();
    write(&room.path, &text.as_bytes()[..ends], NOW);
    let steps = room.look();
    assert_eq!(steps.last().unwrap().to.offset, begins as u64);
    // Once nobody writes any more it is taken as it is.
    write(&room.path, &text.as_bytes()[..ends], QUIET);
    let late = room.look();
    assert_eq!((late[0].batch.records.len(), late[0].to.offset), (1, ends as u64));
}

#[test]
fn r72_a_value_over_the_cap_is_passed_over_and_counted() {
    let text = small();
    let whole = json::logs(request_of(&text).to_string().as_bytes()).unwrap();
    let huge = format!(
        "{{\n  \"hrTime\": [\n{}  ],\n  \"x\": \"{}\"\n}}\n",
        "    1,\n".repeat(4000),
        "y".repeat(9000)
    );
    let line = format!("{{\n  \"x\": \"{}\"\n}}\n", "y".repeat(50_000));
    for too_long in [&huge, &line] {
        let mut room = Room::with(Limits { max_value_bytes: 20_000, ..Limits::default() });
        write(&room.path.clone(), format!("{too_long}{text}").as_bytes(), QUIET);
        let batch = together(&room.look());
        assert_eq!(batch.records, whole.records);
        assert_eq!(batch.malformed, 1);
    }
}

#[test]
fn values_on_one_line_and_other_json_are_read_too() {
    let compact: Vec<String> = serde_json::Deserializer::from_str(&small())
        .into_iter::<serde_json::Value>()
        .map(|value| value.unwrap().to_string())
        .collect();
    let whole = json::logs(request_of(&small()).to_string().as_bytes()).unwrap();
    let mut room = Room::new();
    let text = format!("\n{}\n\n{{}}\n{{\"attributes\": 7}}\nno json at all\n}}\n", compact.join("\r\n"));
    write(&room.path.clone(), text.as_bytes(), QUIET);
    let batch = together(&room.look());
    assert_eq!((batch.records, batch.malformed), (whole.records, 2));
}

#[test]
fn r73_an_outfile_is_a_plain_file_or_none() {
    let mut room = Room::new();
    room.look();
    assert_eq!(room.state(), OutfileState::Absent);
    std::fs::create_dir(&room.path).unwrap();
    room.look();
    assert!(matches!(room.state(), OutfileState::Failed(_)));
    std::fs::remove_dir(&room.path).unwrap();
    #[cfg(unix)]
    {
        let elsewhere = room.path.with_file_name("elsewhere");
        write(&elsewhere, small().as_bytes(), QUIET);
        std::os::unix::fs::symlink(&elsewhere, &room.path).unwrap();
        assert!(room.look().is_empty());
        assert!(matches!(room.state(), OutfileState::Failed(_)));
        std::fs::remove_file(&room.path).unwrap();
    }
    write(Path::new(&room.path), small().as_bytes(), QUIET);
    assert!(!room.look().is_empty());
    assert_eq!(room.state(), OutfileState::Read);
}
