//! A home that is signed in with Google, and a source that polls it with a
//! clock of the test's.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use gemgauge::config::{Env, Quota};
use gemgauge::ledger::evidence::HomeId;
use gemgauge::ledger::quota::poll::Poll;
use gemgauge::sources::quota::{
    Consent, Engine, Event, Keychain, NoKeychain, Outside, Target, Wake, poll_once,
};
use serde_json::{Value, json};

use super::code_assist::CodeAssist;

/// Noon on 30 November 2026, UTC.
pub(crate) const NOON: i64 = 1_796_040_000_000;
pub(crate) const MINUTE: i64 = 60_000;
pub(crate) const HOME: HomeId = HomeId(7);
pub(crate) const TOKEN: &str = "ya29.FAKE-access-token";
pub(crate) const ADDRESS: &str = "dev@example.invalid";

/// Signs a home in with Google, as [`ADDRESS`].
pub(crate) fn sign_in(home: &Path, credentials: &Value) {
    let gemini = home.join(".gemini");
    std::fs::create_dir_all(&gemini).unwrap();
    for (name, content) in [
        ("settings.json", &json!({"security": {"auth": {"selectedType": "oauth-personal"}}})),
        ("oauth_creds.json", credentials),
        ("google_accounts.json", &json!({"active": ADDRESS, "old": []})),
    ] {
        std::fs::write(gemini.join(name), content.to_string()).unwrap();
    }
}

/// A home, a clock and a service.
pub(crate) struct SignedIn {
    dir: tempfile::TempDir,
    clock: Arc<AtomicI64>,
    pub(crate) service: CodeAssist,
    pub(crate) settings: Quota,
    /// Variables besides those that lead to the service.
    pub(crate) vars: Vec<(String, String)>,
    /// For one request.
    pub(crate) timeout: Duration,
    pub(crate) keychain: Arc<dyn Keychain>,
}

impl SignedIn {
    /// Signed in for an hour from noon.
    pub(crate) fn new() -> Self {
        let home = Self {
            dir: tempfile::tempdir().unwrap(),
            clock: Arc::new(AtomicI64::new(NOON)),
            service: CodeAssist::start(),
            settings: Quota::default(),
            vars: Vec::new(),
            timeout: Duration::from_secs(60),
            keychain: Arc::new(NoKeychain),
        };
        sign_in(home.path(), &json!({"access_token": TOKEN, "expiry_date": NOON + 60 * MINUTE}));
        home
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Writes a file of `.gemini`.
    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path().join(".gemini").join(name), text).unwrap();
    }

    pub(crate) fn stores(&self, credentials: &Value) {
        self.write("oauth_creds.json", &credentials.to_string());
    }

    pub(crate) fn chooses(&self, auth: &str) {
        self.write("settings.json", &json!({"security": {"auth": {"selectedType": auth}}}).to_string());
    }

    pub(crate) fn var(&mut self, name: &str, value: &str) {
        self.vars.push((name.to_owned(), value.to_owned()));
    }

    pub(crate) fn now(&self) -> i64 {
        self.clock.load(Ordering::SeqCst)
    }

    pub(crate) fn pass(&self, ms: i64) {
        self.clock.fetch_add(ms, Ordering::SeqCst);
    }

    /// Nothing of the machine that runs the test.
    pub(crate) fn outside(&self) -> Outside {
        let nowhere = self.path().join("etc/settings.json").to_str().unwrap().to_owned();
        let ours = [
            ("CODE_ASSIST_ENDPOINT".to_owned(), self.service.url()),
            ("GEMINI_CLI_SYSTEM_SETTINGS_PATH".to_owned(), nowhere),
        ];
        // What a test says beats what every test says.
        let env = Env::of(self.path(), ours.into_iter().chain(self.vars.iter().cloned()));
        let clock = self.clock.clone();
        let mut outside = Outside::of_system(env, move || clock.load(Ordering::SeqCst));
        outside.keychain = self.keychain.clone();
        outside.sleep = Arc::new(|_| ());
        outside.chance = Arc::new(|| 0.0);
        outside.timeout = self.timeout;
        outside
    }

    pub(crate) fn target(&self) -> Target {
        Target { home: HOME, path: self.path().to_owned() }
    }

    pub(crate) fn poll(&self) -> Poll {
        poll_once(self.target(), Consent::by_flag(), &self.settings, &self.outside())
    }

    pub(crate) fn engine(&self) -> Watching<'_> {
        let engine = Engine::new(Consent::by_flag(), vec![self.target()], &self.settings, self.outside());
        Watching { home: self, engine }
    }
}

/// A home that is polled when it is time.
pub(crate) struct Watching<'h> {
    home: &'h SignedIn,
    engine: Engine,
}

impl Watching<'_> {
    pub(crate) fn wake(&mut self, event: Event) {
        self.engine.wake(Wake { home: HOME, event });
    }

    /// Looks, as the thread does every few seconds: the poll that was due.
    pub(crate) fn step(&mut self) -> Option<Poll> {
        let mut polls = Vec::new();
        self.engine.step(&|| true, &mut |poll| polls.push(poll));
        assert!(polls.len() < 2, "one home, one poll: {polls:?}");
        polls.pop()
    }

    /// The poll after so much time.
    pub(crate) fn after(&mut self, ms: i64) -> Option<Poll> {
        self.home.pass(ms);
        self.step()
    }

    /// How long until the next poll, ms.
    pub(crate) fn until_next(&self) -> Option<i64> {
        self.engine.next().map(|at| at - self.home.now())
    }
}
