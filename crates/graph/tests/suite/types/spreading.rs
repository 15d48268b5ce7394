//! What spreads, what does not, and what is bounded.

use heaptap_graph::{
    BlockTypes, Definition, DefinitionBody, GlobalRoot, ModuleGlobals, PolymorphicCase,
    ProblemKind, TypeExpression, TypeSource, TypeTable,
};

use super::made::{
    Blocks, ENTRY, HIDDEN, INT, LIST, NESTED, OPTION, REF, STRING, TableBuilder, declared, field,
    guessed, named, roots,
};

#[test]
fn two_types_of_one_block_make_it_and_what_comes_from_it_a_guess() {
    let mut table = TableBuilder::usual();
    let string = table.named(STRING, &[]);
    let strings = table.named(LIST, &[string]);
    let option = table.named(OPTION, &[string]);
    let reference = table.named(REF, &[string]);
    let pair = table.add(TypeExpression::Tuple(vec![string, strings]));
    table.module("M", &[option, reference, strings, pair, string]);
    let table = table.build();
    let mut blocks = Blocks::default();
    let first = blocks.add(252, &[None]);
    let second = blocks.add(252, &[None]);
    // An option and a reference look alike.
    let box_ = blocks.add(0, &[Some(first)]);
    // So do a list and a pair of its first element and its rest.
    let cell = blocks.add(0, &[Some(second), None]);
    let types =
        BlockTypes::spread(&blocks, table.clone(), &roots(&[box_, box_, cell, cell, second]));
    assert_eq!(types.conflicts(), 2);
    assert_eq!(named(&types, box_), guessed("string option"));
    assert_eq!(named(&types, first), guessed("string"));
    assert_eq!(named(&types, cell), guessed("string list"));
    assert_eq!(named(&types, second), declared("string"), "a variable has it too");
    assert_eq!(types.coverage(&blocks, |_| true).guessed.blocks, 3);
    assert_eq!(types.coverage(&blocks, |block| block == cell).guessed.blocks, 1);
}

#[test]
fn the_type_with_more_in_it_is_taken() {
    let mut table = TableBuilder::usual();
    let unknown = table.add(TypeExpression::Unknown);
    let string = table.named(STRING, &[]);
    let some = table.named(LIST, &[unknown]);
    let strings = table.named(LIST, &[string]);
    table.module("M", &[some, strings, some]);
    let table = table.build();
    let mut blocks = Blocks::default();
    let text = blocks.add(252, &[None]);
    let last = blocks.add(0, &[Some(text), None]);
    let cell = blocks.add(0, &[Some(text), Some(last)]);
    let types = BlockTypes::spread(&blocks, table.clone(), &roots(&[cell, last, last]));
    assert_eq!(types.conflicts(), 0);
    assert_eq!(named(&types, cell), declared("_ list"));
    assert_eq!(named(&types, last), declared("string list"));
    assert_eq!(named(&types, text), declared("string"));
}

#[test]
fn a_contradiction_stops_a_type_and_is_counted() {
    let mut table = TableBuilder::usual();
    let entry = table.named(ENTRY, &[]);
    let entries = table.named(LIST, &[entry]);
    let int = table.named(INT, &[]);
    let ints = table.named(LIST, &[int]);
    table.module("M", &[entries, ints]);
    let table = table.build();
    let mut blocks = Blocks::default();
    let text = blocks.add(252, &[None]);
    // One field short.
    let short = blocks.add(0, &[Some(text), None, None]);
    let cell = blocks.add(0, &[Some(short), None]);
    // A pointer where there are only numbers, below a cell that is in order.
    let wrong = blocks.add(0, &[Some(text), None]);
    let right = blocks.add(0, &[None, Some(wrong)]);
    let types = BlockTypes::spread(&blocks, table.clone(), &roots(&[cell, right]));
    assert_eq!(named(&types, cell), declared("entry list"));
    assert_eq!(named(&types, short), None);
    assert_eq!(named(&types, right), declared("int list"));
    assert_eq!(named(&types, wrong), None);
    assert_eq!(named(&types, text), Some(("string or bytes".to_owned(), TypeSource::Tag)));
    let mismatches: Vec<_> = types
        .mismatches()
        .iter()
        .map(|found| (types.name(found.declared), found.tag, found.words, found.blocks))
        .collect();
    assert_eq!(mismatches, [("entry".to_owned(), 0, 3, 1), ("int list".to_owned(), 0, 2, 1)]);
    assert_eq!(types.problems(), &[]);
}

#[test]
fn a_module_whose_files_are_doubted_is_guessed() {
    let mut table = TableBuilder::usual();
    let string = table.named(STRING, &[]);
    let list = table.named(LIST, &[string]);
    table.module("M", &[list]);
    table.modules[0].is_certain = false;
    let mut blocks = Blocks::default();
    let text = blocks.add(252, &[None]);
    let cell = blocks.add(0, &[Some(text), None]);
    let types = BlockTypes::spread(&blocks, table.build(), &roots(&[cell]));
    assert_eq!(types.problems()[0].kind, ProblemKind::OtherBuild);
    assert_eq!(named(&types, cell), guessed("string list"));
    assert_eq!(named(&types, text), guessed("string"));
}

#[test]
fn a_module_of_another_build_is_not_believed() {
    let mut table = TableBuilder::usual();
    let string = table.named(STRING, &[]);
    let list = table.named(LIST, &[string]);
    table.module("M", &[string, list]);
    let table = table.build();
    let mut blocks = Blocks::default();
    let text = blocks.add(252, &[None]);
    let cell = blocks.add(0, &[Some(text), None]);

    let types = BlockTypes::spread(&blocks, table.clone(), &roots(&[cell, cell]));
    assert_eq!(types.problems()[0].kind, ProblemKind::Mismatch(0));
    assert_eq!(named(&types, cell), guessed("string list"));
    assert_eq!(named(&types, text), guessed("string"));

    let beyond = [
        GlobalRoot { module: "M", field: 1, block: cell },
        GlobalRoot { module: "M", field: 3, block: cell },
    ];
    let types = BlockTypes::spread(&blocks, table.clone(), &beyond);
    assert_eq!(types.problems()[0].kind, ProblemKind::UndeclaredField(3));
    assert_eq!(named(&types, cell), None);
    // One more field than there are variables: the cache of method calls.
    let cache = [GlobalRoot { module: "M", field: 2, block: cell }];
    assert_eq!(BlockTypes::spread(&blocks, table.clone(), &cache).problems(), &[]);
}

#[test]
fn abstract_types_are_names_of_guesses() {
    let mut table = TableBuilder::usual();
    let hidden = table.named(HIDDEN, &[]);
    let list = table.named(LIST, &[hidden]);
    table.module("M", &[list]);
    let table = table.build();
    let mut blocks = Blocks::default();
    let inner = blocks.add(7, &[None]);
    let value = blocks.add(3, &[Some(inner)]);
    let cell = blocks.add(0, &[Some(value), None]);
    let mut types = BlockTypes::spread(&blocks, table.clone(), &roots(&[cell]));
    assert_eq!(named(&types, cell), declared("Hidden.t list"));
    assert_eq!(named(&types, value), guessed("Hidden.t"));
    assert_eq!(named(&types, inner), None);
    assert_eq!(types.variable("M", 0), Some(("x".to_owned(), "Hidden.t list".to_owned())));
    assert_eq!(types.variable("M", 1), None);
    assert_eq!(types.variable("N", 0), None);
}

#[test]
fn arguments_of_polymorphic_variants_have_types_if_all_cases_agree() {
    let mut table = TableBuilder::usual();
    let string = table.named(STRING, &[]);
    let strings = table.named(LIST, &[string]);
    let case = |name: &str, argument| PolymorphicCase { name: name.into(), argument };
    let one =
        table.add(TypeExpression::Polymorphic(vec![case("A", Some(string)), case("B", None)]));
    let two = table
        .add(TypeExpression::Polymorphic(vec![case("A", Some(string)), case("C", Some(strings))]));
    let none = table.add(TypeExpression::Polymorphic(vec![case("B", None)]));
    table.module("M", &[one, two, none]);
    let table = table.build();
    let mut blocks = Blocks::default();
    let text = blocks.add(252, &[None]);
    let other = blocks.add(252, &[None]);
    let first = blocks.add(0, &[None, Some(text)]);
    let second = blocks.add(0, &[None, Some(other)]);
    let types = BlockTypes::spread(&blocks, table.clone(), &roots(&[first, second]));
    assert_eq!(named(&types, first), declared("[ `A of string | `B ]"));
    assert_eq!(named(&types, text), declared("string"));
    assert_eq!(named(&types, second), declared("[ `A of string | `C of string list ]"));
    assert_eq!(named(&types, other), Some(("string or bytes".to_owned(), TypeSource::Tag)));
    let types =
        BlockTypes::spread(&blocks, table, &[GlobalRoot { module: "M", field: 2, block: first }]);
    assert_eq!(types.problems().len(), 1, "`B is no block");
}

#[test]
fn chains_that_look_like_lists_are_guessed() {
    let table = TableBuilder::usual().build();
    let mut blocks = Blocks::default();
    let chain = |blocks: &mut Blocks, length: usize| {
        let mut cells = Vec::new();
        for _ in 0..length {
            cells.push(blocks.add(0, &[None, cells.last().copied()]));
        }
        cells
    };
    let long = chain(&mut blocks, 4);
    let short = chain(&mut blocks, 2);
    let types = BlockTypes::spread(&blocks, table, &[]);
    for cell in long {
        assert_eq!(named(&types, cell), guessed("_ list"));
    }
    for cell in short {
        assert_eq!(named(&types, cell), None);
    }
}

#[test]
fn long_lists_and_growing_types_are_bounded() {
    let mut table = TableBuilder::usual();
    let int = table.named(INT, &[]);
    let list = table.named(LIST, &[int]);
    let nested = table.named(NESTED, &[int]);
    table.module("M", &[list, nested]);
    let table = table.build();
    let mut blocks = Blocks::default();
    let mut cell = blocks.add(0, &[None, None]);
    for _ in 0..1_000_000 {
        cell = blocks.add(0, &[None, Some(cell)]);
    }
    // Each level has a type of its own, twice as long as the one before.
    let innermost = blocks.add(0, &[None, None]);
    let mut level = innermost;
    for _ in 0..10_000 {
        level = blocks.add(0, &[None, Some(level)]);
    }
    let types = BlockTypes::spread(&blocks, table.clone(), &roots(&[cell, level]));
    assert_eq!(named(&types, 0), declared("int list"));
    let (name, source) = named(&types, innermost).unwrap();
    assert_eq!(source, TypeSource::Declared);
    assert!(name.starts_with("((((") && name.len() < 200, "{name}");
}

#[test]
fn aliases_in_a_circle_lead_nowhere() {
    let named_type = |definition| TypeExpression::Named { definition, arguments: vec![] };
    let alias =
        |name: &str, target| Definition { name: name.into(), body: DefinitionBody::Alias(target) };
    let expressions = vec![named_type(0), named_type(1), named_type(2)];
    let definitions = vec![alias("a", 1), alias("b", 0), alias("c", 2)];
    let fields = vec![field("x", 0), field("y", 2)];
    let module = ModuleGlobals { name: "M".into(), is_complete: true, is_certain: true, fields };
    let table = TypeTable::new(expressions, definitions, vec![module]).unwrap();
    let mut blocks = Blocks::default();
    let (first, second) = (blocks.add(0, &[None]), blocks.add(0, &[None]));
    let types = BlockTypes::spread(&blocks, table.clone(), &roots(&[first, second]));
    assert_eq!(named(&types, second), guessed("c"));
    assert_eq!(named(&types, first).unwrap().1, TypeSource::Guessed);
}

/// Written out, the last type has 2^500 parts.
#[test]
fn types_of_exponential_length_are_made_and_named() {
    let doubled = |index: u32| TypeExpression::Tuple(vec![index, index]);
    let expressions =
        std::iter::once(TypeExpression::Object).chain((0..500).map(doubled)).collect();
    let module = ModuleGlobals {
        name: "M".into(),
        is_complete: true,
        is_certain: true,
        fields: vec![field("x", 500)],
    };
    let table = TypeTable::new(expressions, Vec::new(), vec![module]).unwrap();
    let mut blocks = Blocks::default();
    let pair = blocks.add(0, &[None, None]);
    let types = BlockTypes::spread(&blocks, table.clone(), &roots(&[pair]));
    let (name, _) = named(&types, pair).unwrap();
    assert!(name.len() < 200, "{name}");
}

/// `type 'a a = 'a a a` and `type 'a b = ('a b * 'a b) b`, which no compiler accepts.
#[test]
fn aliases_that_grow_come_to_an_end() {
    let named_type =
        |definition, argument| TypeExpression::Named { definition, arguments: vec![argument] };
    let expressions = vec![
        TypeExpression::Parameter(0),
        named_type(0, 0),
        named_type(0, 1),
        named_type(1, 0),
        TypeExpression::Tuple(vec![3, 3]),
        named_type(1, 4),
        TypeExpression::Object,
        named_type(0, 6),
        named_type(1, 6),
    ];
    let alias = |target| Definition { name: "a".into(), body: DefinitionBody::Alias(target) };
    let fields = vec![field("x", 7), field("y", 8)];
    let module = ModuleGlobals { name: "M".into(), is_complete: true, is_certain: true, fields };
    let table = TypeTable::new(expressions, vec![alias(2), alias(5)], vec![module]).unwrap();
    let mut blocks = Blocks::default();
    let value = blocks.add(0, &[None]);
    let types = BlockTypes::spread(&blocks, table, &roots(&[value, value]));
    assert_ne!(named(&types, value).map(|(_, source)| source), Some(TypeSource::Declared));
}
