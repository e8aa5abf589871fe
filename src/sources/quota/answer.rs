//! What an answer of Code Assist means (quota Q7, Q10, Q12): a state, a
//! sentence, how to go on, and buckets as they are stated.

mod error;
mod quota;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::client::Reply;
use super::plain::object;
use crate::config::ProjectId;
use crate::ledger::quota::poll::QuotaState;
use crate::ledger::quota::schedule::Then;

use error::Problem;
pub(super) use quota::{Quota, quota};

/// Why there are no buckets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) state: QuotaState,
    /// A sentence for people.
    pub(super) detail: String,
    pub(super) then: Then,
}

impl Verdict {
    pub(super) fn new(state: QuotaState, then: Then, detail: impl Into<String>) -> Self {
        Self { state, detail: detail.into(), then }
    }

    fn trouble(detail: impl Into<String>) -> Self {
        Self::new(QuotaState::Unavailable, Then::Soon, detail)
    }
}

/// What `loadCodeAssist` said of the account, where it may be asked further.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Loaded {
    /// The project Google assigned.
    pub(super) project: Option<String>,
    /// The account is of a kind that Gemini CLI no longer serves.
    pub(super) unsupported: bool,
    /// The perimeter of an organization kept the answer back; the CLI goes on.
    pub(super) kept_back: bool,
}

const UNSUPPORTED: &str = "UNSUPPORTED_CLIENT";
const NO_LONGER: &str =
    "Google no longer serves this account through Gemini CLI (consumer plans ended on 18 June 2026)";
const VERIFY: &str = "Google wants this account verified first: start Gemini CLI, which shows how";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LoadAnswer {
    current_tier: Option<Value>,
    #[serde(default)]
    ineligible_tiers: Option<Vec<Value>>,
    cloudaicompanion_project: Option<Value>,
}

/// Reads the answer of `loadCodeAssist`.
pub(super) fn load(reply: &Reply, now: i64) -> Result<Loaded, Verdict> {
    let body = match good(reply, now) {
        Ok(body) => body,
        Err(Problem { reason: Some(reason), status: 403, .. }) if reason == "SECURITY_POLICY_VIOLATED" => {
            return Ok(Loaded { kept_back: true, ..Loaded::default() });
        }
        Err(problem) => return Err(problem.verdict()),
    };
    let answer: LoadAnswer = object(body).ok_or_else(no_sense)?;
    let reasons: Vec<&str> = answer
        .ineligible_tiers
        .iter()
        .flatten()
        .filter_map(|tier| error::code(tier["reasonCode"].as_str()?))
        .collect();
    let project = answer.cloudaicompanion_project.as_ref().and_then(assigned).map(str::to_owned);
    let unsupported = reasons.contains(&UNSUPPORTED);
    if answer.current_tier.is_some_and(|tier| tier.is_object()) {
        return Ok(Loaded { project, unsupported, kept_back: false });
    }
    Err(match () {
        () if unsupported => no_longer_supported(),
        () if reasons.contains(&"VALIDATION_REQUIRED") => {
            Verdict::new(QuotaState::ValidationRequired, Then::Hold, VERIFY)
        }
        () => match reasons.first() {
            Some(reason) => Verdict::new(
                QuotaState::Denied,
                Then::Hold,
                format!("Google says that this account may not use Code Assist ({reason})"),
            ),
            None => Verdict::new(
                QuotaState::NoProject,
                Then::Later(None),
                "Google has not set this account up for Code Assist; the next start of Gemini CLI does",
            ),
        },
    })
}

pub(super) fn no_longer_supported() -> Verdict {
    Verdict::new(QuotaState::ClientNoLongerSupported, Then::Hold, NO_LONGER)
}

/// A project as text, or as an object with an id.
fn assigned(project: &Value) -> Option<&str> {
    project.as_str().or_else(|| project["id"].as_str()).filter(|id| !id.is_empty())
}

/// An id that may be asked with (quota Q7).
pub(super) fn usable(project: &str) -> Result<ProjectId, Verdict> {
    project.parse().map_err(|_| {
        let number = !project.is_empty() && project.bytes().all(|byte| byte.is_ascii_digit());
        let detail = match number {
            true => "the project is named by its number, which Gemini CLI refuses: its id is needed",
            false => "the project is not named by a bare id",
        };
        Verdict::new(QuotaState::NoProject, Then::Hold, detail)
    })
}

/// The text of an answer with status 200.
fn good(reply: &Reply, now: i64) -> Result<&str, Problem> {
    match reply {
        Reply::Answer { status: 200, body, .. } => {
            str::from_utf8(body).map_err(|_| Problem::trouble("the answer is no text"))
        }
        Reply::Answer { status, retry_after, body } => {
            Err(Problem::refused(*status, retry_after.as_deref(), body, now))
        }
        Reply::Nothing(why) => Err(Problem::trouble(why)),
    }
}

fn no_sense() -> Verdict {
    Verdict::trouble("the answer is not what Code Assist says: something else may have answered")
}

fn millis(text: &str) -> Option<i64> {
    text.parse::<Timestamp>().ok().map(Timestamp::as_millisecond).filter(|at| *at > 0)
}

#[cfg(test)]
mod tests;
