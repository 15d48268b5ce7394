(* The blocks of all domains move. *)
let work member =
  let kept = Array.make 64 [||] in
  for i = 1 to 100 do
    kept.(i mod 64) <- Array.init (200 + ((i + member) mod 150)) (fun j -> [ i + j ]);
    if i mod 50 = 10 * member then Gc.compact ();
    if i = 60 && member < 2 then Gc.full_major ()
  done;
  Array.fold_left (fun sum a -> sum + Array.length a) 0 kept

let run domains = Team.sum domains work
