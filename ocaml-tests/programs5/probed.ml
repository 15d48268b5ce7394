(* Uses every probe, and prints the truth as JSON, "truth {...}". For OCaml 4 and 5: `run` starts work in
   parallel, in threads or in domains. *)

let facts = ref []
let fact name text = facts := Printf.sprintf "%S: %s" name text :: !facts
let number name n = fact name (string_of_int n)
let seconds name s = fact name (Printf.sprintf "%.9f" s)

(* Passes, one by one and many at once, from several places and threads. *)
let points run =
  let point = Heaptap.point "work/passes" in
  run 5 (fun worker ->
      for i = 1 to 1_000_000 do Heaptap.pass point done;
      for i = 1 to 1_000 do Heaptap.pass_n (Heaptap.point "work/passes") worker; ignore (Array.make 50 i) done);
  ignore (Heaptap.point "work/never passed");
  number "passes" (5 * 1_000_000 + 1_000 * (0 + 1 + 2 + 3 + 4))

let busy duration =
  let start = Unix.gettimeofday () in
  while Unix.gettimeofday () -. start < duration do () done;
  Unix.gettimeofday () -. start

(* What a timer measures lies between what is measured inside and outside of it. *)
let timers () =
  let timer = Heaptap.timer "work/time" in
  let least = ref 0. and most = ref 0. in
  for i = 1 to 20 do
    let start = Unix.gettimeofday () in
    least := !least +. Heaptap.time timer (fun () -> busy 0.002);
    most := !most +. (Unix.gettimeofday () -. start)
  done;
  (try Heaptap.time timer (fun () -> raise Exit) with Exit -> ());
  let start = Unix.gettimeofday () in
  Heaptap.start timer;
  least := !least +. busy 0.003;
  Heaptap.stop timer;
  most := !most +. (Unix.gettimeofday () -. start);
  Heaptap.stop timer;
  seconds "least time" !least;
  seconds "most time" !most;
  number "runs" 22

let values () =
  let depth = Heaptap.value "work/depth" in
  List.iter (Heaptap.set_int depth) [ 3; -7; 12; 5 ];
  Heaptap.set (Heaptap.value "work/ratio") 0.25;
  Heaptap.set_text (Heaptap.text "work/state") "warming up";
  Heaptap.set_text (Heaptap.text "work/state") "h\xc3\xb6t; \"done\""

type tree = Leaf | Node of tree * int list * tree

let rec tree depth = if depth = 0 then Leaf else Node (tree (depth - 1), List.init depth Fun.id, tree (depth - 1))
let kept : tree list ref = ref []
let functions : (int -> int) list ref = ref []

(* Some die young, some are promoted and die, some live; they share a part. Integers are never collected. *)
let tags () =
  let trees = Heaptap.tag "tags/trees" and closures = Heaptap.tag "tags/closures" in
  let none = Heaptap.tag "tags/all dead" in
  let shared = tree 6 in
  for i = 1 to 3_000 do
    let marked = Heaptap.mark trees (Node (shared, [ i; i ], tree (i mod 4))) in
    if i mod 3 = 0 then kept := marked :: !kept;
    ignore (Heaptap.mark none (Bytes.create 40));
    if i mod 100 = 0 then Gc.minor ();
    if i mod 1_000 = 0 then Gc.full_major ()
  done;
  kept := List.filteri (fun i _ -> i mod 2 = 0) !kept;
  (* Closures that share a block, of which the second is a pointer into it. *)
  let make n =
    let rec even i = i = 0 || odd (i - n) and odd i = i <> 0 && even (i - n) in
    ((fun i -> if even i then 1 else 0), odd)
  in
  for i = 1 to 10 do
    let _, odd = make (Sys.opaque_identity i) in
    let odd = Heaptap.mark closures odd in
    functions := (fun i -> if odd i then 1 else 0) :: !functions
  done;
  ignore (Heaptap.mark trees Leaf)

let reachable values = Obj.reachable_words (Obj.repr (Array.of_list values)) - List.length values - 1

let table = Hashtbl.create 16
let observed = ref 0.

let observing () =
  Heaptap.observe "observed/number" (fun () -> !observed);
  Heaptap.observe "observed/fails" (fun () -> failwith "cannot");
  Heaptap.observe_hashtbl "observed/table" table;
  Heaptap.observe_hashtbl "observed/dead" (Hashtbl.create 5);
  for i = 1 to 1_000 do Hashtbl.replace table (i * 7919) i done;
  observed := 41.;
  Gc.full_major ();
  observed := 42.;
  (* Long enough to be due again. *)
  Unix.sleepf 0.3;
  for _ = 1 to 3 do Gc.minor (); ignore (Sys.opaque_identity (ref 0)) done;
  let stats = Hashtbl.stats table in
  number "bindings" stats.num_bindings;
  number "buckets" stats.num_buckets;
  number "longest bucket" stats.max_bucket_length;
  number "empty buckets" stats.bucket_histogram.(0)

let all run =
  points run;
  timers ();
  values ();
  Heaptap.log "a line";
  Heaptap.logf "%s %d%s" "another" 7 (String.make 2_000 'x');
  Heaptap.pause_here "look here";
  tags ();
  observing ();
  Gc.full_major ();
  number "live trees" (List.length !kept);
  number "tree words" (reachable !kept);
  (* Sizes are measured in a fiftieth of the time only. *)
  Unix.sleepf 0.3;
  Gc.full_major ();
  let stat = Gc.quick_stat () in
  number "minor collections" stat.minor_collections;
  number "major collections" stat.major_collections;
  ignore (Sys.opaque_identity (!kept, !functions, table));
  Printf.printf "truth {%s}\n%!" (String.concat ", " !facts)
