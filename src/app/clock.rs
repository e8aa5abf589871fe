//! The one place where the time comes in.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Wall clock and stopwatch of the process.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    started: Instant,
}

impl Clock {
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is the one place")]
    pub fn start() -> Self {
        Self { started: Instant::now() }
    }

    /// Unix milliseconds; a clock before 1970 counts as 0.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is the one place")]
    pub fn now_ms(self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }

    /// Time since the process began, which never steps back.
    #[must_use]
    pub fn elapsed(self) -> Duration {
        self.started.elapsed()
    }
}
