//! queue: hand-over of event buffers from mutators to the one writer thread.
//!
//! # What there is
//! A [`Channel`] owns a pool of equal buffers of words and up to 65,535 *lanes*,
//! one per mutator. A [`Producer`] writes records into the buffer that its lane
//! holds at the time, its *current* one; the one [`Consumer`] reads each lane's
//! words in the order they were committed, and is the only one who gives
//! buffers back to the pool.
//!
//! # Protocol
//! The buffers of a lane are numbered 1, 2, … One atomic word per lane, see
//! [`Current`](current::Current), says which buffer holds the newest number, how
//! many of its words are committed, and whether it is *claimed*. Who sets the
//! claim bit, and nobody else, decides what becomes of the buffer:
//!
//! - The producer claims its buffer to write a record (one compare-exchange) and
//!   commits with one store that releases the words, the new length and the
//!   claim together. A full buffer is pushed to `fulls` while claimed, and stays
//!   claimed in the lane's word until the next one replaces it.
//! - The consumer reads a lane's current buffer up to its committed length,
//!   without the mutator's help. When the pool runs low it claims the buffers of
//!   idle lanes for good; their producers notice at their next record. So lanes
//!   may outnumber buffers. Not so of the first few lanes, which keep theirs
//!   claimed: where there are no more, no record takes an atomic exchange.
//!
//! A lane's word with a number below the one the consumer expects is stale: it
//! has read and recycled that buffer already. A number above it means that the
//! expected buffer is in `fulls`: it was pushed before the word was stored.
//!
//! The last eighth of the pool is for lanes of which nothing waits to be read, so
//! a lane that the writer holds up cannot starve the one it waits for.
//!
//! Every buffer is in exactly one place: `empties`, a lane, `fulls`, or the
//! consumer's hands. `fulls` has room for all, so pushing never fails.
//!
//! # Threads
//! [`Producer`] on its mutator: no lock, no malloc, no panic; one system call
//! when it hands over a buffer while the writer sleeps and the pool runs low,
//! and those of [`Producer::wait_for_buffer`]. [`Consumer`] on the writer thread.
//!
//! # Fork
//! A channel has no thread. In a child call [`Producer::abandon`] for what was
//! inherited and make a new channel: the inherited queues may stand still in the
//! middle of an operation of a thread that is no more, so nothing may be pushed
//! or popped there. Dropping the inherited [`Consumer`] and [`Channel`] only
//! unmaps and frees.

mod channel;
mod code;
mod consumer;
mod current;
mod empties;
mod pool;
mod producer;
mod record;
mod sync;
#[cfg(test)]
mod tests;

pub(crate) use channel::Channel;
pub(crate) use code::{Code, HOST_CODE_LIMIT, LEFT_OUT, Part};
pub(crate) use consumer::Consumer;
pub(crate) use pool::BUFFER_WORDS;
pub(crate) use producer::{Producer, WaitOutcome};
pub(crate) use record::{AllocWords, BlockId, BlockRun, EndWord, Record, Sample};
