//! Where Ruby 3.1.2 on amd64 keeps what, in bytes.

/// `struct rb_vm_struct` (`vm_core.h`): its `objspace`.
pub(super) const VM_OBJSPACE: usize = 1104;
/// Its `ractor.main_ractor`.
pub(super) const VM_MAIN_RACTOR: usize = 32;

/// `struct rb_ractor_pub` (`vm_core.h`), with which a ractor begins: the first hook of its `hooks`.
pub(super) const RACTOR_HOOKS: usize = 16;

/// `rb_event_hook_t` (`vm_trace.c`): its flags, with the events behind them.
pub(super) const HOOK_FLAGS: usize = 0;
pub(super) const HOOK_FUNCTION: usize = 8;
pub(super) const HOOK_NEXT: usize = 24;
/// `RUBY_EVENT_HOOK_FLAG_DELETED`, in the flags.
pub(super) const DELETED: u32 = 2;

/// `struct rb_objspace` (`gc.c`): the bit field `flags`.
pub(super) const FLAGS: usize = 16;
/// The events for which there are hooks, `hook_events`.
pub(super) const HOOK_EVENTS: usize = 20;
/// `total_allocated_objects`.
pub(super) const TOTAL: usize = 24;

/// In `flags`: `has_hook`. While it is set, no object is allocated on the fast path.
pub(super) const HAS_HOOK: u32 = 1 << 8;
/// In `flags`: `during_minor_gc`, the bit behind it, of the last collection.
pub(super) const IS_MINOR: u32 = 1 << 9;

/// The words of a slot: `sizeof(RVALUE)`. There is one size of slots without `USE_RVARGC`.
pub(super) const SLOT_WORDS: usize = 5;

/// The objects of a page, at most: `HEAP_PAGE_OBJ_LIMIT` (`gc.c`).
pub(super) const PAGE_OBJECTS: usize = 409;

/// `RUBY_INTERNAL_EVENT_NEWOBJ` (`include/ruby/internal/event.h`).
pub(super) const NEW_OBJECT: u32 = 0x10_0000;
/// `RUBY_INTERNAL_EVENT_GC_START`: a collection begins, and has marked nothing.
pub(super) const START_OF_COLLECTION: u32 = 0x40_0000;
/// `RUBY_INTERNAL_EVENT_GC_END_MARK`.
pub(super) const END_OF_MARKING: u32 = 0x80_0000;
/// `RUBY_INTERNAL_EVENT_GC_ENTER`: the program stands still.
pub(super) const ENTRY: u32 = 0x200_0000;
/// `RUBY_INTERNAL_EVENT_GC_EXIT`: it goes on.
pub(super) const EXIT: u32 = 0x400_0000;

/// `RUBY_EVENT_HOOK_FLAG_RAW_ARG` (`include/ruby/debug.h`).
pub(super) const RAW_ARGUMENT: libc::c_int = 4;

/// `struct RBasic`: the class.
pub(super) const CLASS: usize = 8;

/// In the flags of an object: its type, `RUBY_T_MASK` (`include/ruby/internal/value_type.h`).
pub(super) const TYPE: usize = 0x1f;
pub(super) const T_CLASS: usize = 0x02;
pub(super) const T_MODULE: usize = 0x03;
pub(super) const T_STRING: usize = 0x05;
pub(super) const T_DATA: usize = 0x0c;
pub(super) const T_IMEMO: usize = 0x1a;
pub(super) const T_ICLASS: usize = 0x1c;

/// `FL_PROMOTED0 | FL_PROMOTED1`: both are set of an old object (`RVALUE_AGE`, `gc.c`).
pub(super) const OLD: usize = 0x60;

/// `FL_SINGLETON` of a class: `FL_USER0`.
pub(super) const SINGLETON: usize = 1 << 12;

/// `FL_USHIFT` and `IMEMO_MASK`: which internal object it is (`internal/imemo.h`).
pub(super) const IMEMO_SHIFT: usize = 12;
pub(super) const IMEMO_MASK: usize = 0x0f;
/// `imemo_ment`: a method entry.
pub(super) const METHOD_ENTRY: usize = 6;
/// `rb_callable_method_entry_t` (`method.h`): `defined_class`.
pub(super) const DEFINED_CLASS: usize = 8;

/// `struct RString` (`include/ruby/internal/core/rstring.h`): `RSTRING_NOEMBED`, in the flags.
pub(super) const NOT_EMBEDDED: usize = 1 << 13;
/// The length of an embedded string in the flags.
pub(super) const EMBEDDED_SHIFT: usize = 14;
pub(super) const EMBEDDED_MASK: usize = 0x1f;
/// The bytes of an embedded string, or the length of another one.
pub(super) const STRING: usize = 16;
/// The address of the bytes of a string that is not embedded.
pub(super) const STRING_POINTER: usize = 24;

/// `Qfalse`, `Qnil` and `Qtrue` (`include/ruby/internal/special_consts.h`, with flonums).
pub(super) const FALSE: usize = 0;
pub(super) const NIL: usize = 8;
pub(super) const TRUE: usize = 0x14;

/// Instructions of `rb_ec_wb_protected_newobj_of`, the fast path itself: it takes the objspace out
/// of the virtual machine, tests `during_gc`, `gc_stressful` and `has_hook`, and counts the object.
pub(super) const FAST_PATH: [&[u8]; 3] = [
    // mov 0x450(%rax),%rdx
    &[0x48, 0x8b, 0x90, 0x50, 0x04, 0x00, 0x00],
    // testw $0x1a0,0x10(%rdx)
    &[0x66, 0xf7, 0x42, 0x10, 0xa0, 0x01],
    // addq $0x1,0x18(%rdx)
    &[0x48, 0x83, 0x42, 0x18, 0x01],
];
