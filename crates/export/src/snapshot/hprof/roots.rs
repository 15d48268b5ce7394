//! What holds the roots.
//!
//! Threads are thread objects, their frames stack frames with Java frame roots, what C code has in local variables
//! are JNI locals, what it has in global ones JNI globals. All other holders are static
//! fields of a class: a module, a kind of root.

use std::io;

use heaptap_graph::{HolderId, HolderName, HolderTree};
use heaptap_heap::RootKind;

use super::classes::{ClassTable, StaticField};
use super::records::{DumpWriter, Id, NO_TRACE, next, numbers_be};
use crate::snapshot::SnapshotInput;

const ROOT_JNI_GLOBAL: u8 = 0x01;
const ROOT_JNI_LOCAL: u8 = 0x02;
const ROOT_JAVA_FRAME: u8 = 0x03;
const ROOT_STICKY_CLASS: u8 = 0x05;
const ROOT_THREAD_OBJECT: u8 = 0x08;
const INSTANCE_DUMP: u8 = 0x21;

/// A class has at most this many static fields.
const MOST_STATICS: usize = u16::MAX as usize;

/// Writes roots.
pub(super) struct RootWriter<'a, 'b> {
    input: &'a SnapshotInput<'a>,
    classes: &'b mut ClassTable<'a>,
    /// The serial number of the last thread, from 1 on; a stack trace has that of its thread.
    threads: u32,
    /// The id of the last stack frame.
    frame: Id,
}

impl<'a, 'b> RootWriter<'a, 'b> {
    pub(super) fn new(
        input: &'a SnapshotInput<'a>,
        classes: &'b mut ClassTable<'a>,
    ) -> RootWriter<'a, 'b> {
        RootWriter { input, classes, threads: 0, frame: 0 }
    }

    pub(super) fn write(&mut self, dump: &mut DumpWriter<'_>) -> io::Result<()> {
        let holders = self.input.holders;
        for kind in holders.children(HolderTree::PROGRAM) {
            match holders.name(kind) {
                HolderName::Kind(RootKind::GlobalC) => self.c_globals(kind, dump)?,
                HolderTree::THREADS => {
                    for part in holders.children(kind).flat_map(|domain| holders.children(domain)) {
                        match holders.name(part) {
                            HolderName::Thread(_) => self.thread(part, dump)?,
                            _ => self.statics(part, dump)?,
                        }
                    }
                }
                _ => self.statics(kind, dump)?,
            }
        }
        Ok(())
    }

    fn c_globals(&mut self, kind: HolderId, dump: &mut DumpWriter<'_>) -> io::Result<()> {
        for slot in self.input.holders.children(kind) {
            // The id of the reference; its address has more than 32 bits.
            let reference = self.classes.new_id()?;
            for block in self.input.holders.root_blocks(slot) {
                root(dump, ROOT_JNI_GLOBAL, &[ClassTable::block_id(block), reference])?;
            }
        }
        Ok(())
    }

    /// A holder with those below it that have no children as the static fields of a class, and a class for each
    /// of the others.
    fn statics(&mut self, holder: HolderId, dump: &mut DumpWriter<'_>) -> io::Result<()> {
        let holders = self.input.holders;
        let mut fields = Vec::new();
        let mut add = |field: HolderId| {
            for block in holders.root_blocks(field) {
                let name = self.input.holder_name(field);
                fields.push(StaticField { name, value: ClassTable::block_id(block) });
            }
        };
        add(holder);
        for below in holders.children(holder) {
            if holders.children(below).next().is_some() {
                continue;
            }
            add(below);
        }
        let name = self.input.holder_name(holder);
        for (index, part) in fields.chunks(MOST_STATICS).enumerate() {
            let name = if index == 0 { name.clone() } else { format!("{name} ({})", index + 1) };
            let class = self.classes.class(dump, &name, part, 0)?;
            root(dump, ROOT_STICKY_CLASS, &[class])?;
        }
        for below in holders.children(holder) {
            if holders.children(below).next().is_some() {
                self.statics(below, dump)?;
            }
        }
        Ok(())
    }

    /// What a thread holds in its frames and in the local variables of C code.
    fn thread(&mut self, thread: HolderId, dump: &mut DumpWriter<'_>) -> io::Result<()> {
        let holders = self.input.holders;
        let serial = self.thread_object(thread, dump)?;
        for (index, frame) in (0..).zip(self.frames(thread)) {
            for block in holders.root_blocks(frame) {
                root(dump, ROOT_JAVA_FRAME, &[ClassTable::block_id(block), serial, index])?;
            }
        }
        let is_local = |part: &HolderId| holders.name(*part) == HolderName::LocalC;
        for part in holders.children(thread).filter(is_local) {
            for block in holders.root_blocks(part) {
                // In no frame.
                root(dump, ROOT_JNI_LOCAL, &[ClassTable::block_id(block), serial, u32::MAX])?;
            }
        }
        Ok(())
    }

    /// The frames of a thread, and the handlers of its fibers.
    fn frames(&self, thread: HolderId) -> impl Iterator<Item = HolderId> + use<'a> {
        let holders = self.input.holders;
        let is_frame = |part: &HolderId| holders.name(*part) != HolderName::LocalC;
        holders.children(thread).filter(is_frame)
    }

    /// An object of a class that has the thread's name, and its frames. Returns its serial number.
    fn thread_object(&mut self, thread: HolderId, dump: &mut DumpWriter<'_>) -> io::Result<u32> {
        self.threads += 1;
        let serial = self.threads;
        let class = self.classes.class(dump, &self.input.holder_name(thread), &[], 0)?;
        let mut frames = Vec::new();
        for frame in self.frames(thread) {
            self.frame = next(self.frame)?;
            let name = dump.string(&self.input.holder_name(frame))?;
            dump.stack_frame(self.frame, name, self.classes.last_serial())?;
            frames.push(self.frame);
        }
        dump.stack_trace(serial, serial, &frames)?;
        let object = self.classes.new_id()?;
        let mut part = vec![INSTANCE_DUMP];
        part.extend(numbers_be(&[object, NO_TRACE, class, 0]));
        dump.part(&part)?;
        root(dump, ROOT_THREAD_OBJECT, &[object, serial, serial])?;
        Ok(serial)
    }
}

fn root(dump: &mut DumpWriter<'_>, tag: u8, numbers: &[u32]) -> io::Result<()> {
    let mut part = vec![tag];
    part.extend(numbers_be(numbers));
    dump.part(&part)
}
