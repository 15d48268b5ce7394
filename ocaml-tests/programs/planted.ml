(* Memory that is held for a known reason: `planted WAY` ends with it alive. *)
type entry = { key : int; text : string; mutable hits : int; size : int }

let entry key = { key; text = String.make 64 'x'; hits = 0; size = 64 }
let elements = 20_000

let table : (int, entry) Hashtbl.t = Hashtbl.create 16
let history : entry list ref = ref []
let handlers : (unit -> int) list ref = ref []
let pictures : (int, Bigarray.int8_unsigned_elt, Bigarray.c_layout) Bigarray.Array1.t list ref = ref []
let finalised = ref 0

open Bigarray

let cache () = for key = 1 to elements do Hashtbl.replace table key (entry key) done
let list () = for key = 1 to elements do history := entry key :: !history done

(* The handler needs one number, and keeps all entries. *)
let register entries = handlers := (fun () -> List.length entries) :: !handlers
let closure () = register (List.init elements entry)

let bigarray () =
  for _ = 1 to 64 do pictures := Array1.create int8_unsigned c_layout 262_144 :: !pictures done

type resource = { number : int; buffer : Bytes.t }

let finaliser () =
  for number = 1 to 100 do
    let resource = { number; buffer = Bytes.create 40_000 } in
    (* It should take its argument. *)
    Gc.finalise (fun _ -> finalised := !finalised + Bytes.length resource.buffer) resource
  done

let first_key = ref (Bytes.create 100)
(* What both versions have. *)
let links : Obj.Ephemeron.t list ref = ref []

let ephemerons () =
  let key = ref !first_key in
  for _ = 1 to 1_000 do
    let next = Bytes.create 100 in
    let link = Obj.Ephemeron.create 1 in
    Obj.Ephemeron.set_key link 0 (Obj.repr !key);
    Obj.Ephemeron.set_data link (Obj.repr next);
    links := link :: !links;
    key := next
  done

let never, _ = Unix.pipe ()

let is_ready = ref false

let worker () =
  let entries = List.init elements entry in
  is_ready := true;
  ignore (Unix.select [ never ] [] [] (-1.));
  print_int (List.length entries)

let thread () =
  ignore (Thread.create worker ());
  while not !is_ready do Thread.delay 0.01 done;
  Thread.delay 0.05

(* Much is allocated, little is kept, and what is kept is not of one kind. *)
let ring = Array.make 64 ""
let steady () =
  for round = 1 to 200_000 do
    ring.(round land 63) <- String.make (round land 255) 'y';
    ignore (Sys.opaque_identity (List.init 10 entry))
  done

let () =
  (match Sys.argv.(1) with
   | "cache" | "dropped" -> cache ()
   | "list" -> list ()
   | "closure" -> closure ()
   | "bigarray" -> bigarray ()
   | "finaliser" -> finaliser ()
   | "ephemerons" -> ephemerons ()
   | "thread" -> thread ()
   | "steady" -> steady ()
   | way -> failwith way);
  Gc.full_major ();
  (* For the size of what is held, and to hold it until here. *)
  Printf.printf "%d %d\n" (Obj.reachable_words (Obj.repr table)) (Obj.reachable_words (Obj.repr history));
  flush stdout;
  ignore (Sys.opaque_identity (!handlers, !pictures, !links, !first_key));
  (* Garbage that no collection frees before the end. *)
  if Sys.argv.(1) = "dropped" then Hashtbl.reset table;
  (* Without waiting for the thread. *)
  if Sys.argv.(1) = "thread" then Unix.sleepf 0.1
