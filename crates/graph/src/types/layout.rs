//! What a block of a type looks like (OCaml 4.12 to 5.3, `runtime/caml/mlvalues.h`).

use super::ground::{GroundType, GroundTypes, TypeId};
use super::table::{Builtin, DefinitionBody, FieldType, TypeTable};

/// Tags of blocks (`runtime/caml/mlvalues.h`, 4.14.1; `Forcing_tag` since 5.1).
pub(super) mod tags {
    pub(crate) const FORCING: u32 = 244;
    pub(crate) const LAZY: u32 = 246;
    pub(crate) const CLOSURE: u32 = 247;
    pub(crate) const OBJECT: u32 = 248;
    pub(crate) const INFIX: u32 = 249;
    pub(crate) const FORWARD: u32 = 250;
    pub(crate) const STRING: u32 = 252;
    pub(crate) const DOUBLE: u32 = 253;
    pub(crate) const DOUBLE_ARRAY: u32 = 254;
    pub(crate) const CUSTOM: u32 = 255;
}

/// A block with this tag has these fields.
#[derive(Debug)]
pub(super) struct BlockCase {
    tag: u32,
    fields: Box<[TypeId]>,
}

/// What a block of a type looks like.
#[derive(Debug)]
pub(super) enum Layout {
    /// Not known.
    Opaque,
    /// There are no blocks of this type.
    Immediate,
    /// A block with one tag, of any size if it is `None`, without typed fields.
    Leaf {
        tag: u32,
        words: Option<u64>,
    },
    /// One of these. At most one for each tag.
    Cases(Vec<BlockCase>),
    /// An array of pointers and numbers, or of floats if the element's type does not exclude them.
    Array {
        element: TypeId,
        may_be_floats: bool,
    },
    Lazy {
        value: TypeId,
    },
    /// An extensible variant: its constructor, or a block that begins with that.
    Open,
    /// A polymorphic variant; the type of the argument, if all cases have the same.
    Polymorphic {
        argument: TypeId,
    },
}

/// What the fields of a block hold. A field of [`TypeId::IMMEDIATE`] holds no pointer.
#[derive(Clone, Copy, Debug)]
pub(super) enum FieldTypes<'a> {
    /// Nothing that has a type.
    None,
    /// One type each.
    Each(&'a [TypeId]),
    /// All of one type.
    All(TypeId),
    /// Only this field.
    Only(u32, TypeId),
}

impl FieldTypes<'_> {
    pub(super) fn get(self, field: u32) -> TypeId {
        match self {
            FieldTypes::None => TypeId::UNKNOWN,
            FieldTypes::Each(types) => {
                types.get(field as usize).copied().unwrap_or(TypeId::UNKNOWN)
            }
            FieldTypes::All(id) => id,
            FieldTypes::Only(only, id) if only == field => id,
            FieldTypes::Only(..) => TypeId::UNKNOWN,
        }
    }
}

/// How a block and a type go together.
#[derive(Debug)]
pub(super) enum Fit<'a> {
    /// The block looks as the type says. Its fields hold this.
    Agrees(FieldTypes<'a>),
    /// The type does not say what its blocks look like.
    Unchecked,
    /// The block is of this other type: the runtime leaves out a block between.
    Is(TypeId),
    /// No block of the type looks like this.
    Contradicts,
}

impl Layout {
    /// The layout of a type that is no alias.
    pub(super) fn of(table: &TypeTable, types: &mut GroundTypes, id: TypeId) -> Layout {
        match types.get(id).clone() {
            GroundType::Unknown => Layout::Opaque,
            GroundType::Object => Layout::Leaf { tag: tags::OBJECT, words: None },
            GroundType::Tuple(parts) => {
                let fields = parts.iter().map(|&part| types.of_field(table, part)).collect();
                Layout::Cases(vec![BlockCase { tag: 0, fields }])
            }
            GroundType::Function { .. } => Layout::Leaf { tag: tags::CLOSURE, words: None },
            GroundType::Polymorphic(cases) => of_polymorphic(table, types, &cases),
            GroundType::Module(definition) => of_definition(table, types, definition, &[]),
            GroundType::Named { definition, arguments } => {
                of_definition(table, types, definition, &arguments)
            }
        }
    }

    /// Whether a block of this shape can be of the type.
    pub(super) fn fit(&self, tag: u32, words: u64) -> Fit<'_> {
        let fits = match self {
            Layout::Opaque => return Fit::Unchecked,
            Layout::Immediate => false,
            Layout::Leaf { tag: expected, words: size } => {
                *expected == tag && size.is_none_or(|size| size == words)
            }
            Layout::Cases(cases) => {
                return cases
                    .iter()
                    .find(|case| case.tag == tag && case.fields.len() as u64 == words)
                    .map_or(Fit::Contradicts, |case| Fit::Agrees(FieldTypes::Each(&case.fields)));
            }
            Layout::Array { element, .. } if tag == 0 => {
                return Fit::Agrees(FieldTypes::All(*element));
            }
            Layout::Array { may_be_floats, .. } => *may_be_floats && tag == tags::DOUBLE_ARRAY,
            Layout::Lazy { value } => return fit_lazy(*value, tag, words),
            Layout::Open => {
                // `caml_alloc_small(…, Object_tag)` for constructors (`lambda/translcore.ml`).
                tag == tags::OBJECT && words == 2 || tag == 0 && words >= 2
            }
            Layout::Polymorphic { argument } if tag == 0 && words == 2 => {
                return Fit::Agrees(FieldTypes::Only(1, *argument));
            }
            Layout::Polymorphic { .. } => false,
        };
        if fits { Fit::Agrees(FieldTypes::None) } else { Fit::Contradicts }
    }
}

/// Once forced, a suspension becomes a pointer to its value, and the collector may replace
/// pointers to it by its value (`runtime/major_gc.c`, `runtime/minor_gc.c`).
fn fit_lazy<'a>(value: TypeId, tag: u32, words: u64) -> Fit<'a> {
    match tag {
        tags::LAZY | tags::FORCING if words == 1 => Fit::Agrees(FieldTypes::None),
        tags::FORWARD if words == 1 => Fit::Agrees(FieldTypes::Only(0, value)),
        tags::LAZY | tags::FORCING | tags::FORWARD => Fit::Contradicts,
        _ if value == TypeId::IMMEDIATE => Fit::Contradicts,
        _ => Fit::Is(value),
    }
}

fn of_polymorphic(
    table: &TypeTable,
    types: &mut GroundTypes,
    cases: &[(Box<str>, Option<TypeId>)],
) -> Layout {
    let mut arguments = cases.iter().filter_map(|(_, argument)| *argument);
    // The case is a number in the block, which snapshots do not have.
    match arguments.next() {
        None => Layout::Immediate,
        Some(first) if arguments.all(|argument| argument == first) => {
            Layout::Polymorphic { argument: types.of_field(table, first) }
        }
        Some(_) => Layout::Polymorphic { argument: TypeId::UNKNOWN },
    }
}

fn of_definition(
    table: &TypeTable,
    types: &mut GroundTypes,
    definition: u32,
    arguments: &[TypeId],
) -> Layout {
    let Some(definition) = table.definition(definition) else { return Layout::Opaque };
    if let DefinitionBody::Builtin(builtin) = definition.body {
        return of_builtin(table, types, builtin, arguments);
    }
    let mut instances = |fields: &[FieldType]| {
        let instance = |field: &FieldType| {
            let id = types.instantiate(table, field.expression, arguments);
            types.of_field(table, id)
        };
        fields.iter().map(instance).collect::<Box<[TypeId]>>()
    };
    match &definition.body {
        DefinitionBody::Abstract | DefinitionBody::Alias(_) | DefinitionBody::Builtin(_) => {
            Layout::Opaque
        }
        DefinitionBody::Open => Layout::Open,
        DefinitionBody::Record(fields) | DefinitionBody::Module(fields) => {
            Layout::Cases(vec![BlockCase { tag: 0, fields: instances(fields) }])
        }
        DefinitionBody::FloatRecord(fields) => {
            Layout::Leaf { tag: tags::DOUBLE_ARRAY, words: Some((*fields).into()) }
        }
        DefinitionBody::Variant { constructors, .. } if constructors.is_empty() => {
            Layout::Immediate
        }
        DefinitionBody::Variant { constructors, .. } => {
            let case = |(tag, constructor): (usize, &super::table::Constructor)| BlockCase {
                tag: tag as u32,
                fields: instances(&constructor.fields),
            };
            Layout::Cases(constructors.iter().enumerate().map(case).collect())
        }
    }
}

fn of_builtin(
    table: &TypeTable,
    types: &mut GroundTypes,
    builtin: Builtin,
    arguments: &[TypeId],
) -> Layout {
    let argument = arguments.first().copied().unwrap_or(TypeId::UNKNOWN);
    match builtin {
        Builtin::Immediate => Layout::Immediate,
        Builtin::String => Layout::Leaf { tag: tags::STRING, words: None },
        Builtin::Float => Layout::Leaf { tag: tags::DOUBLE, words: Some(1) },
        Builtin::FloatArray => Layout::Leaf { tag: tags::DOUBLE_ARRAY, words: None },
        Builtin::BoxedInteger => Layout::Leaf { tag: tags::CUSTOM, words: None },
        Builtin::ExtensionConstructor => Layout::Leaf { tag: tags::OBJECT, words: Some(2) },
        Builtin::Array => of_array(table, types, argument),
        Builtin::Lazy => Layout::Lazy { value: types.of_field(table, argument) },
    }
}

/// The runtime tells arrays of floats apart by their first element, whatever the type says.
fn of_array(table: &TypeTable, types: &mut GroundTypes, element: TypeId) -> Layout {
    let resolved = types.resolve(table, element);
    let element = types.of_field(table, element);
    let body = match types.get(resolved) {
        GroundType::Unknown => None,
        GroundType::Named { definition, .. } => table.definition(*definition),
        _ => return Layout::Array { element, may_be_floats: false },
    };
    match body.map(|definition| &definition.body) {
        Some(DefinitionBody::Builtin(Builtin::Float)) => {
            Layout::Leaf { tag: tags::DOUBLE_ARRAY, words: None }
        }
        None | Some(DefinitionBody::Abstract | DefinitionBody::Alias(_)) => {
            Layout::Array { element, may_be_floats: true }
        }
        Some(_) => Layout::Array { element, may_be_floats: false },
    }
}
