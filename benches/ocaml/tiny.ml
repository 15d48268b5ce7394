(* Starts, allocates a little and ends: what is measured is the start and the end of a process. *)
let () =
  let squares = List.init 1000 (fun i -> i * i) in
  print_int (List.fold_left ( + ) 0 squares)
