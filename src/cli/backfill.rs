use clap::Args;

/// Write the ledger's history as OpenMetrics, for a Prometheus that came later.
///
/// Labels are exactly those of the scrape:
///
///   gemgauge backfill > history.om &&
///   promtool tsdb create-blocks-from openmetrics history.om DATA
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub struct Backfill {
    /// The job label that Prometheus gives to the scrape
    #[arg(long, value_name = "NAME", default_value = "gemgauge")]
    pub job: String,

    /// The instance label that Prometheus gives to the scrape
    #[arg(long, value_name = "NAME", default_value = "localhost:10436")]
    pub instance: String,

    /// Time between samples: 30s, 5m, 1h
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = seconds)]
    pub step: u32,

    /// Where to begin, a day or a time such as 2026-11-01T12:00:00Z; the
    /// counters begin with what was spent before [default: all]
    #[arg(short = 's', long, value_name = "DAY|TIME")]
    pub since: Option<String>,

    /// Where to end, a day or a time: best that of the first scrape [default: now]
    #[arg(short = 'u', long, value_name = "DAY|TIME")]
    pub until: Option<String>,

    /// Write what the ledger holds, without reading the journals first
    #[arg(long)]
    pub no_scan: bool,
}

/// Whole seconds, minutes, hours or days, at least a second.
fn seconds(text: &str) -> Result<u32, String> {
    let (number, unit) = match text.find(|c: char| !c.is_ascii_digit()) {
        None => (text, 1),
        Some(at) => {
            let unit = match &text[at..] {
                "s" => 1,
                "m" => 60,
                "h" => 3_600,
                "d" => 86_400,
                _ => return Err("write a whole number of s, m, h or d, such as 5m".to_owned()),
            };
            (&text[..at], unit)
        }
    };
    match number.parse::<u32>().ok().and_then(|number| number.checked_mul(unit)) {
        Some(seconds) if seconds > 0 => Ok(seconds),
        _ => Err("write a time of a second at least, such as 30s or 5m".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::seconds;

    #[test]
    fn steps_are_times() {
        for (text, want) in [("30s", 30), ("5m", 300), ("1h", 3_600), ("1d", 86_400), ("15", 15)] {
            assert_eq!(seconds(text), Ok(want));
        }
        for text in ["0s", "", "m", "-5m", "5 m", "5min", "99999999d"] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }
}
