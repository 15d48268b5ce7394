(* Everything at once: threads, signals that raise, compaction, marshalling,
   external memory, weak pointers, exceptions through C. *)
exception Rung

let kept = Array.make 50 (Obj.repr 0)
let weak = Weak.create 50

let rec work depth i =
  if depth > 0 then (i, work (depth - 1) (i + 1)) |> snd
  else begin
    let slot = i mod 50 in
    kept.(slot) <- Obj.repr (List.init (i mod 300) (fun j -> (j, string_of_int j)));
    Weak.set weak slot (Some (ref i));
    if i mod 11 = 0 then kept.(slot) <- Obj.repr (Array.make (300 + (i mod 700)) i);
    if i mod 13 = 0 then
      kept.(slot) <- Marshal.from_string (Marshal.to_string kept.(slot) []) 0;
    if i mod 17 = 0 then
      kept.(slot) <- Obj.repr (Bigarray.Array1.create Bigarray.int Bigarray.c_layout (i mod 5_000));
    if i mod 901 = 0 then Gc.compact ();
    i
  end

(* Threads in which the handler may raise now. *)
let armed = Array.make 64 false

let handler _ =
  let own = Thread.id (Thread.self ()) mod 64 in
  if armed.(own) && Random.int 3 = 0 then (armed.(own) <- false; raise Rung)
  else ignore (List.init 20 Fun.id)

let () =
  let rounds = int_of_string Sys.argv.(1) in
  Sys.set_signal Sys.sigalrm (Sys.Signal_handle handler);
  let every = { Unix.it_interval = 0.002; it_value = 0.002 } in
  ignore (Unix.setitimer Unix.ITIMER_REAL every);
  let run n =
    let own = Thread.id (Thread.self ()) mod 64 in
    for i = 1 to rounds do
      try
        armed.(own) <- true;
        ignore (work (i mod 200) (i + n));
        armed.(own) <- false
      with Rung -> ()
    done
  in
  let rec insist f = try f () with Unix.Unix_error (Unix.EINTR, _, _) -> insist f in
  let threads = List.init 6 (fun n -> Thread.create run (n * 1_000)) in
  List.iter (fun thread -> insist (fun () -> Thread.join thread)) threads;
  ignore (Unix.setitimer Unix.ITIMER_REAL { Unix.it_interval = 0.; it_value = 0. });
  print_endline "survived"
