//! Pointers into the heap from outside.

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
    /// Values of a domain: `Domain.DLS`.
    DomainLocal {
        /// The domain.
        domain: u32,
    },
    /// A function that handles the end or the effects of a fiber, on the stack of a thread.
    Handler {
        /// The thread's id.
        thread: u32,
        /// The number of the fiber on the stack, 0 for the newest.
        fiber: u32,
        /// The return address into the function of the newest frame below the fiber, which runs it; 0
        /// if it is not known.
        return_address: u64,
        /// Which function: 0 of a value, 1 of an exception, 2 of effects.
        slot: u32,
    },
    /// Something that only the host knows, named by [`Item::KindName`](super::Item::KindName).
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
    /// Values of domains.
    DomainLocal,
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
    pub const ALL: [RootKind; 9] = [
        RootKind::Global,
        RootKind::Stack,
        RootKind::DomainLocal,
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
            RootKind::DomainLocal => "domain-local values",
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
            RootOwner::Stack { .. } | RootOwner::Handler { .. } => RootKind::Stack,
            RootOwner::DomainLocal { .. } => RootKind::DomainLocal,
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
