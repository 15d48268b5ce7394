(* Threads that allocate in turns, and end. *)
let work n = List.fold_left (fun sum x -> sum + String.length x) 0 (List.init n string_of_int)

let () =
  let total = Atomic.make 0 in
  for _ = 1 to 3 do
    let run n =
      for i = 1 to 20 do
        ignore (Atomic.fetch_and_add total (work (n + i)));
        if i mod 7 = 0 then Thread.yield ()
      done
    in
    List.iter Thread.join (List.init 8 (fun n -> Thread.create run (100 * n)))
  done;
  Printf.printf "total %d\n" (Atomic.get total);
  Check.finish ()
