//! Polls and refusals as a writer applies them, on a ledger of their own.

use std::path::Path;

use rusqlite::Connection;
use tempfile::TempDir;

use crate::ledger::evidence::HomeId;
use crate::ledger::quota::Rejection;
use crate::ledger::quota::history::total_consumed;
use crate::ledger::quota::poll::{BucketReading, Poll, QuotaState};
use crate::ledger::quota::refusal::Rejected;
use crate::store::open::open_writer;
use crate::store::open_reader;
use crate::store::read::QuotaRows;

const T: i64 = 1_790_000_000_000;
const MIN: i64 = 60_000;
const HOUR: i64 = 60 * MIN;
const DAY: i64 = 24 * HOUR;

struct Books {
    dir: TempDir,
    c: Connection,
}

impl Books {
    /// Two homes, `1` and `2`, whose first import is done.
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let c = open_writer(&dir.path().join("ledger.db")).unwrap();
        c.execute_batch(
            "PRAGMA synchronous = OFF;
             INSERT INTO homes (id, path, name, imported_at) VALUES (1, '/ana', 'ana', 1), (2, '/ben', 'ben', 1);
             INSERT INTO projects (id, home_id, name) VALUES (1, 1, 'p'), (2, 2, 'p');
             INSERT INTO models (id, name) VALUES (1, 'gemini-2.5-pro'), (2, 'gemini-2.5-flash');
             INSERT INTO sessions (id, home_id, session, name_part, project_id)
                 VALUES (1, 1, 's', 's', 1), (2, 2, 's', 's', 2);",
        )
        .unwrap();
        Self { dir, c }
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn poll(&self, poll: &Poll) {
        super::poll(&self.c, poll, poll.at).unwrap();
    }

    fn refused(&self, home: i64, at: i64, rejection: &Rejection) {
        let session = "s".into();
        let rejected =
            Rejected { home: HomeId(home), session, at, door: false, rejection: rejection.clone() };
        super::refused(&self.c, &rejected, at).unwrap();
    }

    /// A request of home 1 was answered.
    fn answered(&self, at: i64, model: i64) {
        self.c
            .execute(
                "INSERT INTO requests (key, home_id, message_id, session_id, at, model_id, role, prompt, cached,
                     tool, output, thoughts, flags, cost_bound) VALUES (?1, 1, ?1, 1, ?1, ?2, 0, 1, 0, 0, 1, 0, 0, 0)",
                [at, model],
            )
            .unwrap();
        self.c.execute("UPDATE sessions SET last_at = ?1 WHERE id = 1", [at]).unwrap();
    }

    fn rows(&self, now: i64) -> QuotaRows {
        let mut reader = open_reader(&self.path().join("ledger.db")).unwrap();
        reader.snapshot(|snapshot| snapshot.quota(now)).unwrap()
    }

    /// Everything that is stored.
    fn dump(&self) -> String {
        let mut text = String::new();
        for table in [
            "quota_homes",
            "quota_answers",
            "quota_buckets",
            "quota_history",
            "quota_rejections",
            "quota_models",
            "quota_model_reasons",
            "quota_polls",
            "counters",
        ] {
            let mut statement = self.c.prepare(&format!("SELECT * FROM {table}")).unwrap();
            let columns = statement.column_count();
            let mut rows = statement.query([]).unwrap();
            while let Some(row) = rows.next().unwrap() {
                let values: Vec<_> = (0..columns).map(|n| format!("{:?}", row.get_ref(n).unwrap())).collect();
                text.push_str(&format!("{table}: {}\n", values.join(" ")));
            }
        }
        text
    }
}

fn bucket(model: &str, fraction: Option<f64>, resets_at: i64) -> BucketReading {
    BucketReading {
        model: model.into(),
        token_type: "REQUESTS".into(),
        remaining_fraction: fraction,
        remaining_amount: None,
        resets_at: Some(resets_at),
    }
}

fn poll(home: i64, at: i64, buckets: Vec<BucketReading>) -> Poll {
    Poll {
        home: HomeId(home),
        at,
        state: QuotaState::Ok,
        detail: None,
        account: Some("acc".into()),
        cloud_project: Some("proj".into()),
        buckets,
        next_poll_at: Some(at + 5 * MIN),
        asked: true,
    }
}

fn pro(home: i64, at: i64, fraction: f64) -> Poll {
    poll(home, at, vec![bucket("gemini-2.5-pro", Some(fraction), T + DAY)])
}

fn quota_429(model: Option<&str>, resets_at: i64) -> Rejection {
    Rejection {
        reason: Some("QUOTA_EXHAUSTED".into()),
        model: model.map(str::to_owned),
        resets_at: Some(resets_at),
        ..Rejection::default()
    }
}

#[test]
fn q9_homes_share_a_bucket_and_the_newest_observation_wins() {
    let books = Books::new();
    books.poll(&pro(1, T, 0.9));
    books.poll(&pro(2, T + 2, 0.8));
    // Older than what the other home saw: its state is news, its value is not.
    books.poll(&pro(1, T + 1, 0.5));
    let rows = books.rows(T + 3);
    assert_eq!(rows.buckets.len(), 1);
    let bucket = &rows.buckets[0];
    assert_eq!((bucket.at, bucket.fraction, bucket.consumed), (T + 2, Some(0.8), 100_000_000));
    assert_eq!(
        rows.homes.iter().map(|home| (home.at, home.observed_at)).collect::<Vec<_>>(),
        [(T + 1, Some(T + 2)), (T + 2, Some(T + 2))]
    );
}

#[test]
fn q9_raw_values_stand_beside_derived_ones() {
    let books = Books::new();
    let reading = |fraction, amount| {
        let reading = bucket("gemini-2.5-pro", fraction, T + DAY);
        vec![BucketReading { remaining_amount: amount, ..reading }]
    };
    books.poll(&poll(1, T, reading(Some(0.5), Some(750))));
    books.poll(&poll(1, T + 1, reading(Some(-0.02), Some(0))));
    let rows = books.rows(T + 2);
    let bucket = &rows.buckets[0];
    assert_eq!(bucket.fraction, Some(-0.02), "as stated");
    assert_eq!(bucket.remaining.map(|left| left.billionths()), Some(0), "clamped");
    assert_eq!(bucket.limit, Some(1500), "the last that could be derived");
    let clamped: i64 = books
        .c
        .query_row("SELECT value FROM counters WHERE name = 'quota_clamped'", [], |row| row.get(0))
        .unwrap();
    assert_eq!(clamped, 1);
}

#[test]
fn q10_not_reported_is_neither_empty_nor_full() {
    let books = Books::new();
    books.poll(&pro(1, T, 0.8));
    books.poll(&poll(1, T + 1, vec![bucket("gemini-2.5-pro", None, T + DAY)]));
    let row = &books.rows(T + 2).buckets[0];
    assert_eq!((row.remaining, row.consumed, row.current), (None, 0, true));
    books.poll(&pro(1, T + 2, 0.7));
    assert_eq!(books.rows(T + 3).buckets[0].consumed, 100_000_000, "since the last that was reported");
    // It is not in the newest answer any more.
    books.poll(&poll(1, T + 3, vec![]));
    let row = &books.rows(T + 4).buckets[0];
    assert_eq!((row.at, row.current), (T + 2, false));
    assert_eq!(books.rows(T + 4).models, [], "nothing was exhausted");
}

#[test]
fn q9_a_limit_stated_twice_is_the_lower_one() {
    let books = Books::new();
    let twice = [Some(0.9), None, Some(0.2), Some(0.4)].map(|f| bucket("gemini-2.5-pro", f, T + DAY));
    books.poll(&poll(1, T, twice.to_vec()));
    assert_eq!(books.rows(T).buckets[0].fraction, Some(0.2));
}

#[test]
fn q12_a_home_keeps_its_account_until_another_or_none_is_known() {
    let books = Books::new();
    let said = |at, state, account: Option<&str>, project: Option<&str>| Poll {
        state,
        account: account.map(str::to_owned),
        cloud_project: project.map(str::to_owned),
        asked: false,
        ..poll(1, at, vec![])
    };
    for (at, state, account, project, want) in [
        (1, QuotaState::Ok, Some("a"), Some("p"), ("a", "p")),
        (2, QuotaState::WaitingForRefresh, Some("a"), None, ("a", "p")),
        (3, QuotaState::Unreadable, None, None, ("a", "p")),
        (4, QuotaState::Ok, Some("b"), None, ("b", "unknown")),
        (5, QuotaState::Ok, Some("b"), Some("q"), ("b", "q")),
        (6, QuotaState::NotGoogleSignIn, None, None, ("unknown", "unknown")),
    ] {
        books.poll(&said(T + at, state, account, project));
        let rows = books.rows(T + 10);
        assert_eq!((rows.homes[0].identity(), rows.homes[0].state), (want, state), "{at}");
        assert_eq!(rows.homes[0].polled_at, None, "nothing was asked");
    }
    assert_eq!(books.rows(T + 10).polls, []);
}

#[test]
fn q13_another_account_is_another_series() {
    let books = Books::new();
    books.poll(&pro(1, T, 0.9));
    books.poll(&Poll { account: Some("other".into()), ..pro(1, T + 1, 0.1) });
    books.poll(&pro(1, T + 2, 0.8));
    let consumed: Vec<_> =
        books.rows(T + 3).buckets.iter().map(|row| (row.key.account.clone(), row.consumed)).collect();
    assert_eq!(consumed, [("acc".into(), 100_000_000), ("other".into(), 0)]);
}

#[test]
fn q14_each_refusal_counts_once_and_by_its_kind() {
    let books = Books::new();
    let rate = Rejection { reason: Some("RATE_LIMIT_EXCEEDED".into()), ..quota_429(None, T) };
    let capacity = Rejection {
        reason: Some("MODEL_CAPACITY_EXHAUSTED".into()),
        capacity: true,
        ..quota_429(Some("models/gemini-2.5-pro-001"), T)
    };
    for _ in 0..3 {
        books.refused(1, T, &rate);
        books.refused(1, T + 1, &rate);
        books.refused(1, T, &capacity);
        books.refused(2, T, &Rejection::default());
    }
    let models = books.rows(T + 1).models;
    let of = |home, model: &str| models.iter().find(|row| row.home_id == home && row.model == model).unwrap();
    assert_eq!(of(1, "unknown").rejections, [("rate_limit_exceeded".into(), 2)]);
    let pro = of(1, "gemini-2.5-pro");
    assert_eq!((pro.capacity, pro.exhaustions, pro.rejections.len()), (1, 0, 0), "Google's, not the user's");
    assert_eq!(of(2, "unknown").rejections, [("none".into(), 1)]);
    assert_eq!(pro.born_at, Some(T));
}

#[test]
fn q14_an_exhaustion_is_counted_once_whoever_saw_it() {
    let exhaustions = |books: &Books| books.rows(T).models.iter().map(|row| row.exhaustions).sum::<u64>();
    let pro_429 = quota_429(Some("gemini-2.5-pro"), T + 5 * HOUR);

    // Retries of one refusal, then polls that say the same.
    let books = Books::new();
    books.poll(&pro(1, T, 0.4));
    (0..4).for_each(|n| books.refused(1, T + n * MIN, &pro_429));
    books.poll(&pro(1, T + 5 * MIN, 0.0));
    books.poll(&pro(1, T + 6 * MIN, 0.0));
    books.refused(1, T + 7 * MIN, &pro_429);
    assert_eq!(exhaustions(&books), 1);
    // A reset, and again.
    books.poll(&pro(1, T + 8 * HOUR, 1.0));
    books.refused(1, T + 9 * HOUR, &quota_429(Some("gemini-2.5-pro"), T + 10 * HOUR));
    assert_eq!(exhaustions(&books), 2);

    // A success between two refusals: the first had ended.
    let books = Books::new();
    books.refused(1, T, &pro_429);
    books.answered(T + MIN, 2);
    books.refused(1, T + 2 * MIN, &pro_429);
    assert_eq!(exhaustions(&books), 1, "of another model");
    books.answered(T + 3 * MIN, 1);
    books.refused(1, T + 4 * MIN, &pro_429);
    assert_eq!(exhaustions(&books), 2);

    // Two limits of a model that end together, and a shared one seen twice.
    let books = Books::new();
    let both = |at, fraction| {
        let mut tokens = bucket("gemini-2.5-pro", Some(fraction), T + DAY);
        tokens.token_type = "INPUT_TOKENS".into();
        poll(1, at, vec![bucket("gemini-2.5-pro", Some(fraction), T + DAY), tokens])
    };
    books.poll(&both(T, 0.1));
    books.poll(&both(T + MIN, 0.0));
    books.poll(&pro(2, T + 2 * MIN, 0.0));
    assert_eq!(exhaustions(&books), 1);
}

#[test]
fn q14_refusals_come_with_what_happened_since() {
    let books = Books::new();
    let sleeps = Rejection {
        waits: true,
        retry_after_ms: Some(14 * HOUR),
        ..quota_429(Some("gemini-2.5-pro"), T + 14 * HOUR)
    };
    books.refused(1, T, &sleeps);
    let row = |now| books.rows(now).refusals.into_iter().next();
    let now = row(T + 1).unwrap();
    assert_eq!((&now.rejection, now.succeeded_at, now.heard_at), (&sleeps, None, None));
    // Another model of the same session: the session was heard of, the model did not succeed.
    books.answered(T + MIN, 2);
    let now = row(T + 2 * MIN).unwrap();
    assert_eq!((now.succeeded_at, now.heard_at), (None, Some(T + MIN)));
    books.answered(T + 3 * MIN, 1);
    assert_eq!(row(T + 4 * MIN).unwrap().succeeded_at, Some(T + 3 * MIN));
    assert_eq!(row(T + 2 * DAY), None, "it is long over");

    // The end of its turn wakes it, too.
    books
        .c
        .execute(
            "INSERT INTO turns (session_id, key, started_at, ended_at) VALUES (1, 't', ?1, ?2)",
            [T, T + HOUR],
        )
        .unwrap();
    assert_eq!(row(T + 2 * HOUR).unwrap().heard_at, Some(T + HOUR));
}

#[test]
fn q14_what_a_door_and_telemetry_both_tell_is_one_refusal() {
    let recorded = |books: &Books, at| books.refused(1, at, &quota_429(Some("gemini-2.5-pro"), T + HOUR));
    let told = |books: &Books, at| {
        let rejection = Rejection { retry_after_ms: Some(HOUR), ..Rejection::default() };
        let rejected = Rejected { home: HomeId(1), session: "s".into(), at, door: true, rejection };
        super::refused(&books.c, &rejected, at).unwrap();
    };
    // Two attempts by telemetry, of which the door repeats the last.
    for door_first in [true, false] {
        let books = Books::new();
        for _ in 0..2 {
            if door_first {
                told(&books, T + 3_030);
            }
            recorded(&books, T);
            recorded(&books, T + 3_000);
            told(&books, T + 3_030);
        }
        let rows = books.rows(T + MIN);
        let counted: u64 = rows.models.iter().flat_map(|row| &row.rejections).map(|(_, n)| n).sum();
        assert_eq!((counted, rows.refusals.len()), (2, 2), "door first: {door_first}");
        assert!(rows.refusals.iter().all(|row| row.rejection.reason.is_some()), "the better word stays");
        assert_eq!(rows.models.iter().map(|row| row.exhaustions).sum::<u64>(), 1);
    }
    // Another turn's.
    let books = Books::new();
    recorded(&books, T);
    told(&books, T + MIN);
    assert_eq!(books.rows(T + 2 * MIN).refusals.len(), 2);
}

#[test]
fn old_refusals_go_and_are_not_counted() {
    let books = Books::new();
    books.refused(1, T, &Rejection::default());
    let rejected = |at, now| {
        let rejected = Rejected {
            home: HomeId(1),
            session: "s".into(),
            at,
            door: false,
            rejection: Rejection::default(),
        };
        super::refused(&books.c, &rejected, now).unwrap();
    };
    rejected(T, T + 91 * DAY);
    rejected(T + 91 * DAY, T + 91 * DAY);
    let kept: i64 = books.c.query_row("SELECT count(*) FROM quota_rejections", [], |row| row.get(0)).unwrap();
    assert_eq!(kept, 1);
    assert_eq!(books.rows(T).models[0].rejections, [("none".into(), 2)]);
}

#[test]
fn label_sets_and_texts_are_bounded() {
    let books = Books::new();
    for n in 0..120 {
        let model = format!("gemini-{n}");
        books.refused(1, T + n, &quota_429(Some(&model), T + HOUR));
    }
    let models = books.rows(T).models;
    assert_eq!(models.len(), 101);
    let other = models.last().unwrap();
    assert_eq!((other.model.as_str(), other.rejections[0].1), ("other", 20));
    let many = (0..2000).map(|n| bucket(&format!("m{n}"), Some(0.5), T)).collect::<Vec<_>>();
    books.poll(&Poll { detail: Some("x".repeat(9999)), ..poll(1, T, many) });
    assert_eq!(books.rows(T).buckets.len(), 256, "of one answer");
    assert_eq!(books.rows(T).homes[0].detail.as_ref().unwrap().len(), 300);
}

/// A week of polls by a clock of its own: every 5 minutes while somebody
/// works from 9 to 17, 1 % of pro in each quarter of an hour, a reset at
/// midnight that nobody sees before 9.
fn week() -> Vec<Poll> {
    let mut polls = Vec::new();
    for day in 0..7 {
        let midnight = T + day * DAY;
        for n in 0..=96 {
            let at = midnight + 9 * HOUR + n * 5 * MIN;
            let used = f64::from(i32::try_from(n / 3).unwrap()) / 100.0;
            let flash = bucket("gemini-2.5-flash", Some(1.0), at + DAY);
            polls.push(poll(1, at, vec![bucket("gemini-2.5-pro", Some(1.0 - used), midnight + DAY), flash]));
        }
    }
    polls
}

#[test]
fn q13_a_week_of_polls_comes_out_as_computed_by_hand() {
    let books = Books::new();
    week().iter().for_each(|poll| books.poll(poll));
    let end = T + 6 * DAY + 17 * HOUR;
    let rows = books.rows(end);
    let [flash, pro] = &rows.buckets[..] else { panic!("two buckets") };
    // 96 polls after the first of a day, 32 drops of 1 %, seven days.
    assert_eq!(pro.consumed, 7 * 32 * 10_000_000);
    assert_eq!((flash.consumed, flash.remaining.unwrap().percent()), (0, 100.0));
    assert_eq!(rows.polls, [(1, "ok".into(), 7 * 97)]);
    assert_eq!(pro.resets_at, Some(T + 7 * DAY));

    let mut reader = open_reader(&books.path().join("ledger.db")).unwrap();
    let history = |bucket: i64, reader: &mut crate::store::read::Reader| {
        reader.snapshot(|snapshot| snapshot.quota_history(bucket, 0, 10_000)).unwrap()
    };
    let whole = history(pro.id, &mut reader);
    assert_eq!(whole.len(), 7 * 97);
    use crate::ledger::quota::runway::Runway;
    let Runway::Forecast(forecast) = Runway::of(&whole, end) else { panic!("{:?}", Runway::of(&whole, end)) };
    // 1 % in 15 minutes is 4 % an hour; 68 % are left: 17 hours, after midnight.
    assert!((forecast.per_hour - 0.04).abs() < 0.001, "{forecast:?}");
    assert!((forecast.empty_at - (end + 17 * HOUR)).abs() < HOUR / 2, "{forecast:?}");
    assert_eq!(forecast.before_reset, Some(false));
    assert_eq!(Runway::of(&history(flash.id, &mut reader), end), Runway::Steady);
    // What an alert of "empty before it resets" compares: 68 % left, seven hours to the reset, and
    // drops of 2 % in half an hour and 8 % in two: 28 % by then, so it is silent.
    let drops = |ms: i64| {
        let since = whole.iter().filter(|one| one.at >= end - ms).copied().collect::<Vec<_>>();
        total_consumed(&since)
    };
    assert_eq!((drops(HOUR / 2), drops(2 * HOUR)), (20_000_000, 80_000_000));

    // 31 days later one poll comes: the first days are thinned, nothing is rewritten.
    books.poll(&poll(1, end + 31 * DAY, vec![bucket("gemini-2.5-pro", Some(0.68), end + 32 * DAY)]));
    let thinned = history(pro.id, &mut reader);
    assert!(thinned.iter().take(whole.len()).all(|one| whole.contains(one) || one.at > end));
    // Of each day: the first, eight new hours, the last; after a reset also the last full value
    // and the first drop. The last of the week is no turn: the value after it is the same.
    assert_eq!(thinned.len(), 10 + 5 * 12 + 11 + 1);
    assert_eq!(total_consumed(&thinned), total_consumed(&whole));
    assert_eq!(books.rows(end).buckets[1].consumed, 7 * 32 * 10_000_000, "counters stay");
}

mod laws {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Event {
        Poll(Poll),
        Refused(i64, i64, Rejection),
    }

    fn event() -> impl Strategy<Value = Event> {
        let fraction = prop_oneof![Just(None), (0..=10_i32).prop_map(|n| Some(f64::from(n) / 10.0))];
        let model = prop_oneof![Just("gemini-2.5-pro"), Just("gemini-2.5-flash")];
        let polled = (1..=2_i64, 0..50_i64, model.clone(), fraction, any::<bool>()).prop_map(
            |(home, at, model, fraction, ok)| {
                let buckets = vec![bucket(model, fraction, T + 20 * MIN)];
                let state = if ok { QuotaState::Ok } else { QuotaState::Unavailable };
                Event::Poll(Poll { state, ..poll(home, T + at * MIN, buckets) })
            },
        );
        let refused = (1..=2_i64, 0..50_i64, model).prop_map(|(home, at, model)| {
            Event::Refused(home, T + at * MIN, quota_429(Some(model), T + 30 * MIN))
        });
        prop_oneof![3 => polled, 1 => refused]
    }

    fn apply(books: &Books, event: &Event) {
        match event {
            Event::Poll(poll) => books.poll(poll),
            Event::Refused(home, at, rejection) => books.refused(*home, *at, rejection),
        }
    }

    /// Every counter there is.
    fn counters(books: &Books) -> Vec<(String, u64)> {
        let rows = books.rows(T + DAY);
        let buckets = rows.buckets.iter().map(|row| (format!("{:?}", row.key), row.consumed));
        let polls = rows.polls.iter().map(|(home, result, value)| (format!("{home} {result}"), *value));
        let models = rows.models.iter().flat_map(|row| {
            let name = format!("{} {}", row.home_id, row.model);
            let reasons = row.rejections.iter().map(|(reason, value)| (format!("{name} {reason}"), *value));
            reasons.chain([(format!("{name} exhausted"), row.exhaustions)]).collect::<Vec<_>>()
        });
        buckets.chain(polls).chain(models).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn q13_counters_never_fall_and_a_replay_changes_nothing(events in prop::collection::vec(event(), 1..40)) {
            let books = Books::new();
            let mut before = Vec::<(String, u64)>::new();
            for event in &events {
                apply(&books, event);
                let after = counters(&books);
                for (name, value) in &before {
                    let now = after.iter().find(|(n, _)| n == name).map(|(_, value)| *value);
                    prop_assert!(now >= Some(*value), "{name} fell from {value} to {now:?}");
                }
                before = after;
                let once = books.dump();
                apply(&books, event);
                prop_assert_eq!(once, books.dump(), "the same again");
            }
            let once = books.dump();
            events.iter().for_each(|event| apply(&books, event));
            prop_assert_eq!(once, books.dump(), "all of it again");
        }

        #[test]
        fn q13_in_order_the_counter_is_what_the_history_adds_up_to(
            fractions in prop::collection::vec(prop_oneof![Just(None), (0..=10_i32).prop_map(Some)], 1..40)
        ) {
            let books = Books::new();
            for (n, fraction) in fractions.iter().enumerate() {
                let reading = bucket("gemini-2.5-pro", fraction.map(|f| f64::from(f) / 10.0), T + DAY);
                books.poll(&poll(1, T + n as i64 * MIN, vec![reading]));
            }
            let mut reader = open_reader(&books.path().join("ledger.db")).unwrap();
            let history = reader.snapshot(|s| s.quota_history(1, 0, 1000)).unwrap();
            prop_assert_eq!(history.len(), fractions.len());
            let consumed = books.rows(T).buckets[0].consumed;
            prop_assert_eq!(consumed.cast_signed(), total_consumed(&history));
        }
    }
}
