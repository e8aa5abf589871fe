//! The keychain of the operating system, asked by the system's own program
//! (quota Q4). Only an entry of Gemini CLI's Google sign-in is ever asked for.

use std::io::Read as _;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use zeroize::Zeroizing;

use super::encrypted::{ACCOUNT, SERVICE};
use crate::config::Env;

/// How long the CLI waits for a keychain, too.
const PATIENCE: Duration = Duration::from_secs(2);
const STEP: Duration = Duration::from_millis(20);

/// No entry is longer.
const LIMIT: u64 = 64 << 10;

/// What a keychain has.
pub enum Kept {
    /// The entry, as the CLI wrote it.
    Entry(Zeroizing<String>),
    Nothing,
    /// There is no keychain that works: the CLI uses its encrypted file then.
    NoKeychain,
    /// There is one, and it could not be read; why, after "the keychain".
    Failed(&'static str),
}

/// A place that keeps the sign-in.
pub trait Keychain: Send + Sync {
    /// Looks the entry up. `sleep` waits for moments.
    fn look_up(&self, sleep: &dyn Fn(Duration)) -> Kept;
}

/// For machines, and tests, that have none.
pub struct NoKeychain;

impl Keychain for NoKeychain {
    fn look_up(&self, _: &dyn Fn(Duration)) -> Kept {
        Kept::NoKeychain
    }
}

/// `secret-tool` for the Secret Service, `security` on macOS. Neither is looked
/// for on a search path: what it prints is a secret.
pub struct SystemKeychain {
    program: PathBuf,
    args: &'static [&'static str],
    /// What the program needs of the environment.
    env: Vec<(&'static str, std::ffi::OsString)>,
    /// Whether the system can have a keychain at all.
    reachable: bool,
}

const SECRET_TOOL: &[&str] = &["lookup", "service", SERVICE, "account", ACCOUNT];
const SECURITY: &[&str] = &["find-generic-password", "-s", SERVICE, "-a", ACCOUNT, "-w"];

impl SystemKeychain {
    #[must_use]
    pub fn new(env: &Env) -> Self {
        let (program, args) = match std::env::consts::OS {
            "macos" => ("/usr/bin/security", SECURITY),
            _ => ("/usr/bin/secret-tool", SECRET_TOOL),
        };
        let names = ["DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "HOME"];
        let bus = || {
            let socket = env.var("XDG_RUNTIME_DIR").map(|dir| PathBuf::from(dir).join("bus"));
            env.var("DBUS_SESSION_BUS_ADDRESS").is_some() || socket.is_some_and(|socket| socket.exists())
        };
        Self {
            program: program.into(),
            args,
            env: names.into_iter().filter_map(|name| Some((name, env.var(name)?.to_owned()))).collect(),
            reachable: cfg!(windows) || cfg!(target_os = "macos") || bus(),
        }
    }

    fn run(
        &self,
        sleep: &dyn Fn(Duration),
    ) -> std::io::Result<Option<(ExitStatus, Zeroizing<String>, String)>> {
        let mut child = Command::new(&self.program)
            .args(self.args)
            .env_clear()
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        // What fits an entry fits a pipe, so it need not be read meanwhile.
        for _ in 0..PATIENCE.as_millis() / STEP.as_millis() {
            if let Some(status) = child.try_wait()? {
                let mut bytes = Zeroizing::new(Vec::with_capacity(LIMIT as usize));
                child.stdout.take().expect("it is piped").take(LIMIT).read_to_end(&mut bytes)?;
                let mut said = Vec::new();
                child.stderr.take().expect("it is piped").take(LIMIT).read_to_end(&mut said)?;
                let entry = str::from_utf8(&bytes).map_or("", str::trim_end).to_owned();
                let said = String::from_utf8_lossy(&said).into_owned();
                return Ok(Some((status, Zeroizing::new(entry), said)));
            }
            sleep(STEP);
        }
        child.kill()?;
        child.wait()?;
        Ok(None)
    }
}

impl Keychain for SystemKeychain {
    fn look_up(&self, sleep: &dyn Fn(Duration)) -> Kept {
        if cfg!(windows) {
            return Kept::Failed("of Windows is not read by this version");
        }
        if !self.reachable {
            return Kept::NoKeychain;
        }
        let (status, entry, said) = match self.run(sleep) {
            Ok(Some(ran)) => ran,
            Ok(None) => return Kept::Failed("gave no answer: it may be locked"),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Kept::Failed(
                    "can be asked with secret-tool only, which is not installed (libsecret-tools)",
                );
            }
            Err(_) => return Kept::Failed("could not be asked"),
        };
        match status.code() {
            Some(0) if !entry.is_empty() => Kept::Entry(entry),
            // secret-tool finds nothing without a word; security has a code for it.
            Some(0 | 1) if said.trim().is_empty() => Kept::Nothing,
            Some(44) => Kept::Nothing,
            _ if said.contains("org.freedesktop.secrets was not provided") => Kept::NoKeychain,
            _ => Kept::Failed("could not be read: it may be locked"),
        }
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use super::*;

    /// A keychain whose program is this shell script.
    fn asked(script: &str) -> String {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("tool");
        std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
        let keychain = SystemKeychain { program, args: SECRET_TOOL, env: Vec::new(), reachable: true };
        shown(&keychain, &|wait| std::thread::sleep(wait))
    }

    fn shown(keychain: &SystemKeychain, sleep: &dyn Fn(Duration)) -> String {
        match keychain.look_up(sleep) {
            Kept::Entry(entry) => format!("entry {}", *entry),
            Kept::Nothing => "nothing".into(),
            Kept::NoKeychain => "no keychain".into(),
            Kept::Failed(why) => format!("failed: {why}"),
        }
    }

    #[test]
    fn q4_the_program_of_the_system_says_what_the_keychain_has() {
        assert_eq!(
            asked(r#"echo "$@""#),
            "entry lookup service gemini-cli-oauth account main-account",
            "nothing else is asked for"
        );
        assert_eq!(asked("exit 1"), "nothing");
        assert_eq!(asked("echo 'security: not found' >&2; exit 44"), "nothing");
        let absent = "secret-tool: The name org.freedesktop.secrets was not provided by any .service files";
        assert_eq!(asked(&format!("echo '{absent}' >&2; exit 1")), "no keychain");
        assert_eq!(asked("echo locked >&2; exit 1"), "failed: could not be read: it may be locked");
    }

    #[test]
    fn q4_a_keychain_that_does_not_answer_is_not_waited_for() {
        let waits = Cell::new(0);
        let keychain = SystemKeychain {
            program: "/bin/sleep".into(),
            args: &["1000"],
            env: Vec::new(),
            reachable: true,
        };
        let said = shown(&keychain, &|_| waits.set(waits.get() + 1));
        assert_eq!((said.as_str(), waits.get()), ("failed: gave no answer: it may be locked", 100));
    }

    #[test]
    fn q4_without_its_program_a_keychain_is_unreadable_and_without_a_bus_there_is_none() {
        let env = Env::of(Path::new("/"), [("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere")]);
        let mut keychain = SystemKeychain::new(&env);
        keychain.program = "/nowhere/secret-tool".into();
        assert!(shown(&keychain, &|_| ()).contains("libsecret-tools"));
        if cfg!(target_os = "linux") {
            let keychain = SystemKeychain::new(&Env::of::<&str, &str>(Path::new("/"), []));
            assert_eq!(shown(&keychain, &|_| ()), "no keychain");
        }
    }
}
