//! `docs/metrics.md`: the reference part is made of the descriptors.

use std::fmt::Write;

use super::family::{Descriptor, Label, Values};
use super::subjects;

/// Everything above this line of `docs/metrics.md` is written by hand.
pub const MARKER: &str =
    "<!-- From here on this file is generated from the descriptors: UPDATE=1 cargo test metrics::docs -->";

/// The reference: every metric with type, labels and meaning, by subject,
/// then the closed lists. Markdown, ending in a newline.
#[must_use]
pub fn reference() -> String {
    let mut out = String::from("## Reference\n");
    let mut lists = String::new();
    for (subject, descriptors) in subjects() {
        write!(out, "\n### {subject}\n\n| name | type | labels | meaning |\n|---|---|---|---|\n")
            .and_then(|()| descriptors.iter().try_for_each(|descriptor| row(&mut out, descriptor)))
            .and_then(|()| descriptors.iter().try_for_each(|descriptor| list(&mut lists, descriptor)))
            .expect("a String takes everything");
    }
    out + "\n## Closed lists\n\nLabels that take these values only. Each of them is there from the start, at 0 (`collector` and \
           `source` with their state).\n\n| metric | label | values |\n|---|---|---|\n"
        + &lists
        + "\n## Open labels\n\n| label | holds |\n|---|---|\n"
        + &open_labels()
}

fn row(out: &mut String, descriptor: &Descriptor) -> std::fmt::Result {
    let labels: Vec<String> = descriptor.labels.iter().map(|label| format!("`{}`", label.name)).collect();
    let labels = if labels.is_empty() { "–".to_owned() } else { labels.join(" ") };
    let Descriptor { name, kind, help, .. } = descriptor;
    writeln!(out, "| `{name}` | {} | {labels} | {help} |", kind.as_str())
}

fn list(out: &mut String, descriptor: &Descriptor) -> std::fmt::Result {
    for Label { name, values } in descriptor.labels {
        if let Values::Closed(list) = values {
            let values: Vec<String> = list().iter().map(|value| format!("`{value}`")).collect();
            writeln!(out, "| `{}` | `{name}` | {} |", descriptor.name, values.join(", "))?;
        }
    }
    Ok(())
}

/// Each open label once, with the first meaning given to it.
fn open_labels() -> String {
    let mut seen = std::collections::BTreeSet::new();
    let labels = subjects().into_iter().flat_map(|(_, descriptors)| descriptors).flat_map(|d| d.labels);
    labels
        .filter_map(|label| match label.values {
            Values::Open(meaning) if seen.insert(label.name) => {
                Some(format!("| `{}` | {meaning} |\n", label.name))
            }
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_file_is_what_the_descriptors_say() {
        let committed = include_str!("../../../docs/metrics.md");
        let (by_hand, _) = committed.split_once(MARKER).expect("docs/metrics.md has the marker line");
        let want = format!("{by_hand}{MARKER}\n\n{}", reference());
        if option_env!("UPDATE").is_some() {
            let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/metrics.md");
            std::fs::write(path, want).expect("docs/metrics.md can be written");
        } else {
            assert!(committed == want, "docs/metrics.md is out of date: UPDATE=1 cargo test metrics::docs");
        }
    }
}
