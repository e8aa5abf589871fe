//! When a home's quota is asked for next (quota Q2, Q12): events and results in,
//! a moment out. All times are unix ms.

/// Between an answered poll and the next one.
const FLOOR: i64 = 60_000;
/// Between polls while a session is live.
const LIVE: i64 = 5 * 60_000;
/// From a refused request to the poll that looks what is left.
const AFTER_REFUSAL: i64 = 10_000;
/// From a stated reset to the poll that sees it.
const AFTER_RESET: i64 = 2_000;
/// The first wait after network trouble, and the longest.
const SOON: (i64, i64) = (30_000, 15 * 60_000);
/// The first wait after a 429 that names none, and the longest.
const LATER: (i64, i64) = (5 * 60_000, 60 * 60_000);
/// The longest wait that a server is believed.
const LONGEST: i64 = 24 * 60 * 60_000;

/// What happened to a home, as far as it moves its next poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The service began to watch it.
    Started,
    /// Whether any session of the home is live.
    Sessions {
        live: bool,
    },
    TurnEnded,
    /// A request was refused with a 429.
    Refused,
    /// The stored sign-in is not what it was.
    CredentialChanged,
    /// How the home signs in may not be what it was.
    SettingsChanged,
}

/// How to go on after a poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// As events and the clock have it.
    Steady,
    /// Not before the credential or the settings change.
    Hold,
    /// Trouble on the way: 30 s, doubling to 15 min, with jitter.
    Soon,
    /// Asked to wait so long (ms), else 5 min, doubling to 1 h.
    Later(Option<i64>),
}

/// What a poll came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub then: Then,
    /// Whether a request was made. A look at local files alone delays nothing.
    pub asked: bool,
    /// The earliest stated reset that is yet to come.
    pub resets_at: Option<i64>,
}

/// The schedule of one home's one poller, however many sessions it has.
#[derive(Clone, Debug, Default)]
pub struct Schedule {
    live: bool,
    /// A poll that an event asked for, and no poll has answered yet.
    wanted: Option<i64>,
    /// Whether a refused request asked for it.
    refused: bool,
    looked_at: Option<i64>,
    asked_at: Option<i64>,
    resets_at: Option<i64>,
    /// After trouble: no poll sooner, and one then, while a session is live.
    retry_at: Option<i64>,
    held: bool,
    troubles: u32,
    delays: u32,
}

impl Schedule {
    /// Takes an event in.
    pub fn on(&mut self, event: Event, now: i64) {
        self.set_back_to(now);
        match event {
            Event::Started => self.want(now),
            Event::Sessions { live } => self.live = live,
            Event::TurnEnded if !self.held => self.want(now),
            // Once: a request that is refused again and again pushes nothing
            // away, and what is left is only known a little later.
            Event::Refused if !self.held && !self.refused => {
                self.wanted = Some(now + AFTER_REFUSAL);
                self.refused = true;
            }
            Event::TurnEnded | Event::Refused => {}
            Event::CredentialChanged | Event::SettingsChanged => {
                self.held = false;
                self.wanted = Some(now);
            }
        }
    }

    /// Takes in what a poll came to. `jitter` is from 0 to 1.
    pub fn done(&mut self, outcome: Outcome, now: i64, jitter: f64) {
        self.set_back_to(now);
        (self.wanted, self.refused) = (None, false);
        self.looked_at = Some(now);
        if outcome.asked {
            self.asked_at = Some(now);
        }
        let still_to_come = self.resets_at.filter(|at| *at > now);
        self.resets_at = outcome.resets_at.filter(|at| *at > now).or(still_to_come);
        self.retry_at = None;
        self.held = outcome.then == Then::Hold;
        match outcome.then {
            Then::Steady | Then::Hold => (self.troubles, self.delays) = (0, 0),
            Then::Soon => {
                let wait = doubled(SOON, self.troubles);
                self.troubles = self.troubles.saturating_add(1);
                self.retry_at = Some(now + wait + spread(wait, jitter));
            }
            Then::Later(asked) => {
                let wait = match asked {
                    Some(asked) => asked.clamp(FLOOR, LONGEST),
                    None => doubled(LATER, self.delays),
                };
                self.delays = self.delays.saturating_add(1);
                self.retry_at = Some(now + wait);
            }
        }
    }

    /// When to poll next; `None`: not before something happens.
    #[must_use]
    pub fn next(&self) -> Option<i64> {
        if self.held {
            return None;
        }
        let regular = self.live.then(|| {
            let by_age = self.looked_at.map_or(i64::MIN, |at| at + LIVE);
            let by_reset = self.resets_at.map_or(i64::MAX, |at| at + AFTER_RESET);
            by_age.min(by_reset).min(self.retry_at.unwrap_or(i64::MAX))
        });
        let due = self.wanted.into_iter().chain(regular).min()?;
        let allowed = self.retry_at.or(self.asked_at.map(|at| at + FLOOR));
        Some(due.max(allowed.unwrap_or(i64::MIN)))
    }

    /// Whether it is time for a poll.
    #[must_use]
    pub fn is_due(&self, now: i64) -> bool {
        self.next().is_some_and(|at| at <= now)
    }

    fn want(&mut self, at: i64) {
        self.wanted = Some(self.wanted.unwrap_or(at));
    }

    /// A clock that was set back must not put a poll off for as long.
    fn set_back_to(&mut self, now: i64) {
        for at in [&mut self.looked_at, &mut self.asked_at].into_iter().flatten() {
            *at = (*at).min(now);
        }
        if let Some(at) = &mut self.retry_at {
            *at = (*at).min(now + LONGEST);
        }
        if let Some(at) = &mut self.wanted {
            *at = (*at).min(now + AFTER_REFUSAL);
        }
    }
}

fn doubled((first, longest): (i64, i64), times: u32) -> i64 {
    first.saturating_mul(1 << times.min(20)).min(longest)
}

/// Up to a fifth more, so that homes do not come back together.
#[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "waits are short")]
fn spread(wait: i64, jitter: f64) -> i64 {
    (wait as f64 / 5.0 * jitter.clamp(0.0, 1.0)) as i64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const S: i64 = 1_000;
    const MIN: i64 = 60 * S;
    const HOUR: i64 = 60 * MIN;
    const NOON: i64 = 1_796_040_000_000;

    const OK: Outcome = Outcome { then: Then::Steady, asked: true, resets_at: None };

    fn after(then: Then) -> Outcome {
        Outcome { then, ..OK }
    }

    /// A home with a live session that was polled at noon.
    fn polled(outcome: Outcome) -> Schedule {
        let mut schedule = Schedule::default();
        schedule.on(Event::Started, NOON);
        schedule.on(Event::Sessions { live: true }, NOON);
        assert!(schedule.is_due(NOON));
        schedule.done(outcome, NOON, 0.0);
        schedule
    }

    #[test]
    fn q2_one_poll_at_start_and_none_while_nothing_is_live() {
        let mut schedule = Schedule::default();
        assert_eq!(schedule.next(), None);
        schedule.on(Event::Started, NOON);
        assert_eq!(schedule.next(), Some(NOON));
        schedule.done(Outcome { resets_at: Some(NOON + HOUR), ..OK }, NOON, 0.0);
        assert_eq!(schedule.next(), None);
        // A session an hour and a half later: the last poll is long ago.
        schedule.on(Event::Sessions { live: true }, NOON + 90 * MIN);
        assert!(schedule.is_due(NOON + 90 * MIN));
        schedule.on(Event::Sessions { live: false }, NOON + 90 * MIN);
        assert_eq!(schedule.next(), None);
    }

    #[test]
    fn q2_events_and_results_decide_when() {
        type Row = (&'static str, Outcome, &'static [(i64, Event)], Option<i64>);
        let reset = |at| Outcome { resets_at: Some(NOON + at), ..OK };
        let rows: &[Row] = &[
            ("while live", OK, &[], Some(5 * MIN)),
            ("a turn ends soon", OK, &[(20 * S, Event::TurnEnded)], Some(MIN)),
            ("a turn ends later", OK, &[(2 * MIN, Event::TurnEnded)], Some(2 * MIN)),
            (
                "turns end one after another",
                OK,
                &[(5 * S, Event::TurnEnded), (50 * S, Event::TurnEnded)],
                Some(MIN),
            ),
            ("a 429", OK, &[(2 * MIN, Event::Refused)], Some(2 * MIN + 10 * S)),
            (
                "a 429 that ends its turn",
                OK,
                &[(2 * MIN, Event::Refused), (2 * MIN + S, Event::TurnEnded)],
                Some(2 * MIN + 10 * S),
            ),
            (
                "a 429 right after the turn's end",
                OK,
                &[(2 * MIN, Event::TurnEnded), (2 * MIN + S, Event::Refused)],
                Some(2 * MIN + 11 * S),
            ),
            (
                "429s that never end",
                OK,
                &[(2 * MIN, Event::Refused), (2 * MIN + 9 * S, Event::Refused)],
                Some(2 * MIN + 10 * S),
            ),
            ("a 429 just after a poll", OK, &[(10 * S, Event::Refused)], Some(MIN)),
            ("a reset passes", reset(2 * MIN), &[], Some(2 * MIN + 2 * S)),
            ("a reset at once", reset(S), &[], Some(MIN)),
            ("a reset long after", reset(HOUR), &[], Some(5 * MIN)),
            ("a reset that has passed", reset(-S), &[], Some(5 * MIN)),
            ("nothing is live any more", OK, &[(S, Event::Sessions { live: false })], None),
            ("a new sign-in", OK, &[(2 * MIN, Event::CredentialChanged)], Some(2 * MIN)),
            ("a 5xx", after(Then::Soon), &[], Some(30 * S)),
            ("a 5xx, then a turn's end", after(Then::Soon), &[(S, Event::TurnEnded)], Some(30 * S)),
            ("a 5xx, then nothing live", after(Then::Soon), &[(S, Event::Sessions { live: false })], None),
            ("a 429 that says 7 s", after(Then::Later(Some(7 * S))), &[], Some(MIN)),
            ("a 429 that says 2 h", after(Then::Later(Some(2 * HOUR))), &[], Some(2 * HOUR)),
            ("a 429 that says a year", after(Then::Later(Some(365 * 24 * HOUR))), &[], Some(24 * HOUR)),
            ("a 429 that says nothing", after(Then::Later(None)), &[], Some(5 * MIN)),
            (
                "a new sign-in does not cut a 429 short",
                after(Then::Later(None)),
                &[(MIN, Event::CredentialChanged)],
                Some(5 * MIN),
            ),
            ("a terminal state", after(Then::Hold), &[(9 * MIN, Event::TurnEnded)], None),
            (
                "a terminal state, then other settings",
                after(Then::Hold),
                &[(2 * MIN, Event::SettingsChanged)],
                Some(2 * MIN),
            ),
            (
                "a refused sign-in, then a new one",
                after(Then::Hold),
                &[(S, Event::CredentialChanged)],
                Some(MIN),
            ),
            (
                "a look that asked nobody, then a new sign-in",
                Outcome { then: Then::Hold, asked: false, resets_at: None },
                &[(S, Event::CredentialChanged)],
                Some(S),
            ),
        ];
        for (what, outcome, events, next) in rows {
            let mut schedule = polled(*outcome);
            for (at, event) in *events {
                schedule.on(*event, NOON + at);
            }
            assert_eq!(schedule.next(), next.map(|at| NOON + at), "{what}");
        }
    }

    #[test]
    fn q12_waits_double_up_to_their_limits_and_begin_anew_after_a_good_answer() {
        for (then, waits) in [
            (Then::Soon, &[30 * S, MIN, 2 * MIN, 4 * MIN, 8 * MIN, 15 * MIN, 15 * MIN][..]),
            (Then::Later(None), &[5 * MIN, 10 * MIN, 20 * MIN, 40 * MIN, HOUR, HOUR]),
        ] {
            let mut schedule = Schedule::default();
            schedule.on(Event::Sessions { live: true }, NOON);
            let mut now = NOON;
            for wait in waits {
                schedule.done(after(then), now, 0.0);
                assert_eq!(schedule.next(), Some(now + wait), "{then:?}");
                now += wait;
            }
            schedule.done(OK, now, 0.0);
            schedule.done(after(then), now + HOUR, 0.0);
            assert_eq!(schedule.next(), Some(now + HOUR + waits[0]));
        }
    }

    #[test]
    fn q12_jitter_spreads_retries_by_a_fifth() {
        for (jitter, at) in [(0.0, 30 * S), (0.5, 33 * S), (1.0, 36 * S), (7.0, 36 * S), (f64::NAN, 30 * S)] {
            let mut schedule = polled(OK);
            schedule.done(after(Then::Soon), NOON, jitter);
            assert_eq!(schedule.next(), Some(NOON + at), "{jitter}");
        }
    }

    #[test]
    fn a_clock_that_is_set_back_puts_nothing_off() {
        let mut schedule = polled(OK);
        schedule.on(Event::TurnEnded, NOON - 30 * 24 * HOUR);
        assert_eq!(schedule.next(), Some(NOON - 30 * 24 * HOUR + MIN));
    }

    #[derive(Clone, Copy, Debug)]
    enum Step {
        On(Event),
        Wait(i64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            Just(Step::On(Event::Started)),
            any::<bool>().prop_map(|live| Step::On(Event::Sessions { live })),
            Just(Step::On(Event::TurnEnded)),
            Just(Step::On(Event::Refused)),
            Just(Step::On(Event::CredentialChanged)),
            Just(Step::On(Event::SettingsChanged)),
            (1..400 * S).prop_map(Step::Wait),
        ]
    }

    fn outcome() -> impl Strategy<Value = Outcome> {
        let then = prop_oneof![
            4 => Just(Then::Steady),
            1 => Just(Then::Hold),
            1 => Just(Then::Soon),
            1 => proptest::option::of(0..2 * HOUR).prop_map(Then::Later),
        ];
        (then, any::<bool>(), proptest::option::of(0..HOUR)).prop_map(|(then, asked, reset)| Outcome {
            then,
            asked,
            resets_at: reset.map(|at| NOON + at),
        })
    }

    proptest! {
        #[test]
        fn q2_q12_laws(
            steps in proptest::collection::vec((step(), outcome(), 0.0..1.0), 1..200),
        ) {
            let mut schedule = Schedule::default();
            let mut now = NOON;
            let mut last_asked: Option<(i64, Then)> = None;
            let mut held = false;
            for (step, outcome, jitter) in steps {
                match step {
                    Step::On(event) => {
                        schedule.on(event, now);
                        if matches!(event, Event::CredentialChanged | Event::SettingsChanged) {
                            held = false;
                        }
                    }
                    Step::Wait(by) => now += by,
                }
                // Terminal stays terminal.
                prop_assert!(!held || schedule.next().is_none());
                if !schedule.is_due(now) {
                    continue;
                }
                if let Some((at, then)) = last_asked {
                    let least = match then {
                        Then::Soon => 30 * S,
                        Then::Later(None) => 5 * MIN,
                        Then::Later(Some(asked)) => asked.max(MIN),
                        Then::Steady | Then::Hold => MIN,
                    };
                    prop_assert!(now - at >= least, "{} ms after {then:?}", now - at);
                }
                schedule.done(outcome, now, jitter);
                held = outcome.then == Then::Hold;
                if outcome.asked {
                    last_asked = Some((now, outcome.then));
                }
                // One poll answers all that asked for it.
                prop_assert!(!schedule.is_due(now));
            }
        }
    }
}
