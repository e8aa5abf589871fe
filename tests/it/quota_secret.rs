//! The token is never stored, logged or shown (quota Q8): it goes through
//! every way a poll can end, and is looked for in all that was said meanwhile.

use std::time::Duration;

use gemgauge::ledger::quota::poll::QuotaState;
use serde_json::json;

use crate::support::code_assist::{Answer, LOAD, QUOTA, two_buckets};
use crate::support::overheard::{assert_nowhere, overheard};
use crate::support::signed_in::{ADDRESS, SignedIn};

const SENTINEL: &str = "ya29.s3ntinel-FAKE-token";

#[test]
fn q8_the_token_is_in_no_poll_no_log_line_and_no_error() {
    let echo = json!({"error": {"code": 500, "message": SENTINEL, "status": SENTINEL,
                                "details": [{"reason": SENTINEL, "retryDelay": SENTINEL}]}});
    let bucket = json!([{"modelId": "a", "remainingFraction": SENTINEL, "resetTime": SENTINEL}]);
    let ineligible = json!({"ineligibleTiers": [{"reasonCode": SENTINEL}]});
    for (case, call, answer, state) in [
        ("success", QUOTA, Answer::buckets(&two_buckets()), QuotaState::Ok),
        ("packed", QUOTA, Answer::buckets(&two_buckets()).packed(), QuotaState::Ok),
        ("401", QUOTA, Answer::json(401, &echo), QuotaState::WaitingForRefresh),
        ("401 at once", LOAD, Answer::json(401, &echo), QuotaState::WaitingForRefresh),
        ("403", QUOTA, Answer::json(403, &echo), QuotaState::Denied),
        ("429", QUOTA, Answer::json(429, &echo).with("retry-after", SENTINEL), QuotaState::Unavailable),
        ("500", QUOTA, Answer::json(500, &echo), QuotaState::Unavailable),
        ("silence", QUOTA, Answer::Never, QuotaState::Unavailable),
        ("no JSON", QUOTA, Answer::text(200, "text/html", SENTINEL), QuotaState::Unavailable),
        ("odd values", QUOTA, Answer::buckets(&bucket), QuotaState::Ok),
        ("not eligible", LOAD, Answer::json(200, &ineligible), QuotaState::NoProject),
        (
            "redirect",
            QUOTA,
            Answer::text(302, "text/plain", SENTINEL).with("location", "/elsewhere"),
            QuotaState::Unavailable,
        ),
    ] {
        let mut home = SignedIn::new();
        home.timeout = if case == "silence" { Duration::from_millis(500) } else { home.timeout };
        home.stores(&json!({"access_token": SENTINEL, "id_token": SENTINEL, "refresh_token": SENTINEL}));
        home.service.says(call, [answer]);
        let (poll, lines) = overheard(|| {
            let mut watching = home.engine();
            watching.step().expect("it is polled")
        });
        assert_eq!(poll.state, state, "{case}: {poll:?}");
        assert!(lines.contains("quota was polled"), "the ear hears: {lines}");
        assert!(lines.contains("ureq"), "libraries are heard, too: {lines}");
        let shown = format!("{case}: {poll:?} {poll:#?}");
        assert_nowhere(SENTINEL, [("a poll", shown.as_bytes()), ("the log", lines.as_bytes())]);
        assert_nowhere(ADDRESS, [("a poll", shown.as_bytes()), ("the log", lines.as_bytes())]);
        // It was really used, and went where it belongs and nowhere else.
        for asked in home.service.asked() {
            assert_eq!(asked.token.as_deref(), Some(SENTINEL), "{case}");
            let rest = format!("{} {} {:?}", asked.path, asked.question, asked.agent);
            assert_nowhere(SENTINEL, [("the rest of a request", rest.as_bytes())]);
        }
        assert!(!home.service.asked().is_empty());
    }
}

#[test]
fn q8_a_store_that_cannot_be_read_says_so_without_what_is_in_it() {
    for text in [
        SENTINEL.to_owned(),
        format!("\"{SENTINEL}\""),
        format!("{{\"access_token\": \"{SENTINEL}"),
        format!("{{\"access_token\": [\"{SENTINEL}\"]}}"),
        format!("{{\"access_token\": \"{SENTINEL}\\n\"}}"),
        format!("{{\"access_token\": \"{SENTINEL}\", \"expiry_date\": 1}}"),
    ] {
        for flag in [false, true] {
            let mut home = SignedIn::new();
            home.write(if flag { "gemini-credentials.json" } else { "oauth_creds.json" }, &text);
            if flag {
                home.var("GEMINI_FORCE_ENCRYPTED_FILE_STORAGE", "true");
            }
            let (poll, lines) = overheard(|| home.poll());
            assert_ne!(poll.state, QuotaState::Ok, "{text}");
            let shown = format!("{poll:?}");
            assert_nowhere(SENTINEL, [("a poll", shown.as_bytes()), ("the log", lines.as_bytes())]);
        }
    }
}

#[test]
#[should_panic(expected = "a secret is in a log")]
fn q8_a_leak_would_be_found() {
    let listed = format!("{:?}", SENTINEL.as_bytes());
    assert_nowhere(SENTINEL, [("a log", listed.as_bytes())]);
}
