//! Types as text.

use super::ground::{GroundType, GroundTypes, TypeId};
use super::special;
use super::table::TypeTable;

/// Longer names are cut.
const LONGEST: usize = 160;
/// What is nested deeper is left out.
const DEEPEST: u32 = 12;

/// What surrounds a type, for its parentheses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Position {
    /// Alone, or between commas.
    Free,
    /// The left side of an arrow.
    Argument,
    /// In a tuple, or before a constructor.
    Tight,
}

/// The type as it would be written.
pub(super) fn name(table: &TypeTable, types: &GroundTypes, id: TypeId) -> String {
    if let Some(name) = special::name(id) {
        return name.to_owned();
    }
    let mut writer = NameWriter { table, types, text: String::new() };
    writer.put(id, Position::Free, 0);
    let mut text = writer.text;
    if text.len() > LONGEST {
        let cut = (0..=LONGEST).rev().find(|&at| text.is_char_boundary(at)).unwrap_or_default();
        text.truncate(cut);
        text.push('…');
    }
    text
}

struct NameWriter<'a> {
    table: &'a TypeTable,
    types: &'a GroundTypes,
    text: String,
}

impl NameWriter<'_> {
    fn put(&mut self, id: TypeId, position: Position, depth: u32) {
        // Parts that are shared are written out, which can be exponentially long.
        if self.text.len() > LONGEST {
            return;
        }
        if depth > DEEPEST {
            return self.text.push('…');
        }
        match self.types.get(id) {
            GroundType::Unknown => self.text.push('_'),
            GroundType::Object => self.text.push_str("< .. >"),
            GroundType::Module(definition) => self.put_definition(*definition),
            GroundType::Named { definition, arguments } => {
                match arguments.as_ref() {
                    [] => {}
                    [one] => {
                        self.put(*one, Position::Tight, depth + 1);
                        self.text.push(' ');
                    }
                    several => {
                        self.text.push('(');
                        self.put_separated(several, ", ", Position::Free, depth);
                        self.text.push_str(") ");
                    }
                }
                self.put_definition(*definition);
            }
            GroundType::Tuple(parts) => {
                let parenthesised = position == Position::Tight;
                self.put_if(parenthesised, '(');
                self.put_separated(parts, " * ", Position::Tight, depth);
                self.put_if(parenthesised, ')');
            }
            GroundType::Function { argument, result } => {
                let parenthesised = position >= Position::Argument;
                self.put_if(parenthesised, '(');
                self.put(*argument, Position::Argument, depth + 1);
                self.text.push_str(" -> ");
                self.put(*result, Position::Free, depth + 1);
                self.put_if(parenthesised, ')');
            }
            GroundType::Polymorphic(cases) => self.put_cases(cases, depth),
        }
    }

    fn put_if(&mut self, condition: bool, character: char) {
        if condition {
            self.text.push(character);
        }
    }

    fn put_definition(&mut self, definition: u32) {
        match self.table.definition(definition) {
            Some(definition) => self.text.push_str(&definition.name),
            None => self.text.push('_'),
        }
    }

    fn put_separated(&mut self, parts: &[TypeId], separator: &str, position: Position, depth: u32) {
        for (index, part) in parts.iter().enumerate() {
            if self.text.len() > LONGEST {
                return;
            }
            if index > 0 {
                self.text.push_str(separator);
            }
            self.put(*part, position, depth + 1);
        }
    }

    fn put_cases(&mut self, cases: &[(Box<str>, Option<TypeId>)], depth: u32) {
        self.text.push_str("[ ");
        for (index, (name, argument)) in cases.iter().enumerate() {
            if self.text.len() > LONGEST {
                return;
            }
            if index > 0 {
                self.text.push_str(" | ");
            }
            self.text.push('`');
            self.text.push_str(name);
            if let Some(argument) = argument {
                self.text.push_str(" of ");
                self.put(*argument, Position::Free, depth + 1);
            }
        }
        self.text.push_str(" ]");
    }
}
