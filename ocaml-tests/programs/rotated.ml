(* Blocks that live for different times: some die young, some after a while, and some are never let go. The rounds
   are the same in each run; between them the program waits, if it is asked to. *)

let kept = ref []
let table = Array.make 1000 [||]

let[@inline never] leak n = kept := Array.make 10 n :: !kept
let[@inline never] cached n = table.(n mod 1000) <- Array.make (20 + n mod 30) n
let[@inline never] short n = ignore (Sys.opaque_identity (List.init 20 (fun i -> i + n)))

let () =
  let argument n default = if Array.length Sys.argv > n then float_of_string Sys.argv.(n) else default in
  let rounds = int_of_float (argument 1 1e4) and pause = argument 2 0. in
  print_endline "ready";
  for n = 1 to rounds do
    short n;
    cached n;
    if n mod 7 = 0 then leak n;
    if pause > 0. && n mod 100 = 0 then begin
      ignore (Unix.select [] [] [] pause);
      Gc.full_major ()
    end
  done;
  if argument 3 0. > 0. then kept := [];
  Gc.full_major ();
  print_int (List.length !kept)
