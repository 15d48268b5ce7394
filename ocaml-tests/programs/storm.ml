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

let () =
  let rounds = int_of_string Sys.argv.(1) in
  let handler _ = if Random.int 3 = 0 then raise Rung else ignore (List.init 20 Fun.id) in
  Sys.set_signal Sys.sigalrm (Sys.Signal_handle handler);
  let every = { Unix.it_interval = 0.002; it_value = 0.002 } in
  ignore (Unix.setitimer Unix.ITIMER_REAL every);
  let rec insist f = try f () with Rung -> insist f in
  let run n =
    for i = 1 to rounds do
      try ignore (work (i mod 200) (i + n)) with Rung -> ()
    done
  in
  let threads = insist (fun () -> List.init 6 (fun n -> Thread.create run (n * 1_000))) in
  List.iter (fun thread -> insist (fun () -> Thread.join thread)) threads;
  insist (fun () -> ignore (Unix.setitimer Unix.ITIMER_REAL { Unix.it_interval = 0.; it_value = 0. }));
  insist (fun () -> Sys.set_signal Sys.sigalrm Sys.Signal_ignore);
  print_endline "survived"
