(* Allocates at a few places, each a known number of words, and prints how many: sites TURNS. A finaliser is one of
   them: it runs when a collection has found that something is dead, in the middle of the work of the others. *)
let finalised = ref 0
let[@inline never] cell i = ref i
let[@inline never] pair i = (i, i)
let[@inline never] at_once i = (float i, [ i ])
let[@inline never] bytes _ = Bytes.create 40
let[@inline never] finaliser () = incr finalised; ignore (Sys.opaque_identity [| !finalised; 1; 2; 3; 4 |])

let turn i =
  ignore (Sys.opaque_identity (cell i));
  ignore (Sys.opaque_identity (pair i));
  ignore (Sys.opaque_identity (at_once i));
  ignore (Sys.opaque_identity (bytes i));
  if i mod 64 = 0 then Gc.finalise_last finaliser (Sys.opaque_identity (cell i))

let () =
  let turns = int_of_string Sys.argv.(1) in
  for i = 1 to turns do turn i done;
  Printf.printf "cell %d\npair %d\nat_once %d\nbytes %d\nfinaliser %d\n" (2 * (turns + (turns / 64))) (3 * turns)
    (8 * turns) (7 * turns) (6 * !finalised)
