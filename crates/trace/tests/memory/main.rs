//! How much memory reading takes, whatever the file says, and that neither
//! reading nor writing allocates anything for an event once warm.

mod account;
#[path = "../suite/forge.rs"]
mod forge;

mod hostile;
mod warm;
