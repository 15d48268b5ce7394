(* Works until its input ends, and checks what it has computed, while traces of it are started and stopped:
   switched WAY. *)
let sum i =
  let pairs = List.init 50 (fun j -> (i + j, string_of_int (i * j))) in
  let copy : (int * string) list = Marshal.from_string (Marshal.to_string pairs []) 0 in
  let large = Array.make 400 i in
  (try if i mod 3 = 0 then raise Not_found with Not_found -> ());
  List.fold_left (fun sum (a, b) -> sum + a + String.length b) large.(399) copy

let expected = Array.init 100 sum
let wrong = ref 0
let check i = if sum (i mod 100) <> expected.(i mod 100) then incr wrong

let has_input () =
  match Unix.select [ Unix.stdin ] [] [] 0. with
  | [], _, _ | (exception Unix.Unix_error (Unix.EINTR, _, _)) -> false
  | _ -> true

let until_input work =
  print_endline "ready";
  let i = ref 0 in
  while not (has_input ()) do
    for _ = 1 to 20 do incr i; work !i done
  done

let busy () = until_input check

(* With a signal every millisecond, whose handler allocates. *)
let threads () =
  let stop = ref false and ticks = ref 0 in
  Sys.set_signal Sys.sigalrm (Sys.Signal_handle (fun _ -> ticks := String.length (string_of_int !ticks)));
  let every = 0.001 in
  ignore (Unix.setitimer Unix.ITIMER_REAL { Unix.it_interval = every; it_value = every });
  let work n =
    let i = ref n in
    while not !stop do
      incr i;
      check !i;
      if !i mod 10 = 0 then Thread.yield ();
      if !i mod 100 = 0 then try Thread.delay 0.001 with Unix.Unix_error (Unix.EINTR, _, _) -> ()
    done
  in
  let all = List.init 4 (Thread.create work) in
  until_input check;
  stop := true;
  List.iter Thread.join all

let rec deep n = if n = 0 then [] else n :: deep (n - 1)

let overflow () =
  until_input (fun i ->
      check i;
      if i mod 100 = 0 then match deep 100_000_000 with _ -> incr wrong | exception Stack_overflow -> ())

(* A profile of its own, which ends when a line comes. *)
let profile () =
  Gc.Memprof.start ~sampling_rate:1e-3 Gc.Memprof.null_tracker;
  print_endline "ready";
  while not (has_input ()) do check 1 done;
  ignore (input_line stdin);
  Gc.Memprof.stop ();
  busy ();
  (* Nobody else takes one now. *)
  Gc.Memprof.start ~sampling_rate:1e-3 Gc.Memprof.null_tracker;
  Gc.Memprof.stop ()

let forks () =
  match Unix.fork () with
  | 0 ->
      while not (has_input ()) do check 1 done;
      exit 0
  | child ->
      Printf.printf "%d\n%!" child;
      busy ();
      assert (snd (Unix.waitpid [] child) = Unix.WEXITED 0)

let () =
  (match Sys.argv.(1) with
  | "busy" -> busy ()
  | "threads" -> threads ()
  | "overflow" -> overflow ()
  | "profile" -> profile ()
  | "forks" -> forks ()
  | other -> failwith other);
  print_endline (if !wrong = 0 then "all right" else "wrong")
