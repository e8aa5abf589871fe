//! The process's own numbers under the names every client library uses, read
//! from `/proc` (Linux only).

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use super::family::{Descriptor, Family, Kind};

pub static CPU: Descriptor = Descriptor {
    name: "process_cpu_seconds_total",
    kind: Kind::Counter,
    help: "Processor time spent, user and system",
    labels: &[],
};

pub static OPEN_FDS: Descriptor = gauge("process_open_fds", "Open file descriptors");
pub static MAX_FDS: Descriptor =
    gauge("process_max_fds", "File descriptors it may open; absent where there is no limit");
pub static VIRTUAL: Descriptor = gauge("process_virtual_memory_bytes", "Virtual memory size");
pub static RESIDENT: Descriptor = gauge("process_resident_memory_bytes", "Resident memory size");
pub static START_TIME: Descriptor =
    gauge("process_start_time_seconds", "When the process started, unix time");
pub static THREADS: Descriptor = gauge("process_threads", "Threads of the process");

pub(super) static DESCRIPTORS: [&Descriptor; 7] =
    [&CPU, &OPEN_FDS, &MAX_FDS, &VIRTUAL, &RESIDENT, &START_TIME, &THREADS];

const fn gauge(name: &'static str, help: &'static str) -> Descriptor {
    Descriptor { name, kind: Kind::Gauge, help, labels: &[] }
}

/// One reading of `/proc`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sample {
    pub(super) cpu_seconds: f64,
    pub(super) open_fds: u64,
    pub(super) max_fds: Option<u64>,
    pub(super) virtual_bytes: u64,
    pub(super) resident_bytes: u64,
    /// Unix seconds.
    pub(super) start_time: f64,
    pub(super) threads: u64,
}

/// Reads this process's numbers; `None` on systems without `/proc`.
///
/// # Errors
/// `/proc` is there and cannot be read or understood.
pub(super) fn read() -> io::Result<Option<Sample>> {
    if cfg!(target_os = "linux") { read_from(Path::new("/proc")).map(Some) } else { Ok(None) }
}

fn read_from(proc: &Path) -> io::Result<Sample> {
    let own = proc.join("self");
    let text = |path: &Path| read_all(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let Stat { ticks, threads, start_ticks, virtual_bytes } =
        Stat::parse(&text(&own.join("stat"))?).ok_or_else(|| unreadable("stat"))?;
    let (tick, page) = auxv(&read_all(&own.join("auxv"))?);
    let boot = boot_time(&text(&proc.join("stat"))?).ok_or_else(|| unreadable("btime"))?;
    let resident_pages = text(&own.join("statm"))?
        .split_ascii_whitespace()
        .nth(1)
        .and_then(|pages| pages.parse::<u64>().ok())
        .ok_or_else(|| unreadable("statm"))?;
    // The listing itself holds one descriptor open.
    let open_fds = std::fs::read_dir(own.join("fd"))?.count().saturating_sub(1);
    Ok(Sample {
        cpu_seconds: ticks as f64 / tick,
        open_fds: open_fds as u64,
        max_fds: max_fds(&text(&own.join("limits"))?),
        virtual_bytes,
        resident_bytes: resident_pages.saturating_mul(page),
        start_time: boot as f64 + start_ticks as f64 / tick,
        threads,
    })
}

/// The file's first bytes; `/proc` writes far less than the limit.
fn read_all(path: &Path) -> io::Result<Vec<u8>> {
    const LIMIT: u64 = 1 << 20;
    let mut bytes = Vec::new();
    File::open(path)?.take(LIMIT).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn unreadable(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("/proc has no {what} as proc(5) describes it"))
}

/// Fields of `/proc/self/stat` (proc(5)).
struct Stat {
    /// User and system time.
    ticks: u64,
    threads: u64,
    /// Since boot.
    start_ticks: u64,
    virtual_bytes: u64,
}

impl Stat {
    fn parse(stat: &str) -> Option<Self> {
        // The second field is the program's name in parentheses: anything may be in it.
        let (_, rest) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        Some(Self {
            ticks: field(14)?.saturating_add(field(15)?),
            threads: field(20)?,
            start_ticks: field(22)?,
            virtual_bytes: field(23)?,
        })
    }
}

/// Clock ticks a second and the page size in bytes, from the auxiliary vector
/// (getauxval(3)); the usual 100 and 4096 where it does not say.
fn auxv(bytes: &[u8]) -> (f64, u64) {
    const PAGE_SIZE: u64 = 6;
    const CLOCK_TICKS: u64 = 17;
    const WORD: usize = size_of::<usize>();
    let (mut ticks, mut page) = (100, 4096);
    let word = |chunk: &[u8]| chunk.try_into().map(usize::from_ne_bytes).ok().map(|word| word as u64);
    for pair in bytes.chunks_exact(2 * WORD) {
        match (word(&pair[..WORD]), word(&pair[WORD..])) {
            (Some(CLOCK_TICKS), Some(value)) if value > 0 => ticks = value,
            (Some(PAGE_SIZE), Some(value)) if value > 0 => page = value,
            _ => {}
        }
    }
    (ticks as f64, page)
}

/// When the system booted, unix seconds, from `/proc/stat`.
fn boot_time(stat: &str) -> Option<u64> {
    stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

/// The soft limit of open files; `None` if unlimited or not said.
fn max_fds(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

pub(super) fn collect(sample: Option<&Sample>) -> Vec<Family> {
    let Some(sample) = sample else { return Vec::new() };
    let mut families = vec![
        Family::single(&CPU, sample.cpu_seconds),
        Family::single(&OPEN_FDS, sample.open_fds as f64),
        Family::single(&VIRTUAL, sample.virtual_bytes as f64),
        Family::single(&RESIDENT, sample.resident_bytes as f64),
        Family::single(&START_TIME, sample.start_time),
        Family::single(&THREADS, sample.threads as f64),
    ];
    families.extend(sample.max_fds.map(|max| Family::single(&MAX_FDS, max as f64)));
    families
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_name_with_spaces_and_parentheses_shifts_no_field() {
        let stat = "42 (a) b (c)) S 1 42 42 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 9 0 12345 10485760 300 1";
        let stat = Stat::parse(stat).expect("parses");
        assert_eq!(
            (stat.ticks, stat.threads, stat.start_ticks, stat.virtual_bytes),
            (300, 9, 12_345, 10_485_760)
        );
    }

    #[test]
    fn limits_and_boot_time() {
        let limits = "Limit  Soft Limit  Hard Limit  Units\nMax open files            1024                 4096  files\n";
        assert_eq!(max_fds(limits), Some(1024));
        assert_eq!(
            max_fds("Max open files            unlimited            unlimited            files\n"),
            None
        );
        assert_eq!(boot_time("cpu 1 2 3\nbtime 1790000000\nprocesses 5\n"), Some(1_790_000_000));
    }

    #[test]
    fn the_auxiliary_vector_falls_back_to_the_usual() {
        let words: Vec<u8> = [17_usize, 250, 6, 16_384].iter().flat_map(|word| word.to_ne_bytes()).collect();
        assert_eq!(auxv(&words), (250.0, 16_384));
        assert_eq!(auxv(&[1, 2, 3]), (100.0, 4096));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_can_be_read() {
        let sample = read().expect("readable").expect("Linux has it");
        assert!(sample.threads >= 1 && sample.open_fds >= 3 && sample.resident_bytes > 1 << 20);
        assert!(sample.start_time > 1.6e9);
    }
}
