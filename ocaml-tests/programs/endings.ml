(* Ways to end, and to become several. *)
let allocate n = ignore (Sys.opaque_identity (List.init n (fun i -> (i, string_of_int i))))

let () =
  allocate 1_000;
  match Sys.argv.(1) with
  | "exit" -> exit 3
  | "exception" -> raise (Failure "nobody catches this")
  | "kill" -> allocate 100; Unix.sleepf 0.5; Unix.kill (Unix.getpid ()) Sys.sigkill
  | "term" -> print_endline "ready"; Unix.sleep 30
  | "fork" -> (
      match Unix.fork () with
      | 0 -> allocate 2_000; exit 0
      | child -> ignore (Unix.waitpid [] child); allocate 500)
  | "daemon" -> (
      match Unix.fork () with
      | 0 -> ignore (Unix.setsid ()); Unix.sleepf 0.2; allocate 2_000; exit 0
      | _ -> exit 0)
  | "exec" -> Unix.execv Sys.executable_name [| Sys.executable_name; "exit" |]
  | "spawn" -> exit (Sys.command (Filename.quote Sys.executable_name ^ " exit"))
  | other -> failwith other
