//! `heaptap export --to hprof`, read by a library for heap dumps of Java.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;

use heaptap_graph::{HolderName, HolderTree, Names, Node};
use heaptap_heap::RootKind;
use heaptap_report::escape::Escaped;
use jvm_hprof::heap_dump::{FieldType, FieldValue, PrimitiveArrayType, SubRecord};
use jvm_hprof::{Hprof, IdSize, parse_hprof};

use crate::made_snapshot::{Analysed, analysed, made_snapshot};
use crate::program::{Place, heaptap};

/// An object as a reader for Java sees it.
struct JavaObject {
    class: u64,
    /// As Eclipse MAT counts with ids of 4 bytes.
    bytes: u64,
    references: Vec<u64>,
}

/// A heap dump of Java.
#[derive(Default)]
struct JavaHeap {
    /// Names of classes.
    classes: HashMap<u64, String>,
    objects: BTreeMap<u64, JavaObject>,
    /// Class, field and object.
    statics: Vec<(u64, String, u64)>,
    sticky: BTreeSet<u64>,
    jni_globals: Vec<u64>,
    jni_locals: Vec<(u64, u32)>,
    /// Object, thread and frame.
    java_frames: Vec<(u64, u32, u32)>,
    /// Object, serial number, number of stack trace.
    threads: Vec<(u64, u32, u32)>,
    /// Names of frames by the number of the stack trace.
    traces: HashMap<u32, Vec<String>>,
}

impl JavaHeap {
    fn read(file: &[u8]) -> JavaHeap {
        let hprof = parse_hprof(file).unwrap();
        let mut heap = JavaHeap::default();
        let mut strings: HashMap<u64, String> = HashMap::new();
        let mut frames: HashMap<u64, u64> = HashMap::new();
        for record in hprof.records_iter().map(Result::unwrap) {
            if let Some(text) = record.as_utf_8() {
                let text = text.unwrap();
                strings.insert(text.name_id().id(), text.text_as_str().unwrap().to_owned());
            } else if let Some(class) = record.as_load_class() {
                let class = class.unwrap();
                let name = strings[&class.class_name_id().id()].clone();
                heap.classes.insert(class.class_obj_id().id(), name);
            } else if let Some(frame) = record.as_stack_frame() {
                let frame = frame.unwrap();
                frames.insert(frame.id().id(), frame.method_name_id().id());
            } else if let Some(trace) = record.as_stack_trace() {
                let trace = trace.unwrap();
                let ids = trace.frame_ids().map(|id| id.unwrap().id());
                let names = ids.map(|id| strings[&frames[&id]].clone()).collect();
                heap.traces.insert(trace.stack_trace_serial().num(), names);
            }
        }
        heap.read_parts(&hprof, &strings);
        heap
    }

    fn read_parts(&mut self, hprof: &Hprof<'_>, strings: &HashMap<u64, String>) {
        let mut fields: HashMap<u64, Vec<FieldType>> = HashMap::new();
        for record in hprof.records_iter().map(Result::unwrap) {
            let Some(segment) = record.as_heap_dump_segment() else { continue };
            for part in segment.unwrap().sub_records().map(Result::unwrap) {
                match part {
                    SubRecord::Class(class) => {
                        let id = class.obj_id().id();
                        let types: Vec<_> = class
                            .instance_field_descriptors()
                            .map(|field| field.unwrap().field_type())
                            .collect();
                        fields.insert(id, types);
                        for field in class.static_fields().map(Result::unwrap) {
                            let FieldValue::ObjectId(Some(value)) = field.value() else { panic!() };
                            let name = strings[&field.name_id().id()].clone();
                            self.statics.push((id, name, value.id()));
                        }
                    }
                    SubRecord::Instance(instance) => {
                        let class = instance.class_obj_id().id();
                        let (mut rest, mut references) = (*instance.fields(), Vec::new());
                        let bytes = 8 + rest.len() as u64;
                        for field in &fields[&class] {
                            let (behind, value) = field.parse_value(rest, IdSize::U32).unwrap();
                            rest = behind;
                            if let FieldValue::ObjectId(Some(id)) = value {
                                references.push(id.id());
                            }
                        }
                        assert!(rest.is_empty());
                        self.add(instance.obj_id().id(), JavaObject { class, bytes, references });
                    }
                    SubRecord::ObjectArray(array) => {
                        let elements: Vec<_> =
                            array.elements(IdSize::U32).map(Result::unwrap).collect();
                        let object = JavaObject {
                            class: array.array_class_obj_id().id(),
                            bytes: (12 + 4 * elements.len() as u64).next_multiple_of(8),
                            references: elements.into_iter().flatten().map(|id| id.id()).collect(),
                        };
                        self.add(array.obj_id().id(), object);
                    }
                    SubRecord::PrimitiveArray(array) => {
                        assert_eq!(array.primitive_type(), PrimitiveArrayType::Byte);
                        let elements = array.bytes().unwrap().map(Result::unwrap);
                        let count = elements.inspect(|byte| assert_eq!(*byte, 0)).count();
                        let object = JavaObject {
                            class: self.byte_class(),
                            bytes: (12 + count as u64).next_multiple_of(8),
                            references: Vec::new(),
                        };
                        self.add(array.obj_id().id(), object);
                    }
                    SubRecord::GcRootSystemClass(root) => {
                        assert!(self.sticky.insert(root.obj_id().id()));
                    }
                    SubRecord::GcRootJniGlobal(root) => self.jni_globals.push(root.obj_id().id()),
                    SubRecord::GcRootJniLocalRef(root) => {
                        self.jni_locals.push((root.obj_id().id(), root.thread_serial().num()));
                    }
                    SubRecord::GcRootJavaStackFrame(root) => {
                        let (thread, frame) = (root.thread_serial().num(), root.frame_index());
                        self.java_frames.push((root.obj_id().id(), thread, frame.unwrap()));
                    }
                    SubRecord::GcRootThreadObj(root) => self.threads.push((
                        root.thread_obj_id().unwrap().id(),
                        root.thread_serial().num(),
                        root.stack_trace_serial().num(),
                    )),
                    _ => panic!("an unexpected part"),
                }
            }
        }
    }

    fn byte_class(&self) -> u64 {
        *self.classes.iter().find(|(_, name)| *name == "[B").unwrap().0
    }

    fn add(&mut self, id: u64, object: JavaObject) {
        assert!(self.classes.contains_key(&object.class));
        assert!(self.objects.insert(id, object).is_none(), "two objects have the id {id}");
    }
}

fn id(block: u32) -> u64 {
    u64::from(block) + 1
}

/// Of one block.
const TOO_MUCH_OUTSIDE: u64 = 5 << 30;

fn exported() -> (Analysed, JavaHeap) {
    let place = Place::new();
    let bytes = made_snapshot();
    let snapshot = place.file("a.heap", &bytes);
    let out = place.path("a.hprof");
    let run = heaptap(&format!("export --to hprof -o {}", out.display()), &[&snapshot]);
    assert_eq!(run.text(0), "");
    let found = analysed(&bytes);
    run.says(0, &[&format!("{TOO_MUCH_OUTSIDE} bytes outside the heap are not in the file")]);
    (found, JavaHeap::read(&fs::read(out).unwrap()))
}

#[test]
fn objects_have_the_sizes_and_references_of_blocks() {
    let (Analysed { graph, tree, kinds, .. }, java) = exported();
    let live: Vec<u32> = (0..graph.blocks() as u32)
        .filter(|block| tree.position(Node::Block(*block)).is_some())
        .collect();
    let names = Names::new(&graph);
    let mut data: HashMap<u32, Vec<u32>> = HashMap::new();
    for (ephemeron, target) in graph.live_ephemeron_data() {
        data.entry(ephemeron).or_default().push(target);
    }
    assert_eq!(data.len(), 1);
    let (mut further, mut outside) = (0, Vec::new());
    for &block in &live {
        let object = &java.objects[&id(block)];
        let mut references = Vec::new();
        let mut bytes_outside = 0;
        for reference in &object.references {
            if java.objects.get(reference).is_some_and(|to| to.class == java.byte_class()) {
                bytes_outside = java.objects[reference].bytes;
                outside.push(bytes_outside);
            } else if *reference > graph.blocks() as u64 {
                // An array of what does not fit into its block, which is larger by that.
                further += 1;
                references.extend(&java.objects[reference].references);
            } else {
                references.push(*reference);
            }
        }
        let targets = graph.targets(block).iter().chain(data.get(&block).into_iter().flatten());
        let mut expected: Vec<u64> = targets.map(|target| id(*target)).collect();
        references.sort_unstable();
        expected.sort_unstable();
        assert_eq!(references, expected, "block {block}");
        assert_eq!(object.bytes, graph.bytes(block), "block {block}");
        let expected = graph.custom(block).map_or(0, |custom| custom.outside_bytes);
        let expected = if expected == TOO_MUCH_OUTSIDE { 0 } else { expected };
        assert_eq!(bytes_outside, expected.next_multiple_of(8), "outside of block {block}");
        let kind = names.kind(kinds.kind(kinds.of(&graph, block)).unwrap());
        let class = &java.classes[&object.class];
        let class =
            class.strip_prefix("[L").map_or(&**class, |name| name.strip_suffix(';').unwrap());
        assert_eq!(class, Escaped(kind.as_bytes()).to_string());
        assert!(!class.contains(char::is_control));
    }
    // The suspended stack has three slots, and its block of two words has room for one.
    assert_eq!(further, 1);
    assert!(outside.len() > 50, "{outside:?}");
    assert_eq!(java.objects.len(), live.len() + java.threads.len() + further + outside.len());
}

#[test]
fn roots_are_those_of_the_holders() {
    let (Analysed { graph, holders, .. }, java) = exported();
    let mut expected: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for holder in holders.ids() {
        let kind = holders.path(holder).first().map(|kind| holders.name(*kind));
        let word = match kind {
            Some(HolderTree::THREADS) => match holders.name(holder) {
                HolderName::LocalC => "local",
                HolderName::DomainLocal(_) => "static",
                _ => "frame",
            },
            Some(HolderName::Kind(RootKind::GlobalC)) => "global",
            _ => "static",
        };
        expected.entry(word).or_default().extend(holders.root_blocks(holder).map(id));
    }
    let found = [
        ("frame", java.java_frames.iter().map(|root| root.0).collect::<Vec<_>>()),
        ("local", java.jni_locals.iter().map(|root| root.0).collect()),
        ("global", java.jni_globals.clone()),
        ("static", java.statics.iter().map(|root| root.2).collect()),
    ];
    for (word, mut found) in found {
        let mut expected = expected.remove(word).unwrap();
        expected.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, expected, "{word}");
        assert!(!found.is_empty());
    }
    // Every class with static fields is a root.
    assert_eq!(java.statics.iter().map(|field| field.0).collect::<BTreeSet<_>>(), java.sticky);
    let names: BTreeSet<(&str, &str)> =
        java.statics.iter().map(|(class, name, _)| (&*java.classes[class], &**name)).collect();
    assert!(names.contains(&("Cache", "Cache, field 3")), "{names:?}");
    assert!(names.contains(&("finalisers", "Gc.finalise")), "{names:?}");
    // One thread, with its two frames.
    let [(object, serial, trace)] = java.threads[..] else { panic!("{:?}", java.threads) };
    assert!(java.classes[&java.objects[&object].class].starts_with("thread 7 (q\""));
    assert_eq!(java.traces[&trace].len(), 2);
    assert!(java.traces[&trace][1].starts_with("frame 1: q\""));
    assert!(java.java_frames.iter().all(|root| root.1 == serial));
    let deeper = graph.number(graph.address(900).unwrap()).map(id).unwrap();
    assert!(java.java_frames.contains(&(deeper, serial, 1)));
    assert_eq!(java.jni_locals[0].1, serial);
}
