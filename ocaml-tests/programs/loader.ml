(* Loads plugins one after another, each in its own namespace, and calls what they
   have registered. *)
let () =
  for plugin = 1 to Array.length Sys.argv - 1 do
    Dynlink.loadfile_private Sys.argv.(plugin);
    Printf.printf "plugin says %d\n" (!Plugin_interface.work 200)
  done;
  Check.finish ()
