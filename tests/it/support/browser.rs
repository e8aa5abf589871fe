//! A real browser, driven by `tests/page/driver.mjs`.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use super::skip;

/// A browser with one window; it ends when it is dropped.
pub(crate) struct Browser {
    driver: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

/// One node of the accessibility tree.
#[derive(Debug)]
pub(crate) struct AxNode {
    pub(crate) role: String,
    pub(crate) name: String,
    pub(crate) level: Option<u64>,
}

fn chromium() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser"];
    std::env::split_paths(&path).flat_map(|dir| names.map(|name| dir.join(name))).find(|file| file.is_file())
}

/// Where `tests/run` installs what drives it.
fn modules() -> Option<PathBuf> {
    let record = std::env::var_os("RECORD_PREFIX")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("target/record"), PathBuf::from);
    let modules = record.join("page/node_modules");
    modules.join("playwright-core/package.json").is_file().then_some(modules)
}

impl Browser {
    /// A window on what is served at `origin`; `None`, said aloud, where there
    /// is no browser.
    pub(crate) fn start(origin: SocketAddr) -> Option<Self> {
        let (Some(chromium), Some(modules)) = (chromium(), modules()) else {
            skip::missing("chromium or what drives it");
            return None;
        };
        let driver = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/page/driver.mjs");
        let mut driver = Command::new("node")
            .arg(driver)
            .args([&modules, &chromium])
            .arg(format!("http://{origin}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("node runs");
        let (orders, answers) = (driver.stdin.take(), BufReader::new(driver.stdout.take().unwrap()));
        let mut browser = Self { driver, orders, answers };
        browser.ask("window", json!({}));
        Some(browser)
    }

    /// Gives an order of the driver and returns its answer.
    pub(crate) fn ask(&mut self, order: &str, mut with: Value) -> Value {
        with["do"] = order.into();
        writeln!(self.orders.as_mut().unwrap(), "{with}").unwrap();
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        let mut answer: Value = serde_json::from_str(&line).expect("the driver answers");
        assert!(answer["failed"].is_null(), "{with}: {}", answer["failed"].as_str().unwrap_or_default());
        answer["ok"].take()
    }

    pub(crate) fn window(&mut self, scheme: &str, width: u32) {
        self.ask("window", json!({"scheme": scheme, "width": width}));
    }

    pub(crate) fn open(&mut self, path: &str) {
        self.ask("open", json!({"path": path}));
    }

    /// Waits until an element that `selector` finds holds `text`.
    pub(crate) fn wait_for(&mut self, selector: &str, text: &str) {
        self.ask("waits", json!({"selector": selector, "text": text}));
    }

    pub(crate) fn texts(&mut self, selector: &str) -> Vec<String> {
        serde_json::from_value(self.ask("texts", json!({"selector": selector}))).unwrap()
    }

    pub(crate) fn text(&mut self, selector: &str) -> String {
        let mut texts = self.texts(selector);
        assert_eq!(texts.len(), 1, "{selector}: {texts:?}");
        texts.remove(0)
    }

    pub(crate) fn press(&mut self, key: &str) {
        self.ask("press", json!({"key": key}));
    }

    /// Presses Tab until what is focused fits.
    pub(crate) fn tab_to(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        let mut passed = Vec::new();
        for _ in 0..100 {
            self.press("Tab");
            let active = self.ask("active", json!({}));
            if fits(&active) {
                return active;
            }
            passed.push(active.to_string());
        }
        panic!("a keyboard does not get there: {passed:#?}");
    }

    pub(crate) fn tree(&mut self) -> Vec<AxNode> {
        let nodes = self.ask("tree", json!({}));
        let node = |node: &Value| AxNode {
            role: node["role"].as_str().unwrap().to_owned(),
            name: node["name"].as_str().unwrap_or_default().to_owned(),
            level: node["level"].as_u64(),
        };
        nodes.as_array().unwrap().iter().map(node).collect()
    }

    /// Nothing was said on the console, refused by the policy, thrown, or asked
    /// for elsewhere.
    pub(crate) fn assert_no_problems(&mut self) {
        assert_eq!(self.ask("problems", json!({})), json!([]));
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The driver closes the browser when its input ends.
        drop(self.orders.take());
        let _ = self.driver.wait();
    }
}
