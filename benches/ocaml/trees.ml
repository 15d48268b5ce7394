(* Binary trees: shallow stacks, small blocks, many promotions. *)
type tree = Leaf | Node of tree * tree

let rec make depth = if depth = 0 then Node (Leaf, Leaf) else Node (make (depth - 1), make (depth - 1))
let rec count = function Leaf -> 0 | Node (left, right) -> 1 + count left + count right

let () =
  let depth = int_of_string Sys.argv.(1) in
  let kept = make depth in
  let sum = ref 0 in
  for short = 1 to depth / 4 do
    let short = 4 * short in
    for _ = 1 to 1 lsl (depth - short + 4) do
      sum := !sum + count (make short)
    done
  done;
  Printf.printf "checksum %d\n" (!sum + count kept)
