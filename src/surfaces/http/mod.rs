//! The service over HTTP.
//!
//! - **In**: requests; the answers of [`Views`], which the app puts together
//!   from the store, the reports and the metrics.
//! - **Out**: the page, metrics, health, JSON, and word that the ledger changed.
//! - **Never**: read the ledger on an async thread, answer a name that is not
//!   ours, or put a figure together itself.
//! - **Look first** at [`routes`]: every route on one page; then [`auth`]: who may ask.

pub mod auth;
mod error;
mod handlers;
mod hosts;
pub mod live;
mod page;
pub mod query;
pub mod ready;
pub mod routes;
pub mod state;
mod views;

#[cfg(test)]
mod tests;

pub use auth::{Gate, TlsListener};
pub use error::ApiError;
pub use hosts::Hosts;
pub use live::Live;
pub use query::Query;
pub use ready::Readiness;
pub use routes::{Options, inputs_alone, router};
pub use views::{Scrape, Views};
