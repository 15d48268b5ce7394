//! The header of a trace file, and the random seed.

#![allow(unsafe_code, reason = "gethostname and getrandom")]

use std::os::unix::ffi::OsStrExt;
use std::time::{SystemTime, UNIX_EPOCH};

use heaptap_trace::TraceInfo;

use crate::probes::SidecarOwner;
use crate::sampling::Rate;
use crate::sys::program;
use crate::tracer::counting_output::CountingOutput;
use crate::tracer::options::Options;
use crate::writer::NewFile;

/// The header of a trace file that begins at this time, in microseconds since the epoch.
pub(crate) fn trace_info(options: &Options, rate: Rate, start_us: u64) -> TraceInfo {
    TraceInfo {
        sample_rate: rate.get(),
        word_size: usize::BITS as u8,
        executable: program::path().as_os_str().as_bytes().to_vec(),
        host: host_name(),
        runtime_params: options.runtime_params.clone(),
        pid: u64::from(std::process::id()),
        context: options.context.clone(),
        start_time: start_us,
        domain: 0,
    }
}

/// Microseconds since the epoch.
pub(crate) fn now_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros() as u64
}

/// Whose sidecar is written.
pub(crate) fn sidecar_owner() -> SidecarOwner {
    SidecarOwner {
        host: String::from_utf8_lossy(&host_name()).into_owned(),
        program: program::path().to_string_lossy().into_owned(),
        pid: std::process::id(),
    }
}

fn host_name() -> Vec<u8> {
    let mut name = [0u8; 256];
    // SAFETY: gethostname writes at most `name.len()` bytes to `name`.
    let failed = unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len()) };
    let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
    if failed == 0 { name.get(..end).unwrap_or(&[]).to_vec() } else { Vec::new() }
}

/// A seed that is not 0.
pub(crate) fn entropy() -> u64 {
    let mut bytes = [0u8; 8];
    // SAFETY: getrandom writes at most `bytes.len()` bytes to `bytes`.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if got == bytes.len() as isize {
        return u64::from_le_bytes(bytes) | 1;
    }
    // Without random bytes, the time and the process id must do.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (now.as_nanos() as u64 ^ u64::from(std::process::id()).rotate_left(40)) | 1
}

/// A trace file at this rate, that begins at this time.
pub(super) fn new_file(
    out: CountingOutput,
    options: &Options,
    rate: Rate,
    start_us: u64,
) -> NewFile<CountingOutput> {
    let info = trace_info(options, rate, start_us);
    NewFile { out, info, late_params: options.late_params.clone() }
}
