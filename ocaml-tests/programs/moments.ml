(* Does again and again what a snapshot could disturb, until its input ends: moments LOG WORK…
   Prints the same however often it did, and however long that took. Compiled without -g.

   Every handler that the program has writes its process into LOG, and so does every fork: a handler
   that ran in any other process ran in a copy. *)
external watch : string -> unit = "moments_watch"
external log : string -> unit = "moments_log"
external children_ended : unit -> int = "moments_children_ended"

exception Rung

let wrong text = print_endline text; exit 3
let allocate n = List.fold_left (fun sum text -> sum + String.length text) 0 (List.init n string_of_int)

(* So that a snapshot takes a while. *)
let table = Hashtbl.create 1_000
let () = for i = 1 to 20_000 do Hashtbl.replace table i (string_of_int i, [| i; i + 1 |], [ float i ]) done

(* Calls that wait end early only if the program has a timer, or gets signals. *)
let is_interrupted = ref false
let rec patient f = try f () with Unix.Unix_error (Unix.EINTR, _, _) when !is_interrupted -> patient f

let threads () =
  let total = Atomic.make 0 and mutex = Mutex.create () and changed = Condition.create () in
  let arrived = ref 0 in
  let run n =
    for i = 1 to 6 do
      ignore (Atomic.fetch_and_add total (allocate ((100 * n) + i)));
      if i mod 2 = 0 then Thread.yield () else Thread.delay 0.0002
    done;
    Mutex.lock mutex;
    incr arrived;
    Condition.broadcast changed;
    while !arrived < 4 do Condition.wait changed mutex done;
    Mutex.unlock mutex
  in
  List.iter Thread.join (List.init 4 (Thread.create run));
  Atomic.get total

(* Set while the handler of the timer is to raise. *)
let is_raising = ref false

let signals () =
  let raised = ref 0 in
  while !raised < 5 do
    (try
       is_raising := true;
       while true do ignore (Sys.opaque_identity (allocate 20)) done
     with Rung -> ());
    incr raised
  done;
  !raised

let rec deep n = 1 + deep (n + 1) + List.length (Sys.opaque_identity [ n; n + 1 ])

let overflow () = match deep 0 with _ -> wrong "the stack has no end" | exception Stack_overflow -> 1

let bounds () =
  let array = Array.make 5 0 and floats = Array.make 5 0. and bytes = Bytes.create 5 in
  let big = Bigarray.Array1.create Bigarray.int Bigarray.c_layout 5 in
  let caught = ref 0 in
  let attempt f = try f () with Invalid_argument _ -> incr caught in
  for i = 0 to 500 do
    let index = Sys.opaque_identity i in
    attempt (fun () -> array.(index) <- i);
    attempt (fun () -> floats.(index) <- float i);
    attempt (fun () -> Bytes.set bytes index 'x');
    attempt (fun () -> big.{index} <- i);
    ignore (Sys.opaque_identity (i, string_of_int i))
  done;
  !caught

let forked = ref 0

let fork code =
  match Unix.fork () with
  | 0 ->
      ignore (allocate 500);
      if code mod 2 = 0 then Unix.sleepf 0.003;
      if code < 3 then exit code else Unix._exit code
  | child ->
      incr forked;
      log (Printf.sprintf "%d forked" child);
      child

let no_child () =
  (match patient Unix.wait with
  | child, _ -> wrong (Printf.sprintf "wait found %d" child)
  | exception Unix.Unix_error (Unix.ECHILD, _, _) -> ());
  match Unix.waitpid [ Unix.WNOHANG ] (-1) with
  | child, _ -> wrong (Printf.sprintf "waitpid found %d" child)
  | exception Unix.Unix_error (Unix.ECHILD, _, _) -> ()

let forks () =
  let born = List.sort compare (List.init 4 fork) in
  let found = List.init 4 (fun _ -> patient Unix.wait) in
  if List.sort compare (List.map fst found) <> born then wrong "wait found another child";
  no_child ();
  List.fold_left (fun sum -> function _, Unix.WEXITED code -> sum + code | _ -> wrong "a child was killed") 0 found

let waits () =
  for _ = 1 to 200 do no_child (); ignore (allocate 20) done;
  0

let commands () =
  let lines = Unix.open_process_in "echo 5; exit 6" in
  let said = int_of_string (input_line lines) in
  match (Unix.close_process_in lines, Sys.command "exit 7") with
  | Unix.WEXITED code, other -> said + code + other
  | _ -> wrong "a command was killed"

let selects () =
  let input, output = Unix.pipe () in
  let write () = Thread.delay 0.004; ignore (Unix.write_substring output "x" 0 1) in
  let writer = Thread.create write () in
  let ready = match patient (fun () -> Unix.select [ input ] [] [] 60.) with [ _ ], [], [] -> 1 | _ -> wrong "nothing to read" in
  Thread.join writer;
  let nothing =
    match Unix.select [] [] [] 0.003 with
    | [], [], [] -> 2
    | _ -> wrong "something to read"
    | exception Unix.Unix_error (Unix.EINTR, _, _) when !is_interrupted -> 2
  in
  List.iter Unix.close [ input; output ];
  ready + nothing

let idle () = Unix.sleepf 0.02; 0

(* No polls: nothing can interrupt it before 4.14. *)
let computes () =
  let sum = ref 0 in
  for i = 1 to 1_000_000 do sum := !sum lxor Sys.opaque_identity i done;
  !sum

let works =
  [ ("threads", threads); ("signals", signals); ("overflow", overflow); ("bounds", bounds); ("forks", forks);
    ("waits", waits); ("commands", commands); ("selects", selects); ("idle", idle); ("computes", computes) ]

let start_timer () =
  (* A collection in a handler that runs while a bounds error is raised crashes any program without -g on OCaml 4. *)
  let handler _ = if !is_raising then (ignore (allocate 10); is_raising := false; raise Rung) in
  Sys.set_signal Sys.sigalrm (Sys.Signal_handle handler);
  let every = { Unix.it_interval = 0.002; it_value = 0.002 } in
  ignore (Unix.setitimer Unix.ITIMER_REAL every)

let has_input () = match patient (fun () -> Unix.select [ Unix.stdin ] [] [] 0.) with [], _, _ -> false | _ -> true

let () =
  watch Sys.argv.(1);
  let self = Unix.getpid () in
  log (Printf.sprintf "%d starts" self);
  at_exit (fun () -> log (Printf.sprintf "%d at_exit" (Unix.getpid ())));
  let names = List.tl (List.tl (Array.to_list Sys.argv)) in
  is_interrupted := List.mem "signals" names || List.mem "interrupted" names;
  if List.mem "signals" names then start_timer ();
  let chosen = List.filter_map (fun name -> List.assoc_opt name works) names in
  let round () = List.map (fun work -> work ()) chosen in
  let expected = round () in
  print_endline "ready";
  while not (has_input ()) do
    if round () <> expected then wrong "a round had another result"
  done;
  if children_ended () > !forked && not (List.mem "commands" names) then wrong "SIGCHLD for a stranger";
  List.iter (Printf.printf "%d ") expected;
  print_endline "expected";
  exit 7
