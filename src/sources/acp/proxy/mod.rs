//! The agent behind the proxy: started as it was asked for, its streams copied
//! byte by byte, its end passed on (accounting 3, D2 1–3, 6 and 7). [`unix`]
//! sees it to its end, [`pump`] holds the two copy loops.
//!
//! Nothing here waits for the observer, and nothing prints.

#[cfg(not(unix))]
mod portable;
#[cfg(unix)]
mod pump;
#[cfg(unix)]
mod unix;

#[cfg(not(unix))]
pub use portable::Agent;
#[cfg(unix)]
pub use unix::Agent;

use crate::sources::process::NotStarted;
