//! A process that gemgauge stands in front of: started, signalled, waited for
//! and left as if nobody stood there (accounting 3, D2).
//!
//! - **In**: a command line; signals sent to this process.
//! - **Out**: the process, its [`Exit`](crate::ledger::doors::Exit), an end that looks the same.
//! - **Never**: signal a process group, or a process that is not below the one started here.
//! - **Look first** at [`spawn`], then [`tree`].

mod copy;
#[cfg(unix)]
mod exit;
#[cfg(unix)]
pub mod signals;
mod spawn;
#[cfg(unix)]
pub mod tree;

pub use copy::{Patient, copy};
#[cfg(unix)]
pub use exit::{leave, of_status};
pub use spawn::{NotStarted, command, spawn};
