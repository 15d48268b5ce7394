//! What tracing costs, and a budget for it: the rate changes as the program does.
//!
//! - `controller`: which rate keeps a budget.
//! - `cost`: what was spent, by the clocks of the system and the counters of mutators.
//! - `keeper`: has the one look at the other, on the writer thread.

mod controller;
mod cost;
mod keeper;

pub(crate) use controller::Budget;
pub(super) use controller::Controller;
pub(super) use cost::{Cost, CostMeter};
pub(super) use keeper::{BudgetKeeper, SharedController};
