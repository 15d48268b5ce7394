//! Blocks as objects.

use std::collections::HashMap;
use std::io;

use heaptap_graph::{AreaId, OutsideBytes};

use super::classes::{ClassTable, ObjectForm};
use super::records::{DumpWriter, Id, NO_TRACE, numbers_be};
use crate::snapshot::SnapshotInput;

const INSTANCE_DUMP: u8 = 0x21;
const OBJECT_ARRAY_DUMP: u8 = 0x22;
const PRIMITIVE_ARRAY_DUMP: u8 = 0x23;
/// The type of elements.
const BYTE: u8 = 8;

/// The header of an array as readers count it: 8 bytes of an object, and its length.
const ARRAY_HEADER: u64 = 12;

/// The most bytes outside the heap that are written: an array has all its elements in the file.
const MOST_OUTSIDE: u64 = 1 << 30;

/// Writes blocks.
pub(super) struct ObjectWriter<'a> {
    input: &'a SnapshotInput<'a>,
    classes: ClassTable<'a>,
    /// Ephemerons and data that is alive through them, ascending.
    data: Vec<(u32, u32)>,
    /// The class of arrays for references that have no field.
    further_class: Option<Id>,
    /// Whether the class of byte arrays was written.
    has_byte_class: bool,
    /// The arrays of areas outside the heap that were written; none of those that were left out.
    areas: HashMap<AreaId, Option<Id>>,
    /// How many more bytes outside the heap may be written.
    outside_left: u64,
    /// What was left out outside the heap.
    omitted: OutsideBytes,
}

/// The references of a block.
struct BlockReferences {
    /// By field, ascending.
    fields: Vec<(u64, Id)>,
    /// Those without one.
    further: Vec<Id>,
}

impl<'a> ObjectWriter<'a> {
    pub(super) fn new(input: &'a SnapshotInput<'a>, classes: ClassTable<'a>) -> ObjectWriter<'a> {
        let data = input.graph.live_ephemeron_data();
        ObjectWriter {
            input,
            classes,
            data,
            further_class: None,
            has_byte_class: false,
            areas: HashMap::new(),
            outside_left: MOST_OUTSIDE,
            omitted: OutsideBytes::default(),
        }
    }

    /// What was left out outside the heap.
    pub(super) fn omitted(&self) -> OutsideBytes {
        self.omitted
    }

    pub(super) fn write(&mut self, block: u32, dump: &mut DumpWriter<'_>) -> io::Result<()> {
        let words = self.input.graph.words(block);
        let kind = self.input.kinds.of(self.input.graph, block);
        let mut references = self.references(block, words);
        for area in self.input.graph.areas_of(block) {
            references.further.extend(self.area(area, dump)?);
        }
        let id = ClassTable::block_id(block);
        if references.further.is_empty()
            && (words == 0 || self.classes.fixed_words(kind) == Some(words))
        {
            let class = self.classes.of_kind(kind, ObjectForm::Instance, dump)?;
            let mut part = vec![INSTANCE_DUMP];
            part.extend(numbers_be(&[id, NO_TRACE, class, words as u32 * 8]));
            // Padding follows the fields.
            return dump.part_with_references(&part, words * 2, &references.fields);
        }
        let class = self.classes.of_kind(kind, ObjectForm::Array, dump)?;
        let mut count = words.saturating_mul(2).saturating_sub(1);
        let mut elements = references.fields;
        let further = if references.further.len() as u64 <= count.saturating_sub(words) {
            references.further
        } else {
            count = count.max(words + 1);
            vec![self.further_array(&references.further, dump)?]
        };
        elements.extend((words..).zip(further));
        array(dump, id, class, count, &elements)
    }

    fn references(&self, block: u32, words: u64) -> BlockReferences {
        let SnapshotInput { graph, .. } = self.input;
        let (mut fields, mut further) = (Vec::new(), Vec::new());
        for (target, field) in graph.targets(block).iter().zip(graph.fields(block)) {
            fields.push((u64::from(*field), ClassTable::block_id(*target)));
        }
        fields.sort_unstable();
        let mut last = None;
        // A field beyond the block, or one that is there twice, has no place in the object.
        fields.retain(|&(field, id)| {
            let fits = field < words && last != Some(field);
            last = Some(field);
            if !fits {
                further.push(id);
            }
            fits
        });
        let from = self.data.partition_point(|pair| pair.0 < block);
        let of_block = self.data[from..].iter().take_while(|pair| pair.0 == block);
        further.extend(of_block.map(|pair| ClassTable::block_id(pair.1)));
        BlockReferences { fields, further }
    }

    /// What is outside the heap, as an array of bytes that readers find as big. Blocks that keep the same
    /// memory refer to the same array.
    fn area(&mut self, area: AreaId, dump: &mut DumpWriter<'_>) -> io::Result<Option<Id>> {
        if let Some(id) = self.areas.get(&area) {
            return Ok(*id);
        }
        let id = self.write_area(self.input.graph.area_bytes(area), dump)?;
        self.areas.insert(area, id);
        Ok(id)
    }

    fn write_area(
        &mut self,
        size: OutsideBytes,
        dump: &mut DumpWriter<'_>,
    ) -> io::Result<Option<Id>> {
        let left = self.outside_left.checked_sub(size.allocated);
        let Some(left) = left.filter(|_| size.mapped == 0) else {
            self.omitted = self.omitted.plus(size);
            return Ok(None);
        };
        self.outside_left = left;
        if !self.has_byte_class {
            self.classes.class(dump, "[B", &[], 0)?;
            self.has_byte_class = true;
        }
        let id = self.classes.new_id()?;
        let elements = size.allocated.saturating_sub(ARRAY_HEADER);
        let mut part = vec![PRIMITIVE_ARRAY_DUMP];
        part.extend(numbers_be(&[id, NO_TRACE, elements as u32]));
        part.push(BYTE);
        dump.part_with_zeros(&part, elements)?;
        Ok(Some(id))
    }

    /// An array of its own for references that do not fit into their block's.
    fn further_array(&mut self, further: &[Id], dump: &mut DumpWriter<'_>) -> io::Result<Id> {
        let class = match self.further_class {
            Some(class) => class,
            None => self.classes.array_class(dump, "held, but not by a field")?,
        };
        self.further_class = Some(class);
        let id = self.classes.new_id()?;
        let elements: Vec<_> = (0..).zip(further.iter().copied()).collect();
        array(dump, id, class, further.len() as u64, &elements)?;
        Ok(id)
    }
}

fn array(
    dump: &mut DumpWriter<'_>,
    id: Id,
    class: Id,
    count: u64,
    elements: &[(u64, Id)],
) -> io::Result<()> {
    let length = i32::try_from(count).map_err(|_| {
        io::Error::other(format!(
            "a block needs an array of {count} elements, and HPROF allows 2,147,483,647; \
             use --to heapsnapshot"
        ))
    })?;
    let mut part = vec![OBJECT_ARRAY_DUMP];
    part.extend(numbers_be(&[id, NO_TRACE, length as u32, class]));
    dump.part_with_references(&part, count, elements)
}
