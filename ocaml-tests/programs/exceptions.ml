(* Exceptions through many frames, with and without backtraces. *)
exception Found of int list

let rec search n acc = if n = 0 then raise (Found acc) else 1 + search (n - 1) (n :: acc)

let () =
  let total = ref 0 in
  for i = 1 to 200 do
    Printexc.record_backtrace (i mod 2 = 0);
    (try ignore (search (i mod 90) []) with Found l -> total := !total + List.length l);
    (try ignore (List.assoc i [ (0, "") ]) with Not_found -> incr total)
  done;
  Printf.printf "total %d\n" !total;
  Check.finish ()
