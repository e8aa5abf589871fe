//! `gemgauge run` around the real Gemini CLI: what it prints and how it ends is
//! what it prints and how it ends alone, and what it says of itself is what
//! the API billed.

use std::path::{Path, PathBuf};

use gemgauge::ledger::doors::{Exit, Headless, HeadlessForm};
use serde_json::Value;

use crate::live_cli::{cli, recorder};
use crate::support::Sandbox;
use crate::support::spool::{headless, kinds};

/// A scenario, played in a home of its own.
struct Played {
    sandbox: Sandbox,
    out: PathBuf,
}

fn play(cli: &Path, scenario: &str, wrapped: bool) -> Played {
    let sandbox = Sandbox::new();
    let out = sandbox.path().join("out");
    let mut command = recorder(&sandbox, cli, scenario, &out);
    if wrapped {
        let wrapper = serde_json::json!([env!("CARGO_BIN_EXE_gemgauge"), "run", "--"]).to_string();
        command.args(["--behind", &wrapper]);
    }
    let played = command.output().unwrap();
    let said = [played.stdout, played.stderr].concat();
    assert!(played.status.success(), "{scenario}: {}", String::from_utf8_lossy(&said));
    Played { sandbox, out }
}

impl Played {
    fn text(&self, file: &str) -> String {
        std::fs::read_to_string(self.out.join(file)).unwrap_or_default()
    }

    /// How the CLI ended, in the recorder's words.
    fn exit(&self) -> String {
        let commands = self.text("COMMANDS.txt");
        commands.lines().find(|line| line.starts_with("# exit ")).expect("it ended").to_owned()
    }

    /// What a file holds, without what no two runs share.
    fn lines(&self, file: &str) -> Vec<Value> {
        let text = self.text(file);
        let documents = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
        documents.map(|document| scrubbed(document.unwrap())).collect()
    }

    fn run(&self) -> (String, Headless) {
        let events = self.sandbox.told();
        let names = ["process_started", "session_opened", "turn_started", "turn_ended", "process_ended"];
        assert_eq!(kinds(&events), names);
        let (session, ran) = headless(&events);
        (session.to_owned(), ran.clone())
    }

    /// Prompt, cached, output, thoughts and tool, as billed.
    fn billed(&self) -> [u64; 4] {
        let mut sums = [0; 4];
        for line in self.text("billed.jsonl").lines() {
            let row: Value = serde_json::from_str(line).unwrap();
            let count = |key: &str| row["usage"][key].as_u64().unwrap_or(0);
            let rest = count("thoughtsTokenCount") + count("toolUsePromptTokenCount");
            let parts = [
                count("promptTokenCount"),
                count("cachedContentTokenCount"),
                count("candidatesTokenCount"),
                rest,
            ];
            sums.iter_mut().zip(parts).for_each(|(sum, part)| *sum += part);
        }
        sums
    }
}

fn stated(ran: &Headless) -> [u64; 4] {
    let mut sums = [0; 4];
    for stats in ran.stats.iter().flatten() {
        let parts = [stats.prompt, stats.cached, stats.output, stats.thoughts_and_tool];
        sums.iter_mut().zip(parts).for_each(|(sum, part)| *sum += part);
    }
    sums
}

/// Without ids, times and durations.
fn scrubbed(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.into_iter().filter(|(name, _)| {
                !["session_id", "timestamp", "duration_ms", "durationMs", "totalDurationMs", "totalLatencyMs"]
                    .contains(&name.as_str())
            });
            kept.map(|(name, value)| (name, scrubbed(value))).collect::<serde_json::Map<_, _>>().into()
        }
        Value::Array(items) => items.into_iter().map(scrubbed).collect(),
        other => other,
    }
}

#[test]
fn d3_the_real_cli_behind_the_wrapper_says_the_same_and_all_of_it_is_counted() {
    let Some(cli) = cli() else { return };
    for (scenario, file, form) in [
        ("headless-auto", "stream.jsonl", HeadlessForm::StreamJson),
        ("headless-tool", "result.json", HeadlessForm::Json),
    ] {
        let (alone, wrapped) = (play(&cli, scenario, false), play(&cli, scenario, true));
        assert_eq!(wrapped.lines(file), alone.lines(file), "{scenario}");
        assert!(!wrapped.lines(file).is_empty());
        assert_eq!((wrapped.exit(), alone.exit()), ("# exit 0".into(), "# exit 0".into()));
        let (session, ran) = wrapped.run();
        assert_eq!((ran.form, ran.success, ran.exit), (form, true, Some(Exit::Code(0))), "{scenario}");
        assert_eq!(stated(&ran), wrapped.billed(), "{scenario}: the router's request too");
        assert!(wrapped.text(file).contains(&session));
        assert_eq!(alone.sandbox.spools().len(), 0);
    }
}

#[test]
fn row_40_the_real_cli_interrupted_behind_the_wrapper() {
    let Some(cli) = cli() else { return };
    let (alone, wrapped) = (play(&cli, "headless-sigint", false), play(&cli, "headless-sigint", true));
    assert_eq!(wrapped.exit(), alone.exit());
    for played in [&alone, &wrapped] {
        let text = played.text("stream.jsonl");
        assert!(text.contains(r#""type":"init""#) && !text.contains(r#""type":"result""#), "{text}");
    }
    let (session, ran) = wrapped.run();
    assert!(wrapped.text("stream.jsonl").contains(&session));
    assert_eq!((ran.form, ran.success, ran.stats), (HeadlessForm::StreamJson, false, None));
    assert_eq!(wrapped.exit(), format!("# exit {}", code(ran.exit)));
}

#[test]
fn r65_a_fatal_error_of_the_real_cli_behind_the_wrapper() {
    let Some(cli) = cli() else { return };
    let (alone, wrapped) = (play(&cli, "headless-cut", false), play(&cli, "headless-cut", true));
    assert_eq!((wrapped.exit(), wrapped.text("result.json")), (alone.exit(), alone.text("result.json")));
    let (session, ran) = wrapped.run();
    assert!(wrapped.text("result.json.stderr").contains(&session));
    assert_eq!((ran.form, ran.success, &ran.stats), (HeadlessForm::Json, false, &None));
    assert_eq!(wrapped.exit(), format!("# exit {}", code(ran.exit)));
    assert_ne!(wrapped.exit(), "# exit 0");
}

fn code(exit: Option<Exit>) -> i32 {
    match exit {
        Some(Exit::Code(code)) => code,
        other => panic!("{other:?}"),
    }
}
