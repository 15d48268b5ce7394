(* Trees that live for a while: many promotions and several major cycles. What the
   collector did depends on where malloc puts the pieces of the heap. *)
type tree = Leaf | Node of tree * int * tree

let rec build depth =
  if depth = 0 then Leaf
  else
    let left = build (depth - 1) in
    let right = build (depth - 1) in
    Node (left, depth, right)

let rec sum = function Leaf -> 0 | Node (left, depth, right) -> sum left + depth + sum right

let () =
  let total = ref 0 in
  for _ = 1 to 40 do
    total := !total + sum (build 16)
  done;
  let stat = Gc.quick_stat () in
  Printf.printf "%d: %.0f words promoted, %d minor and %d major collections, %d words of heap\n" !total
    stat.Gc.promoted_words stat.Gc.minor_collections stat.Gc.major_collections stat.Gc.top_heap_words
