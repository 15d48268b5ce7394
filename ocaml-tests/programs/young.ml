(* Young blocks: single, combined allocations, closures, floats, and those
   that C code allocates. *)
type t = Leaf | Node of { left : t; key : float; right : t }

let rec insert key = function
  | Leaf -> Node { left = Leaf; key; right = Leaf }
  | Node n when key < n.key -> Node { n with left = insert key n.left }
  | Node n -> Node { n with right = insert key n.right }

let combined x = [ (x, x + 1); (x + 2, x + 3) ], Some (x, [| x; x |]), fun y -> x + y

let () =
  let tree = ref Leaf and sum = ref 0 in
  for i = 1 to 3_000 do
    tree := insert (float ((i * 7919) mod 1009)) !tree;
    let pairs, some, add = combined i in
    sum := add !sum + List.length pairs + Option.fold ~none:0 ~some:(fun (a, _) -> a) some;
    sum := (!sum + String.length (string_of_int i ^ Bytes.to_string (Bytes.make 9 'x'))) land 0xffff
  done;
  Printf.printf "sum %d\n" !sum;
  Check.finish ()
