//! The speed of the spine, as ratios within one run: `cargo bench`.
//!
//! Each figure is measured against something of the same moment on the same
//! machine (`wc -l` over the same files, a bare start of the program), so that
//! a slow or busy machine moves both. Targets and what was seen stand in
//! `docs/performance.md`. `GEMGAUGE_BENCH_SMALL=1` takes a tenth of the corpus.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark owns its clock and its files, and fails by panicking"
)]

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_gemgauge");

fn main() {
    // `cargo test` runs benches too, without `--bench`: nothing to do then.
    if !std::env::args().any(|arg| arg == "--bench") {
        return;
    }
    let small = std::env::var_os("GEMGAUGE_BENCH_SMALL").is_some();
    let room = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench");
    fs::create_dir_all(&room).unwrap();
    let corpus = corpus(&room, if small { "small" } else { "big" }, if small { 200 } else { 2000 }, 4300);
    import(&room, &corpus);
    one_large_journal(&room);
    one_line(&room);
    scrape(&room, small);
}

/// Cold import and second run against `wc -l` over the same files.
fn import(room: &Path, corpus: &Path) {
    let db = room.join("import.db");
    let report = ["report", "--home", corpus.to_str().unwrap(), "--db", db.to_str().unwrap()];
    let count =
        ["sh", "-c", "find \"$0\" -name '*.jsonl' -print0 | xargs -0 wc -l", corpus.to_str().unwrap()];
    let (mut cpu, mut wall, mut peak, mut again) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let bare = measure(&[PROGRAM, "--version"]);
    for round in 0..7 {
        remove(&db);
        let lines = measure(&count);
        let cold = measure(&[&[PROGRAM], &report[..]].concat());
        let warm = measure(&[&[PROGRAM], &report[..]].concat());
        if round == 0 {
            continue; // warms the page cache
        }
        cpu.push(cold.cpu / lines.cpu);
        wall.push(cold.wall / lines.wall);
        peak.push((cold.peak_mib - bare.peak_mib).max(0.0));
        again.push(warm.wall * 1000.0);
    }
    show("cold import, CPU of wc -l", "x", &mut cpu, 2.5);
    show("cold import, wall time of wc -l", "x", &mut wall, 2.0);
    show("cold import, peak above a bare start", "MiB", &mut peak, 32.0);
    show("second run, nothing new", "ms", &mut again, 30.0);
    remove(&db);
}

/// One journal of 400 MB: the memory must not follow the file.
fn one_large_journal(room: &Path) {
    let home = room.join("large");
    let chats = home.join(".gemini/tmp/p/chats");
    fs::create_dir_all(&chats).unwrap();
    let path = chats.join("session-2026-08-20T10-00-aaaaaaaa.jsonl");
    if fs::metadata(&path).map_or(0, |m| m.len()) < 400_000_000 {
        let mut file = std::io::BufWriter::new(File::create(&path).unwrap());
        file.write_all(HEADER.as_bytes()).unwrap();
        let text = "x".repeat(200_000);
        for n in 0..2100 {
            writeln!(file, "{}", answer(n, &text)).unwrap();
        }
    }
    let db = room.join("large.db");
    let bare = measure(&[PROGRAM, "--version"]);
    let mut peak = Vec::new();
    for _ in 0..3 {
        remove(&db);
        let run =
            measure(&[PROGRAM, "report", "--home", home.to_str().unwrap(), "--db", db.to_str().unwrap()]);
        peak.push((run.peak_mib - bare.peak_mib).max(0.0));
    }
    show("one journal of 400 MB, peak above a bare start", "MiB", &mut peak, 32.0);
    remove(&db);
}

/// From an appended line to a scrape that shows it.
fn one_line(room: &Path) {
    let home = room.join("live");
    let _ = fs::remove_dir_all(&home);
    let chats = home.join(".gemini/tmp/p/chats");
    fs::create_dir_all(&chats).unwrap();
    let path = chats.join("session-2026-08-20T10-00-aaaaaaaa.jsonl");
    fs::write(&path, format!("{HEADER}{}\n", answer(0, "hello"))).unwrap();
    let db = room.join("live.db");
    remove(&db);
    let serve = Serve::start(&home, &db);
    let mut seen = Vec::new();
    for n in 1..=40 {
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        writeln!(file, "{}", answer(n, "hello")).unwrap();
        let appended = Instant::now();
        let want = format!("role=\"main\"}} {}\n", n + 1);
        while !serve
            .get("/metrics")
            .lines()
            .any(|l| l.starts_with("gemgauge_requests_total{") && format!("{l}\n").ends_with(&want))
        {
            assert!(appended.elapsed() < Duration::from_secs(10), "line {n} never showed");
        }
        seen.push(appended.elapsed().as_secs_f64() * 1000.0);
    }
    show("an appended line of a known series, to a scrape", "ms", &mut seen, 50.0);
    drop(serve);
    remove(&db);
}

/// A scrape with 100,000 requests in the ledger.
fn scrape(room: &Path, small: bool) {
    let home = corpus(room, if small { "thin-small" } else { "thin" }, if small { 240 } else { 2400 }, 200);
    let db = room.join("thin.db");
    remove(&db);
    let serve = Serve::start(&home, &db);
    let mut took = Vec::new();
    for _ in 0..50 {
        let started = Instant::now();
        assert!(serve.get("/metrics").contains("gemgauge_tokens_total"));
        took.push(started.elapsed().as_secs_f64() * 1000.0);
    }
    show("a scrape with about 100,000 requests", "ms", &mut took, 5.0);
    drop(serve);
    remove(&db);
}

const HEADER: &str = "{\"sessionId\":\"aaaaaaaa-1\",\"projectHash\":\"h\",\"startTime\":\"2026-08-20T10:00:00.000Z\",\
    \"lastUpdated\":\"2026-08-20T10:00:00.000Z\",\"kind\":\"main\"}\n";

fn answer(n: usize, text: &str) -> String {
    format!(
        "{{\"id\":\"g{n}\",\"timestamp\":\"2026-08-20T10:00:05.000Z\",\"type\":\"gemini\",\"content\":\"{text}\",\
         \"thoughts\":[],\"tokens\":{{\"input\":100,\"output\":10,\"cached\":0,\"thoughts\":5,\"tool\":0,\
         \"total\":115}},\"model\":\"gemini-2.5-pro\"}}"
    )
}

/// Prints median and range of a figure beside its target.
fn show(what: &str, unit: &str, values: &mut [f64], target: f64) {
    values.sort_by(f64::total_cmp);
    let (least, median, most) = (values[0], values[values.len() / 2], values[values.len() - 1]);
    let verdict = if median <= target { "within" } else { "ABOVE" };
    println!(
        "{what:<50} {median:>8.2} {unit:<3} ({least:.2} to {most:.2}), {verdict} the target of {target}"
    );
}

fn remove(db: &Path) {
    for suffix in ["", "-wal", "-shm", ".lock"] {
        let _ = fs::remove_file(format!("{}{suffix}", db.display()));
    }
}

fn corpus(room: &Path, name: &str, sessions: u32, bytes: u32) -> PathBuf {
    let out = room.join(format!("corpus-{name}"));
    if !out.join("done").exists() {
        let made = Command::new("python3")
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/corpus/gen_corpus.py"))
            .args(["--seed", "11", "--projects", "60", "--requests", "40"])
            .args(["--sessions", &sessions.to_string(), "--content-bytes", &bytes.to_string()])
            .arg("--out")
            .arg(&out)
            .stdout(Stdio::null())
            .status()
            .unwrap();
        assert!(made.success(), "the corpus generator failed");
        fs::write(out.join("done"), "").unwrap();
    }
    out
}

/// What a process took.
struct Took {
    cpu: f64,
    wall: f64,
    peak_mib: f64,
}

/// Runs a command to its end; the system accounts for it and its children.
fn measure(command: &[&str]) -> Took {
    const SCRIPT: &str = "import resource, subprocess, sys, time
start = time.monotonic()
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
wall = time.monotonic() - start
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, wall, used.ru_maxrss / 1024)";
    let out = Command::new("python3").args(["-c", SCRIPT]).args(command).output().unwrap();
    assert!(out.status.success(), "{command:?}: {}", String::from_utf8_lossy(&out.stderr));
    let text = String::from_utf8(out.stdout).unwrap();
    let mut numbers = text.split_whitespace().map(|n| n.parse().unwrap());
    let mut next = || numbers.next().unwrap();
    Took { cpu: next(), wall: next(), peak_mib: next() }
}

/// A running service.
struct Serve {
    child: Child,
    address: String,
}

impl Serve {
    /// Starts it and waits until the first import is done.
    fn start(home: &Path, db: &Path) -> Self {
        let mut child = Command::new(PROGRAM)
            .args(["serve", "--web.listen-address", "127.0.0.1:0", "--home"])
            .arg(home)
            .arg("--db")
            .arg(db)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let address = line.split("http://").nth(1).unwrap().split('/').next().unwrap().to_owned();
        let serve = Self { child, address };
        let started = Instant::now();
        while !serve.get("/-/ready").starts_with("ready") {
            assert!(started.elapsed() < Duration::from_secs(120), "never ready");
            std::thread::sleep(Duration::from_millis(10));
        }
        serve
    }

    /// The body of a page.
    fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default()
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
