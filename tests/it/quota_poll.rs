//! One poll of one home against a Code Assist of our own: what is asked, and
//! what comes of every answer.

use std::time::Duration;

use gemgauge::config::{Endpoint, ProjectRule, QUOTA_RISK};
use gemgauge::ledger::quota::poll::{Poll, QuotaState};
use gemgauge::sources::quota::{Consent, account_of_email};
use serde_json::{Value, json};

use crate::support::code_assist::{Answer, CodeAssist, LOAD, QUOTA};
use crate::support::signed_in::{ADDRESS, HOME, MINUTE, NOON, SignedIn, TOKEN};

/// What a case's answers lead to: the state, words of the detail, the calls that were made.
fn check(case: &str, poll: &Poll, home: &SignedIn, state: QuotaState, words: &str, calls: &[&str]) {
    assert_eq!(poll.state, state, "{case}: {poll:?}");
    let detail = poll.detail.as_deref().unwrap_or_default();
    assert!(detail.contains(words) && (words.is_empty() == detail.is_empty()), "{case}: {detail}");
    assert_eq!(home.service.take_calls(), calls, "{case}");
    assert_eq!(poll.asked, !calls.is_empty(), "{case}");
    assert!(state == QuotaState::Ok || poll.buckets.is_empty(), "{case}");
    assert_eq!((poll.home, poll.at), (HOME, NOON), "{case}");
}

const BOTH: &[&str] = &[LOAD, QUOTA];

#[test]
fn q1_polling_is_off_and_the_risk_is_told_where_it_is_switched_on() {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).unwrap();
    assert!(readme.contains(QUOTA_RISK), "the README says: {QUOTA_RISK}");
    let home = SignedIn::new();
    assert_eq!(Consent::configured(&home.settings), None);
}

#[test]
fn q9_a_good_answer_is_passed_on_as_stated() {
    let home = SignedIn::new();
    let poll = home.poll();
    let asked = home.service.asked();
    check("ok", &poll, &home, QuotaState::Ok, "", BOTH);
    assert_eq!(poll.account, account_of_email(ADDRESS));
    assert_eq!(poll.cloud_project.as_deref(), Some("assigned-project"));
    let fractions: Vec<_> = poll.buckets.iter().map(|bucket| bucket.remaining_fraction).collect();
    assert_eq!(fractions, [Some(0.72), Some(0.998)]);
    assert_eq!(poll.buckets[0].remaining_amount, Some(1080));
    assert_eq!(poll.buckets[0].resets_at, Some(1_796_124_223_000));

    let metadata =
        json!({"ideType": "IDE_UNSPECIFIED", "platform": "PLATFORM_UNSPECIFIED", "pluginType": "GEMINI"});
    assert_eq!(asked[0].question, json!({"metadata": metadata}));
    assert_eq!(asked[1].question, json!({"project": "assigned-project"}));
    for asked in asked {
        assert_eq!((asked.method.as_str(), asked.token.as_deref()), ("POST", Some(TOKEN)));
        assert!(asked.path.starts_with("/v1internal:") && !asked.path.contains(TOKEN), "{}", asked.path);
        let agent = asked.agent.unwrap();
        assert!(agent.starts_with("gemgauge/") && !agent.contains("Gemini"), "{agent}");
    }
}

#[test]
fn q10_q12_every_answer_has_its_state() {
    use QuotaState::{
        ClientNoLongerSupported, Denied, NoProject, NoSubscription, Ok, Unavailable, ValidationRequired,
        WaitingForRefresh,
    };
    let full = json!([{"modelId": "a", "remainingFraction": 1}, {"modelId": "b", "remainingFraction": 1}]);
    let hotel = || Answer::text(200, "text/html", "<html>Welcome to the hotel</html>");
    let long = || Answer::text(200, "application/json", vec![b' '; (1 << 20) + 1]);
    let delay = json!({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "40000.5s"});
    let elsewhere = || Answer::text(307, "text/plain", "").with("location", "/elsewhere");
    let one = |bucket: Value| Answer::buckets(&json!([bucket]));
    let rows: Vec<(&str, Answer, QuotaState, &str)> = vec![
        ("exhausted", one(json!({"modelId": "a", "remainingFraction": 0, "remainingAmount": "0"})), Ok, ""),
        ("exhausted, not said", one(json!({"modelId": "a", "resetTime": "2026-12-01T11:00:00Z"})), Ok, ""),
        ("full", Answer::buckets(&full), Ok, ""),
        ("more than full", one(json!({"modelId": "a", "remainingFraction": 1.25})), Ok, ""),
        (
            "a reset that has passed",
            one(json!({"modelId": "a", "resetTime": "2026-11-30T11:00:00Z"})),
            Ok,
            "",
        ),
        ("no model", one(json!({"remainingFraction": 0.9})), Ok, "one bucket could not be read"),
        ("no buckets", Answer::buckets(&json!([])), Ok, "reports no quota"),
        ("nothing", Answer::json(200, &json!({})), Ok, "reports no quota"),
        ("packed", one(json!({"modelId": "a", "remainingFraction": 0.5})).packed(), Ok, ""),
        ("no list", Answer::buckets(&json!({})), Unavailable, "not what Code Assist says"),
        ("captive portal", hotel(), Unavailable, "not what Code Assist says"),
        ("oversized", long(), Unavailable, "longer than 1 MiB"),
        ("oversized when unpacked", long().packed(), Unavailable, "longer than 1 MiB"),
        ("redirect", elsewhere(), Unavailable, "not followed"),
        ("400", Answer::refusal(400, None, &[]), Denied, "status 400"),
        ("401", Answer::refusal(401, Some("ACCESS_TOKEN_EXPIRED"), &[]), WaitingForRefresh, "status 401"),
        ("403", Answer::refusal(403, None, &[]), Denied, "status 403"),
        ("no seat", Answer::refusal(403, Some("SUBSCRIPTION_REQUIRED"), &[]), NoSubscription, "no seat"),
        ("verify", Answer::refusal(403, Some("VALIDATION_REQUIRED"), &[]), ValidationRequired, "verified"),
        ("off", Answer::refusal(403, Some("SERVICE_DISABLED"), &[]), Denied, "off in this project"),
        ("perimeter", Answer::refusal(403, Some("SECURITY_POLICY_VIOLATED"), &[]), Denied, "a policy"),
        ("404", Answer::refusal(404, None, &[]), Denied, "no such service"),
        ("429", Answer::refusal(429, None, &[delay]), Unavailable, "less often"),
        ("500", Answer::refusal(500, None, &[]), Unavailable, "status 500"),
        ("503", Answer::text(503, "text/plain", ""), Unavailable, "status 503"),
    ];
    for (case, answer, state, words) in rows {
        let home = SignedIn::new();
        home.service.says(QUOTA, [answer]);
        check(case, &home.poll(), &home, state, words, BOTH);
    }
    let rows: Vec<(&str, Answer, QuotaState, &str)> = vec![
        ("consumer", Answer::ineligible("UNSUPPORTED_CLIENT"), ClientNoLongerSupported, "no longer serves"),
        ("verify", Answer::ineligible("VALIDATION_REQUIRED"), ValidationRequired, "verified"),
        ("young", Answer::ineligible("RESTRICTED_AGE"), Denied, "RESTRICTED_AGE"),
        ("new", Answer::json(200, &json!({"allowedTiers": []})), NoProject, "not set this account up"),
        // What follows would be the dummy answer: all of it left.
        ("no project", Answer::account(&Value::Null), NoProject, "assigned no project"),
        ("a number", Answer::account(&json!("123456789012")), NoProject, "by its number"),
        ("perimeter", Answer::refusal(403, Some("SECURITY_POLICY_VIOLATED"), &[]), Denied, "a policy"),
        ("401", Answer::refusal(401, None, &[]), WaitingForRefresh, "status 401"),
        ("403", Answer::refusal(403, Some("SUBSCRIPTION_REQUIRED"), &[]), NoSubscription, "no seat"),
        ("captive portal", hotel(), Unavailable, "not what Code Assist says"),
        ("redirect", elsewhere(), Unavailable, "not followed"),
    ];
    for (case, answer, state, words) in rows {
        let home = SignedIn::new();
        home.service.says(LOAD, [answer]);
        home.service.says(QUOTA, [Answer::buckets(&full)]);
        check(case, &home.poll(), &home, state, words, &[LOAD]);
    }
}

#[test]
fn q6_a_service_that_never_answers_is_not_waited_for() {
    let mut home = SignedIn::new();
    home.timeout = Duration::from_millis(300);
    home.service.says(LOAD, [Answer::Never]);
    check("silence", &home.poll(), &home, QuotaState::Unavailable, "took too long", &[LOAD]);
}

#[test]
fn q6_nobody_there_is_trouble_too() {
    let mut home = SignedIn::new();
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    home.var("CODE_ASSIST_ENDPOINT", &format!("http://{gone}"));
    let poll = home.poll();
    assert_eq!(poll.state, QuotaState::Unavailable);
    assert!(poll.detail.unwrap().contains("connection"), "and no address");
}

#[test]
fn q3_no_request_leaves_a_home_without_a_google_sign_in_and_no_credential_is_read() {
    for (auth, words) in [
        ("gemini-api-key", "an API key"),
        ("vertex-ai", "Vertex AI"),
        ("gateway", "a gateway"),
        ("x", "another way"),
    ] {
        let home = SignedIn::new();
        home.chooses(auth);
        // Had anybody tried to read it, that would be the state.
        std::fs::remove_file(home.path().join(".gemini/oauth_creds.json")).unwrap();
        std::fs::create_dir(home.path().join(".gemini/oauth_creds.json")).unwrap();
        let poll = home.poll();
        check(auth, &poll, &home, QuotaState::NotGoogleSignIn, words, &[]);
        assert_eq!(poll.account, None);
        home.chooses("oauth-personal");
        let poll = home.poll();
        check("the credential is read", &poll, &home, QuotaState::Unreadable, "not a regular file", &[]);
    }
}

#[test]
fn q3_the_environment_chooses_where_settings_are_silent() {
    let mut home = SignedIn::new();
    home.write("settings.json", "{}");
    check("silent", &home.poll(), &home, QuotaState::NotGoogleSignIn, "neither", &[]);
    home.write(".env", "GEMINI_API_KEY=k\n");
    check("a key", &home.poll(), &home, QuotaState::NotGoogleSignIn, "an API key", &[]);
    home.var("GOOGLE_GENAI_USE_GCA", "true");
    check("GCA", &home.poll(), &home, QuotaState::Ok, "", BOTH);
    home.write("settings.json", "{ half");
    check("broken", &home.poll(), &home, QuotaState::Unreadable, "settings.json could not be read", &[]);
    home.chooses("compute-default-credentials");
    check("a machine", &home.poll(), &home, QuotaState::NoSignIn, "identity of a cloud machine", &[]);
}

#[test]
fn q4_q5_without_a_token_worth_showing_nothing_is_asked() {
    use QuotaState::{NoSignIn, Unreadable, WaitingForRefresh};
    let home = SignedIn::new();
    for (text, state, words) in [
        (
            json!({"access_token": TOKEN, "expiry_date": NOON - 1}),
            WaitingForRefresh,
            "expired at 2026-11-30T11:59:59.999Z",
        ),
        (
            json!({"access_token": TOKEN, "expiry_date": NOON + MINUTE}),
            WaitingForRefresh,
            "expires at 2026-11-30T12:01:00Z",
        ),
        (json!({"refresh_token": "1//FAKE"}), WaitingForRefresh, "no access token is stored"),
        (json!([TOKEN]), Unreadable, "not what Gemini CLI writes"),
        (json!({"access_token": {"x": TOKEN}}), Unreadable, "not what Gemini CLI writes"),
    ] {
        home.stores(&text);
        let poll = home.poll();
        check(&text.to_string(), &poll, &home, state, words, &[]);
        assert_eq!(poll.account.is_some(), state == WaitingForRefresh);
    }
    home.stores(&json!({"access_token": TOKEN, "expiry_date": 1_796_040_060_001.779}));
    check("a fraction", &home.poll(), &home, QuotaState::Ok, "", BOTH);
    home.stores(&json!({"access_token": TOKEN}));
    check("no expiry: once", &home.poll(), &home, QuotaState::Ok, "", BOTH);
    std::fs::remove_file(home.path().join(".gemini/oauth_creds.json")).unwrap();
    check("nothing", &home.poll(), &home, NoSignIn, "no sign-in is stored", &[]);
}

#[test]
fn q4_the_encrypted_file_counts_only_where_the_flag_says_so() {
    let mut home = SignedIn::new();
    home.write("gemini-credentials.json", "not what the CLI writes");
    check("no flag", &home.poll(), &home, QuotaState::Ok, "", BOTH);
    home.var("GEMINI_FORCE_ENCRYPTED_FILE_STORAGE", "true");
    check("flag", &home.poll(), &home, QuotaState::Unreadable, "does not open", &[]);
}

#[test]
fn q6_no_env_file_leads_a_token_elsewhere() {
    let home = SignedIn::new();
    let other = CodeAssist::start();
    home.write(".env", &format!("CODE_ASSIST_ENDPOINT={}\nCODE_ASSIST_API_VERSION=v9\n", other.url()));
    let mut outside = home.outside();
    outside.env = gemgauge::config::Env::of(home.path(), [("CODE_ASSIST_ENDPOINT", home.service.url())]);
    let poll =
        gemgauge::sources::quota::poll_once(home.target(), Consent::by_flag(), &home.settings, &outside);
    check("env file", &poll, &home, QuotaState::Ok, "", BOTH);
    assert!(other.asked().is_empty());
}

#[test]
fn q6_the_configuration_beats_the_environment_and_both_are_checked() {
    let mut home = SignedIn::new();
    home.var("CODE_ASSIST_API_VERSION", "v9fake");
    home.poll();
    assert_eq!(home.service.asked()[0].path, "/v9fake:loadCodeAssist");
    let other = CodeAssist::start();
    home.settings.endpoint = Some(other.url().parse::<Endpoint>().unwrap());
    home.settings.api_version = Some("v2".parse().unwrap());
    assert_eq!(home.poll().state, QuotaState::Ok);
    assert_eq!((other.asked()[1].path.as_str(), home.service.asked().len()), ("/v2:retrieveUserQuota", 2));

    let mut home = SignedIn::new();
    home.var("CODE_ASSIST_ENDPOINT", "http://code-assist.example");
    check(
        "plain http",
        &home.poll(),
        &home,
        QuotaState::Unavailable,
        "$CODE_ASSIST_ENDPOINT: a token goes",
        &[],
    );
}

#[test]
fn q7_the_project_is_googles_or_the_environments_or_a_pinned_one() {
    let assigned = || Answer::account(&json!("assigned"));
    let object = || Answer::account(&json!({"id": "of-object", "name": "x"}));
    let none = || Answer::account(&Value::Null);
    let kept_back = || Answer::refusal(403, Some("SECURITY_POLICY_VIOLATED"), &[]);
    let env = &[("GOOGLE_CLOUD_PROJECT", "of-env"), ("GOOGLE_CLOUD_PROJECT_ID", "of-id")];
    let id = &[("GOOGLE_CLOUD_PROJECT_ID", "of-id")];
    let pinned = || ProjectRule::Pinned("pinned".parse().unwrap());
    type Vars = &'static [(&'static str, &'static str)];
    let rows: &[(ProjectRule, Vars, Answer, Option<&str>, &str)] = &[
        (ProjectRule::Auto, &[], assigned(), None, "assigned"),
        (ProjectRule::Auto, &[], object(), None, "of-object"),
        (ProjectRule::Auto, env, assigned(), Some("of-env"), "assigned"),
        (ProjectRule::Auto, env, none(), Some("of-env"), "of-env"),
        (ProjectRule::Auto, id, none(), Some("of-id"), "of-id"),
        (ProjectRule::Auto, env, kept_back(), Some("of-env"), "of-env"),
        (ProjectRule::Env, env, assigned(), Some("of-env"), "of-env"),
        (ProjectRule::Env, &[], assigned(), None, "assigned"),
        (pinned(), env, assigned(), Some("pinned"), "pinned"),
    ];
    for (rule, vars, account, said, asked_about) in rows {
        let mut home = SignedIn::new();
        home.settings.project = rule.clone();
        for (name, value) in *vars {
            home.var(name, value);
        }
        home.service.says(LOAD, [account.clone()]);
        let poll = home.poll();
        let asked = home.service.asked();
        assert_eq!(poll.state, QuotaState::Ok, "{rule} {vars:?}");
        assert_eq!(asked[0].question["cloudaicompanionProject"].as_str(), *said, "{rule} {vars:?}");
        assert_eq!(asked[0].question["metadata"]["duetProject"].as_str(), *said, "{rule} {vars:?}");
        assert_eq!(asked[1].question, json!({"project": asked_about}), "{rule} {vars:?}");
        assert_eq!(poll.cloud_project.as_deref(), Some(*asked_about));
    }
    let mut home = SignedIn::new();
    home.var("GOOGLE_CLOUD_PROJECT", "123456789012");
    check("a number", &home.poll(), &home, QuotaState::NoProject, "by its number", &[]);
    home.settings.project = pinned();
    check("a pinned one instead", &home.poll(), &home, QuotaState::Ok, "", BOTH);
}

#[test]
fn q9_an_account_goes_by_its_hash_or_a_configured_name() {
    let mut home = SignedIn::new();
    let hash = account_of_email(ADDRESS).unwrap();
    assert_eq!(home.poll().account.as_ref(), Some(&hash));
    home.settings.accounts.insert(hash, "ana".into());
    assert_eq!(home.poll().account.as_deref(), Some("ana"));
    home.write("google_accounts.json", r#"{"active": null}"#);
    assert_eq!(home.poll().account.as_deref(), Some("unknown"));
}

/// What the real CLI was recorded to ask, and what it was answered.
#[test]
fn q7_the_recorded_cli_asked_the_same() {
    let captures: Value = serde_json::from_str(include_str!("../../fixtures/quota/captures.json")).unwrap();
    for (name, capture) in captures.as_object().unwrap() {
        let mut home = SignedIn::new();
        for (variable, value) in capture["env"].as_object().unwrap() {
            home.var(variable, value.as_str().unwrap());
        }
        if name == "headless_project_dotenv" {
            home.write(".env", "GOOGLE_CLOUD_PROJECT=fake-dotenv-project\n");
        }
        let exchanges = capture["exchanges"].as_array().unwrap();
        for exchange in exchanges {
            let status = u16::try_from(exchange["status"].as_u64().unwrap()).unwrap();
            let call = exchange["path"].as_str().unwrap().rsplit(':').next().unwrap();
            home.service.says(call, [Answer::json(status, &exchange["answer"])]);
        }
        let poll = home.poll();
        let asked: Vec<Value> = home
            .service
            .asked()
            .into_iter()
            .map(|asked| json!({"path": asked.path, "question": asked.question}))
            .collect();
        let cli: Vec<Value> = exchanges
            .iter()
            .map(|exchange| json!({"path": exchange["path"], "question": exchange["question"]}))
            .collect();
        let (state, same) = match name.as_str() {
            // The CLI passes the object through; its id is meant.
            "headless_project_object" => (QuotaState::Ok, 1),
            // The CLI sets the account up; that is not for us to do.
            "headless_onboarding" => (QuotaState::NoProject, 1),
            "headless_project_numeric" => (QuotaState::NoProject, 0),
            "headless_load_403" | "quota_error_403" | "quota_error_404" => (QuotaState::Denied, cli.len()),
            "headless_unsupported_client_new" => (QuotaState::ClientNoLongerSupported, 1),
            "headless_validation_required" => (QuotaState::ValidationRequired, 1),
            "quota_error_401" => (QuotaState::WaitingForRefresh, 2),
            "quota_error_403_subscription" => (QuotaState::NoSubscription, 2),
            "quota_error_429_plain" | "quota_error_500" | "quota_error_503" => (QuotaState::Unavailable, 2),
            _ => (QuotaState::Ok, 2),
        };
        assert_eq!(poll.state, state, "{name}: {poll:?}");
        assert_eq!(asked[..same], cli[..same], "{name}");
        let stated = exchanges.last().and_then(|last| last["answer"]["buckets"].as_array());
        if let Some(stated) = stated.filter(|_| state == QuotaState::Ok) {
            let named = stated.iter().filter(|bucket| bucket["modelId"].is_string()).count();
            assert_eq!(poll.buckets.len(), named, "{name}");
        }
    }
    assert!(captures.as_object().unwrap().len() >= 25);
}
