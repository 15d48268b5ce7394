(* Threads that wait for a mutex, for a condition and in select, each with a list that only a function of its own holds:

     waiting DOMAINS [other | twice]

   Prints a line for each thread (function, Thread.id, domain, elements) and "ready", and ends with its input. *)

external set_hook : int array -> bool -> unit = "waiting_set_hook"

let never, _ = Unix.pipe ()
let lines = Mutex.create ()
let waiting = Atomic.make 0

let list name number =
  let domain = (Domain.self () :> int) in
  let elements = 1_000 * ((4 * domain) + number) in
  let numbers = List.init elements Fun.id in
  Mutex.protect lines (fun () -> Printf.printf "%s %d %d %d\n%!" name (Thread.id (Thread.self ())) domain elements);
  Atomic.incr waiting;
  numbers

let for_a_mutex mutex =
  let numbers = list "for_a_mutex" 1 in
  Mutex.lock mutex;
  print_int (List.length numbers)

let for_a_condition (mutex, condition) =
  let numbers = list "for_a_condition" 2 in
  Mutex.lock mutex;
  Condition.wait condition mutex;
  print_int (List.length numbers)

let in_select () =
  let numbers = list "in_select" 3 in
  ignore (Unix.select [ never ] [] [] (-1.));
  print_int (List.length numbers)

(* The thread that a domain begins with. *)
let in_domain () =
  let numbers = list "in_domain" 4 in
  ignore (Unix.select [ never ] [] [] (-1.));
  print_int (List.length numbers)

let start_threads () =
  let mutex = Mutex.create () in
  Mutex.lock mutex;
  ignore (Thread.create for_a_mutex mutex);
  ignore (Thread.create for_a_condition (Mutex.create (), Condition.create ()));
  ignore (Thread.create in_select ())

let () =
  let domains = int_of_string Sys.argv.(1) in
  start_threads ();
  for _ = 2 to domains do
    ignore (Domain.spawn (fun () -> start_threads (); in_domain ()))
  done;
  while Atomic.get waiting < (4 * domains) - 1 do Thread.delay 0.01 done;
  Thread.delay 0.1;
  if Array.length Sys.argv > 2 then set_hook (Array.make 1_000 0) (Sys.argv.(2) = "twice");
  print_endline "ready";
  ignore (input_line stdin);
  exit 0
