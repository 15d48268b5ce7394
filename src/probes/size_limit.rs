//! How large a sidecar becomes.
//!
//! When it has grown to twice of what it was, it is written again in fewer rows
//! (`crates/probes`, `thin`), which takes its place. So it grows with the logarithm of the time, and
//! what is written for one byte that stays is bounded. If it does not fit into half of its limit, fewer
//! rows are kept; of the log, as many of its last lines as fit into a quarter.
//!
//! A file that cannot be replaced, since it was removed or the process may not make files any more,
//! gets fewer rows from then on. When it reaches its limit it has only what comes last.

use heaptap_probes::{Dropped, Thinning};

use super::sidecar_file::SidecarFile;

/// A shorter file is not thinned.
const SHORT: u64 = if crate::SMALL_LIMITS { 8 << 10 } else { 128 << 10 };

/// The time between rows of a file that cannot be replaced, in nanoseconds, and once a quarter of its
/// limit is used.
const SELDOM_NS: u64 = 990_000_000;
const VERY_SELDOM_NS: u64 = 59_990_000_000;

/// When a sidecar is written again in fewer rows, and in how many.
#[derive(Clone, Debug)]
pub(super) struct SizeLimit {
    /// The most bytes.
    limit: u64,
    /// That of the rows in the file.
    level: u32,
    /// The size at which it is thinned next.
    next: u64,
    /// Why it cannot be replaced.
    blocked: Option<String>,
    /// It has reached its limit.
    pub(super) is_reached: bool,
}

impl SizeLimit {
    pub(super) fn new(limit: u64) -> SizeLimit {
        SizeLimit { limit, level: 0, next: SHORT, blocked: None, is_reached: false }
    }

    /// For another file, with the same limit.
    pub(super) fn begin(&mut self) {
        *self = SizeLimit::new(self.limit);
    }

    /// The least time between two rows, in nanoseconds.
    pub(super) fn least_interval(&self, file: &SidecarFile) -> u64 {
        match self.blocked {
            None => 0,
            Some(_) if file.bytes() < self.limit / 4 => SELDOM_NS,
            Some(_) => VERY_SELDOM_NS,
        }
    }

    /// Thins the file if it has grown enough. Everything that was added to it is written. The error is
    /// for the user, once: nothing can be recorded any more.
    pub(super) fn keep(&mut self, file: &mut SidecarFile, now: u64) -> Result<Dropped, String> {
        if file.bytes() < self.next || self.is_reached {
            return Ok(Dropped::default());
        }
        let dropped = self.thin(file, now);
        if file.bytes() >= self.limit {
            self.is_reached = true;
            let why = match &self.blocked {
                Some(why) => format!("cannot be made smaller, since {why}"),
                None => "cannot be made smaller".to_owned(),
            };
            return Err(format!(
                "{} has {} MiB, its limit, and {why}; from now on only totals are recorded, at the \
                 end. {} sets another limit",
                file.name(),
                self.limit >> 20,
                heaptap_settings::PROBES_LIMIT.name,
            ));
        }
        Ok(dropped)
    }

    fn thin(&mut self, file: &mut SidecarFile, now: u64) -> Dropped {
        let drop_log = file.log_bytes().saturating_sub(self.limit / 4);
        loop {
            let thinning = Thinning { now, level: self.level, drop_log };
            let done = file.thinned(thinning).and_then(|thinned| {
                let (bytes, dropped) = (thinned.bytes, thinned.dropped);
                let fits = bytes <= self.limit / 2 || self.level == Thinning::MAX_LEVEL;
                if fits {
                    file.replace(now, thinned).map(|()| Some((bytes, dropped)))
                } else {
                    Ok(None)
                }
            });
            match done {
                Ok(None) => self.level += 1,
                Ok(Some((bytes, dropped))) => {
                    self.blocked = None;
                    self.next = (2 * bytes).clamp(SHORT, self.limit / 4 * 3);
                    if bytes >= self.next {
                        // Names alone are more than fits.
                        self.next = self.limit;
                    }
                    return dropped;
                }
                Err(error) => {
                    self.blocked = Some(error.to_string());
                    self.next = (2 * file.bytes()).min(self.limit);
                    return Dropped::default();
                }
            }
        }
    }
}
