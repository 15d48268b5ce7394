//! A budget for what tracing costs: the rate changes as the program does.
//!
//! - `controller`: which rate keeps a budget.
//! - `keeper`: has the one look at the other, on the writer thread.

mod controller;
mod keeper;

pub(crate) use controller::Budget;
pub(super) use controller::Controller;
pub(super) use keeper::{BudgetKeeper, SharedController};
