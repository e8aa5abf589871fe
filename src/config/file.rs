//! The configuration file: YAML in, a layer or a pointed error out.

use std::path::Path;

use super::error::ConfigError;
use super::layer::Layer;
use super::read::read_bounded;

/// No sane configuration is larger.
const LIMIT: u64 = 1 << 20;

/// Reads a configuration file.
pub(super) fn read(path: &Path) -> Result<Layer, ConfigError> {
    let read = read_bounded(path, LIMIT);
    let text = read.map_err(|error| ConfigError::Read { path: path.to_owned(), error })?;
    parse(path, &text)
}

fn parse(path: &Path, text: &str) -> Result<Layer, ConfigError> {
    if text.lines().all(|line| line.trim_start().starts_with('#') || line.trim().is_empty()) {
        return Ok(Layer::default());
    }
    serde_saphyr::from_str(text).map_err(|error| {
        let line = error.location().map(|location| location.line());
        let key = line.and_then(|line| key_at(text, usize::try_from(line).ok()?));
        let message = plain_message(&error);
        ConfigError::File { path: path.to_owned(), line, key, message }
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        parse(Path::new("config.yml"), text).unwrap_err().to_string()
    }

    #[test]
    fn a_full_file_is_read() {
        let text = "homes:\n  - path: /home/ana\n    name: ana\n  - {path: /srv/ci}\ndb: /x/l.db\n\
                    timezone: Europe/Berlin\nstrict: true\njournals:\n  max_line_bytes: 1024\n  watch: false\n\
                    metrics: {max_tuples: 5}\nweb:\n  listen_address: ['127.0.0.1:1', \"[::1]:2\"]\n  \
                    telemetry_path: /m\n  allowed_hosts: [gauge.example]\nlog: {format: json, level: debug}\n";
        let layer = parse(Path::new("config.yml"), text).unwrap();
        let homes = layer.homes.unwrap();
        assert_eq!(homes[0].name.as_deref(), Some("ana"));
        assert_eq!(homes[1].path, Path::new("/srv/ci"));
        assert_eq!(layer.web.unwrap().listen_address.unwrap()[1].to_string(), "[::1]:2");
        assert_eq!(layer.journals.unwrap().watch, Some(false));
    }

    #[test]
    fn a_file_of_comments_or_empty_sections_says_nothing() {
        assert!(parse(Path::new("c"), "").unwrap().db.is_none());
        assert!(parse(Path::new("c"), "# only\n\n  # comments\n").unwrap().web.is_none());
        assert!(parse(Path::new("c"), "web:\nlog:\n").unwrap().web.is_none());
    }

    #[test]
    fn errors_name_the_line_and_the_key() {
        for (text, expected) in [
            ("db: /x\njurnals: {}\n", "config.yml, line 2, jurnals: "),
            ("web:\n  listen: [a]\n", "config.yml, line 2, web.listen: "),
            ("metrics:\n  # how many\n  max_tuples: lots\n", "config.yml, line 3, metrics.max_tuples: "),
            ("web:\n  telemetry_path: metrics\n", "config.yml, line 2, web.telemetry_path: "),
            (
                "web:\n  listen_address:\n    - 127.0.0.1:1\n    - nowhere\n",
                "config.yml, line 4, web.listen_address: ",
            ),
            ("homes:\n  - path: /a\n    nam: x\n", "config.yml, line 3, homes.nam: "),
            ("homes:\n- nam: /a\n", "config.yml, line 2, homes.nam: "),
            ("log: {format: xml}\n", "config.yml, line 1, log: "),
            ("db: /x\ndb: /y\n", "config.yml, line 2, db: "),
        ] {
            let error = error(text);
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn the_sentence_says_what_was_expected() {
        assert!(error("jurnals: {}\n").contains("journals"), "{}", error("jurnals: {}\n"));
        assert!(error("web:\n  listen_address: [nowhere]\n").contains("write host:port"));
    }
}
