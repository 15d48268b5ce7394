//! The walk itself, at a safe point or in a copy of the process.

use std::cell::UnsafeCell;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use heaptap_heap::{Encoder, MetaKey, Totals, Tracked, Workspace};
use heaptap_settings::TEST_VERIFY;

use super::facts::facts;
use super::names;
use super::order::{Method, Order, SnapshotError};
use super::output::{DescriptorSink, TemporaryFile};
use super::tracked::TrackedList;
use super::walker::{HeapWalker, WalkError};
use crate::safe_point::{Cancellation, Task};
use crate::sys::copy_process::{CopyEnd, run_in_copy, step_aside, wait_for};
use crate::sys::memory::{MappedArray, Zeroable};
use crate::sys::shared_memory::SharedArray;
use crate::sys::write_signals::without_write_signals;

/// The longest that a copy may take. It works with low priority, on a heap of any size.
const LONGEST_WALK: Duration = Duration::from_secs(1800);

// SAFETY: it consists of integers, and is valid if all bytes are zero (its documentation).
unsafe impl Zeroable for Workspace {}

/// What a safe point has to do. Everything it needs was allocated before.
pub(super) struct WalkTask {
    walker: &'static dyn HeapWalker,
    sink: DescriptorSink,
    descriptor: i32,
    string_bytes: u32,
    method: Method,
    /// Whether the runtime is to say what it would keep, for tests.
    verify: bool,
    /// Facts about the snapshot.
    meta: Vec<(MetaKey, Vec<u8>)>,
    /// Used by the one that walks.
    workspace: UnsafeCell<MappedArray<Workspace>>,
    /// The copy of the process; 0 if there is none.
    copy: AtomicI32,
    pause_ns: AtomicU64,
    /// One.
    outcome: SharedArray<Outcome>,
    tracked: Option<TrackedList>,
}

// SAFETY: the workspace is used only by the walk, which takes place once; everything else is
// never changed, or atomic.
unsafe impl Sync for WalkTask {}

/// What came of the walk. The copy of the process writes it into memory that both share.
pub(super) struct Outcome {
    /// One of the constants below; 0 until the walk has ended.
    state: AtomicU32,
    errno: AtomicI32,
    /// Of a text that never changes, at the same address in the copy.
    text: AtomicUsize,
    text_bytes: AtomicUsize,
    blocks: AtomicU64,
    words: AtomicU64,
    roots: AtomicU64,
}

// SAFETY: it consists of atomic integers, which may be zero and need no drop.
unsafe impl Zeroable for Outcome {}

const DONE: u32 = 1;
const WRITE_FAILED: u32 = 2;
const HEAP_WRONG: u32 = 3;
const HOST_WRONG: u32 = 4;

/// A walk that has succeeded.
pub(super) struct Walked {
    pub(super) method: Method,
    pub(super) blocks: u64,
    pub(super) words: u64,
    pub(super) roots: u64,
    pub(super) pause: Duration,
}

impl WalkTask {
    /// On the ordering thread.
    pub(super) fn new(
        walker: &'static dyn HeapWalker,
        order: &Order,
        file: &TemporaryFile,
    ) -> Result<WalkTask, SnapshotError> {
        let workspace = MappedArray::new(1).ok_or(SnapshotError::Memory)?;
        // The copy would fault for each page.
        workspace.populate();
        Ok(WalkTask {
            walker,
            sink: file.sink(),
            descriptor: file.descriptor(),
            string_bytes: order.string_bytes,
            method: order.method,
            verify: TEST_VERIFY.is_on(|name| std::env::var_os(name)).unwrap_or(false),
            meta: facts(walker, order),
            workspace: UnsafeCell::new(workspace),
            copy: AtomicI32::new(0),
            pause_ns: AtomicU64::new(0),
            outcome: SharedArray::new(1).ok_or(SnapshotError::Memory)?,
            tracked: walker.session().and_then(|_| TrackedList::new()),
        })
    }

    /// False if the process cannot be copied.
    fn walk_in_copy(&self) -> bool {
        let work = || {
            step_aside(self.descriptor);
            self.walk(Method::CopyOnWrite);
            0
        };
        // SAFETY: `step_aside` and `walk` make system calls and read memory; a walker neither
        // allocates nor locks (`HeapWalker::walk`).
        let copied = unsafe { run_in_copy(work) };
        self.copy.store(*copied.as_ref().unwrap_or(&0), Ordering::Release);
        copied.is_ok()
    }

    fn walk(&self, method: Method) {
        // SAFETY: a task is carried out once (`safe_point`), and nobody else uses the
        // workspace.
        let workspace = unsafe { &mut *self.workspace.get() };
        let Some(workspace) = workspace.first_mut() else { return };
        let written = self.write(workspace, method);
        self.outcome.iter().for_each(|outcome| outcome.record(written));
    }

    fn write(&self, workspace: &mut Workspace, method: Method) -> Result<Totals, WalkError> {
        let mut encoder = Encoder::new(self.sink, workspace, self.walker.header_words());
        encoder.meta(MetaKey::METHOD, method.name().as_bytes())?;
        for (key, value) in &self.meta {
            encoder.meta(*key, value)?;
        }
        self.walker.walk(&mut encoder, self.string_bytes)?;
        if let Some(list) = &self.tracked {
            let mut left_out = 0;
            self.walker.tracked(&mut |address, number| {
                left_out += u64::from(!list.push(address as u64, number));
            });
            if left_out > 0 {
                encoder.meta_number(MetaKey::TRACKED_LEFT_OUT, left_out)?;
            }
        }
        if self.verify
            && method == Method::CopyOnWrite
            && let Some((blocks, words)) = self.walker.collect()
        {
            encoder.meta_number(MetaKey::KEPT_BLOCKS, blocks)?;
            encoder.meta_number(MetaKey::KEPT_WORDS, words)?;
        }
        let (totals, _) = encoder.suspend()?;
        Ok(totals)
    }

    /// Adds names and the end. After [`WalkTask::wait`], on the ordering thread.
    pub(super) fn complete(&mut self, file: &File) -> io::Result<()> {
        let Some(workspace) = self.workspace.get_mut().first_mut() else { return Ok(()) };
        let traced = self.tracked.as_ref().and_then(|list| {
            let (addresses, numbers): (Vec<_>, Vec<_>) = list.pairs().into_iter().unzip();
            let traced = self.walker.session()?.identify(&numbers)?;
            let blocks = addresses.into_iter().zip(traced.ids);
            let blocks = blocks.filter_map(|(address, id)| Some(Tracked { address, id: id? }));
            Some((traced.start_time, blocks))
        });
        names::append(file, self.sink, workspace, self.walker, traced)
    }

    /// Waits for the end of the walk, and ends its copy if it is cancelled. After it was carried
    /// out, on the ordering thread.
    pub(super) fn wait(&self, cancellation: &Cancellation) -> Result<Walked, SnapshotError> {
        let copy = self.copy.load(Ordering::Acquire);
        let end = match copy {
            0 => CopyEnd::Status(0),
            _ => wait_for(copy, LONGEST_WALK, || cancellation.is_cancelled()),
        };
        if cancellation.is_cancelled() {
            return Err(SnapshotError::Cancelled);
        }
        let outcome = self.outcome.first().ok_or(SnapshotError::Memory)?;
        match outcome.state.load(Ordering::Acquire) {
            DONE => {}
            WRITE_FAILED => {
                let error = io::Error::from_raw_os_error(outcome.errno.load(Ordering::Relaxed));
                return Err(SnapshotError::Write(error));
            }
            HEAP_WRONG => return Err(SnapshotError::Heap(outcome.text())),
            HOST_WRONG => return Err(SnapshotError::Host(outcome.text())),
            _ => {
                let signal = if let CopyEnd::Signal(signal) = end { signal } else { 0 };
                return Err(SnapshotError::CopyEnded(signal));
            }
        }
        Ok(Walked {
            method: if copy == 0 { Method::Synchronous } else { Method::CopyOnWrite },
            blocks: outcome.blocks.load(Ordering::Relaxed),
            words: outcome.words.load(Ordering::Relaxed),
            roots: outcome.roots.load(Ordering::Relaxed),
            pause: Duration::from_nanos(self.pause_ns.load(Ordering::Acquire)),
        })
    }
}

impl Task for WalkTask {
    /// Walks the heap, in a copy of the process if that is asked for and possible.
    fn carry_out(&self) {
        let start = Instant::now();
        if self.method == Method::Synchronous || !self.walk_in_copy() {
            // A file that grows beyond the limit of the process must not end the program.
            without_write_signals(|| self.walk(Method::Synchronous));
        }
        self.pause_ns.store(start.elapsed().as_nanos() as u64, Ordering::Release);
    }
}

impl Outcome {
    fn record(&self, result: Result<Totals, WalkError>) {
        let state = match result {
            Ok(totals) => {
                self.blocks.store(totals.blocks, Ordering::Relaxed);
                self.words.store(totals.words, Ordering::Relaxed);
                self.roots.store(totals.roots, Ordering::Relaxed);
                DONE
            }
            Err(WalkError::Write(errno)) => {
                self.errno.store(errno, Ordering::Relaxed);
                WRITE_FAILED
            }
            Err(WalkError::Heap(text)) => {
                self.set_text(text);
                HEAP_WRONG
            }
            Err(WalkError::Host(text)) => {
                self.set_text(text);
                HOST_WRONG
            }
        };
        self.state.store(state, Ordering::Release);
    }

    fn set_text(&self, text: &'static str) {
        self.text.store(text.as_ptr() as usize, Ordering::Relaxed);
        self.text_bytes.store(text.len(), Ordering::Relaxed);
    }

    /// Why the walk failed.
    fn text(&self) -> &'static str {
        let text = self.text.load(Ordering::Relaxed) as *const u8;
        let bytes = self.text_bytes.load(Ordering::Relaxed);
        // SAFETY: `set_text` stored the address and length of a `&'static str`. The copy of the
        // process has the same library at the same address.
        let bytes = unsafe { std::slice::from_raw_parts(text, bytes) };
        str::from_utf8(bytes).unwrap_or("unknown")
    }
}
