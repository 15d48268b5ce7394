//! The tree of holders.

use heaptap_heap::{FinaliserKind, RootKind, RootOwner};

use crate::graph::{HeapGraph, RootHolder};

/// The number of a holder; [`HolderTree::PROGRAM`] is the top.
pub type HolderId = u32;

/// What a holder is. The order is that of the tree's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HolderName {
    /// Everything.
    Program,
    /// The roots of a kind.
    Kind(RootKind),
    /// A module's static data.
    Module(u32),
    /// A variable of a module: a field of its static data.
    Variable {
        /// The module.
        module: u32,
        /// The field.
        field: u32,
    },
    /// A domain, with its threads.
    Domain(u32),
    /// The values of a domain: `Domain.DLS`.
    DomainLocal(u32),
    /// A thread's stack, and its C code's local variables.
    Thread(u32),
    /// A frame of a stack.
    Frame {
        /// The frame's depth, 0 for the newest.
        depth: u32,
        /// The return address into the frame's function.
        return_address: u64,
    },
    /// The functions that handle the end and the effects of a fiber.
    Handlers {
        /// The number of the fiber on the stack, 0 for the newest.
        fiber: u32,
        /// The return address into the function that runs it; 0 if it is not known.
        return_address: u64,
    },
    /// The local variables of C code, on a thread.
    LocalC,
    /// A variable of C code, or a slot that a hook reported, at this address.
    Slot(u64),
    /// The finalisers of a kind.
    Finalisers(FinaliserKind),
    /// A kind of roots that the host has named.
    HostKind(u32),
    /// One of these.
    HostRoot(u64),
}

#[derive(Clone, Debug)]
struct HolderNode {
    name: HolderName,
    parent: HolderId,
    /// Its children and root blocks: nodes of the flow graph, in `successors`.
    from: u32,
    to: u32,
    /// How many roots it has, with those of its children.
    roots: u64,
}

/// What holds the roots. A parent comes before its children, and children are in the order of their
/// names.
#[derive(Clone, Debug)]
pub struct HolderTree {
    nodes: Vec<HolderNode>,
    successors: Vec<u32>,
    /// The number of blocks: holder `n` is node `blocks + n` of the flow graph.
    blocks: u32,
}

/// The holders of a root from the kind down. At most four.
type Path = Vec<HolderName>;

impl HolderTree {
    /// The top of the tree.
    pub const PROGRAM: HolderId = 0;

    /// The top of all that belongs to threads and domains: stacks, local variables of C code,
    /// values of domains. So each thread and each domain is one holder.
    pub const THREADS: HolderName = HolderName::Kind(RootKind::Stack);

    /// Builds the tree of a graph's roots. `None` if there are more than 2^32 nodes.
    pub fn new(graph: &HeapGraph) -> Option<HolderTree> {
        let mut roots: Vec<(Path, u32)> =
            graph.roots().map(|(holder, target)| (path(graph, holder), target)).collect();
        roots.sort_unstable();
        roots.dedup();
        let blocks = u32::try_from(graph.blocks()).ok()?;
        let mut builder = Builder::new();
        for (path, target) in roots {
            builder.add(&path, target);
        }
        // Every node of the flow graph needs a number below `u32::MAX`.
        let nodes = u32::try_from(builder.nodes.len()).ok()?;
        blocks.checked_add(nodes).filter(|nodes| *nodes < u32::MAX)?;
        Some(builder.finish(blocks))
    }

    /// How many holders there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// False: there is always the program.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// All holders, parents before their children.
    pub fn ids(&self) -> impl Iterator<Item = HolderId> + use<> {
        0..self.nodes.len() as HolderId
    }

    /// What a holder is.
    pub fn name(&self, holder: HolderId) -> HolderName {
        self.nodes.get(holder as usize).map_or(HolderName::Program, |node| node.name)
    }

    /// The holder above; the program is its own.
    pub fn parent(&self, holder: HolderId) -> HolderId {
        self.nodes.get(holder as usize).map_or(0, |node| node.parent)
    }

    /// The holders above and this one, from the kind down.
    pub fn path(&self, holder: HolderId) -> Vec<HolderId> {
        let mut path = Vec::new();
        let mut at = holder;
        while at != HolderTree::PROGRAM {
            path.push(at);
            at = self.parent(at);
        }
        path.reverse();
        path
    }

    /// How many roots a holder has, with those below it.
    pub fn roots(&self, holder: HolderId) -> u64 {
        self.nodes.get(holder as usize).map_or(0, |node| node.roots)
    }

    /// The node of the flow graph that stands for a holder.
    pub(crate) fn node(&self, holder: HolderId) -> u32 {
        self.blocks.saturating_add(holder)
    }

    /// The holder that a node of the flow graph stands for.
    pub(crate) fn holder(&self, node: u32) -> Option<HolderId> {
        node.checked_sub(self.blocks)
    }

    /// The nodes that a holder leads to: holders below, and blocks.
    pub(crate) fn successors(&self, holder: HolderId) -> &[u32] {
        let node = self.nodes.get(holder as usize);
        node.and_then(|node| self.successors.get(node.from as usize..node.to as usize))
            .unwrap_or_default()
    }

    /// The holders directly below a holder, ascending.
    pub fn children(&self, holder: HolderId) -> impl Iterator<Item = HolderId> {
        self.successors(holder).iter().filter_map(|node| self.holder(*node))
    }

    /// The blocks that a holder's own roots point to.
    pub fn root_blocks(&self, holder: HolderId) -> impl Iterator<Item = u32> {
        self.successors(holder).iter().copied().filter(|node| *node < self.blocks)
    }
}

fn path(graph: &HeapGraph, holder: RootHolder) -> Path {
    let kind = HolderName::Kind(holder.kind());
    let in_thread = |thread: u32, last: HolderName| {
        let domain = graph.facts().thread(thread).map_or(0, |thread| thread.domain);
        vec![HolderTree::THREADS, HolderName::Domain(domain), HolderName::Thread(thread), last]
    };
    match holder {
        RootHolder::Finaliser(finaliser) => vec![kind, HolderName::Finalisers(finaliser)],
        RootHolder::Owner(owner) => match owner {
            RootOwner::Global { module, field } => {
                vec![kind, HolderName::Module(module), HolderName::Variable { module, field }]
            }
            RootOwner::Stack { thread, depth, return_address, .. } => {
                in_thread(thread, HolderName::Frame { depth, return_address })
            }
            RootOwner::Handler { thread, fiber, return_address, .. } => {
                in_thread(thread, HolderName::Handlers { fiber, return_address })
            }
            RootOwner::LocalC { thread } => in_thread(thread, HolderName::LocalC),
            RootOwner::DomainLocal { domain } => {
                vec![
                    HolderTree::THREADS,
                    HolderName::Domain(domain),
                    HolderName::DomainLocal(domain),
                ]
            }
            RootOwner::GlobalC { slot } | RootOwner::Hook { slot } => {
                vec![kind, HolderName::Slot(slot)]
            }
            // Its continuation is not in the snapshot.
            RootOwner::Continuation { .. } => vec![kind],
            RootOwner::Host { kind: of, index } => {
                vec![kind, HolderName::HostKind(of), HolderName::HostRoot(index)]
            }
        },
    }
}

/// Adds holders in the order of their paths.
struct Builder {
    nodes: Vec<HolderNode>,
    /// The path of the last root, as holders.
    open: Vec<HolderId>,
    /// Each holder with a holder or block below it.
    edges: Vec<(HolderId, Successor)>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Successor {
    Holder(HolderId),
    Block(u32),
}

impl Builder {
    fn new() -> Builder {
        let program = HolderNode { name: HolderName::Program, parent: 0, from: 0, to: 0, roots: 0 };
        Builder { nodes: vec![program], open: Vec::new(), edges: Vec::new() }
    }

    fn add(&mut self, path: &[HolderName], block: u32) {
        let name_of = |nodes: &[HolderNode], id: HolderId| nodes.get(id as usize).map(|n| n.name);
        let shared = self
            .open
            .iter()
            .zip(path)
            .take_while(|(open, name)| name_of(&self.nodes, **open) == Some(**name))
            .count();
        self.open.truncate(shared);
        for name in path.iter().skip(shared) {
            let parent = self.open.last().copied().unwrap_or(HolderTree::PROGRAM);
            let id = self.nodes.len() as HolderId;
            self.nodes.push(HolderNode { name: *name, parent, from: 0, to: 0, roots: 0 });
            self.edges.push((parent, Successor::Holder(id)));
            self.open.push(id);
        }
        let owner = self.open.last().copied().unwrap_or(HolderTree::PROGRAM);
        self.edges.push((owner, Successor::Block(block)));
        for id in self.open.iter().copied().chain([HolderTree::PROGRAM]) {
            if let Some(node) = self.nodes.get_mut(id as usize) {
                node.roots += 1;
            }
        }
    }

    fn finish(mut self, blocks: u32) -> HolderTree {
        self.edges.sort_unstable();
        let mut successors = Vec::with_capacity(self.edges.len());
        for (holder, successor) in self.edges {
            let at = successors.len() as u32;
            successors.push(match successor {
                Successor::Holder(id) => blocks + id,
                Successor::Block(block) => block,
            });
            if let Some(node) = self.nodes.get_mut(holder as usize) {
                if node.to == 0 {
                    node.from = at;
                }
                node.to = at + 1;
            }
        }
        HolderTree { nodes: self.nodes, successors, blocks }
    }
}
