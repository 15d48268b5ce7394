(* Threads that allocate, block and signal each other, with an interval timer that fires all the time. *)
let ticks = ref 0
let lock = Mutex.create ()
let total = ref 0

let worker (rounds, seed) =
  for round = 1 to rounds do
    let list = List.init 2000 (fun i -> (i * seed) + round) in
    let sum = List.fold_left (fun a b -> (a + b) land 0xffffff) 0 list in
    Mutex.lock lock;
    total := (!total + sum) land 0xffffff;
    Mutex.unlock lock;
    if round mod 50 = 0 then Unix.kill (Unix.getpid ()) Sys.sigusr1;
    if round mod 97 = 0 then (try Thread.delay 0.0005 with Unix.Unix_error _ -> ())
  done

let () =
  let rounds = int_of_string Sys.argv.(1) in
  let count _ = incr ticks in
  Sys.set_signal Sys.sigalrm (Sys.Signal_handle count);
  Sys.set_signal Sys.sigusr1 (Sys.Signal_handle count);
  ignore (Unix.setitimer Unix.ITIMER_REAL { Unix.it_interval = 0.002; it_value = 0.002 });
  let threads = List.init 6 (fun i -> Thread.create worker (rounds, i + 3)) in
  let rec join t = try Thread.join t with Unix.Unix_error (Unix.EINTR, _, _) -> join t in
  List.iter join threads;
  ignore (Unix.setitimer Unix.ITIMER_REAL { Unix.it_interval = 0.; it_value = 0. });
  Printf.printf "%d %b\n" !total (!ticks > 0)
