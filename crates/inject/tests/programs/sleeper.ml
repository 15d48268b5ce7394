(* Sleeps until a line comes, then computes. *)
let () =
  print_endline "ready";
  let line = input_line stdin in
  let list = List.init 1_000_000 (fun i -> string_of_int i) in
  Printf.printf "%s %d\n" line (List.fold_left (fun n s -> n + String.length s) 0 list)
