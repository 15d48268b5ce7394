(* Loads plugins one after another, each into names of its own, and calls what they
   leave behind. *)
let () =
  for plugin = 1 to Array.length Sys.argv - 1 do
    Dynlink.loadfile_private Sys.argv.(plugin);
    Printf.printf "plugin says %d\n" (!Plugin_interface.work 200)
  done;
  Check.finish ()
