//! Names of holders and blocks, as tables and sentences have them.

use heaptap_graph::{
    HeapAnalysis, HolderId, HolderName, KindId, Names, Node, RetainedId, RetainedKind,
};

use crate::escape::Escaped;
use crate::names::shown;

/// Names, escaped.
#[derive(Clone, Copy)]
pub struct Titles<'a> {
    analysis: &'a HeapAnalysis,
    names: Names<'a>,
}

fn escaped(text: &str) -> String {
    Escaped(text.as_bytes()).to_string()
}

impl<'a> Titles<'a> {
    pub fn new(analysis: &'a HeapAnalysis) -> Titles<'a> {
        Titles { analysis, names: Names::new(&analysis.graph) }
    }

    /// A call, with the function's name as the trace's rows have it.
    fn code(&self, return_address: u64) -> String {
        escaped(&shown(&self.names.code(return_address)))
    }

    /// The function of a call, which is at one line now and at another one later.
    fn function(&self, return_address: u64) -> String {
        escaped(&shown(&self.names.function(return_address)))
    }

    /// A holder by itself.
    fn plain(&self, holder: HolderId) -> String {
        escaped(&self.names.holder(self.analysis.holders.name(holder)))
    }

    /// A holder, with what it belongs to.
    pub fn holder(&self, holder: HolderId) -> String {
        let holders = &self.analysis.holders;
        let within = || self.plain(holders.parent(holder));
        match holders.name(holder) {
            HolderName::Frame { depth, return_address } => {
                let code = self.code(return_address);
                format!("{code}, frame {depth} of {}", within())
            }
            HolderName::Handlers { fiber, return_address } => {
                let run_by = self.run_by(return_address);
                format!("handlers of fiber {fiber} of {}{run_by}", within())
            }
            HolderName::LocalC => format!("{} of {}", self.plain(holder), within()),
            HolderName::Slot(slot) => format!("{} at {slot:#x}", within()),
            HolderName::HostRoot(index) => format!("{} {index}", within()),
            _ => self.plain(holder),
        }
    }

    /// Who runs a fiber, if that is known.
    fn run_by(&self, return_address: u64) -> String {
        match return_address {
            0 => String::new(),
            known => format!(", run by {}", self.code(known)),
        }
    }

    /// The same by a name that it has in the next snapshot, too: of a frame without its depth and its line.
    pub fn lasting(&self, holder: HolderId) -> String {
        let holders = &self.analysis.holders;
        let within = || self.plain(holders.parent(holder));
        match holders.name(holder) {
            HolderName::Frame { return_address, .. } => {
                format!("{}, {}", self.function(return_address), within())
            }
            HolderName::Handlers { return_address: 0, .. } => {
                format!("handlers of a fiber of {}", within())
            }
            HolderName::Handlers { return_address, .. } => {
                let run_by = self.function(return_address);
                format!("handlers of a fiber of {}, run by {run_by}", within())
            }
            _ => self.holder(holder),
        }
    }

    /// The lowest holder that retains blocks, as what keeps them: one that is no variable or frame stands for several
    /// below it, each of which would be enough.
    pub fn keeper(&self, holder: HolderId) -> String {
        match self.analysis.holders.name(holder) {
            HolderName::Program => "several holders together".into(),
            HolderName::Module(_) => format!("several variables of {}", self.plain(holder)),
            _ => self.lasting(holder),
        }
    }

    /// The OCaml type of a variable, if it has got one as a part of its name.
    pub fn type_of(&self, holder: HolderId) -> Option<String> {
        let HolderName::Variable { module, field } = self.analysis.holders.name(holder) else {
            return None;
        };
        let name = self.analysis.graph.given_names().variable(module, field)?;
        name.split_once(" : ").map(|(_, type_name)| escaped(type_name))
    }

    /// Blocks of a kind.
    pub fn kind(&self, kind: KindId) -> String {
        let kind = self.analysis.kinds.kind(kind);
        kind.map_or_else(|| "?".into(), |kind| escaped(&self.names.kind(kind)))
    }

    /// The same, without the size of blocks that are as big as arrays: these grow.
    pub fn kind_of_any_size(&self, kind: KindId) -> String {
        match self.analysis.kinds.kind(kind) {
            Some(kind) => escaped(&self.names.kind(kind.of_any_size())),
            None => "?".into(),
        }
    }

    /// What a node of the joined tree is, with how it is reached if that is needed to tell it from others.
    pub fn retained(&self, node: RetainedId) -> String {
        let name = self.retained_blocks(node);
        match self.analysis.retained.node(node).and_then(|node| node.pointer) {
            Some(pointer) => format!("{name} (pointer {})", pointer + 1),
            None => name,
        }
    }

    /// What the blocks of a node of the joined tree are.
    pub fn retained_blocks(&self, node: RetainedId) -> String {
        match self.analysis.retained.node(node).map(|node| node.kind) {
            Some(RetainedKind::Holder(holder)) => self.lasting(holder),
            Some(RetainedKind::Blocks(kind)) => self.kind(kind),
            Some(RetainedKind::Others) | None => "blocks of several kinds".into(),
        }
    }

    /// The path to a node of the joined tree, from the last holder on it.
    pub fn path_from_holder(&self, node: RetainedId) -> Vec<String> {
        let path = self.analysis.retained.path(node);
        let is_holder = |id: &RetainedId| {
            let kind = self.analysis.retained.node(*id).map(|node| node.kind);
            matches!(kind, Some(RetainedKind::Holder(_)))
        };
        let holders = path.iter().take_while(|id| is_holder(id)).count();
        path.iter().skip(holders.saturating_sub(1)).map(|id| self.retained(*id)).collect()
    }

    /// A node of a path.
    pub fn node(&self, node: Node) -> String {
        match node {
            Node::Holder(holder) => self.holder(holder),
            Node::Block(block) => {
                format!("{} {}", self.kind(self.analysis.kind(block)), self.address(node))
            }
        }
    }

    /// Where a block of a path is.
    pub fn address(&self, node: Node) -> String {
        match node {
            Node::Holder(holder) => self.holder(holder),
            Node::Block(block) => {
                format!("at {:#x}", self.analysis.graph.address(block).unwrap_or_default())
            }
        }
    }
}
