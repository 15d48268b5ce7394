(* Deep lists: maps that are not tail-recursive, so that the stack is as deep as the list is long. The middle
   of the recursion allocates as much as its ends: samples are 1,777 frames deep in the mean. *)
let length = 2 * 1_777

let rec map f = function
  | [] -> []
  | first :: rest ->
    let first = f first in
    first :: map f rest

let () =
  let rounds = int_of_string Sys.argv.(1) in
  let list = ref (List.init length (fun i -> float_of_int i)) in
  for round = 1 to rounds do
    list := map (fun x -> x +. float_of_int (round land 7)) !list
  done;
  Printf.printf "checksum %.0f\n" (List.fold_left ( +. ) 0. !list)
