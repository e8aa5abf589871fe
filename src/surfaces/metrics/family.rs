//! Descriptors and the families built from them at each scrape.

use prometheus::proto::{Bucket, Counter, Gauge, Histogram, LabelPair, Metric, MetricFamily, MetricType};

use crate::health::{DurationHistogram, DurationReading};

/// What a metric is: everything but its values. The documentation is made of these.
pub struct Descriptor {
    pub name: &'static str,
    pub kind: Kind,
    /// One sentence without a full stop.
    pub help: &'static str,
    pub labels: &'static [Label],
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

/// The samples of one metric at one scrape.
pub struct Family {
    descriptor: &'static Descriptor,
    metrics: Vec<Metric>,
}

impl Family {
    #[must_use]
    pub fn new(descriptor: &'static Descriptor) -> Self {
        Self { descriptor, metrics: Vec::new() }
    }

    /// Adds a sample; `labels` are the values in the descriptor's order.
    pub fn add(&mut self, labels: &[&str], value: f64) {
        let mut metric = self.metric(labels);
        match self.descriptor.kind {
            Kind::Counter => {
                let mut counter = Counter::default();
                counter.set_value(value);
                metric.set_counter(counter);
            }
            Kind::Gauge => {
                let mut gauge = Gauge::default();
                gauge.set_value(value);
                metric.set_gauge(gauge);
            }
            Kind::Histogram => unreachable!("a histogram is added as one reading"),
        }
        self.metrics.push(metric);
    }

    /// Adds a sample of a count. Above 2^53 its last digits go: the exposition is f64.
    pub fn add_count(&mut self, labels: &[&str], value: u64) {
        self.add(labels, value as f64);
    }

    pub fn add_durations(&mut self, reading: &DurationReading) {
        let buckets = DurationHistogram::BOUNDS.iter().zip(reading.cumulative).map(|(bound, count)| {
            let mut bucket = Bucket::default();
            bucket.set_upper_bound(*bound);
            bucket.set_cumulative_count(count);
            bucket
        });
        let mut histogram = Histogram::default();
        histogram.set_bucket(buckets.collect());
        histogram.set_sample_count(reading.count());
        histogram.set_sample_sum(reading.sum_seconds);
        let mut metric = self.metric(&[]);
        metric.set_histogram(histogram);
        self.metrics.push(metric);
    }

    /// The family with its only sample.
    #[must_use]
    pub fn single(descriptor: &'static Descriptor, value: f64) -> Self {
        let mut family = Self::new(descriptor);
        family.add(&[], value);
        family
    }

    fn metric(&self, labels: &[&str]) -> Metric {
        assert_eq!(labels.len(), self.descriptor.labels.len(), "{} has these labels", self.descriptor.name);
        let pairs = self.descriptor.labels.iter().zip(labels).map(|(label, value)| {
            let mut pair = LabelPair::default();
            pair.set_name(label.name.to_owned());
            pair.set_value((*value).to_owned());
            pair
        });
        Metric::from_label(pairs.collect())
    }

    /// The family as the encoders take it; `None` where there is no sample.
    #[must_use]
    pub fn finish(self) -> Option<MetricFamily> {
        if self.metrics.is_empty() {
            return None;
        }
        let mut family = MetricFamily::default();
        family.set_name(self.descriptor.name.to_owned());
        family.set_help(self.descriptor.help.to_owned());
        family.set_field_type(match self.descriptor.kind {
            Kind::Counter => MetricType::COUNTER,
            Kind::Gauge => MetricType::GAUGE,
            Kind::Histogram => MetricType::HISTOGRAM,
        });
        family.set_metric(self.metrics);
        Some(family)
    }
}
