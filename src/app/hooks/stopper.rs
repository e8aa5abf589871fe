//! Ends threads that wait.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Shared by whoever waits and whoever ends the waiting.
#[derive(Clone, Default)]
pub(super) struct Stopper(Arc<(Mutex<bool>, Condvar)>);

impl Stopper {
    pub(super) fn stop(&self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.1.notify_all();
    }

    pub(super) fn is_stopping(&self) -> bool {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits so long, or until it is to stop: then `true`.
    pub(super) fn wait(&self, duration: Duration) -> bool {
        let stopping = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.0.1.wait_timeout_while(stopping, duration, |stopping| !*stopping);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}
