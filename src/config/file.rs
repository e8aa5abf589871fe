//! The configuration file: YAML in, a layer or a pointed error out.

use std::path::Path;

use super::budgets;
use super::error::ConfigError;
use super::layer::Layer;
use super::read::read_bounded;
use super::yaml::parse;

/// No sane configuration is larger.
const LIMIT: u64 = 1 << 20;

/// Reads a configuration file.
pub(super) fn read(path: &Path) -> Result<Layer, ConfigError> {
    let read = read_bounded(path, LIMIT);
    let text = read.map_err(|error| ConfigError::Read { path: path.to_owned(), error })?;
    read_text(path, &text)
}

/// Its text, rows checked against each other.
pub(super) fn read_text(path: &Path, text: &str) -> Result<Layer, ConfigError> {
    let layer: Layer = parse(path, text)?;
    budgets::check(path, text, layer.budgets.as_deref().unwrap_or_default())?;
    Ok(layer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        parse::<Layer>(Path::new("config.yml"), text).unwrap_err().to_string()
    }

    #[test]
    fn a_full_file_is_read() {
        let text = "homes:\n  - path: /home/ana\n    name: ana\n  - {path: /srv/ci}\ndb: /x/l.db\n\
                    timezone: Europe/Berlin\nstrict: true\njournals:\n  max_line_bytes: 1024\n  watch: false\n\
                    metrics: {max_tuples: 5}\nweb:\n  listen_address: ['127.0.0.1:1', \"[::1]:2\"]\n  \
                    telemetry_path: /m\n  allowed_hosts: [gauge.example]\nlog: {format: json, level: debug}\n";
        let layer: Layer = parse(Path::new("config.yml"), text).unwrap();
        let homes = layer.homes.unwrap();
        assert_eq!(homes[0].name.as_deref(), Some("ana"));
        assert_eq!(homes[1].path, Path::new("/srv/ci"));
        assert_eq!(layer.web.unwrap().listen_address.unwrap()[1].to_string(), "[::1]:2");
        assert_eq!(layer.journals.unwrap().watch, Some(false));
    }

    #[test]
    fn a_file_of_comments_or_empty_sections_says_nothing() {
        assert!(parse::<Layer>(Path::new("c"), "").unwrap().db.is_none());
        assert!(parse::<Layer>(Path::new("c"), "# only\n\n  # comments\n").unwrap().web.is_none());
        assert!(parse::<Layer>(Path::new("c"), "web:\nlog:\n").unwrap().web.is_none());
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
            ("homes:\n  - path: /a\n    billing: free\n", "config.yml, line 3, homes.billing: "),
            ("homes:\n  - {path: /a, price_list: vertex}\n", "config.yml, line 2, homes.price_list: "),
            ("homes:\n- nam: /a\n", "config.yml, line 2, homes.nam: "),
            ("log: {format: xml}\n", "config.yml, line 1, log.format: "),
            ("log: {formt: xml}\n", "config.yml, line 1, log.formt: "),
            ("db: /x\ndb: /y\n", "config.yml, line 2, db: "),
            ("hooks:\n  webhook:\n    url: s3cret\n", "config.yml, line 3, hooks.webhook.url: this is no"),
            ("hooks:\n  webhook:\n    urls: x\n", "config.yml, line 3, hooks.webhook.urls: "),
            ("hooks:\n  command: []\n", "config.yml, line 2, hooks.command: write a program"),
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
