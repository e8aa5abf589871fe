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
use super::quota::{ProjectRule, Quota};
use super::{Config, Journals, Log, Metrics, Telemetry, budgets, file, homes, paths, prices};
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
    let max_tuples = layers.at_least_1(&keys::MAX_TUPLES, |l| l.metrics.as_ref()?.max_tuples, 2_000)?;
    let max_sessions = layers.value(&keys::MAX_SESSIONS, |l| l.metrics.as_ref()?.max_sessions, 20);
    let web = layers.web(env)?;
    let telemetry = layers.telemetry(env)?;
    let budgets = budgets::budgets(layers.file.budgets.take().unwrap_or_default());
    let hooks = layers.hooks()?;
    let quota = layers.quota()?;
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
        telemetry,
        budgets,
        hooks,
        quota,
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

    fn telemetry(&mut self, env: &Env) -> Result<Telemetry, ConfigError> {
        let key = &keys::TELEMETRY_LISTEN_ADDRESS;
        let (listen, origin) = self
            .pick(key, |l| l.telemetry.as_ref()?.listen_address.clone())
            .unwrap_or((Vec::new(), Origin::Default));
        self.note(key, joined(&listen), origin);
        let key = &keys::TELEMETRY_OUTFILES;
        let (outfiles, origin) = self
            .pick(key, |l| l.telemetry.as_ref()?.outfiles.clone())
            .unwrap_or((Vec::new(), Origin::Default));
        if outfiles.iter().any(|path| path.as_os_str().is_empty()) {
            return Err(ConfigError::value(key.key, origin, "an empty path is no file"));
        }
        let outfiles: Vec<PathBuf> = outfiles.iter().map(|path| paths::absolute(env, path)).collect();
        self.note(key, joined(&outfiles.iter().map(|path| path.display()).collect::<Vec<_>>()), origin);
        Ok(Telemetry { listen, outfiles })
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

    fn quota(&mut self) -> Result<Quota, ConfigError> {
        let enabled = self.value(&keys::QUOTA_ENABLED, |l| l.quota.as_ref()?.enabled, false);
        let project =
            self.value(&keys::QUOTA_PROJECT, |l| l.quota.as_ref()?.project.clone(), ProjectRule::default());
        let endpoint = self.chosen(&keys::QUOTA_ENDPOINT, |l| l.quota.as_ref()?.endpoint.clone());
        let api_version = self.chosen(&keys::QUOTA_API_VERSION, |l| l.quota.as_ref()?.api_version.clone());
        let accounts = self.file.quota.as_mut().and_then(|quota| quota.accounts.take()).unwrap_or_default();
        for (hash, name) in &accounts {
            if name.trim().is_empty() || name.contains(char::is_control) {
                let message = format!("the account {hash} has no usable name");
                return Err(ConfigError::value("quota.accounts", self.file_origin(), message));
            }
        }
        Ok(Quota { enabled, project, endpoint, api_version, accounts })
    }

    /// A value that is Gemini CLI's own unless somebody says another.
    fn chosen<T: Display>(&mut self, key: &Key, get: impl Fn(&Layer) -> Option<T>) -> Option<T> {
        let Some((value, origin)) = self.pick(key, get) else {
            self.note(key, "as Gemini CLI", Origin::Default);
            return None;
        };
        self.note(key, &value, origin);
        Some(value)
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
mod tests;
