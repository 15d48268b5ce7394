//! The symbols that the library looks up by name, and their addresses.

use core::arch::{global_asm, naked_asm};
use core::ffi::CStr;

/// Defines [`NAMES`], and a table of their addresses in the same order, which the
/// linker fills in.
macro_rules! symbols {
    ($($name:literal)*) => {
        /// The names of the symbols.
        pub(crate) static NAMES: [&CStr; [$($name),*].len()] = [$(
            // SAFETY: a symbol's name has no NUL, and one is appended.
            unsafe { CStr::from_bytes_with_nul_unchecked(concat!($name, "\0").as_bytes()) }
        ),*];

        global_asm!(
            ".pushsection .data.rel.ro.heaptap_ocaml_symbols, \"aw\", @progbits",
            ".balign 8",
            ".globl heaptap_ocaml_symbols",
            ".hidden heaptap_ocaml_symbols",
            "heaptap_ocaml_symbols:",
            $(
                concat!(".weak ", $name),
                concat!(".quad ", $name),
            )*
            ".popsection",
        );
    };
}

symbols! {
    "_exit"
    "execve"
    "Caml_state"
    "caml_accum_orphan_alloc_stats"
    "caml_accum_orphan_heap_stats"
    "caml_acquire_domain_lock"
    "caml_alloc1"
    "caml_alloc_shr"
    "caml_alloc_small_dispatch"
    "caml_allocated_words"
    "caml_allocation_policy"
    "caml_atom_table"
    "caml_bt_is_in_blocking_section"
    "caml_builtin_cprim"
    "caml_c_call"
    "caml_cleanup_on_exit"
    "caml_code_segments"
    "caml_code_size"
    "caml_compactions_count"
    "caml_compute_gc_stats"
    "caml_custom_major_ratio"
    "caml_custom_minor_max_bsz"
    "caml_custom_minor_ratio"
    "caml_do_local_roots"
    "caml_do_local_roots_nat"
    "caml_do_roots"
    "caml_domain_spawn"
    "caml_domain_terminating"
    "caml_empty_minor_heap"
    "caml_empty_minor_heaps_once"
    "caml_enter_blocking_section_hook"
    "caml_ephe_list_head"
    "caml_ephe_none"
    "caml_exe_name"
    "caml_failwith"
    "caml_final_do_roots"
    "caml_final_empty_young"
    "caml_final_register"
    "caml_final_register_called_without_value"
    "caml_finalise_begin_hook"
    "caml_finalise_end_hook"
    "caml_find_frame_descr"
    "caml_finish_major_cycle"
    "caml_fl_cur_wsz"
    "caml_frame_descriptors"
    "caml_frame_descriptors_mask"
    "caml_frametable"
    "caml_garbage_collection"
    "caml_gc_phase"
    "caml_gc_sweep_hp"
    "caml_get_callstack"
    "caml_get_frame_descrs"
    "caml_global_barrier_num_participating"
    "caml_global_data"
    "caml_global_heap_state"
    "caml_globals"
    "caml_heap_start"
    "caml_init_domain_self"
    "caml_interrupt_all_signal_safe"
    "caml_invert_root"
    "caml_leave_blocking_section_hook"
    "caml_major_cycles_completed"
    "caml_major_heap_increment"
    "caml_major_slice_begin_hook"
    "caml_major_slice_end_hook"
    "caml_major_window"
    "caml_max_stack_size"
    "caml_max_stack_wsize"
    "caml_memprof_after_major_gc"
    "caml_memprof_after_minor_gc"
    "caml_memprof_delete_domain"
    "caml_memprof_delete_th_ctx"
    "caml_memprof_delete_thread"
    "caml_memprof_discard"
    "caml_memprof_do_roots"
    "caml_memprof_enter_thread"
    "caml_memprof_handle_postponed_exn"
    "caml_memprof_invert_tracked"
    "caml_memprof_leave_thread"
    "caml_memprof_main_ctx"
    "caml_memprof_main_thread"
    "caml_memprof_minor_update"
    "caml_memprof_new_domain"
    "caml_memprof_new_th_ctx"
    "caml_memprof_new_thread"
    "caml_memprof_oldify_young_roots"
    "caml_memprof_renew_minor_sample"
    "caml_memprof_run_callbacks_res"
    "caml_memprof_sample_block"
    "caml_memprof_sample_young"
    "caml_memprof_scan_roots"
    "caml_memprof_set_suspended"
    "caml_memprof_set_trigger"
    "caml_memprof_start"
    "caml_memprof_stop"
    "caml_memprof_track_alloc_shr"
    "caml_memprof_track_custom"
    "caml_memprof_track_interned"
    "caml_memprof_track_young"
    "caml_memprof_update_clean_phase"
    "caml_memprof_update_suspended"
    "caml_memprof_young_trigger"
    "caml_minor_collections_count"
    "caml_minor_gc_begin_hook"
    "caml_minor_gc_end_hook"
    "caml_ml_array_bound_error"
    "caml_names_of_builtin_cprim"
    "caml_natdynlink_hook"
    "caml_next_frame_descriptor"
    "caml_next_frame_pointer"
    "caml_num_domains_running"
    "caml_orphan_finalisers"
    "caml_page_table_lookup"
    "caml_params"
    "caml_parser_trace"
    "caml_percent_free"
    "caml_percent_max"
    "caml_process_pending_actions"
    "caml_reify_bytecode"
    "caml_release_domain_lock"
    "caml_request_minor_gc"
    "caml_runtime_warnings"
    "caml_scan_global_roots"
    "caml_scan_roots_hook"
    "caml_scan_stack"
    "caml_section_table"
    "caml_section_table_size"
    "caml_something_to_do"
    "caml_start_code"
    "caml_stat_free"
    "caml_static_release_bytecode"
    "caml_trace_level"
    "caml_update_young_limit"
    "caml_update_young_limit_after_c_call"
    "caml_use_huge_pages"
    "caml_verb_gc"
}

/// `caml_state` of OCaml 5, which is a variable of each thread
/// (`runtime/domain.c`, 5.3.0), and its distance from the thread pointer. `None`
/// in other runtimes.
pub(crate) fn state(addresses: &[usize]) -> Option<(&'static CStr, usize)> {
    let only_in_five = NAMES.iter().position(|name| *name == c"caml_memprof_set_trigger")?;
    let is_five = addresses.get(only_in_five).is_some_and(|&address| address != 0);
    is_five.then(|| (c"caml_state", state_offset()))
}

/// The distance of `caml_state` from the thread pointer; an arbitrary number where
/// there is no such variable.
#[unsafe(naked)]
extern "C" fn state_offset() -> usize {
    naked_asm!(".weak caml_state", "mov rax, caml_state@GOTTPOFF[rip]", "ret")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Adds the names of the runtime's symbols that the sources below a folder use.
    fn names_in(folder: &Path, names: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                names_in(&path, names);
                continue;
            }
            let source = std::fs::read_to_string(&path).unwrap();
            let starts = source.match_indices("c\"").filter(|&(at, _)| {
                let before = source[..at].chars().next_back();
                before.is_none_or(|before| !before.is_alphanumeric() && before != '_')
            });
            let literals = starts.filter_map(|(at, _)| source[at + 2..].split('"').next());
            // A hook has the name of the function that it replaces.
            let functions = source.split("fn ").skip(1).filter_map(|rest| rest.split('(').next());
            let is_symbol = |name: &&str| name.starts_with("caml_") || *name == "Caml_state";
            let symbols = literals.chain(functions).filter(is_symbol);
            names
                .extend(symbols.filter(|name| !name.starts_with("caml_no_such")).map(String::from));
        }
    }

    #[test]
    fn every_symbol_that_the_library_looks_up_is_listed() {
        let mut asked = Vec::new();
        let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/../../src/runtimes/ocaml");
        names_in(Path::new(sources), &mut asked);
        assert!(asked.len() > 30, "{asked:?}");
        // A prefix of names, the thread-local variable, and symbols that are only looked up
        // in the dynamic symbols of the program or of its plugins, of which a static one has none.
        let others = ["caml_memprof", "caml_state", "caml_program", "caml_plugin_header"];
        for name in asked.iter().filter(|name| !others.contains(&name.as_str())) {
            let listed = NAMES.iter().any(|known| known.to_bytes() == name.as_bytes());
            assert!(listed, "{name} is not in the table");
        }
    }

    #[test]
    fn a_program_without_ocaml_has_only_the_symbols_of_c() {
        // SAFETY: `global_asm!` in this module defines it, constant and of this length.
        let addresses = unsafe { &crate::ADDRESSES };
        for (name, address) in NAMES.iter().zip(addresses) {
            let is_of_ocaml = name.to_bytes().to_ascii_lowercase().starts_with(b"caml");
            assert_eq!(*address == 0, is_of_ocaml, "{name:?}");
        }
    }
}
