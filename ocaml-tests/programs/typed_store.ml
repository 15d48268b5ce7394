type entry = { name : string; weight : float; next : entry option }
type 'a t = { table : (string, 'a) Hashtbl.t; mutable last : 'a list }

(* Neither this variable nor the module below are exported: they follow what is. *)
let secret = ref [ (String.make 3 'x', Array.length Sys.argv) ]
let create () = { table = Hashtbl.create 7; last = [] }

let add store key value =
  Hashtbl.replace store.table key value;
  store.last <- value :: store.last

let entry number next = { name = string_of_int number; weight = float number; next }
let main = create ()

module Inner = struct
  type node = Leaf | Node of { left : node; value : int; right : node }

  let rec build depth =
    if depth = 0 then Leaf
    else Node { left = build (depth - 1); value = depth; right = build (depth - 1) }

  let tree = ref (build (3 + Array.length Sys.argv))
end
