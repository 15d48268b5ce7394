(* A fork before the first domain: parent and child each have their own domains. *)
let () =
  match Unix.fork () with
  | 0 -> Printf.printf "child %d\n%!" (Trees.run 2)
  | child ->
      ignore (Unix.waitpid [] child);
      Printf.printf "parent %d\n" (Trees.run 3);
      Check.finish ()
