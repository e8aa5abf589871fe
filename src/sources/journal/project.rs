//! Which project a directory below `tmp` is of: `.project_root` says, else
//! `projects.json` (accounting R12; interface, *Words*). The root's base name
//! and hash are kept, the root itself is not.

use std::collections::HashMap;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use sha2::{Digest, Sha256};

use super::discover::open_regular;
use crate::ledger::evidence::{HomeId, ProjectFact};
use crate::ledger::project::base_name;

/// Roots and registries are small; whatever is larger is not one.
const MAX_BYTES: u64 = 1024 * 1024;

/// The projects of one home, re-read when their files change.
#[derive(Debug, Default)]
pub struct Projects {
    registry: HashMap<String, String>,
    registry_at: Option<SystemTime>,
    roots: HashMap<Arc<str>, (Option<SystemTime>, Option<String>)>,
    told: HashMap<Arc<str>, Option<String>>,
}

impl Projects {
    /// Looks at the registry of the home.
    pub fn refresh(&mut self, gemini: &Path) {
        let path = gemini.join("projects.json");
        let at = modified(&path);
        if at == self.registry_at {
            return;
        }
        self.registry_at = at;
        self.registry = read(&path).and_then(|text| registry(&text)).unwrap_or_default();
    }

    /// What is new about one project directory.
    pub fn fact(&mut self, home: HomeId, dir: &Arc<str>, path: &Path) -> Option<ProjectFact> {
        let marker = path.join(".project_root");
        let at = modified(&marker);
        let known = self.roots.entry(dir.clone()).or_insert((None, None));
        if at.is_some() && known.0 != at {
            *known = (at, read(&marker).map(|text| text.trim().to_owned()).filter(|root| !root.is_empty()));
        }
        let root = known.1.clone().or_else(|| self.registered(dir));
        if self.told.get(dir) == Some(&root) {
            return None;
        }
        self.told.insert(dir.clone(), root.clone());
        Some(ProjectFact {
            home,
            dir: dir.clone(),
            root_name: root.as_deref().and_then(base_name).map(str::to_owned),
            root_hash: root.as_deref().map(sha256_hex),
        })
    }

    /// The registered root whose slug, or whose hash, the directory is named by.
    fn registered(&self, dir: &str) -> Option<String> {
        let mut fits = self.registry.iter().filter(|(root, slug)| *slug == dir || sha256_hex(root) == dir);
        fits.next().map(|(root, _)| root.clone())
    }
}

fn registry(text: &str) -> Option<HashMap<String, String>> {
    #[derive(serde::Deserialize)]
    struct Registry {
        projects: HashMap<String, serde_json::Value>,
    }
    let registry: Registry = serde_json::from_str(text).ok()?;
    let slug = |value: serde_json::Value| value.as_str().map(str::to_owned);
    Some(registry.projects.into_iter().filter_map(|(root, value)| Some((root, slug(value)?))).collect())
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::symlink_metadata(path).ok()?.modified().ok()
}

fn read(path: &Path) -> Option<String> {
    let mut text = Vec::new();
    open_regular(path).ok()?.0.take(MAX_BYTES).read_to_end(&mut text).ok()?;
    String::from_utf8(text).ok()
}

fn sha256_hex(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}
