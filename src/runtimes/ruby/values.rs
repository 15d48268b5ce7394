//! Strings, classes and methods of the program, read in place.
//!
//! Values come from the runtime and are alive, which the caller guarantees: it runs under the
//! runtime's lock, in a hook, and keeps none of them beyond it.

use super::layout::{
    CLASS, DEFINED_CLASS, EMBEDDED_MASK, EMBEDDED_SHIFT, FALSE, IMEMO_MASK, IMEMO_SHIFT,
    METHOD_ENTRY, NIL, NOT_EMBEDDED, SINGLETON, STRING, STRING_POINTER, T_CLASS, T_ICLASS, T_IMEMO,
    T_MODULE, T_STRING, TYPE,
};
use super::symbols::Value;

/// The low bits that are set of values that are no objects (`special_consts.h`).
const IMMEDIATE: usize = 7;

/// An object of the program, which is alive.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Object(usize);

impl Object {
    /// `None` if the value is `nil`, a number or the like.
    ///
    /// # Safety
    /// The value is from the runtime, and what it names is alive as long as this is used.
    pub(super) unsafe fn new(value: Value) -> Option<Object> {
        (value != FALSE && value != NIL && value & IMMEDIATE == 0).then_some(Object(value))
    }

    pub(super) fn value(self) -> Value {
        self.0
    }

    fn word(self, offset: usize) -> usize {
        // SAFETY: an object is a slot of five words, by the contract of `new`, and offsets are below.
        unsafe { ((self.0 + offset) as *const usize).read() }
    }

    fn flags(self) -> usize {
        self.word(0)
    }

    pub(super) fn has_type(self, wanted: usize) -> bool {
        self.flags() & TYPE == wanted
    }

    /// Whether all of these flags are set.
    pub(super) fn has(self, flags: usize) -> bool {
        self.flags() & flags == flags
    }

    /// The class. Its name is the kind of a sampled object.
    pub(super) fn class(self) -> Option<Object> {
        // SAFETY: an object keeps its class alive.
        unsafe { Object::new(self.word(CLASS)) }
    }

    pub(super) fn is_class_or_module(self) -> bool {
        self.has_type(T_CLASS) || self.has_type(T_MODULE)
    }

    pub(super) fn is_singleton_class(self) -> bool {
        self.has_type(T_CLASS) && self.has(SINGLETON)
    }

    /// The class or module in which a method is defined; `None` of other objects.
    pub(super) fn defined_class(self) -> Option<Object> {
        let is_method =
            self.has_type(T_IMEMO) && (self.flags() >> IMEMO_SHIFT) & IMEMO_MASK == METHOD_ENTRY;
        // SAFETY: a method keeps its class alive.
        let class = unsafe { Object::new(is_method.then(|| self.word(DEFINED_CLASS))?) }?;
        // What includes a module has a class of its own for it, whose class is the module.
        if class.has_type(T_ICLASS) { class.class() } else { Some(class) }
    }

    /// The bytes of a string; `None` of other objects.
    ///
    /// # Safety
    /// The string does not change as long as they are used.
    pub(super) unsafe fn bytes<'a>(self) -> Option<&'a [u8]> {
        if !self.has_type(T_STRING) {
            return None;
        }
        let (start, length) = if self.has(NOT_EMBEDDED) {
            (self.word(STRING_POINTER), self.word(STRING))
        } else {
            (self.0 + STRING, (self.flags() >> EMBEDDED_SHIFT) & EMBEDDED_MASK)
        };
        // SAFETY: as `RSTRING_PTR` and `RSTRING_LEN` have it; by the contract nobody changes it.
        (start != 0).then(|| unsafe { std::slice::from_raw_parts(start as *const u8, length) })
    }
}
