use super::*;
use crate::ledger::quota::poll::BucketReading;

const NOW: i64 = 1_796_040_000_000;

fn answered(status: u16, body: &str) -> Reply {
    Reply::Answer { status, retry_after: None, body: body.as_bytes().to_vec() }
}

fn buckets(body: &str) -> Quota {
    quota(&answered(200, body), &Loaded::default(), NOW).unwrap()
}

fn state_of(status: u16, body: &str) -> (QuotaState, Then) {
    let verdict = quota(&answered(status, body), &Loaded::default(), NOW).unwrap_err();
    assert!(!verdict.detail.contains("invalid"), "nothing of the answer is shown: {}", verdict.detail);
    (verdict.state, verdict.then)
}

fn refusal(reason: &str) -> String {
    format!(
        r#"{{"error": {{"code": 403, "message": "dev@example.invalid", "status": "PERMISSION_DENIED",
        "details": [{{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "{reason}",
        "metadata": {{"validation_link": "https://accounts.invalid/verify"}}}}]}}}}"#
    )
}

#[test]
fn q12_each_refusal_has_its_state_and_403_is_never_expired() {
    use QuotaState::{ClientNoLongerSupported, Denied, NoSubscription, Unavailable, ValidationRequired};
    for (status, reason, state, then) in [
        (401, "ACCESS_TOKEN_EXPIRED", QuotaState::WaitingForRefresh, Then::Hold),
        (403, "", Denied, Then::Hold),
        (403, "ACCESS_TOKEN_EXPIRED", Denied, Then::Hold),
        (403, "SUBSCRIPTION_REQUIRED", NoSubscription, Then::Hold),
        (403, "VALIDATION_REQUIRED", ValidationRequired, Then::Hold),
        (403, "UNSUPPORTED_CLIENT", ClientNoLongerSupported, Then::Hold),
        (403, "SERVICE_DISABLED", Denied, Then::Hold),
        (403, "SECURITY_POLICY_VIOLATED", Denied, Then::Hold),
        (400, "", Denied, Then::Hold),
        (404, "", Denied, Then::Hold),
        (408, "", Unavailable, Then::Soon),
        (429, "", Unavailable, Then::Later(None)),
        (500, "", Unavailable, Then::Soon),
        (503, "", Unavailable, Then::Soon),
        (307, "", Unavailable, Then::Soon),
        (204, "", Unavailable, Then::Soon),
    ] {
        assert_eq!(state_of(status, &refusal(reason)), (state, then), "{status} {reason}");
        let in_a_list = format!("[{}]", refusal(reason));
        assert_eq!(state_of(status, &in_a_list), (state, then), "{status} {reason}");
    }
    // A page of HTML refuses as well as JSON does.
    assert_eq!(state_of(403, "<html>"), (Denied, Then::Hold));
    assert_eq!(state_of(502, ""), (Unavailable, Then::Soon));
}

#[test]
fn q12_a_429_says_how_long_to_wait() {
    let delay = r#"{"error": {"details": [{"@type": "x/google.rpc.RetryInfo", "retryDelay": "40000.5s"}]}}"#;
    assert_eq!(state_of(429, delay).1, Then::Later(Some(40_000_500)));
    for (header, want) in
        [("7", Some(7_000)), ("Mon, 30 Nov 2026 12:01:40 GMT", Some(100_000)), ("x", Some(40_000_500))]
    {
        let reply =
            Reply::Answer { status: 429, retry_after: Some(header.into()), body: delay.as_bytes().to_vec() };
        let verdict = quota(&reply, &Loaded::default(), NOW).unwrap_err();
        assert_eq!(verdict.then, Then::Later(want), "{header}");
    }
}

#[test]
fn q10_values_are_passed_on_as_stated() {
    let body = r#"{"buckets": [
        {"modelId": "a", "tokenType": "REQUESTS", "remainingAmount": "1497", "remainingFraction": 0.998,
         "resetTime": "2026-12-01T11:23:43Z", "later": {"x": []}},
        {"modelId": "b", "remainingFraction": 1},
        {"modelId": "c", "tokenType": "INPUT_TOKENS", "remainingFraction": 0, "remainingAmount": "0"},
        {"modelId": "d", "tokenType": "REQUESTS", "resetTime": "2026-12-01T11:23:43.5+01:00"},
        {"modelId": "e_vertex", "remainingFraction": 1.25, "remainingAmount": 7},
        {"modelId": "f", "remainingFraction": -0.02, "remainingAmount": "-30"},
        {"modelId": "g", "remainingFraction": "0.5", "remainingAmount": "x12", "resetTime": "1970-01-01T00:00:00Z"},
        {"modelId": "h", "remainingFraction": null, "remainingAmount": null, "resetTime": null, "tokenType": null},
        {"modelId": "i", "remainingFraction": 0.9, "remainingAmount": 1.5, "resetTime": "tomorrow"}
    ]}"#;
    let read =
        |model: &str, token_type: &str, remaining_fraction, remaining_amount, resets_at| BucketReading {
            model: model.into(),
            token_type: token_type.into(),
            remaining_fraction,
            remaining_amount,
            resets_at,
        };
    let quota = buckets(body);
    assert_eq!(quota.detail, None);
    assert_eq!(
        quota.buckets,
        [
            read("a", "REQUESTS", Some(0.998), Some(1497), Some(1_796_124_223_000)),
            read("b", "unspecified", Some(1.0), None, None),
            read("c", "INPUT_TOKENS", Some(0.0), Some(0), None),
            read("d", "REQUESTS", None, None, Some(1_796_120_623_500)),
            read("e_vertex", "unspecified", Some(1.25), Some(7), None),
            read("f", "unspecified", Some(-0.02), None, None),
            read("g", "unspecified", Some(0.5), None, None),
            read("h", "unspecified", None, None, None),
            read("i", "unspecified", Some(0.9), None, None),
        ]
    );
}

#[test]
fn q10_a_bucket_of_nobody_knows_what_is_left_out_and_said() {
    let body = r#"{"buckets": [{"modelId": "a", "remainingFraction": 0.5}, {"remainingFraction": 0.9},
        {"modelId": "", "remainingFraction": 0.9}, {"modelId": "b", "remainingFraction": 1e999},
        {"modelId": "c", "remainingFraction": "NaN"}, {"modelId": "d", "remainingFraction": {}},
        {"modelId": 7}, {"modelId": "e\n"}, {"modelId": "f", "tokenType": "\u0000"}, 7, null, []]}"#;
    let quota = buckets(body);
    assert_eq!(quota.buckets.len(), 1);
    assert_eq!(quota.detail.as_deref(), Some("11 buckets could not be read"));
    let many = format!(r#"{{"buckets": [{}]}}"#, vec![r#"{"modelId": "m"}"#; 300].join(","));
    let quota = buckets(&many);
    assert_eq!((quota.buckets.len(), quota.detail.as_deref()), (256, Some("44 buckets could not be read")));
}

#[test]
fn q10_no_buckets_are_no_quota_and_neither_empty_nor_full() {
    for body in ["{}", r#"{"buckets": []}"#, r#"{"buckets": null}"#, r#" {"else": 1e999}"#] {
        let quota = buckets(body);
        assert!(quota.buckets.is_empty());
        assert_eq!(quota.detail.as_deref(), Some("Google reports no quota for this account"), "{body}");
    }
}

#[test]
fn q12_what_is_no_answer_of_code_assist_is_trouble() {
    for body in [
        "",
        "<html>Sign in to the hotel's network</html>",
        "[]",
        "7",
        r#"{"buckets": {}}"#,
        r#"{"buckets": [}"#,
    ] {
        assert_eq!(state_of(200, body), (QuotaState::Unavailable, Then::Soon), "{body}");
        assert!(load(&answered(200, body), NOW).is_err(), "{body}");
    }
    let reply = Reply::Answer { status: 200, retry_after: None, body: vec![b'{', 0xff, b'}'] };
    assert_eq!(quota(&reply, &Loaded::default(), NOW).unwrap_err().state, QuotaState::Unavailable);
    let nothing = quota(&Reply::Nothing("it took too long".into()), &Loaded::default(), NOW).unwrap_err();
    assert_eq!((nothing.detail.as_str(), nothing.then), ("it took too long", Then::Soon));
}

#[test]
fn q7_q12_what_an_account_is_decides_whether_it_is_asked_further() {
    let tier = r#""currentTier": {"id": "standard-tier"}"#;
    let reason = |code: &str| format!(r#""ineligibleTiers": [{{"reasonCode": "{code}"}}]"#);
    let load = |members: &str| load(&answered(200, &format!("{{{members}}}")), NOW);
    let project = |members: &str| load(&format!("{tier}, {members}")).unwrap();
    assert_eq!(project(r#""cloudaicompanionProject": "p""#).project.as_deref(), Some("p"));
    assert_eq!(project(r#""cloudaicompanionProject": {"id": "p", "name": 7}"#).project.as_deref(), Some("p"));
    for none in [r#""cloudaicompanionProject": null"#, r#""cloudaicompanionProject": """#, r#""x": 1"#] {
        assert_eq!(project(none), Loaded::default(), "{none}");
    }
    assert!(project(&reason("UNSUPPORTED_CLIENT")).unsupported);
    for (members, state) in [
        (reason("UNSUPPORTED_CLIENT"), QuotaState::ClientNoLongerSupported),
        (reason("VALIDATION_REQUIRED"), QuotaState::ValidationRequired),
        (reason("RESTRICTED_AGE"), QuotaState::Denied),
        (String::new(), QuotaState::NoProject),
        (
            format!(r#""currentTier": null, {}"#, reason("UNSUPPORTED_CLIENT")),
            QuotaState::ClientNoLongerSupported,
        ),
    ] {
        assert_eq!(load(&members).unwrap_err().state, state, "{members}");
    }
    assert!(load(&reason("RESTRICTED_AGE")).unwrap_err().detail.contains("RESTRICTED_AGE"));
}

#[test]
fn q12_an_organizations_perimeter_keeps_the_account_back_and_not_the_quota() {
    let kept_back = load(&answered(403, &refusal("SECURITY_POLICY_VIOLATED")), NOW).unwrap();
    assert_eq!(kept_back, Loaded { kept_back: true, ..Loaded::default() });
    assert_eq!(load(&answered(403, &refusal("OTHER")), NOW).unwrap_err().state, QuotaState::Denied);
}

#[test]
fn q12_a_consumer_without_a_seat_is_told_why() {
    let unsupported = Loaded { unsupported: true, ..Loaded::default() };
    let verdict = quota(&answered(403, &refusal("SUBSCRIPTION_REQUIRED")), &unsupported, NOW).unwrap_err();
    assert_eq!(verdict.state, QuotaState::ClientNoLongerSupported);
}

#[test]
fn q7_a_projects_number_is_refused() {
    assert_eq!(usable("my-project").unwrap().as_str(), "my-project");
    assert!(usable("123456789012").unwrap_err().detail.contains("number"));
    assert_eq!(usable("projects/x").unwrap_err().state, QuotaState::NoProject);
}
