//! From an order to a file.

use std::sync::atomic::{AtomicU32, Ordering};

use super::exchange;
use super::order::{Order, SnapshotError, Taken};
use super::output::TemporaryFile;
use super::walk::WalkTask;
use super::walker::{HeapWalker, registered};

/// The process that takes a snapshot; 0 if none does. Not a lock: a child that is forked meanwhile
/// would find it taken for ever.
static TAKER: AtomicU32 = AtomicU32::new(0);

/// The right to take a snapshot, which one thread of a process has at a time.
struct Turn(u32);

impl Turn {
    /// `None` while another thread has it.
    fn take() -> Option<Turn> {
        let own = std::process::id();
        let claim = |taker: u32| (taker != own).then_some(own);
        TAKER.fetch_update(Ordering::AcqRel, Ordering::Acquire, claim).ok().map(|_| Turn(own))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let _ = TAKER.compare_exchange(self.0, 0, Ordering::AcqRel, Ordering::Relaxed);
    }
}

/// Takes a snapshot at the runtime's next safe point. Blocks until the file is complete, so
/// not on a thread of the program; one that wants a snapshot of itself calls
/// [`come_to_safe_point`] meanwhile.
pub(crate) fn take(order: &Order) -> Result<Taken, SnapshotError> {
    alone(order, |walker, task| {
        let mut is_first = true;
        exchange::offer(task, order, || {
            // The program may come to a safe point by itself before.
            if !std::mem::take(&mut is_first) {
                walker.poke();
                walker.at_rest(&mut exchange::at_safe_point);
            }
        })
    })
}

/// Comes to a safe point if a snapshot waits for one. On a thread of the program that has
/// called us or `exit`, outside of hooks.
pub(crate) fn come_to_safe_point() {
    if exchange::is_wanted()
        && let Ok(walker) = registered()
    {
        walker.come_to_safe_point();
    }
}

fn alone(
    order: &Order,
    carry_out: impl FnOnce(&'static dyn HeapWalker, &WalkTask) -> Result<(), SnapshotError>,
) -> Result<Taken, SnapshotError> {
    let walker = registered()?;
    if let Some(why) = walker.refusal() {
        return Err(SnapshotError::Unsupported(why));
    }
    let _turn = Turn::take().ok_or(SnapshotError::Busy)?;
    let file = TemporaryFile::create(&order.path)?;
    walker.prepare();
    let mut task = WalkTask::new(walker, order, &file)?;
    carry_out(walker, &task)?;
    let walked = task.wait(&order.cancellation)?;
    let failed = |error| SnapshotError::File(order.path.clone(), error);
    task.complete(&file.file).map_err(failed)?;
    if order.cancellation.is_cancelled() {
        return Err(SnapshotError::Cancelled);
    }
    let bytes = file.keep().map_err(failed)?;
    Ok(Taken {
        path: order.path.clone(),
        method: walked.method,
        blocks: walked.blocks,
        words: walked.words,
        roots: walked.roots,
        bytes,
        pause: walked.pause,
    })
}
