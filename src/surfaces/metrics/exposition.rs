//! The two text forms of an exposition and the choice between them.

use super::family::{Family, escape};

/// A text form that Prometheus reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Text 0.0.4: what a person and everything that asks for nothing gets.
    #[default]
    Text,
    /// OpenMetrics 1.0.0.
    OpenMetrics,
}

impl Format {
    #[must_use]
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }

    /// The form an `Accept` header wants most among those there are; text
    /// where it wants none of them, says nothing or cannot be understood.
    ///
    /// Each form has the quality of the most specific range that fits it
    /// (RFC 9110, 12.5.1). At equal quality the more specific range wins.
    #[must_use]
    pub fn negotiate(accept: &str) -> Self {
        let ranges: Vec<Range<'_>> = accept.split(',').filter_map(Range::parse).collect();
        let rank = |format: Self| {
            let fitting = ranges.iter().filter_map(|range| Some((range.specificity(format)?, range.quality)));
            fitting
                .max()
                .filter(|(_, quality)| *quality > 0)
                .map(|(specificity, quality)| (quality, specificity))
        };
        if rank(Self::OpenMetrics) > rank(Self::Text) { Self::OpenMetrics } else { Self::Text }
    }

    /// Writes the families in this form; those without a sample are left out.
    ///
    /// The sample lines are the same in both. In OpenMetrics a counter's family
    /// is named without `_total`, a unit is said where it is the suffix, `"` is
    /// escaped in help too, and `# EOF` ends it. `_created` lines are left out:
    /// Prometheus 2 stores them as series of their own.
    #[must_use]
    pub fn encode(self, families: &[Family]) -> String {
        let size = families.iter().map(|family| family.lines().len() + 256).sum();
        let mut out = String::with_capacity(size);
        for family in families.iter().filter(|family| !family.lines().is_empty()) {
            self.head(&mut out, family);
            out.push_str(family.lines());
        }
        if self == Self::OpenMetrics {
            out.push_str("# EOF\n");
        }
        out
    }

    /// What stands above a family's samples.
    fn head(self, out: &mut String, family: &Family) {
        let descriptor = family.descriptor();
        let kind = descriptor.kind.as_str();
        match self {
            Self::Text => {
                let name = descriptor.name;
                out.extend(["# HELP ", name, " "]);
                escape(out, descriptor.help, false);
                out.extend(["\n# TYPE ", name, " ", kind, "\n"]);
            }
            Self::OpenMetrics => {
                let name = descriptor.open_metrics_family();
                out.extend(["# TYPE ", name, " ", kind, "\n"]);
                if let Some(unit) = UNITS.into_iter().find(|unit| name.rsplit('_').next() == Some(unit)) {
                    out.extend(["# UNIT ", name, " ", unit, "\n"]);
                }
                out.extend(["# HELP ", name, " "]);
                escape(out, descriptor.help, true);
                out.push('\n');
            }
        }
    }
}

/// Units said in `# UNIT`, where a family's name ends in one.
const UNITS: [&str; 2] = ["seconds", "bytes"];

/// One media range of an `Accept` header.
struct Range<'a> {
    media: &'a str,
    version: Option<&'a str>,
    /// In thousandths.
    quality: u16,
}

impl<'a> Range<'a> {
    fn parse(range: &'a str) -> Option<Self> {
        let mut parts = range.split(';').map(str::trim);
        let media = parts.next().filter(|media| media.contains('/'))?;
        let (mut version, mut quality) = (None, 1000);
        for parameter in parts {
            let (name, value) = parameter.split_once('=')?;
            let value = value.trim().trim_matches('"');
            match name.trim().to_ascii_lowercase().as_str() {
                "version" => version = Some(value),
                "q" => quality = thousandths(value)?,
                // charset and escaping: names and labels are plain in both forms.
                _ => {}
            }
        }
        Some(Self { media, version, quality })
    }

    /// How closely the range names the form; `None` if it does not fit.
    fn specificity(&self, format: Format) -> Option<u8> {
        let (full, main, version) = match format {
            Format::Text => ("text/plain", "text/*", "0.0.4"),
            Format::OpenMetrics => ("application/openmetrics-text", "application/*", "1.0.0"),
        };
        if self.media.eq_ignore_ascii_case(full) {
            return match self.version {
                Some(wanted) => (wanted == version).then_some(3),
                None => Some(2),
            };
        }
        if self.media.eq_ignore_ascii_case(main) {
            return Some(1);
        }
        (self.media == "*/*").then_some(0)
    }
}

/// A quality value (0 to 1, at most three decimals) in thousandths.
fn thousandths(q: &str) -> Option<u16> {
    let value: f64 = q.parse().ok()?;
    (0.0..=1.0).contains(&value).then(|| (value * 1000.0).round() as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_quality_that_is_supported_wins() {
        use Format::{OpenMetrics, Text};
        let prometheus_2 = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        let prometheus_3 = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        let only_text = "text/plain;version=0.0.4;q=1,*/*;q=0.1";
        for (accept, want) in [
            ("", Text),
            ("*/*", Text),
            (prometheus_2, OpenMetrics),
            (prometheus_3, OpenMetrics),
            (only_text, Text),
            ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", Text),
            ("application/openmetrics-text", OpenMetrics),
            ("application/openmetrics-text; version=\"1.0.0\"", OpenMetrics),
            ("APPLICATION/OPENMETRICS-TEXT; Version=1.0.0; Q=0.9, text/plain; q=0.8", OpenMetrics),
            ("application/openmetrics-text;version=0.0.1", Text),
            ("application/openmetrics-text;version=2.0.0,text/plain;q=0.1", Text),
            ("application/openmetrics-text;q=0.4,text/plain;q=0.5", Text),
            ("application/openmetrics-text;q=0", Text),
            ("application/openmetrics-text;q=0,*/*", Text),
            ("application/openmetrics-text,*/*", OpenMetrics),
            ("text/plain,application/openmetrics-text", Text),
            ("application/json", Text),
            ("application/openmetrics-text;q=nonsense", Text),
            ("application/openmetrics-text;q=7", Text),
            (";;;,,q=1,/", Text),
        ] {
            assert_eq!(Format::negotiate(accept), want, "{accept:?}");
        }
    }
}
