//! `gemgauge run` as its callers see it: like the command itself.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ExitStatus, Stdio};

use gemgauge::ledger::doors::{Door, EventKind, Exit, HeadlessForm};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use sha2::{Digest, Sha256};

use crate::support::Sandbox;
use crate::support::poll::until;
use crate::support::skip::not_checked;
use crate::support::spool::{headless, kinds, only_turn};

const INIT: &str =
    r#"{"type":"init","timestamp":"2026-11-30T15:49:04.042Z","session_id":"e2700352","model":"auto"}"#;
const RESULT: &str = r#"{"type":"result","timestamp":"2026-11-30T15:49:05Z","status":"success","stats":{"total_tokens":100,"input_tokens":70,"output_tokens":20,"cached":7}}"#;

/// An agent that is a shell script.
fn agent(script: &str) -> [&str; 5] {
    ["run", "--", "sh", "-c", script]
}

/// A stream of one turn that ends so.
fn stream_then(last: &str) -> String {
    format!("printf '%s\\n' '{INIT}' '{RESULT}'; {last}")
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap()
}

/// Whether these tests were started deaf to interrupts, as a shell starts what
/// it sends to the background: then so is all that they start.
fn deaf() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap_or("0");
    let deaf = u64::from_str_radix(ignored.trim(), 16).unwrap() & 0b110 != 0;
    if deaf {
        not_checked("SIGINT and SIGQUIT are ignored here");
    }
    deaf
}

fn sha256(bytes: &[u8]) -> String {
    format!("{:x?}", Sha256::digest(bytes))
}

/// Bytes that no text has: invalid UTF-8, NUL, CR LF, no newline at the end.
fn hostile() -> Vec<u8> {
    let mut state = 7_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    };
    let mut bytes: Vec<u8> = (0..3_000_000).map(|_| next()).collect();
    bytes.extend_from_slice(b"\r\n\0\xff\xfe{\"type\":\"result\"\r\n{\n}\n\xc3");
    bytes
}

#[test]
fn r64_every_exit_code_is_the_runs_own() {
    let sandbox = Sandbox::new();
    for code in [0, 1, 41, 42, 44, 52, 53, 54, 55, 130, 173, 255] {
        let script = stream_then(&format!("exit {code}"));
        let said = sandbox.run(&agent(&script));
        assert_eq!(
            (said.code, said.out.as_str(), said.err.as_str()),
            (code, &*format!("{INIT}\n{RESULT}\n"), "")
        );
        let spools = sandbox.spools();
        let events = spools.last().unwrap();
        let (session, ran) = headless(events);
        assert_eq!((session, ran.exit, ran.success), ("e2700352", Some(Exit::Code(code)), true));
        assert_eq!(events.last().unwrap().kind, EventKind::ProcessEnded { exit: Some(Exit::Code(code)) });
    }
}

#[test]
fn r64_a_signal_that_ended_the_run_ends_the_wrapper() {
    let signals: &[i32] = if deaf() { &[9, 15, 6, 11, 13] } else { &[9, 15, 6, 11, 13, 2, 3] };
    for &signal in signals {
        let sandbox = Sandbox::new();
        let script = stream_then(&format!("kill -{signal} $$"));
        let output = sandbox.command(&agent(&script)).output().unwrap();
        assert_eq!(output.status.signal(), Some(signal), "{output:?}");
        assert!(output.stderr.is_empty(), "{output:?}");
        assert_eq!(headless(&sandbox.told()).1.exit, Some(Exit::Signal(signal)));
    }
}

#[test]
fn d3_the_events_of_a_run() {
    let sandbox = Sandbox::new();
    sandbox.run(&agent(&stream_then("exit 0")));
    let events = sandbox.told();
    let names = ["process_started", "session_opened", "turn_started", "turn_ended", "process_ended"];
    assert_eq!(kinds(&events), names);
    let EventKind::ProcessStarted { door, home, configured_runtime, remote, .. } = &events[0].kind else {
        panic!("{events:?}")
    };
    let real_home = sandbox.home().canonicalize().unwrap();
    assert_eq!((*door, *remote, configured_runtime.as_deref()), (Door::Run, false, None));
    assert_eq!(home.as_deref(), real_home.to_str());
    assert!(events[..3].iter().all(|event| event.at == events[0].at), "the turn began with the process");
    let stats = headless(&events).1.stats.as_ref().unwrap();
    let [stats] = &stats[..] else { panic!("{stats:?}") };
    assert_eq!((stats.prompt, stats.cached, stats.output, stats.thoughts_and_tool), (70, 7, 20, 10));
}

#[test]
fn r2_r11_home_and_runtime_are_those_of_the_command() {
    let sandbox = Sandbox::new();
    let gemini = sandbox.write("bin/gemini", "#!/bin/sh\nexit 0\n");
    std::fs::set_permissions(&gemini, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let other = sandbox.path().join("other");
    let mut command = sandbox.command(&["run", "--", gemini.to_str().unwrap(), "-p", "x"]);
    assert!(command.env("GEMINI_CLI_HOME", &other).status().unwrap().success());
    let EventKind::ProcessStarted { home, configured_runtime, .. } = &sandbox.told()[0].kind else {
        panic!()
    };
    assert_eq!(configured_runtime.as_deref(), Some("gemini"));
    assert!(home.as_deref().unwrap().ends_with("/other"));
    assert_eq!(kinds(&sandbox.told()), ["process_started", "process_ended"], "no session, no turn");
}

#[test]
fn r10_command_line_and_environment_are_the_commands_own() {
    let sandbox = Sandbox::new();
    let script =
        "tr '\\0' '\\n' < /proc/self/environ | sort; tr '\\0' '|' < /proc/$$/cmdline; pwd; ulimit -c";
    let words = ["sh", "-c", script, "sh", "", "two words", "-o", "--help", "--", "\u{e9}"];
    let wrapped = sandbox.run(&[&["run", "--"], &words[..]].concat());
    let mut alone = sandbox.command::<&str>(&[]);
    let mut plain = std::process::Command::new("sh");
    plain.args(&words[1..]).current_dir(sandbox.path()).env_clear();
    plain.envs(alone.stdin(Stdio::null()).get_envs().filter_map(|(name, value)| Some((name, value?))));
    let plain = plain.output().unwrap();
    assert_eq!(wrapped.out, String::from_utf8(plain.stdout).unwrap());
    assert_eq!((wrapped.code, wrapped.err.as_str()), (0, ""));
}

#[test]
fn d2_2_every_byte_of_both_streams_passes() {
    let sandbox = Sandbox::new();
    let file = sandbox.path().join("bytes");
    std::fs::write(&file, hostile()).unwrap();
    let output = sandbox.command(&agent("cat bytes; cat bytes bytes >&2")).output().unwrap();
    assert_eq!(sha256(&output.stdout), sha256(&hostile()));
    assert_eq!(sha256(&output.stderr), sha256(&hostile().repeat(2)));
    assert_eq!(kinds(&sandbox.told()), ["process_started", "process_ended"]);
}

#[test]
fn d2_2_a_line_of_64_mib_passes_and_is_not_held() {
    let sandbox = Sandbox::new();
    let script =
        format!("echo '{INIT}'; head -c 67108864 /dev/zero | tr '\\0' x; read go; echo; echo '{RESULT}'");
    let mut child =
        sandbox.command(&agent(&script)).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = child.stdout.take().unwrap();
    let mut got = vec![0; INIT.len() + 1 + (64 << 20)];
    output.read_exact(&mut got).unwrap();
    assert!(got[INIT.len() + 1..].iter().all(|&byte| byte == b'x'));
    // All of it went through: what it took shows in the process.
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kib: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(kib < 64 << 10, "the wrapper took {kib} KiB for a line of 65536 KiB");
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, format!("\n{RESULT}\n"));
    assert!(child.wait().unwrap().success());
    let events = sandbox.told();
    assert!(headless(&events).1.success);
    assert!(kinds(&events).contains(&"odd".to_owned()), "the line is counted");
}

#[test]
fn d2_2_both_streams_into_one_file_keep_their_order() {
    let sandbox = Sandbox::new();
    let script = "i=0; while [ $i -lt 300 ]; do echo out $i; echo err $i >&2; i=$((i+1)); done";
    let file = File::create(sandbox.path().join("both")).unwrap();
    let mut command = sandbox.command(&agent(script));
    let status = command.stdout(file.try_clone().unwrap()).stderr(file).status().unwrap();
    assert!(status.success());
    let want: String = (0..300).map(|i| format!("out {i}\nerr {i}\n")).collect();
    assert_eq!(std::fs::read_to_string(sandbox.path().join("both")).unwrap(), want);
}

#[test]
fn d2_2_a_partial_line_passes_at_once_and_standard_input_is_the_commands() {
    let sandbox = Sandbox::new();
    let mut child = sandbox
        .command(&agent("printf 'name? '; read name; echo \"hello $name\""))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = child.stdout.take().unwrap();
    let mut question = [0; 6];
    output.read_exact(&mut question).unwrap();
    assert_eq!(&question, b"name? ");
    child.stdin.take().unwrap().write_all(b"ana\n").unwrap();
    let mut answer = String::new();
    output.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "hello ana\n");
    assert!(child.wait().unwrap().success());
}

#[test]
fn d2_3_a_reader_that_goes_away_is_the_commands_business() {
    let sandbox = Sandbox::new();
    let mut child = sandbox.command(&["run", "--", "yes"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "y\n");
    assert_eq!(child.wait().unwrap().signal(), Some(13), "as it ends without us");
}

/// Starts an agent that waits to be told to end, and returns once it waits.
fn waiting(sandbox: &Sandbox, trap: &str) -> (Child, BufReader<std::process::ChildStdout>) {
    let script = format!("{trap}; echo '{INIT}'; echo ready; while :; do sleep 0.1; done");
    let mut child = sandbox.command(&agent(&script)).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while line != "ready\n" {
        line.clear();
        assert!(output.read_line(&mut line).unwrap() > 0, "it ended");
    }
    (child, output)
}

fn end(mut child: Child, mut output: BufReader<std::process::ChildStdout>) -> (ExitStatus, String) {
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    (child.wait().unwrap(), rest)
}

#[test]
fn row_40_an_interrupted_run_has_no_result_though_its_exit_is_0() {
    if deaf() {
        return;
    }
    let sandbox = Sandbox::new();
    let (child, output) = waiting(&sandbox, "trap 'echo bye; exit 0' INT");
    kill_process(pid(&child), Signal::INT).unwrap();
    let (status, rest) = end(child, output);
    assert_eq!((status.code(), rest.as_str()), (Some(0), "bye\n"));
    let events = sandbox.told();
    let (session, ran) = headless(&events);
    assert_eq!((session, ran.form, ran.success), ("e2700352", HeadlessForm::StreamJson, false));
    assert_eq!((&ran.stats, ran.exit), (&None, Some(Exit::Code(0))));
}

#[test]
fn d2_6_a_signal_reaches_the_whole_tree_of_the_run() {
    for (signal, number) in [(Signal::TERM, 15), (Signal::HUP, 1), (Signal::QUIT, 3)] {
        if signal == Signal::QUIT && deaf() {
            continue;
        }
        let sandbox = Sandbox::new();
        // The launcher hears nothing; what it started does.
        let inner = "trap 'echo got it; exit 3' TERM HUP QUIT; echo ready; while :; do sleep 0.1; done";
        let script =
            format!("trap 'true' TERM HUP QUIT; sh -c \"{inner}\"; echo launcher saw $?; kill -{number} $$");
        let script = script.replace("kill -", "trap - TERM HUP QUIT; kill -");
        let mut child = sandbox.command(&agent(&script)).stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        kill_process(pid(&child), signal).unwrap();
        let (status, rest) = end(child, output);
        assert_eq!(rest, "got it\nlauncher saw 3\n");
        assert_eq!(status.signal(), Some(number));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn d2_1_the_run_does_not_outlive_a_wrapper_that_was_killed() {
    let sandbox = Sandbox::new();
    let (child, output) = waiting(&sandbox, "echo $$ > agent; trap 'exit 0' TERM");
    let agent = std::fs::read_to_string(sandbox.path().join("agent")).unwrap();
    let agent = Pid::from_raw(agent.trim().parse().unwrap()).unwrap();
    kill_process(pid(&child), Signal::KILL).unwrap();
    assert_eq!(end(child, output).0.signal(), Some(9));
    until("the agent to end", || match test_kill_process(agent) {
        Err(rustix::io::Errno::SRCH) => Ok(()),
        there => Err(there),
    });
}

#[test]
fn d2_6_what_outlives_the_run_does_not_hold_the_wrapper() {
    let sandbox = Sandbox::new();
    let mut child =
        sandbox.command(&agent("sleep 600 & echo $!; exit 5")).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    let status = child.wait().unwrap();
    kill_process(Pid::from_raw(line.trim().parse().unwrap()).unwrap(), Signal::KILL).unwrap();
    assert_eq!(status.code(), Some(5));
}

#[test]
fn d2_7_what_cannot_start_is_127_or_126_and_leaves_nothing() {
    let sandbox = Sandbox::new();
    let plain = sandbox.write("not-a-program", "text");
    for (program, code) in
        [("gemgauge-no-such-program", 127), ("./nowhere", 127), (plain.to_str().unwrap(), 126)]
    {
        let said = sandbox.run(&["run", "--", program]);
        assert_eq!((said.code, said.out.as_str()), (code, ""), "{said:?}");
        assert!(said.err.starts_with(&format!("gemgauge: {program} cannot be started: ")), "{said:?}");
    }
    assert_eq!(sandbox.spools().len(), 0);
}

#[test]
fn d2_5_without_a_place_for_the_spool_the_run_goes_on_in_silence() {
    let sandbox = Sandbox::new();
    sandbox.write("home/.local/state/gemgauge/spool", "a file where the directory should be");
    let said = sandbox.run(&agent(&stream_then("exit 42")));
    assert_eq!((said.code, said.err.as_str()), (42, ""));
    assert_eq!(said.out, format!("{INIT}\n{RESULT}\n"));
}

#[test]
fn d2_7_a_configuration_that_is_wrong_does_not_stop_the_run() {
    let sandbox = Sandbox::new();
    sandbox.write("home/.config/gemgauge/config.yml", "dbb: x\n");
    let said = sandbox.run(&agent(&stream_then("exit 0")));
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    assert_eq!(headless(&sandbox.told()).0, "e2700352");
}

#[test]
fn r63_as_a_pipe_it_copies_and_sees_a_turn_without_an_exit() {
    let sandbox = Sandbox::new();
    let text = format!("{INIT}\nnot json\n{RESULT}\n");
    let file = sandbox.write("saved.jsonl", &text);
    let mut command = sandbox.command(&["run"]);
    let output = command.stdin(File::open(file).unwrap()).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    assert_eq!(output.stdout, text.as_bytes());
    let events = sandbox.told();
    assert_eq!(
        kinds(&events),
        ["process_started", "session_opened", "turn_started", "odd", "turn_ended", "process_ended"]
    );
    let (session, ran) = headless(&events);
    assert_eq!((session, ran.success, ran.exit), ("e2700352", true, None));
    // When it happened, not when it was read.
    assert_eq!((events[2].at, events[4].at), (1_796_053_744_042, 1_796_053_745_000));
}

#[test]
fn r65_a_saved_document_is_read_from_a_pipe_too() {
    let sandbox = Sandbox::new();
    let saved = crate::support::files::fixture("recordings/headless-auto/result.json");
    let mut command = sandbox.command(&["run"]);
    let output = command.stdin(File::open(&saved).unwrap()).output().unwrap();
    assert_eq!(output.stdout, std::fs::read(saved).unwrap());
    let events = sandbox.told();
    let (session, ran) = headless(&events);
    assert_eq!((session, ran.form), ("ae73700c-833f-464a-8f6f-60134ca82029", HeadlessForm::Json));
    assert_eq!(ran.stats.as_ref().unwrap().len(), 2);
}

#[test]
fn r63_a_pipe_with_nothing_or_anything_in_it_is_copied() {
    for bytes in [Vec::new(), hostile()] {
        let sandbox = Sandbox::new();
        std::fs::write(sandbox.path().join("input"), &bytes).unwrap();
        let input = File::open(sandbox.path().join("input")).unwrap();
        let output = sandbox.command(&["run"]).stdin(input).output().unwrap();
        assert!(output.status.success() && output.stdout == bytes);
        assert_eq!(kinds(&sandbox.told()), ["process_started", "process_ended"]);
    }
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path().join("input"), hostile()).unwrap();
    let input = File::open(sandbox.path().join("input")).unwrap();
    let mut child = sandbox.command(&["run"]).stdin(input).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().signal(), Some(13), "as any filter whose reader has seen enough");
}

#[test]
fn r65_a_fatal_error_names_its_session_on_standard_error() {
    let sandbox = Sandbox::new();
    let document = "{\n  \"session_id\": \"s-1\",\n  \"error\": {\n    \"code\": 1\n  }\n}";
    let said =
        sandbox.run(&agent(&format!("echo 'Warning: x' >&2; printf '%s\\n' '{document}' >&2; exit 1")));
    assert_eq!((said.code, said.out.as_str()), (1, ""));
    assert_eq!(said.err, format!("Warning: x\n{document}\n"));
    let events = sandbox.told();
    let (session, ran) = headless(&events);
    assert_eq!((session, ran.form, ran.success), ("s-1", HeadlessForm::Json, false));
    assert!(!only_turn(&events).1.unread);
}
