(* Threads inside domains: they take turns within each, and end with it. *)
let work member =
  let total = Atomic.make 0 in
  let run n =
    for i = 1 to 15 do
      let strings = List.init (20 * n + i) string_of_int in
      ignore (Atomic.fetch_and_add total (List.fold_left (fun sum s -> sum + String.length s) member strings));
      if i mod 5 = 0 then Thread.yield ()
    done
  in
  for _ = 1 to 2 do
    List.iter Thread.join (List.init 5 (fun n -> Thread.create run n))
  done;
  (* The end of the domain waits for these. *)
  ignore (List.init 2 (fun n -> Thread.create run n));
  Atomic.get total

let run domains = ignore (Team.sum domains work); Thread.delay 0.05; domains
