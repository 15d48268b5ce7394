(* The same work in several domains, including the first one. *)
let run count work =
  let others = List.init (count - 1) (fun i -> Domain.spawn (fun () -> work (i + 1))) in
  let own = work 0 in
  own :: List.map Domain.join others

let sum count work = List.fold_left ( + ) 0 (run count work)
