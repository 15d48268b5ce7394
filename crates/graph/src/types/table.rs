//! What is declared: the types of the variables of modules, and the definitions of types.
//!
//! Expressions and definitions refer to each other by their indices. An expression refers only to
//! expressions before it, so that it has no cycles; definitions refer to any expression.

use std::fmt;

/// A type, with parameters of the definition that it is part of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeExpression {
    /// A variable that nothing is known about, or a type that has no name here.
    Unknown,
    /// An object.
    Object,
    /// A parameter of the definition.
    Parameter(u32),
    /// A definition with its arguments.
    Named {
        /// The definition.
        definition: u32,
        /// Expressions, one for each parameter.
        arguments: Vec<u32>,
    },
    /// A tuple.
    Tuple(Vec<u32>),
    /// A function.
    Function {
        /// The expression of the argument.
        argument: u32,
        /// The expression of the result.
        result: u32,
    },
    /// A polymorphic variant.
    Polymorphic(Vec<PolymorphicCase>),
    /// The block of a module, whose definition is a [`DefinitionBody::Module`].
    Module(u32),
}

/// A case of a polymorphic variant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolymorphicCase {
    /// Its name, without the backquote.
    pub name: Box<str>,
    /// The expression of its argument.
    pub argument: Option<u32>,
}

/// A type that the compiler or the runtime defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Builtin {
    /// A number, character or constant: never a block.
    Immediate,
    /// A string or bytes.
    String,
    /// A boxed float.
    Float,
    /// An array of its first argument.
    Array,
    /// An array of floats.
    FloatArray,
    /// A boxed integer, which is a custom block.
    BoxedInteger,
    /// A suspension of its first argument.
    Lazy,
    /// What identifies an exception or another extension of an open type.
    ExtensionConstructor,
}

/// A field of a record, a constructor or a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldType {
    /// Its name; may be empty.
    pub name: Box<str>,
    /// The expression of its type.
    pub expression: u32,
}

/// A constructor with arguments. Its tag is its number among those.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constructor {
    /// Its name.
    pub name: Box<str>,
    /// Its arguments, at least one.
    pub fields: Vec<FieldType>,
}

/// What a type is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DefinitionBody {
    /// Not known.
    Abstract,
    /// Extensible, such as exceptions.
    Open,
    /// Known to the runtime.
    Builtin(Builtin),
    /// Another name of a type.
    Alias(u32),
    /// A record, or a tuple with names.
    Record(Vec<FieldType>),
    /// A record of this number of floats, which are not boxed.
    FloatRecord(u32),
    /// A variant.
    Variant {
        /// How many constructors without arguments it has.
        constants: u32,
        /// Those with arguments.
        constructors: Vec<Constructor>,
    },
    /// The block of a module.
    Module(Vec<FieldType>),
}

/// A definition of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// Its name, such as `Cache.entry`.
    pub name: Box<str>,
    /// What it is made of.
    pub body: DefinitionBody,
}

/// The variables of a module, in the order of the fields of its static data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleGlobals {
    /// The module's name, as snapshots have it.
    pub name: Box<str>,
    /// Whether all variables are known, and not only those that the module exports.
    pub is_complete: bool,
    /// Whether they are declared for this build of the program, as far as anything says. Otherwise
    /// all types from here are guessed.
    pub is_certain: bool,
    /// Its variables.
    pub fields: Vec<FieldType>,
}

/// Why there is no table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableError {
    /// An expression refers to one that is not before it.
    Expression(usize),
    /// An expression nests deeper than [`TypeTable::DEEPEST`].
    TooDeep(usize),
    /// An expression or the definition of a module refers to a definition that is not there.
    Reference(usize),
    /// A definition refers to an expression that is not there.
    Definition(usize),
    /// A module refers to an expression that is not there.
    Module(usize),
    /// More than 2^30 expressions or definitions.
    TooBig,
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TableError::Expression(index) => {
                write!(f, "expression {index} refers to one that is not before it")
            }
            TableError::TooDeep(index) => write!(f, "expression {index} is nested too deeply"),
            TableError::Reference(index) => {
                write!(f, "expression {index} refers to a definition that is not there")
            }
            TableError::Definition(index) => {
                write!(f, "definition {index} refers to an expression that is not there")
            }
            TableError::Module(index) => {
                write!(f, "module {index} refers to an expression that is not there")
            }
            TableError::TooBig => f.write_str("more than 1,073,741,824 types"),
        }
    }
}

impl std::error::Error for TableError {}

/// Declared types. Every index in it is valid.
#[derive(Clone, Debug, Default)]
pub struct TypeTable {
    expressions: Vec<TypeExpression>,
    definitions: Vec<Definition>,
    modules: Vec<ModuleGlobals>,
}

impl TypeTable {
    /// How deep an expression may nest.
    pub const DEEPEST: u32 = 1000;

    /// A table of these parts, if they refer to each other rightly.
    pub fn new(
        expressions: Vec<TypeExpression>,
        definitions: Vec<Definition>,
        modules: Vec<ModuleGlobals>,
    ) -> Result<TypeTable, TableError> {
        if expressions.len().max(definitions.len()) > 1 << 30 {
            return Err(TableError::TooBig);
        }
        check_expressions(&expressions, &definitions)?;
        let is_valid = |index: &u32| (*index as usize) < expressions.len();
        for (index, definition) in definitions.iter().enumerate() {
            if !definition.body.expressions().all(|expression| is_valid(&expression)) {
                return Err(TableError::Definition(index));
            }
        }
        for (index, module) in modules.iter().enumerate() {
            if !module.fields.iter().all(|field| is_valid(&field.expression)) {
                return Err(TableError::Module(index));
            }
        }
        Ok(TypeTable { expressions, definitions, modules })
    }

    /// The modules whose variables have types.
    pub fn modules(&self) -> &[ModuleGlobals] {
        &self.modules
    }

    pub(super) fn expression(&self, index: u32) -> &TypeExpression {
        self.expressions.get(index as usize).unwrap_or(&TypeExpression::Unknown)
    }

    pub(super) fn definition(&self, index: u32) -> Option<&Definition> {
        self.definitions.get(index as usize)
    }
}

impl DefinitionBody {
    /// The expressions that it refers to.
    fn expressions(&self) -> impl Iterator<Item = u32> {
        let (alias, fields, constructors): (_, &[FieldType], &[Constructor]) = match self {
            DefinitionBody::Alias(target) => (Some(*target), &[], &[]),
            DefinitionBody::Record(fields) | DefinitionBody::Module(fields) => (None, fields, &[]),
            DefinitionBody::Variant { constructors, .. } => (None, &[], constructors),
            _ => (None, &[], &[]),
        };
        let of_constructors = constructors.iter().flat_map(|constructor| &constructor.fields);
        alias.into_iter().chain(fields.iter().chain(of_constructors).map(|field| field.expression))
    }
}

impl TypeExpression {
    /// The expressions that it refers to.
    pub(super) fn parts(&self) -> impl Iterator<Item = u32> {
        let (pair, list, cases): (_, &[u32], &[PolymorphicCase]) = match self {
            TypeExpression::Function { argument, result } => (Some([*argument, *result]), &[], &[]),
            TypeExpression::Named { arguments: list, .. } | TypeExpression::Tuple(list) => {
                (None, list, &[])
            }
            TypeExpression::Polymorphic(cases) => (None, &[], cases),
            _ => (None, &[], &[]),
        };
        let of_cases = cases.iter().filter_map(|case| case.argument);
        pair.into_iter().flatten().chain(list.iter().copied()).chain(of_cases)
    }
}

fn check_expressions(
    expressions: &[TypeExpression],
    definitions: &[Definition],
) -> Result<(), TableError> {
    let mut depths: Vec<u32> = Vec::with_capacity(expressions.len());
    for (index, expression) in expressions.iter().enumerate() {
        let mut depth = 0;
        for part in expression.parts() {
            let below = depths.get(part as usize).ok_or(TableError::Expression(index))?;
            depth = depth.max(below + 1);
        }
        if depth > TypeTable::DEEPEST {
            return Err(TableError::TooDeep(index));
        }
        depths.push(depth);
        let definition = match expression {
            TypeExpression::Named { definition, .. } | TypeExpression::Module(definition) => {
                *definition as usize
            }
            _ => continue,
        };
        if definition >= definitions.len() {
            return Err(TableError::Reference(index));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(definition: u32, arguments: &[u32]) -> TypeExpression {
        TypeExpression::Named { definition, arguments: arguments.to_vec() }
    }

    fn definition(body: DefinitionBody) -> Definition {
        Definition { name: "t".into(), body }
    }

    #[test]
    fn references_are_checked() {
        let list = || vec![definition(DefinitionBody::Abstract)];
        let new = |expressions, definitions, modules| {
            TypeTable::new(expressions, definitions, modules).map(|_| ())
        };
        assert_eq!(new(vec![named(0, &[])], list(), Vec::new()), Ok(()));
        assert_eq!(new(vec![named(1, &[])], list(), Vec::new()), Err(TableError::Reference(0)));
        assert_eq!(
            new(vec![TypeExpression::Tuple(vec![0])], list(), Vec::new()),
            Err(TableError::Expression(0))
        );
        let alias = vec![definition(DefinitionBody::Alias(0))];
        assert_eq!(new(Vec::new(), alias, Vec::new()), Err(TableError::Definition(0)));
        let field = FieldType { name: "x".into(), expression: 3 };
        let module = ModuleGlobals {
            name: "M".into(),
            is_complete: true,
            is_certain: true,
            fields: vec![field],
        };
        assert_eq!(new(Vec::new(), list(), vec![module]), Err(TableError::Module(0)));
    }

    #[test]
    fn deep_expressions_are_refused() {
        let chain = |length: u32| {
            let links = (0..length).map(|index| TypeExpression::Tuple(vec![index]));
            std::iter::once(TypeExpression::Unknown).chain(links).collect()
        };
        assert!(TypeTable::new(chain(TypeTable::DEEPEST), Vec::new(), Vec::new()).is_ok());
        let refused = TypeTable::new(chain(TypeTable::DEEPEST + 1), Vec::new(), Vec::new());
        assert_eq!(refused.unwrap_err(), TableError::TooDeep(1001));
    }
}
