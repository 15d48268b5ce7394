(* The runtime's parameters, as the program sees them. *)
let () = print_endline (Sys.runtime_parameters ())
