//! Reads the sidecar of a trace for the web page.

use std::time::{Duration, Instant};

use heaptap_report::figures::probes::page::PageSidecar;

use crate::io::live_sidecar::LiveSidecar;

/// How long a page may wait while a sidecar is read; the next one has more.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a sidecar says by now; `None` if there is none.
pub(crate) fn read(sidecar: &mut LiveSidecar) -> Option<PageSidecar> {
    sidecar.poll(Instant::now() + PATIENCE);
    let problem = sidecar.read.damage().map(|damage| format!("{}: {damage}", sidecar.name()));
    PageSidecar::new(&sidecar.read.history, problem)
}
