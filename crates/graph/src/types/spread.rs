//! Types of blocks: from the variables of modules along pointers, breadth first.
//!
//! A block gets the type that a pointer to it is declared to have, if its tag, its size and the
//! places of its pointers agree with that. Where they do not, the type goes no further and the
//! contradiction is counted.
//!
//! A block that is reached with two types that agree with it is a conflict: one of the two is
//! wrong. Its type is then guessed, and so is every type that comes from it alone. Since what
//! came from it was spread before the conflict was found, the spreading starts again with the
//! conflicts known, until no new ones appear.
//!
//! In one round a block's type only gets better: from guessed to declared, and from one with
//! unknown parts to one without. So each block is visited a few times at most.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use super::block_types::flags::{CONFLICT, GUESSED, QUEUED};
use super::block_types::{BlockTypes, ModuleProblem, ProblemKind, TypedBlocks};
use super::ground::{GroundType, GroundTypes, TypeId};
use super::guess;
use super::layout::{FieldTypes, Fit, Layout};
use super::table::{ModuleGlobals, TypeTable};

/// A variable of a module that points to a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GlobalRoot<'a> {
    /// The module's name.
    pub module: &'a str,
    /// The field of its static data.
    pub field: u32,
    /// The block.
    pub block: u32,
}

/// After this number of rounds with new conflicts everything is guessed.
const MOST_ROUNDS: usize = 32;

/// Suspensions of suspensions are followed this far, where the runtime has left them out.
const DEEPEST_LAZY: usize = 8;

impl BlockTypes {
    /// Spreads the types of variables, and then guesses from shapes.
    pub fn spread(
        graph: &impl TypedBlocks,
        table: TypeTable,
        roots: &[GlobalRoot<'_>],
    ) -> BlockTypes {
        let found = BlockTypes::new(Arc::new(table), graph.blocks());
        let mut spreader =
            Spreader { graph, found, layouts: HashMap::new(), queue: VecDeque::new() };
        let seeds = spreader.seeds(roots);
        let mut is_settled = false;
        for _ in 0..MOST_ROUNDS {
            let before = spreader.found.conflicts;
            spreader.run(&seeds);
            if spreader.found.conflicts == before {
                is_settled = true;
                break;
            }
        }
        let mut found = spreader.found;
        if !is_settled {
            found.flags.iter_mut().for_each(|flags| *flags |= GUESSED);
        }
        guess::fill(graph, &mut found);
        found
    }
}

/// A variable with a type.
struct Seed {
    block: u32,
    declared: TypeId,
    is_guessed: bool,
}

/// How a block goes with the type of a pointer to it.
enum Admission {
    /// It looks like this type.
    Agrees(TypeId),
    /// The type does not say what its blocks look like.
    Unchecked(TypeId),
    /// It does not look like this type.
    Contradicts(TypeId),
}

struct Spreader<'g, G> {
    graph: &'g G,
    found: BlockTypes,
    /// By type; made when first needed.
    layouts: HashMap<TypeId, Layout>,
    /// Blocks whose types have changed.
    queue: VecDeque<u32>,
}

impl<G: TypedBlocks> Spreader<'_, G> {
    /// The variables that types spread from.
    fn seeds(&mut self, roots: &[GlobalRoot<'_>]) -> Vec<Seed> {
        let mut by_module: BTreeMap<&str, Vec<&GlobalRoot<'_>>> = BTreeMap::new();
        for root in roots {
            by_module.entry(root.module).or_default().push(root);
        }
        let table = Arc::clone(&self.found.table);
        let mut seeds = Vec::new();
        let mut seen = BTreeSet::new();
        for module in table.modules() {
            if seen.insert(&*module.name)
                && let Some(roots) = by_module.get(&*module.name)
            {
                seeds.append(&mut self.seeds_of_module(module, roots));
            }
        }
        seeds
    }

    /// A module with a variable that contradicts its type was declared from another build, and
    /// is not believed.
    fn seeds_of_module(&mut self, module: &ModuleGlobals, roots: &[&GlobalRoot<'_>]) -> Vec<Seed> {
        let table = Arc::clone(&self.found.table);
        let mut seeds = Vec::new();
        let mut problem = None;
        for root in roots {
            let Some(field) = module.fields.get(root.field as usize) else {
                // One more may hold the cache of method calls (`lambda/translobj.ml`, 4.14.1).
                if module.is_complete && root.field as usize > module.fields.len() {
                    problem = Some(ProblemKind::UndeclaredField(root.field));
                    seeds.clear();
                    break;
                }
                continue;
            };
            let declared = self.found.types.instantiate(&table, field.expression, &[]);
            if matches!(self.admit(root.block, declared), Admission::Contradicts(_)) {
                problem = problem.or(Some(ProblemKind::Mismatch(root.field)));
            }
            seeds.push(Seed { block: root.block, declared, is_guessed: false });
        }
        let doubt = (!module.is_certain).then_some(ProblemKind::OtherBuild);
        if let Some(kind) = problem.or(doubt) {
            self.found.problems.push(ModuleProblem { module: module.name.to_string(), kind });
            seeds.iter_mut().for_each(|seed| seed.is_guessed = true);
        }
        seeds
    }

    /// One round, in which the conflicts of earlier ones are known.
    fn run(&mut self, seeds: &[Seed]) {
        self.found.of_block.fill(TypeId::UNKNOWN);
        self.found.flags.iter_mut().for_each(|flags| *flags &= CONFLICT);
        self.found.mismatches.clear();
        for seed in seeds {
            self.arrive(seed.block, seed.declared, seed.is_guessed);
        }
        let mut arrivals = Vec::new();
        while let Some(block) = self.queue.pop_front() {
            let Some(flags) = self.found.flags.get_mut(block as usize) else { continue };
            *flags &= !QUEUED;
            let is_guessed = *flags & (GUESSED | CONFLICT) != 0;
            self.list_targets(block, &mut arrivals);
            for (target, declared) in arrivals.drain(..) {
                self.arrive(target, declared, is_guessed);
            }
        }
    }

    /// The blocks that a block points to, with the types that its own type declares.
    fn list_targets(&mut self, block: u32, targets: &mut Vec<(u32, TypeId)>) {
        let Some(&id) = self.found.of_block.get(block as usize) else { return };
        let graph = self.graph;
        let (tag, words) = graph.shape(block);
        let Fit::Agrees(types) = self.layout(id).fit(tag, words) else { return };
        if matches!(types, FieldTypes::None) {
            return;
        }
        let pointers = graph.fields(block).iter().zip(graph.targets(block));
        targets.extend(
            pointers
                .map(|(&field, &target)| (target, types.get(field)))
                .filter(|(_, declared)| *declared != TypeId::UNKNOWN),
        );
    }

    /// A pointer with a declared type leads to a block.
    fn arrive(&mut self, block: u32, declared: TypeId, is_guessed: bool) {
        let (new, is_guessed) = match self.admit(block, declared) {
            Admission::Contradicts(expected) => {
                return self.found.note_mismatch(block, self.graph.shape(block), expected);
            }
            Admission::Unchecked(TypeId::UNKNOWN) => return,
            Admission::Unchecked(id) => (id, true),
            Admission::Agrees(id) => (id, is_guessed),
        };
        let BlockTypes { of_block, flags, types, conflicts, .. } = &mut self.found;
        let (Some(of_block), Some(flags)) =
            (of_block.get_mut(block as usize), flags.get_mut(block as usize))
        else {
            return;
        };
        let was_guessed = *flags & GUESSED != 0;
        let is_better = if *of_block == TypeId::UNKNOWN {
            true
        } else if *flags & CONFLICT != 0 || is_guessed {
            false
        } else if was_guessed {
            true
        } else {
            match compare(types, *of_block, new) {
                Comparison::Same | Comparison::LessIsKnown => false,
                Comparison::MoreIsKnown => true,
                Comparison::Conflict => {
                    *flags |= CONFLICT;
                    *conflicts += 1;
                    false
                }
            }
        };
        if is_better {
            *of_block = new;
            *flags = *flags & !GUESSED | if is_guessed { GUESSED } else { 0 };
            if *flags & QUEUED == 0 {
                *flags |= QUEUED;
                self.queue.push_back(block);
            }
        }
    }

    /// The type that a block has by a pointer that is declared to have this one.
    fn admit(&mut self, block: u32, declared: TypeId) -> Admission {
        let graph = self.graph;
        let (tag, words) = graph.shape(block);
        let mut id = self.found.types.resolve(&self.found.table, declared);
        for _ in 0..DEEPEST_LAZY {
            let types = match self.layout(id).fit(tag, words) {
                Fit::Unchecked => return Admission::Unchecked(id),
                Fit::Contradicts => return Admission::Contradicts(id),
                Fit::Is(other) => {
                    id = self.found.types.resolve(&self.found.table, other);
                    continue;
                }
                Fit::Agrees(types) => types,
            };
            let mut fields = graph.fields(block).iter();
            return if fields.any(|&field| types.get(field) == TypeId::IMMEDIATE) {
                Admission::Contradicts(id)
            } else {
                Admission::Agrees(id)
            };
        }
        Admission::Unchecked(TypeId::UNKNOWN)
    }

    fn layout(&mut self, id: TypeId) -> &Layout {
        let BlockTypes { table, types, .. } = &mut self.found;
        self.layouts.entry(id).or_insert_with(|| Layout::of(table, types, id))
    }
}

enum Comparison {
    Same,
    MoreIsKnown,
    LessIsKnown,
    Conflict,
}

/// Compares a new type of a block with the one that it has. Both are declared.
fn compare(types: &GroundTypes, old: TypeId, new: TypeId) -> Comparison {
    if old == new {
        return Comparison::Same;
    }
    let is_same_constructor = match (types.get(old), types.get(new)) {
        (GroundType::Named { definition: a, .. }, GroundType::Named { definition: b, .. }) => {
            a == b
        }
        (GroundType::Tuple(a), GroundType::Tuple(b)) => a.len() == b.len(),
        (GroundType::Function { .. }, GroundType::Function { .. }) => true,
        _ => false,
    };
    match (is_same_constructor, types.has_unknown(old), types.has_unknown(new)) {
        (true, true, false) => Comparison::MoreIsKnown,
        (true, _, true) => Comparison::LessIsKnown,
        _ => Comparison::Conflict,
    }
}
