//! Values made of known types have these types, and damaged ones have no wrong shape.

use heaptap_graph::{BlockTypes, TypeExpression, TypeSource, TypedBlocks as _};
use proptest::prelude::*;

use super::made::{
    ARRAY, Blocks, ENTRY, FLOAT, INT, LAZY, LIST, OPTION, PAIR, POINT, STRING, TREE, TableBuilder,
    named, roots,
};

/// A type, and how many elements its values have.
#[derive(Clone, Debug)]
enum Kind {
    Int,
    String,
    Float,
    Point,
    Entry(u8),
    List(Box<Kind>, u8),
    Option(Box<Kind>),
    Tree(Box<Kind>, u8),
    Array(Box<Kind>, u8),
    Pair(Box<Kind>),
    Lazy(Box<Kind>, u8),
}

fn kinds() -> impl Strategy<Value = Kind> {
    let leaf = prop_oneof![
        Just(Kind::Int),
        Just(Kind::String),
        Just(Kind::Float),
        Just(Kind::Point),
        (0u8..4).prop_map(Kind::Entry),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        let inner = inner.prop_map(Box::new);
        prop_oneof![
            (inner.clone(), 0u8..4).prop_map(|(kind, length)| Kind::List(kind, length)),
            inner.clone().prop_map(Kind::Option),
            (inner.clone(), 0u8..3).prop_map(|(kind, depth)| Kind::Tree(kind, depth)),
            (inner.clone(), 1u8..4).prop_map(|(kind, length)| Kind::Array(kind, length)),
            inner.clone().prop_map(Kind::Pair),
            (inner, 0u8..3).prop_map(|(kind, state)| Kind::Lazy(kind, state)),
        ]
    })
}

impl Kind {
    fn expression(&self, table: &mut TableBuilder) -> u32 {
        let (definition, inner) = match self {
            Kind::Int => (INT, None),
            Kind::String => (STRING, None),
            Kind::Float => (FLOAT, None),
            Kind::Point => (POINT, None),
            Kind::Entry(_) => (ENTRY, None),
            Kind::List(inner, _) => (LIST, Some(inner)),
            Kind::Option(inner) => (OPTION, Some(inner)),
            Kind::Tree(inner, _) => (TREE, Some(inner)),
            Kind::Array(inner, _) => (ARRAY, Some(inner)),
            Kind::Pair(inner) => (PAIR, Some(inner)),
            Kind::Lazy(inner, _) => (LAZY, Some(inner)),
        };
        match inner {
            None => table.named(definition, &[]),
            Some(inner) => {
                let inner = inner.expression(table);
                table.named(definition, &[inner])
            }
        }
    }

    /// As it is written where it stands in a tuple or before a constructor.
    fn tight(&self) -> String {
        if let Kind::Pair(_) = self { format!("({})", self.name()) } else { self.name() }
    }

    /// The name of the type of a block of this kind. Aliases are seen through.
    fn name(&self) -> String {
        match self {
            Kind::Int => "int".to_owned(),
            Kind::String => "string".to_owned(),
            Kind::Float => "float".to_owned(),
            Kind::Point => "point".to_owned(),
            Kind::Entry(_) => "entry".to_owned(),
            Kind::List(inner, _) => format!("{} list", inner.tight()),
            Kind::Option(inner) => format!("{} option", inner.tight()),
            Kind::Tree(inner, _) => format!("{} tree", inner.tight()),
            Kind::Array(inner, _) => format!("{} array", inner.tight()),
            Kind::Pair(inner) => format!("{} * {}", inner.tight(), inner.tight()),
            Kind::Lazy(inner, _) => format!("{} Lazy.t", inner.tight()),
        }
    }
}

/// Blocks, each with the name of its type.
#[derive(Default)]
struct Values {
    blocks: Blocks,
    names: Vec<String>,
}

impl Values {
    fn add(&mut self, name: &str, tag: u32, fields: &[Option<u32>]) -> Option<u32> {
        self.names.push(name.to_owned());
        Some(self.blocks.add(tag, fields))
    }

    /// A value; `None` if it is no block.
    fn make(&mut self, kind: &Kind) -> Option<u32> {
        let name = kind.name();
        match kind {
            Kind::Int => None,
            Kind::String => self.add(&name, 252, &[None; 3]),
            Kind::Float => self.add(&name, 253, &[None]),
            Kind::Point => self.add(&name, 254, &[None; 2]),
            Kind::Entry(more) => self.make_entry(*more),
            Kind::List(inner, length) => (0..*length).fold(None, |rest, _| {
                let first = self.make(inner);
                self.add(&name, 0, &[first, rest])
            }),
            Kind::Option(inner) => {
                let value = self.make(inner);
                self.add(&name, 0, &[value])
            }
            Kind::Tree(inner, depth) => self.make_tree(&name, inner, *depth),
            Kind::Array(inner, length) if matches!(**inner, Kind::Float) => {
                self.add(&name, 254, &vec![None; usize::from(*length)])
            }
            Kind::Array(inner, length) => {
                let elements: Vec<_> = (0..*length).map(|_| self.make(inner)).collect();
                self.add(&name, 0, &elements)
            }
            Kind::Pair(inner) => {
                let parts = [self.make(inner), self.make(inner)];
                self.add(&name, 0, &parts)
            }
            Kind::Lazy(inner, state) => self.make_lazy(&name, inner, *state),
        }
    }

    fn make_entry(&mut self, more: u8) -> Option<u32> {
        let string = self.add("string", 252, &[None]);
        let next = more.checked_sub(1).map(|more| {
            let entry = self.make_entry(more);
            self.add("entry option", 0, &[entry]).unwrap()
        });
        let float = self.add("float", 253, &[None]);
        let values = self.add("float list", 0, &[float, None]);
        self.add("entry", 0, &[string, None, next, values])
    }

    fn make_tree(&mut self, name: &str, inner: &Kind, depth: u8) -> Option<u32> {
        if depth == 0 {
            let value = self.make(inner);
            return self.add(name, 1, &[value]);
        }
        let left = self.make_tree(name, inner, depth - 1);
        let value = self.make(inner);
        let right = self.make_tree(name, inner, depth - 1);
        self.add(name, 0, &[left, value, right])
    }

    /// A suspension, a forced one, or its value in its place.
    fn make_lazy(&mut self, name: &str, inner: &Kind, state: u8) -> Option<u32> {
        match state {
            0 => {
                let function = self.add("closure", 247, &[None; 2]);
                self.add(name, 246, &[function])
            }
            // The runtime does not leave out a suspension of a suspension, nor of a float.
            1 => {
                let value = self.make(inner);
                self.add(name, 250, &[value])
            }
            _ if matches!(inner, Kind::Lazy(..)) => self.make_lazy(name, inner, 0),
            _ => self.make(inner),
        }
    }
}

fn world(kinds: &[Kind]) -> (TableBuilder, Values, Vec<u32>) {
    let mut table = TableBuilder::usual();
    let mut values = Values::default();
    let (mut fields, mut variables) = (Vec::new(), Vec::new());
    for kind in kinds {
        if let Some(block) = values.make(kind) {
            fields.push(kind.expression(&mut table));
            variables.push(block);
        }
    }
    table.module("M", &fields);
    (table, values, variables)
}

/// Whether a block of the type can look like this.
fn allows(name: &str, tag: u32, words: u64) -> bool {
    let constructor = name.rsplit(' ').next().unwrap();
    if is_tuple(name) {
        return tag == 0 && words == 2;
    }
    match constructor {
        "string" => tag == 252,
        "float" => (tag, words) == (253, 1),
        "point" => (tag, words) == (254, 2),
        "entry" => (tag, words) == (0, 4),
        "list" => (tag, words) == (0, 2),
        "option" => (tag, words) == (0, 1),
        "tree" => matches!((tag, words), (0, 3) | (1, 1)),
        "array" if name == "float array" => tag == 254,
        "array" => tag == 0,
        "Lazy.t" => matches!(tag, 244 | 246 | 250) && words == 1,
        other => panic!("what is {other} in {name}?"),
    }
}

/// Whether there is a star outside parentheses.
fn is_tuple(name: &str) -> bool {
    let mut depth = 0;
    name.chars().any(|character| {
        depth += i32::from(character == '(') - i32::from(character == ')');
        depth == 0 && character == '*'
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn values_have_the_types_that_they_were_made_of(
        kinds in prop::collection::vec(kinds(), 1..5),
    ) {
        let (table, values, variables) = world(&kinds);
        let table = table.build();
        let types = BlockTypes::spread(&values.blocks, table.clone(), &roots(&variables));
        prop_assert_eq!(types.problems(), &[]);
        prop_assert_eq!(types.mismatches(), Vec::new());
        prop_assert_eq!(types.conflicts(), 0);
        for (block, name) in values.names.iter().enumerate() {
            let source =
                if name == "closure" { TypeSource::Tag } else { TypeSource::Declared };
            prop_assert_eq!(named(&types, block as u32), Some((name.clone(), source)));
        }
        let coverage = types.coverage(&values.blocks, |_| true);
        let closures = values.names.iter().filter(|name| *name == "closure").count() as u64;
        prop_assert_eq!(coverage.declared.blocks + closures, values.names.len() as u64);
        prop_assert_eq!(coverage.unknown.blocks, 0);
    }

    /// Tags, sizes and pointers that anything may have happened to.
    #[test]
    fn declared_types_agree_with_the_shapes_of_damaged_values(
        kinds in prop::collection::vec(kinds(), 1..5),
        tags in prop::collection::vec((any::<prop::sample::Index>(), 240u32..256), 0..6),
        turns in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..8),
    ) {
        let (table, mut values, variables) = world(&kinds);
        prop_assume!(!values.names.is_empty());
        for (index, tag) in tags {
            let block = index.index(values.blocks.shapes.len());
            values.blocks.shapes[block].0 = tag;
        }
        for (from, to) in turns {
            let from = from.index(values.blocks.shapes.len());
            let to = to.index(values.blocks.shapes.len()) as u32;
            values.blocks.targets[from].iter_mut().for_each(|target| *target = to);
        }
        let table = table.build();
        let types = BlockTypes::spread(&values.blocks, table.clone(), &roots(&variables));
        for block in 0..values.blocks.blocks() as u32 {
            let Some((name, TypeSource::Declared)) = named(&types, block) else { continue };
            let (tag, words) = values.blocks.shape(block);
            prop_assert!(allows(&name, tag, words), "block {} is {} of {} as {}", block, tag, words, name);
        }
    }
}

#[test]
fn a_variable_of_a_pair_has_the_name_that_is_behind_the_alias() {
    let mut table = TableBuilder::usual();
    let int = table.named(INT, &[]);
    let tuple = table.add(TypeExpression::Tuple(vec![int, int]));
    let pair = table.named(PAIR, &[int]);
    table.module("M", &[tuple, pair]);
    let table = table.build();
    let mut blocks = Blocks::default();
    let value = blocks.add(0, &[None, None]);
    let types = BlockTypes::spread(&blocks, table.clone(), &roots(&[value, value]));
    assert_eq!(types.conflicts(), 0);
    assert_eq!(named(&types, value), super::made::declared("int * int"));
}
