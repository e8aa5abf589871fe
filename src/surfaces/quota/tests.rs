//! What is said of quota, as people and scripts read it.

use std::collections::BTreeSet;

use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::sample::{HOUR, MIN, NOW, bucket, home, homes, quota, refusal, rows};
use super::*;
use crate::ledger::quota::runway::Forecast;

fn of(rows: &QuotaRows, live: &[i64]) -> Quota {
    Quota::of(rows, &homes(), &live.iter().copied().collect::<BTreeSet<_>>(), NOW)
}

fn text(quota: &Quota) -> String {
    let mut text = Vec::new();
    quota.write_text(&TimeZone::UTC, &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    text
}

#[test]
fn q14_the_table_shows_both_numbers_and_one_sentence_where_there_is_none() {
    let mut quota = quota();
    quota.limits[0].runway = Runway::Forecast(Forecast {
        per_hour: 0.2,
        empty_at: NOW + 3 * HOUR + 6 * MIN,
        before_reset: Some(true),
    });
    let want = "\
ana: ok, asked 3 min ago
  account 9f3a6c01, cloud project proj
  2.5-flash      ███████░░░░░  62 % left, resets in 4 h 12 min
                 930 left of 1500 (derived)
                 EMPTY IN 3 h 6 min at this pace, before it resets
  2.5-pro        ███████████░  95 % left, resets in 4 h 12 min
                 CONTRADICTED: refused at 14:12 until 16:13, though 95 % were
                 left at 14:10
  3-pro-preview  not reported: neither 0 % nor 100 %
  ASLEEP until 16:13: session 5e551010 waits a refusal out in silence

ben: no Google sign-in, so there is no quota to report
  refused at 14:11 until 16:13: a model it does not name by QUOTA_EXHAUSTED

";
    assert_eq!(text(&quota), want);
}

#[test]
fn q12_every_state_is_one_sentence() {
    for state in QuotaState::ALL {
        let rows = QuotaRows { homes: vec![home(1, state, None)], ..QuotaRows::default() };
        let text = text(&of(&rows, &[]));
        let first = text.lines().next().unwrap();
        assert!(first.starts_with("ana: ") && first.len() > 6, "{state:?}: {text}");
    }
    // A home that nobody asked about is off.
    assert_eq!(text(&of(&QuotaRows::default(), &[])), "ana: not polled\n\nben: not polled\n\n");
    assert_eq!(text(&Quota::default()), "The ledger knows no home yet.\n");
    let nothing = QuotaRows { homes: vec![home(1, QuotaState::Ok, Some("a"))], ..QuotaRows::default() };
    assert!(text(&of(&nothing, &[])).contains("no quota is reported: neither 0 % nor 100 %"));
}

#[test]
fn q11_a_reset_that_passed_is_due_and_old_values_are_stale() {
    let mut rows = rows();
    rows.refusals.clear();
    rows.buckets.truncate(2);
    rows.buckets[0].resets_at = Some(NOW);
    for row in &mut rows.buckets {
        row.at = NOW - 16 * MIN;
    }
    rows.homes[0].observed_at = Some(NOW - 16 * MIN);
    let idle = of(&rows, &[2]);
    assert!(!idle.limits.iter().any(|limit| limit.stale));
    let live = of(&rows, &[1]);
    assert_eq!(live.homes[0].state, QuotaState::Stale);
    let text = text(&live);
    for want in [
        "ana: stale: nobody has asked for more than 15 minutes, asked 16 min ago",
        "2.5-pro    was 95 %; its reset was due just now, stale",
        "2.5-flash  ███████░░░░░  62 % left, resets in 4 h 12 min, stale",
    ] {
        assert!(text.contains(want), "{want}: {text}");
    }
    let limits = serde_json::to_value(live.rate_limits()).unwrap();
    assert_eq!((&limits[0]["stale"], &limits[0]["used_percent"]), (&json!(true), &json!(38.0)));
    // Whoever should renew it cannot.
    rows.homes[0].state = QuotaState::WaitingForRefresh;
    let waiting = of(&rows, &[]);
    assert_eq!(waiting.homes[0].state, QuotaState::WaitingForRefresh);
    assert!(waiting.limits.iter().all(|limit| limit.stale));
}

#[test]
fn q15_rate_limits_have_exactly_the_agreed_members() {
    let quota = quota();
    let limits = serde_json::to_value(quota.rate_limits()).unwrap();
    assert_eq!(
        limits[0],
        json!({
            "home": "ana", "account": "9f3a6c01", "cloud_project": "proj", "model": "gemini-2.5-flash",
            "token_type": "REQUESTS", "label": "gemini-2.5-flash limit", "used_percent": 38.0,
            "remaining_fraction": 0.62, "remaining_amount": 930, "limit": 1500,
            "resets_at": "2026-09-21T18:25:20.000Z", "observed_at": "2026-09-21T14:10:20.000Z", "stale": false,
        })
    );
    assert_eq!(limits[2]["used_percent"], Value::Null, "not reported");
    assert_eq!(limits.as_array().unwrap().len(), 3, "what is in no answer any more is not shown");
    assert_eq!(
        serde_json::to_value(quota.homes_json()).unwrap(),
        json!({
            "ana": {"state": "ok", "detail": null, "next_poll_at": "2026-09-21T14:15:20.000Z"},
            "ben": {"state": "not_google_sign_in", "detail": null, "next_poll_at": null},
        })
    );
}

#[test]
fn the_document_says_all_there_is() {
    let mut out = Vec::new();
    quota().write_json(true, &mut out).unwrap();
    let document: Value = serde_json::from_slice(&out).unwrap();
    let keys: Vec<&str> = document.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["asleep", "at", "homes", "limits", "refusals", "risk", "schema"]);
    let pro = &document["limits"][1];
    assert_eq!(
        (&pro["contradicted"], &pro["blocked_by_429"], &pro["blocked_by_poll"]),
        (&json!(true), &json!(true), &json!(false))
    );
    assert_eq!(pro["refused_until"], "2026-09-21T16:13:20.000Z");
    assert_eq!(document["limits"][0]["limit_derived"], true);
    assert_eq!(
        document["refusals"][1],
        json!({"home": "ben", "session_id": "5e551010-s", "at": "2026-09-21T14:11:20.000Z",
               "until": "2026-09-21T16:13:20.000Z", "model": "unknown", "reason": "quota_exhausted",
               "stated_reason": "QUOTA_EXHAUSTED", "metric": null})
    );
    assert_eq!(document["asleep"][0]["session_id"], "5e551010-s");
}

#[test]
fn q9_homes_that_share_a_limit_show_one() {
    let mut rows = rows();
    rows.homes[1] = home(2, QuotaState::WaitingForRefresh, Some("9f3a6c01"));
    rows.refusals = vec![refusal(2, NOW - MIN, Some("gemini-2.5-pro-001"))];
    let quota = of(&rows, &[]);
    let pro = &quota.limits[1];
    assert_eq!(pro.homes, ["ana", "ben"]);
    assert!(!pro.stale, "one of them asks");
    assert!(pro.standing.contradicted, "and the other is refused");
    assert_eq!(quota.rate_limits().len(), 6);
}

#[test]
fn q14_a_refusal_counts_for_the_home_and_model_that_met_it() {
    let mut rows = rows();
    let with = |rows: &QuotaRows| {
        let quota = of(rows, &[]);
        quota.limits.iter().map(|limit| limit.standing.blocked_by_429).collect::<Vec<_>>()
    };
    rows.refusals = vec![refusal(1, NOW - MIN, Some("gemini-2.5-flash"))];
    assert_eq!(with(&rows), [true, false, false]);
    rows.refusals[0].succeeded_at = Some(NOW);
    assert_eq!(with(&rows), [false; 3], "a later success");
    rows.refusals = vec![refusal(2, NOW - MIN, Some("gemini-2.5-flash"))];
    assert_eq!(with(&rows), [false; 3], "another home of another account");
    rows.refusals = vec![refusal(1, NOW - MIN, None)];
    assert_eq!(with(&rows), [false; 3], "it names no model, and is shown by itself");
    assert_eq!(of(&rows, &[]).refusals.len(), 1);
}

#[test]
fn q14_only_the_last_word_of_a_session_says_whether_it_sleeps() {
    let mut rows = rows();
    let sleeps = |rows: &QuotaRows| of(rows, &[]).asleep.len();
    let waits = rows.refusals[0].clone();
    let mut fails = refusal(1, NOW - 30_000, Some("gemini-2.5-pro"));
    rows.refusals = vec![waits.clone()];
    assert_eq!(sleeps(&rows), 1);
    rows.refusals = vec![fails.clone(), waits.clone()];
    assert_eq!(sleeps(&rows), 0, "it failed since");
    fails.session = "another".into();
    rows.refusals = vec![fails, waits];
    assert_eq!(sleeps(&rows), 1, "that was another session");
}

#[test]
fn what_is_not_known_is_not_enough() {
    let known = |remaining: &[Option<f64>]| {
        let buckets =
            remaining.iter().enumerate().map(|(n, left)| bucket(n as i64, &format!("m-{n}"), *left));
        let rows = QuotaRows {
            homes: vec![home(1, QuotaState::Ok, Some("9f3a6c01"))],
            buckets: buckets.collect(),
            ..QuotaRows::default()
        };
        of(&rows, &[])
    };
    for (remaining, percent, want) in [
        (&[Some(0.5), Some(0.2)][..], 20.0, true),
        (&[Some(0.5), Some(0.199)], 20.0, false),
        (&[Some(0.5), None], 20.0, false),
        (&[Some(0.0)], 0.0, false),
        (&[Some(1.0)], 100.0, true),
        (&[], 0.0, false),
    ] {
        assert_eq!(known(remaining).has_at_least(percent), want, "{remaining:?} {percent}");
    }
    let mut some = known(&[Some(0.5), None]);
    some.keep_models(&["m-0".into()]);
    assert!(some.has_at_least(20.0), "only what was asked for counts");
    let mut due = known(&[Some(0.5)]);
    due.limits[0].due = true;
    assert!(!due.has_at_least(0.0));
    assert!(!quota().has_at_least(0.0), "refused");
}

#[test]
fn the_tightest_limit_is_a_refused_one_or_has_the_least_left() {
    assert_eq!(quota().tightest().unwrap().row.key.model, "gemini-2.5-pro");
    let mut rows = rows();
    rows.refusals.clear();
    assert_eq!(of(&rows, &[]).tightest().unwrap().row.key.model, "gemini-2.5-flash");
    rows.buckets.retain(|row| row.remaining.is_none());
    assert_eq!(of(&rows, &[]).tightest(), None, "what is not reported is no number");
}

#[test]
fn q1_the_risk_is_two_sentences() {
    let mut out = Vec::new();
    write_risk(&mut out).unwrap();
    let risk = String::from_utf8(out).unwrap();
    assert!(risk.lines().all(|line| line.chars().count() <= 80));
    let sentences = risk.split_whitespace().filter(|word| word.ends_with('.')).count();
    assert!(sentences == 2 && risk.ends_with(".\n"), "{risk}");
}

#[test]
fn q14_a_refusal_that_fits_no_limit_is_not_hidden_by_one_that_does() {
    let mut rows = rows();
    // Met before the one that fits, and in the same moment.
    for (at, model) in [(NOW - 10 * MIN, "gemini-9-pro"), (NOW - MIN, "gemini-9-flash")] {
        rows.refusals.push(refusal(1, at, Some(model)));
    }
    let quota = of(&rows, &[1]);
    let unfit: Vec<_> = quota.refusals.iter().filter(|one| !quota.fits(one)).map(|one| &*one.model).collect();
    assert_eq!(unfit, ["unknown", "gemini-9-pro", "gemini-9-flash"]);
    let text = text(&quota);
    assert!(text.contains("gemini-9-pro") && text.contains("gemini-9-flash"), "{text}");
}
