(* Domains that allocate at an even pace, and keep some of it: paced SECONDS [DOMAINS]. *)
let work seconds member =
  let kept = Array.make 512 [] in
  let finish = Unix.gettimeofday () +. seconds in
  let turn = ref 0 in
  while Unix.gettimeofday () < finish do
    for i = 1 to 6 do
      kept.((!turn + i) mod 512) <- List.init 10 (fun j -> string_of_int (member + (i * j)))
    done;
    incr turn;
    Unix.sleepf 0.004
  done;
  min 1 !turn

let () =
  let seconds = float_of_string Sys.argv.(1) in
  let domains = if Array.length Sys.argv > 2 then int_of_string Sys.argv.(2) else 1 in
  Printf.printf "ready\n%!";
  Printf.printf "turns %b\n" (Team.sum domains (work seconds) = domains)
