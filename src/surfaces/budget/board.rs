//! The last answers, for whoever shows them often.

use std::sync::{Mutex, PoisonError};

use super::{Line, Tally};
use crate::ledger::budget::Budget;

/// What was spent of each budget when somebody last looked. A scrape reads it
/// and goes through no request.
#[derive(Debug, Default)]
pub struct Board(Mutex<Vec<(Budget, Tally)>>);

impl Board {
    pub fn publish(&self, answers: Vec<(Budget, Tally)>) {
        *self.answers() = answers;
    }

    /// How the budgets stand at `now` by what was last seen; one whose period
    /// has ended meanwhile is left out until somebody looks again.
    #[must_use]
    pub fn read(&self, now: i64) -> Vec<Line> {
        let answers = self.answers();
        let current = answers.iter().filter(|(_, tally)| now < tally.span.end);
        current.map(|(budget, tally)| Line::of(budget, tally, now)).collect()
    }

    fn answers(&self) -> std::sync::MutexGuard<'_, Vec<(Budget, Tally)>> {
        // It is replaced as a whole: a panic elsewhere leaves nothing half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
