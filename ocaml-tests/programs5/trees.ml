(* Young blocks of all kinds, promotion, and some blocks allocated in the major heap. *)
type t = Leaf | Node of { left : t; key : float; right : t }

let rec insert key = function
  | Leaf -> Node { left = Leaf; key; right = Leaf }
  | Node n when key < n.key -> Node { n with left = insert key n.left }
  | Node n -> Node { n with right = insert key n.right }

let combined x = [ (x, x + 1); (x + 2, x + 3) ], Some (x, [| x; x |]), fun y -> x + y

let work member =
  let tree = ref Leaf and sum = ref 0 in
  let kept = Array.make 16 [||] in
  for i = 1 to 1_500 do
    tree := insert (float (((i + member) * 7919) mod 1009)) !tree;
    let pairs, some, add = combined i in
    sum := add !sum + List.length pairs + Option.fold ~none:0 ~some:(fun (a, _) -> a) some;
    sum := (!sum + String.length (string_of_int i ^ Bytes.to_string (Bytes.make 9 'x'))) land 0xffff;
    if i mod 20 = 0 then kept.(i / 20 mod 16) <- Array.init (250 + (i mod 40)) (fun j -> [ i + j ])
  done;
  Array.fold_left (fun sum a -> sum + Array.length a) !sum kept

let run domains = Team.sum domains work
