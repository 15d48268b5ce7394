(* Signal handlers that allocate, and some that raise, in the midst of
   allocations. *)
exception Rung of string

let () =
  (* Only where the exception is caught: signals may come at any moment. *)
  let rings = ref 0 and raised = ref 0 and may_raise = ref false in
  let handler _ =
    incr rings;
    let message = string_of_int !rings in
    if !rings mod 2 = 0 && !may_raise then (may_raise := false; raise (Rung message))
  in
  Sys.set_signal Sys.sigalrm (Sys.Signal_handle handler);
  let every = { Unix.it_interval = 0.0005; it_value = 0.0005 } in
  ignore (Unix.setitimer Unix.ITIMER_REAL every);
  while !raised < 100 do
    try
      may_raise := true;
      while true do
        ignore (Sys.opaque_identity (List.init 50 (fun i -> (i, [| i |]))))
      done
    with Rung _ -> incr raised
  done;
  ignore (Unix.setitimer Unix.ITIMER_REAL { Unix.it_interval = 0.; it_value = 0. });
  Sys.set_signal Sys.sigalrm Sys.Signal_ignore;
  Printf.printf "raised %d\n" !raised;
  Check.finish ()
