//! The items of a snapshot.
//!
//! A word is 8 bytes, and addresses are those of the process. Addresses of
//! blocks, and so targets of pointers and roots, are multiples of 8.

/// The most bytes of a string in a file. Longer ones are cut.
pub const MAX_STRING: usize = 4096;

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
            MetaKey::KEPT_BLOCKS => "kept blocks",
            MetaKey::KEPT_WORDS => "kept words",
            _ => return None,
        })
    }
}

impl SegmentKind {
    /// Every kind.
    pub const ALL: [SegmentKind; 4] =
        [SegmentKind::Major, SegmentKind::Young, SegmentKind::Large, SegmentKind::Host];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            SegmentKind::Major => "major",
            SegmentKind::Young => "young",
            SegmentKind::Large => "large",
            SegmentKind::Host => "host",
        }
    }
}

/// What a segment is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SegmentKind {
    /// A part of the major heap.
    Major,
    /// A young generation.
    Young,
    /// A block too big for the other segments.
    Large,
    /// A range that a host described.
    Host,
}

/// A range of addresses in which blocks lie. It comes before them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// What it is for.
    pub kind: SegmentKind,
    /// Its first address, a multiple of 8.
    pub start: u64,
    /// Its length.
    pub words: u64,
}

/// A field of a block that points to another block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Pointer {
    /// The index of the field.
    pub field: u64,
    /// The address of the block it points to.
    pub target: u64,
}

/// A field of a block that holds a code address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code {
    /// The index of the field.
    pub field: u64,
    /// The code address.
    pub address: u64,
}

/// What a custom block says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CustomBlock {
    /// The address of its operations.
    pub operations: u64,
    /// The bytes that it holds outside the heap.
    pub outside_bytes: u64,
}

/// A block, or a part of a block with very many pointers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block<'a> {
    /// The address of its first field, a multiple of 8.
    pub address: u64,
    /// Its size without its header.
    pub words: u64,
    /// Its tag.
    pub tag: u32,
    /// Whether this is its first part. Counting first parts counts blocks.
    pub is_first: bool,
    /// Whether this is its last part.
    pub is_last: bool,
    /// Its pointers, by ascending field.
    pub pointers: &'a [Pointer],
    /// Its code addresses.
    pub codes: &'a [Code],
    /// Set in one part of a custom block.
    pub custom: Option<CustomBlock>,
    /// The beginning of its contents, if they were asked for. Set in one part.
    pub string: Option<&'a [u8]>,
}

/// What holds a root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RootOwner {
    /// A field of a module's static data.
    Global {
        /// The module's id.
        module: u32,
        /// The field.
        field: u32,
    },
    /// A slot of a thread's stack, or a register that is saved there.
    Stack {
        /// The thread's id.
        thread: u32,
        /// The frame's depth, 0 for the newest.
        depth: u32,
        /// The return address into the frame's function.
        return_address: u64,
        /// The slot's number in its frame.
        slot: u32,
    },
    /// A local variable of C code that registered it.
    LocalC {
        /// The thread's id.
        thread: u32,
    },
    /// A global variable of C code that registered it.
    GlobalC {
        /// The variable's address.
        slot: u64,
    },
    /// A slot that a library's hook reported.
    Hook {
        /// The slot's address.
        slot: u64,
    },
    /// A slot of a suspended stack. It is a root only as long as its continuation is alive.
    Continuation {
        /// The address of the continuation, a block.
        block: u64,
        /// The frame's depth, 0 for the newest.
        depth: u32,
        /// The return address into the frame's function.
        return_address: u64,
        /// The slot's number in its frame.
        slot: u32,
    },
    /// Something that only the host knows, named by [`Item::KindName`].
    Host {
        /// The kind.
        kind: u32,
        /// Which one of the kind.
        index: u64,
    },
}

/// The kind of a root, in the order in which reports list them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RootKind {
    /// Static data of modules.
    Global,
    /// Stacks of threads.
    Stack,
    /// Local variables of C code.
    LocalC,
    /// Global variables of C code.
    GlobalC,
    /// Slots that libraries' hooks reported.
    Hook,
    /// Suspended stacks.
    Continuation,
    /// What finalisers hold.
    Finaliser,
    /// What a host described.
    Host,
}

impl RootKind {
    /// Every kind.
    pub const ALL: [RootKind; 8] = [
        RootKind::Global,
        RootKind::Stack,
        RootKind::LocalC,
        RootKind::GlobalC,
        RootKind::Hook,
        RootKind::Continuation,
        RootKind::Finaliser,
        RootKind::Host,
    ];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            RootKind::Global => "globals",
            RootKind::Stack => "stacks",
            RootKind::LocalC => "local C roots",
            RootKind::GlobalC => "global C roots",
            RootKind::Hook => "hooks",
            RootKind::Continuation => "continuations",
            RootKind::Finaliser => "finalisers",
            RootKind::Host => "host",
        }
    }
}

impl RootOwner {
    /// Its kind.
    pub fn kind(self) -> RootKind {
        match self {
            RootOwner::Global { .. } => RootKind::Global,
            RootOwner::Stack { .. } => RootKind::Stack,
            RootOwner::LocalC { .. } => RootKind::LocalC,
            RootOwner::GlobalC { .. } => RootKind::GlobalC,
            RootOwner::Hook { .. } => RootKind::Hook,
            RootOwner::Continuation { .. } => RootKind::Continuation,
            RootOwner::Host { .. } => RootKind::Host,
        }
    }
}

/// A pointer into the heap from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Root {
    /// What holds it.
    pub owner: RootOwner,
    /// The address of the block it points to.
    pub target: u64,
}

/// When a finaliser runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FinaliserKind {
    /// It takes the value, so it keeps alive what the value points to: OCaml's `Gc.finalise`.
    First,
    /// It runs after the value is gone: OCaml's `Gc.finalise_last`.
    Last,
    /// It is due, and holds the value until it has run.
    Pending,
}

/// A finaliser. It holds its function in any case, no root repeats that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finaliser {
    /// When it runs.
    pub kind: FinaliserKind,
    /// The value's block; 0 if it is none in the heap.
    pub value: u64,
    /// The function's block; 0 if it is none in the heap.
    pub function: u64,
}

/// A key of an ephemeron.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct EphemeronKey {
    /// Its index.
    pub index: u64,
    /// The address of the block it points to.
    pub target: u64,
}

/// An ephemeron or a weak array, or a part of one with very many keys.
///
/// Its block has no pointers. The data is alive if the ephemeron and all its keys are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ephemeron<'a> {
    /// The address of its block.
    pub address: u64,
    /// Whether this is its first part.
    pub is_first: bool,
    /// Whether this is its last part.
    pub is_last: bool,
    /// The block of its data. Set in one part.
    pub data: Option<u64>,
    /// The keys that are set, by ascending index.
    pub keys: &'a [EphemeronKey],
}

/// What a code address belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name<'a> {
    /// The code address.
    pub address: u64,
    /// The function; may be empty.
    pub function: &'a [u8],
    /// The source file; may be empty.
    pub file: &'a [u8],
    /// The line; 0 if it is unknown.
    pub line: u32,
}

/// What an [`Item::KindName`] names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KindNamespace {
    /// A tag of blocks.
    Tag,
    /// A kind of [`RootOwner::Host`].
    HostRoot,
}

/// A block that a trace follows too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Followed {
    /// The block's address.
    pub address: u64,
    /// Its id in the trace.
    pub id: u64,
}

/// What a reader returns, in the order of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Item<'a> {
    /// A fact about the snapshot.
    Meta {
        /// Its key.
        key: MetaKey,
        /// Its value.
        value: &'a [u8],
    },
    /// A range in which blocks lie.
    Segment(Segment),
    /// A block or a part of one.
    Block(Block<'a>),
    /// A root.
    Root(Root),
    /// A finaliser.
    Finaliser(Finaliser),
    /// An ephemeron or a part of one.
    Ephemeron(Ephemeron<'a>),
    /// A module's name.
    Module {
        /// Its id.
        id: u32,
        /// Its name.
        name: &'a [u8],
    },
    /// A thread.
    Thread {
        /// Its id.
        id: u32,
        /// The domain it runs on.
        domain: u32,
        /// Its name; may be empty.
        name: &'a [u8],
    },
    /// A code address that occurs in the snapshot. One may come several times.
    CodeSeen(u64),
    /// What kind of custom block has these operations.
    CustomKind {
        /// The address of the operations.
        operations: u64,
        /// Its identifier.
        identifier: &'a [u8],
    },
    /// The name of a tag or of a host's kind of roots.
    KindName {
        /// Which of the two.
        namespace: KindNamespace,
        /// The tag or kind.
        kind: u32,
        /// Its name.
        name: &'a [u8],
    },
    /// What a code address belongs to.
    Name(Name<'a>),
    /// A block that a trace follows too.
    Followed(Followed),
}
