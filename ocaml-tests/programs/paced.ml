(* Allocates at an even pace, and keeps some of it, so that what follows its trace has something new at every moment:
   paced SECONDS. It says when it begins. *)
let () =
  let seconds = float_of_string Sys.argv.(1) in
  Printf.printf "ready\n%!";
  let kept = Array.make 512 [] in
  let finish = Unix.gettimeofday () +. seconds in
  let turn = ref 0 in
  while Unix.gettimeofday () < finish do
    for i = 1 to 6 do
      kept.((!turn + i) mod 512) <- List.init 10 (fun j -> string_of_int (i * j))
    done;
    incr turn;
    Unix.sleepf 0.004
  done;
  Printf.printf "turns %b\n" (!turn > 0)
