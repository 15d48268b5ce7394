(* Profiles itself. *)
let () =
  Gc.Memprof.start ~sampling_rate:1e-4 ~callstack_size:5 Gc.Memprof.null_tracker;
  print_endline "ready";
  while true do ignore (Sys.opaque_identity (List.init 1000 (fun i -> i))) done
