(* Weak pointers, ephemerons and finalisers. *)
let () =
  let finalised = ref 0 and alive = ref 0 in
  let weak = Weak.create 100 in
  let entry = ref (Ephemeron.K1.make [||] "") in
  for round = 1 to 20 do
    for i = 0 to 99 do
      let block = Array.make ((i mod 9) + 1) round in
      Weak.set weak i (Some block);
      Gc.finalise (fun _ -> incr finalised) block;
      Gc.finalise_last (fun () -> incr finalised) (ref i);
      if i = 50 then entry := Ephemeron.K1.make block (string_of_int round)
    done;
    if round mod 5 = 0 then Gc.compact () else Gc.full_major ();
    for i = 0 to 99 do
      match Weak.get_copy weak i with Some copy -> alive := !alive + Array.length copy | None -> ()
    done
  done;
  Printf.printf "alive %d finalised %d\n" !alive !finalised;
  Check.finish ()
