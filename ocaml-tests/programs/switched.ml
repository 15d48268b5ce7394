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

(* Fifty threads, of which some end and others begin. *)
let fifty () =
  let stop = ref false in
  let work n =
    let i = ref n and last = n + 200 + (n mod 7 * 100) in
    while not !stop && (n mod 2 = 0 || !i < last) do
      incr i;
      check !i;
      if !i mod 20 = 0 then Thread.yield ()
    done
  in
  let all = ref (List.init 50 (Thread.create work)) in
  until_input (fun i ->
      check i;
      if i mod 50 = 0 then all := Thread.create work 1 :: !all);
  stop := true;
  List.iter Thread.join !all

(* Another minor heap every few rounds, and other parameters. *)
let resizes () =
  let sizes = [| 4096; 262_144; 8192; 1_000_000; 32_768 |] in
  until_input (fun i ->
      check i;
      if i mod 7 = 0 then
        Gc.set { (Gc.get ()) with Gc.minor_heap_size = sizes.(i / 7 mod 5); space_overhead = 80 + (i mod 50) };
      if i mod 501 = 0 then Gc.compact ())

(* A child every few rounds, which works, and ends by itself or by _exit. *)
let forking () =
  until_input (fun i ->
      check i;
      if i mod 40 = 0 then
        match Unix.fork () with
        | 0 ->
            for j = 1 to 10 do check j done;
            if i mod 80 = 0 then exit (if !wrong = 0 then 0 else 1);
            Unix.kill (Unix.getpid ()) Sys.sigkill
        | child -> (
            match snd (Unix.waitpid [] child) with
            | Unix.WEXITED 0 -> ()
            | Unix.WSIGNALED s when s = Sys.sigkill -> ()
            | _ -> incr wrong))

(* Waits, and never allocates. That its threads are blocked is known once there was a minor collection. *)
let never () =
  Gc.minor ();
  print_endline "ready";
  let buffer = Bytes.create 1 in
  ignore (Unix.read Unix.stdin buffer 0 1)

(* Becomes another image of itself several times. *)
let execs () =
  let left = int_of_string Sys.argv.(2) in
  if left = int_of_string Sys.argv.(3) then print_endline "ready";
  let until = Unix.gettimeofday () +. 0.4 and i = ref 0 in
  while Unix.gettimeofday () < until do incr i; check !i done;
  if left > 0 then
    Unix.execv Sys.executable_name [| Sys.argv.(0); "execs"; string_of_int (left - 1); Sys.argv.(3) |];
  ignore (input_line stdin)

(* Leaves its parent and its terminal, and closes every descriptor but the first three. *)
let daemon () =
  if Unix.fork () <> 0 then exit 0;
  ignore (Unix.setsid ());
  if Unix.fork () <> 0 then exit 0;
  for number = 3 to 1023 do
    try Unix.close (Obj.magic number : Unix.file_descr) with Unix.Unix_error _ -> ()
  done;
  Printf.printf "%d\n%!" (Unix.getpid ());
  busy ()

(* Loads a plugin at each line but an empty one, and works with what it has loaded. *)
let plugins () =
  print_endline "ready";
  let loaded = ref 0 and over = ref false and i = ref 0 in
  while not !over do
    if has_input () then begin
      match input_line stdin with
      | "" -> over := true
      | file ->
          Dynlink.loadfile_private file;
          incr loaded;
          Printf.printf "%d\n%!" !loaded
    end;
    incr i;
    check !i;
    if !Plugin_interface.work 10 <> (if !loaded = 0 then 0 else 110) then incr wrong
  done

let () =
  (match Sys.argv.(1) with
  | "busy" -> busy ()
  | "plugins" -> plugins ()
  | "fifty" -> fifty ()
  | "resizes" -> resizes ()
  | "forking" -> forking ()
  | "never" -> never ()
  | "execs" -> execs ()
  | "daemon" -> daemon ()
  | "threads" -> threads ()
  | "overflow" -> overflow ()
  | "profile" -> profile ()
  | "forks" -> forks ()
  | other -> failwith other);
  print_endline (if !wrong = 0 then "all right" else "wrong")
