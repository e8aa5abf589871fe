//! Which store holds the sign-in, in Gemini CLI's own order (quota Q4). The
//! flags decide, not which store has something: a store that cannot be opened
//! is a state, and no other is looked at instead.

use std::path::Path;

use super::account::Identity;
use super::encrypted::{self, parse_entry};
use super::files::{self, Unreadable};
use super::keychain::Kept;
use super::outside::Outside;
use super::plain::{self, Stored};
use super::token::Token;
use crate::config::{Launch, user_name};

const PLAIN: &str = "oauth_creds.json";
const ENCRYPTED: &str = "gemini-credentials.json";
const ACCOUNTS: &str = "google_accounts.json";

/// The files whose change may mean another sign-in.
pub(super) const FILES: [&str; 3] = [PLAIN, ENCRYPTED, ACCOUNTS];

/// A sign-in that was found.
pub(super) struct Found {
    pub(super) stored: Stored,
    /// Whether its change shows in [`FILES`].
    pub(super) watched: bool,
}

/// A store that could not be opened, as a sentence without what is in it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Shut {
    pub(super) why: String,
    pub(super) watched: bool,
}

/// The sign-in of the home whose `.gemini` is `root`; `None`: there is none.
pub(super) fn find(root: &Path, launch: &Launch<'_>, outside: &Outside) -> Result<Option<Found>, Shut> {
    if let Some(token) = launch.process_var("GOOGLE_CLOUD_ACCESS_TOKEN")
        && launch.var("GOOGLE_GENAI_USE_GCA").is_some()
    {
        let stored =
            Stored { token: Some(Token::new(token)), expires_at: None, renewable: false, identity: None };
        return Ok(Some(Found { stored, watched: true }));
    }
    let is_true = |name| launch.var(name) == Some("true");
    if is_true("GEMINI_FORCE_ENCRYPTED_FILE_STORAGE") {
        let kept = match is_true("GEMINI_FORCE_FILE_STORAGE") {
            true => Kept::NoKeychain,
            false => outside.keychain.look_up(&*outside.sleep),
        };
        let found = match kept {
            Kept::Entry(entry) => {
                let parsed = parse_entry(&entry, (outside.now)());
                let broken = || shut_keychain("holds an entry that Gemini CLI did not write");
                parsed.ok_or_else(broken)?.map(|stored| Found { stored, watched: false })
            }
            Kept::Nothing => None,
            Kept::NoKeychain => encrypted(root, outside)?,
            Kept::Failed(why) => return Err(shut_keychain(why)),
        };
        if found.is_some() {
            return Ok(found);
        }
    }
    plain(root, outside)
}

/// The account as `google_accounts.json` names it: for stores that do not.
pub(super) fn last_account(root: &Path, outside: &Outside) -> Option<Identity> {
    let read =
        files::read(root, ACCOUNTS, &*outside.sleep, |content| Some(Identity::of_accounts(&content.text)));
    read.ok().flatten().flatten()
}

fn plain(root: &Path, outside: &Outside) -> Result<Option<Found>, Shut> {
    let read = files::read(root, PLAIN, &*outside.sleep, |content| plain::parse(&content.text));
    let stored = read.map_err(|why| shut_file(PLAIN, why))?;
    Ok(stored.map(|stored| Found { stored, watched: true }))
}

fn encrypted(root: &Path, outside: &Outside) -> Result<Option<Found>, Shut> {
    let read = files::read(root, ENCRYPTED, &*outside.sleep, |content| {
        let entry = encrypted::open(&content.text, &outside.host, &users(content.owner, outside))?;
        match entry {
            Some(entry) => parse_entry(&entry, (outside.now)()),
            None => Some(None),
        }
    });
    let stored = read.map_err(|why| match why {
        Unreadable::Broken => Shut {
            why: format!("{ENCRYPTED} does not open: it is damaged, or another machine or user wrote it"),
            watched: true,
        },
        why => shut_file(ENCRYPTED, why),
    })?;
    Ok(stored.flatten().map(|stored| Found { stored, watched: true }))
}

/// Whose key may fit: the file's owner's, then this user's.
fn users(owner: Option<u32>, outside: &Outside) -> Vec<String> {
    #[cfg(unix)]
    let own = Some(rustix::process::getuid().as_raw());
    #[cfg(not(unix))]
    let own = None;
    let named = ["USER", "LOGNAME", "USERNAME"].into_iter();
    let named = named.filter_map(|name| Some(outside.env.var(name)?.to_str()?.to_owned()));
    let mut users: Vec<String> = Vec::new();
    for user in owner.into_iter().chain(own).filter_map(user_name).chain(named) {
        if !users.contains(&user) {
            users.push(user);
        }
    }
    users
}

fn shut_file(name: &str, why: Unreadable) -> Shut {
    Shut { why: format!("{name} {}", why.why()), watched: true }
}

fn shut_keychain(why: &str) -> Shut {
    Shut { why: format!("the keychain {why}"), watched: false }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;

    use zeroize::Zeroizing;

    use super::*;
    use crate::config::Env;
    use crate::sources::quota::keychain::{Keychain, NoKeychain};

    const NOW: i64 = 1_796_052_283_547;
    const FLAG: (&str, &str) = ("GEMINI_FORCE_ENCRYPTED_FILE_STORAGE", "true");
    const FILE: (&str, &str) = ("GEMINI_FORCE_FILE_STORAGE", "true");

    struct Fixed(Option<Result<&'static str, &'static str>>);

    impl Keychain for Fixed {
        fn look_up(&self, _: &dyn Fn(std::time::Duration)) -> Kept {
            match self.0 {
                Some(Ok(entry)) => Kept::Entry(Zeroizing::new(entry.to_owned())),
                Some(Err(why)) => Kept::Failed(why),
                None => Kept::Nothing,
            }
        }
    }

    const ENTRY: &str = r#"{"token":{"accessToken":"of-keychain","expiresAt":1896052283547}}"#;

    /// A home on the machine that the vectors were written on.
    struct Case {
        root: tempfile::TempDir,
        keychain: Arc<dyn Keychain>,
    }

    impl Case {
        fn new() -> Self {
            Self { root: tempfile::tempdir().unwrap(), keychain: Arc::new(NoKeychain) }
        }

        fn plain(self, text: &str) -> Self {
            fs::write(self.root.path().join(PLAIN), text).unwrap();
            self
        }

        fn encrypted(self, vector: &str) -> Self {
            let vectors: serde_json::Value =
                serde_json::from_str(include_str!("../../../fixtures/quota/vectors.json")).unwrap();
            let text = vectors.pointer(vector).unwrap().as_str().unwrap();
            fs::write(self.root.path().join(ENCRYPTED), text).unwrap();
            self
        }

        fn keychain(mut self, keychain: Fixed) -> Self {
            self.keychain = Arc::new(keychain);
            self
        }

        /// The token that is found, `-` for none, or why not.
        fn find(&self, vars: &[(&str, &str)]) -> String {
            let vars = vars.iter().copied().chain([("USER", "dev")]);
            let mut outside = Outside::of_system(Env::of(self.root.path(), vars), || NOW);
            outside.keychain = self.keychain.clone();
            outside.host = "lab-host".into();
            outside.sleep = Arc::new(|_| ());
            let launch = Launch::of_home(self.root.path(), &outside.env);
            match find(self.root.path(), &launch, &outside) {
                Ok(Some(found)) => {
                    found.stored.token.map_or("(renewable)".into(), |token| token.expose().to_owned())
                }
                Ok(None) => "-".into(),
                Err(shut) => shut.why,
            }
        }
    }

    const SIGNED_IN: &str = r#"{"access_token":"of-plain","refresh_token":"r"}"#;
    const OF_FILE: &str = "ya29.FAKE-access-token";

    #[test]
    fn q4_the_flag_decides_and_not_which_file_exists() {
        let both = || Case::new().plain(SIGNED_IN).encrypted("/file_iv12");
        assert_eq!(both().find(&[]), "of-plain");
        assert_eq!(both().find(&[FILE]), "of-plain", "this one alone moves nothing");
        assert_eq!(both().find(&[FLAG]), OF_FILE);
        assert_eq!(both().find(&[(FLAG.0, "1")]), "of-plain", "it must be exactly `true`");
        assert_eq!(Case::new().encrypted("/file_iv12").find(&[]), "-");
        assert_eq!(
            Case::new().plain(SIGNED_IN).find(&[FLAG]),
            "of-plain",
            "imported by the CLI's next start"
        );
        assert_eq!(Case::new().encrypted("/file_iv16_before_0_54").find(&[FLAG]), OF_FILE);
        assert_eq!(Case::new().find(&[FLAG]), "-");
    }

    #[test]
    fn q4_a_keychain_that_works_comes_before_the_encrypted_file() {
        let keychain = |kept| Case::new().plain(SIGNED_IN).encrypted("/file_iv12").keychain(Fixed(kept));
        assert_eq!(keychain(Some(Ok(ENTRY))).find(&[FLAG]), "of-keychain");
        assert_eq!(keychain(Some(Ok(ENTRY))).find(&[FLAG, FILE]), OF_FILE);
        assert_eq!(keychain(Some(Ok(ENTRY))).find(&[]), "of-plain");
        assert_eq!(keychain(None).find(&[FLAG]), "of-plain", "the CLI looks into one of the two");
        let gone = r#"{"token":{"accessToken":"t","expiresAt":1}}"#;
        assert_eq!(keychain(Some(Ok(gone))).find(&[FLAG]), "of-plain");
    }

    #[test]
    fn q4_a_store_that_cannot_be_opened_is_no_reason_to_open_another() {
        let damaged = Case::new().plain(SIGNED_IN).encrypted("/broken/bad_tag");
        assert_eq!(
            damaged.find(&[FLAG]),
            "gemini-credentials.json does not open: it is damaged, or another machine or user wrote it"
        );
        let locked =
            Case::new().plain(SIGNED_IN).encrypted("/file_iv12").keychain(Fixed(Some(Err("is locked"))));
        assert_eq!(locked.find(&[FLAG]), "the keychain is locked");
        let other = Case::new().plain(SIGNED_IN).keychain(Fixed(Some(Ok("s3cret"))));
        assert_eq!(other.find(&[FLAG]), "the keychain holds an entry that Gemini CLI did not write");
        let torn = Case::new().plain(r#"{"access_token":"s3cret"#);
        assert_eq!(torn.find(&[]), "oauth_creds.json is not what Gemini CLI writes");
    }

    #[test]
    fn q4_a_token_of_the_environment_comes_first() {
        let token = ("GOOGLE_CLOUD_ACCESS_TOKEN", "of-env");
        let case = Case::new().plain(SIGNED_IN).encrypted("/file_iv12");
        assert_eq!(case.find(&[token]), "of-plain", "only with GOOGLE_GENAI_USE_GCA");
        assert_eq!(case.find(&[token, ("GOOGLE_GENAI_USE_GCA", "true")]), "of-env");
        assert_eq!(case.find(&[token, ("GOOGLE_GENAI_USE_GCA", "1"), FLAG]), "of-env");
        assert_eq!(case.find(&[("GOOGLE_GENAI_USE_GCA", "true")]), "of-plain");
    }
}
