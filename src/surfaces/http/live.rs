//! Word that the ledger changed, as server-sent events: whoever shows figures
//! asks for them again.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderName, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, stream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::ApiError;

/// Streams at the same time, of all listeners together.
pub const STREAMS: usize = 32;

/// Between two events of a stream.
const GAP: Duration = Duration::from_secs(1);

/// Without an event, a comment shows that the connection still stands.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// What the streams rest on.
#[derive(Clone)]
pub struct Live {
    changes: watch::Receiver<u64>,
    stopping: watch::Receiver<bool>,
    places: Arc<Semaphore>,
}

impl Live {
    /// `changes` counts the changes of the ledger; streams end once `stopping` is so.
    #[must_use]
    pub fn new(changes: watch::Receiver<u64>, stopping: watch::Receiver<bool>) -> Self {
        Self { changes, stopping, places: Arc::new(Semaphore::new(STREAMS)) }
    }

    /// A stream, which begins with how things stand; 503 where there are too many.
    pub(super) fn answer(&self) -> Response {
        let Ok(place) = self.places.clone().try_acquire_owned() else {
            let message = format!("{STREAMS} streams are open already; come again");
            let error = ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "too_many_streams", message);
            return ([(RETRY_AFTER, "30")], error).into_response();
        };
        let (mut changes, stopping) = (self.changes.clone(), self.stopping.clone());
        changes.mark_changed();
        let sse = Sse::new(events(Listener { changes, stopping, gap: Duration::ZERO, _place: place }));
        // A proxy that collects an answer before it passes it on would hold the events back.
        let unbuffered = [(HeaderName::from_static("x-accel-buffering"), "no")];
        (unbuffered, sse.keep_alive(KeepAlive::new().interval(KEEP_ALIVE))).into_response()
    }
}

struct Listener {
    changes: watch::Receiver<u64>,
    stopping: watch::Receiver<bool>,
    gap: Duration,
    _place: OwnedSemaphorePermit,
}

/// Ends when the service stops, or nobody is left who changes the ledger.
fn events(listener: Listener) -> impl Stream<Item = Result<Event, Infallible>> {
    stream::unfold(listener, |mut listener| async move {
        let (changes, gap) = (&mut listener.changes, listener.gap);
        let change = async {
            tokio::time::sleep(gap).await;
            changes.changed().await.ok()?;
            Some(*changes.borrow_and_update())
        };
        let change = tokio::select! {
            _ = listener.stopping.wait_for(|stopping| *stopping) => None,
            change = change => change,
        }?;
        listener.gap = GAP;
        let event = Event::default().event("ledger").data(format!(r#"{{"changes":{change}}}"#));
        Some((Ok(event), listener))
    })
}
