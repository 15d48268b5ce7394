//! The types of blocks, as they were found.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::ground::{GroundTypes, TypeId};
use super::name;
use super::table::TypeTable;
use crate::graph::HeapGraph;

/// The blocks that are given types.
pub trait TypedBlocks {
    /// How many there are.
    fn blocks(&self) -> usize;
    /// The tag of a block, and its words without its header.
    fn shape(&self, block: u32) -> (u32, u64);
    /// The blocks that a block points to.
    fn targets(&self, block: u32) -> &[u32];
    /// The fields of these pointers, in the same order.
    fn fields(&self, block: u32) -> &[u32];
}

/// The fields must have been loaded.
impl TypedBlocks for HeapGraph {
    fn blocks(&self) -> usize {
        self.blocks()
    }

    fn shape(&self, block: u32) -> (u32, u64) {
        let shape = self.shape(block);
        (shape.tag, shape.words)
    }

    fn targets(&self, block: u32) -> &[u32] {
        self.targets(block)
    }

    fn fields(&self, block: u32) -> &[u32] {
        self.fields(block)
    }
}

/// Where the type of a block comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TypeSource {
    /// From a declaration, and the block looks like one of the type.
    Declared,
    /// From the block's tag, which has one meaning.
    Tag,
    /// From its shape, from a declaration that says nothing about the shape, or from one of
    /// several that contradict each other.
    Guessed,
}

/// Blocks and their words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TypeShare {
    /// How many blocks.
    pub blocks: u64,
    /// Their words, without headers.
    pub words: u64,
}

/// How much of the heap has types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TypeCoverage {
    /// [`TypeSource::Declared`].
    pub declared: TypeShare,
    /// [`TypeSource::Tag`].
    pub by_tag: TypeShare,
    /// [`TypeSource::Guessed`].
    pub guessed: TypeShare,
    /// None.
    pub unknown: TypeShare,
}

/// Blocks that do not look like the type that a pointer to them is declared to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The declared type.
    pub declared: TypeId,
    /// The tag of the blocks.
    pub tag: u32,
    /// Their words.
    pub words: u64,
    /// How many such blocks there are.
    pub blocks: u64,
}

/// Why the types of a module's variables are not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemKind {
    /// It has more variables than were declared. None gets a type.
    UndeclaredField(u32),
    /// A variable holds a block that does not look like its type. All types from the module are
    /// guessed.
    Mismatch(u32),
    /// The declarations may be of another build of the program, see
    /// [`ModuleGlobals::is_certain`](super::ModuleGlobals::is_certain). All types from the module are guessed.
    OtherBuild,
}

/// A module whose variables are not what was declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleProblem {
    /// The module.
    pub module: String,
    /// What is wrong.
    pub kind: ProblemKind,
}

/// At most this number of kinds of mismatches are told apart.
const MOST_MISMATCHES: usize = 4096;

/// Flags of a block.
pub(super) mod flags {
    pub(crate) const GUESSED: u8 = 1;
    /// Two declared types contradict each other.
    pub(crate) const CONFLICT: u8 = 2;
    pub(crate) const QUEUED: u8 = 4;
    pub(crate) const MISMATCHED: u8 = 8;
    pub(crate) const BY_TAG: u8 = 16;
}

/// The types of blocks.
#[derive(Debug)]
pub struct BlockTypes {
    pub(super) table: Arc<TypeTable>,
    /// The first module of each name.
    modules: HashMap<Box<str>, usize>,
    pub(super) types: GroundTypes,
    /// By block.
    pub(super) of_block: Vec<TypeId>,
    /// By block; see [`flags`].
    pub(super) flags: Vec<u8>,
    /// How many blocks contradict a type, by the type and their tag and words.
    pub(super) mismatches: BTreeMap<(TypeId, u32, u64), u64>,
    pub(super) problems: Vec<ModuleProblem>,
    pub(super) conflicts: u64,
}

impl BlockTypes {
    pub(super) fn new(table: Arc<TypeTable>, blocks: usize) -> BlockTypes {
        let mut modules = HashMap::new();
        for (index, module) in table.modules().iter().enumerate() {
            modules.entry(module.name.clone()).or_insert(index);
        }
        BlockTypes {
            table,
            modules,
            types: GroundTypes::new(),
            of_block: vec![TypeId::UNKNOWN; blocks],
            flags: vec![0; blocks],
            mismatches: BTreeMap::new(),
            problems: Vec::new(),
            conflicts: 0,
        }
    }

    /// The type of a block.
    pub fn get(&self, block: u32) -> Option<(TypeId, TypeSource)> {
        let id = *self.of_block.get(block as usize)?;
        let flags = *self.flags.get(block as usize)?;
        let source = if flags & flags::BY_TAG != 0 {
            TypeSource::Tag
        } else if flags & (flags::GUESSED | flags::CONFLICT) != 0 {
            TypeSource::Guessed
        } else {
            TypeSource::Declared
        };
        (id != TypeId::UNKNOWN).then_some((id, source))
    }

    /// A type as it is written, such as `(string, Cache.entry) Hashtbl.t`.
    pub fn name(&self, id: TypeId) -> String {
        name::name(&self.table, &self.types, id)
    }

    /// The name of a module's variable, and its type: `table` and `(string, entry) Hashtbl.t`.
    pub fn variable(&mut self, module: &str, field: u32) -> Option<(String, String)> {
        let table = &self.table;
        let module = table.modules().get(*self.modules.get(module)?)?;
        let field = module.fields.get(field as usize)?;
        let id = self.types.instantiate(table, field.expression, &[]);
        Some((field.name.to_string(), name::name(table, &self.types, id)))
    }

    /// How much of the heap has types, of the blocks that are to be counted.
    pub fn coverage(
        &self,
        graph: &impl TypedBlocks,
        is_counted: impl Fn(u32) -> bool,
    ) -> TypeCoverage {
        let mut coverage = TypeCoverage::default();
        for block in (0..graph.blocks() as u32).filter(|block| is_counted(*block)) {
            let share = match self.get(block) {
                Some((_, TypeSource::Declared)) => &mut coverage.declared,
                Some((_, TypeSource::Tag)) => &mut coverage.by_tag,
                Some((_, TypeSource::Guessed)) => &mut coverage.guessed,
                None => &mut coverage.unknown,
            };
            share.blocks += 1;
            share.words = share.words.saturating_add(graph.shape(block).1);
        }
        coverage
    }

    /// Blocks that contradict a declared type, the most frequent first.
    pub fn mismatches(&self) -> Vec<Mismatch> {
        let mismatch =
            |(&(declared, tag, words), &blocks)| Mismatch { declared, tag, words, blocks };
        let mut all: Vec<Mismatch> = self.mismatches.iter().map(mismatch).collect();
        all.sort_by_key(|mismatch| std::cmp::Reverse(mismatch.blocks));
        all
    }

    /// How many blocks are reached with two types that contradict each other.
    pub fn conflicts(&self) -> u64 {
        self.conflicts
    }

    /// Modules whose variables are not what was declared.
    pub fn problems(&self) -> &[ModuleProblem] {
        &self.problems
    }

    /// Counts a block once, with the first type that it contradicts.
    pub(super) fn note_mismatch(&mut self, block: u32, shape: (u32, u64), declared: TypeId) {
        let Some(flags) = self.flags.get_mut(block as usize) else { return };
        if *flags & flags::MISMATCHED != 0 {
            return;
        }
        *flags |= flags::MISMATCHED;
        let key = (declared, shape.0, shape.1);
        if self.mismatches.len() < MOST_MISMATCHES || self.mismatches.contains_key(&key) {
            *self.mismatches.entry(key).or_default() += 1;
        }
    }

    /// Gives a type to a block that has none.
    pub(super) fn guess(&mut self, block: u32, id: TypeId, source: TypeSource) {
        let (Some(of_block), Some(flags)) =
            (self.of_block.get_mut(block as usize), self.flags.get_mut(block as usize))
        else {
            return;
        };
        if *of_block == TypeId::UNKNOWN {
            *of_block = id;
            *flags = if source == TypeSource::Tag { flags::BY_TAG } else { flags::GUESSED };
        }
    }
}
