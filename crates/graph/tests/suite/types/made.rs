//! Tables and graphs made by hand.

use heaptap_graph::{
    BlockTypes, Builtin, Constructor, Definition, DefinitionBody, FieldType, GlobalRoot,
    ModuleGlobals, TypeExpression, TypeSource, TypeTable, TypedBlocks,
};

pub(super) const INT: u32 = 0;
pub(super) const STRING: u32 = 1;
pub(super) const FLOAT: u32 = 2;
pub(super) const LIST: u32 = 3;
pub(super) const OPTION: u32 = 4;
pub(super) const ENTRY: u32 = 5;
pub(super) const TREE: u32 = 6;
pub(super) const ARRAY: u32 = 7;
pub(super) const PAIR: u32 = 8;
pub(super) const LAZY: u32 = 9;
pub(super) const HIDDEN: u32 = 10;
pub(super) const NESTED: u32 = 11;
pub(super) const POINT: u32 = 12;
pub(super) const REF: u32 = 13;

/// Builds a table in which every expression is there once.
#[derive(Default)]
pub(super) struct TableBuilder {
    pub(super) expressions: Vec<TypeExpression>,
    pub(super) definitions: Vec<Definition>,
    pub(super) modules: Vec<ModuleGlobals>,
}

impl TableBuilder {
    pub(super) fn add(&mut self, expression: TypeExpression) -> u32 {
        let found = self.expressions.iter().position(|there| *there == expression);
        found.unwrap_or_else(|| {
            self.expressions.push(expression);
            self.expressions.len() - 1
        }) as u32
    }

    pub(super) fn named(&mut self, definition: u32, arguments: &[u32]) -> u32 {
        self.add(TypeExpression::Named { definition, arguments: arguments.to_vec() })
    }

    pub(super) fn define(&mut self, name: &str, body: DefinitionBody) {
        self.definitions.push(Definition { name: name.into(), body });
    }

    pub(super) fn module(&mut self, name: &str, fields: &[u32]) {
        let fields = fields.iter().map(|&expression| field("x", expression)).collect();
        self.modules.push(ModuleGlobals {
            name: name.into(),
            is_complete: true,
            is_certain: true,
            fields,
        });
    }

    pub(super) fn build(self) -> TypeTable {
        TypeTable::new(self.expressions, self.definitions, self.modules).unwrap()
    }

    /// The definitions above.
    pub(super) fn usual() -> TableBuilder {
        let mut builder = TableBuilder::default();
        let parameter = builder.add(TypeExpression::Parameter(0));
        let int = builder.named(INT, &[]);
        let string = builder.named(STRING, &[]);
        let float = builder.named(FLOAT, &[]);
        let list = builder.named(LIST, &[parameter]);
        let entry = builder.named(ENTRY, &[]);
        let next = builder.named(OPTION, &[entry]);
        let values = builder.named(LIST, &[float]);
        let tree = builder.named(TREE, &[parameter]);
        let pair = builder.add(TypeExpression::Tuple(vec![parameter, parameter]));
        let nested = builder.named(NESTED, &[pair]);
        let variant = |constructors: &[&[u32]]| DefinitionBody::Variant {
            constants: 1,
            constructors: constructors.iter().map(|fields| constructor(fields)).collect(),
        };
        builder.define("int", DefinitionBody::Builtin(Builtin::Immediate));
        builder.define("string", DefinitionBody::Builtin(Builtin::String));
        builder.define("float", DefinitionBody::Builtin(Builtin::Float));
        builder.define("list", variant(&[&[parameter, list]]));
        builder.define("option", variant(&[&[parameter]]));
        let fields = [("name", string), ("size", int), ("next", next), ("values", values)];
        let fields = fields.map(|(name, expression)| field(name, expression)).to_vec();
        builder.define("entry", DefinitionBody::Record(fields));
        builder.define("tree", variant(&[&[tree, parameter, tree], &[parameter]]));
        builder.define("array", DefinitionBody::Builtin(Builtin::Array));
        builder.define("pair", DefinitionBody::Alias(pair));
        builder.define("Lazy.t", DefinitionBody::Builtin(Builtin::Lazy));
        builder.define("Hidden.t", DefinitionBody::Abstract);
        builder.define("nested", variant(&[&[parameter, nested]]));
        builder.define("point", DefinitionBody::FloatRecord(2));
        builder.define("ref", DefinitionBody::Record(vec![field("contents", parameter)]));
        builder
    }
}

pub(super) fn field(name: &str, expression: u32) -> FieldType {
    FieldType { name: name.into(), expression }
}

fn constructor(fields: &[u32]) -> Constructor {
    let fields = fields.iter().map(|&expression| field("", expression)).collect();
    Constructor { name: "C".into(), fields }
}

/// Blocks in memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Blocks {
    pub(super) shapes: Vec<(u32, u64)>,
    pub(super) fields: Vec<Vec<u32>>,
    pub(super) targets: Vec<Vec<u32>>,
}

impl Blocks {
    /// A block with these fields; `None` is no pointer.
    pub(super) fn add(&mut self, tag: u32, fields: &[Option<u32>]) -> u32 {
        let block = self.shapes.len() as u32;
        self.shapes.push((tag, fields.len() as u64));
        let pointers =
            || fields.iter().enumerate().filter_map(|(at, to)| Some((at as u32, (*to)?)));
        self.fields.push(pointers().map(|(at, _)| at).collect());
        self.targets.push(pointers().map(|(_, to)| to).collect());
        block
    }
}

impl TypedBlocks for Blocks {
    fn blocks(&self) -> usize {
        self.shapes.len()
    }

    fn shape(&self, block: u32) -> (u32, u64) {
        self.shapes[block as usize]
    }

    fn targets(&self, block: u32) -> &[u32] {
        &self.targets[block as usize]
    }

    fn fields(&self, block: u32) -> &[u32] {
        &self.fields[block as usize]
    }
}

/// The variables of the module `M`, which point to these blocks.
pub(super) fn roots(blocks: &[u32]) -> Vec<GlobalRoot<'static>> {
    let root = |(field, &block)| GlobalRoot { module: "M", field: field as u32, block };
    blocks.iter().enumerate().map(root).collect()
}

/// Name and source of a block's type.
pub(super) fn named(types: &BlockTypes, block: u32) -> Option<(String, TypeSource)> {
    types.get(block).map(|(id, source)| (types.name(id), source))
}

pub(super) fn declared(name: &str) -> Option<(String, TypeSource)> {
    Some((name.to_owned(), TypeSource::Declared))
}

pub(super) fn guessed(name: &str) -> Option<(String, TypeSource)> {
    Some((name.to_owned(), TypeSource::Guessed))
}
