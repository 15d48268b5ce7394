(* Variables in many kinds of modules, with so many elements each. Prints the bytes that each reaches. *)
let elements = int_of_string Sys.argv.(1)

type table = (int, string) Hashtbl.t

let make () : table = Hashtbl.create 16

module Cache = struct
  let table = make ()
  let find = Hashtbl.find table
end

module Deep = struct
  module Inner = struct
    let table = make ()
    let history : (int * string) list ref = ref []
  end

  let size = ref 0
end

module Hidden : sig
  val add : int -> unit
  val table : unit -> table
end = struct
  let contents = make ()
  let add key = Hashtbl.replace contents key (string_of_int key)
  let table () = contents
end

module type STORE = sig
  val table : table
end

module Make () : STORE = struct
  let table = make ()
end

module First = Make ()
module Second = Make ()
module Alias = Cache

let packed = (module Make () : STORE)

include Make ()

let two_names = make ()
let other_name = two_names

type record = { left : table; right : table }

let record = { left = make (); right = make () }
let all = [ Cache.table; two_names ]

let fill table count = for key = 1 to count do Hashtbl.replace table key (string_of_int key) done
let show name value = Printf.printf "%s %d\n" name (8 * Obj.reachable_words (Obj.repr value))

let () =
  let module Packed = (val packed) in
  List.iter
    (fun table -> fill table elements)
    [ Cache.table; Deep.Inner.table; First.table; Second.table; Packed.table; table; two_names; record.left ];
  (* Half as many: what is on the right is another table than what is on the left. *)
  fill record.right (elements / 2);
  for key = 1 to elements do
    Hidden.add key;
    Deep.Inner.history := (key, string_of_int key) :: !Deep.Inner.history
  done;
  show "cache" Cache.table;
  show "inner" Deep.Inner.table;
  show "history" Deep.Inner.history;
  show "hidden" (Hidden.table ());
  show "functor" First.table;
  show "packed" Packed.table;
  show "included" table;
  show "two_names" two_names;
  show "left" record.left;
  show "right" record.right;
  Gc.full_major ()
