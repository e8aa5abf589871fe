//! Money: what a request costs at list price, in whole picodollars.
//!
//! Look first at [`table`] (which price a request has), then [`cost`] (what it
//! costs at that price), then [`sum`] (what a sum of costs may claim).

pub mod amount;
pub mod cost;
pub mod currency;
pub mod rate;
pub mod sum;
pub mod table;

pub use amount::{Picodollars, Rounding};
pub use cost::{ClassCosts, Cost, LONG_PROMPT, Tier};
pub use currency::{Currency, CurrencyError};
pub use rate::{Rate, RateError, Rates};
pub use sum::{CostBound, CostFigure, CostSum};
pub use table::{AliasRow, Billing, Day, PriceList, PriceRow, PriceTable, TableError, Unpriced, Validity};
