(* Works until its input ends, so that it can be sent commands meanwhile. *)
let table = Hashtbl.create 100
let work () = for i = 1 to 2_000 do Hashtbl.replace table (i mod 500) (string_of_int i, [ i ]) done

(* A signal that asks for a snapshot interrupts a select that it meets, as every signal does. *)
let has_input () =
  match Unix.select [ Unix.stdin ] [] [] 0. with
  | [], _, _ | (exception Unix.Unix_error (Unix.EINTR, _, _)) -> false
  | _ -> true

let busy () =
  print_endline "ready";
  while not (has_input ()) do work () done

(* Counts without allocating, in rounds, until all are done or some seconds of processor time have passed. Returns how
   long a round takes, by the median of the second half. *)
let count rounds seconds =
  let times = Array.make rounds 0. and last = ref 0 in
  let until = Sys.time () +. seconds in
  while !last < rounds && Sys.time () < until do
    let start = Sys.time () and number = ref 0 in
    while !number < 5_000_000 do incr number done;
    times.(!last) <- Sys.time () -. start;
    incr last
  done;
  let half = Array.sub times (!last / 2) (!last - (!last / 2)) in
  Array.sort compare half;
  half.(Array.length half / 2)

let () =
  work ();
  (match Sys.argv.(1) with
  | "busy" -> busy ()
  | "idle" ->
      (* Blocked threads are known once there was a minor collection. *)
      Gc.minor ();
      print_endline "ready";
      (try ignore (input_line stdin) with End_of_file -> ())
  | "fork" ->
      (match Unix.fork () with
      | 0 -> work (); exit 0
      | child -> assert (snd (Unix.waitpid [] child) = Unix.WEXITED 0));
      busy ()
  | "closes" ->
      (* As daemons do. *)
      for number = 3 to 1023 do
        try Unix.close (Obj.magic number : Unix.file_descr) with Unix.Unix_error _ -> ()
      done;
      busy ()
  | "majors" ->
      for _ = 1 to int_of_string Sys.argv.(2) do work (); Gc.full_major () done;
      busy ()
  | "handles" ->
      let signals = ref 0 in
      Sys.set_signal Sys.sigusr2 (Sys.Signal_handle (fun _ -> incr signals));
      print_endline "ready";
      while !signals = 0 || not (has_input ()) do work () done;
      print_endline "handled"
  | "large" ->
      let kept = Array.init (int_of_string Sys.argv.(2)) (fun i -> Some i) in
      busy ();
      ignore (Sys.opaque_identity kept)
  | "computes" ->
      print_endline "ready";
      (* Allocates nothing. *)
      let until = Unix.gettimeofday () +. float_of_string Sys.argv.(2) in
      while Unix.gettimeofday () < until do () done
  | "counts" ->
      let before = count 40 infinity in
      print_endline "ready";
      let slower = count 100_000 (float_of_string Sys.argv.(2)) /. before in
      if slower > 6. then Printf.printf "%.1f times slower\n" slower else print_endline "as fast as before"
  | other -> failwith other);
  Printf.printf "%d entries\n" (Hashtbl.length table)
