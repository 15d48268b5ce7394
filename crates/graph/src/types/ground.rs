//! Types without parameters.
//!
//! Each has a number, and two that are written alike have the same. A definition applied to
//! itself in ever bigger types, as nested data types do, makes ever more of them: beyond
//! [`MOST_TYPES`] everything new is unknown.
//!
//! Arguments are never aliases, so that a type has one number whatever it is called.

use std::collections::HashMap;

use super::table::{Builtin, DefinitionBody, PolymorphicCase, TypeExpression, TypeTable};

/// The number of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeId(pub(super) u32);

impl TypeId {
    /// Nothing is known.
    pub(super) const UNKNOWN: TypeId = TypeId(0);
    /// Of a field: no pointer. Ground types never have this number.
    pub(super) const IMMEDIATE: TypeId = TypeId(u32::MAX);

    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// At most this number of types have numbers.
const MOST_TYPES: usize = 1 << 21;

/// Chains of aliases are followed this far.
const LONGEST_ALIAS: usize = 100;

/// Aliases within aliases are followed this deep. Those of OCaml have no circles, others might.
const DEEPEST_ALIAS: u32 = 50;

/// After this number of aliases no more are followed: hostile ones grow without end.
const MOST_ALIASES: u64 = 10_000_000;

/// A type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum GroundType {
    Unknown,
    Object,
    Named { definition: u32, arguments: Box<[TypeId]> },
    Tuple(Box<[TypeId]>),
    Function { argument: TypeId, result: TypeId },
    Polymorphic(Box<[(Box<str>, Option<TypeId>)]>),
    Module(u32),
}

/// The types that have numbers.
#[derive(Debug)]
pub(super) struct GroundTypes {
    numbers: HashMap<GroundType, TypeId>,
    types: Vec<GroundType>,
    /// By type: whether something in it is unknown.
    has_unknown: Vec<bool>,
    /// By type: what it is an alias of, itself if of none or while that is looked for; `None` if
    /// not looked for yet.
    resolved: Vec<Option<TypeId>>,
    /// How deep in aliases the search is.
    alias_depth: u32,
    /// How many aliases were followed.
    aliases: u64,
}

impl GroundTypes {
    pub(super) fn new() -> GroundTypes {
        let mut types = GroundTypes {
            numbers: HashMap::new(),
            types: Vec::new(),
            has_unknown: Vec::new(),
            resolved: Vec::new(),
            alias_depth: 0,
            aliases: 0,
        };
        types.number(GroundType::Unknown);
        types
    }

    pub(super) fn get(&self, id: TypeId) -> &GroundType {
        self.types.get(id.index()).unwrap_or(&GroundType::Unknown)
    }

    /// Whether a part of the type is unknown.
    pub(super) fn has_unknown(&self, id: TypeId) -> bool {
        self.has_unknown.get(id.index()).copied().unwrap_or(true)
    }

    fn number(&mut self, ground: GroundType) -> TypeId {
        if let Some(id) = self.numbers.get(&ground) {
            return *id;
        }
        if self.types.len() >= MOST_TYPES {
            return TypeId::UNKNOWN;
        }
        let id = TypeId(self.types.len() as u32);
        let has_unknown = match &ground {
            GroundType::Unknown => true,
            GroundType::Object | GroundType::Module(_) => false,
            GroundType::Named { arguments, .. } => self.any_unknown(arguments),
            GroundType::Tuple(parts) => self.any_unknown(parts),
            GroundType::Function { argument, result } => self.any_unknown(&[*argument, *result]),
            GroundType::Polymorphic(cases) => {
                cases.iter().any(|(_, argument)| argument.is_some_and(|id| self.has_unknown(id)))
            }
        };
        self.numbers.insert(ground.clone(), id);
        self.types.push(ground);
        self.has_unknown.push(has_unknown);
        self.resolved.push(None);
        id
    }

    fn any_unknown(&self, parts: &[TypeId]) -> bool {
        parts.iter().any(|&id| self.has_unknown(id))
    }

    /// The type that an expression is for these arguments.
    pub(super) fn instantiate(
        &mut self,
        table: &TypeTable,
        expression: u32,
        arguments: &[TypeId],
    ) -> TypeId {
        // Parts that are shared are made once: written out, an expression can be exponentially long.
        let mut made = HashMap::new();
        self.instantiate_part(table, expression, arguments, &mut made)
    }

    /// Recurses as deep as the expression, which [`TypeTable::DEEPEST`] bounds.
    fn instantiate_part(
        &mut self,
        table: &TypeTable,
        index: u32,
        arguments: &[TypeId],
        made: &mut HashMap<u32, TypeId>,
    ) -> TypeId {
        if let Some(id) = made.get(&index) {
            return *id;
        }
        let expression = table.expression(index);
        let parts: Vec<TypeId> = expression
            .parts()
            .map(|part| {
                let id = self.instantiate_part(table, part, arguments, made);
                self.resolve(table, id)
            })
            .collect();
        let ground = match expression {
            TypeExpression::Unknown => GroundType::Unknown,
            TypeExpression::Object => GroundType::Object,
            TypeExpression::Parameter(parameter) => {
                let id = arguments.get(*parameter as usize).copied();
                return id.unwrap_or(TypeId::UNKNOWN);
            }
            TypeExpression::Named { definition, .. } => {
                GroundType::Named { definition: *definition, arguments: parts.into() }
            }
            TypeExpression::Tuple(_) => GroundType::Tuple(parts.into()),
            TypeExpression::Function { .. } => match parts.as_slice() {
                &[argument, result] => GroundType::Function { argument, result },
                _ => GroundType::Unknown,
            },
            TypeExpression::Polymorphic(cases) => {
                let mut parts = parts.into_iter();
                let case = |case: &PolymorphicCase| {
                    (case.name.clone(), case.argument.and_then(|_| parts.next()))
                };
                GroundType::Polymorphic(cases.iter().map(case).collect())
            }
            TypeExpression::Module(definition) => GroundType::Module(*definition),
        };
        let id = self.number(ground);
        made.insert(index, id);
        id
    }

    /// The type itself, for another name of it.
    pub(super) fn resolve(&mut self, table: &TypeTable, id: TypeId) -> TypeId {
        if let Some(Some(resolved)) = self.resolved.get(id.index()) {
            return *resolved;
        }
        if self.alias_depth >= DEEPEST_ALIAS {
            return id;
        }
        self.set_resolved(id, id);
        self.alias_depth += 1;
        let mut at = id;
        for _ in 0..LONGEST_ALIAS {
            let GroundType::Named { definition, arguments } = self.get(at) else { break };
            let Some(definition) = table.definition(*definition) else { break };
            let DefinitionBody::Alias(target) = definition.body else { break };
            if self.aliases >= MOST_ALIASES {
                break;
            }
            let arguments = arguments.clone();
            self.aliases += 1;
            let next = self.instantiate(table, target, &arguments);
            if next == at || next == TypeId::UNKNOWN {
                break;
            }
            at = next;
        }
        self.alias_depth -= 1;
        self.set_resolved(id, at);
        at
    }

    fn set_resolved(&mut self, id: TypeId, resolved: TypeId) {
        if let Some(slot) = self.resolved.get_mut(id.index()) {
            *slot = Some(resolved);
        }
    }

    /// The type of a field, or [`TypeId::IMMEDIATE`] if its values are never blocks.
    pub(super) fn of_field(&mut self, table: &TypeTable, id: TypeId) -> TypeId {
        let resolved = self.resolve(table, id);
        let is_immediate = match self.get(resolved) {
            GroundType::Named { definition, .. } => {
                table.definition(*definition).is_some_and(|definition| match &definition.body {
                    DefinitionBody::Builtin(Builtin::Immediate) => true,
                    DefinitionBody::Variant { constructors, .. } => constructors.is_empty(),
                    _ => false,
                })
            }
            GroundType::Polymorphic(cases) => cases.iter().all(|(_, argument)| argument.is_none()),
            _ => false,
        };
        if is_immediate { TypeId::IMMEDIATE } else { id }
    }
}
