(* Domains that only allocate, for a number of rounds each: busy DOMAINS ROUNDS. *)
let work rounds member =
  let kept = Array.make 256 [] in
  for i = 1 to rounds do
    kept.(i mod 256) <- List.init 40 (fun j -> (i + j, string_of_int (i + member)))
  done;
  Array.fold_left (fun sum l -> sum + List.length l) 0 kept

let () =
  let domains = int_of_string Sys.argv.(1) and rounds = int_of_string Sys.argv.(2) in
  Printf.printf "checksum %d\n" (Team.sum domains (work rounds))
