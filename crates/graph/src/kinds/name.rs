//! Names of kinds and holders, as reports print them.
//!
//! They contain text from the snapshot, which is hostile: whoever prints it escapes it.

use heaptap_heap::{FinaliserKind, RootKind};

use super::kind::{BlockKind, SizeRange, is_ocaml, tag};
use crate::graph::{CodeName, HeapGraph};
use crate::holders::{HolderName, HolderTree};

/// From here on, ids of threads are those of domains, see `docs/heap-format.md`.
const NO_THREAD_ID: u32 = 1 << 31;

/// Names in one snapshot.
#[derive(Clone, Copy, Debug)]
pub struct Names<'a> {
    graph: &'a HeapGraph,
    is_ocaml: bool,
}

impl<'a> Names<'a> {
    /// The names in a graph.
    pub fn new(graph: &'a HeapGraph) -> Names<'a> {
        Names { graph, is_ocaml: is_ocaml(graph) }
    }

    /// The name of a kind, such as `closure Cache.add (cache.ml:12)` or `block of 3 words`.
    pub fn kind(&self, kind: BlockKind) -> String {
        match kind {
            BlockKind::Closure(code) => format!("closure {}", self.code(code)),
            BlockKind::Custom(operations) => {
                let identifier = self.graph.facts().custom(operations);
                let name = identifier.filter(|name| !name.is_empty());
                name.map_or_else(
                    || format!("custom {operations:#x}"),
                    |name| format!("custom {}", text(name)),
                )
            }
            BlockKind::Ephemeron => "ephemeron".into(),
            BlockKind::Shape { tag, size } => self.shape(tag, size),
            BlockKind::Given(name) => {
                self.graph.given_names().text(name).unwrap_or("unknown").to_owned()
            }
        }
    }

    fn shape(&self, tag: u32, size: SizeRange) -> String {
        if let Some(name) = self.graph.facts().tag(tag) {
            return format!("{}{}", text(name), of_words(size));
        }
        if !self.is_ocaml {
            return format!("tag {tag}{}", of_words(size));
        }
        let named = match tag {
            tag::CONT => "continuation",
            tag::LAZY => "lazy value",
            tag::CLOSURE => "closure",
            tag::OBJECT => "object",
            tag::INFIX => "infix closure",
            tag::FORWARD => "forced lazy value",
            tag::ABSTRACT => "abstract block",
            tag::STRING => "string",
            tag::DOUBLE => "float",
            tag::DOUBLE_ARRAY => "float array",
            tag::CUSTOM => "custom",
            0 if matches!(size, SizeRange::PowerOfTwo(_) | SizeRange::AtLeast(_)) => {
                "array or block"
            }
            0 => "block",
            _ => return format!("block with tag {tag}{}", of_words(size)),
        };
        format!("{named}{}", of_words(size))
    }

    /// A function and where it is.
    pub fn code(&self, address: u64) -> String {
        match self.graph.facts().code(address) {
            Some(CodeName { file, line: line @ 1.., function }) if !file.is_empty() => {
                format!("{} ({}:{line})", function_name(function, address), text(file))
            }
            _ => self.function(address),
        }
    }

    /// The same without the line: a function is at another one at another time.
    pub fn function(&self, address: u64) -> String {
        if address == 0 {
            return "unknown code".into();
        }
        let Some(CodeName { function, file, .. }) = self.graph.facts().code(address) else {
            return format!("{address:#x}");
        };
        let function = function_name(function, address);
        if file.is_empty() { function } else { format!("{function} ({})", text(file)) }
    }

    /// The name of a holder by itself, such as `field 3`; its path has the module.
    pub fn holder(&self, holder: HolderName) -> String {
        let facts = self.graph.facts();
        match holder {
            HolderName::Program => "program".into(),
            HolderTree::THREADS => "threads".into(),
            HolderName::Kind(kind) => kind.name().into(),
            HolderName::Module(module) => {
                facts.module(module).map_or_else(|| format!("module {module}"), text)
            }
            HolderName::Variable { module, field } => {
                let of_module = self.holder(HolderName::Module(module));
                match self.graph.given_names().variable(module, field) {
                    Some(name) => format!("{of_module}.{name}"),
                    None => format!("{of_module}, field {field}"),
                }
            }
            HolderName::Domain(domain) => format!("domain {domain}"),
            HolderName::DomainLocal(domain) => format!("domain {domain}, Domain.DLS"),
            HolderName::Thread(thread @ NO_THREAD_ID..) => {
                format!("only thread of domain {}", thread - NO_THREAD_ID)
            }
            HolderName::Thread(thread) => {
                let name = facts.thread(thread).map(|facts| facts.name.as_slice());
                match name.filter(|name| !name.is_empty()) {
                    Some(name) => format!("thread {thread} ({})", text(name)),
                    None => format!("thread {thread}"),
                }
            }
            HolderName::Frame { depth, return_address } => {
                format!("frame {depth}: {}", self.code(return_address))
            }
            HolderName::Handlers { fiber, return_address: 0 } => {
                format!("handlers of fiber {fiber}")
            }
            HolderName::Handlers { fiber, return_address } => {
                format!("handlers of fiber {fiber}, run by {}", self.code(return_address))
            }
            HolderName::LocalC => RootKind::LocalC.name().into(),
            HolderName::Slot(slot) => format!("variable at {slot:#x}"),
            HolderName::Finalisers(kind) => match kind {
                FinaliserKind::First => "Gc.finalise".into(),
                FinaliserKind::Last => "Gc.finalise_last".into(),
                FinaliserKind::Pending => "finalisers that are due".into(),
            },
            HolderName::HostKind(kind) => {
                facts.host_root(kind).map_or_else(|| format!("kind {kind}"), text)
            }
            HolderName::HostRoot(index) => format!("root {index}"),
        }
    }
}

fn of_words(size: SizeRange) -> String {
    match size {
        SizeRange::Any => String::new(),
        SizeRange::AtLeast(words) => format!(" of {words} words or more"),
        SizeRange::Exactly(1) => " of 1 word".into(),
        SizeRange::Exactly(words) => format!(" of {words} words"),
        SizeRange::PowerOfTwo(bits) => {
            let from = 1u64.checked_shl(bits).unwrap_or(0);
            format!(" of {from} to {} words", from.saturating_mul(2).saturating_sub(1))
        }
    }
}

fn function_name(function: &[u8], address: u64) -> String {
    if function.is_empty() { format!("{address:#x}") } else { text(function) }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
