//! From an order to a file.

use super::order::{Order, SnapshotError, Taken};
use super::output::TemporaryFile;
use super::walk::WalkTask;
use super::walker::registered;
use crate::safe_point::{self, Turn};

/// Takes a snapshot at the runtime's next safe point. Blocks until the file is complete, so
/// not on a thread of the program; one that wants a snapshot of itself comes to a safe point
/// meanwhile.
pub(crate) fn take(order: &Order) -> Result<Taken, SnapshotError> {
    let walker = registered()?;
    if let Some(why) = walker.refusal() {
        return Err(SnapshotError::Unsupported(why));
    }
    let turn = Turn::take().ok_or(SnapshotError::Busy)?;
    let file = TemporaryFile::create(&order.path)?;
    walker.prepare_walk();
    let mut task = WalkTask::new(walker, order, &file)?;
    safe_point::carry_out(&turn, &task, order.patience, &order.cancellation)?;
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
