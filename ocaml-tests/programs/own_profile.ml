(* A program that uses the runtime's own profiler. *)
let () =
  (match Gc.Memprof.start ~sampling_rate:1. Gc.Memprof.null_tracker with
  | () -> Gc.Memprof.stop (); print_endline "started"
  | exception Failure message -> print_endline message);
  (match Gc.Memprof.stop () with
  | () -> print_endline "stopped"
  | exception Failure message -> print_endline message);
  Printf.printf "MEMTRACE=%s LD_PRELOAD=%s HEAPTAP=%s\n"
    (Option.value ~default:"" (Sys.getenv_opt "MEMTRACE"))
    (Option.value ~default:"" (Sys.getenv_opt "LD_PRELOAD"))
    (Option.value ~default:"" (Sys.getenv_opt "HEAPTAP"))
