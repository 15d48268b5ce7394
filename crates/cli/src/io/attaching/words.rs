//! What is said of a process.

use heaptap_client::Process;

use crate::text::escape;

/// With its number and its name.
pub(crate) fn of_process(process: Process, what: &str) -> String {
    let name = process.name();
    format!("process {} ({}): {what}", process.pid(), escape::path(name.as_ref()))
}
