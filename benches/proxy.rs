//! What the proxy costs: latency that it adds to a frame at 1,000 frames a
//! second, and its memory. `cargo bench --bench proxy`; figures are printed,
//! targets and what was seen stand in `docs/performance.md`.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark owns its clock and its files, and fails by panicking"
)]

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_gemgauge");
const FRAMES: usize = 5000;
const EVERY: Duration = Duration::from_millis(1);

fn main() {
    // `cargo test` runs benches too, without `--bench`: nothing to do then.
    if !std::env::args().any(|arg| arg == "--bench") {
        return;
    }
    let room = tempfile::tempdir().unwrap();
    let home = room.path().to_str().unwrap();
    let (mut bare, mut proxied) = (Vec::new(), Vec::new());
    let mut memory = 0;
    // In turns, so that a busy moment of the machine meets both.
    for _ in 0..3 {
        bare.extend(echo(&["cat"], home).0);
        let (latencies, kib) = echo(&[PROGRAM, "acp", "--", "cat"], home);
        proxied.extend(latencies);
        memory = memory.max(kib);
    }
    bare.sort_unstable();
    proxied.sort_unstable();
    for part in [0.5, 0.99] {
        let (without, with) = (at(&bare, part), at(&proxied, part));
        println!(
            "a frame there and back, p{:.0}: {without} µs, behind the proxy {with} µs: {} µs more",
            part * 100.0,
            with.saturating_sub(without)
        );
    }
    println!("memory of the proxy at its highest: {:.1} MiB", f64::from(memory) / 1024.0);
}

/// Sends frames at the pace of 1,000 a second to what sends them back.
/// Microseconds for each, and the peak memory of the process in KiB.
fn echo(command: &[&str], home: &str) -> (Vec<u64>, u32) {
    let mut child = Command::new(command[0])
        .args(&command[1..])
        .env("HOME", home)
        .env("XDG_STATE_HOME", home)
        .env("XDG_DATA_HOME", home)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut output = BufReader::new(output);
    let text = "x".repeat(300);
    let frame =
        format!("{{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{{\"text\":\"{text}\"}}}}\n");
    let mut latencies = Vec::with_capacity(FRAMES);
    let mut line = String::new();
    let started = Instant::now();
    for n in 0..FRAMES {
        let due = EVERY * u32::try_from(n).unwrap();
        std::thread::sleep(due.saturating_sub(started.elapsed()));
        let sent = Instant::now();
        input.write_all(frame.as_bytes()).unwrap();
        line.clear();
        output.read_line(&mut line).unwrap();
        latencies.push(u64::try_from(sent.elapsed().as_micros()).unwrap());
        assert_eq!(line.len(), frame.len());
    }
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    let peak =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().split(' ').next()?.parse().ok());
    drop(input);
    child.wait().unwrap();
    (latencies, peak.unwrap_or(0))
}

fn at(sorted: &[u64], part: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "an index between 0 and the length"
    )]
    let index = ((sorted.len() - 1) as f64 * part) as usize;
    sorted[index]
}
