(* Memory outside the heap: 1,000 words each time, 100 times in each domain. *)
let work _ =
  let last = ref None in
  for i = 1 to 100 do
    last := Some (Bigarray.Array1.create Bigarray.float64 Bigarray.c_layout 1_000)
  done;
  ignore (Sys.opaque_identity !last);
  0

let run domains =
  ignore (Team.sum domains work);
  Gc.full_major ();
  Gc.full_major ();
  domains * 100
