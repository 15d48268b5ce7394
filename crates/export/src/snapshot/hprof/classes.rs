//! The classes of kinds.

use std::collections::HashMap;
use std::io;

use heaptap_graph::{BlockKind, KindId, SizeRange};

use super::records::{DumpWriter, Id, NO_TRACE, next, numbers_be};
use crate::snapshot::SnapshotInput;

const CLASS_DUMP: u8 = 0x20;

/// Types of fields.
const OBJECT: u8 = 2;
const INT: u8 = 10;

/// A kind's objects are instances or arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ObjectForm {
    Instance,
    Array,
}

/// A static field of a class.
pub(super) struct StaticField {
    pub(super) name: String,
    pub(super) value: Id,
}

/// The classes that were written. Their ids follow those of blocks, which are their numbers from
/// 1 on.
pub(super) struct ClassTable<'a> {
    input: &'a SnapshotInput<'a>,
    last: Id,
    serial: u32,
    object: Id,
    of_kinds: HashMap<(KindId, ObjectForm), Id>,
    /// Strings of `field 0` and so on.
    field_names: Vec<Id>,
    padding: Id,
}

impl<'a> ClassTable<'a> {
    /// Writes the classes that readers expect.
    pub(super) fn new(
        input: &'a SnapshotInput<'a>,
        dump: &mut DumpWriter<'_>,
    ) -> io::Result<ClassTable<'a>> {
        let mut classes = ClassTable {
            input,
            last: input.graph.blocks() as Id,
            serial: 0,
            object: 0,
            of_kinds: HashMap::new(),
            field_names: Vec::new(),
            padding: dump.string("(padding)")?,
        };
        classes.object = classes.class(dump, "java/lang/Object", &[], 0)?;
        for name in ["java/lang/Class", "java/lang/ClassLoader", "java/lang/Thread"] {
            classes.class(dump, name, &[], 0)?;
        }
        Ok(classes)
    }

    /// The id of a block's object.
    pub(super) fn block_id(block: u32) -> Id {
        block.saturating_add(1)
    }

    /// A new id for an object that is no block.
    pub(super) fn new_id(&mut self) -> io::Result<Id> {
        self.last = next(self.last)?;
        Ok(self.last)
    }

    /// The serial number of the last class.
    pub(super) fn last_serial(&self) -> u32 {
        self.serial
    }

    /// The words of the blocks of a kind, if all have the same and are few.
    pub(super) fn fixed_words(&self, kind: KindId) -> Option<u64> {
        match self.input.kinds.kind(kind)? {
            BlockKind::Shape { size: SizeRange::Exactly(words), .. } => Some(words),
            _ => None,
        }
    }

    /// The class of a kind's objects.
    pub(super) fn of_kind(
        &mut self,
        kind: KindId,
        form: ObjectForm,
        dump: &mut DumpWriter<'_>,
    ) -> io::Result<Id> {
        if let Some(class) = self.of_kinds.get(&(kind, form)) {
            return Ok(*class);
        }
        let name = self.input.kind_name(kind);
        let class = match form {
            ObjectForm::Instance => {
                let words = self.fixed_words(kind).unwrap_or(0);
                self.class(dump, &name, &[], words)?
            }
            ObjectForm::Array => self.array_class(dump, &name)?,
        };
        self.of_kinds.insert((kind, form), class);
        Ok(class)
    }

    /// Writes a class of arrays.
    pub(super) fn array_class(&mut self, dump: &mut DumpWriter<'_>, name: &str) -> io::Result<Id> {
        self.class(dump, &format!("[L{name};"), &[], 0)
    }

    /// Writes a class whose instances have `words` references and padding.
    pub(super) fn class(
        &mut self,
        dump: &mut DumpWriter<'_>,
        name: &str,
        statics: &[StaticField],
        words: u64,
    ) -> io::Result<Id> {
        let class = self.new_id()?;
        self.serial += 1;
        let name = dump.string(name)?;
        dump.load_class(self.serial, class, name)?;
        let mut fields = Vec::new();
        for field in 0..words as usize {
            fields.push((self.field_name(field, dump)?, OBJECT));
        }
        fields.extend((0..words).map(|_| (self.padding, INT)));
        let mut part = vec![CLASS_DUMP];
        let instance_size = words as u32 * 8;
        // Class loader, signers, protection domain and two reserved ids come after the class above.
        part.extend(numbers_be(&[class, NO_TRACE, self.object, 0, 0, 0, 0, 0, instance_size]));
        part.extend([0; 2]);
        part.extend((statics.len() as u16).to_be_bytes());
        for field in statics {
            part.extend(dump.string(&field.name)?.to_be_bytes());
            part.push(OBJECT);
            part.extend(field.value.to_be_bytes());
        }
        part.extend((fields.len() as u16).to_be_bytes());
        for (name, field_type) in fields {
            part.extend(name.to_be_bytes());
            part.push(field_type);
        }
        dump.part(&part)?;
        Ok(class)
    }

    fn field_name(&mut self, field: usize, dump: &mut DumpWriter<'_>) -> io::Result<Id> {
        while self.field_names.len() <= field {
            let name = format!("field {}", self.field_names.len());
            self.field_names.push(dump.string(&name)?);
        }
        Ok(self.field_names[field])
    }
}
