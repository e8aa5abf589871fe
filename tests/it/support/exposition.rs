//! Reads a scrape, text 0.0.4 or OpenMetrics, by an own little parser: what
//! stands there counts, not what our encoder meant.

use gemgauge::ledger::tokens::{Class, Classes};

/// A series of a scrape.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) labels: Vec<(String, String)>,
    pub(crate) value: f64,
}

/// All series of a scrape, in its order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Exposition(pub(crate) Vec<Series>);

impl Exposition {
    pub(crate) fn parse(text: &str) -> Self {
        Self(text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(series).collect())
    }

    /// The series of that name with all of these labels.
    pub(crate) fn of<'a>(
        &'a self,
        name: &'a str,
        labels: &'a [(&str, &str)],
    ) -> impl Iterator<Item = &'a Series> {
        let fits = move |series: &&Series| {
            series.name == name
                && labels.iter().all(|(key, value)| series.labels.iter().any(|(k, v)| k == key && v == value))
        };
        self.0.iter().filter(fits)
    }

    /// The sum of a name's series with these labels; 0 where there is none.
    pub(crate) fn sum(&self, name: &str, labels: &[(&str, &str)]) -> u64 {
        self.of(name, labels).map(|series| series.value as u64).sum()
    }

    /// The value of the one series; `None` where there is none.
    pub(crate) fn value(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let mut found = self.of(name, labels);
        let value = found.next()?.value;
        assert_eq!(found.next(), None, "{name} {labels:?} is one series");
        Some(value)
    }

    /// Requests and tokens of the label sets with these labels.
    pub(crate) fn spent(&self, labels: &[(&str, &str)]) -> (u64, Classes) {
        let mut classes = Classes::default();
        for class in Class::ALL {
            let labels = [labels, &[("class", class.as_str())]].concat();
            *classes.get_mut(class) = self.sum("gemgauge_tokens_total", &labels);
        }
        (self.sum("gemgauge_requests_total", labels), classes)
    }
}

fn series(line: &str) -> Series {
    let (name, rest) = line.split_at(line.find(['{', ' ']).unwrap_or(line.len()));
    let (labels, value) = match rest.strip_prefix('{') {
        None => (Vec::new(), rest),
        Some(rest) => labels(rest),
    };
    let value = value.split_whitespace().next().and_then(|value| value.parse().ok());
    Series { name: name.to_owned(), labels, value: value.unwrap_or_else(|| panic!("no value: {line}")) }
}

/// Labels up to the closing brace, and what follows it.
fn labels(mut rest: &str) -> (Vec<(String, String)>, &str) {
    let mut labels = Vec::new();
    loop {
        rest = rest.trim_start_matches(',');
        if let Some(rest) = rest.strip_prefix('}') {
            return (labels, rest);
        }
        let (key, after) = rest.split_once("=\"").expect("a label has a value");
        let mut value = String::new();
        let mut chars = after.char_indices();
        loop {
            match chars.next().expect("a value ends") {
                (_, '\\') => value.push(match chars.next().expect("an escape is two characters").1 {
                    'n' => '\n',
                    other => other,
                }),
                (at, '"') => {
                    rest = &after[at + 1..];
                    break;
                }
                (_, other) => value.push(other),
            }
        }
        labels.push((key.to_owned(), value));
    }
}

#[test]
fn a_scrape_is_read_with_its_escapes() {
    let text = "# HELP a b\na{x=\"1\\\"2\\n,}\",y=\"\"} 3\nb 4.5\n# EOF\n";
    let read = Exposition::parse(text);
    assert_eq!(read.value("b", &[]), Some(4.5));
    assert_eq!(read.sum("a", &[("x", "1\"2\n,}")]), 3);
    assert_eq!(read.value("a", &[("x", "other")]), None);
}
