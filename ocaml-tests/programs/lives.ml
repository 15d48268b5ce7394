(* The same blocks in every run, of many sizes and lifetimes: tables that are
   built and dropped, a queue, trees, strings. *)

module Trees = Map.Make (Int)

let state = Random.State.make [| 17 |]
let below n = Random.State.int state n

let queue = Queue.create ()

let through_queue turn =
  Queue.add (Array.make (1 + below 12) turn) queue;
  if Queue.length queue > 300 then ignore (Queue.take queue)

let trees = ref Trees.empty

let in_tree turn =
  trees := Trees.add (below 400) (string_of_int turn) !trees;
  if turn mod 5_000 = 0 then trees := Trees.empty

let table = Hashtbl.create 16

let in_table turn =
  Hashtbl.replace table (below 2_000) (Bytes.create (8 * below 30));
  if turn mod 9_000 = 0 then Hashtbl.reset table

let scratch turn = ignore (Sys.opaque_identity (List.init (turn mod 20) (fun i -> float (i + turn))))

let () =
  for turn = 1 to 20_000 do
    through_queue turn; in_tree turn; in_table turn; scratch turn
  done;
  Printf.printf "%d %d\n" (Trees.cardinal !trees) (Hashtbl.length table)
