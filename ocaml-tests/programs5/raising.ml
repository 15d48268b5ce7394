(* Exceptions through many frames, with and without backtraces; a domain that ends by one. *)
exception Found of int list

let rec search n acc = if n = 0 then raise (Found acc) else 1 + search (n - 1) (n :: acc)

let work member =
  let total = ref 0 in
  for i = 1 to 100 do
    Printexc.record_backtrace (i mod 2 = 0);
    (try ignore (search (i mod 90) []) with Found l -> total := !total + List.length l);
    (try ignore (List.assoc i [ (0, "") ]) with Not_found -> incr total)
  done;
  Printexc.record_backtrace false;
  if member > 0 then raise (Found (List.init member Fun.id));
  !total

let run domains =
  let others = List.init (domains - 1) (fun i -> Domain.spawn (fun () -> work (i + 1))) in
  let own = work 0 in
  List.fold_left
    (fun sum domain -> match Domain.join domain with n -> sum + n | exception Found l -> sum + List.length l)
    own others
