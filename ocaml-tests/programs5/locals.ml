(* Domain-local state, and actions at the end of a domain. *)
let key = Domain.DLS.new_key ~split_from_parent:(fun l -> List.map succ l) (fun () -> List.init 20 Fun.id)
let keys = List.init 40 (fun i -> Domain.DLS.new_key (fun () -> [| i; i + 1 |]))
let ends = Atomic.make 0

let rec work depth member =
  Domain.at_exit (fun () ->
      let held = Domain.DLS.get key in
      ignore (Atomic.fetch_and_add ends (List.length (List.map string_of_int held))));
  Domain.DLS.set key (member :: Domain.DLS.get key);
  let sum = List.fold_left (fun sum key -> sum + (Domain.DLS.get key).(0)) 0 keys in
  let below = if depth = 0 then 0 else Domain.join (Domain.spawn (fun () -> work (depth - 1) member)) in
  sum + below + List.length (Domain.DLS.get key)

let run domains =
  let first = Domain.spawn (fun () -> Team.sum domains (work 3)) in
  let total = Domain.join first in
  total + Atomic.get ends
