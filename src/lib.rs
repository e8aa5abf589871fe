//! gemgauge: a token ledger and quota gauge for Google's Gemini CLI.
//!
//! Data flows one way: what the world says ([`sources`]) becomes facts, the
//! rules ([`ledger`]) decide what they mean, the [`store`] keeps them, and the
//! [`surfaces`] show them. [`app`] wires the rooms together; `docs/architecture.md`
//! has the plan of the house.

pub mod app;
pub mod cli;
pub mod config;
pub mod health;
pub mod ledger;
pub mod sources;
pub mod store;
pub mod surfaces;
