(* Blocks allocated in the major heap, promotion, compaction, and a young heap
   that is resized. *)
let () =
  let kept = Array.make 64 [||] in
  for i = 1 to 400 do
    kept.(i mod 64) <- Array.init (300 + (i mod 50)) (fun j -> [ i + j ]);
    if i mod 50 = 0 then Gc.compact ();
    if i mod 70 = 0 then Gc.full_major ();
    if i = 100 then Gc.set { (Gc.get ()) with minor_heap_size = 4096 };
    if i = 300 then Gc.set { (Gc.get ()) with minor_heap_size = 65536; allocation_policy = 1 };
    if i = 350 then Gc.set { (Gc.get ()) with allocation_policy = 2 }
  done;
  Printf.printf "kept %d\n" (Array.fold_left (fun sum a -> sum + Array.length a) 0 kept);
  Check.finish ()
