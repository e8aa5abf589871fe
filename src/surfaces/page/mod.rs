//! The page at `/`, for people without Grafana: one document with its style
//! and scripts, put into the program as they stand here.
//!
//! - **In**: the path of the metrics; the words of reasons.
//! - **Out**: [`Asset`]s, which `http` serves under [`POLICY`].
//! - **Never**: a figure. The scripts ask the API for what they show, and put
//!   it into the document as text.
//! - **Look first** at `main.js`: what is shown where, and when it is asked for anew.

use std::collections::BTreeMap;

use crate::ledger::bound::Reason;
use crate::ledger::hash::fnv1a;
use crate::ledger::quota::poll::QuotaState;
use crate::surfaces::quota::sentence;
use crate::surfaces::report::clause;

/// What a browser may load and run for the page: what comes from here.
pub const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                          img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";
const JSON: &str = "application/json";

/// Below `/-/`, which no metrics path can take.
const FILES: &[(&str, &str, &str)] = &[
    ("/-/page/app.css", CSS, include_str!("app.css")),
    ("/-/page/icon.svg", SVG, include_str!("icon.svg")),
    ("/-/page/api.js", SCRIPT, include_str!("api.js")),
    ("/-/page/dom.js", SCRIPT, include_str!("dom.js")),
    ("/-/page/explain.js", SCRIPT, include_str!("explain.js")),
    ("/-/page/format.js", SCRIPT, include_str!("format.js")),
    ("/-/page/health.js", SCRIPT, include_str!("health.js")),
    ("/-/page/live.js", SCRIPT, include_str!("live.js")),
    ("/-/page/main.js", SCRIPT, include_str!("main.js")),
    ("/-/page/quota.js", SCRIPT, include_str!("quota.js")),
    ("/-/page/route.js", SCRIPT, include_str!("route.js")),
    ("/-/page/sessions.js", SCRIPT, include_str!("sessions.js")),
    ("/-/page/spend.js", SCRIPT, include_str!("spend.js")),
];

/// One file of the page.
#[derive(Clone, Debug)]
pub struct Asset {
    pub path: &'static str,
    pub content_type: &'static str,
    pub body: String,
    /// A weak entity tag, as an answer may be compressed.
    pub etag: String,
}

impl Asset {
    fn new(path: &'static str, content_type: &'static str, body: String) -> Self {
        let etag = format!("W/\"{:016x}\"", fnv1a(body.as_bytes()));
        Self { path, content_type, body, etag }
    }
}

/// All files. `metrics` is a validated path, in which nothing needs escaping.
#[must_use]
pub fn assets(metrics: &str) -> Vec<Asset> {
    let document = include_str!("index.html")
        .replace("{{version}}", env!("CARGO_PKG_VERSION"))
        .replace("{{metrics}}", metrics.trim_start_matches('/'));
    let mut assets = vec![Asset::new("/", HTML, document), Asset::new("/-/page/words.json", JSON, words())];
    assets.extend(FILES.iter().map(|(path, kind, body)| Asset::new(path, kind, (*body).to_owned())));
    assets
}

/// What reasons and states mean, in the words of the command line.
fn words() -> String {
    let reasons: BTreeMap<_, _> =
        Reason::ALL.into_iter().map(|reason| (reason.as_str(), clause(reason))).collect();
    let states: BTreeMap<_, _> =
        QuotaState::ALL.into_iter().map(|state| (state.as_str(), sentence(state))).collect();
    serde_json::json!({ "reasons": reasons, "quota_states": states }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_page_is_small() {
        let size: usize = assets("/metrics").iter().map(|asset| asset.body.len()).sum();
        assert!(size < 66 << 10, "{size} bytes");
    }

    #[test]
    fn every_file_of_the_directory_is_served() {
        let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/surfaces/page");
        for entry in std::fs::read_dir(dir).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let served = FILES.iter().any(|(path, ..)| path.ends_with(&format!("/{name}")));
            assert!(served || ["mod.rs", "index.html"].contains(&name.as_str()), "{name}");
        }
    }

    #[test]
    fn the_document_says_where_the_metrics_are_and_has_nothing_inline() {
        let document = &assets("/my/metrics")[0].body;
        assert!(document.contains(r#"href="my/metrics""#) && !document.contains("{{"), "{document}");
        for inline in ["<style", "style=", "<script>", "onclick", "onload", "javascript:"] {
            assert!(!document.contains(inline), "{inline}");
        }
    }

    #[test]
    fn the_scripts_put_in_text_and_nothing_else() {
        for (path, _, body) in FILES {
            for way in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("] {
                assert!(!body.contains(way), "{path}: {way}");
            }
        }
    }

    #[test]
    fn every_reason_has_words() {
        let words: serde_json::Value = serde_json::from_str(&words()).unwrap();
        for reason in Reason::ALL {
            assert!(words["reasons"][reason.as_str()].is_string(), "{}", reason.as_str());
        }
    }
}
