//! How a proxied session ends: every end is passed on, and nothing is left
//! running (accounting D2 6 and 7, R64).

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, Stdio};

use gemgauge::ledger::doors::{EventKind, Exit};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use crate::support::Sandbox;
use crate::support::acp::{Client, agent};
use crate::support::poll::{until, until_eq};

/// Tells where it is, then becomes or does what follows.
fn telling(script: &str) -> [String; 3] {
    ["sh".into(), "-c".into(), format!("echo $$; {script}")]
}

fn start(mut command: Command) -> Child {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
}

fn first_line(child: &mut Child) -> String {
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    line.trim().to_owned()
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

fn pid(text: &str) -> Pid {
    Pid::from_raw(text.trim().parse().unwrap()).unwrap()
}

/// Runs, and is no zombie that nobody looks after.
fn runs(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    test_kill_process(pid).is_ok() && !stat.rsplit(") ").next().unwrap_or_default().starts_with('Z')
}

fn exit_told(sandbox: &Sandbox) -> Option<Exit> {
    let events = sandbox.events();
    let Some(EventKind::ProcessEnded { exit }) = events.last() else { panic!("{events:?}") };
    *exit
}

#[test]
fn r64_the_exit_code_of_the_agent_is_that_of_the_proxy() {
    for code in [0, 1, 42, 53, 255] {
        let sandbox = Sandbox::new();
        let script = format!("exit {code}");
        let status = sandbox.proxy(&["sh", "-c", &script]).stdin(Stdio::null()).status().unwrap();
        assert_eq!(status.code(), Some(code));
        assert_eq!(exit_told(&sandbox), Some(Exit::Code(code)));
    }
}

#[test]
fn r64_the_signal_that_ended_the_agent_ends_the_proxy() {
    for number in [9, 15, 2, 6, 11, 13] {
        let sandbox = Sandbox::new();
        let script = format!("ulimit -c 0; kill -{number} $$");
        let status = sandbox.proxy(&["sh", "-c", &script]).stdin(Stdio::null()).status().unwrap();
        assert_eq!((status.code(), status.signal()), (None, Some(number)));
        assert_eq!(exit_told(&sandbox), Some(Exit::Signal(number)));
    }
}

#[test]
fn d2_7_what_cannot_be_started_is_said_in_a_sentence() {
    let sandbox = Sandbox::new();
    let said = sandbox.run(&["acp", "--", "/no/such/agent", "--acp"]);
    assert_eq!((said.code, said.out.as_str()), (127, ""));
    assert!(said.err.starts_with("gemgauge: /no/such/agent cannot be started: "), "{said:?}");
    assert_eq!(said.err.lines().count(), 1);
    let file = sandbox.write("agent", "no program");
    assert_eq!(sandbox.run(&["acp", "--", file.to_str().unwrap()]).code, 126);
    assert_eq!(sandbox.run(&["acp"]).code, 2);
    assert_eq!(sandbox.run(&["acp", "--no-such-option", "cat"]).code, 2);
    assert!(!sandbox.spool().exists(), "nothing ran");
}

#[test]
fn d2_6_the_end_of_the_clients_input_is_the_agents() {
    let sandbox = Sandbox::new();
    let mut child = start(sandbox.proxy(&["sh", "-c", "cat; echo bye; exit 7"]));
    child.stdin.take().unwrap().write_all(b"hello ").unwrap();
    let mut said = String::new();
    child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!((child.wait().unwrap().code(), said.as_str()), (Some(7), "hello bye\n"));
}

#[test]
fn d2_6_an_agent_that_closes_its_output_early_is_waited_for() {
    let sandbox = Sandbox::new();
    let mut child = start(sandbox.proxy(&["sh", "-c", "echo x; exec >&-; cat >/dev/null; exit 5"]));
    let mut said = String::new();
    // The client sees the end of the output while the agent still runs.
    child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(said, "x\n");
    assert!(child.try_wait().unwrap().is_none());
    drop(child.stdin.take());
    assert_eq!(child.wait().unwrap().code(), Some(5));
}

#[test]
fn d2_6_a_client_that_stops_reading_is_gone_for_the_agent_too() {
    let sandbox = Sandbox::new();
    let mut child = start(sandbox.proxy(&["yes"]));
    assert_eq!(first_line(&mut child), "y");
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().signal(), Some(13), "as in a pipe");
}

#[test]
fn d2_6_an_agent_that_stops_reading_is_gone_for_the_client_too() {
    let sandbox = Sandbox::new();
    let mut child = start(sandbox.proxy(&["sh", "-c", "exec <&-; echo x; exec sleep 600"]));
    assert_eq!(first_line(&mut child), "x");
    let mut input = child.stdin.take().unwrap();
    let error = until("a broken pipe", || input.write_all(b"hello\n").err().ok_or("written"));
    assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
    signal(&child, Signal::TERM);
    assert_eq!(child.wait().unwrap().signal(), Some(15));
}

#[test]
fn d2_6_a_signal_to_the_proxy_alone_ends_the_agent_and_all_it_started() {
    for asked in [Signal::TERM, Signal::INT, Signal::HUP] {
        let sandbox = Sandbox::new();
        let pids = sandbox.path().join("pids");
        let Some(agent) = agent("family", &[pids.to_str().unwrap()]) else { return };
        let mut child = start(sandbox.proxy(&agent));
        let text = until("the family", || fs::read_to_string(&pids));
        let family: Vec<Pid> = text.split(' ').map(pid).collect();
        assert!(family.iter().all(|pid| runs(*pid)));
        signal(&child, asked);
        let status = child.wait().unwrap();
        assert_eq!(status.signal(), Some(asked.as_raw()), "{asked:?}: {status:?}");
        assert!(family.iter().all(|pid| !runs(*pid)), "{asked:?}");
    }
}

#[test]
fn d2_6_who_does_not_listen_is_killed_after_a_while() {
    let sandbox = Sandbox::new();
    // Neither the launcher nor its child heeds the signal or the end of its input.
    let script = "trap '' TERM; sleep 600 & echo $! > pid; while :; do wait; done";
    let mut child = start(sandbox.proxy(&telling(script)));
    let launcher = pid(&first_line(&mut child));
    let below = until("the child", || {
        let text = fs::read_to_string(sandbox.path().join("pid")).unwrap_or_default();
        if text.ends_with('\n') { Ok(pid(&text)) } else { Err(text) }
    });
    signal(&child, Signal::TERM);
    assert_eq!(child.wait().unwrap().signal(), Some(9));
    assert!(!runs(launcher) && !runs(below));
}

#[test]
fn d2_6_a_child_that_outlives_its_launcher_is_killed_too() {
    let sandbox = Sandbox::new();
    let script = "sh -c \"trap '' TERM; echo \\$\\$ > pid; while :; do sleep 600; done\" & exec sleep 600";
    let mut child = start(sandbox.proxy(&telling(script)));
    first_line(&mut child);
    let below = until("the child", || {
        let text = fs::read_to_string(sandbox.path().join("pid")).unwrap_or_default();
        if text.ends_with('\n') { Ok(pid(&text)) } else { Err(text) }
    });
    signal(&child, Signal::TERM);
    assert_eq!(child.wait().unwrap().signal(), Some(15), "the launcher's own end");
    assert!(!runs(below));
}

#[test]
fn d2_6_whoever_kills_the_proxy_ends_the_agent() {
    let sandbox = Sandbox::new();
    let mut child = start(sandbox.proxy(&telling("exec sleep 600")));
    let agent = pid(&first_line(&mut child));
    child.kill().unwrap();
    child.wait().unwrap();
    until_eq("the agent's end", &false, || runs(agent));
}

#[test]
fn d2_6_a_client_that_is_killed_ends_the_agent() {
    let sandbox = Sandbox::new();
    let Some(agent) = agent("talk", &[]) else { return };
    let mut client = Client::start(sandbox.proxy(&agent));
    client.one_turn();
    let proxy = client.proxy.id();
    // All that is left of a client that was killed: closed pipes.
    drop(client);
    until_eq("the proxy's end", &false, || runs(Pid::from_raw(proxy.cast_signed()).unwrap()));
    until_eq("the end in the spool", &true, || {
        matches!(sandbox.events().last(), Some(EventKind::ProcessEnded { exit: Some(Exit::Code(0)) }))
    });
}

#[test]
fn d2_6_an_ignored_signal_stays_ignored_by_the_agent() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.bare(&["sh", "-c", "trap '' HUP; exec \"$@\"", "sh"]);
    command.arg(env!("CARGO_BIN_EXE_gemgauge")).args(["acp", "--"]).args(telling("cat; exit 4"));
    let mut child = start(command);
    let agent = pid(&first_line(&mut child));
    let ignored = |pid: Pid| {
        let status = fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap().trim().to_owned();
        u64::from_str_radix(&line, 16).unwrap() & 1
    };
    assert_eq!(ignored(agent), 1);
    signal(&child, Signal::HUP);
    drop(child.stdin.take());
    assert_eq!(child.wait().unwrap().code(), Some(4));
}

#[test]
fn d2_6_what_the_agent_said_waits_for_a_client_that_is_slow_to_read() {
    let sandbox = Sandbox::new();
    // More than the client's pipe takes, and less than keeps the agent from its end.
    let mut child = start(sandbox.proxy(&["sh", "-c", "head -c 120000 /dev/zero | tr '\\0' x; exit 5"]));
    let mut output = child.stdout.take().unwrap();
    // Longer than the proxy waits for what an agent left behind.
    std::thread::sleep(std::time::Duration::from_secs(7));
    let mut said = Vec::new();
    output.read_to_end(&mut said).unwrap();
    assert_eq!((said.len(), child.wait().unwrap().code()), (120_000, Some(5)));
}

#[test]
fn d2_6_what_an_agent_leaves_behind_does_not_keep_the_proxy_for_ever() {
    let sandbox = Sandbox::new();
    let mut child = start(sandbox.proxy(&["sh", "-c", "sleep 600 & echo $!; exit 6"]));
    let left = pid(&first_line(&mut child));
    assert_eq!(child.wait().unwrap().code(), Some(6));
    assert!(runs(left), "nobody asked for its end");
    kill_process(left, Signal::KILL).unwrap();
}

#[test]
fn d2_1_the_agent_is_in_the_clients_process_group() {
    let sandbox = Sandbox::new();
    let mut child = start(sandbox.proxy(&telling("cat")));
    let agent = pid(&first_line(&mut child));
    let group = |pid: Pid| rustix::process::getpgid(Some(pid)).unwrap();
    assert_eq!(group(agent), rustix::process::getpgrp());
    drop(child.stdin.take());
    child.wait().unwrap();
}
