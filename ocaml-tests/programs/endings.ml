(* Ways to exit, and to fork. *)
let allocate n = ignore (Sys.opaque_identity (List.init n (fun i -> (i, string_of_int i))))

external exit_in_handler : int -> unit = "exit_in_handler" [@@noalloc]

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
  | "exec" -> Check.finish (); Unix.execv Sys.executable_name [| Sys.executable_name; "exit" |]
  | "exec_fails" ->
      (try Unix.execv "/no/such/program" [||] with Unix.Unix_error (Unix.ENOENT, _, _) -> allocate 10);
      Check.finish ()
  | "_exit" -> Check.finish (); Unix._exit 5
  | "_exit_in_handler" ->
      exit_in_handler (int_of_string Sys.argv.(2));
      while true do allocate 100 done
  | "spawn" -> exit (Sys.command (Filename.quote Sys.executable_name ^ " exit"))
  | "chdir" ->
      (* Changes directory; then a child and, after it, this process run another program. *)
      Unix.chdir Sys.argv.(2);
      ignore (Sys.command (Filename.quote Sys.executable_name ^ " exit"));
      Unix.execv Sys.executable_name [| Sys.executable_name; "exit" |]
  | other -> failwith other
