//! queue: hands event buffers from mutators to the one writer thread.
//!
//! # Parts
//! A [`Channel`] owns a pool of equally large buffers and up to 65,535 *lanes*,
//! one per mutator. A lane is a stream of words. Its [`Producer`] writes records
//! into the lane's *current* buffer. The one [`Consumer`] reads the words of each
//! lane in the order in which they were committed, and only it returns buffers to
//! the pool.
//!
//! # Protocol
//! The buffers of a lane are numbered 1, 2, … in sequence. One atomic word per
//! lane, [`CurrentBuffer`](current_buffer::CurrentBuffer), holds the newest
//! sequence number, the index of that buffer, its committed length, and whether it
//! is *claimed*. The side that sets the claim bit alone decides what happens to
//! the buffer next:
//!
//! - The producer claims its buffer to write a record (one compare-exchange) and
//!   commits with one release store of the new length and the cleared claim. It
//!   pushes a full buffer to the queue of full buffers while it holds the claim.
//!   The lane's word still names that buffer, claimed, until the next one
//!   replaces it.
//! - The consumer reads a lane's current buffer up to its committed length, without
//!   the mutator's help. When the pool runs low it claims the buffers of idle lanes
//!   for good; their producers notice at their next record. So there may be more
//!   lanes than buffers.
//! - The first few lanes are *pinned*: they keep their buffers claimed, and the
//!   consumer never takes them. Their records need no atomic exchange.
//!
//! If the sequence number in a lane's word is below the one the consumer expects,
//! the word is stale: that buffer was read and recycled. If it is above, the
//! expected buffer is in the queue of full buffers, since the producer pushes
//! before it stores the word.
//!
//! The last eighth of the pool is reserved for lanes that have nothing waiting to
//! be read. The writer may hold up one lane until it sees an event of another; the
//! lane that is held up must not take the buffer the other one needs.
//!
//! Invariant: every buffer is in exactly one place: the free list, a lane, the
//! queue of full buffers, or the consumer. The queue has capacity for all buffers,
//! so a push never fails.
//!
//! # Threads
//! A [`Producer`] runs on its mutator, inside hooks: it takes no lock, does not call
//! malloc and does not panic. It makes one system call when it hands over a buffer
//! while the writer sleeps and the pool runs low, and those of
//! [`Producer::wait_for_buffer`]. The [`Consumer`] runs on the writer thread.
//!
//! # Fork
//! A channel owns no thread. A forked child calls [`Producer::abandon`] for each
//! inherited producer and makes a new channel. It must not push to or pop from the
//! inherited queues, which another thread of the parent may have been changing at
//! the fork. Dropping the inherited [`Consumer`] and [`Channel`] only unmaps and
//! frees memory.
//!
//! # Tests
//! `tests/interleavings.rs` runs under loom (`--cfg loom`); the other tests use
//! real threads.

mod channel;
mod code;
mod consumer;
mod current_buffer;
mod free_list;
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
