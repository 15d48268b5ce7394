//! Types as names of blocks and variables.

use std::collections::HashMap;

use heaptap_heap::RootOwner;

use super::block_types::{BlockTypes, ProblemKind, TypeSource};
use super::ground::{GroundType, TypeId};
use crate::graph::{GivenName, GivenNames, HeapGraph, RootHolder};

impl BlockTypes {
    /// The names that blocks and variables get from their types.
    ///
    /// What the tag alone says is left to the kinds of blocks, which also know the function of a
    /// closure and the identifier of a custom block. A guessed type is marked.
    pub fn given_names(&mut self, graph: &HeapGraph) -> GivenNames {
        let mut names = GivenNames::new(graph.blocks());
        let mut ids: HashMap<(TypeId, TypeSource), GivenName> = HashMap::new();
        for block in 0..graph.blocks() as u32 {
            let Some((id, source)) = self.get(block) else { continue };
            let is_function = matches!(self.types.get(id), GroundType::Function { .. });
            if source == TypeSource::Tag || is_function {
                continue;
            }
            let name = *ids.entry((id, source)).or_insert_with(|| {
                let name = self.name(id);
                names.id(if source == TypeSource::Guessed { name + " (guessed)" } else { name })
            });
            names.set(block, name);
        }
        self.name_variables(graph, &mut names);
        names
    }

    fn name_variables(&mut self, graph: &HeapGraph, names: &mut GivenNames) {
        for (holder, _) in graph.roots() {
            let RootHolder::Owner(RootOwner::Global { module, field }) = holder else { continue };
            if names.variable(module, field).is_some() {
                continue;
            }
            let Some(text) = graph.facts().module(module) else { continue };
            let Ok(module_name) = std::str::from_utf8(text) else { continue };
            let Some((name, type_name)) = self.variable(module_name, field) else { continue };
            let problem = self.problems.iter().find(|problem| problem.module == module_name);
            let mark = match problem.map(|problem| problem.kind) {
                None => "",
                Some(ProblemKind::Mismatch(_) | ProblemKind::OtherBuild) => " (guessed)",
                Some(ProblemKind::UndeclaredField(_)) => continue,
            };
            names.set_variable(module, field, format!("{name} : {type_name}{mark}"));
        }
    }
}
