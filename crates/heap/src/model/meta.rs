//! Facts about a snapshot.

/// The key of a fact about the snapshot. Values are text, numbers in decimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MetaKey(pub u32);

impl MetaKey {
    /// Runtime and version, such as `OCaml 4.14.1 native`.
    pub const RUNTIME: MetaKey = MetaKey(1);
    /// The program's file.
    pub const PROGRAM: MetaKey = MetaKey(2);
    /// The process id.
    pub const PID: MetaKey = MetaKey(3);
    /// When it was taken, in nanoseconds since the Unix epoch.
    pub const TIME: MetaKey = MetaKey(4);
    /// Why it was taken: `request`, `exit`, `major collection`, `timer`, `signal` or `program`.
    pub const REASON: MetaKey = MetaKey(5);
    /// How it was taken: `copy-on-write` or `synchronous`.
    pub const METHOD: MetaKey = MetaKey(6);
    /// The phase of the collector at that moment.
    pub const GC_PHASE: MetaKey = MetaKey(7);
    /// Words of a block's header, which lie before its address.
    pub const HEADER_WORDS: MetaKey = MetaKey(8);
    /// The trace that was being written.
    pub const TRACE_FILE: MetaKey = MetaKey(9);
    /// When that trace began, in microseconds since the Unix epoch.
    pub const TRACE_START: MetaKey = MetaKey(10);
    /// The host's name.
    pub const HOST: MetaKey = MetaKey(11);
    /// Contents of strings are included up to this number of bytes each; absent if they are not.
    pub const STRINGS: MetaKey = MetaKey(12);
    /// How many blocks that the trace tracks are not listed, for want of room; absent if all are.
    pub const TRACKED_LEFT_OUT: MetaKey = MetaKey(13);
    /// Fibers that are suspended, their continuations dead or alive.
    pub const SUSPENDED_FIBERS: MetaKey = MetaKey(14);
    /// The bytes of their stacks.
    pub const SUSPENDED_STACKS: MetaKey = MetaKey(15);
    /// The bytes of the stacks of threads and running fibers.
    pub const RUNNING_STACKS: MetaKey = MetaKey(16);
    /// The bytes of stacks that the runtime keeps for later.
    pub const FREE_STACKS: MetaKey = MetaKey(17);
    /// When the process began, in microseconds since the Unix epoch.
    pub const PROCESS_START: MetaKey = MetaKey(18);

    /// For tests: the blocks that the runtime itself kept after its own collections.
    pub const KEPT_BLOCKS: MetaKey = MetaKey(64);
    /// The words of these blocks, without headers.
    pub const KEPT_WORDS: MetaKey = MetaKey(65);

    /// The key's name; `None` for a key of a later version.
    pub fn name(self) -> Option<&'static str> {
        Some(match self {
            MetaKey::RUNTIME => "runtime",
            MetaKey::PROGRAM => "program",
            MetaKey::PID => "pid",
            MetaKey::TIME => "time",
            MetaKey::REASON => "reason",
            MetaKey::METHOD => "method",
            MetaKey::GC_PHASE => "gc phase",
            MetaKey::HEADER_WORDS => "header words",
            MetaKey::TRACE_FILE => "trace file",
            MetaKey::TRACE_START => "trace start",
            MetaKey::HOST => "host",
            MetaKey::STRINGS => "strings",
            MetaKey::TRACKED_LEFT_OUT => "followed left out",
            MetaKey::SUSPENDED_FIBERS => "suspended fibers",
            MetaKey::SUSPENDED_STACKS => "suspended stacks",
            MetaKey::RUNNING_STACKS => "running stacks",
            MetaKey::FREE_STACKS => "free stacks",
            MetaKey::PROCESS_START => "process start",
            MetaKey::KEPT_BLOCKS => "kept blocks",
            MetaKey::KEPT_WORDS => "kept words",
            _ => return None,
        })
    }
}
