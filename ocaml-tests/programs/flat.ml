(* Each of these lines allocates a known number of words. *)
type point = { x : float; y : float }

let keep x = ignore (Sys.opaque_identity x)

let () =
  for i = 1 to 1_000 do
    keep (i, i)
  done;
  for i = 1 to 700 do
    keep (Some i)
  done;
  for i = 1 to 300 do
    keep (Array.make 10 i)
  done;
  for i = 1 to 20 do
    keep (Array.make 1_000 i)
  done;
  for i = 1 to 400 do
    let f = float i in keep { x = f; y = f }
  done;
  for i = 1 to 50 do
    keep [ i; i; i ]
  done;
  Check.finish ()
