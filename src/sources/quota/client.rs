//! The two requests that are made, and nothing else (quota Q6).

use std::io::Read as _;

use serde_json::Value;
use ureq::Agent;
use ureq::http::HeaderValue;
use ureq::http::header::{AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER};
use zeroize::Zeroizing;

use super::outside::Outside;
use super::token::Token;
use crate::config::{ApiVersion, Endpoint, Launch, Quota};

/// Where Google has it.
const ENDPOINT: &str = "https://cloudcode-pa.googleapis.com";
const VERSION: &str = "v1internal";

/// No answer is longer, once unpacked.
const LIMIT: usize = 1 << 20;

/// A way to the service.
pub(super) struct Client {
    agent: Agent,
    base: String,
}

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Answer {
        status: u16,
        /// The header of that name.
        retry_after: Option<String>,
        body: Vec<u8>,
    },
    /// There was no whole answer; why, without address or token.
    Nothing(String),
}

impl Client {
    /// # Errors
    /// Why no token may go where the environment says, as a sentence.
    pub(super) fn new(settings: &Quota, launch: &Launch<'_>, outside: &Outside) -> Result<Self, String> {
        let endpoint = chosen(settings.endpoint.clone(), "CODE_ASSIST_ENDPOINT", launch)?;
        let version: Option<ApiVersion> =
            chosen(settings.api_version.clone(), "CODE_ASSIST_API_VERSION", launch)?;
        let endpoint = endpoint.as_ref().map_or(ENDPOINT, Endpoint::as_str);
        let version = version.as_ref().map_or(VERSION, ApiVersion::as_str);
        let config = Agent::config_builder()
            .timeout_global(Some(outside.timeout))
            .user_agent(concat!("gemgauge/", env!("CARGO_PKG_VERSION")))
            .accept("application/json")
            // A token goes where the configuration says, not where an answer does.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            // The environment is read in one place, and that is not here.
            .proxy(None)
            .build();
        Ok(Self { agent: config.into(), base: format!("{endpoint}/{version}") })
    }

    /// Asks `method` of the service.
    pub(super) fn ask(&self, method: &str, question: &Value, token: &Token) -> Reply {
        let mut bearer = Zeroizing::new(String::with_capacity(token.expose().len() + 7));
        *bearer += "Bearer ";
        *bearer += token.expose();
        let Ok(mut bearer) = HeaderValue::from_str(&bearer) else {
            return Reply::Nothing("the stored token has characters that no token has".into());
        };
        // Marked, so that nobody on the way prints it.
        bearer.set_sensitive(true);
        let request = self
            .agent
            .post(format!("{}:{method}", self.base))
            .header(AUTHORIZATION, bearer)
            .header(CONTENT_TYPE, "application/json");
        let mut answer = match request.send(question.to_string()) {
            Ok(answer) => answer,
            Err(error) => return Reply::Nothing(plain(&error)),
        };
        let status = answer.status().as_u16();
        let retry_after = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let retry_after = retry_after.map(str::to_owned);
        let mut body = Vec::new();
        let mut reader = answer.body_mut().as_reader().take(LIMIT as u64 + 1);
        match reader.read_to_end(&mut body) {
            Ok(_) if body.len() > LIMIT => Reply::Nothing("the answer is longer than 1 MiB".into()),
            Ok(_) => Reply::Answer { status, retry_after, body },
            Err(error) if is_timeout(&error) => Reply::Nothing(TOO_LONG.into()),
            Err(_) => Reply::Nothing("the answer was cut off".into()),
        }
    }
}

/// What our configuration says, else the environment the agent is launched in.
/// A `.env` file never does.
fn chosen<T: std::str::FromStr<Err = String>>(
    configured: Option<T>,
    name: &str,
    launch: &Launch<'_>,
) -> Result<Option<T>, String> {
    if configured.is_some() {
        return Ok(configured);
    }
    let said = launch.process_var(name).map(str::parse).transpose();
    said.map_err(|error| format!("${name}: {error}"))
}

const TOO_LONG: &str = "it took too long";

/// What is wrong, in words of ours.
fn plain(error: &ureq::Error) -> String {
    use ureq::Error;
    match error {
        Error::Timeout(_) => TOO_LONG.into(),
        Error::HostNotFound => "there is no such host".into(),
        Error::ConnectionFailed => "there is no connection".into(),
        Error::Io(error) if is_timeout(error) => TOO_LONG.into(),
        Error::Io(error) => format!("the connection failed ({})", error.kind()),
        Error::Rustls(_) | Error::Tls(_) => "no secure connection could be made".into(),
        Error::Protocol(_) => "the answer is no HTTP".into(),
        _ => "the request failed".into(),
    }
}

fn is_timeout(error: &std::io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<ureq::Error>());
    error.kind() == std::io::ErrorKind::TimedOut || matches!(inner, Some(ureq::Error::Timeout(_)))
}
