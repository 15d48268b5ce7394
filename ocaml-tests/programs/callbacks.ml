(* OCaml calls C, which allocates and calls OCaml, and so on. *)
external call : (int -> int) -> int -> int = "call_it"
external make : int -> string list = "make_list"

let rec down n = if n = 0 then List.length (make 5) else call (fun m -> down (m - 1) + 1) n

let () =
  let total = ref 0 in
  for i = 1 to 100 do
    total := !total + down (i mod 20)
  done;
  (try ignore (call (fun _ -> failwith "through C") 1) with Failure _ -> incr total);
  Printf.printf "total %d\n" !total;
  Check.finish ()
