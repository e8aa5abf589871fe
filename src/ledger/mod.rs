//! The rules: what counts, who owns it, and what a figure may claim.
//!
//! - **In**: plain facts that the sources read ([`evidence`]) and rows the store kept.
//! - **Out**: decisions: token classes, figures with their bound, owners, names.
//! - **Never**: I/O, a clock, async, SQL, or any crate but `std` and `serde`.
//! - **Look first** at [`tokens`] (what a figure is), then [`bound`] (what it claims),
//!   then [`identity`] (which request it is and whose), then [`money`] (what it
//!   costs), [`turn`] (how evidence becomes a figure) and [`budget`] (what may be spent).

pub mod blind_spots;
pub mod bound;
pub mod budget;
pub mod doors;
pub mod evidence;
pub mod hash;
pub mod identity;
pub mod model;
pub mod money;
pub mod project;
pub mod quota;
pub mod runtime;
pub mod spend;
pub mod telemetry;
pub mod tokens;
pub mod turn;
