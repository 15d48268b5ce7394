(* Linked into each program: with OWN_PROFILE=RATE, the runtime's own sampler runs, with full call stacks and
   callbacks that do nothing but return. *)
let () =
  match Sys.getenv_opt "OWN_PROFILE" with
  | None -> ()
  | Some rate ->
    let sampling_rate = float_of_string rate in
    Gc.Memprof.start ~sampling_rate ~callstack_size:max_int Gc.Memprof.null_tracker
