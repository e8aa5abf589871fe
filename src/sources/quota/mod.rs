//! What is left of a Google sign-in's quota: the stored sign-in, the one
//! service it is shown to, and when that is asked (docs/quota.md, Q1–Q8, Q12).
//!
//! - **In**: a home's `.gemini` and the settings above it, read only; Code
//!   Assist's answers; [`Wake`]s from whoever sees turns end.
//! - **Out**: [`Poll`]s, one for each look at a home, into a sink; what refused
//!   requests say of quota ([`rejection`], quota Q14).
//! - **Never**: write or renew a sign-in, poll without a [`Consent`], follow a
//!   redirect, or let a [`Token`] into anything that is written or shown.
//! - **Look first** at [`home`] (one poll of one home, step by step), then
//!   [`answer`] (what an answer means); when to poll is
//!   [`crate::ledger::quota::schedule`].

mod account;
mod answer;
mod client;
mod credentials;
mod encrypted;
mod files;
mod home;
mod keychain;
mod outside;
mod plain;
mod poller;
pub mod rejection;
mod token;
mod wording;

use std::path::PathBuf;

use crate::config::Quota;
use crate::ledger::evidence::HomeId;
use crate::ledger::quota::poll::Poll;
pub use crate::ledger::quota::schedule::Event;

pub use account::account_of_email;
pub use keychain::{Kept, Keychain, NoKeychain, SystemKeychain};
pub use outside::Outside;
pub use poller::{Engine, Poller, Wake, Waker};
pub use token::Token;

/// A home whose quota is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub home: HomeId,
    /// The directory that holds the `.gemini`.
    pub path: PathBuf,
}

/// Somebody who may said that polling is wanted, after reading
/// [`crate::config::QUOTA_RISK`] (quota Q1). Nothing is polled without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Consent(());

impl Consent {
    /// The configuration says so: `quota.enabled`, or `--quota`.
    #[must_use]
    pub fn configured(quota: &Quota) -> Option<Self> {
        quota.enabled.then_some(Self(()))
    }

    /// The command line asked for this one poll: `quota --poll`.
    #[must_use]
    pub fn by_flag() -> Self {
        Self(())
    }
}

/// Polls a home once, at once. It blocks: two requests of at most
/// [`Outside::timeout`] each.
#[must_use]
pub fn poll_once(target: Target, _: Consent, settings: &Quota, outside: &Outside) -> Poll {
    home::Home::new(target, settings.clone()).poll(outside).poll
}
