//! The real Gemini CLI, live, signed in with a made-up account at a Code Assist
//! of our own: what it renews wakes us, and what it asks we ask.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use gemgauge::ledger::quota::poll::QuotaState;
use gemgauge::sources::quota::account_of_email;
use serde_json::json;

use crate::live_cli::cli;
use crate::support::code_assist::{Answer, Asked, CodeAssist, LOAD, QUOTA, two_buckets};
use crate::support::poll::until;
use crate::support::signed_in::{ADDRESS, MINUTE, NOON, SignedIn};

const RENEWED: &str = "ya29.FAKE-renewed-access-token";

/// What the CLI wants of Google besides the quota.
fn serve_the_cli(service: &CodeAssist) {
    let about = json!({"aud": "fake", "email": ADDRESS, "expires_in": 3000, "scope": "openid"});
    service.says("/tokeninfo", [Answer::json(200, &about)]);
    service.says("/oauth2/v2/userinfo", [Answer::json(200, &json!({"id": "1", "email": ADDRESS}))]);
    let token = json!({"access_token": RENEWED, "expires_in": 3599, "token_type": "Bearer",
                       "scope": "openid", "id_token": "FAKE.id.token"});
    service.says("/token", [Answer::json(200, &token)]);
    service.says("listExperiments", [Answer::json(200, &json!({"experimentIds": [], "flags": []}))]);
    let answer = json!({"response": {
        "candidates": [{"content": {"role": "model", "parts": [{"text": "ok"}]}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 12, "candidatesTokenCount": 1, "totalTokenCount": 13},
        "modelVersion": "gemini-2.5-flash"}});
    let stream = format!("data: {answer}\r\n\r\n");
    service.says("streamGenerateContent", [Answer::text(200, "text/event-stream", stream)]);
}

/// The CLI, told to say one word, so that it can reach nothing but the service.
fn start(cli: &Path, home: &SignedIn, vars: &[(&str, &str)]) -> Child {
    let hook = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/quota/loopback.cjs");
    let program = if cli.is_dir() { cli.join("bundle/gemini.js") } else { cli.to_owned() };
    let work = home.path().join("work");
    std::fs::create_dir_all(&work).unwrap();
    Command::new("node")
        .arg(program)
        .args(["--skip-trust", "-m", "gemini-2.5-flash", "-p", "reply with ok"])
        .current_dir(work)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .envs([("HOME", home.path()), ("GEMINI_CLI_HOME", home.path())])
        .env("CODE_ASSIST_ENDPOINT", home.service.url())
        .env("GEMINI_CLI_SYSTEM_SETTINGS_PATH", home.path().join("etc/settings.json"))
        .env("NODE_OPTIONS", format!("--require={}", hook.display()))
        .env("LOOPBACK", home.service.url())
        .envs([("TERM", "dumb"), ("NO_BROWSER", "true")])
        .envs(vars.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(home.path().join("stderr")).unwrap())
        .spawn()
        .expect("node starts where the CLI is installed")
}

/// Runs it to its end.
fn run(cli: &Path, home: &SignedIn, vars: &[(&str, &str)]) {
    let mut running = start(cli, home, vars);
    let ended = until("Gemini CLI", || running.try_wait().unwrap().ok_or_else(|| home.service.asked()));
    let said = std::fs::read_to_string(home.path().join("stderr")).unwrap();
    assert!(ended.success(), "{said}");
}

fn real_now() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

/// A home that the CLI works in by itself, at the time it is.
fn signed_in() -> SignedIn {
    let home = SignedIn::new();
    home.pass(real_now() - NOON);
    home.write(
        "settings.json",
        &json!({
            "security": {"auth": {"selectedType": "oauth-personal"}},
            "privacy": {"usageStatisticsEnabled": false},
            "telemetry": {"enabled": false},
            "general": {"enableAutoUpdate": false, "enableAutoUpdateNotification": false},
        })
        .to_string(),
    );
    serve_the_cli(&home.service);
    home
}

#[test]
fn q5_q7_the_real_cli_renews_its_sign_in_and_we_ask_what_it_asked() {
    let Some(cli) = cli() else { return };
    let home = signed_in();
    home.stores(&json!({
        "access_token": "ya29.FAKE-expired", "refresh_token": "1//FAKE-refresh-token", "token_type": "Bearer",
        "scope": "openid https://www.googleapis.com/auth/cloud-platform", "id_token": "FAKE.id.token",
        "expiry_date": home.now() - MINUTE,
    }));
    let mut watching = home.engine();
    let waiting = watching.step().unwrap();
    assert_eq!((waiting.state, waiting.asked), (QuotaState::WaitingForRefresh, false));
    assert!(home.service.asked().is_empty());

    run(&cli, &home, &[]);
    let by_the_cli = home.service.asked();
    let of = |asked: &[Asked], call: &str| -> Vec<Asked> {
        asked.iter().filter(|asked| asked.call() == call).cloned().collect()
    };
    assert_eq!(of(&by_the_cli, "/token").len(), 1, "it renewed its token: {by_the_cli:?}");

    let poll = watching.step().expect("the renewed file wakes us");
    assert_eq!(poll.state, QuotaState::Ok, "{poll:?}");
    assert_eq!(poll.account, account_of_email(ADDRESS));
    let by_us = &home.service.asked()[by_the_cli.len()..];
    assert_eq!(by_us.len(), 2);
    for call in [LOAD, QUOTA] {
        let (cli, us) = (of(&by_the_cli, call), of(by_us, call));
        assert!(!cli.is_empty() && us.len() == 1, "{call}: {by_the_cli:?}");
        assert!(cli.iter().all(|cli| cli.question == us[0].question), "{call}: {cli:?}");
        assert_eq!((cli[0].path.as_str(), cli[0].token.as_deref()), (us[0].path.as_str(), Some(RENEWED)));
        assert_eq!(us[0].token.as_deref(), Some(RENEWED));
        assert_ne!(cli[0].agent, us[0].agent, "we do not pretend to be it");
    }
    // Both were given the same answer.
    let stated = two_buckets();
    for (bucket, stated) in poll.buckets.iter().zip(stated.as_array().unwrap()) {
        assert_eq!(bucket.model, stated["modelId"]);
        assert_eq!(bucket.remaining_fraction, stated["remainingFraction"].as_f64());
    }
    assert_eq!(poll.buckets.len(), 2);
}

#[test]
fn q4_the_sign_in_that_the_real_cli_encrypts_opens_here() {
    let Some(cli) = cli() else { return };
    let mut home = signed_in();
    home.stores(&json!({
        "access_token": RENEWED, "refresh_token": "1//FAKE-refresh-token", "token_type": "Bearer",
        "scope": "openid", "expiry_date": home.now() + 50 * MINUTE,
    }));
    let flags = [("GEMINI_FORCE_ENCRYPTED_FILE_STORAGE", "true"), ("GEMINI_FORCE_FILE_STORAGE", "true")];
    run(&cli, &home, &flags);
    let gemini = home.path().join(".gemini");
    assert!(!gemini.join("oauth_creds.json").exists(), "the CLI moved it");
    let sealed = std::fs::read_to_string(gemini.join("gemini-credentials.json")).unwrap();
    assert!(!sealed.contains("FAKE"), "{sealed}");

    assert_eq!(home.poll().state, QuotaState::NoSignIn, "without the flag it is not looked at");
    for (name, value) in flags {
        home.var(name, value);
    }
    home.service.take_calls();
    let poll = home.poll();
    assert_eq!((poll.state, poll.account), (QuotaState::Ok, account_of_email(ADDRESS)));
    assert_eq!(home.service.asked()[1].token.as_deref(), Some(RENEWED));
}
