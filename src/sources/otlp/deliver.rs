//! From a body to the intake: bounded in bytes, in time and in number.

use std::borrow::Cow;
use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use flate2::read::MultiGzDecoder;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::{MAX_BODY, Refusal, TelemetryIntake, Undecodable};
use crate::ledger::telemetry::TelemetryBatch;

/// Bodies held at the same time; further ones wait.
const PLACES: usize = 4;

/// How long a body may wait for its place, and then take to arrive.
const PATIENCE: Duration = Duration::from_secs(10);

/// The way from the routes to the intake.
#[derive(Clone)]
pub(super) struct Delivery {
    intake: Arc<dyn TelemetryIntake>,
    places: Arc<Semaphore>,
}

impl Delivery {
    pub(super) fn to(intake: Arc<dyn TelemetryIntake>) -> Self {
        Self { intake, places: Arc::new(Semaphore::new(PLACES)) }
    }

    /// Reads a body, decodes it and hands it over. Returns how many records
    /// of it were malformed.
    pub(super) async fn deliver(
        &self,
        body: Body,
        decode: impl FnOnce(&[u8]) -> Result<TelemetryBatch, Refusal> + Send + 'static,
    ) -> Result<u64, Refusal> {
        let delivered = self.try_deliver(body, decode).await;
        delivered.inspect_err(|refusal| self.intake.refused(*refusal))
    }

    /// Notes a body that was refused before it was read.
    pub(super) fn refused(&self, refusal: Refusal) -> Refusal {
        self.intake.refused(refusal);
        refusal
    }

    async fn try_deliver(
        &self,
        body: Body,
        decode: impl FnOnce(&[u8]) -> Result<TelemetryBatch, Refusal> + Send + 'static,
    ) -> Result<u64, Refusal> {
        let place = timeout(PATIENCE, Arc::clone(&self.places).acquire_owned()).await;
        let Ok(Ok(place)) = place else { return Err(Refusal::Busy) };
        let bytes = timeout(PATIENCE, collect(body)).await.map_err(|_| Refusal::Incomplete)??;
        let intake = Arc::clone(&self.intake);
        let delivered = tokio::task::spawn_blocking(move || {
            let batch = decode(&bytes)?;
            drop(bytes);
            let malformed = batch.malformed;
            intake.telemetry(batch).map_err(|_| Refusal::Busy)?;
            drop(place);
            Ok(malformed)
        });
        // A panic of the intake: the sender keeps the batch and comes again.
        delivered.await.unwrap_or(Err(Refusal::Busy))
    }
}

impl From<Undecodable> for Refusal {
    fn from(_: Undecodable) -> Self {
        Self::Undecodable
    }
}

async fn collect(body: Body) -> Result<Bytes, Refusal> {
    if body.size_hint().lower() > MAX_BODY as u64 {
        return Err(Refusal::TooLarge);
    }
    match Limited::new(body, MAX_BODY).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Refusal::TooLarge),
        Err(_) => Err(Refusal::Incomplete),
    }
}

/// Lets a body that nobody looks at arrive, so that its sender is content.
pub(super) async fn discard(mut body: Body) -> Result<(), Refusal> {
    let arrive = async {
        let mut len = 0;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| Refusal::Incomplete)?;
            len += frame.data_ref().map_or(0, Bytes::len);
            if len > MAX_BODY {
                return Err(Refusal::TooLarge);
            }
        }
        Ok(())
    };
    timeout(PATIENCE, arrive).await.unwrap_or(Err(Refusal::Incomplete))
}

/// How a body is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packing {
    Plain,
    Gzip,
}

impl Packing {
    /// As a header names it; `None`: not one of ours.
    pub(super) fn named(name: Option<&[u8]>) -> Option<Self> {
        match name.map(<[u8]>::trim_ascii) {
            None => Some(Self::Plain),
            Some(name) if name.eq_ignore_ascii_case(b"identity") => Some(Self::Plain),
            Some(name) if name.eq_ignore_ascii_case(b"gzip") => Some(Self::Gzip),
            Some(_) => None,
        }
    }

    /// The bytes inside, at most [`MAX_BODY`] of them.
    pub(super) fn unpack(self, packed: &[u8]) -> Result<Cow<'_, [u8]>, Refusal> {
        if self == Self::Plain {
            return Ok(packed.into());
        }
        let mut plain = Vec::new();
        let mut limited = MultiGzDecoder::new(packed).take(MAX_BODY as u64 + 1);
        limited.read_to_end(&mut plain).map_err(|_| Refusal::Undecodable)?;
        if plain.len() > MAX_BODY { Err(Refusal::TooLarge) } else { Ok(plain.into()) }
    }
}
