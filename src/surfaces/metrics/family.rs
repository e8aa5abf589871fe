//! Descriptors and the families built from them at each scrape.

use std::fmt::{Display, Write};

use crate::health::{DurationHistogram, DurationReading};

/// What a metric is: everything but its values. The documentation is made of these.
pub struct Descriptor {
    pub name: &'static str,
    pub kind: Kind,
    /// One sentence without a full stop.
    pub help: &'static str,
    pub labels: &'static [Label],
}

impl Descriptor {
    /// What OpenMetrics calls its family: of a counter without `_total`.
    #[must_use]
    pub fn open_metrics_family(&self) -> &'static str {
        match self.kind {
            Kind::Counter => self.name.strip_suffix("_total").unwrap_or(self.name),
            Kind::Gauge | Kind::Histogram => self.name,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Never falls, survives restarts where it comes from the ledger.
    Counter,
    Gauge,
    Histogram,
}

impl Kind {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// A label name and what may stand in it.
pub struct Label {
    pub name: &'static str,
    pub values: Values,
}

pub enum Values {
    /// Whatever the ledger knows; the text says what it is.
    Open(&'static str),
    /// Only these, and each of them from the start.
    Closed(fn() -> Vec<&'static str>),
}

impl Label {
    pub const fn open(name: &'static str, meaning: &'static str) -> Self {
        Self { name, values: Values::Open(meaning) }
    }

    pub const fn closed(name: &'static str, list: fn() -> Vec<&'static str>) -> Self {
        Self { name, values: Values::Closed(list) }
    }
}

/// The samples of one metric at one scrape, already as the lines that both
/// text forms share: a dashboard's scrape has ten thousand of them.
pub struct Family {
    descriptor: &'static Descriptor,
    lines: String,
}

impl Family {
    #[must_use]
    pub fn new(descriptor: &'static Descriptor) -> Self {
        Self { descriptor, lines: String::new() }
    }

    #[must_use]
    pub fn descriptor(&self) -> &'static Descriptor {
        self.descriptor
    }

    /// Sample lines, each with its newline.
    #[must_use]
    pub fn lines(&self) -> &str {
        &self.lines
    }

    /// Adds a sample; `labels` are the values in the descriptor's order.
    pub fn add(&mut self, labels: &[&str], value: f64) {
        self.series("", labels, None);
        // "+Inf" is the one number that Rust spells in another way.
        if value == f64::INFINITY {
            self.lines.push_str(" +Inf\n");
        } else {
            self.end(value);
        }
    }

    /// Adds a sample of a count. Above 2^53 its last digits go: the exposition is f64.
    pub fn add_count(&mut self, labels: &[&str], value: u64) {
        const EXACT: u64 = 1 << 53;
        self.series("", labels, None);
        if value <= EXACT { self.end(value) } else { self.end(value as f64) }
    }

    pub fn add_durations(&mut self, reading: &DurationReading) {
        for (bound, count) in DurationHistogram::BOUNDS.iter().zip(reading.cumulative) {
            // Bounds are never whole numbers, so both forms spell them alike.
            self.series("_bucket", &[], Some(&bound.to_string()));
            self.end(count);
        }
        self.series("_bucket", &[], Some("+Inf"));
        self.end(reading.count());
        self.series("_sum", &[], None);
        self.end(reading.sum_seconds);
        self.series("_count", &[], None);
        self.end(reading.count());
    }

    /// The family with its only sample.
    #[must_use]
    pub fn single(descriptor: &'static Descriptor, value: f64) -> Self {
        let mut family = Self::new(descriptor);
        family.add(&[], value);
        family
    }

    /// Name and labels of a sample.
    fn series(&mut self, suffix: &str, labels: &[&str], le: Option<&str>) {
        let Descriptor { name, labels: names, .. } = self.descriptor;
        assert_eq!(labels.len(), names.len(), "{name} has these labels");
        self.lines.push_str(name);
        self.lines.push_str(suffix);
        let names = names.iter().map(|label| label.name);
        let mut open = '{';
        for (label, value) in names.zip(labels.iter().copied()).chain(le.map(|bound| ("le", bound))) {
            self.lines.push(open);
            self.lines.push_str(label);
            self.lines.push_str("=\"");
            escape(&mut self.lines, value, true);
            self.lines.push('"');
            open = ',';
        }
        if open == ',' {
            self.lines.push('}');
        }
    }

    fn end(&mut self, value: impl Display) {
        writeln!(self.lines, " {value}").expect("a String takes everything");
    }
}

/// Writes a text so that it stays on its line, and in its quotes where it has some.
pub(in crate::surfaces) fn escape(out: &mut String, text: &str, quoted: bool) {
    let mut rest = text;
    while let Some(at) = rest.find(['\\', '\n', '"']) {
        out.push_str(&rest[..at]);
        match rest.as_bytes()[at] {
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            _ if quoted => out.push_str("\\\""),
            _ => out.push('"'),
        }
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
}
