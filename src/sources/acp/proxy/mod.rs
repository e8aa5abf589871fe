//! The agent behind the proxy: started as it was asked for, its streams copied
//! byte by byte, its end passed on (accounting 3, D2 1–3, 6 and 7).
//!
//! - [`unix`]: starts the agent and sees it to its end
//! - [`pump`]: the two copy loops
//! - [`tree`]: the processes that belong to the agent
//!
//! Nothing here waits for the observer, and nothing prints.

#[cfg(not(unix))]
mod portable;
#[cfg(unix)]
mod pump;
#[cfg(unix)]
mod tree;
#[cfg(unix)]
mod unix;

#[cfg(not(unix))]
pub use portable::{Agent, die_of};
#[cfg(unix)]
pub use unix::{Agent, die_of};
