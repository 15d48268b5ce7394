//! What a snapshot says about the process.

use std::os::unix::ffi::OsStrExt as _;
use std::time::{SystemTime, UNIX_EPOCH};

use heaptap_heap::MetaKey;

use super::order::Order;
use super::walker::HeapWalker;
use crate::sys::program;

/// The facts that are known before the walk. On the ordering thread.
pub(super) fn facts(walker: &dyn HeapWalker, order: &Order) -> Vec<(MetaKey, Vec<u8>)> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut facts = vec![
        (MetaKey::RUNTIME, walker.runtime().into_bytes()),
        (MetaKey::PID, std::process::id().to_string().into_bytes()),
        (MetaKey::TIME, now.as_nanos().to_string().into_bytes()),
        (MetaKey::REASON, order.reason.name().into()),
        (MetaKey::HEADER_WORDS, walker.header_words().to_string().into_bytes()),
    ];
    facts.push((MetaKey::PROGRAM, program::path().as_os_str().as_bytes().to_vec()));
    if let Some(began) = program::began().and_then(|began| began.duration_since(UNIX_EPOCH).ok()) {
        facts.push((MetaKey::PROCESS_START, began.as_micros().to_string().into_bytes()));
    }
    if let Ok(host) = std::fs::read("/proc/sys/kernel/hostname") {
        facts.push((MetaKey::HOST, host.trim_ascii_end().to_vec()));
    }
    if order.string_bytes > 0 {
        facts.push((MetaKey::STRINGS, order.string_bytes.to_string().into_bytes()));
    }
    if let Some(session) = walker.session() {
        facts.push((MetaKey::TRACE_FILE, session.output_name.as_bytes().to_vec()));
    }
    facts
}
