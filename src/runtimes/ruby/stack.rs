//! Backtraces: the runtime's own walk (`rb_profile_frames`), and the names of what it finds.
//!
//! A frame of a C function has no place of its own. It is shown at the line that called it, as Ruby's
//! backtraces have it.
//!
//! The runtime names a frame by its method or code, an object that may die: after the next marking its
//! address may belong to another. So what is known of an address holds until then.
//!
//! In hooks, under the runtime's lock, on our stack. Allocates nothing.

use std::cell::UnsafeCell;
use std::ffi::c_int;
use std::sync::Arc;

use super::names::{Names, Place, Reader};
use super::symbols::{Runtime, Value};
use super::values::Object;
use crate::sys::memory::Region;

/// The most frames of a backtrace: more than fit the stack of a thread.
const MOST_FRAMES: usize = 64 << 10;

/// The addresses of which the function is remembered; a power of two.
const REMEMBERED: usize = 8 << 10;

/// What walks need.
pub(super) struct Walker {
    runtime: Runtime,
    /// `__attached__`: the attribute of a singleton class that is the object it belongs to.
    attached: usize,
    names: Names,
    /// The frames of a walk, and their lines, two in a word.
    frames: Region,
    lines: Region,
    memory: FunctionMemory,
}

/// A function that was met.
#[derive(Clone, Copy)]
enum Function {
    Ruby(Place),
    /// The name of a C function.
    C(Place),
}

impl Walker {
    /// `None` without memory.
    pub(super) fn new(runtime: &Runtime) -> Option<Walker> {
        Some(Walker {
            runtime: *runtime,
            attached: runtime.id(c"__attached__"),
            names: Names::new()?,
            frames: Region::new(MOST_FRAMES)?,
            lines: Region::new(MOST_FRAMES / 2)?,
            memory: FunctionMemory { entries: Region::new(2 * REMEMBERED)?, epoch: 1 },
        })
    }

    pub(super) fn reader(&self) -> Reader {
        self.names.reader()
    }

    /// Objects may have died.
    pub(super) fn forget_addresses(&mut self) {
        self.memory.forget();
    }

    /// Fills `codes` with the frames of the calling thread, innermost first. Returns how many there are.
    fn walk(&mut self, codes: &mut [u64]) -> usize {
        let most = codes.len().min(MOST_FRAMES);
        let (frames, lines) = (self.frames.as_mut_ptr().cast(), self.lines.as_mut_ptr().cast());
        let count = (self.runtime.frames)(0, most as c_int, frames, lines);
        let count = usize::try_from(count).unwrap_or(0).min(most);
        // A C function has the place of its caller, which is farther out.
        let mut caller = None;
        for index in (0..count).rev() {
            let frame = self.frames.get(index).map_or(0, |&frame| frame as Value);
            let line =
                self.lines.get(index / 2).map_or(0, |lines| (lines >> (index % 2 * 32)) as u32);
            let place = match self.function(frame) {
                Some(Function::Ruby(function)) => {
                    caller = Some((function, line));
                    caller
                }
                Some(Function::C(name)) => caller.and_then(|(caller, line)| {
                    let file = self.names.file_of(caller);
                    Some((self.names.function(file, name)?, line))
                }),
                None => None,
            };
            if let Some(code) = codes.get_mut(index) {
                // 0 is a frame of which nothing is known.
                *code = place.map_or(0, |(function, line)| Names::code(function, line));
            }
        }
        count
    }

    fn function(&mut self, frame: Value) -> Option<Function> {
        if let Some(known) = self.memory.get(frame) {
            return Some(known);
        }
        let function = self.name(frame)?;
        self.memory.put(frame, function);
        Some(function)
    }

    /// Names the function of a frame.
    fn name(&mut self, frame: Value) -> Option<Function> {
        let runtime = self.runtime;
        // SAFETY: the function of a frame that is on the stack is alive.
        let frame = unsafe { Object::new(frame) }?;
        // SAFETY: the path of its code is alive with it.
        let path = unsafe { Object::new((runtime.frame_path)(frame.value())) };
        let name = match path {
            Some(_) => (runtime.frame_label)(frame.value()),
            None => (runtime.frame_method)(frame.value()),
        };
        // SAFETY: so is its name.
        let name = unsafe { Object::new(name) };
        // SAFETY: names of methods and code are never changed.
        let name = name.and_then(|name| unsafe { name.bytes() }).unwrap_or(b"(unnamed)");
        let (class, between) = self.class_name(frame).unwrap_or_default();
        let name = self.names.text(&[class, between, name])?;
        match path {
            None => Some(Function::C(name)),
            Some(path) => {
                // SAFETY: paths are never changed.
                let file = self.names.text(&[unsafe { path.bytes() }.unwrap_or(b"(unknown)")])?;
                Some(Function::Ruby(self.names.function(file, name)?))
            }
        }
    }

    /// The class of a method, if it has a name, and what Ruby writes between that and the method's name.
    fn class_name(&self, method: Object) -> Option<(&'static [u8], &'static [u8])> {
        let class = method.defined_class()?;
        let (class, between) = if class.is_singleton_class() {
            // SAFETY: a singleton class keeps its object alive.
            let of =
                unsafe { Object::new((self.runtime.attribute)(class.value(), self.attached)) }?;
            (of, &b"."[..])
        } else {
            (class, &b"#"[..])
        };
        if !class.is_class_or_module() {
            return None;
        }
        // SAFETY: a class keeps its name alive.
        let name = unsafe { Object::new((self.runtime.class_name)(class.value())) }?;
        // SAFETY: it is frozen.
        Some((unsafe { name.bytes() }?, between))
    }
}

/// The functions at addresses, direct-mapped.
struct FunctionMemory {
    /// Two words for each: the address; the epoch and the function.
    entries: Region,
    /// What was put in before it is not known any more. 31 bits, from 1.
    epoch: u64,
}

impl FunctionMemory {
    fn slot(frame: Value) -> usize {
        (frame.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) & (REMEMBERED - 1)
    }

    fn get(&self, frame: Value) -> Option<Function> {
        let slot = 2 * Self::slot(frame);
        let (&address, &entry) = (self.entries.get(slot)?, self.entries.get(slot + 1)?);
        if address != frame as u64 || entry >> 33 != self.epoch {
            return None;
        }
        let place = Place(entry as u32);
        Some(if entry >> 32 & 1 == 0 { Function::Ruby(place) } else { Function::C(place) })
    }

    fn put(&mut self, frame: Value, function: Function) {
        let slot = 2 * Self::slot(frame);
        let (is_c, place) = match function {
            Function::Ruby(place) => (0, place),
            Function::C(place) => (1, place),
        };
        if let Some([address, entry]) = self.entries.get_mut(slot..slot + 2) {
            *address = frame as u64;
            *entry = self.epoch << 33 | is_c << 32 | u64::from(place.0);
        }
    }

    fn forget(&mut self) {
        self.epoch += 1;
        if self.epoch >> 31 != 0 {
            self.entries.fill(0);
            self.epoch = 1;
        }
    }
}

/// A walker that the hooks of a session and its stack source share. Used under the runtime's lock only,
/// by one of them at a time.
pub(super) struct SharedWalker(UnsafeCell<Walker>);

// SAFETY: by the contract of its methods one thread uses it at a time.
unsafe impl Sync for SharedWalker {}
// SAFETY: it owns all that it consists of.
unsafe impl Send for SharedWalker {}

impl SharedWalker {
    pub(super) fn new(walker: Walker) -> Arc<SharedWalker> {
        Arc::new(SharedWalker(UnsafeCell::new(walker)))
    }

    /// See [`Walker::walk`].
    ///
    /// # Safety
    /// The calling thread holds the runtime's lock, in a hook.
    pub(super) unsafe fn walk(&self, codes: &mut [u64]) -> usize {
        // SAFETY: by the contract, and since the functions of the runtime that a walk calls call no hook,
        // nobody else uses it.
        unsafe { &mut *self.0.get() }.walk(codes)
    }

    /// See [`Walker::forget_addresses`].
    ///
    /// # Safety
    /// The calling thread holds the runtime's lock, in a hook, outside of a walk.
    pub(super) unsafe fn forget_addresses(&self) {
        // SAFETY: by the contract.
        unsafe { &mut *self.0.get() }.forget_addresses();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_known_until_objects_may_have_died() {
        let mut memory =
            FunctionMemory { entries: Region::new(2 * REMEMBERED).unwrap(), epoch: (1 << 31) - 2 };
        for _ in 0..4 {
            memory.put(0x7000, Function::C(Place(u32::MAX)));
            assert!(matches!(memory.get(0x7000), Some(Function::C(Place(u32::MAX)))));
            memory.put(0x7000, Function::Ruby(Place(3)));
            assert!(matches!(memory.get(0x7000), Some(Function::Ruby(Place(3)))));
            assert!(memory.get(0x7008).is_none());
            memory.forget();
            assert!(memory.get(0x7000).is_none());
        }
    }
}
