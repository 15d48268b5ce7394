(* Makes the same few names again and again, and keeps each copy. *)
let table : (int, string) Hashtbl.t = Hashtbl.create 16
let names = Array.init 50 (fun i -> Printf.sprintf "a rather long name of a customer, number %d" i)
let () =
  for i = 1 to 300_000 do Hashtbl.replace table i (String.concat "" [ names.(i mod 50); "" ]) done;
  let t = Unix.gettimeofday () in
  while Unix.gettimeofday () -. t < float_of_string Sys.argv.(1) do
    ignore (Sys.opaque_identity (List.init 1000 string_of_int)); Unix.sleepf 0.01 done;
  ignore (Sys.opaque_identity table)
