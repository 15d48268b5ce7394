(* Loads plugins, private ones, over and over. *)
let () =
  let rounds = int_of_string Sys.argv.(1) in
  let directory = Sys.argv.(2) in
  let name = Dynlink.adapt_filename (Filename.concat directory "plugin.cmo") in
  let total = ref 0 in
  for round = 1 to rounds do
    (try Dynlink.loadfile_private name with Dynlink.Error e -> prerr_endline (Dynlink.error_message e); exit 3);
    let list = List.init 10_000 (fun i -> string_of_int (i * round)) in
    total := (!total + List.fold_left (fun n s -> n + String.length s) 0 list) land 0xffffff
  done;
  Printf.printf "%d\n" !total
