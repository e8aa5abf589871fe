//! One poll of one home, step by step: how it signs in, its token, its
//! project, its buckets. Each step may end it with a state.

use serde_json::json;

use super::Target;
use super::account::UNKNOWN;
use super::answer::{self, Loaded, Verdict};
use super::client::Client;
use super::credentials::{self, Found};
use super::outside::Outside;
use super::token::{Fingerprint, Token};
use crate::config::{Launch, ProjectId, ProjectRule, Quota, SignIn};
use crate::ledger::quota::poll::{Poll, QuotaState};
use crate::ledger::quota::schedule::{Event, Outcome, Then};

/// A token that lasts no longer is not worth a request.
const ALMOST_EXPIRED: i64 = 60_000;

/// What an account may do and its project change rarely.
const LOAD_AGAIN: i64 = 60 * 60_000;

/// A home, and what is remembered of it between polls.
pub(super) struct Home {
    target: Target,
    settings: Quota,
    /// What the account was found to be, and when.
    loaded: Option<(Question, Loaded, i64)>,
    /// The token that was refused for good, and how: it is not shown again.
    refused: Option<(Fingerprint, Verdict)>,
}

/// What `loadCodeAssist` was asked with.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Question {
    account: String,
    project: Option<ProjectId>,
}

/// A poll and what it means for the next one.
pub(super) struct Polled {
    pub(super) poll: Poll,
    pub(super) outcome: Outcome,
}

/// What is known by the time a poll ends, however it ends.
#[derive(Default)]
struct Known {
    account: Option<String>,
    project: Option<String>,
    asked: bool,
}

impl Home {
    pub(super) fn new(target: Target, settings: Quota) -> Self {
        Self { target, settings, loaded: None, refused: None }
    }

    pub(super) fn target(&self) -> &Target {
        &self.target
    }

    /// Forgets what an event may have changed. Other settings may help a token
    /// that was refused, but not one that has expired; another sign-in shows by
    /// its token.
    pub(super) fn forget(&mut self, event: Event) {
        if matches!(event, Event::CredentialChanged | Event::SettingsChanged) {
            self.loaded = None;
        }
        if event == Event::SettingsChanged {
            self.refused.take_if(|(_, verdict)| verdict.state != QuotaState::WaitingForRefresh);
        }
    }

    /// Looks at the home, and asks if there is reason to.
    pub(super) fn poll(&mut self, outside: &Outside) -> Polled {
        let mut known = Known::default();
        let result = self.steps(&mut known, outside);
        let at = (outside.now)();
        let (state, detail, then, buckets) = match result {
            Ok(quota) => (QuotaState::Ok, quota.detail, Then::Steady, quota.buckets),
            Err(verdict) => {
                let passes = matches!(verdict.then, Then::Soon | Then::Later(_));
                if !passes || verdict.state == QuotaState::NoProject {
                    self.loaded = None;
                }
                (verdict.state, Some(verdict.detail), verdict.then, Vec::new())
            }
        };
        let resets_at =
            buckets.iter().filter_map(|bucket| bucket.resets_at).filter(|reset| *reset > at).min();
        let outcome = Outcome { then, asked: known.asked, resets_at };
        let poll = Poll {
            home: self.target.home,
            at,
            state,
            detail,
            account: known.account,
            cloud_project: known.project,
            buckets,
            next_poll_at: None,
            asked: known.asked,
        };
        Polled { poll, outcome }
    }

    fn steps(&mut self, known: &mut Known, outside: &Outside) -> Result<answer::Quota, Verdict> {
        let env = &outside.env;
        let launch = Launch::of_home(&self.target.path, env);
        self.signed_in_with_google(&launch, outside)?;
        let client = Client::new(&self.settings, &launch, outside)
            .map_err(|why| Verdict::new(QuotaState::Unavailable, Then::Hold, why))?;
        let said = self.project(&launch)?;
        let (token, watched) = self.token(&launch, known, outside)?;
        // A keychain tells of no change: it is looked at again.
        let unless_seen = |verdict: Verdict| match verdict.then {
            Then::Hold if !watched => Verdict { then: Then::Steady, ..verdict },
            _ => verdict,
        };
        if let Some((refused, verdict)) = &self.refused
            && *refused == token.fingerprint()
        {
            return Err(unless_seen(verdict.clone()));
        }
        self.ask(&client, &token, said, known, outside).map_err(|verdict| {
            if verdict.then == Then::Hold && known.asked {
                self.refused = Some((token.fingerprint(), verdict.clone()));
            }
            unless_seen(verdict)
        })
    }

    /// Nothing else has a quota that could be asked for (quota Q3).
    fn signed_in_with_google(&self, launch: &Launch<'_>, outside: &Outside) -> Result<(), Verdict> {
        let sign_in = SignIn::of_home(&self.target.path, &outside.env, launch);
        let sign_in = sign_in.map_err(|why| Verdict::new(QuotaState::Unreadable, Then::Hold, why))?;
        let other = |how: &str| {
            let detail = format!("{how}: such a home has no quota of Code Assist");
            Err(Verdict::new(QuotaState::NotGoogleSignIn, Then::Hold, detail))
        };
        match sign_in {
            SignIn::Google => Ok(()),
            SignIn::Machine => Err(Verdict::new(
                QuotaState::NoSignIn,
                Then::Hold,
                "the identity of a cloud machine is used, of which nothing is stored",
            )),
            SignIn::ApiKey => other("an API key is used"),
            SignIn::Vertex => other("Vertex AI is used"),
            SignIn::Gateway => other("a gateway is used"),
            SignIn::Other => other("the settings choose another way to sign in"),
            SignIn::Unsaid => other("neither settings nor environment choose a way to sign in"),
        }
    }

    /// The pinned project, else that of the environment the agent is launched in.
    fn project(&self, launch: &Launch<'_>) -> Result<Option<ProjectId>, Verdict> {
        if let ProjectRule::Pinned(id) = &self.settings.project {
            return Ok(Some(id.clone()));
        }
        let said = launch.var("GOOGLE_CLOUD_PROJECT").or_else(|| launch.var("GOOGLE_CLOUD_PROJECT_ID"));
        said.map(answer::usable).transpose()
    }

    /// A token worth showing (quota Q4, Q5), and whether its change would be seen.
    fn token(
        &self,
        launch: &Launch<'_>,
        known: &mut Known,
        outside: &Outside,
    ) -> Result<(Token, bool), Verdict> {
        let root = self.target.path.join(".gemini");
        let found = credentials::find(&root, launch, outside).map_err(|shut| {
            let then = if shut.watched { Then::Hold } else { Then::Later(None) };
            Verdict::new(QuotaState::Unreadable, then, shut.why)
        })?;
        let Some(Found { stored, watched }) = found else {
            return Err(Verdict::new(QuotaState::NoSignIn, Then::Hold, "no sign-in is stored"));
        };
        let identity = stored.identity.or_else(|| credentials::last_account(&root, outside));
        let account = identity.as_ref().map_or(UNKNOWN, |identity| identity.as_str());
        known.account = Some(self.settings.accounts.get(account).map_or(account, String::as_str).to_owned());

        let then = if watched { Then::Hold } else { Then::Steady };
        let waiting = |why: String| Verdict::new(QuotaState::WaitingForRefresh, then, why);
        let Some(token) = stored.token else {
            return Err(waiting("no access token is stored; Gemini CLI gets one when it next works".into()));
        };
        let now = (outside.now)();
        if let Some(at) = stored.expires_at.filter(|at| *at <= now.saturating_add(ALMOST_EXPIRED)) {
            let ends = if at <= now { "expired" } else { "expires" };
            let at = jiff::Timestamp::from_millisecond(at).map(|at| at.to_string()).unwrap_or_default();
            return Err(waiting(format!(
                "the token {ends} at {at}; Gemini CLI renews it when it next works"
            )));
        }
        Ok((token, watched))
    }

    /// The two requests. Which project is asked about: quota Q7.
    fn ask(
        &mut self,
        client: &Client,
        token: &Token,
        said: Option<ProjectId>,
        known: &mut Known,
        outside: &Outside,
    ) -> Result<answer::Quota, Verdict> {
        let loaded = self.load(client, token, said.as_ref(), known, outside)?;
        let assigned = || loaded.project.as_deref().map(answer::usable).transpose();
        let project = match (&self.settings.project, said) {
            (ProjectRule::Auto, said) => assigned()?.or(said),
            (ProjectRule::Pinned(_) | ProjectRule::Env, Some(said)) => Some(said),
            (ProjectRule::Pinned(_) | ProjectRule::Env, None) => assigned()?,
        };
        let Some(project) = project else {
            return Err(match loaded {
                Loaded { unsupported: true, .. } => answer::no_longer_supported(),
                Loaded { kept_back: true, .. } => Verdict::new(
                    QuotaState::Denied,
                    Then::Hold,
                    "a policy of the organization forbids it, and no project is configured",
                ),
                // What would come back is the dummy answer, every bucket full.
                _ => Verdict::new(
                    QuotaState::NoProject,
                    Then::Later(None),
                    "Google assigned no project, and GOOGLE_CLOUD_PROJECT names none",
                ),
            });
        };
        known.project = Some(project.as_str().to_owned());
        known.asked = true;
        let reply = client.ask("retrieveUserQuota", &json!({"project": project.as_str()}), token);
        answer::quota(&reply, &loaded, (outside.now)())
    }

    /// What the account is, asked for once an hour.
    fn load(
        &mut self,
        client: &Client,
        token: &Token,
        said: Option<&ProjectId>,
        known: &mut Known,
        outside: &Outside,
    ) -> Result<Loaded, Verdict> {
        let now = (outside.now)();
        let question =
            Question { account: known.account.clone().unwrap_or_default(), project: said.cloned() };
        if let Some((asked, loaded, at)) = &self.loaded
            && *asked == question
            && (0..LOAD_AGAIN).contains(&(now - at))
        {
            return Ok(loaded.clone());
        }
        let mut body = json!({"metadata": {
            "ideType": "IDE_UNSPECIFIED", "platform": "PLATFORM_UNSPECIFIED", "pluginType": "GEMINI",
        }});
        if let Some(project) = said {
            body["cloudaicompanionProject"] = project.as_str().into();
            body["metadata"]["duetProject"] = project.as_str().into();
        }
        known.asked = true;
        let loaded = answer::load(&client.ask("loadCodeAssist", &body, token), now)?;
        self.loaded = Some((question, loaded.clone(), now));
        Ok(loaded)
    }
}
