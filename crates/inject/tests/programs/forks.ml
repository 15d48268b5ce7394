(* Forks children all the time, which compute and exit. *)
let work seed = List.fold_left (fun a b -> (a * 31 + b) land 0xffff) seed (List.init 50_000 (fun i -> i))

let () =
  let rounds = int_of_string Sys.argv.(1) in
  let total = ref 0 in
  for round = 1 to rounds do
    match Unix.fork () with
    | 0 -> Unix._exit (work round land 127)
    | child ->
      total := (!total + work round) land 0xffffff;
      let rec wait () =
        match Unix.waitpid [] child with
        | _, Unix.WEXITED code -> code
        | _, _ -> -1000
        | exception Unix.Unix_error (Unix.EINTR, _, _) -> wait () in
      if wait () <> work round land 127 then (print_endline "a child was harmed"; exit 5)
  done;
  Printf.printf "%d\n" !total
