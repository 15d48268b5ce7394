(* A loop that does not allocate, after an allocation: prints how long it took, in hundredths of a second of processor
   time. *)
let () =
  ignore (Sys.opaque_identity (ref 0));
  let start = Sys.time () in
  let x = ref 0 in
  while !x < 50_000_000 do incr x done;
  let seconds = Sys.time () -. start in
  Printf.printf "%d\n" (int_of_float (100. *. seconds))
