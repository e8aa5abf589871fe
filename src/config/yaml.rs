//! YAML files: values out, or an error that names the line and the key.

use std::path::Path;

use serde::de::DeserializeOwned;

use super::error::ConfigError;

/// What a file says; one of nothing but comments says nothing.
pub(super) fn parse<T: DeserializeOwned + Default>(path: &Path, text: &str) -> Result<T, ConfigError> {
    if text.lines().all(|line| line.trim_start().starts_with('#') || line.trim().is_empty()) {
        return Ok(T::default());
    }
    serde_saphyr::from_str(text).map_err(|error| {
        let at = error.location().map(|location| (location.line(), location.column()));
        wrong(path, text, at, plain_message(&error))
    })
}

/// An error that names the file, the line and the key that stands there; line
/// and column count from 1.
pub(super) fn wrong(path: &Path, text: &str, at: Option<(u64, u64)>, message: String) -> ConfigError {
    let key = at.and_then(|(line, column)| {
        let (line, column) = (usize::try_from(line).ok()?, usize::try_from(column).ok()?);
        let inner = text.lines().nth(line.checked_sub(1)?).and_then(|line| key_in_braces(line, column));
        match (key_at(text, line), inner) {
            (Some(key), Some(inner)) => Some(format!("{key}.{inner}")),
            (key, inner) => key.or(inner),
        }
    });
    ConfigError::File { path: path.to_owned(), line: at.map(|(line, _)| line), key, message }
}

/// The key inside braces that a column (from 1) of a line stands at, or that
/// the value there belongs to: `{model: x, input: -1}`.
fn key_in_braces(line: &str, column: usize) -> Option<String> {
    let at = line.char_indices().nth(column.checked_sub(1)?)?.0;
    let (before, from) = line.split_at(at);
    before.contains('{').then_some(())?;
    let name = |text: &str| {
        let key = text.trim().trim_matches('"');
        is_plain_key(key).then(|| key.to_owned())
    };
    match before.trim_end().strip_suffix(':') {
        Some(key) => name(key.rsplit(['{', ',']).next()?),
        None => name(from.split_once(':')?.0),
    }
}

/// The sentence of an error without its source excerpt and its place, which
/// are named beside it.
fn plain_message(error: &serde_saphyr::Error) -> String {
    let message = error.without_snippet().to_string();
    message.rsplit_once(" at line ").map(|(sentence, _)| sentence.to_owned()).unwrap_or(message)
}

/// The dotted path of the key on a line (from 1), from the lines above that are
/// indented less: `web.listen_address`. `None` where no key is to be seen.
fn key_at(text: &str, line: usize) -> Option<String> {
    let lines: Vec<&str> = text.lines().take(line).collect();
    let mut path = Vec::new();
    // The column that a key above must stand left of.
    let mut within = usize::MAX;
    for line in lines.into_iter().rev() {
        let bare = line.trim_start();
        let column = line.len() - bare.len();
        let entry = bare.strip_prefix("- ").unwrap_or(bare).trim_start();
        let is_item = entry.len() < bare.len();
        if bare.is_empty() || bare.starts_with('#') || line.len() - entry.len() >= within {
            continue;
        }
        let key = entry.split_once(':').map(|(key, _)| key.trim().trim_matches('"'));
        if let Some(key) = key.filter(|key| is_plain_key(key)) {
            path.push(key);
        }
        // The key of a list may stand in the column of its dashes.
        within = if is_item { column + 1 } else { column };
    }
    path.reverse();
    (!path.is_empty()).then(|| path.join("."))
}

fn is_plain_key(key: &str) -> bool {
    !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}
