//! Passwords, checked by bcrypt, once each.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use rustls::crypto::ring;
use sha2::{Digest as _, Sha256};
use subtle::{Choice, ConstantTimeEq as _};
use tokio::sync::Semaphore;

use crate::config::web_config::PasswordHash;

/// Checks that were right and need not be made again. One for each client that
/// asks often is enough.
const KNOWN: usize = 64;

/// Checks that may wait for the one under way; who comes then is asked to come
/// again.
const WAITING: usize = 16;

/// Salt and hash of a password nobody has: what a name nobody has is compared
/// with, so that it takes as long as any other.
const NOBODY: &str = "Nobody.Has.This.Salt..Nobody.Has.This.Password.Here..";

/// Names with their hashes.
pub(super) struct Users {
    hashes: BTreeMap<String, PasswordHash>,
    /// For the names that are not there; as costly as the costliest of them.
    nobody: String,
}

impl Users {
    pub(super) fn new(hashes: BTreeMap<String, PasswordHash>) -> Self {
        let cost = hashes.values().map(PasswordHash::cost).max().unwrap_or(4);
        Self { hashes, nobody: format!("$2y${cost:02}${NOBODY}") }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// What to compare with, and whether the name is known at all.
    fn hash(&self, name: &str) -> (&str, bool) {
        self.hashes.get(name).map_or((&self.nobody, false), |hash| (hash.secret(), true))
    }
}

/// Name and password as a client sent them.
pub(super) struct Credentials {
    pub(super) name: String,
    pub(super) password: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Right,
    Wrong,
    /// Too many checks wait.
    Busy,
}

/// Checks passwords: one bcrypt at a time, as each takes a whole core.
pub(super) struct Passwords {
    /// Random for each process, so that nobody can aim at a fingerprint.
    key: [u8; 32],
    known: Mutex<VecDeque<[u8; 32]>>,
    turn: Semaphore,
    waiting: Semaphore,
}

impl Passwords {
    pub(super) fn new() -> Self {
        let mut key = [0; 32];
        let filled = ring::default_provider().secure_random.fill(&mut key);
        filled.expect("the system has random numbers: TLS cannot do without them either");
        Self { key, known: Mutex::default(), turn: Semaphore::new(1), waiting: Semaphore::new(WAITING) }
    }

    pub(super) async fn check(&self, users: &Arc<Users>, who: Credentials) -> Verdict {
        let (hash, is_known) = users.hash(&who.name);
        let fingerprint = self.fingerprint(&who, hash);
        if self.is_known(&fingerprint) {
            return Verdict::Right;
        }
        let Ok(_waits) = self.waiting.try_acquire() else { return Verdict::Busy };
        let Ok(_turn) = self.turn.acquire().await else { return Verdict::Busy };
        // Whoever had the turn before may have been the same client.
        if self.is_known(&fingerprint) {
            return Verdict::Right;
        }
        let hash = hash.to_owned();
        let check = tokio::task::spawn_blocking(move || bcrypt::verify(&who.password, &hash));
        let is_right = matches!(check.await, Ok(Ok(true)));
        if !(is_right && is_known) {
            return Verdict::Wrong;
        }
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.truncate(KNOWN - 1);
        known.push_front(fingerprint);
        Verdict::Right
    }

    /// Of name, password and hash: a new hash makes an old check worthless.
    fn fingerprint(&self, who: &Credentials, hash: &str) -> [u8; 32] {
        let mut hasher = Sha256::new_with_prefix(self.key);
        for part in [who.name.as_bytes(), hash.as_bytes(), &who.password] {
            hasher.update((part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        hasher.finalize().into()
    }

    fn is_known(&self, fingerprint: &[u8; 32]) -> bool {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let equal = |known: &[u8; 32]| known.ct_eq(fingerprint);
        known.iter().map(equal).fold(Choice::from(0), |found, equal| found | equal).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn users(password: &str) -> Arc<Users> {
        let hash = bcrypt::hash_with_salt(password, 4, *b"a salt of a test").expect("a hash");
        let hash = hash.format_for_version(bcrypt::Version::TwoY);
        Arc::new(Users::new([("ana".to_owned(), hash.try_into().expect("a hash"))].into()))
    }

    fn who(name: &str, password: &str) -> Credentials {
        Credentials { name: name.into(), password: password.into() }
    }

    #[tokio::test]
    async fn only_the_right_password_of_a_known_name_is_right() {
        let (passwords, users) = (Passwords::new(), users("hunter2"));
        for (name, password, verdict) in [
            ("ana", "hunter2", Verdict::Right),
            ("ana", "hunter2", Verdict::Right),
            ("ana", "hunter3", Verdict::Wrong),
            ("ana", "", Verdict::Wrong),
            ("ana", "hunter2\0", Verdict::Wrong),
            ("ben", "hunter2", Verdict::Wrong),
            ("", "", Verdict::Wrong),
        ] {
            assert_eq!(passwords.check(&users, who(name, password)).await, verdict, "{name}:{password}");
        }
        let known = passwords.known.lock().expect("no panic");
        assert_eq!(known.len(), 1, "what was right once is known, what was wrong is not");
    }

    #[tokio::test]
    async fn a_check_is_worth_nothing_after_the_password_changed() {
        let passwords = Passwords::new();
        assert_eq!(passwords.check(&users("old"), who("ana", "old")).await, Verdict::Right);
        let new = users("new");
        assert_eq!(passwords.check(&new, who("ana", "old")).await, Verdict::Wrong);
        assert_eq!(passwords.check(&new, who("ana", "new")).await, Verdict::Right);
    }

    #[tokio::test]
    async fn a_name_that_nobody_has_is_compared_with_a_hash_as_costly() {
        let users = users("x");
        let (hash, is_known) = users.hash("ben");
        assert!(!is_known && hash.starts_with("$2y$04$"), "{hash}");
        assert!(PasswordHash::try_from(hash.to_owned()).is_ok());
        assert!(!bcrypt::verify("", hash).expect("it is compared to the end"));
    }

    #[tokio::test]
    async fn no_more_checks_wait_than_may_and_known_ones_do_not_wait() {
        let (passwords, users) = (Passwords::new(), users("hunter2"));
        assert_eq!(passwords.check(&users, who("ana", "hunter2")).await, Verdict::Right);
        let all = passwords.waiting.acquire_many(u32::try_from(WAITING).expect("few")).await.expect("open");
        assert_eq!(passwords.check(&users, who("ana", "wrong")).await, Verdict::Busy);
        assert_eq!(passwords.check(&users, who("ana", "hunter2")).await, Verdict::Right);
        drop(all);
        assert_eq!(passwords.check(&users, who("ana", "wrong")).await, Verdict::Wrong);
    }

    #[test]
    fn what_is_known_is_bounded() {
        let passwords = Passwords::new();
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        for n in 0..=KNOWN {
            let password = format!("p{n}");
            let users = users(&password);
            assert_eq!(runtime.block_on(passwords.check(&users, who("ana", &password))), Verdict::Right);
        }
        assert_eq!(passwords.known.lock().expect("no panic").len(), KNOWN);
    }
}
