//! From the service's listeners into the ledger: posted events and telemetry.

use std::sync::Arc;

use axum::Router;

use super::clock::Clock;
use crate::health::Health;
use crate::ledger::telemetry::TelemetryBatch;
use crate::sources::events::{self, Batch, Posted, Unavailable};
use crate::sources::otlp::{self, Busy, Refusal, TelemetryIntake};
use crate::store::{StoreError, Writer};

/// Hands over what listeners took, and answers when it is committed.
struct Intake {
    writer: Writer,
    health: Arc<Health>,
    clock: Clock,
}

/// The routes that take data in.
pub(super) fn routes(writer: Writer, health: Arc<Health>, clock: Clock) -> Router {
    let intake = Arc::new(Intake { writer, health, clock });
    events::routes(intake.clone()).merge(otlp::http::routes(intake))
}

impl events::Intake for Intake {
    fn events(&self, batch: Batch) -> Result<Posted, Unavailable> {
        let posted = self.writer.posted(batch).map_err(|_| Unavailable)?;
        self.health.events.last_event.advance(self.clock.now_ms());
        Ok(posted)
    }
}

impl TelemetryIntake for Intake {
    fn telemetry(&self, batch: TelemetryBatch) -> Result<(), Busy> {
        self.writer.telemetry(batch).map_err(|_: StoreError| Busy)?;
        self.health.otlp.last_event.advance(self.clock.now_ms());
        Ok(())
    }

    fn refused(&self, refusal: Refusal) {
        tracing::warn!(reason = refusal.as_str(), "telemetry was refused");
        self.health.otlp_refused(refusal.as_str());
    }
}
