(* Builds and folds trees: native code that allocates all the time. *)
type tree = Leaf | Node of tree * int * tree

let rec make depth seed =
  if depth = 0 then Leaf
  else Node (make (depth - 1) (seed * 2), seed, make (depth - 1) (seed * 2 + 1))

let rec sum = function Leaf -> 0 | Node (left, n, right) -> sum left + n + sum right

let () =
  let rounds = int_of_string Sys.argv.(1) in
  let total = ref 0 in
  for round = 1 to rounds do
    total := (!total + sum (make 12 round)) land 0xffffff
  done;
  Printf.printf "%d\n" !total
