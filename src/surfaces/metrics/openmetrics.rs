//! OpenMetrics 1.0.0 over the same families as the text form.
//!
//! What differs: the family of a counter is named without `_total`, a unit is
//! said where it is the suffix, `"` is escaped in help too, `# EOF` ends it.
//! `_created` lines are left out: Prometheus 2 stores them as series of their own.

use std::fmt::Write;

use prometheus::proto::{Metric, MetricFamily, MetricType};

/// Units said in `# UNIT`, where a family's name ends in one.
const UNITS: [&str; 2] = ["seconds", "bytes"];

/// Writes the families, `# EOF` included.
pub(super) fn encode(families: &[MetricFamily]) -> String {
    let mut out = String::new();
    for family in families {
        write_family(&mut out, family).expect("a String takes everything");
    }
    out.push_str("# EOF\n");
    out
}

fn write_family(out: &mut String, family: &MetricFamily) -> std::fmt::Result {
    let sample = family.name();
    let (kind, name) = match family.get_field_type() {
        MetricType::COUNTER => ("counter", sample.strip_suffix("_total").unwrap_or(sample)),
        MetricType::GAUGE => ("gauge", sample),
        MetricType::HISTOGRAM => ("histogram", sample),
        MetricType::SUMMARY | MetricType::UNTYPED => unreachable!("no collector makes one"),
    };
    writeln!(out, "# TYPE {name} {kind}")?;
    if let Some(unit) = UNITS.into_iter().find(|unit| name.rsplit('_').next() == Some(unit)) {
        writeln!(out, "# UNIT {name} {unit}")?;
    }
    writeln!(out, "# HELP {name} {}", escape(family.help()))?;
    for metric in family.get_metric() {
        match family.get_field_type() {
            MetricType::COUNTER => {
                write_sample(out, &format!("{name}_total"), metric, None, metric.get_counter().get_value())?;
            }
            MetricType::HISTOGRAM => write_histogram(out, name, metric)?,
            _ => write_sample(out, name, metric, None, metric.get_gauge().get_value())?,
        }
    }
    Ok(())
}

fn write_histogram(out: &mut String, name: &str, metric: &Metric) -> std::fmt::Result {
    let histogram = metric.get_histogram();
    let bucket = format!("{name}_bucket");
    for b in histogram.get_bucket() {
        // Bounds are never whole numbers, so both forms spell them alike.
        let bound = b.upper_bound().to_string();
        write_sample(out, &bucket, metric, Some(&bound), b.cumulative_count() as f64)?;
    }
    let count = histogram.get_sample_count() as f64;
    write_sample(out, &bucket, metric, Some("+Inf"), count)?;
    write_sample(out, &format!("{name}_sum"), metric, None, histogram.get_sample_sum())?;
    write_sample(out, &format!("{name}_count"), metric, None, count)
}

fn write_sample(
    out: &mut String,
    name: &str,
    metric: &Metric,
    le: Option<&str>,
    value: f64,
) -> std::fmt::Result {
    out.write_str(name)?;
    let pairs = metric.get_label().iter().map(|pair| (pair.name(), pair.value()));
    let mut open = '{';
    for (label, value) in pairs.chain(le.map(|bound| ("le", bound))) {
        write!(out, "{open}{label}=\"{}\"", escape(value))?;
        open = ',';
    }
    if open == ',' {
        out.write_char('}')?;
    }
    writeln!(out, " {value}")
}

fn escape(text: &str) -> String {
    text.replace('\\', r"\\").replace('\n', r"\n").replace('"', r#"\""#)
}
