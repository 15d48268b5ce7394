(* Has a hook of its own, which is called once for each minor collection. *)
external install : unit -> unit = "hooked_install" [@@noalloc]
external calls : unit -> int = "hooked_calls" [@@noalloc]
external is_installed : unit -> bool = "hooked_is_installed" [@@noalloc]

let () =
  let rounds = int_of_string Sys.argv.(1) in
  let collections () = Gc.minor (); (Gc.quick_stat ()).Gc.minor_collections in
  let before = collections () in
  install ();
  let total = ref 0 in
  for round = 1 to rounds do
    total := (!total + List.length (List.init 5000 (fun i -> string_of_int (i * round)))) land 0xffffff
  done;
  let made = collections () - before in
  Printf.printf "%d %b %b\n" !total (calls () = made) (is_installed ())
