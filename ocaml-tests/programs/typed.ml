(* Values of many types in variables of modules. Prints how many blocks of each type there are. *)

module Names = Map.Make (String)

module Pairs = Map.Make (struct
  type t = int * string

  let compare = compare
end)

module Table = Hashtbl.Make (struct
  type t = int

  let equal = ( = )
  let hash number = number
end)

module Ints = Set.Make (Int)

module type SHOWN = sig
  type t

  val all : t list ref
  val title : string ref
end

type shape =
  | Point
  | Circle of float
  | Rectangle of int * int
  | Labelled of { label : string; inner : shape }

type _ expression =
  | Number : int -> int expression
  | Pair : 'a expression * 'b expression -> ('a * 'b) expression
  | Any : 'x * ('x -> int) -> int expression

type position = { x : float; y : float }
type wrapped = Wrapped of string [@@unboxed]
type 'a rose = Rose of 'a * 'a rose list

(* Known only when the program runs, so that nothing is constant data. *)
let count = 10 + Array.length Sys.argv
let numbers = List.init count Fun.id

let () =
  for number = 1 to count do
    let next = Typed_store.entry 0 None in
    Typed_store.add Typed_store.main (string_of_int number) (Typed_store.entry number (Some next))
  done

let names =
  ref
    (List.fold_left
       (fun map number -> Names.add (string_of_int number) (number, Some (float number)) map)
       Names.empty numbers)

let pairs =
  ref (List.fold_left (fun map n -> Pairs.add (n, string_of_int n) (n, n, n) map) Pairs.empty numbers)

let ints = ref (Ints.of_list numbers)
let shapes : shape list Table.t = Table.create 5

let () =
  List.iter
    (fun n ->
      let inner = Circle (float n) in
      Table.replace shapes n
        [ Circle (float n); Rectangle (n, n); Labelled { label = string_of_int n; inner } ])
    numbers

let floats = Array.init count float_of_int
let positions = Array.init count (fun n -> { x = float n; y = 1. })
let wrapped = List.map (fun n -> Wrapped (string_of_int n)) numbers
let queue = Queue.create ()
let () = List.iter (fun n -> Queue.add (n, n) queue) numbers
let stack = Stack.create ()
let () = List.iter (fun n -> Stack.push (ref (string_of_int n)) stack) numbers

let shown =
  (module struct
    type t = int * int

    let all = ref [ (count, count) ]
    let title = ref (string_of_int count)
  end : SHOWN)

let suspended = lazy (string_of_int count :: [])

let forced =
  let value = lazy [| Bytes.make count ' ' |] in
  ignore (Lazy.force value);
  value

let expression = ref (Pair (Number count, Any (string_of_int count, String.length)))

let variants : [ `Text of string | `Nothing ] list ref =
  ref [ `Text (string_of_int count); `Nothing ]

let rec rose depth =
  Rose (string_of_int depth, if depth = 0 then [] else List.init 2 (fun _ -> rose (depth - 1)))

let tree = ref (rose 4)
let long = ref (Int64.of_int count)
let shadowed = ref (string_of_int count)
let shadowed = ref [ shadowed ]

module Cells (Given : sig
  val first : int
end) =
struct
  type cell = { value : int; text : string }

  let cells = ref [ { value = Given.first; text = string_of_int Given.first } ]
end

module Some_cells = Cells (struct
  let first = count
end)

module Sealed : sig
  type t

  val all : t list ref
end = struct
  type t = { number : int; text : string option }

  let all = ref (List.map (fun number -> { number; text = Some (string_of_int number) }) numbers)
end

include (
  struct
    type hidden = Hidden of string * int

    let hidden = ref (Hidden (string_of_int count, count))
  end :
    sig
      type hidden

      val hidden : hidden ref
    end)

(* The same block with two types. *)
let honest : string option ref = ref (Some (string_of_int count))
let lie : string ref ref = ref (Obj.magic !honest)

(* A block that is not what its type says. *)
let wrong : position list ref = ref [ Obj.magic (Some count) ]

let truth =
  [ (2 * count, "Typed_store.entry");
    (count, "Typed_store.entry option");
    (count, "Typed_store.entry list");
    (count, "(string, Typed_store.entry) Hashtbl.bucketlist");
    (1, "(string, Typed_store.entry) Hashtbl.t");
    (1, "Typed_store.entry Typed_store.t");
    ((1 lsl (3 + Array.length Sys.argv)) - 1, "Typed_store.Inner.node");
    (1, "(string * int) list");
    (count, "(int * float option) Map.Make(String).t");
    (count, "int * float option");
    (count, "float option");
    (count, "(int * int * int) Map.Make(Typed.Pairs.Ord).t");
    (count, "int * int * int");
    (count, "Set.Make(Int).t");
    (4 * count, "Typed.shape");
    (3 * count, "Typed.shape list");
    (count, "(int, Typed.shape list) Hashtbl.bucketlist");
    (1, "(int, Typed.shape list) Hashtbl.t");
    (1, "float array");
    (count, "Typed.position");
    (1, "Typed.position array");
    (count, "(int * int) Queue.cell");
    (count, "int * int");
    (count + 1, "string ref list");
    (1, "string ref Stack.t");
    (1, "module Typed.SHOWN");
    (1, "_ list ref");
    (1, "string list Lazy.t");
    (1, "bytes array");
    (1, "(int * int) Typed.expression");
    (2, "_ Typed.expression");
    (1, "[ `Nothing | `Text of string ]");
    (31, "string Typed.rose");
    (30, "string Typed.rose list");
    (1, "int64");
    (1, "int64 ref");
    (1, "string ref list ref");
    (1, "Typed.Some_cells.cell");
    (count, "Typed.Sealed.t");
    (1, "Typed.hidden");
    (1, "module Typed.Sealed");
    (1, "string option (guessed)");
    (1, "Typed.position list") ]

let () =
  Gc.full_major ();
  List.iter (fun (blocks, name) -> Printf.printf "%d %s\n" blocks name) truth
