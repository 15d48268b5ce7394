(* Signal handlers that allocate, and some that raise, in the midst of
   allocations. *)
exception Rung of string

let () =
  let rings = ref 0 and raised = ref 0 in
  let handler _ =
    incr rings;
    let message = string_of_int !rings in
    if !rings mod 2 = 0 then raise (Rung message)
  in
  Sys.set_signal Sys.sigalrm (Sys.Signal_handle handler);
  let every = { Unix.it_interval = 0.0005; it_value = 0.0005 } in
  ignore (Unix.setitimer Unix.ITIMER_REAL every);
  while !raised < 100 do
    try
      while true do
        ignore (Sys.opaque_identity (List.init 50 (fun i -> (i, [| i |]))))
      done
    with Rung _ -> incr raised
  done;
  ignore (Unix.setitimer Unix.ITIMER_REAL { Unix.it_interval = 0.; it_value = 0. });
  Sys.set_signal Sys.sigalrm Sys.Signal_ignore;
  Printf.printf "raised %d\n" !raised;
  Check.finish ()
