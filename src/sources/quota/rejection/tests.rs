use std::path::Path;

use serde_json::json;

use super::*;

const HOUR: i64 = 3_600_000;

fn capture(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/quota").join(name).with_extension("json");
    let file = std::fs::File::open(path).expect("a capture");
    serde_json::from_reader(std::io::BufReader::new(file)).expect("JSON")
}

/// `error` and time of the first `gemini_cli.api_error`.
fn telemetry(name: &str) -> (String, i64) {
    let record = capture(name)["telemetry_log_records"]
        .as_array()
        .and_then(|records| records.iter().find(|r| r["event.name"] == "gemini_cli.api_error").cloned())
        .expect("an api_error");
    let at = record["event.timestamp"].as_str().and_then(wording::timestamp).expect("a time");
    (record["error"].as_str().expect("a body").to_owned(), at)
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[test]
fn q14_every_captured_telemetry_body_is_read() {
    const METRIC: Option<&str> = Some("FakeRequestsPerDayPerUser");
    for (name, reason, capacity, model, metric, resets, delay) in [
        (
            "acp_429_quota_exhausted",
            Some("QUOTA_EXHAUSTED"),
            false,
            Some("gemini-2.5-flash"),
            None,
            Some("2026-12-01T05:57:19Z"),
            Some(51_820_638),
        ),
        (
            "acp_429_individual",
            Some("QUOTA_EXHAUSTED"),
            false,
            Some("gemini-3.5-flash"),
            None,
            Some("2026-12-01T01:04:32Z"),
            Some(33_740_910),
        ),
        (
            "acp_429_rate_limit",
            Some("RATE_LIMIT_EXCEEDED"),
            false,
            Some("gemini-2.5-flash"),
            None,
            Some("2026-11-30T15:32:46Z"),
            Some(2_200),
        ),
        (
            "acp_429_perday",
            None,
            false,
            Some("gemini-2.5-pro"),
            METRIC,
            Some("2026-12-01T02:38:26.842Z"),
            Some(40_000_500),
        ),
        (
            "acp_429_perminute",
            None,
            false,
            Some("gemini-2.5-pro"),
            Some("FakeRequestsPerMinutePerUser"),
            None,
            None,
        ),
        (
            "acp_429_capacity",
            Some("MODEL_CAPACITY_EXHAUSTED"),
            true,
            Some("gemini-2.5-flash"),
            None,
            None,
            None,
        ),
        ("acp_429_no_credits", Some("INSUFFICIENT_G1_CREDITS_BALANCE"), false, None, None, None, None),
        ("acp_429_plain", None, false, None, None, None, None),
    ] {
        let (body, at) = telemetry(name);
        let read = rejection(&body, at).unwrap_or_else(|| panic!("{name} is a refusal"));
        let want = Rejection {
            reason: reason.map(str::to_owned),
            capacity,
            model: model.map(str::to_owned),
            metric: metric.map(str::to_owned),
            resets_at: resets.and_then(wording::timestamp),
            retry_after_ms: delay,
            waits: matches!(name, "acp_429_quota_exhausted" | "acp_429_rate_limit"),
        };
        assert_eq!(read, want, "{name}");
    }
}

#[test]
fn q14_every_captured_acp_error_is_a_refusal() {
    for (name, capacity, after) in [
        ("acp_429_individual", false, Some("9h22m20s")),
        ("acp_429_perday", false, None),
        ("acp_429_capacity", true, None),
        ("acp_429_no_credits", false, None),
    ] {
        let replies = &capture(name)["replies"];
        let error = &replies["session/prompt[0]"]["error"];
        assert_eq!(error["code"], 429, "{name}");
        let read = rejection(error["message"].as_str().expect("a message"), 1_000).expect("a refusal");
        let delay = after.and_then(wording::duration);
        assert_eq!(
            (read.capacity, read.retry_after_ms, read.resets_at),
            (capacity, delay, delay.map(|d| d + 1_000)),
            "{name}"
        );
    }
}

#[test]
fn q14_every_captured_headless_error_is_a_refusal() {
    for (name, reason, delay) in [
        ("headless_429_individual", Some("QUOTA_EXHAUSTED"), Some(33_740_910)),
        ("headless_429_perday", None, None),
        ("headless_429_quota_exhausted", None, Some(14 * HOUR + 23 * 60_000 + 40_000)),
    ] {
        let run = capture(name);
        let read = rejection(run["stderr"].as_str().expect("text"), 5).expect("a refusal");
        assert_eq!((read.reason.as_deref(), read.retry_after_ms), (reason, delay), "{name}");
        assert_eq!(read.resets_at, delay.map(|d| d + 5), "{name}");
        assert!(!read.capacity, "{name}");
        assert_eq!(read.waits, name == "headless_429_quota_exhausted", "{name}");
    }
    // The document alone, as a wrapper that reads it may hand it over.
    let stderr = capture("headless_429_individual")["stderr"].as_str().expect("text").to_owned();
    let document = &stderr[stderr.find("{\n  \"session_id\"").expect("the document")..];
    let read = rejection(document, 0).expect("a refusal");
    assert_eq!(read.resets_at, Some(9 * HOUR + 22 * 60_000 + 20_000));
}

#[test]
fn q14_bodies_come_wrapped_and_broken() {
    let body = r#"{"error":{"code":429,"message":"m","details":[{"reason":"QUOTA_EXHAUSTED"}]}}"#;
    let in_string = json!({"error": {"code": 429, "message": body}}).to_string();
    for text in [
        format!("[{body}]"),
        in_string.clone(),
        json!([{"error": {"message": in_string}}]).to_string(),
        body.replace("]}}", ",],}}"),
        body.replace(r#","message""#, r#",,"message""#),
        format!("got status: 429. {body} and more"),
        body.replace("429", r#""429""#),
        body.replace(r#""code":429"#, r#""status":"RESOURCE_EXHAUSTED""#),
        // Cut off: the reason can still be seen.
        body[..body.len() - 3].to_owned(),
    ] {
        let read = rejection(&text, 0).unwrap_or_else(|| panic!("{text}"));
        assert_eq!(read.reason, some("QUOTA_EXHAUSTED"), "{text}");
    }
}

#[test]
fn q14_other_errors_are_no_refusal() {
    for text in [
        "",
        "Internal error",
        r#"{"error":{"code":500,"message":"quota exceeded while failing","status":"INTERNAL"}}"#,
        r#"{"error":{"code":403,"message":"The API requires a quota project","status":"PERMISSION_DENIED"}}"#,
        r#"{"error":{"status":"PERMISSION_DENIED","message":"rate limit"}}"#,
        "The cloudcode-pa API requires a quota project, which is not set by default",
        "fetch failed",
        "{{{{[[[[",
        "{\"",
        "reason: 'no such model'",
    ] {
        assert_eq!(rejection(text, 0), None, "{text}");
    }
    // Known to be a 429 from elsewhere.
    let read = refused("Something new. Please retry in 12.5s.", 100);
    assert_eq!((read.retry_after_ms, read.resets_at, read.reason), (Some(12_500), Some(12_600), None));
}

#[test]
fn q14_wording_gives_delays_and_resets() {
    for (text, delay) in [
        ("Your quota will reset after 13h22m.", Some(13 * HOUR + 22 * 60_000)),
        ("Your quota will reset after 14h23m40.638305887s. (fake)", Some(51_820_638)),
        ("Quota exceeded. Resets in 2 hours 5 minutes.", Some(2 * HOUR + 5 * 60_000)),
        ("Too many requests. Please retry in 900ms", Some(900)),
        ("Quota exceeded, reset after 1d", Some(24 * HOUR)),
        (
            "Attempt 1 failed: quota exceeded. Retrying after 5308ms...\nAttempt 2 failed: quota exceeded. Retrying after 10045ms...",
            Some(10_045),
        ),
        ("Quota exceeded, reset after a while", None),
        ("Quota exceeded, reset after 99999999999999h", None),
        ("Quota exceeded, reset after 12", None),
        ("Quota exceeded, reset after .s", None),
    ] {
        let read = rejection(text, 7).unwrap_or_else(|| panic!("{text}"));
        assert_eq!((read.retry_after_ms, read.resets_at), (delay, delay.map(|d| d + 7)), "{text}");
    }
    let read = rejection("Quota exceeded; it resets at 2026-12-01T05:57:19Z.", 7).expect("a refusal");
    assert_eq!(read.resets_at, wording::timestamp("2026-12-01T05:57:19Z"));
    let read = rejection(
        "Quota exceeded for quota metric 'Chat API requests' and limit 'Chat API requests per day per user' of \
         service 'cloudaicompanion.googleapis.com' for consumer 'project_number:1'.",
        7,
    );
    assert_eq!(read.expect("a refusal").metric, some("Chat API requests per day per user"));
}

#[test]
fn q14_capacity_is_apart_and_resets_no_quota() {
    for (text, capacity) in [
        ("No capacity available for model gemini-2.5-flash", true),
        ("Model capacity exceeded. Please retry in 3s.", true),
        ("You have exhausted your capacity on this model. Your quota will reset after 2s.", false),
        (
            r#"{"error":{"code":429,"message":"Your quota will reset after 5s","details":[{"reason":"MODEL_CAPACITY_EXCEEDED"}]}}"#,
            true,
        ),
    ] {
        let read = rejection(text, 0).expect("a refusal");
        assert_eq!(read.capacity, capacity, "{text}");
        assert_eq!(read.resets_at.is_some(), !capacity, "{text}");
    }
}

#[test]
fn q8_no_text_and_no_address_gets_through() {
    let body = json!({"error": {"code": 429, "message": "dev@example.invalid asked for model secret@example.invalid",
    "details": [
        {"reason": "dev@example.invalid", "metadata": {"model": "a prompt? yes!", "quota_limit": "x".repeat(200)}},
        {"violations": [{"quotaId": "dev@example.invalid", "quotaMetric": "m/\n", "quotaDimensions": {"model": 4}}]},
    ]}});
    let read = rejection(&body.to_string(), 0).expect("a refusal");
    assert_eq!(read, Rejection { metric: some("m/"), ..refused("", 0) });
}

#[test]
fn q14_long_and_hostile_texts_are_bounded() {
    for text in
        ["[".repeat(300_000), "{\"a\":".repeat(50_000), "é".repeat(100_000), "retryDelayMs".repeat(9_000)]
    {
        assert_eq!(rejection(&text, i64::MAX), None);
    }
    let read = rejection("Quota exceeded, resets in 5s", i64::MAX).expect("a refusal");
    assert_eq!((read.resets_at, read.retry_after_ms), (None, Some(5_000)));
}
