//! The JSON document that the script prints. It is hostile: files of anybody went into it.

use std::collections::BTreeSet;

use heaptap_graph::{
    Builtin, Constructor, Definition, DefinitionBody, FieldType, ModuleGlobals, PolymorphicCase,
    TypeExpression, TypeTable,
};
use serde::Deserialize;

const FORMAT: &str = "heaptap types 1";

/// The whole document.
#[derive(Deserialize)]
pub(crate) struct Document {
    format: String,
    /// Whether the compiler lays out modules in a way that the fields do not follow.
    pub(crate) flambda: bool,
    /// Units in the directories that were given.
    pub(crate) units_found: u64,
    pub(crate) skipped: Vec<SkippedFile>,
    units: Vec<UnitText>,
    expressions: Vec<ExpressionText>,
    definitions: Vec<DefinitionText>,
}

/// A file that could not be used.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct SkippedFile {
    pub(crate) file: String,
    pub(crate) reason: String,
}

#[derive(Deserialize)]
struct UnitText {
    name: Box<str>,
    complete: bool,
    fields: Vec<FieldText>,
}

#[derive(Deserialize)]
struct FieldText {
    name: Box<str>,
    r#type: u32,
}

#[derive(Deserialize)]
struct CaseText {
    name: Box<str>,
    r#type: Option<u32>,
}

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum ExpressionText {
    Unknown,
    Object,
    Parameter {
        index: u32,
    },
    Named {
        definition: u32,
        arguments: Vec<u32>,
    },
    Tuple {
        parts: Vec<u32>,
    },
    Function {
        argument: u32,
        result: u32,
    },
    #[serde(rename = "polymorphic variant")]
    Polymorphic {
        cases: Vec<CaseText>,
    },
    Module {
        definition: u32,
    },
}

#[derive(Deserialize)]
struct DefinitionText {
    name: Box<str>,
    #[serde(flatten)]
    body: BodyText,
}

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum BodyText {
    Abstract,
    Open,
    Builtin {
        builtin: String,
    },
    Alias {
        r#type: u32,
    },
    Record {
        fields: Vec<FieldText>,
    },
    #[serde(rename = "float record")]
    FloatRecord {
        fields: Vec<String>,
    },
    Variant {
        constants: Vec<String>,
        constructors: Vec<ConstructorText>,
    },
    Module {
        fields: Vec<FieldText>,
    },
}

#[derive(Deserialize)]
struct ConstructorText {
    name: Box<str>,
    fields: Vec<FieldText>,
}

impl Document {
    pub(crate) fn parse(text: &str) -> Result<Document, String> {
        let document: Document = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if document.format != FORMAT {
            return Err(format!("its format is {:?} instead of {FORMAT:?}", document.format));
        }
        Ok(document)
    }

    /// How many units of the program are described.
    pub(crate) fn unit_count(&self) -> usize {
        self.units.len()
    }

    /// The declared types. `doubted`: modules whose files may be of another build.
    pub(crate) fn into_table(self, doubted: &BTreeSet<String>) -> Result<TypeTable, String> {
        let expressions = self.expressions.into_iter().map(expression).collect();
        let definitions = self.definitions.into_iter().map(definition).collect();
        let module = |unit: UnitText| ModuleGlobals {
            is_certain: !doubted.contains(&*unit.name),
            name: unit.name,
            is_complete: unit.complete,
            fields: fields(unit.fields),
        };
        let modules = self.units.into_iter().map(module).collect();
        TypeTable::new(expressions, definitions, modules).map_err(|error| error.to_string())
    }
}

fn fields(fields: Vec<FieldText>) -> Vec<FieldType> {
    let field = |field: FieldText| FieldType { name: field.name, expression: field.r#type };
    fields.into_iter().map(field).collect()
}

fn expression(text: ExpressionText) -> TypeExpression {
    match text {
        ExpressionText::Unknown => TypeExpression::Unknown,
        ExpressionText::Object => TypeExpression::Object,
        ExpressionText::Parameter { index } => TypeExpression::Parameter(index),
        ExpressionText::Named { definition, arguments } => {
            TypeExpression::Named { definition, arguments }
        }
        ExpressionText::Tuple { parts } => TypeExpression::Tuple(parts),
        ExpressionText::Function { argument, result } => {
            TypeExpression::Function { argument, result }
        }
        ExpressionText::Polymorphic { cases } => {
            let case = |case: CaseText| PolymorphicCase { name: case.name, argument: case.r#type };
            TypeExpression::Polymorphic(cases.into_iter().map(case).collect())
        }
        ExpressionText::Module { definition } => TypeExpression::Module(definition),
    }
}

fn definition(text: DefinitionText) -> Definition {
    let mut name = text.name;
    let body = match text.body {
        BodyText::Abstract => DefinitionBody::Abstract,
        BodyText::Open => DefinitionBody::Open,
        BodyText::Builtin { builtin: known } => {
            if known == "lazy_t" {
                name = "Lazy.t".into();
            }
            builtin(&known).map_or(DefinitionBody::Abstract, DefinitionBody::Builtin)
        }
        BodyText::Alias { r#type } => DefinitionBody::Alias(r#type),
        BodyText::Record { fields: of_record } => DefinitionBody::Record(fields(of_record)),
        BodyText::FloatRecord { fields } => {
            DefinitionBody::FloatRecord(fields.len().try_into().unwrap_or(u32::MAX))
        }
        BodyText::Variant { constants, constructors } => {
            let constructor = |constructor: ConstructorText| Constructor {
                name: constructor.name,
                fields: fields(constructor.fields),
            };
            DefinitionBody::Variant {
                constants: constants.len().try_into().unwrap_or(u32::MAX),
                constructors: constructors.into_iter().map(constructor).collect(),
            }
        }
        BodyText::Module { fields: of_module } => DefinitionBody::Module(fields(of_module)),
    };
    Definition { name, body }
}

fn builtin(name: &str) -> Option<Builtin> {
    Some(match name {
        "int" | "char" => Builtin::Immediate,
        "string" | "bytes" => Builtin::String,
        "float" => Builtin::Float,
        "array" | "iarray" => Builtin::Array,
        "floatarray" => Builtin::FloatArray,
        "int32" | "int64" | "nativeint" => Builtin::BoxedInteger,
        "lazy_t" => Builtin::Lazy,
        "extension_constructor" => Builtin::ExtensionConstructor,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(units: &str, expressions: &str, definitions: &str) -> String {
        format!(
            r#"{{"format":"heaptap types 1","flambda":false,"units_found":1,"skipped":[],
                "units":{units},"expressions":{expressions},"definitions":{definitions}}}"#
        )
    }

    fn table(text: &str) -> Result<TypeTable, String> {
        Document::parse(text)?.into_table(&BTreeSet::new())
    }

    #[test]
    fn every_kind_of_type_is_read() {
        let units = r#"[{"name":"M","file":"m.cmt","complete":true,
            "fields":[{"name":"x","type":3},{"name":"y","type":5}]}]"#;
        let expressions = r#"[{"kind":"unknown"},{"kind":"object"},{"kind":"parameter","index":0},
            {"kind":"named","definition":0,"arguments":[0]},{"kind":"tuple","parts":[1,2]},
            {"kind":"function","argument":3,"result":4},
            {"kind":"polymorphic variant","cases":[{"name":"A"},{"name":"B","type":5}]},
            {"kind":"module","definition":7}]"#;
        let definitions = r#"[
            {"name":"list","arity":1,"kind":"variant","constants":["[]"],
             "constructors":[{"name":"::","fields":[{"name":"","type":2}]}]},
            {"name":"a","arity":0,"kind":"abstract"},
            {"name":"o","arity":0,"kind":"open"},
            {"name":"lazy_t","arity":1,"kind":"builtin","builtin":"lazy_t"},
            {"name":"b","arity":0,"kind":"alias","type":4},
            {"name":"r","arity":0,"kind":"record","fields":[{"name":"f","type":3}]},
            {"name":"p","arity":0,"kind":"float record","fields":["x","y"]},
            {"name":"module M","arity":0,"kind":"module","fields":[]}]"#;
        let table = table(&document(units, expressions, definitions)).unwrap();
        assert_eq!(table.modules().len(), 1);
        assert_eq!(table.modules()[0].fields[1].expression, 5);
    }

    #[test]
    fn hostile_documents_are_refused() {
        let named = r#"[{"kind":"named","definition":9,"arguments":[]}]"#;
        let itself = r#"[{"kind":"tuple","parts":[0]}]"#;
        let alias = r#"[{"name":"a","arity":0,"kind":"alias","type":4294967295}]"#;
        let module = r#"[{"name":"M","complete":true,"fields":[{"name":"x","type":7}]}]"#;
        for (text, said) in [
            (document("[]", named, "[]"), "definition that is not there"),
            (document("[]", itself, "[]"), "not before it"),
            (document("[]", "[]", alias), "definition 0"),
            (document(module, "[]", "[]"), "module 0"),
            (document("[]", r#"[{"kind":"secret"}]"#, "[]"), "secret"),
            (document("[]", r#"[{"kind":"parameter","index":-1}]"#, "[]"), "-1"),
            (document("[]", "[", "[]"), "line"),
            ("[".repeat(100_000), "invalid type"),
            (document("[]", "[]", "[]").replace("types 1", "types 2"), "heaptap types 2"),
            (String::new(), "EOF"),
        ] {
            let error = table(&text).map(|_| ()).unwrap_err();
            assert!(error.contains(said), "{said:?} is not in {error:?}");
        }
    }
}
