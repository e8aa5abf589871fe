//! The scrape about itself: is the ledger readable, which collector worked,
//! what was built. These make "exporter down" and "ledger broken" two things.

use std::time::Duration;

use super::family::{Descriptor, Family, Kind, Label};

/// A part of a scrape that can fail by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collector {
    /// Rows of the ledger, in one read transaction.
    Ledger,
    /// Sizes of the ledger's files.
    LedgerFiles,
    /// The process's own numbers, where the system has them.
    Process,
}

impl Collector {
    pub const ALL: [Self; 3] = [Self::Ledger, Self::LedgerFiles, Self::Process];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ledger => "ledger",
            Self::LedgerFiles => "ledger_files",
            Self::Process => "process",
        }
    }
}

fn collectors() -> Vec<&'static str> {
    Collector::ALL.map(Collector::as_str).to_vec()
}

pub static UP: Descriptor = Descriptor {
    name: "gemgauge_up",
    kind: Kind::Gauge,
    help: "Whether the ledger could be read (1)",
    labels: &[],
};

pub static SUCCESS: Descriptor = Descriptor {
    name: "gemgauge_scrape_collector_success",
    kind: Kind::Gauge,
    help: "Whether this part of the scrape succeeded (1)",
    labels: &[Label::closed("collector", collectors)],
};

pub static DURATION: Descriptor = Descriptor {
    name: "gemgauge_scrape_collector_duration_seconds",
    kind: Kind::Gauge,
    help: "How long this part of the scrape took",
    labels: &[Label::closed("collector", collectors)],
};

pub static BUILD_INFO: Descriptor = Descriptor {
    name: "gemgauge_build_info",
    kind: Kind::Gauge,
    help: "What was built, always 1",
    labels: &[
        Label::open("version", "version of gemgauge"),
        Label::open("revision", "revision of the source, or `unknown`"),
        Label::open("rustc", "version of the compiler, or `unknown`"),
    ],
};

pub(super) static DESCRIPTORS: [&Descriptor; 4] = [&UP, &SUCCESS, &DURATION, &BUILD_INFO];

/// What was built.
#[derive(Clone, Debug)]
pub struct BuildInfo {
    pub version: String,
    pub revision: String,
    pub rustc: String,
}

impl BuildInfo {
    /// What the build says of itself: `GEMGAUGE_REVISION` and `GEMGAUGE_RUSTC`,
    /// where they were set while compiling.
    #[must_use]
    pub fn compiled() -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            revision: option_env!("GEMGAUGE_REVISION").unwrap_or("unknown").to_owned(),
            rustc: option_env!("GEMGAUGE_RUSTC").unwrap_or("unknown").to_owned(),
        }
    }
}

/// How one collector fared.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fared {
    pub(super) collector: Collector,
    pub(super) success: bool,
    pub(super) took: Duration,
}

pub(super) fn collect(fared: [Fared; 3], build: &BuildInfo) -> [Family; 4] {
    let ledger = fared.iter().any(|f| f.collector == Collector::Ledger && f.success);
    let mut success = Family::new(&SUCCESS);
    let mut duration = Family::new(&DURATION);
    for Fared { collector, success: ok, took } in fared {
        success.add(&[collector.as_str()], f64::from(ok));
        duration.add(&[collector.as_str()], took.as_secs_f64());
    }
    let mut info = Family::new(&BUILD_INFO);
    info.add(&[&build.version, &build.revision, &build.rustc], 1.0);
    [Family::single(&UP, f64::from(ledger)), success, duration, info]
}
