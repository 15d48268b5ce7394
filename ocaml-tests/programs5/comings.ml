(* Domains that come and go, several at a time, and leave blocks to those that stay. *)
let left_behind = Array.make 64 []

let run count =
  let total = ref 0 in
  let started = ref 0 in
  while !started < count do
    let several = min (1 + (!started mod 4)) (count - !started) in
    let first = !started in
    started := first + several;
    let domain i =
      Domain.spawn (fun () ->
          let list = List.init (10 + (i mod 50)) (fun j -> (i, string_of_int j)) in
          left_behind.(i mod 64) <- list;
          if i mod 97 = 0 then Gc.minor ();
          List.length list)
    in
    let domains = List.init several (fun i -> domain (first + i)) in
    total := List.fold_left (fun sum domain -> sum + Domain.join domain) !total domains;
    if first mod 500 < several then Gc.full_major ()
  done;
  !total + List.length left_behind.(count mod 64)
