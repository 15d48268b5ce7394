(* Loads a plugin, which allocates when it is loaded and when it is called. *)
let () =
  Dynlink.loadfile Sys.argv.(1);
  Printf.printf "plugin says %d\n" (!Plugin_interface.work 200);
  Check.finish ()
