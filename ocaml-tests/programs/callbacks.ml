(* OCaml calls C, which allocates and calls OCaml, and so on; and which raises a signal. *)
external call : (int -> int) -> int -> int = "call_it"
external make : int -> string list = "make_list"
external ring : unit -> unit = "ring" [@@noalloc]

let rec down n = if n = 0 then List.length (make 5) else call (fun m -> down (m - 1) + 1) n

(* The first allocation runs the handler, however many of them are sampled. *)
let hear () =
  let heard = ref false and blocks = ref 0 in
  Sys.set_signal Sys.sigusr1 (Sys.Signal_handle (fun _ -> heard := true));
  ring ();
  while (not !heard) && !blocks < 1_000 do
    ignore (Sys.opaque_identity (ref !blocks));
    incr blocks
  done;
  if !blocks > 1 then failwith (Printf.sprintf "heard a signal after %d blocks" !blocks)

let () =
  hear ();
  let total = ref 0 in
  for i = 1 to 100 do
    total := !total + down (i mod 20)
  done;
  (try ignore (call (fun _ -> failwith "through C") 1) with Failure _ -> incr total);
  Printf.printf "total %d\n" !total;
  Check.finish ()
