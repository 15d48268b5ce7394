(* Loads a plugin in a separate domain; all domains call it. *)
let () =
  Domain.join (Domain.spawn (fun () -> Dynlink.loadfile Sys.argv.(1)));
  let total = Team.sum 3 (fun member -> !Plugin_interface.work (200 + member)) in
  Printf.printf "plugin says %d\n" total;
  Check.finish ()
