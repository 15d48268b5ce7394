//! What is used of the runtime. All of it is exported by the library or program that is Ruby.

use std::ffi::{CStr, c_char, c_int, c_long, c_void};

use crate::runtimes::attach::Refusal;
use crate::runtimes::attach::symbols::{Symbol, function, functions, needed};

/// `VALUE`.
pub(super) type Value = usize;

/// `rb_event_hook_raw_arg_func_t` (`include/ruby/debug.h`), with its `rb_trace_arg_t *`.
pub(super) type EventHook = extern "C" fn(Value, *mut c_void);

/// `rb_data_type_t` (`include/ruby/internal/core/rtypeddata.h`).
#[repr(C)]
pub(super) struct DataType {
    pub(super) name: *const c_char,
    pub(super) mark: Option<extern "C" fn(*mut c_void)>,
    pub(super) free: Option<extern "C" fn(*mut c_void)>,
    pub(super) size: Option<extern "C" fn(*const c_void) -> usize>,
    /// Called while references to moved objects are updated.
    pub(super) compact: Option<extern "C" fn(*mut c_void)>,
    pub(super) reserved: *const c_void,
    pub(super) parent: *const DataType,
    pub(super) data: *const c_void,
    pub(super) flags: Value,
}

// SAFETY: never written; its pointers lead to constants.
unsafe impl Sync for DataType {}

/// The functions and variables of the runtime. None of the functions allocates an object, raises, or
/// releases the lock when it is used as here, except where it says so.
#[derive(Clone, Copy)]
pub(super) struct Runtime {
    /// `rb_vm_t *ruby_current_vm_ptr`
    pub(super) vm: usize,
    /// `VALUE rb_cRactor`
    pub(super) ractor_class: usize,
    /// `VALUE rb_cObject`
    pub(super) object_class: usize,
    /// `const char ruby_copyright[]`
    pub(super) copyright: usize,
    /// The fast path of allocations: `rb_ec_wb_protected_newobj_of`.
    pub(super) fast_path: Symbol,
    pub(super) add_hook: extern "C" fn(EventHook, u32, Value, c_int),
    pub(super) remove_hook: extern "C" fn(EventHook, Value) -> c_int,
    pub(super) event_of: extern "C" fn(*mut c_void) -> u32,
    pub(super) object_of: extern "C" fn(*mut c_void) -> Value,
    /// Of an object that has not been swept.
    pub(super) is_marked: extern "C" fn(Value) -> c_int,
    pub(super) location: extern "C" fn(Value) -> Value,
    pub(super) inherits: extern "C" fn(Value, Value) -> Value,
    /// Allocates an object.
    pub(super) wrap: extern "C" fn(Value, *mut c_void, *const DataType) -> Value,
    pub(super) frames: extern "C" fn(c_int, c_int, *mut Value, *mut c_int) -> c_int,
    pub(super) frame_path: extern "C" fn(Value) -> Value,
    pub(super) frame_label: extern "C" fn(Value) -> Value,
    pub(super) frame_method: extern "C" fn(Value) -> Value,
    pub(super) class_name: extern "C" fn(Value) -> Value,
    pub(super) attribute: extern "C" fn(Value, usize) -> Value,
    pub(super) has_constant: extern "C" fn(Value, usize) -> c_int,
    /// Raises if there is none.
    pub(super) constant: extern "C" fn(Value, usize) -> Value,
    /// Allocates objects for a name that does not exist.
    pub(super) intern: extern "C" fn(*const c_char, c_long) -> usize,
}

/// `ruby_setup`, which makes the heap.
pub(super) fn setup() -> Result<Symbol, Refusal> {
    functions([c"ruby_setup"], []).map(|([setup], [])| setup)
}

impl Runtime {
    pub(super) fn find() -> Result<Runtime, Refusal> {
        let ([fast_path], []) = functions([c"rb_ec_wb_protected_newobj_of"], [])?;
        Ok(Runtime {
            vm: needed(c"ruby_current_vm_ptr")?,
            ractor_class: needed(c"rb_cRactor")?,
            object_class: needed(c"rb_cObject")?,
            copyright: needed(c"ruby_copyright")?,
            fast_path,
            // SAFETY: `void rb_add_event_hook2(rb_event_hook_func_t, rb_event_flag_t, VALUE,
            // rb_event_hook_flag_t)` (`vm_trace.c`), where the function is a raw one by its flag.
            add_hook: unsafe { function(c"rb_add_event_hook2") }?,
            // SAFETY: `int rb_remove_event_hook_with_data(rb_event_hook_func_t, VALUE)` (`vm_trace.c`).
            remove_hook: unsafe { function(c"rb_remove_event_hook_with_data") }?,
            // SAFETY: `rb_event_flag_t rb_tracearg_event_flag(rb_trace_arg_t *)` (`vm_trace.c`).
            event_of: unsafe { function(c"rb_tracearg_event_flag") }?,
            // SAFETY: `VALUE rb_tracearg_object(rb_trace_arg_t *)` (`vm_trace.c`).
            object_of: unsafe { function(c"rb_tracearg_object") }?,
            // SAFETY: `int rb_objspace_marked_object_p(VALUE)` (`gc.c`).
            is_marked: unsafe { function(c"rb_objspace_marked_object_p") }?,
            // SAFETY: `VALUE rb_gc_location(VALUE)` (`gc.c`).
            location: unsafe { function(c"rb_gc_location") }?,
            // SAFETY: `VALUE rb_class_inherited_p(VALUE, VALUE)` (`object.c`).
            inherits: unsafe { function(c"rb_class_inherited_p") }?,
            // SAFETY: `VALUE rb_data_typed_object_wrap(VALUE, void *, const rb_data_type_t *)` (`gc.c`).
            wrap: unsafe { function(c"rb_data_typed_object_wrap") }?,
            // SAFETY: `int rb_profile_frames(int, int, VALUE *, int *)` (`vm_backtrace.c`).
            frames: unsafe { function(c"rb_profile_frames") }?,
            // SAFETY: `VALUE rb_profile_frame_path(VALUE)` (`vm_backtrace.c`).
            frame_path: unsafe { function(c"rb_profile_frame_path") }?,
            // SAFETY: `VALUE rb_profile_frame_base_label(VALUE)` (`vm_backtrace.c`).
            frame_label: unsafe { function(c"rb_profile_frame_base_label") }?,
            // SAFETY: `VALUE rb_profile_frame_method_name(VALUE)` (`vm_backtrace.c`).
            frame_method: unsafe { function(c"rb_profile_frame_method_name") }?,
            // SAFETY: `VALUE rb_mod_name(VALUE)` (`variable.c`), which looks the name up.
            class_name: unsafe { function(c"rb_mod_name") }?,
            // SAFETY: `VALUE rb_attr_get(VALUE, ID)` (`variable.c`).
            attribute: unsafe { function(c"rb_attr_get") }?,
            // SAFETY: `int rb_const_defined(VALUE, ID)` (`variable.c`).
            has_constant: unsafe { function(c"rb_const_defined") }?,
            // SAFETY: `VALUE rb_const_get(VALUE, ID)` (`variable.c`).
            constant: unsafe { function(c"rb_const_get") }?,
            // SAFETY: `ID rb_intern2(const char *, long)` (`symbol.c`).
            intern: unsafe { function(c"rb_intern2") }?,
        })
    }

    /// The number of a name that exists.
    pub(super) fn id(&self, name: &CStr) -> usize {
        (self.intern)(name.as_ptr(), name.count_bytes() as c_long)
    }

    /// The value of a variable of the runtime.
    pub(super) fn variable(&self, address: usize) -> Value {
        // SAFETY: the address of one of the variables above, each of which is a word; nobody writes
        // it once the runtime is set up.
        unsafe { (address as *const Value).read() }
    }
}
