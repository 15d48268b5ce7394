(* Weak pointers, ephemerons and finalisers, some of which outlive their domain. *)
let finalised = Atomic.make 0
let shared_weak = Weak.create 64

let work member =
  let weak = Weak.create 50 in
  let table = Ephemeron.K1.make (ref 0) "" in
  let alive = ref 0 in
  for round = 1 to 10 do
    for i = 0 to 49 do
      let block = Array.make ((i mod 9) + 1) round in
      Weak.set weak i (Some block);
      Weak.set shared_weak ((member * 8 + i) mod 64) (Some block);
      Gc.finalise (fun _ -> Atomic.incr finalised) block;
      Gc.finalise_last (fun () -> Atomic.incr finalised) (ref i);
      if i = 25 then ignore (Ephemeron.K1.query table (ref round))
    done;
    if round = member then Gc.compact () else if round = 5 + member then Gc.full_major ();
    for i = 0 to 49 do
      match Weak.get_copy weak i with Some copy -> alive := !alive + Array.length copy | None -> ()
    done
  done;
  !alive

let run domains = ignore (Team.sum domains work); Gc.full_major (); domains
