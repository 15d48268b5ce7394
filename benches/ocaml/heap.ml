(* A program with a large heap of maps, tables, strings and records, for benches/snapshot. It obeys lines on standard
   input, and stops a loop at SIGUSR1:

     full          Gc.full_major, whose seconds it prints
     read          looks up entries and allocates what dies young; does not change what is old
     write         replaces entries all over the heap

   A loop prints how far it got, every 5 ms: the time, the number of steps since the line before, and the longest
   time between two steps since the line before. Between two steps nothing but a step happens: what takes longer is
   the collector, the kernel, or a snapshot. *)

module Integers = Map.Make (Int)

type kind = Private | Business of string | Shared of int list

type account = {
  id : int;
  name : string;
  kind : kind;
  mutable balance : float;
  mutable history : (int * string) list;
}

(* About 4 MB. *)
type shard = {
  mutable by_id : account Integers.t;
  by_name : (string, account) Hashtbl.t;
  samples : float array;
  notes : Bytes.t array;
  rules : (int -> int) array;
}

let seed = ref 1

let random bound =
  seed := (!seed * 2_862_933_555_777_941_757) + 1_442_695_040_888_963_407;
  (!seed lsr 20) mod bound

let accounts_of_a_shard = 12_000

let account id =
  let kind =
    match random 4 with
    | 0 -> Business (String.make (8 + random 60) 'b')
    | 1 -> Shared (List.init (1 + random 4) (fun index -> index))
    | _ -> Private
  in
  let event number = (number, string_of_int (random 1_000_000)) in
  { id; name = Printf.sprintf "account-%d" id; kind; balance = float_of_int id; history = List.init (random 5) event }

let add shard account =
  shard.by_id <- Integers.add account.id account shard.by_id;
  Hashtbl.replace shard.by_name account.name account

let shard () =
  let shard =
    {
      by_id = Integers.empty;
      by_name = Hashtbl.create 16;
      samples = Array.init 10_000 float_of_int;
      notes = Array.init 2_000 (fun _ -> Bytes.make (random 300) 'n');
      rules = Array.init 500 (fun index -> if random 2 = 0 then ( + ) index else fun x -> x * index);
    }
  in
  for id = 0 to accounts_of_a_shard - 1 do
    add shard (account id)
  done;
  shard

let kept = ref 0

let read shards =
  let shard = shards.(random (Array.length shards)) in
  let account = Integers.find (random accounts_of_a_shard) shard.by_id in
  let same = Hashtbl.find shard.by_name account.name in
  let events = List.map (fun (number, text) -> (number + 1, text ^ ".")) same.history in
  kept := !kept + List.length events + shard.rules.(random 500) 1

let write shards =
  let shard = shards.(random (Array.length shards)) in
  let changed = Integers.find (random accounts_of_a_shard) shard.by_id in
  changed.balance <- changed.balance +. 1.;
  changed.history <- [ (random 100, string_of_int (random 1_000_000)) ];
  shard.notes.(random 2_000) <- Bytes.make (random 300) 'n';
  add shard (account (random accounts_of_a_shard))

let is_stopped = ref false
let most_lines = 60_000
let times = Array.make most_lines 0.
let steps = Array.make most_lines 0.
let gaps = Array.make most_lines 0.

let loop step =
  is_stopped := false;
  let lines = ref 0 and count = ref 0 in
  let longest = ref 0. and last_line = ref (Unix.gettimeofday ()) in
  let before = ref !last_line in
  while (not !is_stopped) && !lines < most_lines do
    step ();
    incr count;
    let now = Unix.gettimeofday () in
    if now -. !before > !longest then longest := now -. !before;
    before := now;
    if now -. !last_line > 0.005 then begin
      times.(!lines) <- now;
      steps.(!lines) <- float_of_int !count;
      gaps.(!lines) <- !longest;
      incr lines;
      count := 0;
      longest := 0.;
      last_line := now
    end
  done;
  for line = 0 to !lines - 1 do
    Printf.printf "%.6f %.0f %.6f\n" times.(line) steps.(line) gaps.(line)
  done;
  print_endline "end"

let () =
  let bytes = 1_000_000 * int_of_string Sys.argv.(1) in
  let first = shard () in
  let shards = max 1 (bytes / (8 * Obj.reachable_words (Obj.repr first))) in
  let shards = Array.init shards (fun index -> if index = 0 then first else shard ()) in
  Sys.set_signal Sys.sigusr1 (Sys.Signal_handle (fun _ -> is_stopped := true));
  Gc.full_major ();
  print_endline "ready";
  try
    while true do
      match read_line () with
      | "full" ->
          let start = Unix.gettimeofday () in
          Gc.full_major ();
          Printf.printf "%.6f\n%!" (Unix.gettimeofday () -. start)
      | "read" -> loop (fun () -> read shards)
      | "write" -> loop (fun () -> write shards)
      | other -> failwith other
    done
  with End_of_file -> ignore (Sys.opaque_identity (shards, !kept))
