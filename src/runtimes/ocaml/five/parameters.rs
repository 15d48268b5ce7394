//! The parameters of OCaml 5 (`caml_runtime_parameters`, `runtime/gc_ctrl.c`, 5.3.0).

use std::sync::Arc;

use super::layout::{KnownRelease, ParamsLayout, StateLayout, word};
use super::symbols::Runtime;
use crate::runtimes::attach::symbols::lookup;
use crate::runtimes::attach::thread_pointer::thread_pointer;
use crate::runtimes::ocaml::parameters::{ParameterSource, Parameters};
use crate::tracer::ReadParams;

/// Reads the parameters. `None` if a variable is not found, or it is not known which
/// parameters this release has. To be called on the program's first thread.
pub(super) fn reader(runtime: &Runtime, known: &KnownRelease) -> Option<ReadParams> {
    let ParamsLayout { trace_level, events_log_wsize, verify_heap, cleanup_on_exit, .. } =
        known.params?;
    let StateLayout { backtrace_active, parser_trace, minor_heap_wsz, .. } = known.state;
    let variable = |name| lookup(name).map(ParameterSource::Word);
    // SAFETY: `const struct caml_params* const caml_params` (`runtime/startup_aux.c`), a
    // pointer that the loader has set.
    let params = unsafe { word(lookup(c"caml_params")?, 0) };
    let param = |index: usize| ParameterSource::Word(params + index * size_of::<usize>());
    let sources = vec![
        ('b', ParameterSource::StateInt(backtrace_active)),
        ('c', param(cleanup_on_exit)),
        ('e', param(events_log_wsize)),
        ('l', variable(c"caml_max_stack_wsize")?),
        ('M', variable(c"caml_custom_major_ratio")?),
        ('m', variable(c"caml_custom_minor_ratio")?),
        ('n', variable(c"caml_custom_minor_max_bsz")?),
        ('o', variable(c"caml_percent_free")?),
        ('p', ParameterSource::StateInt(parser_trace)),
        ('s', ParameterSource::StateWord(minor_heap_wsz)),
        ('t', param(trace_level)),
        ('v', variable(c"caml_verb_gc")?),
        ('V', param(verify_heap)),
        ('W', variable(c"caml_runtime_warnings")?),
    ];
    let (first_thread, offset) = (thread_pointer(), runtime.state_offset);
    // `caml_state` of a thread is NULL while the thread runs no OCaml code.
    let state = move || {
        let state_of = |thread: usize| {
            // SAFETY: `caml_state` of a thread that has not ended: this one, and the
            // program's first, whose variables stay to the end of the process.
            unsafe { word(thread.wrapping_add(offset), 0) }
        };
        [first_thread, thread_pointer()].into_iter().map(state_of).find(|&state| state != 0)
    };
    // SAFETY: variables of the runtime with these types (`runtime/caml/*.h`, 5.3.0), and
    // the state of a domain, whose memory is never unmapped (`runtime/domain.c`).
    let parameters = unsafe { Parameters::new(sources, state) };
    Some(Arc::new(move || parameters.read()))
}
