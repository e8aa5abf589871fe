//! A Code Assist of our own, on loopback: it gives scripted answers and keeps
//! what it was asked.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, Response, StatusCode, Uri};
use serde_json::{Value, json};
use tower_http::compression::CompressionLayer;

pub(crate) const LOAD: &str = "loadCodeAssist";
pub(crate) const QUOTA: &str = "retrieveUserQuota";

/// An answer, or none.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Says {
        status: u16,
        headers: Vec<(&'static str, String)>,
        body: Bytes,
    },
    /// The connection stays open and silent.
    Never,
}

impl Answer {
    pub(crate) fn json(status: u16, body: &Value) -> Self {
        Self::text(status, "application/json", body.to_string())
    }

    pub(crate) fn text(status: u16, kind: &str, body: impl Into<Bytes>) -> Self {
        Self::Says { status, headers: vec![("content-type", kind.to_owned())], body: body.into() }
    }

    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Self {
        if let Self::Says { headers, .. } = &mut self {
            headers.push((name, value.to_owned()));
        }
        self
    }

    /// Packed, as the service packs what is long.
    pub(crate) fn packed(self) -> Self {
        self.with(PACK, "yes")
    }

    /// An account of the standard tier with this project.
    pub(crate) fn account(project: &Value) -> Self {
        Self::json(
            200,
            &json!({"currentTier": {"id": "standard-tier", "name": "Gemini Code Assist"},
                    "cloudaicompanionProject": project, "gcpManaged": false}),
        )
    }

    /// An account that is told why it may not.
    pub(crate) fn ineligible(reason: &str) -> Self {
        Self::json(200, &json!({"ineligibleTiers": [{"reasonCode": reason, "tierId": "free-tier"}]}))
    }

    pub(crate) fn buckets(buckets: &Value) -> Self {
        Self::json(200, &json!({"buckets": buckets}))
    }

    /// Google's envelope of an error.
    pub(crate) fn refusal(status: u16, reason: Option<&str>, details: &[Value]) -> Self {
        let info = reason
            .map(|reason| json!({"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason}));
        let details: Vec<Value> = info.into_iter().chain(details.iter().cloned()).collect();
        Self::json(status, &json!({"error": {"code": status, "message": "made up", "details": details}}))
    }
}

/// Marks an answer that is to be packed.
const PACK: &str = "x-pack";

/// A request as it arrived.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Asked {
    pub(crate) method: String,
    /// Path and query.
    pub(crate) path: String,
    pub(crate) question: Value,
    pub(crate) token: Option<String>,
    pub(crate) agent: Option<String>,
}

impl Asked {
    /// What is asked of the service: what follows the colon.
    pub(crate) fn call(&self) -> &str {
        let path = self.path.split('?').next().unwrap();
        path.rsplit_once(':').map_or(path, |(_, call)| call)
    }
}

#[derive(Default)]
struct Told {
    /// The answers of a call in turn; the last one stays.
    answers: HashMap<String, Vec<Answer>>,
    asked: Vec<Asked>,
}

/// The running server; it goes with this.
pub(crate) struct CodeAssist {
    address: SocketAddr,
    told: Arc<Mutex<Told>>,
    _runtime: tokio::runtime::Runtime,
}

impl CodeAssist {
    /// An account with a project and two buckets, until told otherwise.
    pub(crate) fn start() -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let told = Arc::<Mutex<Told>>::default();
        let packed = |_: StatusCode,
                      _: axum::http::Version,
                      headers: &HeaderMap,
                      _: &axum::http::Extensions| { headers.contains_key(PACK) };
        let app = Router::new()
            .fallback(answer)
            .with_state(told.clone())
            .layer(CompressionLayer::new().compress_when(packed));
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        runtime.spawn(async move { axum::serve(listener, app).await });
        let server = Self { address, told, _runtime: runtime };
        server.says(LOAD, [Answer::account(&json!("assigned-project"))]);
        server.says(QUOTA, [Answer::buckets(&two_buckets())]);
        server
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The answers to a call from now on, in turn; the last one stays.
    pub(crate) fn says(&self, call: &str, answers: impl IntoIterator<Item = Answer>) {
        let mut answers: Vec<Answer> = answers.into_iter().collect();
        answers.reverse();
        self.told.lock().unwrap().answers.insert(call.to_owned(), answers);
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.told.lock().unwrap().asked.clone()
    }

    /// The calls that arrived, in order, and forgets them.
    pub(crate) fn take_calls(&self) -> Vec<String> {
        let asked = std::mem::take(&mut self.told.lock().unwrap().asked);
        asked.iter().map(|asked| asked.call().to_owned()).collect()
    }
}

pub(crate) fn two_buckets() -> Value {
    json!([
        {"modelId": "gemini-2.5-pro", "tokenType": "REQUESTS", "remainingAmount": "1080",
         "remainingFraction": 0.72, "resetTime": "2026-12-01T11:23:43Z"},
        {"modelId": "gemini-2.5-flash", "tokenType": "REQUESTS", "remainingFraction": 0.998,
         "resetTime": "2026-12-01T11:23:43Z"},
    ])
}

async fn answer(
    State(told): State<Arc<Mutex<Told>>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    let header = |name: &str| Some(headers.get(name)?.to_str().unwrap().to_owned());
    let asked = Asked {
        method: method.to_string(),
        path: uri.to_string(),
        question: serde_json::from_slice(&body).unwrap_or_default(),
        token: header("authorization").map(|value| value.trim_start_matches("Bearer ").to_owned()),
        agent: header("user-agent"),
    };
    let answer = {
        let mut told = told.lock().unwrap();
        let call = asked.call().to_owned();
        told.asked.push(asked);
        match told.answers.get_mut(&call) {
            Some(answers) if answers.len() > 1 => answers.pop(),
            Some(answers) => answers.last().cloned(),
            None => None,
        }
    };
    match answer.unwrap_or_else(|| Answer::refusal(404, None, &[])) {
        Answer::Never => std::future::pending().await,
        Answer::Says { status, headers, body } => {
            let mut response = Response::builder().status(status);
            for (name, value) in headers {
                response = response.header(name, value);
            }
            response.body(Body::from(body)).unwrap()
        }
    }
}
