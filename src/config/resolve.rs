//! Puts the layers together: defaults < file < environment < flags.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::env::Env;
use super::error::ConfigError;
use super::hooks::{Hooks, Webhook};
use super::keys::{self, Key, Origin, Setting};
use super::layer::{Flags, Layer, Level, LogFormat};
use super::{Config, Journals, Log, Metrics, budgets, file, homes, paths, prices};
use crate::ledger::money::{Currency, PriceTable};

mod web;

pub(super) fn resolve(flags: &Flags, env: &Env) -> Result<Config, ConfigError> {
    let (path, file) = read_file(flags, env)?;
    resolve_with(flags, env, path, file)
}

/// The same, with what the file says; none: there is no file.
pub(super) fn resolve_with(
    flags: &Flags,
    env: &Env,
    path: Option<PathBuf>,
    file: Layer,
) -> Result<Config, ConfigError> {
    let unknown_variables = unknown_variables(env);
    let mut layers =
        Layers { flags: &flags.layer, env: Layer::of_env(env)?, file, path, settings: Vec::new() };
    // In the order of `keys::KEYS`: the settings are noted as they are taken.
    let homes::Resolved { homes, chosen } = layers.homes(flags, env)?;
    let db = layers.db(env)?;
    let spool = layers.spool(env, &db)?;
    let timezone = layers.timezone()?;
    let prices = Arc::new(layers.prices(env)?);
    let currency = layers.currency()?;
    let strict = layers.value(&keys::STRICT, |l| l.strict, false);
    let journals = Journals {
        max_file_bytes: layers.at_least_1(
            &keys::MAX_FILE_BYTES,
            |l| l.journals.as_ref()?.max_file_bytes,
            64 << 20,
        )?,
        max_line_bytes: layers.at_least_1(
            &keys::MAX_LINE_BYTES,
            |l| l.journals.as_ref()?.max_line_bytes,
            10 << 20,
        )?,
        rescan: layers.seconds(&keys::RESCAN_SECONDS, |l| l.journals.as_ref()?.rescan_seconds, 2)?,
        idle_rescan: layers.seconds(
            &keys::IDLE_RESCAN_SECONDS,
            |l| l.journals.as_ref()?.idle_rescan_seconds,
            30,
        )?,
        watch: layers.value(&keys::WATCH, |l| l.journals.as_ref()?.watch, true),
    };
    let max_sessions = layers.value(&keys::MAX_SESSIONS, |l| l.metrics.as_ref()?.max_sessions, 20);
    let max_tuples = layers.at_least_1(&keys::MAX_TUPLES, |l| l.metrics.as_ref()?.max_tuples, 2_000)?;
    let web = layers.web(env)?;
    let budgets = budgets::budgets(layers.file.budgets.take().unwrap_or_default());
    let hooks = layers.hooks()?;
    let log = layers.log(flags.verbose);
    let Layers { path: file, settings, .. } = layers;
    let metrics = Metrics { max_tuples, max_sessions };
    Ok(Config {
        homes,
        chosen,
        db,
        spool,
        timezone,
        prices,
        currency,
        strict,
        journals,
        metrics,
        web,
        budgets,
        hooks,
        log,
        file,
        settings,
        unknown_variables,
    })
}

/// The file named by `--config` or its variable must be there; the one at the
/// usual place may be missing.
fn read_file(flags: &Flags, env: &Env) -> Result<(Option<PathBuf>, Layer), ConfigError> {
    let named = flags.config.as_deref().or_else(|| env.var(keys::CONFIG_ENV).map(Path::new));
    if let Some(path) = named {
        let path = paths::absolute(env, path);
        return file::read(&path).map(|layer| (Some(path), layer));
    }
    let usual = paths::default_config(env);
    match usual.map(|path| (file::read(&path), path)) {
        None => Ok((None, Layer::default())),
        Some((Ok(layer), path)) => Ok((Some(path), layer)),
        Some((Err(ConfigError::Read { error, .. }), _)) if error.kind() == std::io::ErrorKind::NotFound => {
            Ok((None, Layer::default()))
        }
        Some((Err(error), _)) => Err(error),
    }
}

fn unknown_variables(env: &Env) -> Vec<String> {
    let known = |name: &str| name == keys::CONFIG_ENV || keys::KEYS.iter().any(|key| key.env == name);
    env.names_with("GEMGAUGE_").filter(|name| !known(name)).map(str::to_owned).collect()
}

/// The layers, strongest first, and what was taken from them so far.
struct Layers<'f> {
    flags: &'f Layer,
    env: Layer,
    file: Layer,
    path: Option<PathBuf>,
    settings: Vec<Setting>,
}

impl Layers<'_> {
    /// The strongest value of a key and where it is from.
    fn pick<T>(&self, key: &Key, get: impl Fn(&Layer) -> Option<T>) -> Option<(T, Origin)> {
        let flag =
            || get(self.flags).map(|value| (value, Origin::Flag(key.flag.unwrap_or("the command line"))));
        let env = || get(&self.env).map(|value| (value, Origin::Env(key.env)));
        let file = || get(&self.file).map(|value| (value, self.file_origin()));
        flag().or_else(env).or_else(file)
    }

    fn file_origin(&self) -> Origin {
        self.path.clone().map_or(Origin::Default, Origin::File)
    }

    fn note(&mut self, key: &Key, value: impl Display, origin: Origin) {
        self.settings.push(Setting { key: key.key, value: value.to_string(), origin });
    }

    /// The value of a key that needs no check beyond its type.
    fn value<T: Display>(&mut self, key: &Key, get: impl Fn(&Layer) -> Option<T>, default: T) -> T {
        let (value, origin) = self.pick(key, get).unwrap_or((default, Origin::Default));
        self.note(key, &value, origin);
        value
    }

    fn at_least_1(
        &mut self,
        key: &Key,
        get: impl Fn(&Layer) -> Option<u64>,
        default: u64,
    ) -> Result<u64, ConfigError> {
        let (value, origin) = self.pick(key, get).unwrap_or((default, Origin::Default));
        if value == 0 {
            return Err(ConfigError::value(key.key, origin, "0 would switch everything off: say at least 1"));
        }
        self.note(key, value, origin);
        Ok(value)
    }

    fn seconds(
        &mut self,
        key: &Key,
        get: impl Fn(&Layer) -> Option<u64>,
        default: u64,
    ) -> Result<Duration, ConfigError> {
        self.at_least_1(key, get, default).map(Duration::from_secs)
    }

    fn homes(&mut self, flags: &Flags, env: &Env) -> Result<homes::Resolved, ConfigError> {
        let key = &keys::HOMES;
        let from_env: Vec<PathBuf> =
            env.var(key.env).map(|v| std::env::split_paths(v).collect()).unwrap_or_default();
        let (choices, chosen_by) = match flags.homes.as_slice() {
            [] => (from_env.as_slice(), Origin::Env(key.env)),
            homes => (homes, Origin::Flag("--home")),
        };
        let configured = self.file.homes.as_deref();
        let configured_by = configured.map_or(Origin::Default, |_| self.file_origin());
        let resolved = homes::resolve(env, configured, &configured_by, choices, &chosen_by)?;
        let shown: Vec<String> =
            resolved.homes.iter().map(|home| format!("{} ({})", home.path.display(), home.name)).collect();
        self.note(key, shown.join(", "), if choices.is_empty() { configured_by } else { chosen_by });
        Ok(resolved)
    }

    fn db(&mut self, env: &Env) -> Result<PathBuf, ConfigError> {
        let (path, origin) = match self.pick(&keys::DB, |l| l.db.clone()) {
            Some((path, origin)) if path.as_os_str().is_empty() => {
                return Err(ConfigError::value(
                    keys::DB.key,
                    origin,
                    "an empty path is no place for a ledger",
                ));
            }
            Some((path, origin)) => (paths::absolute(env, &path), origin),
            None => (paths::default_ledger(env).ok_or(ConfigError::NoPlaceForLedger)?, Origin::Default),
        };
        self.note(&keys::DB, path.display(), origin);
        Ok(path)
    }

    /// Beside the ledger, where the environment names no place for state.
    fn spool(&mut self, env: &Env, db: &Path) -> Result<PathBuf, ConfigError> {
        let key = &keys::SPOOL;
        let (path, origin) = match self.pick(key, |l| l.spool.clone()) {
            Some((path, origin)) if path.as_os_str().is_empty() => {
                return Err(ConfigError::value(key.key, origin, "an empty path is no place for spool files"));
            }
            Some((path, origin)) => (paths::absolute(env, &path), origin),
            None => {
                (paths::default_spool(env).unwrap_or_else(|| db.with_file_name("spool")), Origin::Default)
            }
        };
        self.note(key, path.display(), origin);
        Ok(path)
    }

    fn timezone(&mut self) -> Result<Option<String>, ConfigError> {
        let key = &keys::TIMEZONE;
        let Some((name, origin)) = self.pick(key, |l| l.timezone.clone()) else {
            self.note(key, "local", Origin::Default);
            return Ok(None);
        };
        if jiff::tz::TimeZone::get(&name).is_err() {
            let message =
                format!("`{name}` is no time zone: write an IANA name such as Europe/Berlin or UTC");
            return Err(ConfigError::value(key.key, origin, message));
        }
        self.note(key, &name, origin);
        Ok(Some(name))
    }

    fn prices(&mut self, env: &Env) -> Result<PriceTable, ConfigError> {
        let key = &keys::PRICES_FILE;
        let (path, origin) = match self.pick(key, |l| l.prices.as_ref()?.file.clone()) {
            Some((path, origin)) if path.as_os_str().is_empty() => {
                return Err(ConfigError::value(key.key, origin, "an empty path is no price file"));
            }
            Some((path, origin)) => (Some(paths::absolute(env, &path)), origin),
            None => (None, Origin::Default),
        };
        let shown = path.as_ref().map_or_else(|| "built in".to_owned(), |path| path.display().to_string());
        self.note(key, shown, origin);
        prices::load(path.as_deref())
    }

    /// Neither means anything without the other.
    fn currency(&mut self) -> Result<Option<Currency>, ConfigError> {
        let (code_key, rate_key) = (&keys::CURRENCY_CODE, &keys::CURRENCY_USD_RATE);
        let code = self.pick(code_key, |l| l.currency.as_ref()?.code.clone());
        let rate = self.pick(rate_key, |l| l.currency.as_ref()?.usd_rate.clone());
        let (code, rate) = match (code, rate) {
            (Some(code), Some(rate)) => (code, rate),
            (Some((code, origin)), None) => {
                let message =
                    format!("say what one US dollar is in {code}: rates are never looked up anywhere");
                return Err(ConfigError::value(rate_key.key, origin, message));
            }
            (None, Some((_, origin))) => {
                return Err(ConfigError::value(code_key.key, origin, "say which currency the rate is of"));
            }
            (None, None) => {
                self.note(code_key, "USD", Origin::Default);
                self.note(rate_key, "1", Origin::Default);
                return Ok(None);
            }
        };
        if let Err(error) = Currency::code_of(&code.0) {
            return Err(ConfigError::value(code_key.key, code.1, error));
        }
        let currency = Currency::new(&code.0, &rate.0);
        let currency = currency.map_err(|error| ConfigError::value(rate_key.key, rate.1.clone(), error))?;
        self.note(code_key, code.0, code.1);
        self.note(rate_key, rate.0, rate.1);
        Ok(Some(currency))
    }

    fn hooks(&mut self) -> Result<Hooks, ConfigError> {
        let key = &keys::WEBHOOK_URL;
        let url = self.pick(key, |l| l.hooks.as_ref()?.webhook.as_ref()?.url.clone());
        match &url {
            Some((url, origin)) => self.note(key, url, origin.clone()),
            None => self.note(key, "none", Origin::Default),
        }
        let timeout = self.seconds(
            &keys::WEBHOOK_TIMEOUT,
            |l| l.hooks.as_ref()?.webhook.as_ref()?.timeout_seconds,
            10,
        )?;
        let retries = self.value(&keys::WEBHOOK_RETRIES, |l| l.hooks.as_ref()?.webhook.as_ref()?.retries, 5);
        let webhook = url.map(|(url, _)| Webhook { url, timeout, retries });
        Ok(Hooks { webhook, command: self.file.hooks.take().and_then(|hooks| hooks.command) })
    }

    /// `-v` makes the configured level louder by a step each.
    fn log(&mut self, verbose: u8) -> Log {
        let format = self.value(&keys::LOG_FORMAT, |l| l.log.as_ref()?.format, LogFormat::default());
        let (level, origin) = self
            .pick(&keys::LOG_LEVEL, |l| l.log.as_ref()?.level)
            .unwrap_or((Level::default(), Origin::Default));
        let origin = if verbose > 0 { Origin::Flag("-v") } else { origin };
        let level = level.louder(verbose);
        self.note(&keys::LOG_LEVEL, level, origin);
        Log { format, level }
    }
}

fn joined(items: &[impl Display]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
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
        assert_eq!(
            (config.journals.max_file_bytes, config.journals.max_line_bytes),
            (67_108_864, 10_485_760)
        );
        assert_eq!((config.journals.rescan.as_secs(), config.journals.idle_rescan.as_secs()), (2, 30));
        assert!(config.journals.watch);
        assert_eq!(config.metrics.max_tuples, 2_000);
        assert_eq!(config.web.listen_addresses(false).unwrap()[0].to_string(), "127.0.0.1:10436");
        assert_eq!(config.web.telemetry_path.as_str(), "/metrics");
        assert_eq!((config.log.format, config.log.level), (LogFormat::Text, Level::Info));
        let keys: Vec<_> = config.settings.iter().map(|setting| setting.key).collect();
        assert_eq!(keys, keys::KEYS.iter().map(|key| key.key).collect::<Vec<_>>());
        assert!(config.settings.iter().all(|setting| setting.origin == Origin::Default));
    }

    #[test]
    fn flags_beat_the_environment_beats_the_file() {
        let (dir, env) =
            with_file("db: file.db\ntimezone: Asia/Tokyo\nstrict: true\nmetrics: {max_tuples: 7}\n");
        let file = Origin::File(dir.path().join(".config/gemgauge/config.yml"));
        let config = Config::load(&Flags::default(), &env).unwrap();
        assert_eq!(config.db, dir.path().join("file.db"));
        assert_eq!((config.metrics.max_tuples, config.origin("metrics.max_tuples")), (7, file.clone()));

        let vars =
            [("HOME", dir.path().to_str().unwrap()), ("GEMGAUGE_DB", "env.db"), ("GEMGAUGE_STRICT", "no")];
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
                ("GEMGAUGE_HOOKS_WEBHOOK_URL", "https://hooks.example/s3cret"),
                ("GEMGAUGE_HOOKS_WEBHOOK_TIMEOUT_SECONDS", "6"),
                ("GEMGAUGE_HOOKS_WEBHOOK_RETRIES", "0"),
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
        assert_eq!(config.web.config_file.as_deref(), Some(Path::new("/web.yml")));
        let by_variable = |s: &Setting| s.key == "web.write_token_file" || matches!(s.origin, Origin::Env(_));
        assert!(config.settings.iter().all(by_variable), "one token says it all");
        assert!(config.unknown_variables.is_empty());
        assert!(!format!("{config:?}").contains("s3cret"), "what is secret is shown nowhere");
        let webhook = config.hooks.webhook.unwrap();
        assert_eq!((webhook.timeout.as_secs(), webhook.retries), (6, 0));
    }

    #[test]
    fn a_price_file_is_read_when_the_configuration_is() {
        let (dir, env) = with_file("prices:\n  file: own.yml\n");
        let error = Config::load(&Flags::default(), &env).unwrap_err();
        assert!(
            matches!(&error, ConfigError::ReadPrices { path, .. } if *path == dir.path().join("own.yml"))
        );
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
            (
                ("GEMGAUGE_METRICS_MAX_TUPLES", "0"),
                "metrics.max_tuples ($GEMGAUGE_METRICS_MAX_TUPLES): 0 would",
            ),
            (
                ("GEMGAUGE_METRICS_MAX_TUPLES", "-1"),
                "metrics.max_tuples ($GEMGAUGE_METRICS_MAX_TUPLES): `-1`: ",
            ),
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
}
