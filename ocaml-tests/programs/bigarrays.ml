(* Memory outside the heap that the collector owns: 1,000 words each time. *)
let () =
  let last = ref None in
  for _ = 1 to 200 do
    last := Some (Bigarray.Array1.create Bigarray.float64 Bigarray.c_layout 1_000)
  done;
  Gc.full_major ();
  Gc.full_major ();
  Printf.printf "external words %d\n" (200 * 1_000);
  ignore (Sys.opaque_identity !last);
  Check.finish ()
