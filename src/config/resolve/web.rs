//! The keys of `web`.

use std::path::PathBuf;

use super::{Layers, joined};
use crate::config::env::Env;
use crate::config::error::ConfigError;
use crate::config::keys::{self, Key, Origin};
use crate::config::layer::{Layer, TelemetryPath};
use crate::config::{TokenSource, Web, paths};

/// Where `serve` listens unless told otherwise.
const DEFAULT_ADDRESS: &str = "127.0.0.1:10436";

impl Layers<'_> {
    pub(super) fn web(&mut self, env: &Env) -> Result<Web, ConfigError> {
        let key = &keys::LISTEN_ADDRESS;
        let default = || (vec![DEFAULT_ADDRESS.parse().expect("the default is an address")], Origin::Default);
        let (listen, origin) =
            self.pick(key, |l| l.web.as_ref()?.listen_address.clone()).unwrap_or_else(default);
        if listen.is_empty() {
            return Err(ConfigError::value(key.key, origin, "name at least one address to listen on"));
        }
        self.note(key, joined(&listen), origin);
        let telemetry_path = self.value(
            &keys::TELEMETRY_PATH,
            |l| l.web.as_ref()?.telemetry_path.clone(),
            TelemetryPath::default(),
        );
        let key = &keys::ALLOWED_HOSTS;
        let (allowed_hosts, origin) = self
            .pick(key, |l| l.web.as_ref()?.allowed_hosts.clone())
            .unwrap_or((Vec::new(), Origin::Default));
        self.note(key, joined(&allowed_hosts), origin);
        let allow_unauthenticated =
            self.value(&keys::ALLOW_UNAUTHENTICATED, |l| l.web.as_ref()?.allow_unauthenticated, false);
        let config_file =
            self.file_of(&keys::WEB_CONFIG_FILE, env, |l| l.web.as_ref()?.config_file.clone())?;
        let write_token = self.write_token(env)?;
        Ok(Web { listen, telemetry_path, allowed_hosts, allow_unauthenticated, config_file, write_token })
    }

    /// A file that may be named; relative to the working directory.
    fn file_of(
        &mut self,
        key: &Key,
        env: &Env,
        get: impl Fn(&Layer) -> Option<PathBuf>,
    ) -> Result<Option<PathBuf>, ConfigError> {
        let (path, origin) = match self.pick(key, get) {
            Some((path, origin)) if path.as_os_str().is_empty() => {
                return Err(ConfigError::value(key.key, origin, "an empty path is no file"));
            }
            Some((path, origin)) => (Some(paths::absolute(env, &path)), origin),
            None => (None, Origin::Default),
        };
        let shown = path.as_ref().map_or_else(|| "none".to_owned(), |path| path.display().to_string());
        self.note(key, shown, origin);
        Ok(path)
    }

    /// One of the two may say it.
    fn write_token(&mut self, env: &Env) -> Result<Option<TokenSource>, ConfigError> {
        let key = &keys::WRITE_TOKEN;
        let said = self.pick(key, |l| l.web.as_ref()?.write_token.clone());
        let (shown, origin) = match &said {
            Some((_, origin)) => ("…", origin.clone()),
            None => ("none", Origin::Default),
        };
        self.note(key, shown, origin.clone());
        let file =
            self.file_of(&keys::WRITE_TOKEN_FILE, env, |l| l.web.as_ref()?.write_token_file.clone())?;
        match (said, file) {
            (Some(_), Some(_)) => Err(ConfigError::value(
                key.key,
                origin,
                "web.write_token_file says a token too: keep one of them",
            )),
            (Some((token, _)), None) => Ok(Some(TokenSource::Said(token))),
            (None, file) => Ok(file.map(TokenSource::File)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::{Config, Flags};

    fn load(flags: &Flags, vars: &[(&str, &str)]) -> Result<Config, ConfigError> {
        let vars = [("HOME", "/nowhere/ana")].into_iter().chain(vars.iter().copied());
        Config::load(flags, &Env::of(Path::new("/nowhere/srv"), vars))
    }

    #[test]
    fn an_open_listener_is_refused_unless_asked_for_by_name() {
        let vars = [("GEMGAUGE_WEB_LISTEN_ADDRESS", "127.0.0.1:1,0.0.0.0:10436")];
        let error =
            load(&Flags::default(), &vars).unwrap().web.listen_addresses(false).unwrap_err().to_string();
        assert!(error.starts_with("0.0.0.0:10436 can be reached from other machines"), "{error}");
        assert!(error.contains("--web.allow-unauthenticated"), "{error}");
        assert_eq!(load(&Flags::default(), &vars).unwrap().web.listen_addresses(true).unwrap().len(), 2);
        let vars = [vars[0], ("GEMGAUGE_WEB_ALLOW_UNAUTHENTICATED", "true")];
        assert_eq!(load(&Flags::default(), &vars).unwrap().web.listen_addresses(false).unwrap().len(), 2);
    }

    #[test]
    fn r72_a_token_is_said_once() {
        let vars = [("GEMGAUGE_WEB_WRITE_TOKEN", "s3cret-s3cret-s3cret")];
        let config = load(&Flags::default(), &vars).unwrap();
        assert_eq!(config.web.write_token.clone().unwrap().token().unwrap().secret(), vars[0].1);
        assert!(!format!("{config:?}").contains("s3cret"), "what is secret is shown nowhere");
        let vars = [vars[0], ("GEMGAUGE_WEB_WRITE_TOKEN_FILE", "token")];
        let error = load(&Flags::default(), &vars).unwrap_err().to_string();
        assert!(error.contains("keep one of them"), "{error}");
        let config = load(&Flags::default(), &vars[1..]).unwrap();
        assert_eq!(config.web.write_token, Some(TokenSource::File("/nowhere/srv/token".into())));
    }
}
