//! What is in force: which layer wins, and what is refused.

use super::*;
use crate::config::QuotaLayer;
use crate::ledger::money::PriceList;

/// A working directory with `config.yml` in its usual place.
fn with_file(text: &str) -> (tempfile::TempDir, Env) {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join(".config/gemgauge");
    std::fs::create_dir_all(&config).unwrap();
    std::fs::write(config.join("config.yml"), text).unwrap();
    let env = Env::of(dir.path(), [("HOME", dir.path())]);
    (dir, env)
}

fn load(flags: &Flags, vars: &[(&str, &str)]) -> Result<Config, ConfigError> {
    let vars = [("HOME", "/nowhere/ana")].into_iter().chain(vars.iter().copied());
    Config::load(flags, &Env::of(Path::new("/nowhere/srv"), vars))
}

#[test]
fn nothing_said_gives_the_documented_defaults() {
    let config = load(&Flags::default(), &[]).unwrap();
    assert_eq!(config.homes[0].path, Path::new("/nowhere/ana"));
    assert_eq!(config.db, Path::new("/nowhere/ana/.local/share/gemgauge/ledger.db"));
    assert_eq!(config.spool, Path::new("/nowhere/ana/.local/state/gemgauge/spool"));
    assert_eq!((config.timezone, config.strict, config.file), (None, false, None));
    assert_eq!((config.journals.max_file_bytes, config.journals.max_line_bytes), (67_108_864, 10_485_760));
    assert_eq!((config.journals.rescan.as_secs(), config.journals.idle_rescan.as_secs()), (2, 30));
    assert!(config.journals.watch);
    assert_eq!(config.metrics.max_tuples, 2_000);
    assert_eq!(config.web.listen_addresses(false).unwrap()[0].to_string(), "127.0.0.1:10436");
    assert_eq!(config.web.telemetry_path.as_str(), "/metrics");
    assert_eq!(config.quota, Quota::default());
    assert_eq!((config.log.format, config.log.level), (LogFormat::Text, Level::Info));
    let keys: Vec<_> = config.settings.iter().map(|setting| setting.key).collect();
    assert_eq!(keys, keys::KEYS.iter().map(|key| key.key).collect::<Vec<_>>());
    assert!(config.settings.iter().all(|setting| setting.origin == Origin::Default));
}

#[test]
fn flags_beat_the_environment_beats_the_file() {
    let (dir, env) = with_file("db: file.db\ntimezone: Asia/Tokyo\nstrict: true\nmetrics: {max_tuples: 7}\n");
    let file = Origin::File(dir.path().join(".config/gemgauge/config.yml"));
    let config = Config::load(&Flags::default(), &env).unwrap();
    assert_eq!(config.db, dir.path().join("file.db"));
    assert_eq!((config.metrics.max_tuples, config.origin("metrics.max_tuples")), (7, file.clone()));

    let vars = [("HOME", dir.path().to_str().unwrap()), ("GEMGAUGE_DB", "env.db"), ("GEMGAUGE_STRICT", "no")];
    let env = Env::of(dir.path(), vars);
    let config = Config::load(&Flags::default(), &env).unwrap();
    assert_eq!((config.db.clone(), config.strict), (dir.path().join("env.db"), false));
    assert_eq!(config.origin("db"), Origin::Env("GEMGAUGE_DB"));
    assert_eq!(config.origin("timezone"), file);

    let layer = Layer { db: Some("flag.db".into()), timezone: Some("UTC".into()), ..Layer::default() };
    let config = Config::load(&Flags { layer, ..Flags::default() }, &env).unwrap();
    assert_eq!(config.db, dir.path().join("flag.db"));
    assert_eq!(config.timezone.as_deref(), Some("UTC"));
    assert_eq!(config.origin("db"), Origin::Flag("--db"));
}

#[test]
fn a_named_file_must_be_there_and_the_usual_one_may_be_missing() {
    let flags = Flags { config: Some("gone.yml".into()), ..Flags::default() };
    let error = load(&flags, &[]).unwrap_err().to_string();
    assert!(error.contains("/nowhere/srv/gone.yml"), "{error}");
    assert!(load(&Flags::default(), &[("GEMGAUGE_CONFIG", "/gone.yml")]).is_err());
    let (_dir, env) = with_file("dbb: x\n");
    assert!(Config::load(&Flags::default(), &env).unwrap_err().to_string().contains("line 1, dbb"));
}

#[test]
fn every_key_has_its_variable() {
    let dir = tempfile::tempdir().unwrap();
    let prices = dir.path().join("prices.yml");
    std::fs::write(&prices, "as_of: 2027-01-01\n").unwrap();
    let config = load(
        &Flags::default(),
        &[
            ("GEMGAUGE_HOME", "/nowhere/a:/nowhere/b"),
            ("GEMGAUGE_CURRENCY_CODE", "EUR"),
            ("GEMGAUGE_CURRENCY_USD_RATE", "0.92"),
            ("GEMGAUGE_JOURNALS_MAX_FILE_BYTES", "1"),
            ("GEMGAUGE_JOURNALS_MAX_LINE_BYTES", "2"),
            ("GEMGAUGE_JOURNALS_RESCAN_SECONDS", "3"),
            ("GEMGAUGE_JOURNALS_IDLE_RESCAN_SECONDS", "4"),
            ("GEMGAUGE_JOURNALS_WATCH", "false"),
            ("GEMGAUGE_METRICS_MAX_TUPLES", "5"),
            ("GEMGAUGE_WEB_LISTEN_ADDRESS", "127.0.0.1:1, [::1]:2"),
            ("GEMGAUGE_WEB_TELEMETRY_PATH", "/m"),
            ("GEMGAUGE_WEB_ALLOWED_HOSTS", "a.example,b.example"),
            ("GEMGAUGE_WEB_ALLOW_UNAUTHENTICATED", "1"),
            ("GEMGAUGE_WEB_CONFIG_FILE", "/web.yml"),
            ("GEMGAUGE_WEB_WRITE_TOKEN", "s3cret-s3cret-s3cret"),
            ("GEMGAUGE_TELEMETRY_LISTEN_ADDRESS", "127.0.0.1:4317,127.0.0.1:4318"),
            ("GEMGAUGE_TELEMETRY_OUTFILES", "/a.log, b.log"),
            ("GEMGAUGE_METRICS_MAX_SESSIONS", "6"),
            ("GEMGAUGE_HOOKS_WEBHOOK_URL", "https://hooks.example/s3cret"),
            ("GEMGAUGE_HOOKS_WEBHOOK_TIMEOUT_SECONDS", "6"),
            ("GEMGAUGE_HOOKS_WEBHOOK_RETRIES", "0"),
            ("GEMGAUGE_QUOTA_ENABLED", "true"),
            ("GEMGAUGE_QUOTA_PROJECT", "my-project"),
            ("GEMGAUGE_QUOTA_ENDPOINT", "http://[::1]:3/"),
            ("GEMGAUGE_QUOTA_API_VERSION", "v9"),
            ("GEMGAUGE_LOG_FORMAT", "json"),
            ("GEMGAUGE_LOG_LEVEL", "debug"),
            ("GEMGAUGE_TIMEZONE", "UTC"),
            ("GEMGAUGE_DB", "/x"),
            ("GEMGAUGE_SPOOL", "/y"),
            ("GEMGAUGE_STRICT", "yes"),
            ("GEMGAUGE_PRICES_FILE", prices.to_str().unwrap()),
        ],
    )
    .unwrap();
    assert_eq!(config.homes.len(), 2);
    assert_eq!(config.journals.idle_rescan.as_secs(), 4);
    assert_eq!(config.web.listen_addresses(false).unwrap().len(), 2);
    assert_eq!(config.web.allowed_hosts, ["a.example", "b.example"]);
    assert_eq!(config.telemetry_addresses(false).unwrap().len(), 2);
    assert_eq!(config.outfiles(), [Path::new("/a.log"), Path::new("/nowhere/srv/b.log")]);
    assert_eq!(config.web.config_file.as_deref(), Some(Path::new("/web.yml")));
    let by_variable = |s: &Setting| s.key == "web.write_token_file" || matches!(s.origin, Origin::Env(_));
    assert!(config.settings.iter().all(by_variable), "one token says it all");
    assert!(config.unknown_variables.is_empty());
    assert!(!format!("{config:?}").contains("s3cret"), "what is secret is shown nowhere");
    assert!(config.quota.enabled);
    assert_eq!(config.quota.endpoint.unwrap().as_str(), "http://[::1]:3");
    let webhook = config.hooks.webhook.unwrap();
    assert_eq!((webhook.timeout.as_secs(), webhook.retries), (6, 0));
}

#[test]
fn a_price_file_is_read_when_the_configuration_is() {
    let (dir, env) = with_file("prices:\n  file: own.yml\n");
    let error = Config::load(&Flags::default(), &env).unwrap_err();
    assert!(matches!(&error, ConfigError::ReadPrices { path, .. } if *path == dir.path().join("own.yml")));
    let own = "prices:\n  - {model: gemini-9, list: vertex-ai, input: 1, output: 2}\n";
    std::fs::write(dir.path().join("own.yml"), own).unwrap();
    let config = Config::load(&Flags::default(), &env).unwrap();
    assert!(config.prices.price("gemini-9", PriceList::VertexAi, 0).is_ok());
    assert!(config.prices.price("gemini-2.5-pro", PriceList::VertexAi, 0).is_ok());
    std::fs::write(dir.path().join("own.yml"), own.replace("1,", "-1,")).unwrap();
    let error = Config::load(&Flags::default(), &env).unwrap_err().to_string();
    assert!(error.contains("own.yml, line 2, prices.input: `-1` is negative"), "{error}");
}

#[test]
fn q1_quota_is_off_unless_somebody_says_so() {
    let (_dir, env) = with_file("quota:\n  project: env\n  accounts: {0a1b2c3d4e5f: ana}\n");
    let quota = Config::load(&Flags::default(), &env).unwrap().quota;
    assert_eq!((quota.enabled, quota.project), (false, ProjectRule::Env));
    assert_eq!(quota.accounts["0a1b2c3d4e5f"], "ana");
    let layer = Layer {
        quota: Some(QuotaLayer { enabled: Some(true), ..QuotaLayer::default() }),
        ..Layer::default()
    };
    let config = Config::load(&Flags { layer, ..Flags::default() }, &env).unwrap();
    assert!(config.quota.enabled);
    assert_eq!(config.origin("quota.enabled"), Origin::Flag("--quota"));
    for (text, expected) in [
        ("quota: {endpoint: 'http://x.example'}\n", "line 1, quota.endpoint: a token goes out by https"),
        ("quota: {project: 123}\n", "line 1, quota.project: this is a project's number"),
        ("quota: {api_version: a/b}\n", "line 1, quota.api_version: this is no version"),
        ("quota: {enable: true}\n", "line 1, quota.enable: "),
        ("quota: {accounts: {x: ' '}}\n", "quota.accounts ("),
    ] {
        let (_dir, env) = with_file(text);
        let error = Config::load(&Flags::default(), &env).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_currency_has_a_code_and_an_exact_rate() {
    let currency = |text: &str| {
        let (_dir, env) = with_file(text);
        Config::load(&Flags::default(), &env).map(|config| config.currency.map(|c| c.to_string()))
    };
    let read = |text| currency(text).unwrap().unwrap();
    assert_eq!(read("currency: {code: EUR, usd_rate: \"0.92\"}\n"), "1 USD = 0.92 EUR");
    assert_eq!(read("currency: {code: JPY, usd_rate: 151.123456}\n"), "1 USD = 151.123456 JPY");
    assert_eq!(currency("currency:\n").unwrap(), None);
    for (text, expected) in [
        ("currency: {code: euro, usd_rate: 1}\n", "config.yml): `euro` is no currency"),
        ("currency: {code: EUR, usd_rate: 0}\n", "config.yml): `0` cannot be what one US dollar"),
        ("currency: {code: EUR, usd_rate: -1}\n", "currency.usd_rate ("),
        ("currency: {code: EUR, rate: 1}\n", "line 1, currency.rate"),
    ] {
        let error = currency(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_misspelt_variable_is_named() {
    let config = load(&Flags::default(), &[("GEMGAUGE_DBB", "/x"), ("GEMGAUGE_CONFIG", "")]).unwrap();
    assert_eq!(config.unknown_variables, ["GEMGAUGE_DBB"]);
}

#[test]
fn a_value_that_cannot_be_says_where_it_came_from() {
    for (vars, expected) in [
        (
            ("GEMGAUGE_TIMEZONE", "Mars/Olympus"),
            "timezone ($GEMGAUGE_TIMEZONE): `Mars/Olympus` is no time zone",
        ),
        (("GEMGAUGE_STRICT", "maybe"), "strict ($GEMGAUGE_STRICT): `maybe` is neither true nor false"),
        (("GEMGAUGE_CURRENCY_CODE", "EUR"), "currency.usd_rate ($GEMGAUGE_CURRENCY_CODE): say what one"),
        (("GEMGAUGE_CURRENCY_USD_RATE", "1"), "currency.code ($GEMGAUGE_CURRENCY_USD_RATE): say which"),
        (("GEMGAUGE_METRICS_MAX_TUPLES", "0"), "metrics.max_tuples ($GEMGAUGE_METRICS_MAX_TUPLES): 0 would"),
        (("GEMGAUGE_METRICS_MAX_TUPLES", "-1"), "metrics.max_tuples ($GEMGAUGE_METRICS_MAX_TUPLES): `-1`: "),
        (
            ("GEMGAUGE_WEB_LISTEN_ADDRESS", "x"),
            "web.listen_address ($GEMGAUGE_WEB_LISTEN_ADDRESS): `x` is no",
        ),
        (
            ("GEMGAUGE_WEB_WRITE_TOKEN", "s3cret"),
            "web.write_token ($GEMGAUGE_WEB_WRITE_TOKEN): a token has at least 16",
        ),
        (
            ("GEMGAUGE_HOOKS_WEBHOOK_URL", "s3cret"),
            "hooks.webhook.url ($GEMGAUGE_HOOKS_WEBHOOK_URL): this is no address",
        ),
    ] {
        let error = load(&Flags::default(), &[vars]).unwrap_err();
        assert!(error.to_string().starts_with(expected), "{error}");
        assert!(!error.is_usage());
    }
    let layer = Layer { timezone: Some("x".into()), ..Layer::default() };
    assert!(load(&Flags { layer, ..Flags::default() }, &[]).unwrap_err().is_usage());
}

#[test]
fn without_any_place_for_the_ledger_a_flag_is_asked_for() {
    let env = Env::of::<&str, &str>(Path::new("/nowhere"), []);
    let error = Config::load(&Flags::default(), &env).unwrap_err().to_string();
    assert!(error.contains("say --db FILE"), "{error}");
}

#[test]
fn spool_files_are_state_or_stand_beside_the_ledger() {
    let env = Env::of(Path::new("/srv"), [("HOME", "/home/ana"), ("XDG_STATE_HOME", "/state")]);
    assert_eq!(Config::load(&Flags::default(), &env).unwrap().spool, Path::new("/state/gemgauge/spool"));
    let env = Env::of(Path::new("/srv"), [("GEMGAUGE_DB", "l.db"), ("GEMGAUGE_HOME", "/h")]);
    assert_eq!(Config::load(&Flags::default(), &env).unwrap().spool, Path::new("/srv/spool"));
    let (dir, env) = with_file("spool: below/here\n");
    assert_eq!(Config::load(&Flags::default(), &env).unwrap().spool, dir.path().join("below/here"));
    let (_dir, env) = with_file("spool: \"\"\n");
    assert!(Config::load(&Flags::default(), &env).is_err());
}

#[test]
fn v_makes_the_configured_level_louder() {
    let flags = Flags { verbose: 1, ..Flags::default() };
    let config = load(&flags, &[("GEMGAUGE_LOG_LEVEL", "error")]).unwrap();
    assert_eq!((config.log.level, config.origin("log.level")), (Level::Warn, Origin::Flag("-v")));
}
