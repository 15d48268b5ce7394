//! The parameters of OCaml 4 (`caml_runtime_parameters`, `runtime/gc_ctrl.c`, the same
//! from 4.12.1 to 4.14.2).

use std::sync::Arc;

use super::proof::Proved;
use super::symbols::Runtime;
use crate::runtimes::attach::symbols::lookup;
use crate::runtimes::ocaml::parameters::{ParameterSource, Parameters};
use crate::tracer::ReadParams;

/// Reads the parameters. `None` if a variable is not found.
pub(super) fn reader(runtime: &Runtime, proved: Proved) -> Option<ReadParams> {
    let word = |name| lookup(name).map(ParameterSource::Word);
    let int = |name| lookup(name).map(ParameterSource::Int);
    let layout = &proved.known.state;
    let stack =
        if proved.is_native { ParameterSource::Constant(0) } else { word(c"caml_max_stack_size")? };
    let sources = vec![
        ('a', int(c"caml_allocation_policy")?),
        ('b', ParameterSource::StateInt(layout.backtrace_active)),
        ('H', word(c"caml_use_huge_pages")?),
        ('i', word(c"caml_major_heap_increment")?),
        ('l', stack),
        ('o', word(c"caml_percent_free")?),
        ('O', word(c"caml_percent_max")?),
        ('p', int(c"caml_parser_trace")?),
        ('s', ParameterSource::StateWord(layout.minor_heap_wsz)),
        ('t', word(c"caml_trace_level")?),
        ('v', word(c"caml_verb_gc")?),
        ('w', int(c"caml_major_window")?),
        ('W', word(c"caml_runtime_warnings")?),
    ];
    let (state, atom_table) = (runtime.state, lookup(c"caml_atom_table")?);
    let state = move || {
        // SAFETY: `caml_atom_table` is a pointer, NULL until `caml_init_atom_table` sets it
        // (`runtime/startup_aux.c`, 4.14.1).
        let atoms = unsafe { (atom_table as *const usize).read_volatile() };
        // SAFETY: `Caml_state` is a pointer, NULL until the state is made
        // (`caml_init_domain`, `runtime/domain.c`), and then never changes.
        let address = unsafe { (state as *const usize).read_volatile() };
        // The table is made after all parameters are set: the last of them by `caml_init_gc`
        // in native code, by `caml_init_stack` in bytecode (`runtime/startup_nat.c` and
        // `runtime/startup_byt.c`, 4.14.1).
        (atoms != 0 && address != 0).then_some(address)
    };
    // SAFETY: variables of the runtime with these types (`runtime/caml/*.h`, 4.14.1), and
    // its only state, whose table has these words.
    let parameters = unsafe { Parameters::new(sources, state) };
    Some(Arc::new(move || parameters.read()))
}
