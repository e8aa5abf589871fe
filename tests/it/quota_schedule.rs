//! Homes that are polled when it is time, with a clock of the test's own.

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gemgauge::ledger::quota::poll::QuotaState;
use gemgauge::sources::quota::{Consent, Event, Kept, Keychain, Poller, Wake, account_of_email};
use serde_json::json;
use zeroize::Zeroizing;

use crate::support::code_assist::{Answer, LOAD, QUOTA};
use crate::support::signed_in::{HOME, MINUTE, NOON, SignedIn, TOKEN};

const LIVE: Event = Event::Sessions { live: true };
const SECOND: i64 = 1_000;

/// A home whose token outlives the test.
fn long_lived() -> SignedIn {
    let home = SignedIn::new();
    home.stores(&json!({"access_token": TOKEN, "expiry_date": NOON + 24 * 60 * MINUTE}));
    home
}

#[test]
fn q2_a_home_is_polled_at_start_and_then_only_while_a_session_is_live() {
    let home = long_lived();
    let mut watching = home.engine();
    let first = watching.step().unwrap();
    assert_eq!((first.state, first.next_poll_at), (QuotaState::Ok, None));
    assert_eq!(watching.after(24 * 60 * MINUTE / 2), None);
    watching.wake(LIVE);
    let second = watching.step().unwrap();
    assert_eq!(second.next_poll_at, Some(home.now() + 5 * MINUTE));
    assert_eq!(watching.after(5 * MINUTE - 1), None);
    assert!(watching.after(1).is_some());
    watching.wake(Event::Sessions { live: false });
    assert_eq!(watching.after(60 * MINUTE), None);
    // The account is not asked for again each time.
    assert_eq!(home.service.take_calls(), [LOAD, QUOTA, LOAD, QUOTA, QUOTA]);
}

#[test]
fn q2_turns_end_and_requests_are_refused() {
    let home = long_lived();
    let mut watching = home.engine();
    watching.wake(LIVE);
    watching.step().unwrap();
    home.pass(10 * SECOND);
    watching.wake(Event::TurnEnded);
    assert_eq!(watching.step(), None);
    assert_eq!(watching.until_next(), Some(50 * SECOND));
    assert!(watching.after(50 * SECOND).is_some());
    home.pass(2 * MINUTE);
    watching.wake(Event::Refused);
    assert_eq!(watching.until_next(), Some(10 * SECOND));
    assert!(watching.after(10 * SECOND).is_some());
}

#[test]
fn q2_a_poll_comes_just_after_a_stated_reset() {
    let home = long_lived();
    let reset = json!([{"modelId": "a", "remainingFraction": 0, "resetTime": "2026-11-30T12:02:00Z"},
                       {"modelId": "b", "remainingFraction": 0, "resetTime": "2026-12-01T12:00:00Z"}]);
    home.service.says(QUOTA, [Answer::buckets(&reset)]);
    let mut watching = home.engine();
    watching.wake(LIVE);
    let poll = watching.step().unwrap();
    assert_eq!(poll.next_poll_at, Some(NOON + 2 * MINUTE + 2 * SECOND));
}

#[test]
fn q5_the_files_change_wakes_the_poller() {
    let home = SignedIn::new();
    home.stores(&json!({"access_token": TOKEN, "expiry_date": NOON - MINUTE}));
    let mut watching = home.engine();
    watching.wake(LIVE);
    let poll = watching.step().unwrap();
    assert_eq!((poll.state, poll.next_poll_at), (QuotaState::WaitingForRefresh, None));
    assert_eq!(watching.after(60 * MINUTE), None);
    assert!(home.service.asked().is_empty());
    home.stores(&json!({"access_token": "ya29.FAKE-renewed", "expiry_date": home.now() + 60 * MINUTE}));
    assert_eq!(watching.after(SECOND).unwrap().state, QuotaState::Ok);
    assert_eq!(home.service.asked()[1].token.as_deref(), Some("ya29.FAKE-renewed"));
}

#[test]
fn q12_what_is_terminal_stays_so_until_credential_or_settings_change() {
    for (status, reason, state) in [
        (401, None, QuotaState::WaitingForRefresh),
        (403, Some("SUBSCRIPTION_REQUIRED"), QuotaState::NoSubscription),
        (403, None, QuotaState::Denied),
        (404, None, QuotaState::Denied),
    ] {
        let home = long_lived();
        home.service.says(QUOTA, [Answer::refusal(status, reason, &[])]);
        let mut watching = home.engine();
        watching.wake(LIVE);
        assert_eq!(watching.step().unwrap().state, state);
        for event in [Event::TurnEnded, Event::Refused, LIVE, Event::Started] {
            home.pass(20 * MINUTE);
            watching.wake(event);
            assert_eq!(watching.step(), None, "{status} {event:?}");
        }
        home.chooses("oauth-personal");
        home.service.take_calls();
        home.service.says(QUOTA, [Answer::buckets(&json!([]))]);
        let again = watching.step().unwrap();
        if status == 401 {
            // The settings are others, the token is not: it is not shown again.
            assert_eq!((again.state, again.asked), (state, false));
            home.stores(&json!({"access_token": "ya29.FAKE-renewed"}));
            assert_eq!(watching.after(MINUTE).unwrap().state, QuotaState::Ok);
        } else {
            assert_eq!(again.state, QuotaState::Ok);
        }
        assert_eq!(home.service.take_calls(), [LOAD, QUOTA], "{status}");
    }
}

/// A keychain with whatever somebody put there.
#[derive(Clone, Default)]
struct Shelf(Arc<Mutex<Option<String>>>);

impl Shelf {
    fn put(&self, token: &str, expires_at: i64) {
        let entry = json!({"token": {"accessToken": token, "refreshToken": "r", "expiresAt": expires_at}});
        *self.0.lock().unwrap() = Some(entry.to_string());
    }
}

impl Keychain for Shelf {
    fn look_up(&self, _: &dyn Fn(Duration)) -> Kept {
        match &*self.0.lock().unwrap() {
            Some(entry) => Kept::Entry(Zeroizing::new(entry.clone())),
            None => Kept::Failed("is locked"),
        }
    }
}

#[test]
fn q5_q12_a_keychain_tells_of_no_change_and_is_looked_at_again() {
    let mut home = long_lived();
    let shelf = Shelf::default();
    home.keychain = Arc::new(shelf.clone());
    home.var("GEMINI_FORCE_ENCRYPTED_FILE_STORAGE", "true");
    let mut watching = home.engine();
    watching.wake(LIVE);
    assert_eq!(watching.step().unwrap().state, QuotaState::Unreadable);
    assert_eq!(watching.until_next(), Some(5 * MINUTE), "it may be unlocked");
    shelf.put("ya29.FAKE-1", NOON);
    assert_eq!(watching.after(5 * MINUTE).unwrap().state, QuotaState::WaitingForRefresh);
    assert!(home.service.asked().is_empty());

    let (expired, no_seat) =
        (Answer::refusal(401, None, &[]), Answer::refusal(403, Some("SUBSCRIPTION_REQUIRED"), &[]));
    home.service.says(QUOTA, [expired, no_seat, Answer::buckets(&json!([]))]);
    for (token, state) in [
        ("ya29.FAKE-2", QuotaState::WaitingForRefresh),
        ("ya29.FAKE-3", QuotaState::NoSubscription),
        ("ya29.FAKE-4", QuotaState::Ok),
    ] {
        shelf.put(token, NOON + 24 * 60 * MINUTE);
        let poll = watching.after(5 * MINUTE).unwrap();
        assert_eq!((poll.state, poll.asked), (state, true), "{token}");
        home.service.take_calls();
        let again = watching.after(5 * MINUTE).unwrap();
        assert_eq!((again.state, again.asked), (state, state == QuotaState::Ok), "{token}");
    }
}

#[test]
fn q3_other_settings_end_and_begin_the_polling() {
    let home = long_lived();
    home.chooses("gemini-api-key");
    let mut watching = home.engine();
    watching.wake(LIVE);
    assert_eq!(watching.step().unwrap().state, QuotaState::NotGoogleSignIn);
    home.stores(&json!({"access_token": "ya29.FAKE-other"}));
    assert_eq!(watching.after(MINUTE).unwrap().state, QuotaState::NotGoogleSignIn);
    assert_eq!(watching.after(60 * MINUTE), None);
    assert!(home.service.asked().is_empty());
    home.chooses("oauth-personal");
    assert_eq!(watching.after(SECOND).unwrap().state, QuotaState::Ok);
    home.chooses("vertex-ai");
    assert_eq!(watching.after(MINUTE).unwrap().state, QuotaState::NotGoogleSignIn);
}

#[test]
fn q12_a_429_says_when_and_trouble_doubles() {
    let home = long_lived();
    let too_often = || Answer::refusal(429, None, &[]);
    home.service.says(QUOTA, [too_often().with("retry-after", "1800"), too_often(), too_often()]);
    let mut watching = home.engine();
    watching.wake(LIVE);
    watching.step().unwrap();
    assert_eq!(watching.until_next(), Some(30 * MINUTE));
    watching.wake(Event::TurnEnded);
    assert_eq!(watching.after(30 * MINUTE - 1), None);
    assert!(watching.after(1).is_some());
    assert_eq!(watching.until_next(), Some(10 * MINUTE));
    assert_eq!(home.service.take_calls(), [LOAD, QUOTA, QUOTA]);

    let home = long_lived();
    home.service.says(LOAD, [Answer::refusal(503, None, &[])]);
    let mut watching = home.engine();
    watching.wake(LIVE);
    for wait in [30 * SECOND, MINUTE, 2 * MINUTE, 4 * MINUTE, 8 * MINUTE, 15 * MINUTE, 15 * MINUTE] {
        assert_eq!(watching.step().unwrap().state, QuotaState::Unavailable);
        assert_eq!(watching.until_next(), Some(wait));
        home.pass(wait);
    }
}

#[test]
fn q13_another_sign_in_is_another_account_at_the_next_poll() {
    let home = long_lived();
    let mut watching = home.engine();
    let first = watching.step().unwrap().account;
    home.write(
        "google_accounts.json",
        r#"{"active": "other@example.invalid", "old": ["dev@example.invalid"]}"#,
    );
    let second = watching.after(MINUTE).unwrap().account;
    assert_ne!(first, second);
    assert_eq!(second, account_of_email("other@example.invalid"));
    assert_eq!(home.service.take_calls(), [LOAD, QUOTA, LOAD, QUOTA], "another account is loaded anew");
}

#[test]
fn the_thread_polls_when_it_is_woken_and_ends_when_it_is_told() {
    let home = long_lived();
    let (sink, polls) = channel();
    let targets = vec![home.target(), home.target()];
    let poller = Poller::start(Consent::by_flag(), targets, &home.settings, home.outside(), move |poll| {
        // Whoever is gone wants no more polls.
        let _ = sink.send(poll);
    })
    .unwrap();
    let patience = Duration::from_secs(120);
    assert_eq!(polls.recv_timeout(patience).unwrap().state, QuotaState::Ok);
    home.pass(10 * MINUTE);
    poller.waker().wake(Wake { home: HOME, event: Event::TurnEnded });
    assert_eq!(polls.recv_timeout(patience).unwrap().at, NOON + 10 * MINUTE);
    poller.stop(patience);
    assert!(polls.recv().is_err(), "the thread is gone, and its sink with it");
    assert_eq!(home.service.take_calls(), [LOAD, QUOTA, QUOTA], "one home named twice is polled once");
}
