(* A program that uses the runtime's own profiler, in every domain. *)
let attempt () =
  (match Gc.Memprof.start ~sampling_rate:1. Gc.Memprof.null_tracker with
  | profile -> Gc.Memprof.stop (); Gc.Memprof.discard profile; print_endline "started"
  | exception Failure message -> print_endline message);
  match Gc.Memprof.stop () with
  | () -> print_endline "stopped"
  | exception Failure message -> print_endline message

let () =
  attempt ();
  Domain.join (Domain.spawn attempt);
  Printf.printf "MEMTRACE=%s LD_PRELOAD=%s HEAPTAP=%s\n"
    (Option.value ~default:"" (Sys.getenv_opt "MEMTRACE"))
    (Option.value ~default:"" (Sys.getenv_opt "LD_PRELOAD"))
    (Option.value ~default:"" (Sys.getenv_opt "HEAPTAP"))
